//! Outgoing messages of a connection: a queue bounded by bytes, and the task that writes it.

use super::error::Refusal;
use super::metrics::Metrics;
use crate::message::{Encoded, failed, notice};
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Messages that wait, whatever their size.
const MESSAGES: usize = 256;

/// Close codes: of RFC 6455, section 7.4, and of this protocol.
pub(super) mod close {
    /// The server stops.
    pub(in crate::server) const GOING_AWAY: u16 = 1001;
    /// A message is too large.
    pub(in crate::server) const TOO_LARGE: u16 = 1009;
    /// The token is missing, unknown, expired or revoked.
    pub(in crate::server) const UNAUTHORIZED: u16 = 4001;
    /// A message is no frame, or comes at the wrong time.
    pub(in crate::server) const BAD_FRAME: u16 = 4002;
    /// The client speaks another version of the protocol.
    pub(in crate::server) const PROTOCOL: u16 = 4005;
    /// The client said nothing for too long, or took nothing.
    pub(in crate::server) const SILENT: u16 = 4008;
}

enum Item {
    Message(Encoded, OwnedSemaphorePermit),
    Ping,
    Close(u16, String),
}

/// The queue of a connection. Clones share it.
#[derive(Clone)]
pub(super) struct Outgoing {
    items: mpsc::Sender<Item>,
    bytes: Arc<Semaphore>,
    max_bytes: usize,
}

/// The connection has ended.
#[derive(Debug)]
pub(super) struct Gone;

impl Outgoing {
    /// A queue, and the work of writing it, which ends with the connection.
    pub(super) fn new(
        max_bytes: usize,
        silence: Duration,
        sink: SplitSink<WebSocket, Message>,
        metrics: Arc<Metrics>,
    ) -> (Outgoing, impl Future<Output = ()>) {
        let (items, queue) = mpsc::channel(MESSAGES);
        let outgoing = Outgoing {
            items,
            bytes: Arc::new(Semaphore::new(max_bytes)),
            max_bytes,
        };
        (outgoing, write(queue, silence, sink, metrics))
    }

    /// Queues a message; waits for room.
    pub(super) async fn send(&self, message: Encoded) -> Result<(), Gone> {
        let size = u32::try_from(message.len().min(self.max_bytes)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.bytes).acquire_many_owned(size).await;
        let permit = permit.map_err(|_| Gone)?;
        let item = Item::Message(message, permit);
        self.items.send(item).await.map_err(|_| Gone)
    }

    /// Queues a notification.
    pub(super) async fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), Gone> {
        match notice(method, params, &[]) {
            Ok(message) => self.send(message).await,
            Err(_) => Ok(()),
        }
    }

    /// Queues the answer to a request.
    pub(super) async fn answer(
        &self,
        id: u64,
        answer: Result<Encoded, Refusal>,
    ) -> Result<(), Gone> {
        let message = match answer {
            Ok(message) => Ok(message),
            Err(refusal) => failed(id, refusal.0),
        };
        match message {
            Ok(message) => self.send(message).await,
            // A refusal is far below the size of a frame.
            Err(_) => Err(Gone),
        }
    }

    /// Queues a ping, if there is room.
    pub(super) fn ping(&self) {
        drop(self.items.try_send(Item::Ping));
    }

    /// Queues the end of the connection, if there is room.
    pub(super) fn close(&self, code: u16, reason: impl Into<String>) {
        drop(self.items.try_send(Item::Close(code, reason.into())));
    }
}

async fn write(
    mut queue: mpsc::Receiver<Item>,
    silence: Duration,
    mut sink: SplitSink<WebSocket, Message>,
    metrics: Arc<Metrics>,
) {
    'open: while let Some(item) = queue.recv().await {
        let mut next = Some(item);
        // What waits goes out together.
        while let Some(item) = next {
            let (message, is_last) = match item {
                Item::Message(message, permit) => {
                    metrics.bytes_out.add(message.len() as u64);
                    let message = match message {
                        Encoded::Text(text) => Message::Text(text.into()),
                        Encoded::Binary(bytes) => Message::Binary(bytes.into()),
                    };
                    // More may be queued once this one is being written.
                    drop(permit);
                    (message, false)
                }
                Item::Ping => (Message::Ping(Vec::new().into()), false),
                Item::Close(code, reason) => (Message::Close(Some(closing(code, reason))), true),
            };
            let is_written = within(silence, &metrics, sink.feed(message)).await;
            if is_last || !is_written {
                break 'open;
            }
            next = queue.try_recv().ok();
        }
        if !within(silence, &metrics, sink.flush()).await {
            break;
        }
    }
    queue.close();
    // The client may be gone, or take nothing.
    drop(tokio::time::timeout(Duration::from_secs(1), sink.close()).await);
}

/// Whether the client takes bytes in time.
async fn within(
    silence: Duration,
    metrics: &Metrics,
    write: impl Future<Output = Result<(), axum::Error>>,
) -> bool {
    match tokio::time::timeout(silence, write).await {
        Ok(written) => written.is_ok(),
        Err(_) => {
            metrics.slow.inc();
            false
        }
    }
}

/// A close frame; its reason has at most 123 bytes (RFC 6455, section 5.5).
fn closing(code: u16, mut reason: String) -> CloseFrame {
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.truncate(end);
    CloseFrame {
        code,
        reason: reason.into(),
    }
}
