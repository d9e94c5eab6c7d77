//! Worker: the archive is read in a separate process with limits.
//!
//! The archive is its standard input and the file system its standard output; the spool is
//! the only path that it opens. It may open no descriptor after that (one for the blob of a
//! folder), so neither files nor sockets are within its reach, and it may start no thread
//! or process. Standard error carries lines of JSON: notes, and one result or error.

use crate::error::{OciCode, OciError, damaged};
use crate::limits::Limits;
use crate::read::{Image, Input, Step, read};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Task of a worker, the argument before its own.
pub const TASK: &str = "oci";

/// Maximum writable memory: names and nodes of a million entries, and decoders.
const MEMORY: u64 = 1 << 30;

/// Maximum processor time in seconds, and the time limit.
const CPU_SECONDS: u64 = 900;
const TIMEOUT: Duration = Duration::from_secs(1800);

/// Maximum length of the file system and of the spool, beyond what layers may unpack to.
const FILE_MARGIN: u64 = 4 << 30;

/// Maximum bytes that a worker may report.
const MAX_REPORT: u64 = 4 << 20;

/// Reports that wait for the parent.
const QUEUE: usize = 64;

/// A command that calls [`serve`] with the arguments after its own and [`TASK`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// A line of the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Chosen(String, Option<String>),
    Note(String),
    Image(Box<Image>),
    Error {
        code: String,
        place: String,
        text: String,
        help: Option<String>,
    },
}

impl Worker {
    /// Creates a worker from a program and its arguments.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into);
        Self {
            program: program.into(),
            arguments: arguments.collect(),
        }
    }

    /// Reads an image by the worker, unless it is a known one.
    pub(crate) fn run(
        &self,
        archive: File,
        spool: &Path,
        out: File,
        tag: Option<&str>,
        is_known: &dyn Fn(&str) -> bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Found, OciError> {
        let failed = |error: std::io::Error| {
            OciError::new(
                OciCode::Worker,
                self.program.display().to_string(),
                error.to_string(),
            )
        };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(TASK).arg(spool).args(tag);
        let command = command.env_clear().stdin(archive).stdout(out);
        let mut child = WorkerProcess(command.stderr(Stdio::piped()).spawn().map_err(failed)?);
        let (sender, lines) = sync_channel(QUEUE);
        let stream = child.0.stderr.take();
        let reader = std::thread::Builder::new();
        reader
            .spawn(move || stream.map(|stream| pass_on(stream, &sender)))
            .map_err(failed)?;
        let end = Instant::now() + TIMEOUT;
        let mut result = None;
        loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Line::Chosen(id, reference)) if is_id(&id) && is_known(&id) => {
                    return Ok(Found::Known(id, reference));
                }
                Ok(Line::Chosen(..)) => {}
                Ok(Line::Note(text)) => progress(&text),
                Ok(Line::Image(image)) => result = Some(Ok(image)),
                Ok(Line::Error {
                    code,
                    place,
                    text,
                    help,
                }) => {
                    let code = OciCode::from_name(&code).unwrap_or(OciCode::Worker);
                    result = Some(Err(OciError {
                        code,
                        place,
                        text,
                        help,
                    }));
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let text = format!("reading it took more than {TIMEOUT:?}");
                    return Err(OciError::new(OciCode::Worker, "archive", text)
                        .help("use an image with fewer layers and files"));
                }
            }
        }
        let status = child.0.wait().map_err(failed)?;
        match result {
            Some(Ok(image)) if status.success() && is_id(&image.id) => Ok(Found::New(image)),
            Some(Ok(image)) if status.success() => {
                Err(damaged(image.id, "the digest of the image is malformed"))
            }
            Some(Err(error)) => Err(error),
            _ => {
                let text =
                    format!("reading it takes more memory, time or room than allowed ({status})");
                Err(OciError::new(OciCode::Worker, "archive", text).help(
                    "use an image with fewer layers and files, and look at the disk's free space",
                ))
            }
        }
    }
}

/// What a worker found.
pub(crate) enum Found {
    New(Box<Image>),
    /// Digest and reference of an image that the caller has.
    Known(String, Option<String>),
}

/// Checks what becomes a path: the process had hostile input.
fn is_id(id: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    id.len() == 64 && id.bytes().all(is_hex)
}

/// Sends the lines of a worker on until it ends or has reported too much.
fn pass_on(stream: impl Read, lines: &SyncSender<Line>) {
    for line in BufReader::new(stream.take(MAX_REPORT)).lines() {
        let Ok(line) = line else { return };
        // Others are the message of a panic.
        if let Ok(line) = serde_json::from_str(&line)
            && lines.send(line).is_err()
        {
            return;
        }
    }
}

/// A child process, killed on drop.
struct WorkerProcess(Child);

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the command of a [`Worker`] with the arguments after [`TASK`]; returns whether it
/// succeeded.
pub fn serve(arguments: &[OsString]) -> bool {
    let line = match work(arguments) {
        Ok(image) => Line::Image(Box::new(image)),
        Err(OciError {
            code,
            place,
            text,
            help,
        }) => {
            let code = code.name().to_owned();
            Line::Error {
                code,
                place,
                text,
                help,
            }
        }
    };
    say(&line);
    matches!(line, Line::Image(_))
}

fn say(line: &Line) {
    if let Ok(text) = serde_json::to_string(line) {
        // Only the parent process reads this.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

fn work(arguments: &[OsString]) -> Result<Image, OciError> {
    let failed = |error: std::io::Error| OciError::io("worker", &error);
    let [spool, tag @ ..] = arguments else {
        return Err(OciError::new(OciCode::Worker, "worker", "nothing to do"));
    };
    let tag = tag
        .first()
        .map(|tag| String::from_utf8_lossy(tag.as_bytes()));
    let limits = Limits::default();
    let mut options = File::options();
    let spool = options.read(true).write(true).open(spool).map_err(failed)?;
    let owned = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    let archive = owned(std::io::stdin().as_fd()).map_err(failed)?;
    let mut out = owned(std::io::stdout().as_fd()).map_err(failed)?;
    let last = [&spool, &archive, &out].map(|file| file.as_raw_fd() as u64);
    let last = last.into_iter().max().unwrap_or_default();
    let blob = u64::from(archive.metadata().map_err(failed)?.is_dir());
    for (resource, most) in [
        (Resource::Cpu, CPU_SECONDS),
        (Resource::Data, MEMORY),
        (Resource::Core, 0),
        (Resource::Nproc, 0),
        (Resource::Fsize, limits.unpacked + FILE_MARGIN),
        (Resource::Nofile, last + 1 + blob),
    ] {
        lower(resource, most);
    }
    let input = Input {
        archive,
        tag: tag.as_deref(),
        spool: &spool,
    };
    let mut note = |step: Step<'_>| {
        say(&match step {
            Step::Chosen(id, reference) => {
                Line::Chosen(id.to_owned(), reference.map(str::to_owned))
            }
            Step::Note(text) => Line::Note(text.to_owned()),
        });
    };
    read(input, &limits, &mut out, &mut note)
}

/// Lowers a limit of this process; a lower existing limit stays.
fn lower(resource: Resource, most: u64) {
    let now = rustix::process::getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    // Lowering is always allowed.
    let _ = rustix::process::setrlimit(resource, limit);
}
