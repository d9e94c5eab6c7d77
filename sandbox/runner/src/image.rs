//! Image that sandboxes start from, found in the cache and loaded.

use super::engine::{engine, guarded_engine};
use super::error::{VmCode, VmError};
use super::event_loop::Base;
use super::instance::Linked;
use super::machine::WasmMachine;
use super::precompiled::{disk, load, source};
use super::translator::Translations;
use a99_sandbox_cache::machine::MODULE;
use a99_sandbox_cache::{Cache, ErrorCode, ImageError, Progress, portable, recompile};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A guest, loaded once and started any number of times.
#[derive(Clone, Debug)]
pub struct Image {
    linked: Linked,
    /// What saved guests know it by.
    name: String,
    /// The cache that it lies in.
    home: PathBuf,
}

/// The image that was used last in this process, with its file: another start
/// from it loads nothing.
static LAST: Mutex<Option<(PathBuf, Image)>> = Mutex::new(None);

impl Image {
    /// The last one that was built. One for another wasmtime or processor is
    /// compiled again, which takes a second.
    ///
    /// # Errors
    /// [`VmCode::NoImage`] if none was built, and those of [`load`].
    pub fn current(cache: &Cache, progress: &mut dyn Progress) -> Result<Self, VmError> {
        let failed = |error: ImageError| VmError::new(VmCode::Io, error.to_string());
        if let Some(entry) = cache.current("module").map_err(failed)? {
            match Self::open(cache, &entry.path(MODULE), is_imported(cache)) {
                Err(error) if error.code == VmCode::Module => {}
                image => return image,
            }
        }
        let machine = WasmMachine::new()?;
        let entry = recompile(cache, &machine, progress).map_err(failed)?;
        let entry = entry.ok_or_else(|| {
            let text = "no image of the guest was built yet: `a99 sandbox build` does that";
            VmError::new(VmCode::NoImage, text)
        })?;
        Self::open(cache, &entry.path(MODULE), is_imported(cache))
    }

    /// The one in a file of the cache that [`write`](super::write) made. The one
    /// that was used last is not loaded again.
    ///
    /// # Errors
    /// Those of [`load`].
    pub fn at(cache: &Cache, path: &Path) -> Result<Self, VmError> {
        Self::open(cache, path, false)
    }

    fn open(cache: &Cache, path: &Path, imported: bool) -> Result<Self, VmError> {
        let key = cache.key().map_err(|error| {
            let code = match error.code {
                ErrorCode::UntrustedCache => VmCode::UntrustedImage,
                _ => VmCode::Io,
            };
            VmError::new(code, error.to_string())
        })?;
        let name = source(path, &key)?;
        let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((used, image)) = &*last()
            && used == path
            && image.name == name
        {
            return Ok(image.clone());
        }
        let engine = match imported {
            true => guarded_engine()?,
            false => engine()?,
        };
        let module = load(&engine, path, &key)?;
        let linked = Linked::new(&module, disk(path, &key)?)?;
        let home = cache.root().to_owned();
        let image = Self { linked, name, home };
        *last() = Some((path.to_owned(), image.clone()));
        Ok(image)
    }

    /// What guests are saved against.
    pub(super) fn base(&self) -> Base {
        Base {
            linked: self.linked.clone(),
            name: self.name.clone(),
        }
    }

    /// What saved guests know it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cache that it lies in.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// What was compiled of the hot code of its guests so far.
    pub fn translations(&self) -> Translations {
        self.linked.translations()
    }

    /// The module, ready to be instantiated.
    pub(super) fn module(&self) -> &Linked {
        &self.linked
    }
}

/// Whether the image of a cache came out of a file: then it may be made to do
/// harm.
fn is_imported(cache: &Cache) -> bool {
    let snapshot = cache.current("snapshot");
    snapshot.is_ok_and(|snapshot| snapshot.is_some_and(|entry| portable::is_imported(&entry)))
}
