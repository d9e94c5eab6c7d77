//! Peers: one end of a connection, which sends and answers requests and notifications.

use super::frame::{self, Body, Envelope, parsed};
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

/// Timeout of an answer.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a language model's answer.
pub(crate) const AI_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum frames in the write queue; senders wait for room.
const MAX_QUEUED: usize = 256;

/// Maximum concurrent requests of the other end; one more ends the connection.
const MAX_SERVED: usize = 1_024;

/// The notification that cancels a request.
const CANCEL: &str = "cancel";

type Answer = Result<Body, AgentError>;

/// Answers the other end.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Answers a request with the frame of this id.
    fn request(
        &self,
        id: u64,
        method: String,
        params: Body,
    ) -> BoxFuture<'static, Result<Vec<u8>, AgentError>>;

    /// Takes a notification without blocking.
    fn notice(&self, method: &str, params: &Body) -> Result<(), AgentError>;
}

#[derive(Default)]
struct Pending {
    answers: HashMap<u64, oneshot::Sender<Answer>>,
    /// Running requests of the other end.
    served: HashMap<u64, AbortHandle>,
}

pub(crate) struct Peer {
    out: mpsc::Sender<Vec<u8>>,
    pending: Mutex<Pending>,
    next: AtomicU64,
    room: Arc<Semaphore>,
    /// Why the connection ended.
    ended: watch::Sender<Option<AgentError>>,
}

/// A pending request. Dropping it cancels the request at the other end.
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
    /// A peer, and its queue of frames to write.
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

    /// Waits for the end of the connection, and gives its reason.
    pub(crate) async fn ended(&self) -> AgentError {
        let mut ended = self.ended.subscribe();
        // Never fails: the peer owns the sender.
        drop(ended.wait_for(Option::is_some).await);
        self.gone()
    }

    /// Ends the connection: all pending requests get the error.
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

    /// Sends a request and waits for the answer, without a limit if `limit` is `None`.
    ///
    /// # Errors
    /// Those of the other end; `process.timeout`; `process.lost` or another reason for the end
    /// of the connection; `process.message_too_large`.
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
        parsed(&body, waiting.method)
    }

    /// Sends a notification, and waits for room in the queue.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<(), AgentError> {
        let frame = frame::notice(method, params)?;
        self.out.send(frame).await.map_err(|_| self.gone())
    }

    /// Sends a notification without waiting: if the queue is full, it is sent later.
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

    /// Sends a notification that may be lost. Gives whether there was room.
    pub(crate) fn try_notify(&self, method: &str, params: &impl Serialize) -> bool {
        frame::notice(method, params).is_ok_and(|frame| self.out.try_send(frame).is_ok())
    }

    /// Reads and writes until the connection ends, and gives the reason.
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
            // An answer to a cancelled request is dropped.
            Envelope::Answer(id) => {
                if let Some(waiting) = locked(&self.pending).answers.remove(&id) {
                    drop(waiting.send(Ok(frame.body)));
                }
            }
            Envelope::Failed(id, error) => {
                if let Some(waiting) = locked(&self.pending).answers.remove(&id) {
                    drop(waiting.send(Err(error.into())));
                }
            }
            Envelope::Notice(method) if method == CANCEL => {
                let id: u64 = parsed(&frame.body, CANCEL)?;
                if let Some(served) = locked(&self.pending).served.remove(&id) {
                    served.abort();
                }
            }
            Envelope::Notice(method) => serve.notice(&method, &frame.body)?,
            Envelope::Request(id, method, _) => self.serve(id, method, frame.body, serve)?,
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
        // Register the task before it can end.
        let mut pending = locked(&self.pending);
        let task = tokio::spawn(async move {
            let _permit = permit;
            let frame = match work.await {
                Ok(frame) => Ok(frame),
                Err(error) => frame::failed(id, &error),
            };
            locked(&peer.pending).served.remove(&id);
            if let Ok(frame) = frame {
                drop(peer.out.send(frame).await);
            }
        });
        pending.served.insert(id, task.abort_handle());
        Ok(())
    }
}
