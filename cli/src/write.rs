//! Atomic file writes: a whole file or none, and never over an input.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Access to a new file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The system's defaults (umask).
    All,
    /// Only its owner (mode 0600 on Unix).
    Owner,
}

/// Options of a file that must not exist yet.
fn new_file(access: Access) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if access == Access::Owner {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = access;
    options
}

pub(crate) fn create(path: &Path, bytes: &[u8], access: Access) -> Result<(), Failure> {
    let failed = |error| Failure::of_file(&path.display().to_string(), path, &error);
    let file = new_file(access).open(path).map_err(failed)?;
    fill(file, bytes).map_err(|error| {
        // Remove a partial file.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

/// Replaces a file in one step, unless the target is one of these inputs or no regular file.
/// Follows a link.
pub(crate) fn replace<'a>(
    path: &Path,
    bytes: &[u8],
    mut inputs: impl Iterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let name = path.display().to_string();
    let real = path.canonicalize().ok();
    let target = real.clone().unwrap_or_else(|| path.to_path_buf());
    if real.is_some() && inputs.any(|input| input.canonicalize().ok() == real) {
        let help = "name another file to write to";
        return Err(Failure::advised(&name, "would overwrite an input", help));
    }
    if real.is_some() && !target.is_file() {
        let what = match target.is_dir() {
            true => "is a folder, not a file",
            false => "is no ordinary file",
        };
        let help = match target.is_dir() {
            true => format!("name a file in it, as in `{}`", path.join("FILE").display()),
            false => "name an ordinary file".to_owned(),
        };
        return Err(Failure::advised(&name, what, help));
    }
    let failed = |error| Failure::of_file(&name, path, &error);
    let beside = beside(&target);
    let file = new_file(Access::All).open(&beside).map_err(failed)?;
    let written = fill(file, bytes).and_then(|()| fs::rename(&beside, &target));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// A file under a temporary name, which is removed when this is dropped before
/// [`Partial::keep`].
#[cfg(feature = "sandbox")]
pub(crate) struct Partial {
    beside: PathBuf,
    target: PathBuf,
    is_kept: bool,
}

#[cfg(feature = "sandbox")]
impl Partial {
    /// Creates the file beside its target. Follows a link.
    pub(crate) fn new(path: &Path, access: Access) -> io::Result<(Self, File)> {
        let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if target.exists() && !target.is_file() {
            return Err(io::Error::other("it is no ordinary file"));
        }
        let beside = beside(&target);
        let file = new_file(access).open(&beside)?;
        let partial = Self {
            beside,
            target,
            is_kept: false,
        };
        Ok((partial, file))
    }

    /// Gives the file its name, and replaces what had that name.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        fs::rename(&self.beside, &self.target)?;
        self.is_kept = true;
        Ok(())
    }
}

#[cfg(feature = "sandbox")]
impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_kept {
            // It is only a leftover.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// A temporary name in the same folder, so that the rename is atomic.
fn beside(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}.partial", std::process::id()))
}

fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
