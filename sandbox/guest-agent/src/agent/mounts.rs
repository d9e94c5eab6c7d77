//! Mounts of the host's folders in the guest.
//!
//! One 9p mount shows them all, below a root that only the agent looks at. Each
//! is then bound to its target. What `overlay` mounts take is kept by overlayfs
//! in the guest's memory.

use crate::protocol::{Access, Mount};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where the file server's root is mounted.
const ROOT: &str = "/run/agent99/mounts";

/// What overlay mounts need, a folder for each: not below `/run`, which is
/// small.
pub(super) const OVERLAYS: &str = "/var/lib/agent99/overlay";

/// The mount tag of the virtio device.
const TAG: &str = "agent99";

/// Largest message: what the kernel's transport takes, 125 pages.
/// `cache=mmap`: shared mappings work, and changes of the host are seen at the
/// next open.
const OPTIONS: &std::ffi::CStr = c"trans=virtio,version=9p2000.L,msize=512000,cache=mmap";

/// What every mount has: no rights by set-user-id, no devices.
const FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// What is mounted.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    present: Vec<Mount>,
    root: bool,
    overlays: u32,
}

impl Mounts {
    /// Mounts these and no others. What is mounted already stays.
    pub(super) fn set(&mut self, wanted: &[Mount]) -> io::Result<()> {
        while let Some(old) = self.present.pop_if(|mount| !wanted.contains(mount)) {
            unmount(OsStr::from_bytes(&old.path), UnmountFlags::DETACH)?;
        }
        for mount in wanted {
            if !self.present.contains(mount) {
                let path = String::from_utf8_lossy(&mount.path).into_owned();
                self.add(mount)
                    .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
                self.present.push(mount.clone());
            }
        }
        Ok(())
    }

    fn add(&mut self, wanted: &Mount) -> io::Result<()> {
        if !self.root {
            fs::create_dir_all(ROOT)?;
            mount(TAG, ROOT, "9p", FLAGS, OPTIONS)?;
            self.root = true;
        }
        let entry = Path::new(ROOT).join(OsStr::from_bytes(&wanted.entry));
        let target = Path::new(OsStr::from_bytes(&wanted.path));
        make_mount_point(target, fs::metadata(&entry)?.is_dir())?;
        match wanted.access {
            Access::ReadWrite => Ok(mount_bind(&entry, target)?),
            Access::ReadOnly => {
                mount_bind(&entry, target)?;
                let flags = FLAGS | MountFlags::BIND | MountFlags::RDONLY;
                Ok(mount_remount(target, flags, "")?)
            }
            Access::Overlay => self.overlay(&entry, target),
        }
    }

    fn overlay(&mut self, entry: &Path, target: &Path) -> io::Result<()> {
        self.overlays += 1;
        let folder: PathBuf = Path::new(OVERLAYS).join(self.overlays.to_string());
        for part in ["lower", "upper", "work"] {
            fs::create_dir_all(folder.join(part))?;
        }
        // Bound, so that no character of its name means something below.
        mount_bind(entry, folder.join("lower"))?;
        let folder = folder.display();
        let data = format!("lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work");
        let data = CString::new(data)?;
        Ok(mount("overlay", target, "overlay", FLAGS, &*data)?)
    }
}

/// A folder or an empty file to mount over.
fn make_mount_point(target: &Path, folder: bool) -> io::Result<()> {
    if folder {
        return fs::create_dir_all(target);
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    let opened = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(target);
    opened.map(drop)
}

/// Writes back what the host has not got yet.
pub(super) fn write_back() {
    rustix::fs::sync();
}
