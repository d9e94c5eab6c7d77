//! Foreign sandbox: a container2wasm image as a [`Sandbox`](super::Sandbox), its machine
//! behind the mailbox that our own guests have.
//!
//! Commands run one after the other in the image's one shell. [`c2w`](crate::c2w) lists the
//! limits of such images; unsupported calls end with [`VmCode::Unsupported`]. One thread
//! takes messages, another runs the image.

use crate::c2w::{Image, MAX_INPUT, Machine, Options, Run};
use a99_sandbox_protocol::{Ending, Exec, Exited, Request, Stream};
use a99_sandbox_runner::{
    Event, Mailbox, Message, Sink, SpawnRequest, VmCode, VmError, Worker, refuse, stopped,
};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod backends;

pub(super) use backends::connect;

/// How often the machine is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// First bytes of every WebAssembly module.
const MAGIC: [u8; 4] = *b"\0asm";

/// Checks that a file is a WebAssembly module, the only accepted kind of image.
///
/// # Errors
/// [`VmCode::Io`] if the file cannot be read, [`VmCode::Module`] if it is not a module.
pub(super) fn check_module(path: &Path) -> Result<(), VmError> {
    let mut head = [0; MAGIC.len()];
    let failed = |error| VmError::io(path, &error);
    // Opening a pipe may block for ever.
    if std::fs::metadata(path).map_err(failed)?.is_file() {
        let mut file = std::fs::File::open(path).map_err(failed)?;
        if std::io::Read::read_exact(&mut file, &mut head).is_ok() && head == MAGIC {
            return Ok(());
        }
    }
    let text = format!(
        "{} is no WebAssembly module: an image is one that container2wasm made \
         (`c2w IMAGE out.wasm`); compiled code is loaded from the cache only",
        path.display()
    );
    Err(VmError::new(VmCode::Module, text))
}

fn unsupported(text: &str) -> VmError {
    let text = format!("{text}; an image of container2wasm has a terminal and nothing else");
    VmError::new(VmCode::Unsupported, text)
}

/// A queued command.
struct Job {
    id: u64,
    script: Vec<u8>,
    stdin: Option<Vec<u8>>,
    sink: Sink,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    output_limit: Option<u64>,
    cancel: Arc<AtomicBool>,
}

/// State shared by the two threads.
#[derive(Default)]
struct SharedState {
    jobs: VecDeque<Job>,
    /// Commands whose standard input is not complete yet.
    gathering: Vec<Job>,
    running: Option<(u64, Arc<AtomicBool>)>,
    machine: Option<Arc<Machine>>,
    /// Why the machine did not start or no longer runs.
    failed: Option<VmError>,
    stopped: bool,
    ready: bool,
}

struct Shared {
    state: Mutex<SharedState>,
    changed: Condvar,
    mailbox: Arc<Mailbox>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Source of an image, and its time limits.
pub(super) struct Start {
    pub path: PathBuf,
    pub worker: Option<Worker>,
    /// Maximum time until the shell answers.
    pub limit: Option<Duration>,
    /// Maximum lifetime.
    pub life: Option<Duration>,
}

/// Runs an image until it ends, is stopped or its time is over; blocks its thread, on which
/// `options` runs too.
pub(super) fn serve(
    mailbox: Arc<Mailbox>,
    start: Start,
    options: impl FnOnce() -> Result<Options, VmError>,
) {
    let after = |time: Option<Duration>| time.and_then(|time| Instant::now().checked_add(time));
    let ends = after(start.life);
    let begins = start.limit.zip(after(start.limit));
    let shared = Arc::new(Shared {
        state: Mutex::default(),
        changed: Condvar::new(),
        mailbox: Arc::clone(&mailbox),
    });
    let theirs = Arc::clone(&shared);
    let worker = options().and_then(|options| {
        std::thread::Builder::new()
            .name("a99-c2w-calls".to_owned())
            .spawn(move || theirs.work(&start, options))
            .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")))
    });
    let ended = match &worker {
        Ok(_) => shared.listen(begins, ends),
        Err(error) => error.clone(),
    };
    shared.end(&ended);
    if let Ok(worker) = worker {
        // A compilation in this thread cannot be interrupted; it checks afterwards whether
        // it is still wanted.
        if worker.is_finished() || shared.lock().machine.is_some() {
            // The panic was reported where it happened.
            let _ = worker.join();
        }
    }
    mailbox.status.change(|status| status.gone = true);
}

impl Shared {
    /// Handles messages until the image must end.
    fn listen(&self, begins: Option<(Duration, Instant)>, ends: Option<Instant>) -> VmError {
        loop {
            for message in self.mailbox.collect(0) {
                match message {
                    Message::Spawn(spawn) => self.spawn(spawn),
                    Message::Send(id, Request::Kill) | Message::Cancel(id) => self.cancel(id),
                    Message::Send(id, Request::Stdin(bytes)) => self.gather(id, &bytes),
                    Message::Send(id, Request::StdinEnd) => self.begin(id),
                    // Output credit, and requests that need a terminal.
                    Message::Send(..) => {}
                    Message::Freeze(slot) => {
                        let error = unsupported("it cannot be saved");
                        slot.change(|slot| *slot = Some(Err(error)));
                    }
                    Message::Shutdown(_) | Message::Stop => return stopped(),
                }
            }
            let state = self.lock();
            let begins = begins.filter(|_| !state.ready);
            let machine = state.machine.as_ref();
            let ended = machine.and_then(|machine| machine.ended());
            if let Some(ended) = state.failed.clone().or(ended) {
                return ended;
            }
            drop(state);
            self.check_deadlines();
            let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return VmError::new(VmCode::TimeLimit, "the sandbox lived as long as it may");
            }
            let mut timeout = POLL_INTERVAL.min(left.unwrap_or(POLL_INTERVAL));
            if let Some((limit, at)) = begins {
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let text = format!("no shell of the image answered within {limit:?}");
                    return VmError::new(VmCode::TimedOut, text);
                }
                timeout = timeout.min(left);
            }
            self.mailbox.wait(Some(timeout));
        }
    }

    fn spawn(&self, mut spawn: SpawnRequest) {
        let script = match spawn.request {
            Request::Script(script) => Ok((script.text, None)),
            Request::Exec(exec) => {
                as_script(&exec).map(|script| (script, exec.stdin.then(Vec::new)))
            }
            _ => Err(unsupported("files cannot be copied: share a folder")),
        };
        let (script, stdin) = match script {
            Ok(script) => script,
            Err(error) => return (spawn.sink)(Event::Failed(error)),
        };
        let now = Instant::now();
        let mut job = Job {
            id: spawn.id,
            script,
            stdin,
            sink: spawn.sink,
            timeout: spawn.deadline.map(|at| at.saturating_duration_since(now)),
            deadline: spawn.deadline,
            output_limit: spawn.output_limit,
            cancel: Arc::default(),
        };
        if job.stdin.is_some() {
            // The holder of this credit may start to send.
            (job.sink)(Event::Credit(0));
            self.lock().gathering.push(job);
        } else {
            self.lock().jobs.push_back(job);
            self.changed.notify_all();
        }
    }

    /// Buffers a chunk of a command's standard input.
    fn gather(&self, id: u64, bytes: &[u8]) {
        let mut state = self.lock();
        let Some(at) = state.gathering.iter().position(|job| job.id == id) else {
            return;
        };
        let job = &mut state.gathering[at];
        let input = job.stdin.get_or_insert_default();
        if input.len() + bytes.len() <= MAX_INPUT {
            input.extend(bytes);
            let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            return (job.sink)(Event::Credit(count));
        }
        let mut job = state.gathering.swap_remove(at);
        drop(state);
        let text = format!("standard input has more than {MAX_INPUT} bytes: share a folder");
        (job.sink)(Event::Failed(unsupported(&text)));
    }

    /// Queues a command whose standard input is complete.
    fn begin(&self, id: u64) {
        let mut state = self.lock();
        let at = state.gathering.iter().position(|job| job.id == id);
        if let Some(at) = at {
            let job = state.gathering.swap_remove(at);
            state.jobs.push_back(job);
            self.changed.notify_all();
        }
    }

    /// Ends commands that expire before their standard input is complete.
    fn check_deadlines(&self) {
        let now = Instant::now();
        let is_over = |job: &mut Job| job.deadline.is_some_and(|at| at <= now);
        let over: Vec<Job> = self.lock().gathering.extract_if(.., is_over).collect();
        for mut job in over {
            let limit = job.timeout.unwrap_or_default();
            let text = format!("the command's {limit:?} were over before its standard input");
            (job.sink)(Event::Failed(VmError::new(VmCode::TimedOut, text)));
        }
    }

    /// Ends a running or queued command.
    fn cancel(&self, id: u64) {
        let mut state = self.lock();
        if let Some((running, cancel)) = &state.running
            && *running == id
        {
            cancel.store(true, Ordering::Relaxed);
        }
        let waiting = state.jobs.iter().position(|job| job.id == id);
        let gathering = state.gathering.iter().position(|job| job.id == id);
        let job = match (waiting, gathering) {
            (Some(at), _) => state.jobs.remove(at),
            (None, Some(at)) => Some(state.gathering.swap_remove(at)),
            (None, None) => None,
        };
        drop(state);
        if let Some(mut job) = job {
            let error = VmError::new(VmCode::Cancelled, "the command was cancelled");
            (job.sink)(Event::Failed(error));
        }
    }

    /// Stops the machine and fails all pending calls.
    fn end(&self, ended: &VmError) {
        let mut state = self.lock();
        state.stopped = true;
        let mut jobs = std::mem::take(&mut state.jobs);
        jobs.extend(std::mem::take(&mut state.gathering));
        let machine = state.machine.clone();
        drop(state);
        self.changed.notify_all();
        if let Some(machine) = machine {
            machine.stop();
        }
        for mut job in jobs {
            (job.sink)(Event::Failed(ended.clone()));
        }
        for message in self.mailbox.close(ended) {
            refuse(message, ended);
        }
    }

    /// The second thread: starts the image and runs its commands.
    fn work(&self, start: &Start, options: Options) {
        match self.start(start, options) {
            Ok(Some(machine)) => self.run(&machine),
            Ok(None) => {}
            Err(error) => {
                self.lock().failed = Some(error);
                self.mailbox.wake();
            }
        }
    }

    /// Starts the machine; `None` if it is no longer wanted.
    fn start(&self, start: &Start, options: Options) -> Result<Option<Arc<Machine>>, VmError> {
        let timeout = start.limit.unwrap_or(options.start_timeout);
        let wanted = || match self.lock().stopped {
            true => Err(stopped()),
            false => Ok(()),
        };
        let image = match &start.worker {
            Some(worker) => Image::open_with(&start.path, worker, &wanted)?,
            None => Image::open(&start.path)?,
        };
        if self.lock().stopped {
            return Ok(None);
        }
        let machine = Arc::new(Machine::boot_for_commands(&image, options)?);
        {
            let mut state = self.lock();
            if state.stopped {
                return Ok(None);
            }
            state.machine = Some(Arc::clone(&machine));
        }
        machine.begin_session(timeout)?;
        self.lock().ready = true;
        let status = &self.mailbox.status;
        status.change(|status| status.started = Some(0));
        Ok(Some(machine))
    }

    fn run(&self, machine: &Machine) {
        loop {
            let mut state = self.lock();
            let job = loop {
                if state.stopped {
                    return;
                }
                match state.jobs.pop_front() {
                    Some(job) => break job,
                    None => {
                        let waited = self.changed.wait(state);
                        state = waited.unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            state.running = Some((job.id, Arc::clone(&job.cancel)));
            drop(state);
            run_job(machine, job);
            self.lock().running = None;
        }
    }
}

/// Runs one command and reports its events.
fn run_job(machine: &Machine, mut job: Job) {
    let usual = Run::default();
    let left = |at: Instant| at.saturating_duration_since(Instant::now());
    let run = Run {
        timeout: job.deadline.map(left),
        output_limit: job.output_limit.map_or(usual.output_limit, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        }),
        cancel: Some(job.cancel),
        stdin: job.stdin,
    };
    if run.timeout == Some(Duration::ZERO) {
        let limit = job.timeout.unwrap_or_default();
        let text = format!("the command's {limit:?} were over before its turn came");
        return (job.sink)(Event::Failed(VmError::new(VmCode::TimedOut, text)));
    }
    match machine.exec(&job.script, &run) {
        Ok(output) => {
            for (stream, bytes) in [
                (Stream::Stdout, output.stdout),
                (Stream::Stderr, output.stderr),
            ] {
                if !bytes.is_empty() {
                    (job.sink)(Event::Output(stream, bytes));
                }
            }
            (job.sink)(Event::Exited(Exited {
                ending: Ending::Code(output.exit_code as u8),
                session_reset: output.session_reset,
                ..Exited::default()
            }));
        }
        Err(mut error) => {
            // Partial output arrives as events, as from other guests.
            if let Some(output) = error.output.take()
                && !output.stdout.is_empty()
            {
                (job.sink)(Event::Output(Stream::Stdout, output.stdout));
            }
            (job.sink)(Event::Failed(error));
        }
    }
}

/// Renders a command as a script that runs in a subshell, so that the session stays
/// unchanged.
fn as_script(exec: &Exec) -> Result<Vec<u8>, VmError> {
    let wanted = [
        (
            exec.pty.is_some(),
            "a terminal cannot be opened beside its own",
        ),
        (exec.detach, "processes cannot be left behind on purpose"),
        (
            exec.limits != Default::default(),
            "a command cannot have limits of its own",
        ),
    ];
    if let Some((_, text)) = wanted.iter().find(|(wanted, _)| *wanted) {
        return Err(unsupported(text));
    }
    let mut script = b"(".to_vec();
    if let Some(cwd) = &exec.cwd {
        script.extend(b"cd -- ");
        quote(&mut script, cwd);
        script.extend(b" || exit 126; ");
    }
    script.extend(b"exec ");
    if exec.clear_env || !exec.env.is_empty() {
        script.extend(b"env ");
        if exec.clear_env {
            script.extend(b"-i ");
        }
        for (name, value) in &exec.env {
            quote(&mut script, &[name, &b"="[..], value].concat());
            script.push(b' ');
        }
    }
    for argument in &exec.argv {
        quote(&mut script, argument);
        script.push(b' ');
    }
    script.push(b')');
    Ok(script)
}

/// Quotes a word for a shell (POSIX, Shell Command Language, section 2.2.2).
fn quote(script: &mut Vec<u8>, word: &[u8]) {
    script.push(b'\'');
    for byte in word {
        match byte {
            b'\'' => script.extend(b"'\\''"),
            _ => script.push(*byte),
        }
    }
    script.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_means_to_the_shell_what_it_is() {
        let exec = Exec {
            argv: vec![
                b"printf".to_vec(),
                b"%s|".to_vec(),
                b"it's $HOME".to_vec(),
                b"a\nb".to_vec(),
            ],
            env: vec![(b"A".to_vec(), b"x y".to_vec())],
            cwd: Some(b"/".to_vec()),
            ..Exec::default()
        };
        let script = as_script(&exec).unwrap();
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", std::str::from_utf8(&script).unwrap()])
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"it's $HOME|a\nb|");
        let exec = Exec {
            argv: [&b"sh"[..], b"-c", b"echo $A; pwd"]
                .map(<[u8]>::to_vec)
                .to_vec(),
            ..exec
        };
        let script = as_script(&exec).unwrap();
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", std::str::from_utf8(&script).unwrap()])
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"x y\n/\n");
    }

    #[test]
    fn what_a_terminal_cannot_do_is_refused_by_name() {
        let exec = Exec {
            argv: vec![b"cat".to_vec()],
            detach: true,
            ..Exec::default()
        };
        let error = as_script(&exec).unwrap_err();
        assert_eq!(error.code, VmCode::Unsupported);
        assert!(error.text.contains("left behind"), "{error}");
    }
}
