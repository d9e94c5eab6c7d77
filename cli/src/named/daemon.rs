//! Daemon: the background process of a named sandbox, the hidden command
//! `a99 sandbox keep NAME`, which `start` runs.
//!
//! It reads the settings from standard input, starts the sandbox and writes one line to standard
//! output: ready, or the error. From then on it has no terminal and no pipes, only its log. It ends
//! on request, on SIGTERM, or when its guest ends, and removes its files; only the log of an
//! unexpected end stays.

use super::client::Connection;
use super::error::{BUSY, NAME_TAKEN, REFUSED, TOO_MANY};
use super::lock::{Lock, LockState};
use super::name::Name;
use super::queue::Queue;
use super::runtime_dir::RuntimeDir;
use super::serve::{refuse, serve};
use super::spec::{Origin, Spec};
use super::wire::{Request, answer};
use crate::commands::sandbox::{SANDBOX_FAILED, builder};
use crate::failure::Exit;
use crate::local::Refusal;
use a99_frame::WireError;
use a99_sandbox::cache::Cache;
use a99_sandbox::{Image, Sandbox, block_on};
use rustix::fs::{Mode, OFlags};
use serde_json::{Value as Json, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{self, Read, Write, stderr, stdin, stdout};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Most clients at a time. A client waiting in the queue takes one thread and two descriptors.
const MAX_CLIENTS: usize = 1024;

/// How often the daemon checks whether the guest ended by itself.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long clients may take to disconnect during shutdown.
const CLIENT_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for a name's lock: a process that cleans up after a dead sandbox holds it for a
/// moment.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// Pause after `accept` failed because no descriptors were left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A request to stop, with the connection that gets the reply after shutdown.
type StopRequest = Option<UnixStream>;

/// A running sandbox with the state that its clients share.
pub(super) struct Daemon {
    name: Name,
    pub(super) spec: Spec,
    pub(super) sandbox: Sandbox,
    started: SystemTime,
    commands: AtomicUsize,
    /// Commands and copies, running and waiting.
    pub(super) queue: Queue,
    stop_requests: Sender<StopRequest>,
    clients: Mutex<usize>,
    client_left: Condvar,
}

/// Counts a command until dropped.
pub(super) struct CommandGuard<'a>(&'a AtomicUsize);

impl Drop for CommandGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Daemon {
    /// Status report: settings and counters.
    pub(super) fn status(&self) -> Json {
        let mut status = self.spec.summary();
        let since = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let age = self.started.elapsed().unwrap_or_default();
        let ports = self.sandbox.forwards().iter().zip(&self.spec.publish);
        let ports = ports.map(|(listen, publish)| {
            json!({"listen": listen.to_string(), "guestPort": publish.guest_port})
        });
        status["name"] = self.name.as_str().into();
        status["status"] = "running".into();
        status["pid"] = std::process::id().into();
        status["startedMs"] = (since.as_millis() as u64).into();
        status["ageMs"] = (age.as_millis() as u64).into();
        status["commands"] = self.commands.load(Ordering::Relaxed).into();
        status["waiting"] = self.queue.waiting().into();
        status["instructions"] = self.sandbox.instructions().into();
        status["ports"] = ports.collect::<Vec<_>>().into();
        status
    }

    /// Counts one more command that a client follows.
    pub(super) fn count_command(&self) -> CommandGuard<'_> {
        self.commands.fetch_add(1, Ordering::Relaxed);
        CommandGuard(&self.commands)
    }

    /// Requests shutdown; the client gets its reply at the end.
    pub(super) fn request_stop(&self, asker: StopRequest) {
        // Once shutdown has begun the receiver is gone; the client then sees the connection close.
        let _ = self.stop_requests.send(asker);
    }

    fn clients(&self) -> MutexGuard<'_, usize> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a sandbox until its end.
pub(crate) fn run(name: &Name) -> Exit {
    // A process with a separate session gets no signals of the terminal's keys. It may lead one
    // already, when a user runs the command by hand.
    let _ = rustix::process::setsid();
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    match run_daemon(name) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            let exit = error.exit.unwrap_or(SANDBOX_FAILED);
            let _ = report_start(&json!({ "error": WireError::from(error) }));
            Exit::Guest(exit)
        }
    }
}

/// Writes the line that `start` waits for.
fn report_start(line: &Json) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn run_daemon(name: &Name) -> Result<(), Refusal> {
    let mut settings = Vec::new();
    let read = stdin().lock().read_to_end(&mut settings);
    read.map_err(|error| Refusal::io("settings", error))?;
    let spec: Spec = serde_json::from_slice(&settings)
        .map_err(|error| Refusal::new(REFUSED, error.to_string()))?;
    std::env::set_current_dir("/").map_err(|error| Refusal::io("/", error))?;
    let dir = RuntimeDir::of_user()?;
    let lock = claim_name(&dir, name)?;
    if let Err(error) = check_count(&dir, spec.max) {
        dir.clear(name, lock);
        return Err(error);
    }
    let log = dir.new_log(name)?;
    rustix::stdio::dup2_stderr(&log).map_err(|error| Refusal::io("log", error))?;
    let ended = run_sandbox(name, spec, &dir);
    if dir.log_text(name).is_none() {
        dir.remove_log(name);
    }
    dir.clear(name, lock);
    ended
}

/// Refuses to start if more than `max` sandboxes have their names claimed, this one included.
/// Of two that start at once both may be refused.
fn check_count(dir: &RuntimeDir, max: u32) -> Result<(), Refusal> {
    let mut running = 0;
    for name in dir.names()? {
        running += u32::from(matches!(dir.lock(&name, false)?, LockState::Held));
    }
    if running <= max {
        return Ok(());
    }
    let text = format!("{max} named sandboxes run already; `--max` allows more");
    Err(Refusal::new(TOO_MANY, text))
}

fn claim_name(dir: &RuntimeDir, name: &Name) -> Result<Lock, Refusal> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match dir.lock(name, true)? {
            LockState::Taken(lock) => return Ok(lock),
            LockState::Held | LockState::Absent if Instant::now() < deadline => {
                std::thread::sleep(LOCK_INTERVAL);
            }
            LockState::Held | LockState::Absent => {
                let text = format!(
                    "a sandbox named {name} is there already; `a99 sandbox stop {name}` ends it"
                );
                return Err(Refusal::new(NAME_TAKEN, text));
            }
        }
    }
}

/// Opens a file, but no pipe that might never have a writer.
fn ordinary(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no ordinary file")),
    }
}

fn run_sandbox(name: &Name, mut spec: Spec, dir: &RuntimeDir) -> Result<(), Refusal> {
    // The original is frozen while the image is loaded here.
    let original = match &spec.origin {
        Origin::Fork(original) => Some(Connection::open(dir, original, &Request::Freeze)?),
        Origin::Image | Origin::File(_) => None,
    };
    let settings = spec.settings();
    let mut builder = builder(&settings)?;
    if settings.foreign().is_none() {
        let cache = Cache::of_user().map_err(|error| Refusal::io("image", error))?;
        let image = Image::current(&cache, &mut |_: a99_sandbox::cache::Event<'_>| {})?;
        builder = builder.loaded_image(&image).hostname(name.as_str());
    }
    if let Origin::File(path) = &spec.origin {
        let file = ordinary(path).map_err(|error| Refusal::io(path.display(), error))?;
        builder = builder.restore_file(file);
    }
    if let Some(original) = original {
        let (frozen, ram) = original.frozen()?;
        spec.keep_ram(ram);
        builder = builder.fork_of(&frozen);
    }
    for publish in &spec.publish {
        builder = builder.forward(publish.listen, publish.guest_port);
    }
    let sandbox = builder.start_blocking()?;
    let listener = dir.listen(name)?;
    let (stop_requests, stopped) = channel();
    let daemon = Arc::new(Daemon {
        name: name.clone(),
        spec,
        sandbox,
        started: SystemTime::now(),
        commands: AtomicUsize::new(0),
        queue: Queue::default(),
        stop_requests,
        clients: Mutex::new(0),
        client_left: Condvar::new(),
    });
    follow_signals(&daemon)?;
    accept(&daemon, listener)?;
    let ready = report_start(&json!({ "ready": daemon.status() }))
        .map_err(|error| Refusal::io("nobody waits for the start", error))
        .and_then(|()| detach_stdio());
    let asked = match ready {
        Ok(()) => wait_for_stop(&daemon, &stopped),
        Err(error) => Err(error),
    };
    shut_down(&daemon, dir, &stopped, asked)
}

/// Redirects standard input and output to `/dev/null`: their pipes end with `start`.
fn detach_stdio() -> Result<(), Refusal> {
    let failed = |error| Refusal::io("/dev/null", error);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty()).map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(failed)?;
    rustix::stdio::dup2_stdout(&null).map_err(failed)
}

fn follow_signals(daemon: &Arc<Daemon>) -> Result<(), Refusal> {
    let failed = |error| Refusal::io("signals", error);
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(failed)?;
    let stop_requests = daemon.stop_requests.clone();
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let spawned = thread.spawn(move || {
        for _ in signals.forever() {
            let _ = stop_requests.send(None);
        }
    });
    spawned.map(drop).map_err(failed)
}

/// Accepts clients, each on a separate thread.
fn accept(daemon: &Arc<Daemon>, listener: UnixListener) -> Result<(), Refusal> {
    let daemon = Arc::clone(daemon);
    let thread = std::thread::Builder::new().name("clients".to_owned());
    let spawned = thread.spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => admit(&daemon, stream),
                Err(_) => std::thread::sleep(ACCEPT_PAUSE),
            }
        }
    });
    spawned
        .map(drop)
        .map_err(|error| Refusal::io("no thread", error))
}

fn admit(daemon: &Arc<Daemon>, stream: UnixStream) {
    let mut clients = daemon.clients();
    if *clients == MAX_CLIENTS {
        drop(clients);
        let text = format!(
            "sandbox {}: {MAX_CLIENTS} clients run commands or wait already; try again when \
             some have ended",
            daemon.name
        );
        return refuse(stream, Refusal::new(BUSY, text));
    }
    *clients += 1;
    drop(clients);
    let client = ClientGuard(Arc::clone(daemon));
    let thread = std::thread::Builder::new().name("client".to_owned());
    // If no thread starts, the connection is dropped, and the client sees it close.
    let _ = thread.spawn(move || serve(&client.0, stream));
}

/// Counts a client until dropped.
struct ClientGuard(Arc<Daemon>);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        *self.0.clients() -= 1;
        self.0.client_left.notify_all();
    }
}

/// Waits for a request to stop, or until the guest ends by itself.
fn wait_for_stop(daemon: &Daemon, stopped: &Receiver<StopRequest>) -> Result<StopRequest, Refusal> {
    loop {
        match stopped.recv_timeout(POLL_INTERVAL) {
            Ok(asker) => return Ok(asker),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if let Some(error) = daemon.sandbox.ended() {
            let _ = writeln!(stderr(), "the sandbox ended by itself: {error}");
            return Err(error.into());
        }
    }
}

/// Stops the guest, drains the clients and replies to stop requests.
fn shut_down(
    daemon: &Daemon,
    dir: &RuntimeDir,
    stopped: &Receiver<StopRequest>,
    asked: Result<StopRequest, Refusal>,
) -> Result<(), Refusal> {
    // New clients no longer find the name.
    dir.remove_socket(&daemon.name);
    block_on(daemon.sandbox.stop());
    // Waiting clients find the sandbox stopped.
    daemon.queue.close();
    let deadline = Instant::now() + CLIENT_DRAIN_TIMEOUT;
    let mut clients = daemon.clients();
    while *clients > 0 {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            break;
        };
        let waited = daemon.client_left.wait_timeout(clients, left);
        clients = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(clients);
    let (first, asked) = match asked {
        Ok(asker) => (asker, Ok(())),
        Err(error) => (None, Err(error)),
    };
    let others = stopped.try_iter().flatten();
    for mut asker in first.into_iter().chain(others) {
        let _ = answer(&mut asker, Ok(&json!({"stopped": true})));
    }
    asked
}
