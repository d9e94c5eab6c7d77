//! Lock file: a lock that a process holds until it ends, on a file that it removes then.

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;

/// A held lock. It is released when dropped, and by the kernel when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// The result of trying a lock.
#[derive(Debug)]
pub(crate) enum LockState {
    /// No process ever held it, or its last holder removed the file.
    Absent,
    /// A running process holds it.
    Held,
    Taken(Lock),
}

/// The process that holds the lock on a file, as the kernel lists it.
pub(super) fn holder(device: u64, inode: u64) -> Option<Pid> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| held(line, device, inode))
}

/// The holder in a line of `/proc/locks` (proc(5)), such as
/// `1: FLOCK  ADVISORY  WRITE 708 08:02:262146 0 EOF`, if the line is about that file.
fn held(line: &str, device: u64, inode: u64) -> Option<Pid> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // A waiting process has an arrow in the second column.
    let [_, "FLOCK", _, _, pid, file, ..] = words[..] else {
        return None;
    };
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    (file == format!("{major:02x}:{minor:02x}:{inode}"))
        .then(|| pid.parse().ok())
        .flatten()
        .and_then(Pid::from_raw)
}

/// Takes the lock on a file of a folder and writes this process's id into it; without `make` only
/// if the file exists.
pub(super) fn take(folder: BorrowedFd<'_>, file: &str, make: bool) -> std::io::Result<LockState> {
    let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, make);
    loop {
        let fd = match rustix::fs::openat(folder, file, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if !make => return Ok(LockState::Absent),
            Err(error) => return Err(error.into()),
        };
        match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(LockState::Held),
            Err(error) => return Err(error.into()),
        }
        // The previous holder may have removed the file between open and lock. A new file of that
        // name is then the lock.
        let mine = rustix::fs::fstat(&fd)?;
        match rustix::fs::statat(folder, file, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino) => {}
            Ok(_) | Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut held = File::from(fd);
        held.set_len(0)?;
        writeln!(held, "{}", std::process::id())?;
        return Ok(LockState::Taken(Lock { _file: held }));
    }
}
