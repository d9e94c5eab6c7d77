//! Unfinished file of a copy: it gets its name when it is complete.
//!
//! Until then it is unnamed where the file system supports that, so that even a killed
//! process leaves no trace of it. Elsewhere it has a temporary name, and dropping it
//! removes it.

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;

/// Maximum temporary names tried, one for each copy into a folder at a time.
const MAX_TEMPORARY: u32 = 1000;

/// Mode of an unfinished file: only its owner may read it.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file that is being filled.
#[derive(Debug)]
pub(super) struct Unfinished<'a> {
    parent: BorrowedFd<'a>,
    file: File,
    /// Temporary name, where the file system needs one.
    temporary: Option<CString>,
}

impl<'a> Unfinished<'a> {
    /// Creates an unfinished file in a folder.
    pub(super) fn new(parent: BorrowedFd<'a>) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(fd) = rustix::fs::openat(parent, ".", flags | OFlags::TMPFILE, PRIVATE) {
            return Ok(Self {
                parent,
                file: File::from(fd),
                temporary: None,
            });
        }
        // Some file systems support no unnamed files; any other cause fails again here.
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let (fd, name) = with_free_name(|name| rustix::fs::openat(parent, name, flags, PRIVATE))?;
        Ok(Self {
            parent,
            file: File::from(fd),
            temporary: Some(name),
        })
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Names the file, replacing an existing file of that name.
    pub(super) fn finish(mut self, name: &CStr) -> io::Result<()> {
        if self.temporary.is_none() {
            match self.link(name) {
                Err(Errno::EXIST) => {}
                linked => return Ok(linked?),
            }
            let ((), temporary) = with_free_name(|name| self.link(name))?;
            self.temporary = Some(temporary);
        }
        if let Some(temporary) = &self.temporary {
            rustix::fs::renameat(self.parent, temporary, self.parent, name)?;
            self.temporary = None;
        }
        Ok(())
    }

    fn link(&self, name: &CStr) -> Result<(), Errno> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, own, self.parent, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            let _ = rustix::fs::unlinkat(self.parent, name, AtFlags::empty());
        }
    }
}

/// Calls `make` with temporary names until one is free.
fn with_free_name<T>(make: impl Fn(&CStr) -> Result<T, Errno>) -> io::Result<(T, CString)> {
    let own = std::process::id();
    for number in 0..MAX_TEMPORARY {
        let name = CString::new(format!(".a99-copy-{own}-{number}"))?;
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            // Belongs to another copy that runs now, or was killed.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}
