//! Command state: the event loop's record of each command.

use super::error::VmError;
use super::ledger::Ledger;
use super::mailbox::{Event, Sink};
use a99_sandbox_protocol::Request;
use std::time::{Duration, Instant};

/// State of a spawned command or of a queued script.
pub(super) struct CommandState {
    /// `None` once its end was reported early.
    pub sink: Option<Sink>,
    pub eager: bool,
    pub deadline: Option<Instant>,
    pub output_limit: Option<u64>,
    pub written: u64,
    /// Bytes of standard output and error that were read but not acknowledged to the guest.
    pub unacked: [u32; 2],
    pub ledger: Ledger,
    /// Why it was killed.
    pub failure: Option<VmError>,
    /// Time of the kill, in guest time.
    pub killed: Option<Duration>,
    pub timeout: Option<Duration>,
}

impl CommandState {
    pub(crate) fn emit(&mut self, event: Event) {
        if let Some(sink) = &mut self.sink {
            sink(event);
        }
    }
}

/// A script queued for the session shell.
pub(super) struct QueuedScript {
    pub id: u64,
    pub request: Request,
    pub command: CommandState,
}
