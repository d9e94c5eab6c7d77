//! A guest as callers see it.

use super::error::{VmCode, VmError};
use super::guest::{Guest, Setup};
use super::image::Image;
use super::mailbox::{Event, Mailbox, Message, Open};
use super::thread::{Bounds, fail, run};
use super::translator::Translate;
use a99_guest_agent::protocol::{
    Ending, Exec, Exited, PtySize, Request, Resume, Script, Stream, WINDOW_BYTES,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Stack of a guest's thread: the emulator's and some for the host's side.
const THREAD_STACK: usize = 2 << 20;

/// How long a killed command may take to end.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How often input is offered again while the guest is behind.
const CONGESTION_NAP: Duration = Duration::from_millis(2);

/// The next id of a command; 0 is none's.
pub(super) fn next_id(last: &AtomicU32) -> u32 {
    loop {
        let id = last.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if id != 0 {
            return id;
        }
    }
}

/// Starts the thread of a guest, which makes it there. `image` is loaded on that
/// thread too.
///
/// # Errors
/// [`VmCode::Resources`]: no thread. Everything else is told by the mailbox.
pub(crate) fn launch(
    mailbox: &Arc<Mailbox>,
    image: impl FnOnce() -> Result<Image, VmError> + Send + 'static,
    setup: impl FnOnce(&Image) -> Result<Setup, VmError> + Send + 'static,
    bounds: Bounds,
) -> Result<JoinHandle<()>, VmError> {
    let mailbox = Arc::clone(mailbox);
    let live = move || {
        let made = image().and_then(|image| {
            let setup = setup(&image)?;
            Ok((Guest::resume(image.module(), setup)?, image))
        });
        match made {
            Ok((guest, image)) => run(guest, mailbox, image.base(), bounds),
            Err(error) => fail(&mailbox, &error),
        }
    };
    spawn(live)
}

/// Starts the thread of a guest.
///
/// # Errors
/// [`VmCode::Resources`]: no thread.
pub(crate) fn spawn(live: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, VmError> {
    std::thread::Builder::new()
        .name("a99-guest".to_owned())
        .stack_size(THREAD_STACK)
        .spawn(live)
        .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")))
}

/// How a guest starts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its name.
    pub hostname: Option<String>,
    /// When hot code of it is compiled, beside it, by threads of low priority.
    pub translate: Translate,
}

/// What to run, and with what limits.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The bytes of standard input.
    pub stdin: Vec<u8>,
    /// Longest time; then the command is killed and the answer is
    /// [`VmCode::TimedOut`].
    pub timeout: Option<Duration>,
    /// Most bytes of output, both streams together; then the command is killed
    /// and the answer is [`VmCode::OutputLimit`].
    pub output_limit: Option<usize>,
}

/// What a command did: exact bytes, nothing trimmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub exited: Exited,
}

impl Output {
    /// The exit code; for a command that a signal ended 128 and its number, as
    /// shells have it.
    pub fn exit_code(&self) -> i32 {
        self.exited.exit_code().into()
    }

    /// The signal that ended it, if one did.
    pub fn signal(&self) -> Option<u8> {
        match self.exited.ending {
            Ending::Signal(number) => Some(number),
            Ending::Code(_) => None,
        }
    }

    /// Whether the session shell ended with the script: the next one has the
    /// last working directory and exported variables, and no other state.
    pub fn session_reset(&self) -> bool {
        self.exited.session_reset
    }

    /// Whether a process of it was ended for want of memory.
    pub fn out_of_memory(&self) -> bool {
        self.exited.out_of_memory
    }

    /// Standard output as text; what is no UTF-8 is replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text; what is no UTF-8 is replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// A running guest. Dropping it stops it.
pub struct Sandbox {
    mailbox: Arc<Mailbox>,
    last_id: AtomicU32,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Starts a guest from an image. Commands can be given at once.
    ///
    /// # Errors
    /// [`VmError`] if the system has no room for it.
    pub fn start(image: &Image, options: &Options) -> Result<Self, VmError> {
        let mailbox = Arc::new(Mailbox::default());
        let hostname = options.hostname.as_ref();
        let setup = Setup {
            resume: Resume {
                hostname: hostname.map(|name| name.as_bytes().to_vec()),
                ..Resume::default()
            },
            translate: options.translate,
            ..Setup::default()
        };
        let image = image.clone();
        let thread = launch(&mailbox, || Ok(image), |_| Ok(setup), Bounds::default())?;
        Ok(Self {
            mailbox,
            last_id: AtomicU32::new(0),
            thread: Some(thread),
        })
    }

    /// Runs a script in the session shell, whose state stays. Scripts run one
    /// after the other.
    ///
    /// # Errors
    /// [`VmError`].
    pub fn script(&self, text: impl AsRef<[u8]>, run: &Run) -> Result<Output, VmError> {
        let text = text.as_ref().to_vec();
        self.collect(Request::Script(Script { text }), run)
    }

    /// Runs a program as a fresh process and waits for its end.
    ///
    /// # Errors
    /// [`VmError`].
    pub fn command(&self, exec: Exec, run: &Run) -> Result<Output, VmError> {
        let stdin = exec.stdin || !run.stdin.is_empty();
        self.collect(Request::Exec(Exec { stdin, ..exec }), run)
    }

    /// Starts a command whose events go to `sink`, which is called on the
    /// guest's thread and must not wait. Output is held back until
    /// [`Command::consumed`] says that there is room for more.
    ///
    /// # Errors
    /// Why the guest runs no more.
    pub fn open(
        &self,
        exec: Exec,
        sink: impl FnMut(Event) + Send + 'static,
    ) -> Result<Command, VmError> {
        self.begin(Request::Exec(exec), false, sink)
    }

    fn begin(
        &self,
        request: Request,
        eager: bool,
        sink: impl FnMut(Event) + Send + 'static,
    ) -> Result<Command, VmError> {
        let id = next_id(&self.last_id);
        let sink = Box::new(sink);
        self.mailbox.post(Message::Open(Open {
            id,
            request,
            sink,
            eager,
            timeout: None,
            deadline: None,
            output_limit: None,
        }))?;
        Ok(Command {
            mailbox: Arc::clone(&self.mailbox),
            id,
        })
    }

    fn collect(&self, request: Request, run: &Run) -> Result<Output, VmError> {
        let has_input = matches!(&request, Request::Exec(exec) if exec.stdin);
        let (sender, events) = channel();
        let command = self.begin(request, true, move |event| {
            // Nobody listens any more after the last event that matters.
            let _ = sender.send(event);
        })?;
        let mut collector = Collector {
            command,
            events,
            stdin: &run.stdin,
            input_open: has_input,
            credit: WINDOW_BYTES as usize,
            run,
            output: Output::default(),
            failure: None,
            deadline: run.timeout.map(|timeout| Instant::now() + timeout),
        };
        collector.feed()?;
        collector.finish()
    }

    /// Instructions that the guest has run, boot included.
    pub fn instructions(&self) -> u64 {
        self.mailbox.retired()
    }

    /// Stops the guest as it stands. What runs ends with [`VmCode::Stopped`],
    /// and so does what is asked of it afterwards.
    pub fn halt(&self) {
        // One that has ended already needs no telling.
        let _ = self.mailbox.post(Message::Stop);
    }

    /// Stops the guest and waits until all of it is gone.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.halt();
        if let Some(thread) = self.thread.take() {
            // It ends by itself; a panic of it was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// A command that was opened. Dropping it changes nothing.
pub struct Command {
    mailbox: Arc<Mailbox>,
    id: u32,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Command {
    fn send(&self, request: Request) -> Result<(), VmError> {
        self.mailbox.post(Message::Send(self.id, request))
    }

    /// Bytes for standard input: at most [`WINDOW_BYTES`] and what
    /// [`Event::Credit`] added, less what was given before.
    ///
    /// # Errors
    /// Why the guest runs no more.
    pub fn input(&self, bytes: &[u8]) -> Result<(), VmError> {
        for chunk in bytes.chunks(a99_guest_agent::protocol::MAX_CHUNK) {
            self.send(Request::Stdin(chunk.to_vec()))?;
        }
        Ok(())
    }

    /// No more standard input.
    ///
    /// # Errors
    /// Why the guest runs no more.
    pub fn end_input(&self) -> Result<(), VmError> {
        self.send(Request::StdinEnd)
    }

    /// So many bytes of [`Event::Output`] were consumed: more may come.
    ///
    /// # Errors
    /// Why the guest runs no more.
    pub fn consumed(&self, stream: Stream, bytes: u32) -> Result<(), VmError> {
        self.send(Request::Credit(stream, bytes))
    }

    /// Its terminal has another size.
    ///
    /// # Errors
    /// Why the guest runs no more.
    pub fn resize(&self, size: PtySize) -> Result<(), VmError> {
        self.send(Request::Resize(size))
    }

    /// Sends a signal to its process group.
    ///
    /// # Errors
    /// Why the guest runs no more.
    pub fn signal(&self, number: u32) -> Result<(), VmError> {
        self.send(Request::Signal(number))
    }

    /// Ends it and all that it started.
    ///
    /// # Errors
    /// Why the guest runs no more.
    pub fn kill(&self) -> Result<(), VmError> {
        self.send(Request::Kill)
    }
}

/// Waits for a command and gathers what it tells.
struct Collector<'a> {
    command: Command,
    events: Receiver<Event>,
    /// What is left of standard input.
    stdin: &'a [u8],
    /// Its end was not told yet.
    input_open: bool,
    /// Bytes of it that the guest takes now.
    credit: usize,
    run: &'a Run,
    output: Output,
    /// Why it was killed.
    failure: Option<VmError>,
    deadline: Option<Instant>,
}

impl Collector<'_> {
    fn finish(mut self) -> Result<Output, VmError> {
        loop {
            let event = match self.deadline {
                Some(deadline) => {
                    let patience = deadline.saturating_duration_since(Instant::now());
                    self.events.recv_timeout(patience)
                }
                None => self
                    .events
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(Event::Started(_)) => {}
                Ok(Event::Output(stream, bytes)) => self.gather(stream, &bytes)?,
                Ok(Event::Credit(bytes)) => {
                    self.credit += bytes as usize;
                    self.feed()?;
                }
                Ok(Event::Exited(exited)) => {
                    self.output.exited = exited;
                    return match self.failure {
                        Some(failure) => Err(failure),
                        None => Ok(self.output),
                    };
                }
                Ok(Event::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => self.time_out()?,
                Err(RecvTimeoutError::Disconnected) => {
                    let text = "the guest's thread is gone";
                    return Err(VmError::new(VmCode::GuestEnded, text));
                }
            }
        }
    }

    fn gather(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), VmError> {
        if self.failure.is_some() {
            return Ok(());
        }
        let all = if stream == Stream::Stderr {
            &mut self.output.stderr
        } else {
            &mut self.output.stdout
        };
        all.extend(bytes);
        let total = self.output.stdout.len() + self.output.stderr.len();
        match self.run.output_limit {
            Some(limit) if total > limit => {
                let text = format!("the command wrote more than {limit} bytes");
                self.give_up(VmError::new(VmCode::OutputLimit, text))
            }
            _ => Ok(()),
        }
    }

    fn time_out(&mut self) -> Result<(), VmError> {
        if let Some(failure) = self.failure.take() {
            // Killed, and still there: the guest does not listen.
            return Err(failure);
        }
        let limit = self.run.timeout.unwrap_or_default();
        let text = format!("the command ran longer than {limit:?}");
        self.give_up(VmError::new(VmCode::TimedOut, text))
    }

    fn give_up(&mut self, failure: VmError) -> Result<(), VmError> {
        self.failure = Some(failure);
        self.deadline = Some(Instant::now() + KILL_PATIENCE);
        self.command.kill()
    }

    /// Gives as much of standard input as the guest takes.
    fn feed(&mut self) -> Result<(), VmError> {
        if !self.input_open {
            return Ok(());
        }
        while self.command.mailbox.is_congested() {
            std::thread::sleep(CONGESTION_NAP);
        }
        let (now, later) = self.stdin.split_at(self.stdin.len().min(self.credit));
        self.command.input(now)?;
        self.credit -= now.len();
        self.stdin = later;
        if later.is_empty() {
            self.input_open = false;
            self.command.end_input()?;
        }
        Ok(())
    }
}
