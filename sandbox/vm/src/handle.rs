//! A guest's thread as the library's types hold it: commands are opened and
//! spoken to, and nothing here waits.

use super::error::{VmCode, VmError};
use super::mailbox::{Event, Mailbox, Message, Open, SaveSlot};
use super::watch::Watch;
use a99_sandbox_protocol::{MAX_CHUNK, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An id that nobody guesses; 0 is none's.
pub(super) fn random_id() -> Result<u64, VmError> {
    loop {
        let id = getrandom::u64();
        let id =
            id.map_err(|error| VmError::new(VmCode::Resources, format!("no randomness: {error}")))?;
        if id != 0 {
            return Ok(id);
        }
    }
}

/// A guest's thread, as long as somebody holds it; then the guest is stopped.
pub struct Running {
    mailbox: Arc<Mailbox>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.mailbox.status.look(Clone::clone);
        f.debug_struct("Running").field("status", &status).finish()
    }
}

/// How a command is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    /// Output counts as consumed as soon as the sink has it.
    pub eager: bool,
    /// Longest time.
    pub timeout: Option<Duration>,
    /// Most bytes of output.
    pub output_limit: Option<u64>,
}

impl Running {
    /// The guest behind a mailbox.
    pub fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { mailbox }
    }

    /// Opens a command. Its events go to `sink` on the guest's thread.
    pub fn open(
        &self,
        request: Request,
        opening: Opening,
        sink: impl FnOnce(Handle) -> Box<dyn FnMut(Event) + Send>,
    ) -> Result<Handle, VmError> {
        let id = random_id()?;
        let handle = Handle {
            mailbox: Arc::clone(&self.mailbox),
            id,
        };
        let timeout = opening.timeout;
        self.mailbox.post(Message::Open(Open {
            id,
            request,
            sink: sink(handle.clone()),
            eager: opening.eager,
            timeout,
            deadline: timeout.and_then(|time| Instant::now().checked_add(time)),
            output_limit: opening.output_limit,
        }))?;
        Ok(handle)
    }

    /// Waits until the guest takes commands; how many were ended when it was
    /// restored.
    pub async fn started(&self) -> Result<u32, VmError> {
        self.mailbox.started().await
    }

    /// Saves the guest.
    pub async fn save(&self) -> Result<Vec<u8>, VmError> {
        let slot: SaveSlot = Arc::new(Watch::new(None));
        self.mailbox.post(Message::Save(Arc::clone(&slot)))?;
        slot.until(Option::take).await
    }

    /// Ends all commands, writes back what the host has not got, and stops;
    /// after `patience` it stops in any case. Waits until nothing is left.
    pub async fn settle(&self, patience: Duration) {
        // One that has ended already needs no telling.
        let _ = self
            .mailbox
            .post(Message::Settle(Instant::now() + patience));
        self.mailbox.gone().await;
    }

    /// Stops the guest as it stands.
    pub fn halt(&self) {
        // One that has ended already needs no telling.
        let _ = self.mailbox.post(Message::Stop);
    }

    /// Why it runs no more, if so.
    pub fn ended(&self) -> Option<VmError> {
        self.mailbox.status.look(|status| status.ended.clone())
    }

    /// Instructions that the guest has run, boot included.
    pub fn instructions(&self) -> u64 {
        self.mailbox.retired()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.halt();
    }
}

/// A command that was opened. Dropping it changes nothing.
#[derive(Clone)]
pub struct Handle {
    mailbox: Arc<Mailbox>,
    id: u64,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.mailbox, &other.mailbox)
    }
}

impl Handle {
    /// Tells the agent something about it.
    pub fn send(&self, request: Request) -> Result<(), VmError> {
        self.mailbox.post(Message::Send(self.id, request))
    }

    /// Bytes for standard input, within the credit.
    pub fn input(&self, bytes: &[u8]) -> Result<(), VmError> {
        for chunk in bytes.chunks(MAX_CHUNK) {
            self.send(Request::Stdin(chunk.to_vec()))?;
        }
        Ok(())
    }

    /// Ends it, with all that it started; its last event says so.
    pub fn cancel(&self) {
        // The end of the guest is its end too.
        let _ = self.mailbox.post(Message::Cancel(self.id));
    }
}
