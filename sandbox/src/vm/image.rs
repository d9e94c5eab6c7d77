//! The guest that sandboxes start from, found in the cache and loaded.

use super::engine::engine;
use super::error::{VmCode, VmError};
use super::instance::Linked;
use super::machine::WasmMachine;
use super::precompiled::load;
use super::translator::Translations;
use crate::image::machine::MODULE;
use crate::image::{self, Cache, Progress};
use std::path::Path;

/// A guest, loaded once and started any number of times.
#[derive(Clone, Debug)]
pub struct Image {
    linked: Linked,
}

impl Image {
    /// The last one that was built. One for another wasmtime or processor is
    /// compiled again, which takes a second.
    ///
    /// # Errors
    /// [`VmCode::NoImage`] if none was built, and those of [`load`].
    pub fn current(cache: &Cache, progress: &mut dyn Progress) -> Result<Self, VmError> {
        let failed = |error: image::ImageError| VmError::new(VmCode::Io, error.to_string());
        let machine = WasmMachine::new()?;
        let engine = machine.engine();
        if let Some(entry) = cache.current("module").map_err(failed)? {
            match load(engine, &entry.path(MODULE)) {
                Err(error) if error.code == VmCode::Module => {}
                module => return Self::linked(&module?),
            }
        }
        let entry = image::recompile(cache, &machine, progress).map_err(failed)?;
        let entry = entry.ok_or_else(|| {
            let text = "no image of the guest was built yet: `a99 sandbox build` does that";
            VmError::new(VmCode::NoImage, text)
        })?;
        Self::linked(&load(engine, &entry.path(MODULE))?)
    }

    /// The one in a file that [`write`](super::write) made.
    ///
    /// # Errors
    /// Those of [`load`].
    pub fn at(path: &Path) -> Result<Self, VmError> {
        Self::linked(&load(&engine()?, path)?)
    }

    fn linked(module: &wasmtime::Module) -> Result<Self, VmError> {
        let linked = Linked::new(module)?;
        Ok(Self { linked })
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
