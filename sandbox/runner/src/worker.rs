//! Worker processes: foreign modules are compiled and tested in a separate process.
//!
//! A compiler's time and memory grow faster than the module: a megabyte can need gigabytes
//! and minutes. Only the end of its process stops a compiler from outside. So a program can
//! name a [`Worker`], a command that calls [`serve`]. It runs with limits on memory and
//! processor time, and is killed when its time is over or its result is no longer wanted.
//!
//! The module goes in on standard input. The result comes out on standard output, a file in
//! memory that no other process has. Errors come on standard error, as a code and a text.

use super::engine::{guarded_engine, precompile};
use super::error::{VmCode, VmError};
use a99_sandbox_cache::SealKey;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Resource, Rlimit};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum writable memory of a compiling worker: this, plus a multiple of the module's
/// size.
const COMPILE_BYTES: u64 = 3 << 29;
const COMPILE_FACTOR: u64 = 6;

/// Maximum writable memory of a worker that tests an image.
const SMOKE_TEST_BYTES: u64 = 2 << 30;

/// Maximum processor time of a worker in seconds, and its time limit.
const CPU_SECONDS: u64 = 240;
const TIMEOUT: Duration = Duration::from_secs(300);

/// Interval at which a worker is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(3);

/// Maximum bytes of standard error to read.
const MAX_STDERR: u64 = 16 << 10;

/// Tasks of a worker, its last arguments.
const COMPILE_FOREIGN: &str = "foreign";
const COMPILE_GUEST: &str = "guest";
const SMOKE_TEST: &str = "try";

/// A command that calls [`serve`] with the arguments after its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Worker {
    /// Creates a worker from a program and its arguments.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into);
        Self {
            program: program.into(),
            arguments: arguments.collect(),
        }
    }

    /// Compiles a container2wasm image.
    pub fn compile_foreign(
        &self,
        module: File,
        wanted: &dyn Fn() -> Result<(), VmError>,
    ) -> Result<File, VmError> {
        self.run(module, &[COMPILE_FOREIGN.into()], wanted)
    }

    /// Compiles an imported snapshot.
    pub(super) fn compile_guest(&self, module: &[u8]) -> Result<File, VmError> {
        let module = in_memory(module)?;
        self.run(module, &[COMPILE_GUEST.into()], &|| Ok(()))
    }

    /// Starts a guest from a compiled module and runs a command in it.
    pub(super) fn smoke_test(&self, path: &Path, key: &SealKey) -> Result<(), VmError> {
        let key = in_memory(key.bytes())?;
        self.run(key, &[SMOKE_TEST.into(), path.into()], &|| Ok(()))
            .map(drop)
    }

    /// Runs the command until it is done, or until `wanted` returns why it must stop. The
    /// result is rewound to its start.
    fn run(
        &self,
        input: File,
        what: &[OsString],
        wanted: &dyn Fn() -> Result<(), VmError>,
    ) -> Result<File, VmError> {
        let mut output = in_memory(&[])?;
        let failed = |error: std::io::Error| {
            let text = format!("{}: {error}", self.program.display());
            VmError::new(VmCode::Resources, text)
        };
        let theirs = output.try_clone().map_err(failed)?;
        let mut child = Command::new(&self.program);
        child.args(&self.arguments).args(what);
        let child = child.stdin(input).stdout(theirs).stderr(Stdio::piped());
        let mut child = WorkerProcess(child.spawn().map_err(failed)?);
        let stderr = child.stderr().map_err(failed)?;
        let end = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = child.0.try_wait().map_err(failed)? {
                break status;
            }
            wanted()?;
            if Instant::now() > end {
                let text = format!("the work on a foreign module took more than {TIMEOUT:?}");
                return Err(VmError::new(VmCode::Module, text));
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        drop(child);
        let text = stderr.join().unwrap_or_default();
        if status.success() {
            let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
            rustix::fs::fcntl_add_seals(&output, seals).map_err(|error| failed(error.into()))?;
            // The worker shares the file position and left it at the end.
            output.rewind().map_err(failed)?;
            return Ok(output);
        }
        Err(reported_error(&text).unwrap_or_else(|| {
            let text = format!(
                "a foreign module takes more memory or processor time than allowed ({status})"
            );
            VmError::new(VmCode::Module, text)
        }))
    }
}

/// A child process, killed on drop.
struct WorkerProcess(Child);

impl WorkerProcess {
    /// Reads its standard error on a thread.
    fn stderr(&mut self) -> std::io::Result<std::thread::JoinHandle<String>> {
        let stream = self.0.stderr.take();
        std::thread::Builder::new().spawn(move || {
            let mut text = Vec::new();
            if let Some(stream) = stream {
                // Read errors only shorten the text.
                let _ = stream.take(MAX_STDERR).read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a file in memory with these bytes, positioned at its start.
fn in_memory(bytes: &[u8]) -> Result<File, VmError> {
    let failed = |error: std::io::Error| VmError::new(VmCode::Resources, format!("file: {error}"));
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create("a99-module", flags);
    let mut file = File::from(fd.map_err(|error| failed(error.into()))?);
    file.write_all(bytes)
        .and_then(|()| file.rewind())
        .map_err(failed)?;
    Ok(file)
}

/// Parses the error that a worker reported.
fn reported_error(stderr: &str) -> Option<VmError> {
    let (code, text) = stderr.split_once('\n')?;
    let codes = [
        VmCode::Module,
        VmCode::UnknownImport,
        VmCode::Io,
        VmCode::Resources,
        VmCode::NotReady,
        VmCode::EmulatorTrap,
        VmCode::UntrustedImage,
        VmCode::Protocol,
        VmCode::GuestEnded,
    ];
    let code = codes.into_iter().find(|known| known.name() == code)?;
    Some(VmError::new(code, text.trim_end()))
}

/// Compiles a container2wasm image.
pub type CompileForeign = fn(&[u8]) -> Result<Vec<u8>, VmError>;

/// Runs the command of a [`Worker`] with the arguments after its own; returns whether it
/// succeeded. Without `foreign`, it compiles no container2wasm images.
pub fn serve(arguments: &[OsString], foreign: Option<CompileForeign>) -> bool {
    let Err(error) = work(arguments, foreign) else {
        return true;
    };
    // Only the parent process reads this.
    let _ = write!(std::io::stderr(), "{}\n{}", error.code.name(), error.text);
    false
}

fn work(arguments: &[OsString], foreign: Option<CompileForeign>) -> Result<(), VmError> {
    let failed = |error: std::io::Error| VmError::new(VmCode::Io, format!("worker: {error}"));
    let mut input = Vec::new();
    let what = arguments.first().and_then(|what| what.to_str());
    match (what, arguments.get(1)) {
        (Some(COMPILE_FOREIGN | COMPILE_GUEST), None) => {
            limit(Resource::Cpu, CPU_SECONDS);
            let length = std::io::stdin().lock().read_to_end(&mut input);
            let length = length.map_err(failed)? as u64;
            limit(Resource::Data, COMPILE_BYTES + COMPILE_FACTOR * length);
            let code = match (what, foreign) {
                (Some(COMPILE_GUEST), _) => precompile(&input, true)?,
                (_, Some(compile)) => compile(&input)?,
                (_, None) => {
                    let text = "worker: no images of container2wasm here";
                    return Err(VmError::new(VmCode::Unsupported, text));
                }
            };
            std::io::stdout().lock().write_all(&code).map_err(failed)
        }
        (Some(SMOKE_TEST), Some(path)) => {
            limit(Resource::Cpu, CPU_SECONDS);
            limit(Resource::Data, SMOKE_TEST_BYTES);
            std::io::stdin()
                .lock()
                .read_to_end(&mut input)
                .map_err(failed)?;
            let key = SealKey::from_bytes(&input)
                .ok_or_else(|| VmError::new(VmCode::Io, "worker: no key"))?;
            super::smoke_test::smoke_test(&guarded_engine()?, Path::new(path), &key)
        }
        _ => Err(VmError::new(VmCode::Io, "worker: nothing to do")),
    }
}

/// Lowers a limit of this process; a lower existing limit stays.
fn limit(resource: Resource, most: u64) {
    let now = rustix::process::getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    // Lowering is always allowed.
    let _ = rustix::process::setrlimit(resource, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_what_a_worker_wrote_is_read_from_its_beginning() {
        let worker = Worker::new("sh", ["-c", "cat"]);
        let mut read = Vec::new();
        let mut output = worker.compile_guest(b"module").expect("a result");
        output.read_to_end(&mut read).expect("bytes");
        assert_eq!(read, b"module");
    }
}
