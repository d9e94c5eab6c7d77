//! Process handle: a running command and its streams.

use super::cancel::{Cancel, Watching};
use a99_sandbox_protocol::{Exec, Exited, PtySize, Request, Stream, WINDOW_BYTES};
use a99_sandbox_runner::{
    CREDIT_BYTES, CommandHandle, Event, GuestHandle, SpawnOptions, VmError, Watch,
};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A piece of a command's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Stream of the bytes. A terminal has [`Stream::Stdout`] only.
    pub stream: Stream,
    /// Exact bytes, split at arbitrary places.
    pub bytes: Vec<u8>,
}

/// State shared by the guest's thread and the handles.
#[derive(Debug)]
struct ProcessState {
    pid: Option<u32>,
    chunks: VecDeque<Chunk>,
    /// Bytes of standard input that the guest accepts now.
    credit: usize,
    /// Bytes of standard output and error that were read but not acknowledged.
    unacked: [u32; 2],
    end: Option<Result<Exited, VmError>>,
}

/// A running command.
///
/// Output that is not read with [`Process::next`] blocks the command; it is never dropped
/// and never accumulates on the host. Dropping the process kills the command and all
/// processes it started, unless [`Process::leave`] was called.
///
/// All methods take `&self`: put it into an [`Arc`] to read and write from different tasks.
pub struct Process {
    handle: CommandHandle,
    state: Arc<Watch<ProcessState>>,
    /// Keeps the guest alive.
    _guest: Arc<GuestHandle>,
    _watching: Option<Watching>,
    kill_on_drop: bool,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

impl Process {
    pub(super) fn start(
        guest: &Arc<GuestHandle>,
        exec: Exec,
        spawn_options: SpawnOptions,
        cancel: Option<&Cancel>,
    ) -> Result<Self, VmError> {
        let state = Arc::new(Watch::new(ProcessState {
            pid: None,
            chunks: VecDeque::new(),
            credit: WINDOW_BYTES as usize,
            unacked: [0; 2],
            end: None,
        }));
        let theirs = Arc::clone(&state);
        let handle = guest.spawn(Request::Exec(exec), spawn_options, |_| {
            Box::new(move |event| theirs.change(|state| state.on_event(event)))
        })?;
        Ok(Self {
            _watching: cancel.map(|cancel| cancel.watch(&handle)),
            handle,
            state,
            _guest: Arc::clone(guest),
            kill_on_drop: true,
        })
    }

    /// Waits for the next piece of output; `None` after the last.
    ///
    /// # Errors
    /// Why the command did not end by itself, after all its output.
    pub async fn next(&self) -> Result<Option<Chunk>, VmError> {
        let next = |state: &mut ProcessState| match (state.chunks.pop_front(), &state.end) {
            (Some(chunk), _) => {
                let credit = state.read(&chunk);
                Some(Ok(Some((chunk, credit))))
            }
            (None, Some(Ok(_))) => Some(Ok(None)),
            (None, Some(Err(error))) => Some(Err(error.clone())),
            (None, None) => None,
        };
        let Some((chunk, credit)) = self.state.until(next).await? else {
            return Ok(None);
        };
        if let Some(bytes) = credit {
            // The end of the guest arrives as the command's end.
            let _ = self.handle.send(Request::Credit(chunk.stream, bytes));
        }
        Ok(Some(chunk))
    }

    /// Writes all of `bytes` to standard input, waiting for credit; `false` if the command
    /// has ended before.
    ///
    /// A command that closed its standard input accepts and discards everything. Needs
    /// [`Command::piped`] or a terminal; otherwise the bytes are discarded.
    ///
    /// [`Command::piped`]: super::Command::piped
    ///
    /// # Errors
    /// Why the guest no longer runs.
    pub async fn write(&self, mut bytes: &[u8]) -> Result<bool, VmError> {
        while !bytes.is_empty() {
            let wanted = bytes.len();
            let allowed = |state: &mut ProcessState| {
                if state.end.is_some() {
                    return Some(0);
                }
                let allowed = state.credit.min(wanted);
                state.credit -= allowed;
                (allowed > 0).then_some(allowed)
            };
            let allowed = self.state.until(allowed).await;
            if allowed == 0 {
                return Ok(false);
            }
            let (now, later) = bytes.split_at(allowed);
            self.handle.input(now)?;
            bytes = later;
        }
        Ok(true)
    }

    /// Closes standard input; on a terminal this is the key Ctrl-D.
    ///
    /// # Errors
    /// Why the guest no longer runs.
    pub fn close_input(&self) -> Result<(), VmError> {
        self.handle.send(Request::StdinEnd)
    }

    /// Resizes the terminal.
    ///
    /// # Errors
    /// Why the guest no longer runs.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<(), VmError> {
        let size = PtySize {
            rows,
            cols: columns,
        };
        self.handle.send(Request::Resize(size))
    }

    /// Sends a signal to the command's process group.
    ///
    /// # Errors
    /// Why the guest no longer runs.
    pub fn signal(&self, number: u32) -> Result<(), VmError> {
        self.handle.send(Request::Signal(number))
    }

    /// Kills the command and all processes it started, background processes included.
    ///
    /// The command then ends by signal 9, once its output was read. Dropping the handle
    /// instead needs no reading.
    ///
    /// # Errors
    /// Why the guest no longer runs.
    pub fn kill(&self) -> Result<(), VmError> {
        self.handle.send(Request::Kill)
    }

    /// Waits for the process id in the guest; `None` if the command never ran.
    pub async fn pid(&self) -> Option<u32> {
        let started = |state: &mut ProcessState| match (state.pid, &state.end) {
            (Some(pid), _) => Some(Some(pid)),
            (None, Some(_)) => Some(None),
            (None, None) => None,
        };
        self.state.until(started).await
    }

    /// Waits for the command's end.
    ///
    /// Output must be read elsewhere meanwhile: unread output blocks the command.
    ///
    /// # Errors
    /// Why the command did not end by itself.
    pub async fn wait(&self) -> Result<Exited, VmError> {
        self.state
            .until(|state: &mut ProcessState| state.end.clone())
            .await
    }

    /// Detaches from the command, which runs on without a reader.
    ///
    /// It ends with the guest; unread output may block it for ever.
    pub fn leave(mut self) {
        self.kill_on_drop = false;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let ended = self.state.read(|state| state.end.is_some());
        if self.kill_on_drop && !ended {
            self.handle.cancel();
        }
    }
}

impl ProcessState {
    /// Accounts for a chunk that was read; returns the credit to grant, if it is due.
    fn read(&mut self, chunk: &Chunk) -> Option<u32> {
        let unacked = &mut self.unacked[usize::from(chunk.stream == Stream::Stderr)];
        *unacked += chunk.bytes.len() as u32;
        (*unacked >= CREDIT_BYTES).then(|| std::mem::take(unacked))
    }

    /// Applies an event of the guest's thread.
    fn on_event(&mut self, event: Event) {
        match event {
            Event::Started(pid) => self.pid = Some(pid),
            Event::Output(stream, bytes) => self.chunks.push_back(Chunk { stream, bytes }),
            Event::Credit(bytes) => self.credit += bytes as usize,
            Event::Exited(exited) => self.end = Some(Ok(exited)),
            Event::Failed(error) => self.end = Some(Err(error)),
        }
    }
}
