//! Client of a named sandbox: sends one request and follows the answer.

use super::error::{LOST, NO_SUCH_NAME, NOT_ANSWERING, REFUSED};
use super::input::{Writer, send};
use super::lock::LockState;
use super::name::Name;
use super::runtime_dir::RuntimeDir;
use super::serve::is_same_user;
use super::wire::{Ended, Exec, MAX_DATA, Note, Request, WINDOW, other_version};
use crate::local::{self, Lost, Refusal, parsed};
use a99_frame::{Envelope, Frame};
use a99_sandbox::Frozen;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::io::{self, Read, stdin};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Timeout of a status request.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// How long shutdown of a sandbox may take: it flushes its mounts and replies to its clients.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a process may take to end after SIGTERM, and after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a name's lock is tried while its process ends.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A connection that has sent its request.
#[derive(Debug)]
pub(crate) struct Connection {
    name: Name,
    connection: local::Connection,
    writer: Writer,
}

/// Result of probing a sandbox.
#[derive(Debug)]
pub(crate) enum Probe {
    Running(Json),
    /// Its process runs and does not answer: it starts, stops or hangs.
    Unresponsive(Option<i32>),
    /// Its process was killed; the probe has removed its files.
    Dead,
}

impl Connection {
    /// Connects to a sandbox and sends a request.
    ///
    /// # Errors
    /// [`NO_SUCH_NAME`]; I/O errors.
    pub(crate) fn open(dir: &RuntimeDir, name: &Name, request: &Request) -> Result<Self, Refusal> {
        let stream = match dir.connect(name) {
            Ok(stream) => stream,
            Err(error) => return Err(connect_error(dir, name, &error)),
        };
        if !is_same_user(&stream) {
            return Err(Refusal::new(
                REFUSED,
                format!("the socket of {name} is another user's"),
            ));
        }
        let frame = local::request(request, &[]);
        let frame = frame.map_err(|error| Refusal::new(REFUSED, error.to_string()))?;
        let writer = stream.try_clone()?;
        let mut connection = local::Connection::new(stream);
        let sent = connection.send(&frame);
        sent.map_err(|error| connection_lost(name, &error.to_string()))?;
        Ok(Self {
            name: name.clone(),
            connection,
            writer: Arc::new(Mutex::new(writer)),
        })
    }

    /// The next part of the answer.
    fn next(&mut self) -> Result<Frame, Refusal> {
        self.connection.next().map_err(|lost| match lost {
            Lost::Refused(refusal) => refusal,
            Lost::Late => {
                let text = format!("sandbox {}: no answer", self.name);
                Refusal::new(NOT_ANSWERING, text)
            }
            Lost::OtherVersion => other_version(),
            Lost::Gone(why) => connection_lost(&self.name, &why),
        })
    }

    /// The reply to a request other than a command.
    ///
    /// # Errors
    /// The sandbox's error; [`LOST`] if it ends meanwhile.
    pub(crate) fn reply(mut self) -> Result<Json, Refusal> {
        result(self.next()?)
    }

    /// The reply to [`Request::Freeze`]: the frozen sandbox, and the memory that it was asked
    /// to have.
    ///
    /// # Errors
    /// Those of [`Connection::reply`], and parts that do not fit each other.
    pub(crate) fn frozen(mut self) -> Result<(Frozen, Option<u64>), Refusal> {
        let frame = self.next()?;
        let Envelope::Answer(_) = &frame.envelope else {
            return Err(other_version());
        };
        let files = super::freeze::receive(&self.connection.stream)?;
        let about: Json = frame.body.json().map_err(|_| other_version())?;
        let frozen = Frozen::from_parts(frame.body.bytes(), files)?;
        Ok((frozen, about["ram"].as_u64()))
    }

    /// The reply, if it arrives within the timeout.
    fn reply_within(self, timeout: Duration) -> Result<Json, Refusal> {
        self.connection.stream.set_read_timeout(Some(timeout))?;
        self.reply()
    }

    /// A handle that controls the command while its output is followed.
    ///
    /// # Errors
    /// No descriptors are left.
    pub(crate) fn control(&self) -> Result<CommandControl, Refusal> {
        Ok(CommandControl {
            writer: Arc::clone(&self.writer),
            stream: self.connection.stream.try_clone()?,
        })
    }

    /// Follows the command to its end and returns how it ended. With `input`, standard input goes
    /// to it. `sink` gets its output: whether it is standard error, and bytes.
    ///
    /// # Errors
    /// The sandbox's error; an error of `sink`, which ends the command; [`LOST`] if the sandbox's
    /// process ends meanwhile.
    pub(crate) fn follow(
        mut self,
        input: bool,
        mut sink: impl FnMut(bool, &[u8]) -> io::Result<()>,
    ) -> Result<Ended, Refusal> {
        let (credit, granted) = channel();
        if input {
            pass_input(&self.writer, granted).map_err(|error| Refusal::io("no thread", error))?;
        }
        loop {
            let frame = self.next()?;
            let Envelope::Notice(method) = &frame.envelope else {
                return result(frame);
            };
            let written = match parsed(method, &frame.body) {
                Ok(Note::Stdout) => sink(false, frame.body.bytes()),
                Ok(Note::Stderr) => sink(true, frame.body.bytes()),
                Ok(Note::Credit(bytes)) => {
                    // The thread has ended with its input.
                    let _ = credit.send(bytes);
                    Ok(())
                }
                _ => return Err(other_version()),
            };
            written.map_err(|error| Refusal::io("output", error))?;
        }
    }
}

/// The result in a frame.
fn result<T: DeserializeOwned>(frame: Frame) -> Result<T, Refusal> {
    match frame.envelope {
        Envelope::Answer(_) => frame.body.json().map_err(|_| other_version()),
        _ => Err(other_version()),
    }
}

/// Control of a sandbox's command from another thread.
#[derive(Debug)]
pub(crate) struct CommandControl {
    writer: Writer,
    stream: UnixStream,
}

impl CommandControl {
    /// Reports a new terminal size.
    ///
    /// # Errors
    /// I/O errors of the connection.
    pub(crate) fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        send(&self.writer, Note::Resize(rows, columns), &[])
    }

    /// Sends a signal to the command's process group; 9 kills all processes that it started.
    ///
    /// # Errors
    /// I/O errors of the connection.
    pub(crate) fn signal(&self, number: u32) -> io::Result<()> {
        send(&self.writer, Note::Signal(number), &[])
    }

    /// Closes the connection, which ends the command. It waits neither for the sandbox nor for
    /// other writers.
    pub(crate) fn hang_up(&self) {
        // The connection may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Runs a short command and returns its exit code.
///
/// # Errors
/// The sandbox's error.
pub(crate) fn run(dir: &RuntimeDir, name: &Name, argv: &[&str]) -> Result<u8, Refusal> {
    let exec = Exec {
        argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
        ..Exec::default()
    };
    let request = Request::Exec(Box::new(exec));
    let ended = Connection::open(dir, name, &request)?.follow(false, |_, _| Ok(()))?;
    Ok(ended.code)
}

fn connection_lost(name: &Name, why: &str) -> Refusal {
    let text = format!("the process of sandbox {name} is gone: {why}");
    Refusal::new(LOST, text)
}

/// The error for a failed connection. Files of a dead sandbox are removed.
fn connect_error(dir: &RuntimeDir, name: &Name, error: &io::Error) -> Refusal {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    if !matches!(error.kind(), NotFound | ConnectionRefused) {
        return Refusal::io(format!("sandbox {name}"), error);
    }
    match dir.lock(name, false) {
        Err(error) => return error,
        Ok(LockState::Held) => {
            let text = format!("sandbox {name} does not answer: it is starting or stopping");
            return Refusal::new(NOT_ANSWERING, text);
        }
        Ok(LockState::Taken(lock)) => dir.clear(name, lock),
        Ok(LockState::Absent) => {}
    }
    let log = match dir.log_text(name) {
        Some(text) => format!("\nthe last one of that name said:\n{text}"),
        None => String::new(),
    };
    let text = format!(
        "there is no sandbox named {name}; `a99 sandbox start {name}` starts one, \
         `a99 sandbox ls` lists those that run{log}"
    );
    Refusal::new(NO_SUCH_NAME, text)
}

/// Probes a sandbox. Files of a dead one are removed.
///
/// # Errors
/// I/O errors.
pub(crate) fn probe(dir: &RuntimeDir, name: &Name) -> Result<Option<Probe>, Refusal> {
    let status = Connection::open(dir, name, &Request::Status);
    match status.and_then(|asked| asked.reply_within(STATUS_TIMEOUT)) {
        Ok(status) => return Ok(Some(Probe::Running(status))),
        // `open` has removed the files of the dead one.
        Err(error) if error.code == NO_SUCH_NAME => return Ok(Some(Probe::Dead)),
        Err(_) => {}
    }
    Ok(match dir.lock(name, false)? {
        LockState::Held => {
            let holder = dir.holder(name);
            Some(Probe::Unresponsive(
                holder.map(|holder| holder.pid().as_raw_pid()),
            ))
        }
        LockState::Taken(lock) => {
            dir.clear(name, lock);
            Some(Probe::Dead)
        }
        LockState::Absent => None,
    })
}

/// Ends a sandbox and waits until its name is free. One that does not answer is killed.
///
/// # Errors
/// [`NO_SUCH_NAME`]; [`NOT_ANSWERING`] for a process that cannot be killed.
pub(crate) fn stop(dir: &RuntimeDir, name: &Name) -> Result<(), Refusal> {
    let asked = Connection::open(dir, name, &Request::Stop);
    match asked.and_then(|asked| asked.reply_within(STOP_TIMEOUT)) {
        Err(error) if error.code == NO_SUCH_NAME => return Err(error),
        // Answered or not, only a free name proves that it has ended.
        Ok(_) if until_free(dir, name, KILL_TIMEOUT)? => return Ok(()),
        _ => {}
    }
    use rustix::process::Signal;
    for signal in [Signal::TERM, Signal::KILL] {
        if until_free(dir, name, Duration::ZERO)? {
            return Ok(());
        }
        if let Some(holder) = dir.holder(name) {
            holder.signal(signal);
        }
        if until_free(dir, name, KILL_TIMEOUT)? {
            return Ok(());
        }
    }
    let text = format!("sandbox {name} does not end");
    Err(Refusal::new(NOT_ANSWERING, text))
}

/// Waits until a name is free, and removes the sandbox's remaining files.
fn until_free(dir: &RuntimeDir, name: &Name, timeout: Duration) -> Result<bool, Refusal> {
    let deadline = Instant::now() + timeout;
    loop {
        match dir.lock(name, false)? {
            LockState::Absent => return Ok(true),
            LockState::Taken(lock) => {
                dir.clear(name, lock);
                return Ok(true);
            }
            LockState::Held if Instant::now() >= deadline => return Ok(false),
            LockState::Held => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Forwards standard input on a thread. The thread may block in a read after the command has ended,
/// and does not keep this process running.
fn pass_input(writer: &Writer, granted: Receiver<usize>) -> io::Result<()> {
    let writer = Arc::clone(writer);
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    let spawned = thread.spawn(move || {
        let (mut buffer, mut credit) = (vec![0; MAX_DATA], WINDOW);
        let mut input = stdin().lock();
        loop {
            let mut rest = match input.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A read error counts as the end of input, as for other programs.
                Ok(0) | Err(_) => break,
                Ok(count) => &buffer[..count],
            };
            while !rest.is_empty() {
                credit += granted.try_iter().sum::<usize>();
                if credit == 0 {
                    let Ok(more) = granted.recv() else { return };
                    credit += more;
                }
                let (now, later) = rest.split_at(rest.len().min(credit));
                credit -= now.len();
                if send(&writer, Note::Stdin, now).is_err() {
                    return;
                }
                rest = later;
            }
        }
        // The command may have ended meanwhile.
        let _ = send(&writer, Note::StdinEnd, &[]);
    });
    spawned.map(drop)
}
