//! Waits for a command of the guest and gathers what it writes, within limits,
//! until it ends or is given up.

use super::task::Cancel;
use a99_guest_agent::protocol::{Stream, WINDOW_BYTES};
use a99_sandbox::vm::{Command, Event, Output, VmCode, VmError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long a killed command may take to end.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How often a command is told to end: a script that waits for its turn does
/// not hear of it before it runs.
const KILL_EVERY: Duration = Duration::from_millis(100);

/// What happens to a command.
pub(super) enum Note {
    /// The guest tells of it.
    Event(Event),
    /// Nobody waits for it any more.
    Cancelled,
}

/// Within which limits a command runs.
pub(super) struct Limits {
    pub timeout: Option<Duration>,
    /// Bytes of both outputs together.
    pub output: usize,
}

/// Runs a command to its end. `open` starts it with a place for its events.
pub(super) fn collect(
    open: impl FnOnce(Sender<Note>) -> Result<Command, VmError>,
    stdin: Option<&[u8]>,
    limits: &Limits,
    cancel: &Cancel,
) -> Result<Output, VmError> {
    let (sender, notes) = channel();
    cancel.notify(sender.clone(), || Note::Cancelled);
    let command = open(sender)?;
    let mut collector = Collector {
        command,
        stdin,
        credit: WINDOW_BYTES as usize,
        limits,
        output: Output::default(),
        failure: None,
        until: limits.timeout.map(|timeout| Instant::now() + timeout),
    };
    collector.feed()?;
    collector.finish(&notes)
}

struct Collector<'a> {
    command: Command,
    /// What is left of standard input; `None` when its end was told.
    stdin: Option<&'a [u8]>,
    /// Bytes of it that the guest takes now.
    credit: usize,
    limits: &'a Limits,
    output: Output,
    /// Why it was given up.
    failure: Option<VmError>,
    /// When it is given up; once it was, when it must have ended.
    until: Option<Instant>,
}

impl Collector<'_> {
    fn finish(mut self, notes: &Receiver<Note>) -> Result<Output, VmError> {
        loop {
            match self.next(notes) {
                Ok(Note::Event(Event::Exited(exited))) => {
                    self.output.exited = exited;
                    return match self.failure {
                        Some(failure) => Err(failure),
                        None => Ok(self.output),
                    };
                }
                Ok(Note::Event(Event::Failed(error))) => return Err(error),
                Ok(Note::Event(Event::Output(stream, bytes))) => self.gather(stream, &bytes)?,
                Ok(Note::Event(Event::Credit(bytes))) => {
                    self.credit += bytes as usize;
                    self.feed()?;
                }
                Ok(Note::Event(Event::Started(_))) => {}
                Ok(Note::Cancelled) => {
                    self.give_up(VmError::new(VmCode::Stopped, "the command was cancelled"))?;
                }
                Err(RecvTimeoutError::Timeout) => self.wake()?,
                Err(RecvTimeoutError::Disconnected) => {
                    let text = "the guest's thread is gone";
                    return Err(VmError::new(VmCode::GuestEnded, text));
                }
            }
        }
    }

    /// Waits for what happens next, at most until something must be done.
    fn next(&self, notes: &Receiver<Note>) -> Result<Note, RecvTimeoutError> {
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        let patience = match self.failure.is_some() {
            true => Some(left.unwrap_or(KILL_EVERY).min(KILL_EVERY)),
            false => left,
        };
        match patience {
            Some(patience) => notes.recv_timeout(patience),
            None => notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// A time is over: the command's, or that between two attempts to end it.
    fn wake(&mut self) -> Result<(), VmError> {
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        match self.failure.take() {
            Some(failure) if late => Err(failure),
            Some(failure) => {
                self.failure = Some(failure);
                self.command.kill()
            }
            None if late => {
                let text = "the command ran too long";
                self.give_up(VmError::new(VmCode::TimedOut, text))
            }
            None => Ok(()),
        }
    }

    fn give_up(&mut self, failure: VmError) -> Result<(), VmError> {
        self.failure.get_or_insert(failure);
        self.until = Some(Instant::now() + KILL_PATIENCE);
        self.command.kill()
    }

    fn gather(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), VmError> {
        // What is thrown away makes room for more as well: the end comes after.
        self.command.consumed(stream, bytes.len() as u32)?;
        if self.failure.is_some() {
            return Ok(());
        }
        let Output { stdout, stderr, .. } = &mut self.output;
        if stdout.len() + stderr.len() + bytes.len() > self.limits.output {
            let text = "the command wrote too much";
            return self.give_up(VmError::new(VmCode::OutputLimit, text));
        }
        match stream {
            Stream::Stderr => stderr.extend(bytes),
            _ => stdout.extend(bytes),
        }
        Ok(())
    }

    /// Gives as much of standard input as the guest takes.
    fn feed(&mut self) -> Result<(), VmError> {
        let Some(rest) = self.stdin else {
            return Ok(());
        };
        let (now, later) = rest.split_at(rest.len().min(self.credit));
        self.command.input(now)?;
        self.credit -= now.len();
        self.stdin = Some(later);
        if later.is_empty() {
            self.stdin = None;
            self.command.end_input()?;
        }
        Ok(())
    }
}
