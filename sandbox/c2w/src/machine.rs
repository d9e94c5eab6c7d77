//! Machine that runs an image: its thread, and the API for callers.

use super::console::{Console, OnOutput};
use super::image::{Image, WASM_STACK};
use super::options::{Options, Run};
use super::session::{Output, Session, Terminal};
use super::wasi::Host;
use a99_sandbox_runner::{VmCode, VmError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wasmtime::{Engine, InstancePre, Store, Trap, UpdateDeadline};

/// Stack of the thread in bytes: the program's, plus some for the host's side.
const THREAD_STACK: usize = WASM_STACK + (2 << 20);

/// Interval at which a stopping program is interrupted: one that is interrupted while it
/// checks for a stop may miss the interrupt.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Bytes of the emulator's last messages in an error.
const LAST_WORDS: usize = 400;

/// A running image; dropping it stops it.
pub struct Machine {
    console: Arc<Console>,
    engine: Engine,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The shell of a machine that was started for commands.
    session: OnceLock<Mutex<Session<Arc<Console>>>>,
    interactive: bool,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine")
            .field("interactive", &self.interactive)
            .finish_non_exhaustive()
    }
}

impl Terminal for Arc<Console> {
    fn type_in(&self, bytes: &[u8], until: Option<Instant>) -> Result<(), VmError> {
        Console::type_in(self, bytes, until)
    }

    fn output(&self, until: Option<Instant>) -> Result<Vec<u8>, VmError> {
        Console::output(self, until)
    }
}

impl Machine {
    /// Starts an image and waits for its shell.
    ///
    /// The image's command must be a shell, which is the default of most images.
    ///
    /// # Errors
    /// [`VmCode::BadOption`] and [`VmCode::InfoTooLong`] for options that the image cannot
    /// take, [`VmCode::MemoryLimit`] if it needs more, [`VmCode::NotReady`] if no shell
    /// answers in time, [`VmCode::GuestEnded`] if the image ends before, and those of
    /// [`VmError`] for mounts.
    pub fn start(image: &Image, options: Options) -> Result<Self, VmError> {
        let timeout = options.start_timeout;
        let machine = Self::boot_for_commands(image, options)?;
        machine.begin_session(timeout)?;
        Ok(machine)
    }

    /// Starts an image that will have a session; [`begin_session`](Self::begin_session)
    /// waits for it.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), except for the shell.
    pub fn boot_for_commands(image: &Image, mut options: Options) -> Result<Self, VmError> {
        if !options.env.iter().any(|(name, _)| name == "TERM") {
            // This keeps shells with a line editor from writing escapes.
            let term = ("TERM".to_owned(), "dumb".to_owned());
            options.env.push(term);
        }
        Self::boot(image, options, None)
    }

    /// Waits for the shell, at most `timeout`; called once.
    ///
    /// # Errors
    /// [`VmCode::NotReady`] and [`VmCode::GuestEnded`].
    pub fn begin_session(&self, timeout: Duration) -> Result<(), VmError> {
        let session = Session::begin(Arc::clone(&self.console), timeout)?;
        self.session.get_or_init(|| Mutex::new(session));
        Ok(())
    }

    /// Starts an image whose console belongs to the caller.
    ///
    /// `on_output` receives all output as it comes, on the machine's thread, which waits
    /// for it: it must return soon and not stop the machine itself.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), except for the shell; an image that ends at once is
    /// one that [`ended`](Self::ended).
    pub fn interactive(
        image: &Image,
        mut options: Options,
        on_output: OnOutput,
    ) -> Result<Self, VmError> {
        if !options.env.iter().any(|(name, _)| name == "TERM") {
            let term = ("TERM".to_owned(), "xterm-256color".to_owned());
            options.env.push(term);
        }
        Self::boot(image, options, Some(on_output))
    }

    fn boot(image: &Image, options: Options, on_output: Option<OnOutput>) -> Result<Self, VmError> {
        let (wanted, limit) = (image.initial_memory(), options.memory_limit);
        if wanted > limit {
            let text =
                format!("the image starts with {wanted} bytes of memory; allowed are {limit}");
            return Err(VmError::new(VmCode::MemoryLimit, text));
        }
        let interactive = on_output.is_some();
        let console = Arc::new(Console::new(on_output));
        let waker = Arc::clone(&console);
        let setup = options.set_up(Arc::new(move || waker.frames_arrived()))?;
        let host = Host::new(setup, Arc::clone(&console)).map_err(|errno| {
            VmError::new(
                VmCode::Resources,
                format!("no descriptors for mounts: {errno:?}"),
            )
        })?;
        let (pre, theirs) = (image.pre().clone(), Arc::clone(&console));
        let thread = std::thread::Builder::new()
            .name("a99-c2w".to_owned())
            .stack_size(THREAD_STACK)
            .spawn(move || run(&pre, host, theirs))
            .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")))?;
        Ok(Self {
            console,
            engine: image.engine().clone(),
            thread: Mutex::new(Some(thread)),
            session: OnceLock::new(),
            interactive,
        })
    }

    /// Locks the shell. Ignores poisoning: a caller that panicked leaves the session valid.
    fn session(&self) -> Result<MutexGuard<'_, Session<Arc<Console>>>, VmError> {
        match self.session.get() {
            Some(session) => Ok(session.lock().unwrap_or_else(PoisonError::into_inner)),
            None => {
                let text = "an interactive machine's console is the caller's: it takes no \
                            commands; start one without for them";
                Err(VmError::new(VmCode::Unsupported, text))
            }
        }
    }

    /// Runs a script in the session shell, which keeps its folder and variables.
    ///
    /// Calls wait for each other; a call's time limit counts from when its script starts.
    /// The script's standard error arrives on standard output, as the console has one
    /// stream. A shell that the script ends is replaced by one with the same folder and
    /// exported variables.
    ///
    /// # Errors
    /// [`VmCode::TimedOut`] and [`VmCode::OutputLimit`] beyond the limits: it was
    /// interrupted, and the error says so if it ignored that; [`VmCode::NotReady`] while
    /// such a command still runs; [`VmCode::Unsupported`] for a long script in an image
    /// that has no place for a file; [`VmCode::Stopped`], [`VmCode::GuestEnded`] and
    /// [`VmCode::EmulatorTrap`] once the machine is gone.
    pub fn exec(&self, script: impl AsRef<[u8]>, run: &Run) -> Result<Output, VmError> {
        let mut session = self.session()?;
        let said = self.console.errors_written();
        let script = script.as_ref();
        let mut output = session.exec(script, run)?;
        output.stderr = self.console.errors_since(said);
        Ok(output)
    }

    /// Takes the output of background programs between commands, at most its last 64 KiB.
    ///
    /// # Errors
    /// [`VmCode::Unsupported`] in an interactive machine.
    pub fn take_background(&self) -> Result<Vec<u8>, VmError> {
        Ok(self.session()?.take_background())
    }

    /// Types bytes at an interactive machine's console; waits while the guest is a megabyte
    /// behind.
    ///
    /// # Errors
    /// [`VmCode::Unsupported`] in a machine for commands, which uses its console itself;
    /// why the machine no longer runs.
    pub fn write_to_stdin(&self, bytes: &[u8]) -> Result<(), VmError> {
        if !self.interactive {
            let text = "the console of a machine for commands is its own: bytes typed there \
                        would end up in them; start an interactive machine";
            return Err(VmError::new(VmCode::Unsupported, text));
        }
        self.console.type_in(bytes, None)
    }

    /// Always fails: an image's terminal has 80 columns and 25 rows.
    ///
    /// Programs in the guest can set their view of it by `stty cols 120 rows 40`.
    ///
    /// # Errors
    /// [`VmCode::Unsupported`], always.
    pub fn resize(&self, columns: u16, rows: u16) -> Result<(), VmError> {
        let text = format!(
            "an image's terminal has 80 columns and 25 rows; \
             `stty cols {columns} rows {rows}` in the guest tells its programs another size"
        );
        Err(VmError::new(VmCode::Unsupported, text))
    }

    /// Why the machine no longer runs; `None` while it runs.
    pub fn ended(&self) -> Option<VmError> {
        self.console.ended()
    }

    /// Waits until the machine has ended or `timeout` is over (`None`: for ever); returns
    /// why it ended.
    ///
    /// An image never reports its command's exit status: an image that turned itself off
    /// always ends with [`VmCode::GuestEnded`].
    pub fn wait(&self, timeout: Option<Duration>) -> Option<VmError> {
        self.console.wait_end(timeout);
        self.console.ended()
    }

    /// Stops the machine at once and waits until its thread is gone.
    ///
    /// Running and later calls end with [`VmCode::Stopped`].
    pub fn stop(&self) {
        self.console.stop();
        loop {
            self.engine.increment_epoch();
            if self.console.wait_end(Some(STOP_POLL_INTERVAL)) {
                break;
            }
        }
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // The panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reports the end of the thread to callers, even on a panic.
struct EndGuard(Arc<Console>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let text = "the thread of the machine has failed";
        self.0.end(VmError::new(VmCode::EmulatorTrap, text));
    }
}

/// Runs an image until it ends or is stopped. The store and the machine's resources are
/// freed before the end is reported.
fn run(pre: &InstancePre<Host>, host: Host, console: Arc<Console>) {
    let guard = EndGuard(console);
    let reason = {
        let mut store = Store::new(pre.module().engine(), host);
        let result = run_program(pre, &mut store, &guard.0);
        reason(result, store.data(), &guard.0)
    };
    guard.0.end(reason);
}

fn run_program(
    pre: &InstancePre<Host>,
    store: &mut Store<Host>,
    console: &Arc<Console>,
) -> wasmtime::Result<()> {
    store.limiter(|host| &mut host.limits);
    let stopping = Arc::clone(console);
    store.epoch_deadline_callback(move |_| {
        Ok(match stopping.is_stopped() {
            true => UpdateDeadline::Interrupt,
            false => UpdateDeadline::Continue(1),
        })
    });
    store.set_epoch_deadline(1);
    if console.is_stopped() {
        return Ok(());
    }
    let instance = pre.instantiate(&mut *store)?;
    let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
    start.call(store, ())
}

/// Why the program ended.
fn reason(result: wasmtime::Result<()>, host: &Host, console: &Console) -> VmError {
    if console.is_stopped() {
        return VmError::new(VmCode::Stopped, "the machine was stopped");
    }
    let words = last_words(console);
    if let Some(broken) = &host.broken {
        return VmError::new(VmCode::Protocol, format!("{broken}{words}"));
    }
    let (code, text) = match (host.exit_code, result) {
        (Some(0), _) | (None, Ok(())) => {
            let text = "the guest turned itself off; an image does not tell a status";
            (VmCode::GuestEnded, text.to_owned())
        }
        (Some(code), _) => {
            let text = format!("the image's emulator ended with code {code}");
            (VmCode::GuestEnded, text)
        }
        (None, Err(error)) => match error.downcast_ref::<Trap>() {
            Some(trap) => (VmCode::EmulatorTrap, format!("the image trapped: {trap}")),
            None => (VmCode::EmulatorTrap, format!("the image failed: {error:#}")),
        },
    };
    VmError::new(code, format!("{text}{words}"))
}

/// The emulator's last messages, for an error.
fn last_words(console: &Console) -> String {
    let words = console.errors_since(0);
    let end = words.trim_ascii();
    let end = &end[end.len().saturating_sub(LAST_WORDS)..];
    match end.is_empty() {
        true => String::new(),
        false => format!(": \"{}\"", end.escape_ascii()),
    }
}
