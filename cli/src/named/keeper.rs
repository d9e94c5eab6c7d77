//! The background process of a named sandbox: the hidden command
//! `a99 sandbox keep NAME`, which `start` runs.
//!
//! It reads the settings from standard input, starts the sandbox and says on
//! standard output, in one line, that it is ready or why not. From then on it
//! has no terminal and no pipes, only its log. It ends when it is told to, by
//! SIGTERM, or when its guest ends; it then leaves nothing behind, but for the
//! log of an end that nobody wanted.

use super::lock::{Lock, State};
use super::name::Name;
use super::place::Place;
use super::problem::{NAME_TAKEN, NOT_ANSWERING, Problem};
use super::serve::{refuse, serve};
use super::spec::Spec;
use super::wire::{Frame, write};
use crate::commands::sandbox::builder;
use crate::failure::Exit;
use a99_sandbox::image::Cache;
use a99_sandbox::{Image, Sandbox, block_on};
use rustix::fs::{Mode, OFlags};
use serde_json::{Value as Json, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Read, Write, stderr, stdin, stdout};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Most clients at a time: each has up to four threads and as many descriptors
/// here.
const MAX_CLIENTS: usize = 128;

/// How often it is asked whether the guest ended by itself.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How long clients may take to hear that the sandbox was stopped.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a name is waited for: whoever looks for what is left of a dead
/// sandbox holds its lock for a moment.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// How long to wait when there are no descriptors for another client.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A wish that the sandbox ends, and who wants to know when it has.
type Stop = Option<UnixStream>;

/// The sandbox and what its clients need.
pub(super) struct Keeper {
    name: Name,
    pub(super) spec: Spec,
    pub(super) sandbox: Sandbox,
    started: SystemTime,
    commands: AtomicUsize,
    stops: Sender<Stop>,
    clients: Mutex<usize>,
    fewer: Condvar,
}

/// A command that is counted as long as this lives.
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Keeper {
    /// What is told of the sandbox.
    pub(super) fn status(&self) -> Json {
        let mut told = self.spec.told();
        let since = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        let age = self.started.elapsed().unwrap_or_default();
        let ports = self.sandbox.forwards().iter().zip(&self.spec.publish);
        let ports = ports.map(|(listen, publish)| {
            json!({"listen": listen.to_string(), "guestPort": publish.guest_port})
        });
        told["name"] = self.name.as_str().into();
        told["status"] = "running".into();
        told["pid"] = std::process::id().into();
        told["startedMs"] = (since.as_millis() as u64).into();
        told["ageMs"] = (age.as_millis() as u64).into();
        told["commands"] = self.commands.load(Ordering::Relaxed).into();
        told["instructions"] = self.sandbox.instructions().into();
        told["ports"] = ports.collect::<Vec<_>>().into();
        told
    }

    /// One more command that a client follows.
    pub(super) fn count_command(&self) -> Counted<'_> {
        self.commands.fetch_add(1, Ordering::Relaxed);
        Counted(&self.commands)
    }

    /// Asks for the end. When it comes, whoever asked hears of it.
    pub(super) fn ask_to_stop(&self, asker: Stop) {
        // Nobody listens once the end has begun; then the asker sees the end
        // of the connection.
        let _ = self.stops.send(asker);
    }

    fn clients(&self) -> MutexGuard<'_, usize> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a sandbox until its end.
pub(crate) fn run(name: &Name) -> Exit {
    // A process of its own session hears nothing of the terminal's keys. It may
    // lead one already, when somebody runs the command by hand.
    let _ = rustix::process::setsid();
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    match keep(name) {
        Ok(()) => Exit::Ok,
        Err(problem) => {
            let _ = say(&json!({ "problem": problem }));
            Exit::Guest(problem.exit)
        }
    }
}

/// A line for `start`.
fn say(line: &Json) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn keep(name: &Name) -> Result<(), Problem> {
    let mut settings = Vec::new();
    let read = stdin().lock().read_to_end(&mut settings);
    read.map_err(|error| Problem::io("settings", error))?;
    let spec: Spec = super::wire::parse(&settings)?;
    std::env::set_current_dir("/").map_err(|error| Problem::io("/", error))?;
    let place = Place::of_user()?;
    let lock = take_name(&place, name)?;
    let log = place.new_log(name)?;
    rustix::stdio::dup2_stderr(&log).map_err(|error| Problem::io("log", error))?;
    let kept = keep_named(name, spec, &place);
    if place.log_text(name).is_none() {
        place.remove_log(name);
    }
    place.clear(name, lock);
    kept
}

fn take_name(place: &Place, name: &Name) -> Result<Lock, Problem> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match place.lock(name, true)? {
            State::Taken(lock) => return Ok(lock),
            State::Held | State::Absent if Instant::now() < deadline => {
                std::thread::sleep(LOCK_INTERVAL);
            }
            State::Held | State::Absent => {
                let text = format!(
                    "a sandbox named {name} is there already; `a99 sandbox stop {name}` ends it"
                );
                return Err(Problem::new(NAME_TAKEN, text));
            }
        }
    }
}

fn keep_named(name: &Name, spec: Spec, place: &Place) -> Result<(), Problem> {
    let settings = spec.settings();
    let mut builder = builder(&settings);
    if settings.image.is_none() {
        let cache = Cache::of_user().map_err(|error| Problem::io("image", error))?;
        let image = Image::current(&cache, &mut |_: a99_sandbox::image::Event<'_>| {})?;
        builder = builder.loaded_image(&image).hostname(name.as_str());
    }
    for publish in &spec.publish {
        builder = builder.forward(publish.listen, publish.guest_port);
    }
    let sandbox = builder.start_blocking()?;
    let listener = place.listen(name)?;
    let (stops, stopped) = channel();
    let keeper = Arc::new(Keeper {
        name: name.clone(),
        spec,
        sandbox,
        started: SystemTime::now(),
        commands: AtomicUsize::new(0),
        stops,
        clients: Mutex::new(0),
        fewer: Condvar::new(),
    });
    follow_signals(&keeper)?;
    accept(&keeper, listener)?;
    let ready = say(&json!({ "ready": keeper.status() }))
        .map_err(|error| Problem::io("nobody waits for the start", error))
        .and_then(|()| leave_streams());
    let asked = match ready {
        Ok(()) => until_stopped(&keeper, &stopped),
        Err(problem) => Err(problem),
    };
    end(&keeper, place, &stopped, asked)
}

/// From here on there is nobody to read from or to write to.
fn leave_streams() -> Result<(), Problem> {
    let failed = |error| Problem::io("/dev/null", error);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty()).map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(failed)?;
    rustix::stdio::dup2_stdout(&null).map_err(failed)
}

fn follow_signals(keeper: &Arc<Keeper>) -> Result<(), Problem> {
    let failed = |error| Problem::io("signals", error);
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(failed)?;
    let stops = keeper.stops.clone();
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let spawned = thread.spawn(move || {
        for _ in signals.forever() {
            let _ = stops.send(None);
        }
    });
    spawned.map(drop).map_err(failed)
}

/// Lets clients in, each on a thread of its own.
fn accept(keeper: &Arc<Keeper>, listener: UnixListener) -> Result<(), Problem> {
    let keeper = Arc::clone(keeper);
    let thread = std::thread::Builder::new().name("clients".to_owned());
    let spawned = thread.spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => admit(&keeper, stream),
                Err(_) => std::thread::sleep(ACCEPT_PAUSE),
            }
        }
    });
    spawned
        .map(drop)
        .map_err(|error| Problem::io("no thread", error))
}

fn admit(keeper: &Arc<Keeper>, stream: UnixStream) {
    let busy = |stream| {
        let text = format!("{MAX_CLIENTS} clients are served already");
        refuse(stream, &Problem::new(NOT_ANSWERING, text));
    };
    let mut clients = keeper.clients();
    if *clients == MAX_CLIENTS {
        return busy(stream);
    }
    *clients += 1;
    drop(clients);
    let client = Client(Arc::clone(keeper));
    let thread = std::thread::Builder::new().name("client".to_owned());
    // Without a thread the connection is dropped, and the client told by that.
    let _ = thread.spawn(move || serve(&client.0, stream));
}

/// A client that is counted as long as this lives.
struct Client(Arc<Keeper>);

impl Drop for Client {
    fn drop(&mut self) {
        *self.0.clients() -= 1;
        self.0.fewer.notify_all();
    }
}

/// Waits for a wish that the sandbox ends; who wished, or how it ended by itself.
fn until_stopped(keeper: &Keeper, stopped: &Receiver<Stop>) -> Result<Stop, Problem> {
    loop {
        match stopped.recv_timeout(LOOK_INTERVAL) {
            Ok(asker) => return Ok(asker),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if let Some(error) = keeper.sandbox.ended() {
            let _ = writeln!(stderr(), "the sandbox ended by itself: {error}");
            return Err(error.into());
        }
    }
}

/// Ends everything; clients hear of it.
fn end(
    keeper: &Keeper,
    place: &Place,
    stopped: &Receiver<Stop>,
    asked: Result<Stop, Problem>,
) -> Result<(), Problem> {
    // From now on the name is not found.
    place.remove_socket(&keeper.name);
    block_on(keeper.sandbox.stop());
    let deadline = Instant::now() + FAREWELL;
    let mut clients = keeper.clients();
    while *clients > 0 {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            break;
        };
        let waited = keeper.fewer.wait_timeout(clients, left);
        clients = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(clients);
    let (first, asked) = match asked {
        Ok(asker) => (asker, Ok(())),
        Err(problem) => (None, Err(problem)),
    };
    let others = stopped.try_iter().flatten();
    for mut asker in first.into_iter().chain(others) {
        let stopped = Frame::reply(&json!({"stopped": true}));
        let _ = stopped.and_then(|frame| write(&mut asker, &frame));
    }
    asked
}
