//! Checks of a sandbox's options.

use crate::cache;
use crate::p9::{self, Mount};
use a99_sandbox_runner::{MAX_LAYERS, VmCode, VmError};
use std::path::{Component, PathBuf};

/// Minimum memory limit of a command: enough for a small Python to report that its memory
/// is too small.
const MIN_MEMORY: u64 = 1 << 20;

/// Checks a memory limit of a command: a limit above the guest's memory would have no
/// effect.
pub(super) fn check_memory(limit: Option<u64>, most: u64) -> Result<(), VmError> {
    match limit {
        Some(bytes) if bytes < MIN_MEMORY => {
            bad(format!("{bytes} bytes of memory: at least {MIN_MEMORY}"))
        }
        Some(bytes) if bytes > most => bad(format!(
            "{bytes} bytes of memory for a command: the whole guest has {most}"
        )),
        _ => Ok(()),
    }
}

/// Refuses an option.
pub(super) fn bad(text: impl Into<String>) -> Result<(), VmError> {
    Err(VmError::new(VmCode::BadOption, text))
}

/// Checks that the guest can have a mount at that path.
pub(super) fn check_mount(mount: &Mount) -> Result<(), VmError> {
    let path = &mount.guest;
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if path.is_absolute() && path.parent().is_some() && path.components().all(is_plain) {
        return Ok(());
    }
    bad(format!(
        "mount at {}: it must be an absolute path below /, without ..",
        path.display()
    ))
}

/// Checks that no mount exposes Agent99's own folders.
pub(super) fn check_own(mounts: &[Mount], more: &[PathBuf]) -> Result<(), VmError> {
    let caches = cache::user_folders();
    let checked = p9::check_mounts(mounts, more, caches);
    checked.map_err(|error| VmError::new(VmCode::Mount, error.to_string()))
}

/// Checks that a snapshot belongs to this image.
pub(super) fn check_image(saved: &str, image: &str) -> Result<(), VmError> {
    if saved == image && !image.is_empty() {
        return Ok(());
    }
    let text = format!("the saved guest is one of image {saved:?}, and this one is {image:?}");
    Err(VmError::new(VmCode::Saved, text))
}

/// Checks the number of layers.
pub(super) fn check_layers(count: usize, replaces: bool) -> Result<(), VmError> {
    if count > MAX_LAYERS {
        return bad(format!("{count} layers: {MAX_LAYERS} are allowed"));
    }
    if count == 0 && replaces {
        return bad("another root: it needs a layer");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_counted() {
        for (count, replaces) in [(9, false), (0, true)] {
            let error = check_layers(count, replaces).unwrap_err();
            assert_eq!(error.code, VmCode::BadOption, "{count} {replaces}");
        }
        assert_eq!(check_layers(8, true), Ok(()));
        assert_eq!(check_layers(0, false), Ok(()));
    }

    #[test]
    fn a_saved_guest_fits_only_its_image() {
        assert_eq!(check_image("a", "a"), Ok(()));
        for (saved, image) in [("a", "b"), ("", ""), ("a", "")] {
            assert_eq!(check_image(saved, image).unwrap_err().code, VmCode::Saved);
        }
    }
}
