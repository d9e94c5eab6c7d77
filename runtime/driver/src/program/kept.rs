//! Size limit of a program agent's state and settings. A turn gets them and the event as one
//! value, so they must leave room for the next event.

use crate::agent::TurnOutcome;
use crate::error::{AgentError, codes};
use agent99::RunOptions;
use serde::Serialize;
use serde_json::Value as Json;
use std::io;

/// The share of the run's boundary that is reserved for the event: a quarter.
const EVENT_PART: usize = 4;

/// Bytes of state and settings as JSON text.
#[derive(Copy, Clone, Debug)]
pub(super) struct Kept(usize);

impl Kept {
    pub(super) fn of(state: &impl Serialize, settings: &Json) -> Kept {
        Kept(bytes(state).saturating_add(bytes(settings)))
    }

    /// Maximum bytes of state and settings after the turn. Larger ones from a store of an
    /// earlier version are still admitted, so that the turn can shrink them.
    pub(super) fn room(self, options: &mut RunOptions) -> usize {
        let most = &mut options.limits.boundary.max_bytes;
        let room = *most - *most / EVENT_PART;
        *most = most.saturating_add(self.0.saturating_sub(room));
        room
    }

    /// Refuses state and settings that grew beyond the limit.
    ///
    /// # Errors
    /// `state.too_large`
    pub(super) fn check(self, state: &impl Serialize, settings: &Json, room: usize) -> TurnOutcome {
        let now = Kept::of(state, settings).0;
        if now <= room.max(self.0) {
            return Ok(());
        }
        let message = format!(
            "state and settings have {now} bytes of at most {room}, so that a turn can take them \
             and its event in: keep large data in tables"
        );
        Err(AgentError::new(codes::STATE_TOO_LARGE, message).fatal())
    }
}

/// Bytes of a value as JSON text.
fn bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}
