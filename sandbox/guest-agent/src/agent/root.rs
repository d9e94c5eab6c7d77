//! The root of commands in a guest with its own disk or with layers: an overlayfs of what
//! receives the writes, the layers, and the image's root, which stays unchanged.
//!
//! It becomes the root of all processes that start afterwards.

use super::drive::{as_system, attach};
use super::mounts::OVERLAYS;
use super::{disk, world::ROOT_MODE};
use crate::protocol::Resume;
use rustix::fs::statvfs;
use rustix::mount::{MountFlags, mount, mount_bind, mount_move, mount_remount};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Mount points of what receives the writes, of the layers, and of the root before it is the
/// root. Commands cannot enter the folder.
const WRITES: &str = "/var/lib/agent99/disk";
const LAYERS: &str = "/var/lib/agent99/layers";
const ROOT: &str = "/var/lib/agent99/root";

/// Mount point of the image's disk. It is a layer too: a folder of a layer that the image's
/// root only links to the disk has the files of both.
const IMAGE_DISK: &str = "usr/lib/agent99";

/// Mounts inside the root, beside the image's disk.
const MOUNTED: [&str; 4] = ["dev", "proc", "run", "sys"];

/// Bytes that the image's root may still grow after another folder receives the writes.
const AGENTS_OWN: u64 = 1 << 20;

/// Whether the guest has another root than the image's.
pub(super) fn is_own(resume: &Resume) -> bool {
    resume.disk || resume.layers > 0
}

/// Makes the root. Processes that started before keep theirs.
///
/// # Errors
/// Those of the system.
pub(super) fn set_up(resume: &Resume) -> io::Result<()> {
    as_system(|| make(resume))
}

fn make(resume: &Resume) -> io::Result<()> {
    for folder in [WRITES, ROOT] {
        fs::create_dir_all(folder)?;
    }
    match resume.disk {
        true => disk::mount_at(WRITES)?,
        false => mount_memory()?,
    }
    let writes = Path::new(WRITES);
    for folder in ["overlays", "upper", "work"] {
        fs::create_dir(writes.join(folder))?;
    }
    // The root's own mode is that of the folder with the writes.
    let mode = fs::Permissions::from_mode(ROOT_MODE);
    fs::set_permissions(writes.join("upper"), mode)?;
    let mut lower = mount_layers(resume.layers)?;
    if !resume.replace_root {
        lower.extend([format!("/{IMAGE_DISK}"), "/".to_owned()]);
    }
    let lower = lower.join(":");
    let options = format!("lowerdir={lower},upperdir={WRITES}/upper,workdir={WRITES}/work");
    let options = CString::new(options)?;
    mount("overlay", ROOT, "overlay", MountFlags::NODEV, &*options)?;
    // Overlay mounts keep their layers where the writes go: the root is an overlayfs, which
    // cannot hold layers.
    let overlays = Path::new(ROOT).join(OVERLAYS.trim_start_matches('/'));
    fs::create_dir_all(&overlays)?;
    mount_bind(writes.join("overlays"), overlays)?;
    for path in MOUNTED {
        move_to_root(path)?;
    }
    if !resume.replace_root {
        move_to_root(IMAGE_DISK)?;
    }
    let cwd = std::env::current_dir();
    std::env::set_current_dir(ROOT)?;
    mount_move(".", "/")?;
    rustix::process::chroot(".")?;
    // Another image may not have the folder.
    std::env::set_current_dir(cwd.unwrap_or_else(|_| "/".into()))
        .or_else(|_| std::env::set_current_dir("/"))
}

/// Mounts a folder in memory with the room that is left in the image's root, which needs it
/// no longer.
fn mount_memory() -> io::Result<()> {
    let state = statvfs("/")?;
    let (all, free) = (state.f_blocks, state.f_bavail);
    let bytes = |blocks: u64| blocks.saturating_mul(state.f_frsize);
    let options = CString::new(format!("mode=755,size={}", bytes(free)))?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("writes", WRITES, "tmpfs", flags, &*options)?;
    let kept = bytes(all.saturating_sub(free)).saturating_add(AGENTS_OWN);
    let options = CString::new(format!("size={kept}"))?;
    Ok(mount_remount("/", MountFlags::empty(), &*options)?)
}

/// Mounts the layers; returns their folders, the first layer first.
fn mount_layers(count: u8) -> io::Result<Vec<String>> {
    let flags = MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID;
    let mut folders = Vec::new();
    // Their drives come after that of the guest's own disk.
    for (number, letter) in (0..count).zip(b'c'..=b'z') {
        let device = attach(&format!("vd{}", char::from(letter)))?;
        let folder = format!("{LAYERS}/{number}");
        fs::create_dir_all(&folder)?;
        mount(&device, &folder, "erofs", flags, c"")?;
        folders.push(folder);
    }
    Ok(folders)
}

fn move_to_root(path: &str) -> io::Result<()> {
    let to = Path::new(ROOT).join(path);
    fs::create_dir_all(&to)?;
    Ok(mount_move(Path::new("/").join(path), to)?)
}
