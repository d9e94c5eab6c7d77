//! Cancellation switch: ends commands from another task or thread.

use a99_sandbox_runner::CommandHandle;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct CancelState {
    cancelled: bool,
    commands: Vec<CommandHandle>,
}

/// A switch that ends all commands it was given to, now and later.
///
/// Clones share one switch.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    state: Arc<Mutex<CancelState>>,
}

impl Cancel {
    /// Creates an unused switch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ignores poisoning: every update of the state is complete.
    fn lock(&self) -> MutexGuard<'_, CancelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the commands and all processes they started.
    ///
    /// Their futures end with [`VmCode::Cancelled`](crate::vm::VmCode::Cancelled).
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        commands.iter().for_each(CommandHandle::cancel);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Ties a command to this switch until the returned guard is dropped.
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

/// Registration of a command with a [`Cancel`].
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
