//! Mailbox of a guest's thread: messages to its event loop, and the status of the guest.

use super::error::{VmCode, VmError};
use super::frozen::Frozen;
use super::watch::Watch;
use a99_sandbox_protocol::{Exited, Request, Stream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An event of a command, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command runs with this process id in the guest; never sent for a script.
    Started(u32),
    /// The command wrote these bytes.
    Output(Stream, Vec<u8>),
    /// The command accepts this many more bytes of standard input.
    Credit(u32),
    /// The command ended; its last event.
    Exited(Exited),
    /// The command did not start, the host ended it, or the guest ended; its last event.
    Failed(VmError),
}

/// Receives the events of a command on the guest's thread, so it must not block.
pub type Sink = Box<dyn FnMut(Event) + Send>;

/// A command to spawn.
pub struct SpawnRequest {
    /// Id, drawn at random.
    pub id: u64,
    /// Request for the agent.
    pub request: Request,
    /// Receiver of the command's events.
    pub sink: Sink,
    /// Counts output as consumed as soon as the sink has it.
    pub eager: bool,
    /// Time limit, from which `deadline` follows.
    pub timeout: Option<Duration>,
    /// Time at which the command is killed.
    pub deadline: Option<Instant>,
    /// Bytes of output at which the command is killed.
    pub output_limit: Option<u64>,
}

/// Slot in which a caller awaits a frozen guest.
pub type FrozenSlot = Arc<Watch<Option<Result<Frozen, VmError>>>>;

/// A caller's message to the guest's thread.
pub enum Message {
    /// Spawns a command.
    Spawn(SpawnRequest),
    /// Sends the agent a request about a spawned command.
    Send(u64, Request),
    /// Ends a running or queued command.
    Cancel(u64),
    /// Freezes the guest's state.
    Freeze(FrozenSlot),
    /// Ends all commands, writes data back to the host, and stops the guest, at that time
    /// at the latest.
    Shutdown(Instant),
    /// Stops the guest at once.
    Stop,
}

/// Status of a guest, for callers.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Set once the guest runs: the number of commands that were ended at its restore.
    pub started: Option<u32>,
    /// Why the guest no longer runs.
    pub ended: Option<VmError>,
    /// The guest and its thread's resources are gone.
    pub gone: bool,
}

#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    /// An outside event needs a step.
    woken: bool,
    ended: Option<VmError>,
    retired: u64,
}

/// The callers' end of a guest's thread.
pub struct Mailbox {
    inbox: Mutex<Inbox>,
    condvar: Condvar,
    /// Status of the guest.
    pub status: Watch<Status>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            inbox: Mutex::default(),
            condvar: Condvar::new(),
            status: Watch::new(Status::default()),
        }
    }
}

impl Mailbox {
    /// Locks the inbox. Ignores poisoning: a panicking caller leaves it intact.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts a message.
    ///
    /// # Errors
    /// Why the guest no longer runs; the message is dropped.
    pub fn post(&self, message: Message) -> Result<(), VmError> {
        let mut inbox = self.lock();
        if let Some(ended) = &inbox.ended {
            return Err(ended.clone());
        }
        inbox.messages.push(message);
        drop(inbox);
        self.condvar.notify_one();
        Ok(())
    }

    /// Wakes the event loop, which then polls its devices.
    pub fn wake(&self) {
        self.lock().woken = true;
        self.condvar.notify_one();
    }

    /// Instructions that the guest has run.
    pub fn retired(&self) -> u64 {
        self.lock().retired
    }

    /// Takes the pending messages and publishes the instruction count.
    pub fn collect(&self, retired: u64) -> Vec<Message> {
        let mut inbox = self.lock();
        inbox.retired = retired;
        inbox.woken = false;
        std::mem::take(&mut inbox.messages)
    }

    /// Publishes the instruction count.
    pub fn note_retired(&self, retired: u64) {
        self.lock().retired = retired;
    }

    /// Waits for a message or a call of [`wake`](Self::wake), at most `timeout` (for ever
    /// without).
    pub fn wait(&self, timeout: Option<Duration>) {
        let inbox = self.lock();
        let idle = |inbox: &mut Inbox| inbox.messages.is_empty() && !inbox.woken;
        match timeout {
            Some(timeout) => drop(self.condvar.wait_timeout_while(inbox, timeout, idle)),
            None => drop(self.condvar.wait_while(inbox, idle)),
        }
    }

    /// Closes the mailbox; returns the messages that came too late.
    pub fn close(&self, ended: &VmError) -> Vec<Message> {
        let mut inbox = self.lock();
        inbox.ended = Some(ended.clone());
        let messages = std::mem::take(&mut inbox.messages);
        drop(inbox);
        self.status
            .change(|status| status.ended = Some(ended.clone()));
        messages
    }

    /// Waits until the guest accepts commands; returns how many commands were ended at its
    /// restore.
    pub async fn started(&self) -> Result<u32, VmError> {
        let started = |status: &mut Status| match (&status.ended, status.started) {
            (Some(ended), _) => Some(Err(ended.clone())),
            (None, Some(interrupted)) => Some(Ok(interrupted)),
            (None, None) => None,
        };
        self.status.until(started).await
    }

    /// Waits until the guest is gone.
    pub async fn gone(&self) {
        self.status.until(|status| status.gone.then_some(())).await;
    }
}

/// Error of a guest that was stopped on request.
pub fn stopped() -> VmError {
    VmError::new(VmCode::Stopped, "the guest was stopped")
}
