//! Handles of guests and commands, which the library's types hold. No call here blocks.

use super::error::{VmCode, VmError};
use super::frozen::Frozen;
use super::mailbox::{Event, FrozenSlot, Mailbox, Message, SpawnRequest};
use super::watch::Watch;
use a99_sandbox_protocol::{MAX_CHUNK, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Draws an unguessable id; 0 is reserved.
pub fn random_id() -> Result<u64, VmError> {
    loop {
        let id = getrandom::u64();
        let id =
            id.map_err(|error| VmError::new(VmCode::Resources, format!("no randomness: {error}")))?;
        if id != 0 {
            return Ok(id);
        }
    }
}

/// Handle of a guest's thread; dropping the last one stops the guest.
pub struct GuestHandle {
    mailbox: Arc<Mailbox>,
}

impl std::fmt::Debug for GuestHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.mailbox.status.read(Clone::clone);
        f.debug_struct("GuestHandle")
            .field("status", &status)
            .finish()
    }
}

/// Spawn options of a command.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpawnOptions {
    /// Counts output as consumed as soon as the sink has it.
    pub eager: bool,
    /// Time limit.
    pub timeout: Option<Duration>,
    /// Maximum bytes of output.
    pub output_limit: Option<u64>,
}

impl GuestHandle {
    /// Wraps the mailbox of a guest.
    pub fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { mailbox }
    }

    /// Spawns a command; its events go to `sink` on the guest's thread.
    pub fn spawn(
        &self,
        request: Request,
        options: SpawnOptions,
        sink: impl FnOnce(CommandHandle) -> Box<dyn FnMut(Event) + Send>,
    ) -> Result<CommandHandle, VmError> {
        let id = random_id()?;
        let handle = CommandHandle {
            mailbox: Arc::clone(&self.mailbox),
            id,
        };
        let timeout = options.timeout;
        self.mailbox.post(Message::Spawn(SpawnRequest {
            id,
            request,
            sink: sink(handle.clone()),
            eager: options.eager,
            timeout,
            deadline: timeout.and_then(|time| Instant::now().checked_add(time)),
            output_limit: options.output_limit,
        }))?;
        Ok(handle)
    }

    /// Waits until the guest accepts commands; returns how many commands were ended at its
    /// restore.
    pub async fn started(&self) -> Result<u32, VmError> {
        self.mailbox.started().await
    }

    /// Freezes the guest's state; the guest runs on.
    pub async fn freeze(&self) -> Result<Frozen, VmError> {
        let slot: FrozenSlot = Arc::new(Watch::new(None));
        self.mailbox.post(Message::Freeze(Arc::clone(&slot)))?;
        slot.until(Option::take).await
    }

    /// Ends all commands, writes data back to the host, and stops the guest, after
    /// `timeout` in any case. Waits until the guest is gone.
    pub async fn shutdown(&self, timeout: Duration) {
        // A guest that has already ended needs no message.
        let _ = self
            .mailbox
            .post(Message::Shutdown(Instant::now() + timeout));
        self.mailbox.gone().await;
    }

    /// Stops the guest at once.
    pub fn halt(&self) {
        // A guest that has already ended needs no message.
        let _ = self.mailbox.post(Message::Stop);
    }

    /// Why the guest no longer runs; `None` while it runs.
    pub fn ended(&self) -> Option<VmError> {
        self.mailbox.status.read(|status| status.ended.clone())
    }

    /// Instructions that the guest has run, boot included.
    pub fn instructions(&self) -> u64 {
        self.mailbox.retired()
    }
}

impl Drop for GuestHandle {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Handle of a spawned command; dropping it has no effect.
#[derive(Clone)]
pub struct CommandHandle {
    mailbox: Arc<Mailbox>,
    id: u64,
}

impl std::fmt::Debug for CommandHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandHandle")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl PartialEq for CommandHandle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.mailbox, &other.mailbox)
    }
}

impl CommandHandle {
    /// Sends the agent a request about the command.
    pub fn send(&self, request: Request) -> Result<(), VmError> {
        self.mailbox.post(Message::Send(self.id, request))
    }

    /// Sends bytes of standard input, within the credit.
    pub fn input(&self, bytes: &[u8]) -> Result<(), VmError> {
        for chunk in bytes.chunks(MAX_CHUNK) {
            self.send(Request::Stdin(chunk.to_vec()))?;
        }
        Ok(())
    }

    /// Kills the command and all processes it started; its last event reports the end.
    pub fn cancel(&self) {
        // The guest's end is also the command's.
        let _ = self.mailbox.post(Message::Cancel(self.id));
    }
}
