//! Image that sandboxes start from: found in the cache and loaded.

use super::code_store::CodeStore;
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

/// A loaded image, from which any number of guests start.
#[derive(Clone, Debug)]
pub struct Image {
    linked: Linked,
    /// Name that saved guests refer to.
    name: String,
    /// Folder of the cache that holds the image.
    home: PathBuf,
}

/// The image that this process used last, with its file, so that the next start loads
/// nothing.
static LAST: Mutex<Option<(PathBuf, Image)>> = Mutex::new(None);

impl Image {
    /// Loads the image that was built last; recompiles it for another wasmtime or
    /// processor, which takes a second.
    ///
    /// # Errors
    /// [`VmCode::NoImage`] if none was built, and those of [`load`].
    pub fn current(cache: &Cache, progress: &mut dyn Progress) -> Result<Self, VmError> {
        let failed = |error: ImageError| VmError::new(VmCode::Io, error.to_string());
        if let Some(entry) = cache.current("module").map_err(failed)? {
            match Self::open(cache, &entry.path(MODULE), is_foreign(cache)) {
                Err(error) if error.code == VmCode::Module => {}
                image => return image,
            }
        }
        let machine = WasmMachine::new()?;
        let entry = recompile(cache, &machine, progress).map_err(failed)?;
        let entry = entry.ok_or_else(|| {
            let text = "there is no image of the guest: `a99 sandbox build` builds one, \
                        `a99 sandbox image import FILE` takes a packed one";
            VmError::new(VmCode::NoImage, text)
        })?;
        Self::open(cache, &entry.path(MODULE), is_foreign(cache))
    }

    /// Loads the image in a file of the cache that [`write`](super::write) made, unless it
    /// was the last one used.
    ///
    /// # Errors
    /// Those of [`load`].
    pub fn at(cache: &Cache, path: &Path) -> Result<Self, VmError> {
        Self::open(cache, path, false)
    }

    fn open(cache: &Cache, path: &Path, foreign: bool) -> Result<Self, VmError> {
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
        let engine = match foreign {
            true => guarded_engine()?,
            false => engine()?,
        };
        let module = load(&engine, path, &key)?;
        let linked = Linked::new(&module, disk(path, &key)?)?;
        let linked = linked.keep_code(CodeStore::new(cache.root(), key));
        let home = cache.root().to_owned();
        let image = Self { linked, name, home };
        *last() = Some((path.to_owned(), image.clone()));
        Ok(image)
    }

    /// Base of saved guests.
    pub(super) fn base(&self) -> Base {
        Base {
            linked: self.linked.clone(),
            name: self.name.clone(),
        }
    }

    /// Name that saved guests refer to.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Folder of the cache that holds the image.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Counts of guest code compiled so far.
    pub fn translations(&self) -> Translations {
        self.linked.translations()
    }

    /// The module, ready to be instantiated.
    pub(super) fn module(&self) -> &Linked {
        &self.linked
    }
}

/// Whether the cache's image was imported and its hash is not trusted.
fn is_foreign(cache: &Cache) -> bool {
    let snapshot = cache.current("snapshot");
    snapshot.is_ok_and(|snapshot| snapshot.is_some_and(|entry| portable::is_foreign(&entry)))
}
