//! Standard input forwarding, from a client to a command of the guest. A separate thread waits for
//! the command, so that the connection's reader never blocks.

use super::wire::{Note, WINDOW, note};
use a99_sandbox::{Process, block_on};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Write half of a connection, shared by several threads; each writes a whole frame.
pub(super) type Writer = Arc<Mutex<UnixStream>>;

pub(super) fn send(writer: &Writer, said: Note, bytes: &[u8]) -> io::Result<()> {
    // A thread that panicked may have written half a frame: the reader then refuses the rest.
    let mut stream = writer.lock().unwrap_or_else(PoisonError::into_inner);
    note(&mut *stream, said, bytes)
}

/// Forwards standard input to a command. Dropping it ends the thread.
pub(super) struct StdinForwarder {
    /// Input, or its end.
    queue: Sender<Option<Vec<u8>>>,
    /// Bytes received from the client and not yet written to the command.
    under_way: Arc<AtomicUsize>,
}

impl StdinForwarder {
    /// Starts the thread; `writer` carries credit to the client.
    pub(super) fn start(process: Arc<Process>, writer: Writer) -> io::Result<Self> {
        let (queue, queued) = channel();
        let under_way = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&under_way);
        std::thread::Builder::new()
            .name("stdin".to_owned())
            .spawn(move || feed(&process, &queued, &theirs, &writer))?;
        Ok(Self { queue, under_way })
    }

    /// Forwards bytes; `false` if the client exceeds its credit.
    pub(super) fn bytes(&self, bytes: &[u8]) -> bool {
        let before = self.under_way.fetch_add(bytes.len(), Ordering::Relaxed);
        if before + bytes.len() > WINDOW {
            return false;
        }
        // The thread ends when the command does; further input is dropped.
        let _ = self.queue.send(Some(bytes.to_vec()));
        true
    }

    /// Closes the command's standard input.
    pub(super) fn end(&self) {
        let _ = self.queue.send(None);
    }
}

fn feed(
    process: &Process,
    queued: &Receiver<Option<Vec<u8>>>,
    under_way: &AtomicUsize,
    writer: &Writer,
) {
    for input in queued {
        let Some(bytes) = input else {
            // The guest's end is reported as the command's end.
            let _ = process.close_input();
            return;
        };
        if !matches!(block_on(process.write(&bytes)), Ok(true)) {
            return;
        }
        under_way.fetch_sub(bytes.len(), Ordering::Relaxed);
        if send(writer, Note::Credit(bytes.len()), &[]).is_err() {
            return;
        }
    }
}
