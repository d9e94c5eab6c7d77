//! Peers: one end of a connection, which asks, answers and is told.

use super::frame::{self, Body, Envelope};
use crate::error::{AgentError, codes};
use crate::hub::locked;
use a99_runtime_engine::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// How long an answer is waited for.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for the answer of a language model.
pub(crate) const AI_TIMEOUT: Duration = Duration::from_secs(300);

/// Frames that wait to be written, at most; whoever has one more waits.
const MAX_QUEUED: usize = 256;

/// Requests of the other end that are worked on at a time; one more ends the connection.
const MAX_SERVED: usize = 1_024;

/// The notice that an answer is not waited for any more.
const CANCEL: &str = "cancel";

type Answer = Result<Body, AgentError>;

/// What answers the other end.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Answers a request: with the frame of this id.
    fn request(
        &self,
        id: u64,
        method: String,
        params: Body,
    ) -> BoxFuture<'static, Result<Vec<u8>, AgentError>>;

    /// Takes a notice; it does not wait.
    fn notice(&self, method: &str, params: &Body) -> Result<(), AgentError>;
}

#[derive(Default)]
struct Pending {
    answers: HashMap<u64, oneshot::Sender<Answer>>,
    /// Requests of the other end.
    served: HashMap<u64, AbortHandle>,
}

/// One end of a connection.
pub(crate) struct Peer {
    out: mpsc::Sender<Vec<u8>>,
    pending: Mutex<Pending>,
    next: AtomicU64,
    room: Arc<Semaphore>,
    /// Why it ended.
    ended: watch::Sender<Option<AgentError>>,
}

/// A request whose answer is waited for. If it is dropped, the other end is told.
struct Waiting<'a> {
    peer: &'a Arc<Peer>,
    id: u64,
    method: &'a str,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let was_waiting = locked(&self.peer.pending).answers.remove(&self.id);
        if was_waiting.is_some() && self.peer.ended.borrow().is_none() {
            self.peer.notify_soon(CANCEL, &self.id);
        }
    }
}

impl Peer {
    /// An end, and what waits to be written.
    pub(crate) fn new() -> (Arc<Peer>, mpsc::Receiver<Vec<u8>>) {
        let (out, queue) = mpsc::channel(MAX_QUEUED);
        let peer = Peer {
            out,
            pending: Mutex::default(),
            next: AtomicU64::new(1),
            room: Arc::new(Semaphore::new(MAX_SERVED)),
            ended: watch::Sender::new(None),
        };
        (Arc::new(peer), queue)
    }

    fn gone(&self) -> AgentError {
        let why = self.ended.borrow().clone();
        why.unwrap_or_else(|| AgentError::new(codes::LOST, "the connection has ended"))
    }

    /// Whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits until it has, and says why.
    pub(crate) async fn ended(&self) -> AgentError {
        let mut ended = self.ended.subscribe();
        // The sender lives in the peer.
        drop(ended.wait_for(Option::is_some).await);
        self.gone()
    }

    /// Ends the connection: whoever waits for an answer gets the error.
    pub(crate) fn end(&self, why: AgentError) {
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(why);
            is_first
        });
        let pending = std::mem::take(&mut *locked(&self.pending));
        for served in pending.served.values() {
            served.abort();
        }
    }

    /// Asks, and waits for the answer: for ever, if there is no limit.
    ///
    /// # Errors
    /// Those of the other end; `process.timeout`, `process.lost` and what else ended the
    /// connection; `process.message_too_large`.
    pub(crate) async fn request<T: DeserializeOwned>(
        self: &Arc<Peer>,
        method: &str,
        params: &impl Serialize,
        limit: Option<Duration>,
    ) -> Result<T, AgentError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = frame::request(id, method, params)?;
        let (sender, answer) = oneshot::channel();
        locked(&self.pending).answers.insert(id, sender);
        let waiting = Waiting {
            peer: self,
            id,
            method,
        };
        if self.has_ended() {
            return Err(self.gone());
        }
        let work = async {
            self.out.send(frame).await.map_err(|_| self.gone())?;
            answer.await.unwrap_or_else(|_| Err(self.gone()))
        };
        let body = match limit {
            None => work.await?,
            Some(limit) => match tokio::time::timeout(limit, work).await {
                Ok(body) => body?,
                Err(_) => {
                    let message = format!("'{method}' was not answered within {limit:?}");
                    return Err(AgentError::new(codes::CALL_LATE, message));
                }
            },
        };
        body.read(waiting.method)
    }

    /// Tells the other end something, and waits for room.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<(), AgentError> {
        let frame = frame::notice(method, params)?;
        self.out.send(frame).await.map_err(|_| self.gone())
    }

    /// The same where nobody can wait: without room it is sent when there is some.
    pub(crate) fn notify_soon(&self, method: &str, params: &impl Serialize) {
        let Ok(frame) = frame::notice(method, params) else {
            return;
        };
        if let Err(mpsc::error::TrySendError::Full(frame)) = self.out.try_send(frame)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let out = self.out.clone();
            runtime.spawn(async move { out.send(frame).await });
        }
    }

    /// The same for what may be lost: whether there was room.
    pub(crate) fn try_notify(&self, method: &str, params: &impl Serialize) -> bool {
        frame::notice(method, params).is_ok_and(|frame| self.out.try_send(frame).is_ok())
    }

    /// Reads and writes until the connection ends, and says why it did.
    pub(crate) async fn run(
        self: Arc<Peer>,
        mut queue: mpsc::Receiver<Vec<u8>>,
        (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
        serve: Arc<impl Serve>,
    ) -> AgentError {
        let lost = |error: std::io::Error| AgentError::new(codes::LOST, error.to_string());
        let writing = async {
            while let Some(frame) = queue.recv().await {
                to.write_all(&frame).await.map_err(lost)?;
            }
            Ok::<(), AgentError>(())
        };
        let reading = async {
            while let Some(frame) = frame::read(&mut from).await? {
                self.take(frame, &serve)?;
            }
            Err::<(), _>(AgentError::new(codes::LOST, "the other end has gone"))
        };
        let why = tokio::select! {
            biased;
            why = self.ended() => why,
            read = reading => read.err().unwrap_or_else(|| self.gone()),
            written = writing => written.err().unwrap_or_else(|| self.gone()),
        };
        self.end(why.clone());
        why
    }

    fn take(
        self: &Arc<Peer>,
        frame: frame::Frame,
        serve: &Arc<impl Serve>,
    ) -> Result<(), AgentError> {
        match frame.envelope {
            // An answer that nobody waits for any more is left.
            Envelope::Answer { id } => {
                if let Some(waiting) = locked(&self.pending).answers.remove(&id) {
                    drop(waiting.send(Ok(frame.body)));
                }
            }
            Envelope::Failed { id, error } => {
                if let Some(waiting) = locked(&self.pending).answers.remove(&id) {
                    drop(waiting.send(Err(error.into())));
                }
            }
            Envelope::Notice { method } if method == CANCEL => {
                let id: u64 = frame.body.read(CANCEL)?;
                if let Some(served) = locked(&self.pending).served.remove(&id) {
                    served.abort();
                }
            }
            Envelope::Notice { method } => serve.notice(&method, &frame.body)?,
            Envelope::Request { id, method } => self.serve(id, method, frame.body, serve)?,
        }
        Ok(())
    }

    fn serve(
        self: &Arc<Peer>,
        id: u64,
        method: String,
        params: Body,
        serve: &Arc<impl Serve>,
    ) -> Result<(), AgentError> {
        let permit = Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            let message = format!("the other end has more than {MAX_SERVED} requests at a time");
            AgentError::new(codes::BUSY, message)
        })?;
        let work = serve.request(id, method, params);
        let peer = Arc::clone(self);
        // It is noted before it can end.
        let mut pending = locked(&self.pending);
        let task = tokio::spawn(async move {
            let _permit = permit;
            let frame = work.await.or_else(|error| frame::failed(id, &error));
            locked(&peer.pending).served.remove(&id);
            if let Ok(frame) = frame {
                drop(peer.out.send(frame).await);
            }
        });
        pending.served.insert(id, task.abort_handle());
        Ok(())
    }
}
