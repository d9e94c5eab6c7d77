//! Smoke tests: short-lived guests that run scripts on the caller's thread. They prove that
//! a kernel boots, or that a compiled snapshot works, before others rely on it.

use super::disk::ImageDisk;
use super::error::{VmCode, VmError};
use super::guest::{Boot, Guest, Next, Setup};
use super::instance::Linked;
use super::precompiled::{disk, load, verify};
use a99_sandbox_cache::SealKey;
use a99_sandbox_protocol::{Exec, Exited, MAX_CHUNK, Report, Request, Script, Stream};
use std::fs::File;
use std::iter;
use std::path::Path;
use std::time::{Duration, Instant};
use wasmtime::{Engine, Module};

/// Time limit for a boot and a script: thirty times the duration of the longest, the
/// training workload of an image.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum interval between polls of the network.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Id of the running request, one at a time.
const ID: u64 = 1;

/// Result of a script that ran in a fresh guest.
#[derive(Clone, Debug)]
pub struct ScriptOutcome {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// How the script ended.
    pub exited: Exited,
    /// Console output of the guest.
    pub console: String,
    /// Instructions that the guest ran.
    pub instructions: u64,
    /// Time from the first instruction to the script's end.
    pub elapsed: Duration,
}

/// A compiled emulator that boots any number of guests.
#[derive(Debug)]
pub struct Booter {
    linked: Linked,
}

impl Booter {
    /// Compiles an emulator; its guests get the image's disk in a file.
    ///
    /// # Errors
    /// [`VmCode::Module`] if it is not an emulator, [`VmCode::Io`] without that file.
    pub fn new(engine: &Engine, emulator: &[u8], disk: &Path) -> Result<Self, VmError> {
        let module = Module::new(engine, emulator);
        let module = module.map_err(|error| VmError::engine(VmCode::Module, "emulator", &error))?;
        let file = File::open(disk).and_then(ImageDisk::new);
        let disk = file.map_err(|error| VmError::io(disk, &error))?;
        let linked = Linked::new(&module, Some(disk))?;
        Ok(Self { linked })
    }

    /// Boots a fresh guest and runs a script in its session shell.
    ///
    /// # Errors
    /// [`VmError`]; the error of a guest that hangs includes its console.
    pub fn boot(&self, boot: &Boot<'_>, script: &str) -> Result<ScriptOutcome, VmError> {
        let start = Instant::now();
        let guest = Guest::boot(&self.linked, boot)?;
        let mut guest = ScriptedGuest::new(guest, start);
        guest.wait("get ready", |_, report| {
            matches!(report, Report::Ready { .. }).then_some(Ok(()))
        })?;
        guest.run(script)
    }
}

/// Verifies a compiled snapshot in full, loads it, and runs a command in a guest that
/// starts from it.
///
/// # Errors
/// Those of [`load`] and [`verify`]; [`VmCode::NotReady`] if the command fails.
pub fn smoke_test(engine: &Engine, path: &Path, key: &SealKey) -> Result<(), VmError> {
    verify(path, key)?;
    let linked = Linked::new(&load(engine, path, key)?, disk(path, key)?)?;
    let guest = Guest::resume(&linked, Setup::default())?;
    let mut guest = ScriptedGuest::new(guest, Instant::now());
    let outcome = guest.run("echo $((6 * 7))")?;
    let what = match (&outcome.stdout[..], guest.guest.aot_entries()) {
        (b"42\n", 1..) => return Ok(()),
        (b"42\n", 0) => "uses none of the code that was compiled with it",
        _ => "does not work",
    };
    let text = format!("a guest started from {} {what}", path.display());
    Err(VmError::new(VmCode::NotReady, text))
}

/// A guest driven on the caller's thread.
pub(super) struct ScriptedGuest {
    pub guest: Guest,
    start: Instant,
}

impl ScriptedGuest {
    pub(crate) fn new(guest: Guest, start: Instant) -> Self {
        Self { guest, start }
    }

    /// Runs a script in the session shell.
    pub(crate) fn run(&mut self, script: &str) -> Result<ScriptOutcome, VmError> {
        let text = script.as_bytes().to_vec();
        let request = Request::Script(Script { text });
        self.finish(&[request])
    }

    /// Runs a command as a fresh process; its standard input must fit the initial credit.
    pub(crate) fn command(
        &mut self,
        argv: &[&str],
        input: &[u8],
    ) -> Result<ScriptOutcome, VmError> {
        let exec = Request::Exec(Exec {
            argv: argv.iter().map(|text| text.as_bytes().to_vec()).collect(),
            stdin: true,
            ..Exec::default()
        });
        let chunks = input.chunks(MAX_CHUNK);
        let chunks = chunks.map(|chunk| Request::Stdin(chunk.to_vec()));
        let requests = iter::once(exec).chain(chunks);
        let requests: Vec<Request> = requests.chain([Request::StdinEnd]).collect();
        self.finish(&requests)
    }

    /// Sends requests with one id and waits for the end.
    fn finish(&mut self, requests: &[Request]) -> Result<ScriptOutcome, VmError> {
        for request in requests {
            self.guest.request(ID, request);
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let exited = self.wait("run a command", |guest, report| match report {
            Report::Output(stream, bytes) => {
                let credit = Request::Credit(stream, bytes.len() as u32);
                guest.request(ID, &credit);
                match stream {
                    Stream::Stderr => stderr.extend(bytes),
                    _ => stdout.extend(bytes),
                }
                None
            }
            Report::Exited(exited) => Some(Ok(exited)),
            Report::Failed(_, _, text) => Some(Err(VmError::new(VmCode::CannotStart, text))),
            _ => None,
        })?;
        Ok(ScriptOutcome {
            stdout,
            stderr,
            exited,
            console: self.guest.console(),
            instructions: self.guest.retired(),
            elapsed: self.start.elapsed(),
        })
    }

    /// Runs the guest until `wanted` accepts a report.
    fn wait<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(&mut Guest, Report) -> Option<Result<T, VmError>>,
    ) -> Result<T, VmError> {
        loop {
            let mut found = None;
            let next = self.guest.step(|guest, _, report| {
                if found.is_none() {
                    found = wanted(guest, report);
                }
            })?;
            if let Some(found) = found {
                return found;
            }
            if self.start.elapsed() > TIMEOUT {
                let console = self.guest.console();
                let text = format!("the guest did not {what} in time; its console:\n{console}");
                return Err(VmError::new(VmCode::NotReady, text));
            }
            if let Next::Wait(until) = next
                && self.guest.backlog() == 0
            {
                let now = self.guest.emulator.now_ns();
                // Only network frames could wake the guest earlier.
                let until = until.unwrap_or(now).saturating_sub(now);
                std::thread::sleep(Duration::from_nanos(until).min(POLL_INTERVAL));
            }
        }
    }
}
