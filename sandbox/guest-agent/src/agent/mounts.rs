//! Mounts of the host's folders in the guest.
//!
//! One 9p mount contains them all, below a root that only the agent accesses. Each is then
//! bound to its target. For `overlay` mounts, overlayfs keeps the writes in the guest's
//! memory.

use crate::protocol::{Access, Mount};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};
use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Mount point of the file server's root.
const ROOT: &str = "/run/agent99/mounts";

/// Layers of overlay mounts, a folder for each: not below `/run`, which is small.
pub(super) const OVERLAYS: &str = "/var/lib/agent99/overlay";

/// The mount tag of the virtio device.
const TAG: &str = "agent99";

/// Largest message: the limit of the kernel's transport, 125 pages. `cache=mmap`: shared
/// mappings work, and changes on the host are seen at the next open.
const OPTIONS: &std::ffi::CStr = c"trans=virtio,version=9p2000.L,msize=512000,cache=mmap";

/// Flags of every mount: no set-user-id, no devices.
const FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Present mounts.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    present: Vec<Mount>,
    root: bool,
    overlays: u32,
}

impl Mounts {
    /// Changes the mounts to exactly these. Unchanged ones stay.
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
        // Bound to a fixed name, so that special characters of its own do not matter.
        mount_bind(entry, folder.join("lower"))?;
        let folder = folder.display();
        let data = format!("lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work");
        let data = CString::new(data)?;
        Ok(mount("overlay", target, "overlay", FLAGS, &*data)?)
    }
}

/// Makes a folder or an empty file to mount over.
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

/// Writes unwritten data back to the host.
pub(super) fn write_back() {
    rustix::fs::sync();
}
