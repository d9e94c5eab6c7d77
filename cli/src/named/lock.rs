//! A lock that a process holds as long as it lives, on a file that is removed
//! at its end.

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;

/// A lock that is held; free when dropped, and when the process ends however it
/// does.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// What became of taking a lock.
#[derive(Debug)]
pub enum State {
    /// Nobody has ever held it, or its last holder removed it.
    Absent,
    /// A living process holds it.
    Held,
    /// This process holds it now.
    Taken(Lock),
}

/// Takes the lock on a file of a folder, and writes this process's number into
/// it; without `make` only if it is there.
pub(super) fn take(folder: BorrowedFd<'_>, file: &str, make: bool) -> std::io::Result<State> {
    let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, make);
    loop {
        let fd = match rustix::fs::openat(folder, file, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if !make => return Ok(State::Absent),
            Err(error) => return Err(error.into()),
        };
        match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(State::Held),
            Err(error) => return Err(error.into()),
        }
        // Its holder may have removed the file between the two steps. Then
        // another of that name may be there, which is the lock.
        let mine = rustix::fs::fstat(&fd)?;
        match rustix::fs::statat(folder, file, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino) => {}
            Ok(_) | Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut held = File::from(fd);
        held.set_len(0)?;
        writeln!(held, "{}", std::process::id())?;
        return Ok(State::Taken(Lock { _file: held }));
    }
}
