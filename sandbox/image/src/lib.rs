//! Image builder: builds the images that guests start from, out of Debian's packages.
//!
//! Packages are verified by Debian's signatures, and have the versions of the committed
//! lock file. Each part is made by a step ([`step::Step`]), whose result is kept in the
//! user's cache folder by the hash of all its inputs. A second build does nothing; a
//! changed option rebuilds only its dependents. No administrator rights are needed, except
//! to install missing tools.
//!
//! [`a99_sandbox_cache`] has everything to use a finished image; this crate re-exports its
//! names. This is a library: `cargo xtask guest` and `a99 sandbox build` are two ways to
//! call [`build`].

#![warn(unreachable_pub)]

pub mod apt;
mod command;
pub mod cpio;
pub mod crates;
pub mod doctor;
pub mod elf;
pub mod kernel;
pub mod licences;
pub mod lock;
pub mod packages;
pub mod packs;
pub mod rootfs;
pub mod snapshot;
pub mod step;
pub mod store;
mod tools;

pub use a99_sandbox_cache::{
    Cache, Entry, ErrorCode, Event, ImageError, Progress, SealKey, StepEnd, cache, digest, entry,
    error, machine, module, portable, progress, recompile, seal,
};
pub use store::Versions;

use crates::{AGENT, CrateBuild, EMULATOR, Recipe};
use lock::LockFile;
use machine::Machine;
use module::Precompile;
use packages::Arch;
use snapshot::Snapshot;
use std::fs;
use std::path::PathBuf;
use step::Step;
use store::Packages;

/// Options of a build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which package versions may be used.
    pub versions: Versions,
    /// Lock file to read, and to rewrite with [`Versions::Updated`]; defaults to the one
    /// that this library was built with.
    pub lock_file: Option<PathBuf>,
    /// Clone of the project, whose emulator and agent are built. Without it the image has
    /// no agent and no emulator.
    pub sources: Option<PathBuf>,
}

impl Options {
    /// Loads the lock file in effect.
    fn lock(&self) -> Result<LockFile, ImageError> {
        match (&self.lock_file, self.versions) {
            // A broken lock file can be rewritten.
            (_, Versions::Updated) => Ok(LockFile::empty()),
            (Some(path), _) => LockFile::parse(&error::At::at(fs::read_to_string(path), path)?),
            (None, _) => LockFile::parse(lock::COMMITTED),
        }
    }
}

/// Results of a build.
#[derive(Clone, Debug)]
pub struct Built {
    /// Kernel: [`kernel::IMAGE`], its configuration and licences.
    pub kernel: Entry,
    /// Root file system: [`rootfs::ARCHIVE`] and licences.
    pub root_files: Entry,
    /// Emulator as a WebAssembly module, if the sources were given.
    pub emulator: Option<Entry>,
    /// Portable snapshot ([`machine::SNAPSHOT`]) and module compiled for this processor
    /// ([`machine::MODULE`]), if a machine was given.
    pub guest: Option<[Entry; 2]>,
}

impl Built {
    /// Iterates over the results in build order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        let parts = [&self.kernel, &self.root_files].into_iter();
        parts
            .chain(&self.emulator)
            .chain(self.guest.iter().flatten())
    }
}

/// Builds everything that is not in the cache, after waiting for any other builder.
///
/// Without a machine the parts are built, but no guest is booted.
///
/// # Errors
///
/// Every failure has a stable code ([`ErrorCode`]); results finished before it stay in the
/// cache.
pub fn build(
    cache: &Cache,
    options: &Options,
    machine: Option<&dyn Machine>,
    progress: &mut dyn Progress,
) -> Result<Built, ImageError> {
    let _building = cache.lock(progress)?;
    tools::ensure(progress)?;
    let mut packages = Packages::open(cache, options.lock()?, options.versions)?;
    if options.versions == Versions::Updated {
        update(&mut packages, options, progress)?;
    }
    let replaced = packages.replaced();
    if !replaced.is_empty() {
        let list = replaced.join(", ");
        progress::note(progress, format!("not as in the lock file: {list}"));
    }
    let mut make = |packages: &mut Packages<'_>, step: &dyn Step| {
        // In build order.
        step::run(cache, packages, step, progress)
    };
    let built = each_step(cache, &mut packages, options, machine, &mut make)?;
    cache.set_current(built.entries())?;
    Ok(built)
}

/// Finds the results that a build with these options would return, without building,
/// fetching or waiting.
///
/// # Errors
///
/// [`ErrorCode::NotBuilt`] names the first step without a result.
pub fn find_built(
    cache: &Cache,
    options: &Options,
    machine: Option<&dyn Machine>,
) -> Result<Built, ImageError> {
    let mut packages = Packages::open(cache, options.lock()?, options.versions)?;
    let mut find = |packages: &mut Packages<'_>, step: &dyn Step| {
        let found = step::find(cache, packages, step)?;
        found.ok_or_else(|| {
            let reason = "has no result of these sources and settings";
            ImageError::new(ErrorCode::NotBuilt, step.name(), reason)
        })
    };
    each_step(cache, &mut packages, options, machine, &mut find)
}

/// Passes each step, in build order, to a callback that returns its result.
fn each_step(
    cache: &Cache,
    packages: &mut Packages<'_>,
    options: &Options,
    machine: Option<&dyn Machine>,
    result: &mut dyn FnMut(&mut Packages<'_>, &dyn Step) -> Result<Entry, ImageError>,
) -> Result<Built, ImageError> {
    let kernel = result(packages, &kernel::Kernel::default())?;
    let mut program = |recipe: &'static Recipe| -> Result<Option<Entry>, ImageError> {
        let Some(sources) = options.sources.as_deref().filter(|s| recipe.is_in(s)) else {
            return Ok(None);
        };
        let step = CrateBuild::new(recipe, sources, &cache.folder("cargo")?);
        result(packages, &step).map(Some)
    };
    let agent = program(&AGENT)?.map(|agent| agent.path(AGENT.result));
    let emulator = program(&EMULATOR)?;
    let root_files = result(packages, &rootfs::RootFs::new(agent)?)?;
    let guest = match (machine, &emulator) {
        (None, _) => None,
        (Some(_), None) => return Err(no_sources()),
        (Some(machine), Some(emulator)) => {
            let snapshot = Snapshot {
                machine,
                emulator,
                kernel: &kernel,
                root_files: &root_files,
            };
            let snapshot = result(packages, &snapshot)?;
            let key = cache.key()?;
            let module = Precompile {
                machine,
                key: &key,
                snapshot: &snapshot,
            };
            let module = result(packages, &module)?;
            Some([snapshot, module])
        }
    };
    Ok(Built {
        kernel,
        root_files,
        emulator,
        guest,
    })
}

fn no_sources() -> ImageError {
    ImageError::new(
        ErrorCode::NoSources,
        "emulator",
        "its sources are not here, and a guest cannot be booted without it",
    )
    .help("build in a clone of the project, or name one: `a99 sandbox build --sources DIR`")
}

/// Locks the current versions of all packages, for each architecture that the committed
/// lock file covers.
fn update(
    packages: &mut Packages<'_>,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<(), ImageError> {
    let path = options.lock_file.as_ref().ok_or_else(|| {
        ImageError::new(
            ErrorCode::Lock,
            "lock file",
            "there is none that could be rewritten",
        )
        .help("updating is done in a clone of the project")
    })?;
    let all = [
        packages::kernel(),
        packages::root_files(),
        packages::disk_files(),
        packages::compiler(Arch::Amd64),
    ];
    packages.update(&all.concat(), progress)?;
    packages.chosen().write(path)
}
