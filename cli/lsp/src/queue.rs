//! Messages of the client: a thread reads them, so that the server knows of cancelled requests and
//! newer texts before it reaches them.

use crate::transport::{self, Fault};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most messages that wait.
const MAX_WAITING: usize = 4096;

/// What the reader passes on.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Json),
    /// A message that is no JSON, with the reason.
    Invalid(String),
    /// The input is no protocol, with the reason. Nothing follows.
    Broken(String),
    /// The end of the input. Nothing follows.
    End,
}

/// What is known of messages that wait.
#[derive(Debug, Default)]
struct Waiting {
    /// Requests that were cancelled, by their id.
    cancelled: HashSet<String>,
    /// Number of changes by document.
    changes: HashMap<String, usize>,
}

/// The messages of a client.
#[derive(Debug)]
pub(crate) struct Queue {
    messages: Receiver<Incoming>,
    waiting: Arc<Mutex<Waiting>>,
}

impl Queue {
    /// Starts to read on another thread.
    pub(crate) fn start(reader: impl BufRead + Send + 'static) -> io::Result<Queue> {
        let (sender, messages) = sync_channel(MAX_WAITING);
        let waiting = Arc::<Mutex<Waiting>>::default();
        let shared = waiting.clone();
        let thread = std::thread::Builder::new().name("lsp-reader".to_owned());
        thread.spawn(move || read_all(reader, &sender, &shared))?;
        Ok(Queue { messages, waiting })
    }

    /// The next message; `None` if no message waits.
    pub(crate) fn next_waiting(&self) -> Option<Incoming> {
        match self.messages.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Incoming::End),
        }
    }

    /// Waits for the next message.
    pub(crate) fn next(&self) -> Incoming {
        self.messages.recv().unwrap_or(Incoming::End)
    }

    /// True if a request was cancelled.
    pub(crate) fn is_cancelled(&self, id: &Json) -> bool {
        lock(&self.waiting).cancelled.contains(&id.to_string())
    }

    /// True if a newer text of a document waits.
    pub(crate) fn is_outdated(&self, uri: &str) -> bool {
        lock(&self.waiting).changes.contains_key(uri)
    }

    /// Takes note of a notification that was reached: what it announced no longer waits.
    pub(crate) fn reached(&self, message: &Json) {
        let mut waiting = lock(&self.waiting);
        if let Some(id) = cancelled(message) {
            waiting.cancelled.remove(&id.to_string());
        }
        if let Some(uri) = changed(message)
            && let Some(count) = waiting.changes.get_mut(uri)
        {
            *count -= 1;
            if *count == 0 {
                waiting.changes.remove(uri);
            }
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The request that a message cancels.
fn cancelled(message: &Json) -> Option<&Json> {
    let is_cancel = message["method"] == "$/cancelRequest";
    is_cancel.then(|| &message["params"]["id"])
}

/// The document that a message changes.
fn changed(message: &Json) -> Option<&str> {
    let is_change = message["method"] == "textDocument/didChange";
    message["params"]["textDocument"]["uri"]
        .as_str()
        .filter(|_| is_change)
}

fn read_all(mut reader: impl BufRead, sender: &SyncSender<Incoming>, waiting: &Mutex<Waiting>) {
    loop {
        let incoming = match transport::read(&mut reader) {
            Ok(None) => Incoming::End,
            Ok(Some(bytes)) => match serde_json::from_slice::<Json>(&bytes) {
                Ok(message) => {
                    let mut waiting = lock(waiting);
                    if let Some(id) = cancelled(&message) {
                        waiting.cancelled.insert(id.to_string());
                    }
                    if let Some(uri) = changed(&message) {
                        *waiting.changes.entry(uri.to_owned()).or_default() += 1;
                    }
                    Incoming::Message(message)
                }
                Err(error) => Incoming::Invalid(error.to_string()),
            },
            Err(Fault::Header(text)) => Incoming::Broken(text),
            Err(Fault::Io(error)) => Incoming::Broken(error.to_string()),
        };
        let is_last = matches!(incoming, Incoming::End | Incoming::Broken(_));
        // The server ends first after `exit`.
        if sender.send(incoming).is_err() || is_last {
            return;
        }
    }
}
