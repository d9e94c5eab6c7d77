//! Packs: layers of the user's cache, by name.

use super::checks::bad;
use crate::cache::{Cache, ImageError, packs};
use a99_sandbox_runner::{Layer, MAX_LAYERS, VmCode, VmError};

/// Opens the layers of packs, and puts those that are open already below them.
///
/// # Errors
/// [`VmCode::NoImage`] for one that was not built.
pub(super) fn load(names: &[String], more: Vec<Layer>) -> Result<Vec<Layer>, VmError> {
    if names.is_empty() {
        return Ok(more);
    }
    let cache = Cache::of_user().map_err(io)?;
    let layer = |name: &String| open(&cache, name)?.ok_or_else(|| missing(name));
    let layers: Result<Vec<Layer>, VmError> = names.iter().map(layer).collect();
    Ok([layers?, more].concat())
}

/// Finds the layers of a copy by their hashes, among those that its caller named and the
/// user's packs.
///
/// # Errors
/// [`VmCode::BadOption`] for a named one that the original had not; [`VmCode::Saved`] if one
/// is not there.
pub(super) fn of_copy(hashes: &[String], named: Vec<Layer>) -> Result<Vec<Layer>, VmError> {
    if named
        .iter()
        .any(|layer| !hashes.iter().any(|hash| hash == layer.sha256()))
    {
        bad("a pack or layer that the saved sandbox has not")?;
    }
    let mut there = named;
    if hashes.len() > there.len() {
        let cache = Cache::of_user().map_err(io)?;
        for name in cache.packs() {
            there.extend(open(&cache, &name)?);
        }
    }
    let find = |hash: &String| {
        let found = there.iter().find(|layer| layer.sha256() == hash);
        found.cloned().ok_or_else(|| lost(hash))
    };
    match hashes.len() > MAX_LAYERS {
        true => Err(VmError::new(
            VmCode::Saved,
            "the saved sandbox has too many layers",
        )),
        false => hashes.iter().map(find).collect(),
    }
}

fn open(cache: &Cache, name: &str) -> Result<Option<Layer>, VmError> {
    let entry = cache.pack(name).map_err(io)?;
    let layer = entry.map(|entry| Layer::of_entry(&entry, packs::LAYER));
    layer.transpose()
}

fn io(error: ImageError) -> VmError {
    VmError::new(VmCode::Io, error.to_string())
}

fn missing(name: &str) -> VmError {
    let text = format!(
        "the pack {name} was not built: `a99 sandbox build --pack {name}` builds it, or \
         `a99 sandbox build --with PACKAGES --as {name}` a pack of your own"
    );
    VmError::new(VmCode::NoImage, text)
}

fn lost(hash: &str) -> VmError {
    let text = format!(
        "the saved sandbox has the layer {hash}, which is neither a pack nor a container image \
         of this cache: add the image again (`a99 sandbox image add`), build the pack as it was, \
         or name the layer"
    );
    VmError::new(VmCode::Saved, text)
}
