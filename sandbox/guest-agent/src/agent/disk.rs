//! The guest's own disk, which receives all writes instead of memory. It comes empty, and
//! the agent formats it.

use super::drive;
use rustix::mount::{MountFlags, mount};
use std::ffi::CStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Drive of the disk.
const DRIVE: &str = "vdb";

/// Formatting program, on the image's disk.
const FORMAT: &str = "/usr/lib/agent99/usr/bin/mke2fs";

/// No journal: a disk that its guest does not outlive is never recovered. Tables are not
/// zeroed: the disk is new, and reads as zeros where it was not written.
const FORMAT_OPTIONS: [&str; 12] = [
    "-F",
    "-q",
    "-t",
    "ext4",
    "-O",
    "none,dir_index,dir_nlink,ext_attr,extent,extra_isize,filetype,flex_bg,huge_file,\
     large_file,sparse_super,uninit_bg",
    "-E",
    "lazy_itable_init=1,nodiscard,root_owner=0:0",
    "-I256",
    "-b4096",
    "-i16384",
    "-m0",
];

/// The host gets the blocks of removed files back; tables are zero already.
const OPTIONS: &CStr = c"discard,noinit_itable";

/// Formats the disk, and mounts it.
///
/// # Errors
/// Those of the system.
pub(super) fn mount_at(place: &str) -> io::Result<()> {
    let device = drive::attach(DRIVE)?;
    format(&device)?;
    Ok(mount(&device, place, "ext4", MountFlags::NODEV, OPTIONS)?)
}

fn format(device: &Path) -> io::Result<()> {
    let mut command = Command::new(FORMAT);
    command.args(FORMAT_OPTIONS).arg(device).env_clear();
    let made = command.stdin(Stdio::null()).output()?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    Err(io::Error::other(format!("mke2fs: {} {said}", made.status)))
}
