//! Building the image that guests start from.
//!
//! Everything comes from Debian's packages, whose signatures are checked, in
//! the versions of the committed lock file. Each part is made by a step
//! ([`step::Step`]) whose result is kept in the user's cache folder by the
//! hash of all its inputs; a second build does nothing, a changed option
//! rebuilds only what follows from it. No right of an administrator is needed,
//! except to install missing tools.
//!
//! This is a library: `cargo xtask guest` and `a99 sandbox build` are two ways
//! to call [`build`].

pub mod apt;
pub mod cache;
mod command;
pub mod cpio;
pub mod digest;
pub mod elf;
pub mod error;
pub mod kernel;
pub mod licences;
pub mod lock;
pub mod packages;
pub mod progress;
pub mod rootfs;
pub mod step;
pub mod store;
mod tools;

pub use cache::{Cache, Entry};
pub use error::{ErrorCode, ImageError};
pub use progress::{Event, Progress, StepEnd};
pub use store::Versions;

use lock::LockFile;
use packages::Arch;
use std::path::PathBuf;
use store::Packages;

/// What to build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which versions of packages may be used.
    pub versions: Versions,
    /// The lock file that is read, and rewritten by [`Versions::Updated`].
    /// Without a path the one that this library was built with is used.
    pub lock_file: Option<PathBuf>,
    /// The agent's program for the guest (see [`rootfs::RootFs::agent`]).
    pub agent: Option<PathBuf>,
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The kernel: [`kernel::IMAGE`], its configuration and licences.
    pub kernel: Entry,
    /// The root file system: [`rootfs::ARCHIVE`] and licences.
    pub root_files: Entry,
}

impl Built {
    /// The results with their names, in the order of building.
    pub fn entries(&self) -> [&Entry; 2] {
        [&self.kernel, &self.root_files]
    }
}

/// Builds what is not in the cache. Waits while another process builds.
///
/// # Errors
///
/// Every failure has a stable code ([`ErrorCode`]); what was finished before
/// it stays in the cache.
pub fn build(
    cache: &Cache,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Built, ImageError> {
    let _building = cache.lock(progress)?;
    tools::ensure(progress)?;
    let lock_file = match (&options.lock_file, options.versions) {
        // A broken lock file can be rewritten.
        (_, Versions::Updated) => LockFile::empty(),
        (Some(path), _) => LockFile::parse(&error::At::at(std::fs::read_to_string(path), path)?)?,
        (None, _) => LockFile::parse(lock::COMMITTED)?,
    };
    let mut packages = Packages::open(cache, lock_file, options.versions)?;
    if options.versions == Versions::Updated {
        update(&mut packages, options, progress)?;
    }
    let root_files = rootfs::RootFs::new(options.agent.clone())?;
    let kernel = step::run(cache, &mut packages, &kernel::Kernel::default(), progress)?;
    let root_files = step::run(cache, &mut packages, &root_files, progress)?;
    Ok(Built { kernel, root_files })
}

/// Locks the current versions of everything, for each architecture that the
/// committed lock file covers.
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
        packages::compiler(Arch::Amd64),
    ];
    packages.update(&all.concat(), progress)?;
    packages.chosen().write(path)
}
