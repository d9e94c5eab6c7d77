//! Cancellation switch: ends commands from elsewhere.

use a99_sandbox_runner::CommandHandle;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct CancelState {
    cancelled: bool,
    commands: Vec<CommandHandle>,
}

/// A switch that ends all commands it was given to, now and later. Clones are
/// the same switch.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    state: Arc<Mutex<CancelState>>,
}

impl Cancel {
    /// A switch that was not used.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state; nobody leaves it half changed.
    fn lock(&self) -> MutexGuard<'_, CancelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the commands, with all that they started. Their futures end with
    /// [`VmCode::Cancelled`](crate::vm::VmCode::Cancelled).
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        commands.iter().for_each(CommandHandle::cancel);
    }

    /// Whether it was used.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Ends this command too, now or later, until the answer is dropped.
    pub(super) fn watch(&self, command: &CommandHandle) -> Watching {
        let mut state = self.lock();
        if state.cancelled {
            drop(state);
            command.cancel();
        } else {
            state.commands.push(command.clone());
        }
        Watching {
            cancel: self.clone(),
            command: command.clone(),
        }
    }
}

/// A command that a [`Cancel`] knows.
#[derive(Debug)]
pub(super) struct Watching {
    cancel: Cancel,
    command: CommandHandle,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut state = self.cancel.lock();
        state.commands.retain(|other| *other != self.command);
    }
}
