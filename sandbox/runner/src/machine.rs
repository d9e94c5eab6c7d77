//! Image machine: boots, saves and compiles guests under wasmtime.

use super::disk::ImageDisk;
use super::engine::{compatibility, engine, guarded_engine, precompile};
use super::error::{VmCode, VmError};
use super::foreign::check_code;
use super::guest::Boot;
use super::precompiled::{write, write_code};
use super::snapshot::snapshot;
use super::worker::Worker;
use a99_sandbox_cache::machine::{Machine, Parts};
use a99_sandbox_cache::{ErrorCode, ImageError, SealKey};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wasmtime::Engine;

/// Kernel command line. Only important messages go to the console. A kernel that panics
/// asks for a restart at once, which ends the guest, instead of hanging. Free memory is
/// reported in blocks of 2^5 pages and more.
pub const CMDLINE: &str =
    "console=hvc0 quiet panic=-1 oops=panic page_reporting.page_reporting_order=5";

/// RAM of the image's guest in bytes. It holds the root file system; untouched pages cost
/// nothing.
pub const RAM_BYTES: u32 = 256 << 20;

/// Largest RAM that a guest may be asked for. The emulator's slices are smaller, so the
/// guest has one block less of it.
pub const MAX_RAM_BYTES: u64 = 2 << 30;

/// The guest's kernel adds memory in blocks of this size (a section of its memory map).
const RAM_BLOCK: u64 = 128 << 20;

/// RAM in bytes of a guest that was asked for with `bytes`: whole blocks.
///
/// # Errors
/// [`VmCode::BadOption`] if that is less than the image's guest has, or too much.
pub fn ram_of(bytes: u64) -> Result<u32, VmError> {
    if !(u64::from(RAM_BYTES)..=MAX_RAM_BYTES).contains(&bytes) {
        let text = format!("{bytes} bytes of RAM: it can have {RAM_BYTES} to {MAX_RAM_BYTES}");
        return Err(VmError::new(VmCode::BadOption, text));
    }
    let whole = bytes.next_multiple_of(RAM_BLOCK);
    Ok(whole.min(MAX_RAM_BYTES - RAM_BLOCK) as u32)
}

/// Source files that determine a snapshot beside its inputs: a change of them changes the
/// result.
const RECIPE: [&str; 6] = [
    include_str!("snapshot.rs"),
    include_str!("training.rs"),
    include_str!("link.rs"),
    include_str!("guest.rs"),
    include_str!("instance.rs"),
    include_str!("imports.rs"),
];

/// Boots, saves and compiles guests under wasmtime.
#[derive(Debug)]
pub struct WasmMachine {
    engine: Engine,
    worker: Option<Worker>,
}

impl WasmMachine {
    /// Creates a machine with the engine that runs guests.
    ///
    /// # Errors
    /// [`VmCode::Resources`].
    pub fn new() -> Result<Self, VmError> {
        Ok(Self {
            engine: engine()?,
            worker: None,
        })
    }

    /// Compiles and tests foreign images in a worker, which has limits.
    #[must_use]
    pub fn worker(mut self, worker: Worker) -> Self {
        self.worker = Some(worker);
        self
    }

    fn precompile_foreign(&self, module: &[u8], file: &Path, key: &SealKey) -> Result<(), VmError> {
        check_code(module)?;
        let code = match &self.worker {
            Some(worker) => {
                let mut code = Vec::new();
                let read = worker.compile_guest(module)?.read_to_end(&mut code);
                read.map_err(|error| VmError::io(file, &error))?;
                code
            }
            None => precompile(module, true)?,
        };
        write_code(&guarded_engine()?, module, &code, file, key).map(drop)
    }
}

impl Machine for WasmMachine {
    fn settings(&self) -> String {
        let recipe = a99_sandbox_cache::digest::of_bytes(RECIPE.concat().as_bytes());
        format!("{CMDLINE}; {RAM_BYTES} bytes of RAM; recipe {recipe}")
    }

    fn compatibility(&self, foreign: bool) -> String {
        match foreign {
            // Without an engine the compilation fails later, with the reason.
            true => guarded_engine().map_or_else(|_| String::new(), |e| compatibility(&e)),
            false => compatibility(&self.engine),
        }
    }

    fn snapshot(
        &self,
        parts: &Parts<'_>,
        warm_up: &[&[&str]],
        training: &str,
    ) -> Result<Vec<u8>, ImageError> {
        let disk = File::open(parts.disk).and_then(ImageDisk::new);
        let disk = disk.map_err(|error| ImageError::io(parts.disk, &error))?;
        let boot = Boot {
            kernel: parts.kernel,
            initrd: parts.root_files,
            cmdline: CMDLINE,
            ram_bytes: RAM_BYTES,
        };
        let made = snapshot(
            &self.engine,
            parts.emulator,
            Some(disk),
            &boot,
            warm_up,
            training,
        );
        made.map_err(|error| failed("snapshot", error))
    }

    fn precompile(
        &self,
        module: &[u8],
        file: &Path,
        key: &SealKey,
        foreign: bool,
    ) -> Result<(), ImageError> {
        let written = match foreign {
            true => self.precompile_foreign(module, file, key),
            false => write(&self.engine, module, file, key).map(drop),
        };
        written.map_err(|error| failed("module", error))
    }

    fn is_sealed(&self, file: &Path, key: &SealKey) -> bool {
        super::precompiled::source(file, key).is_ok()
    }

    fn smoke_test(&self, file: &Path, key: &SealKey, foreign: bool) -> Result<(), ImageError> {
        let tested = match (foreign, &self.worker) {
            (true, Some(worker)) => worker.smoke_test(file, key),
            (true, None) => guarded_engine()
                .and_then(|engine| super::smoke_test::smoke_test(&engine, file, key)),
            (false, _) => super::smoke_test::smoke_test(&self.engine, file, key),
        };
        tested.map_err(|error| ImageError::new(ErrorCode::Guest, "guest", error.to_string()))
    }
}

/// Turns a guest's error into a build error.
fn failed(step: &str, error: VmError) -> ImageError {
    let code = match error.code {
        VmCode::Io => ErrorCode::Io,
        _ => ErrorCode::StepFailed,
    };
    ImageError::new(code, step, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_comes_in_whole_blocks() {
        for (bytes, ram) in [
            (256 << 20, RAM_BYTES),
            ((256 << 20) + 1, 384 << 20),
            (1 << 30, 1 << 30),
            (2 << 30, 1920 << 20),
        ] {
            assert_eq!(ram_of(bytes), Ok(ram), "{bytes}");
        }
        for bytes in [0, (256 << 20) - 1, (2 << 30) + 1, u64::MAX] {
            let error = ram_of(bytes).expect_err("refused");
            assert_eq!(error.code, VmCode::BadOption, "{bytes}");
        }
    }
}
