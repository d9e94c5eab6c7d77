//! Reserved folders, which no guest may see: the cache, whose files are run as machine
//! code, with the key that authenticates them; and the folder of the sockets of named
//! sandboxes.
//!
//! Folders are compared by device and inode number, up from each end, so that neither
//! symbolic links nor second mounts of the host hide one.

use super::host::Identity;
use super::mount::{Mount, MountCode, MountError, MountMode};
use rustix::fs::{CWD, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Maximum depth of a folder that is followed up to the root.
const MAX_DEPTH: usize = 4096;

/// Folder of the sockets of a user's sandboxes: `$XDG_RUNTIME_DIR/agent99`, or
/// `agent99-UID` in the folder for temporary files.
pub fn runtime_folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime {
        // The specification requires ignoring a relative one.
        Some(folder) if folder.is_absolute() => folder.join("agent99"),
        _ => temporary_runtime_folder(),
    }
}

fn temporary_runtime_folder() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("agent99-{user}"))
}

/// Checks that mounts expose none of Agent99's own folders: those that this user's
/// sandboxes use or may have used, and `more`. The first of `caches` is the user's cache;
/// the others are its possible earlier places.
///
/// # Errors
/// [`MountCode::OwnFolder`], and those of opening.
pub fn check_mounts<'a>(
    mounts: impl IntoIterator<Item = &'a Mount>,
    more: &[PathBuf],
    caches: impl IntoIterator<Item = PathBuf>,
) -> Result<(), MountError> {
    let mut used = vec![runtime_folder()];
    used.extend(more.iter().cloned());
    let mut known = vec![temporary_runtime_folder()];
    let mut caches = caches.into_iter();
    used.extend(caches.next());
    known.extend(caches);
    for mount in mounts {
        check(mount, &used, &known)?;
    }
    Ok(())
}

fn check(mount: &Mount, used: &[PathBuf], known: &[PathBuf]) -> Result<(), MountError> {
    let failed = |errno| MountError {
        code: MountCode::Unreadable,
        path: mount.host.clone(),
        errno: Some(errno),
    };
    let root = open(&mount.host, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
    let id = Identity::of(&fstat(&root).map_err(failed)?);
    let around = folders_above(root).map_err(failed)?;
    let writes = mount.mode == MountMode::ReadWrite;
    for (folder, is_used) in used
        .iter()
        .map(|f| (f, true))
        .chain(known.iter().map(|f| (f, false)))
    {
        let Some((there, whole)) = nearest(folder) else {
            continue;
        };
        let Ok(own) = fstat(&there).map(|stat| Identity::of(&stat)) else {
            continue;
        };
        // A guest with write access could create a missing folder.
        let counts = whole || (is_used && writes);
        let covers = folders_above(there).map_err(failed)?.contains(&id);
        if (whole && around.contains(&own)) || (counts && covers) {
            return Err(MountError {
                code: MountCode::OwnFolder(folder.clone()),
                path: mount.host.clone(),
                errno: None,
            });
        }
    }
    Ok(())
}

/// Opens a folder, or its nearest existing ancestor; returns whether it is the folder
/// itself.
fn nearest(folder: &Path) -> Option<(OwnedFd, bool)> {
    let folder = std::path::absolute(folder).ok()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for (up, path) in folder.ancestors().enumerate() {
        if let Ok(open) = open(path, flags, Mode::empty()) {
            return Some((open, up == 0));
        }
    }
    None
}

/// A folder and all its ancestors up to the root; for a file, the folders that contain it.
fn folders_above(start: OwnedFd) -> Result<Vec<Identity>, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = match openat(&start, ".", flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOTDIR) => {
            let link = format!("/proc/self/fd/{}", start.as_fd().as_raw_fd());
            let path = rustix::fs::readlinkat(CWD, link, Vec::new())?.into_bytes();
            let path = PathBuf::from(
                <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(path),
            );
            open(
                path.parent().unwrap_or(Path::new("/")),
                flags,
                Mode::empty(),
            )?
        }
        Err(errno) => return Err(errno),
    };
    let mut found = Vec::new();
    for _ in 0..MAX_DEPTH {
        let id = Identity::of(&fstat(&at)?);
        if found.last() == Some(&id) {
            break;
        }
        found.push(id);
        at = match openat(&at, "..", flags, Mode::empty()) {
            Ok(above) => above,
            // No process of this user can see further up from here.
            Err(Errno::ACCESS) => break,
            Err(errno) => return Err(errno),
        };
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn s1_mounts_around_at_and_below_our_folders_are_refused() {
        let top = tempfile::tempdir().expect("a folder");
        let at = |path: &str| top.path().join(path);
        fs::create_dir_all(at("home/cache/image/steps")).expect("made");
        fs::create_dir_all(at("home/project")).expect("made");
        fs::write(at("home/cache/image/key"), "k").expect("written");
        fs::write(at("home/file"), "k").expect("written");
        symlink(at("home/cache"), at("link")).expect("linked");
        symlink("home", at("around")).expect("linked");
        let used = [at("home/cache"), at("run/agent99")];
        let refused = |path: &str, mode| {
            let mount = Mount::new("/m", at(path), mode);
            match check(&mount, &used, &[]) {
                Ok(()) => false,
                Err(error) => {
                    assert!(matches!(error.code, MountCode::OwnFolder(_)), "{error}");
                    true
                }
            }
        };
        for mode in [
            MountMode::ReadOnly,
            MountMode::ReadWrite,
            MountMode::Overlay,
        ] {
            for path in [
                "home",
                "home/cache",
                "home/cache/image",
                "home/cache/image/steps",
                "home/cache/image/key",
                "home/project/..",
                "link",
                "link/image/steps",
                "around",
            ] {
                assert!(refused(path, mode), "{path} {mode:?}");
            }
            for path in ["home/project", "home/file"] {
                assert!(!refused(path, mode), "{path} {mode:?}");
            }
        }
        // A link's path is that of the folder that contains it.
        let mut through = used.clone();
        through[0] = at("link");
        let mount = Mount::new("/m", at("home"), MountMode::ReadOnly);
        assert!(check(&mount, &through, &[]).is_err());
        // A missing folder: a guest with write access could create it.
        let top_of = |mode| Mount::new("/m", top.path().join("."), mode);
        let only = [at("run/agent99")];
        assert!(check(&top_of(MountMode::ReadWrite), &only, &[]).is_err());
        assert!(check(&top_of(MountMode::ReadOnly), &only, &[]).is_ok());
        assert!(check(&top_of(MountMode::ReadWrite), &[], &only).is_ok());
    }
}
