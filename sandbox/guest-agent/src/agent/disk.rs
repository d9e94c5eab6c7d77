//! The guest's own disk: it receives all writes instead of memory.
//!
//! The disk comes empty. The agent formats it and mounts it as the upper layer of an
//! overlayfs over the root file system, which stays unchanged in memory. The overlay
//! becomes the root of all processes that start afterwards.

use super::mounts::OVERLAYS;
use super::sys::own_files_as;
use super::world::USER;
use rustix::fs::{FileType, Mode, makedev, mknodat};
use rustix::mount::{MountFlags, mount, mount_bind, mount_move};
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The disk, in a folder of the agent: commands have no name for it.
const DEVICE: &str = "/var/lib/agent99/vdb";

/// Size and device numbers of the disk, from the kernel.
const SIZE: &str = "/sys/block/vdb/size";
const NUMBERS: &str = "/sys/block/vdb/dev";

/// User id of the administrator.
const ROOT_USER: u32 = 0;

/// How often and at which interval the kernel is polled for the disk: it learns of it by an
/// interrupt, which it handles in a separate thread.
const MAX_POLLS: u32 = 2000;
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Formatting program, on the image's disk.
const FORMAT: &str = "/usr/lib/agent99/usr/bin/mke2fs";

/// No journal: a disk that its guest does not outlive is never recovered. Tables are not
/// zeroed: the disk is new, and reads as zeros where it was not written.
const FORMAT_OPTIONS: [&str; 13] = [
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
    DEVICE,
];

/// The host gets the blocks of removed files back; tables are zero already.
const OPTIONS: &CStr = c"discard,noinit_itable";

/// Mount points of the disk, and of both layers together before they become the root.
const DISK: &str = "/var/lib/agent99/disk";
const ROOT: &str = "/var/lib/agent99/root";

/// Mounts inside the root.
const MOUNTED: [&str; 5] = ["dev", "proc", "run", "sys", "usr/lib/agent99"];

/// Makes the disk the target of all writes. Processes that started before keep their root.
pub(super) fn set_up() -> io::Result<()> {
    // Files created here belong to the system.
    own_files_as(ROOT_USER);
    let made = make();
    own_files_as(USER);
    made
}

fn make() -> io::Result<()> {
    wait()?;
    make_device()?;
    format()?;
    for folder in [DISK, ROOT] {
        fs::create_dir_all(folder)?;
    }
    mount(DEVICE, DISK, "ext4", MountFlags::NODEV, OPTIONS)?;
    let disk = Path::new(DISK);
    for folder in ["overlays", "upper", "work"] {
        fs::create_dir(disk.join(folder))?;
    }
    let layers = format!("lowerdir=/,upperdir={DISK}/upper,workdir={DISK}/work");
    let layers = CString::new(layers)?;
    mount("overlay", ROOT, "overlay", MountFlags::NODEV, &*layers)?;
    // Overlay mounts keep their layers on the disk itself: the root is an overlayfs, which
    // cannot hold layers.
    let overlays = Path::new(ROOT).join(OVERLAYS.trim_start_matches('/'));
    fs::create_dir_all(&overlays)?;
    mount_bind(disk.join("overlays"), overlays)?;
    for path in MOUNTED {
        mount_move(Path::new("/").join(path), Path::new(ROOT).join(path))?;
    }
    let cwd = std::env::current_dir();
    std::env::set_current_dir(ROOT)?;
    mount_move(".", "/")?;
    rustix::process::chroot(".")?;
    std::env::set_current_dir(cwd.unwrap_or_else(|_| "/".into()))
}

fn wait() -> io::Result<()> {
    for _ in 0..MAX_POLLS {
        if fs::read_to_string(SIZE)?.trim() != "0" {
            return Ok(());
        }
        sleep(POLL_INTERVAL);
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "it did not come"))
}

fn make_device() -> io::Result<()> {
    let text = fs::read_to_string(NUMBERS)?;
    let numbers = text.trim().split_once(':');
    let numbers = numbers.and_then(|(major, minor)| major.parse().ok().zip(minor.parse().ok()));
    let (major, minor) = numbers.ok_or(io::ErrorKind::InvalidData)?;
    let mode = Mode::RUSR | Mode::WUSR;
    let here = rustix::fs::CWD;
    Ok(mknodat(
        here,
        DEVICE,
        FileType::BlockDevice,
        mode,
        makedev(major, minor),
    )?)
}

fn format() -> io::Result<()> {
    let mut command = Command::new(FORMAT);
    command.args(FORMAT_OPTIONS).env_clear();
    let made = command.stdin(Stdio::null()).output()?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    Err(io::Error::other(format!("mke2fs: {} {said}", made.status)))
}
