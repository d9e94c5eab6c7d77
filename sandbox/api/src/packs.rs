//! Packs: layers of the user's cache, by name.

use crate::cache::{Cache, packs};
use a99_sandbox_runner::{Layer, VmCode, VmError};

/// Opens the layers of packs.
///
/// # Errors
/// [`VmCode::NoImage`] for one that was not built.
pub(super) fn load(names: &[String]) -> Result<Vec<Layer>, VmError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let io = |error: crate::cache::ImageError| VmError::new(VmCode::Io, error.to_string());
    let cache = Cache::of_user().map_err(io)?;
    let layer = |name: &String| {
        let entry = cache.pack(name).map_err(io)?;
        let entry = entry.ok_or_else(|| missing(name))?;
        Layer::of_entry(&entry, packs::LAYER)
    };
    names.iter().map(layer).collect()
}

fn missing(name: &str) -> VmError {
    let text = format!("the pack {name} was not built: `a99 sandbox build --pack {name}`");
    VmError::new(VmCode::NoImage, text)
}
