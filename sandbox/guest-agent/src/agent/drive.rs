//! Drives of the machine that get a disk when the guest starts.

use super::sys::own_files_as;
use super::world::ROOT_USER;
use rustix::fs::{FileType, Mode, makedev, mknodat};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Folder of the devices, which commands cannot enter.
const FOLDER: &str = "/var/lib/agent99";

/// How often and at which interval the kernel is asked for a disk. It learns of it by an
/// interrupt, which it handles in a thread that runs as soon as this one waits; it reports
/// no event of an empty drive that gets a disk (`set_capacity_and_notify`).
const MAX_POLLS: u32 = 20_000;
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// Waits for the disk of a drive, and makes a device of it.
///
/// # Errors
/// Those of the system, and [`io::ErrorKind::TimedOut`].
pub(super) fn attach(name: &str) -> io::Result<PathBuf> {
    let field = |field: &str| fs::read_to_string(format!("/sys/block/{name}/{field}"));
    let mut polls = 0;
    while field("size")?.trim() == "0" {
        if polls == MAX_POLLS {
            let text = format!("no disk came into {name}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        polls += 1;
        sleep(POLL_INTERVAL);
    }
    let text = field("dev")?;
    let numbers = text.trim().split_once(':');
    let numbers = numbers.and_then(|(major, minor)| major.parse().ok().zip(minor.parse().ok()));
    let (major, minor) = numbers.ok_or(io::ErrorKind::InvalidData)?;
    let device = PathBuf::from(FOLDER).join(name);
    let mode = Mode::RUSR | Mode::WUSR;
    let (here, kind) = (rustix::fs::CWD, FileType::BlockDevice);
    mknodat(here, &device, kind, mode, makedev(major, minor))?;
    Ok(device)
}

/// Runs `make` so that files created by it belong to the system.
pub(super) fn as_system<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = own_files_as((ROOT_USER, ROOT_USER));
    let made = make();
    own_files_as(before);
    made
}
