//! Mailbox of a guest's thread: messages to its event loop, and the status of the
//! guest.

use super::error::{VmCode, VmError};
use super::watch::Watch;
use a99_sandbox_protocol::{Exited, Request, Stream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An event of a command, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It runs, as that process of the guest. A script has none.
    Started(u32),
    /// It wrote that.
    Output(Stream, Vec<u8>),
    /// It takes that many more bytes of standard input.
    Credit(u32),
    /// It ended. The last event.
    Exited(Exited),
    /// It could not be started, it was ended for a reason of the host, or the
    /// guest ended. The last event.
    Failed(VmError),
}

/// Takes the events of a command, on the guest's thread: it must not wait.
pub type Sink = Box<dyn FnMut(Event) + Send>;

/// A command to spawn.
pub struct SpawnRequest {
    /// Drawn at random.
    pub id: u64,
    /// What the agent is asked.
    pub request: Request,
    /// Who hears of it.
    pub sink: Sink,
    /// Output counts as consumed as soon as the sink has it.
    pub eager: bool,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// When it is killed.
    pub deadline: Option<Instant>,
    /// After how many bytes of output it is killed.
    pub output_limit: Option<u64>,
}

/// Where a saved guest is awaited.
pub type SaveSlot = Arc<Watch<Option<Result<Vec<u8>, VmError>>>>;

/// What callers want of the thread.
pub enum Message {
    /// Spawn a command.
    Spawn(SpawnRequest),
    /// A request to the agent about a command that was spawned.
    Send(u64, Request),
    /// End a command, whether it runs or is queued.
    Cancel(u64),
    /// Save the guest.
    Save(SaveSlot),
    /// End all commands, write back what the host has not got, and stop; at
    /// that time at the latest.
    Shutdown(Instant),
    /// Stop the guest as it stands.
    Stop,
}

/// What is known of a guest.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// It lives; so many commands were ended when it was restored.
    pub started: Option<u32>,
    /// Why it runs no more.
    pub ended: Option<VmError>,
    /// Nothing of it is left.
    pub gone: bool,
}

#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    /// Something happened outside that needs a step.
    woken: bool,
    /// Set at the end: why the guest runs no more.
    ended: Option<VmError>,
    /// Instructions run so far.
    retired: u64,
}

/// The callers' end of a guest's thread.
pub struct Mailbox {
    inbox: Mutex<Inbox>,
    condvar: Condvar,
    /// What is known of the guest.
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
    /// The inbox. A caller that panicked while it held it left it whole.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a message.
    ///
    /// # Errors
    /// Why the guest runs no more; the message is dropped.
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

    /// Wakes the event loop, which polls its devices then.
    pub fn wake(&self) {
        self.lock().woken = true;
        self.condvar.notify_one();
    }

    /// Instructions that the guest has run.
    pub fn retired(&self) -> u64 {
        self.lock().retired
    }

    /// The messages so far, in exchange for what the thread knows.
    pub fn collect(&self, retired: u64) -> Vec<Message> {
        let mut inbox = self.lock();
        inbox.retired = retired;
        inbox.woken = false;
        std::mem::take(&mut inbox.messages)
    }

    /// Tells how many instructions have run.
    pub fn note_retired(&self, retired: u64) {
        self.lock().retired = retired;
    }

    /// Waits until there is a message or [`wake`](Self::wake) is called, at most
    /// `timeout` (for ever without).
    pub fn wait(&self, timeout: Option<Duration>) {
        let inbox = self.lock();
        let idle = |inbox: &mut Inbox| inbox.messages.is_empty() && !inbox.woken;
        match timeout {
            Some(timeout) => drop(self.condvar.wait_timeout_while(inbox, timeout, idle)),
            None => drop(self.condvar.wait_while(inbox, idle)),
        }
    }

    /// Takes no more messages; those that came too late.
    pub fn close(&self, ended: &VmError) -> Vec<Message> {
        let mut inbox = self.lock();
        inbox.ended = Some(ended.clone());
        let messages = std::mem::take(&mut inbox.messages);
        drop(inbox);
        self.status
            .change(|status| status.ended = Some(ended.clone()));
        messages
    }

    /// Waits until the guest takes commands; how many were ended when it was
    /// restored.
    pub async fn started(&self) -> Result<u32, VmError> {
        let started = |status: &mut Status| match (&status.ended, status.started) {
            (Some(ended), _) => Some(Err(ended.clone())),
            (None, Some(interrupted)) => Some(Ok(interrupted)),
            (None, None) => None,
        };
        self.status.until(started).await
    }

    /// Waits until nothing of the guest is left.
    pub async fn gone(&self) {
        self.status.until(|status| status.gone.then_some(())).await;
    }
}

/// The guest's end because somebody asked for it.
pub fn stopped() -> VmError {
    VmError::new(VmCode::Stopped, "the guest was stopped")
}
