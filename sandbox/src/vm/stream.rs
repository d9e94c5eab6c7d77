//! A command whose streams are passed on as they come, as a terminal user or a
//! pipeline wants it.

use super::error::{VmCode, VmError};
use super::mailbox::Event;
use super::sandbox::{Command, Sandbox};
use a99_guest_agent::protocol::{Exec, Exited, MAX_CHUNK, Stream, WINDOW_BYTES};
use std::io::{self, Read, Write};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How many bytes of standard input the guest takes now; none once the command
/// has ended.
#[derive(Debug)]
struct Allowance {
    bytes: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Allowance {
    fn new(bytes: usize) -> Self {
        Self {
            bytes: Mutex::new(Some(bytes)),
            changed: Condvar::new(),
        }
    }

    /// Changes it; a thread that panicked while it did left a number.
    fn change(&self, change: impl FnOnce(&mut Option<usize>)) {
        change(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until some bytes are allowed; how many. None at the end.
    fn wait(&self) -> Option<usize> {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let none = |bytes: &mut Option<usize>| *bytes == Some(0);
        let bytes = self.changed.wait_while(bytes, none);
        *bytes.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sandbox {
    /// Runs a program as a fresh process and passes its streams on. What the
    /// writers take slowly is held back in the guest. `stdin` is read by a
    /// thread of its own, which may wait in a read after the command's end.
    ///
    /// # Errors
    /// [`VmError`]; a writer that fails ends the command with [`VmCode::Io`].
    pub fn stream(
        &self,
        exec: Exec,
        stdin: Option<impl Read + Send + 'static>,
        stdout: &mut dyn Write,
        stderr: &mut dyn Write,
    ) -> Result<Exited, VmError> {
        let (sender, events) = channel();
        let stdin_open = stdin.is_some();
        let exec = Exec {
            stdin: stdin_open,
            ..exec
        };
        let command = Arc::new(self.open(exec, move |event| {
            // Nobody listens after a writer has failed.
            let _ = sender.send(event);
        })?);
        let allowance = Arc::new(Allowance::new(WINDOW_BYTES as usize));
        if let Some(stdin) = stdin {
            let (command, allowance) = (Arc::clone(&command), Arc::clone(&allowance));
            std::thread::spawn(move || pass_input(stdin, &command, &allowance));
        }
        let end = loop {
            match events.recv() {
                Ok(Event::Started(_)) => {}
                Ok(Event::Output(stream, bytes)) => {
                    let writer: &mut dyn Write = match stream {
                        Stream::Stderr => stderr,
                        _ => stdout,
                    };
                    if let Err(error) = writer.write_all(&bytes).and_then(|()| writer.flush()) {
                        command.kill()?;
                        break Err(VmError::new(VmCode::Io, format!("output: {error}")));
                    }
                    command.consumed(stream, bytes.len() as u32)?;
                }
                Ok(Event::Credit(more)) => allowance.change(|bytes| {
                    *bytes = bytes.map(|bytes| bytes + more as usize);
                }),
                Ok(Event::Exited(exited)) => break Ok(exited),
                Ok(Event::Failed(error)) => break Err(error),
                Err(_) => {
                    let text = "the guest's thread is gone";
                    break Err(VmError::new(VmCode::GuestEnded, text));
                }
            }
        };
        allowance.change(|bytes| *bytes = None);
        end
    }
}

/// Passes standard input on, until its end or the command's.
fn pass_input(mut stdin: impl Read, command: &Command, allowance: &Allowance) {
    let mut buffer = [0; MAX_CHUNK];
    while let Some(allowed) = allowance.wait() {
        let room = allowed.min(buffer.len());
        let count = match stdin.read(&mut buffer[..room]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // As for other programs: the end.
            Err(_) => 0,
        };
        let sent = match count {
            0 => command.end_input(),
            _ => command.input(&buffer[..count]),
        };
        allowance.change(|bytes| *bytes = bytes.map(|bytes| bytes - count));
        if count == 0 || sent.is_err() {
            return;
        }
    }
}
