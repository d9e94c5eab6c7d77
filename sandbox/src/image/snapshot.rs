//! The last two parts of an image: the booted guest as a portable module, and
//! that module compiled for this machine.

use super::crates::EMULATOR;
use super::digest::Inputs;
use super::entry::Entry;
use super::error::{At, ErrorCode, ImageError};
use super::step::{Site, Step};
use super::{kernel, rootfs};
use crate::vm::{self, Boot, VmCode, VmError};
use std::fs;
use std::path::Path;
use wasmtime::Engine;

/// The name of the portable module in its result.
pub const MODULE: &str = "guest.wasm";

/// The name of the compiled module in its result.
pub const CODE: &str = "guest.cwasm";

/// The kernel's command line: its messages go to the console, and only those
/// that matter.
const CMDLINE: &str = "console=hvc0 quiet";

/// RAM of a guest. The root file system lives in it; what a guest never touches
/// costs nothing.
const RAM_BYTES: u32 = 256 << 20;

/// What runs before the snapshot, so that its files and pages are warm.
const WARM_UP: [&[&str]; 2] = [&["/bin/echo", "ready"], &["python3", "-c", "print(6*7)"]];

/// The code that decides about the snapshot, besides its parts.
const RECIPE: [&str; 3] = [
    include_str!("../vm/snapshot.rs"),
    include_str!("../vm/guest.rs"),
    include_str!("../vm/instance.rs"),
];

/// Room for the module, in bytes.
const MODULE_ROOM: u64 = 200_000_000;

/// Room for the compiled module, which has holes where memory is zero.
const CODE_ROOM: u64 = 300_000_000;

/// Boots the guest and saves it.
#[derive(Debug)]
pub struct Snapshot<'a> {
    /// Runs it.
    pub engine: &'a Engine,
    /// The kernel's result.
    pub kernel: &'a Entry,
    /// The root file system's.
    pub root_files: &'a Entry,
    /// The emulator's.
    pub emulator: &'a Entry,
}

impl Step for Snapshot<'_> {
    fn name(&self) -> &'static str {
        "snapshot"
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        inputs.content("recipe", RECIPE.concat().as_bytes());
        inputs.value("command line", CMDLINE);
        inputs.value("memory", RAM_BYTES.to_string());
        inputs.value("warm-up", format!("{WARM_UP:?}"));
        inputs.value("kernel", self.kernel.content());
        inputs.value("root file system", self.root_files.content());
        inputs.value("emulator", self.emulator.content());
        Ok(())
    }

    fn room(&self) -> u64 {
        MODULE_ROOM
    }

    fn run(&self, site: &mut Site<'_>, out: &Path) -> Result<(), ImageError> {
        let read = |entry: &Entry, name: &str| {
            let path = entry.path(name);
            fs::read(&path).at(&path)
        };
        let kernel = read(self.kernel, kernel::IMAGE)?;
        let initrd = read(self.root_files, rootfs::ARCHIVE)?;
        let emulator = read(self.emulator, EMULATOR.result)?;
        let boot = Boot {
            kernel: &kernel,
            initrd: &initrd,
            cmdline: CMDLINE,
            ram_bytes: RAM_BYTES,
        };
        site.detail("booting the guest");
        let (module, figures) = vm::snapshot(self.engine, &emulator, &boot, &WARM_UP)
            .map_err(|error| failed("snapshot", error))?;
        site.detail(&format!(
            "booted in {:.2} s, warm after {:.2} s, {} MiB zeroed, {:.1} MB saved",
            figures.boot.as_secs_f64(),
            figures.warm_up.as_secs_f64(),
            figures.zeroed >> 20,
            module.len() as f64 / 1e6,
        ));
        let path = out.join(MODULE);
        fs::write(&path, &module).at(&path)
    }
}

/// Compiles the module for this machine's processor and this wasmtime.
#[derive(Debug)]
pub struct Precompiled<'a> {
    /// Will run it.
    pub engine: &'a Engine,
    /// The module's result.
    pub snapshot: &'a Entry,
}

impl Step for Precompiled<'_> {
    fn name(&self) -> &'static str {
        "precompiled"
    }

    fn inputs(&self, inputs: &mut Inputs) -> Result<(), ImageError> {
        inputs.value("engine", vm::compatibility(self.engine));
        inputs.value("snapshot", self.snapshot.content());
        Ok(())
    }

    fn room(&self) -> u64 {
        CODE_ROOM
    }

    fn run(&self, _site: &mut Site<'_>, out: &Path) -> Result<(), ImageError> {
        let path = self.snapshot.path(MODULE);
        let module = fs::read(&path).at(&path)?;
        vm::write(self.engine, &module, &out.join(CODE))
            .map(drop)
            .map_err(|error| failed("precompiled", error))
    }
}

/// A failure of the guest as one of the build.
pub(super) fn failed(step: &str, error: VmError) -> ImageError {
    let code = match error.code {
        VmCode::Io => ErrorCode::Io,
        _ => ErrorCode::StepFailed,
    };
    ImageError::new(code, step, error.to_string())
}
