//! File copies between host and guest: a program in the guest and a thread of the host
//! exchange the stream of [`tree`].

use super::process::Process;
use super::sandbox::Sandbox;
use crate::p9::{GitPlace, completes, place_on_host};
use a99_sandbox_protocol::tree::{self, Copied, EntryKind, ReceiveOptions};
use a99_sandbox_protocol::{Ending, Stream};
use a99_sandbox_runner::{VmCode, VmError, Watch, block_on};
use std::ffi::{CStr, OsStr};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Program that copies on the guest's side.
const AGENT: &str = "/sbin/agent99-agent";

/// Maximum files, folders and links in a copy out of the guest.
const MAX_ENTRIES: u64 = 1_000_000;

/// Bytes buffered before they go to the guest.
const BUFFER_BYTES: usize = 64 << 10;

/// Maximum bytes of the error text from the guest's side.
const MAX_COMPLAINT: usize = 4096;

pub(super) async fn copy_in(
    sandbox: &Sandbox,
    host: &Path,
    guest: &str,
) -> Result<Copied, VmError> {
    let process = sandbox.command([AGENT, "--receive", guest]);
    let process = process.for_copies().piped();
    let process = Arc::new(process.spawn()?);
    let (theirs, path) = (Arc::clone(&process), host.to_owned());
    let copied = on_a_thread(move || {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, StdinWriter(&theirs));
        let sent = tree::send(&path, &mut out);
        drop(out);
        // Otherwise the guest would wait for the rest.
        let closed = if sent.is_ok() {
            theirs.close_input()
        } else {
            theirs.kill()
        };
        match sent {
            Ok(copied) => closed.map(|()| Some(copied)),
            // The guest's side reports why it stopped reading.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            Err(error) => Err(failed("host", &path.display().to_string(), &error)),
        }
    })?;
    let mut complaint = Vec::new();
    let gathered = gather(&process, &mut complaint).await;
    let copied = copied.until(Option::take).await;
    gathered?;
    // A failure of the guest's side explains the host's.
    finish(&process, guest, &complaint, copied).await
}

pub(super) async fn copy_out(
    sandbox: &Sandbox,
    guest: &str,
    host: &Path,
    git: bool,
) -> Result<Copied, VmError> {
    let process = Arc::new(
        sandbox
            .command([AGENT, "--send", guest])
            .for_copies()
            .spawn()?,
    );
    let (theirs, path) = (Arc::clone(&process), host.to_owned());
    let options = ReceiveOptions {
        max_bytes: sandbox.settings.copy_limit,
        max_entries: MAX_ENTRIES,
        any_link: false,
        guard: (!git).then_some(git_guard),
    };
    let done = on_a_thread(move || {
        let mut input = StdoutReader {
            process: &theirs,
            chunk: Vec::new(),
            read: 0,
            complaint: Vec::new(),
        };
        let received = tree::receive(&mut input, &path, &options);
        let killed = match &received {
            Ok(_) => Ok(()),
            Err(_) => theirs.kill().map_err(io::Error::other),
        };
        // A killed process also ends only after all its output was read.
        let drained = killed.and_then(|()| input.drain());
        let place = path.display().to_string();
        let copied = received.and_then(|copied| drained.map(|()| copied));
        let copied = copied.map_err(|error| failed("host", &place, &error));
        Ok((copied, input.complaint))
    })?;
    let (copied, complaint) = done.until(Option::take).await?;
    finish(&process, guest, &complaint, copied.map(Some)).await
}

/// Whether the host's git could execute an entry of a folder: the rule of mounts, except
/// that folders named `.git` are created, with their data.
fn git_guard(folder: BorrowedFd<'_>, name: &CStr, kind: EntryKind) -> io::Result<bool> {
    let link = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let path = std::fs::read_link(link)?.join(OsStr::from_bytes(name.to_bytes()));
    Ok(match place_on_host(&path) {
        GitPlace::Protected => true,
        GitPlace::Dot => kind != EntryKind::Folder,
        GitPlace::Inside if kind == EntryKind::Link => true,
        GitPlace::Inside | GitPlace::Outside => completes(folder, name.to_bytes()),
    })
}

/// Joins both sides. The guest's failure explains the host's; without a result the host's
/// side ended because the guest's did.
async fn finish(
    process: &Process,
    guest: &str,
    complaint: &[u8],
    copied: Result<Option<Copied>, VmError>,
) -> Result<Copied, VmError> {
    let exited = process.wait().await?;
    match (exited.ending, copied) {
        (Ending::Code(0), Ok(Some(copied))) => Ok(copied),
        // The guest's side was killed because the host's failed.
        (Ending::Code(0) | Ending::Signal(_), Err(error)) => Err(error),
        (ending, _) => {
            let text = String::from_utf8_lossy(complaint);
            let text = text.trim().trim_start_matches("agent99-agent: ");
            let text = match text {
                "" if exited.out_of_memory => "the guest has too little memory".to_owned(),
                "" => format!("the guest's side ended with {ending:?}"),
                text => text.to_owned(),
            };
            Err(failed("guest", guest, &io::Error::other(text)))
        }
    }
}

fn failed(side: &str, path: &str, error: &io::Error) -> VmError {
    VmError::new(VmCode::Copy, format!("{side}: {path}: {error}"))
}

/// Result of a thread, awaited by a future.
type Slot<T> = Arc<Watch<Option<Result<T, VmError>>>>;

/// Runs blocking work on a separate thread.
fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VmError> + Send + 'static,
) -> Result<Slot<T>, VmError> {
    let slot: Slot<T> = Arc::new(Watch::new(None));
    let theirs = Arc::clone(&slot);
    std::thread::Builder::new()
        .name("a99-copy".to_owned())
        .spawn(move || {
            let result = work();
            theirs.change(|slot| *slot = Some(result));
        })
        .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")))?;
    Ok(slot)
}

/// Reads the process's standard error to its end.
async fn gather(process: &Process, complaint: &mut Vec<u8>) -> Result<(), VmError> {
    while let Some(chunk) = process.next().await? {
        add_complaint(chunk.stream, &chunk.bytes, complaint);
    }
    Ok(())
}

fn add_complaint(stream: Stream, bytes: &[u8], complaint: &mut Vec<u8>) {
    if stream == Stream::Stderr && complaint.len() < MAX_COMPLAINT {
        complaint.extend(bytes);
    }
}

/// A process's standard input as a blocking writer.
struct StdinWriter<'a>(&'a Process);

impl Write for StdinWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match block_on(self.0.write(bytes)) {
            Ok(true) => Ok(bytes.len()),
            Ok(false) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A process's standard output as a blocking reader.
struct StdoutReader<'a> {
    process: &'a Process,
    chunk: Vec<u8>,
    read: usize,
    complaint: Vec<u8>,
}

impl StdoutReader<'_> {
    /// Fetches a chunk of standard output; `false` at the end.
    fn more(&mut self) -> io::Result<bool> {
        loop {
            let next = block_on(self.process.next()).map_err(io::Error::other)?;
            let Some(chunk) = next else {
                return Ok(false);
            };
            add_complaint(chunk.stream, &chunk.bytes, &mut self.complaint);
            if chunk.stream == Stream::Stdout {
                self.chunk = chunk.bytes;
                self.read = 0;
                return Ok(true);
            }
        }
    }

    /// Skips output after the end of the tree, such as messages of the agent.
    fn drain(&mut self) -> io::Result<()> {
        while self.more()? {}
        Ok(())
    }
}

impl Read for StdoutReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.chunk.len() {
            if !self.more()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.chunk.len() - self.read);
        buffer[..count].copy_from_slice(&self.chunk[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
