//! Descriptor calls.

use super::abi::{Answer, Errno, Memory, fdflags, filetype, fstflags, rights};
use super::state::{Descriptor, Host};
use crate::files::Directory;
use rustix::fs::{
    FallocateFlags, FileType, Mode, OFlags, RawDir, SeekFrom, Stat, Timespec, Timestamps,
    fallocate, fdatasync, fstat, fsync, ftruncate, futimens, openat, seek, tell,
};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum bytes of one transfer: a longer one is shortened, as any may be, so that a stop
/// is noticed soon.
const MAX_TRANSFER: u32 = 1 << 20;

/// Bytes of a directory that are read at once.
const DIRECTORY_BUFFER: usize = 16 << 10;

/// Size of a `dirent` without its name in bytes.
const DIRENT: usize = 24;

/// Maximum bytes of one write to the console or the emulator's error stream.
const MAX_WORDS: usize = 1 << 20;

impl Host {
    pub(super) fn fd_close(&mut self, _: &mut Memory<'_>, fd: u32) -> Answer {
        self.descriptors.remove(&fd).map(drop).ok_or(Errno::Badf)
    }

    pub(super) fn fd_renumber(&mut self, _: &mut Memory<'_>, fd: u32, to: u32) -> Answer {
        for number in [fd, to] {
            match self.descriptor(number)? {
                Descriptor::File(..) | Descriptor::Directory(_) => {}
                _ => return Err(Errno::Notsup),
            }
        }
        let moved = self.descriptors.remove(&fd).ok_or(Errno::Badf)?;
        self.descriptors.insert(to, moved);
        Ok(())
    }

    pub(super) fn fd_read(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        iovecs: u32,
        count: u32,
        result: u32,
    ) -> Answer {
        let read = match self.descriptor(fd)? {
            Descriptor::Input => self.read_input(memory, iovecs, count)?,
            Descriptor::Connection => self.receive(memory, iovecs, count, false)?,
            Descriptor::File(file, _) => {
                transfer(memory, iovecs, count, |bytes| rustix::io::read(file, bytes))?
            }
            Descriptor::Mount(_) | Descriptor::Directory(_) => return Err(Errno::Isdir),
            _ => return Err(Errno::Badf),
        };
        memory.put_u32(result, read)
    }

    /// Reads the console, which has no end: an image would exit at it.
    fn read_input(&self, memory: &mut Memory<'_>, iovecs: u32, count: u32) -> Answer<u32> {
        let mut total = 0;
        for (at, len) in memory.iovecs(iovecs, count)? {
            let len = len.min(MAX_TRANSFER);
            total += self.console.read(memory.slice_mut(at, len)?) as u32;
        }
        match total {
            0 => Err(Errno::Again),
            _ => Ok(total),
        }
    }

    pub(super) fn fd_pread(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        iovecs: u32,
        count: u32,
        offset: u64,
        result: u32,
    ) -> Answer {
        let file = self.file(fd)?;
        let mut at = offset;
        let read = transfer(memory, iovecs, count, |bytes| {
            let count = rustix::io::pread(file, bytes, at)?;
            at = at.saturating_add(count as u64);
            Ok(count)
        })?;
        memory.put_u32(result, read)
    }

    pub(super) fn fd_write(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        iovecs: u32,
        count: u32,
        result: u32,
    ) -> Answer {
        let written = match self.descriptor(fd)? {
            Descriptor::Output => {
                let bytes = gather(memory, iovecs, count)?;
                self.console.write(&bytes);
                bytes.len() as u32
            }
            Descriptor::Errors => {
                let bytes = gather(memory, iovecs, count)?;
                self.console.write_error(&bytes);
                bytes.len() as u32
            }
            Descriptor::Connection => self.transmit(memory, iovecs, count)?,
            Descriptor::File(file, _) => transfer(memory, iovecs, count, |bytes| {
                // The file determines the position; the budget assumes that all bytes are
                // added.
                let length = bytes.len() as u64;
                let write = || rustix::io::write(file, &*bytes);
                self.spent.write(file, u64::MAX, length, write)
            })?,
            Descriptor::Mount(_) | Descriptor::Directory(_) => return Err(Errno::Isdir),
            _ => return Err(Errno::Badf),
        };
        memory.put_u32(result, written)
    }

    pub(super) fn fd_pwrite(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        iovecs: u32,
        count: u32,
        offset: u64,
        result: u32,
    ) -> Answer {
        let file = self.file(fd)?;
        let mut at = offset;
        let written = transfer(memory, iovecs, count, |bytes| {
            let length = bytes.len() as u64;
            let write = || rustix::io::pwrite(file, &*bytes, at);
            let count = self.spent.write(file, at, length, write)?;
            at = at.saturating_add(count as u64);
            Ok(count)
        })?;
        memory.put_u32(result, written)
    }

    pub(super) fn fd_seek(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        offset: i64,
        whence: u32,
        result: u32,
    ) -> Answer {
        let file = self.file(fd)?;
        let from = match whence {
            0 => SeekFrom::Start(u64::try_from(offset).map_err(|_| Errno::Inval)?),
            1 => SeekFrom::Current(offset),
            2 => SeekFrom::End(offset),
            _ => return Err(Errno::Inval),
        };
        memory.put_u64(result, seek(file, from)?)
    }

    pub(super) fn fd_tell(&mut self, memory: &mut Memory<'_>, fd: u32, result: u32) -> Answer {
        memory.put_u64(result, tell(self.file(fd)?)?)
    }

    pub(super) fn fd_sync(&mut self, _: &mut Memory<'_>, fd: u32) -> Answer {
        Ok(fsync(self.on_disk(fd)?)?)
    }

    pub(super) fn fd_datasync(&mut self, _: &mut Memory<'_>, fd: u32) -> Answer {
        Ok(fdatasync(self.on_disk(fd)?)?)
    }

    /// A file or a directory of the host.
    fn on_disk(&self, fd: u32) -> Answer<BorrowedFd<'_>> {
        match self.descriptor(fd)? {
            Descriptor::File(file, _) => Ok(file.as_fd()),
            Descriptor::Mount(directory) | Descriptor::Directory(directory) => {
                Ok(directory.fd.as_fd())
            }
            _ => Err(Errno::Inval),
        }
    }

    /// Advice may be ignored.
    pub(super) fn fd_advise(
        &mut self,
        _: &mut Memory<'_>,
        fd: u32,
        _offset: u64,
        _len: u64,
        _advice: u32,
    ) -> Answer {
        self.file(fd).map(drop)
    }

    pub(super) fn fd_allocate(
        &mut self,
        _: &mut Memory<'_>,
        fd: u32,
        offset: u64,
        len: u64,
    ) -> Answer {
        let file = self.file(fd)?;
        let allocate = || fallocate(file, FallocateFlags::empty(), offset, len);
        Ok(self.spent.write(file, u64::MAX, len, allocate)?)
    }

    pub(super) fn fd_fdstat_get(&mut self, memory: &mut Memory<'_>, fd: u32, at: u32) -> Answer {
        let descriptor = self.descriptor(fd)?;
        let flags = match descriptor {
            Descriptor::File(_, flags) => *flags,
            Descriptor::Listener | Descriptor::Connection => fdflags::NONBLOCK,
            _ => 0,
        };
        let mut stat = [0; 24];
        stat[0] = descriptor.filetype();
        stat[2..4].copy_from_slice(&flags.to_le_bytes());
        stat[8..16].copy_from_slice(&rights::ALL.to_le_bytes());
        stat[16..24].copy_from_slice(&rights::ALL.to_le_bytes());
        memory.put(at, &stat)
    }

    /// Sets flags: streams never block anyway, and files can only change appending.
    pub(super) fn fd_fdstat_set_flags(
        &mut self,
        _: &mut Memory<'_>,
        fd: u32,
        flags: u32,
    ) -> Answer {
        let flags = u16::try_from(flags).map_err(|_| Errno::Inval)?;
        let Some(descriptor) = self.descriptors.get_mut(&fd) else {
            return Err(Errno::Badf);
        };
        let Descriptor::File(file, kept) = descriptor else {
            return Ok(());
        };
        let mut host = rustix::fs::fcntl_getfl(&*file)?;
        host.set(OFlags::APPEND, flags & fdflags::APPEND != 0);
        rustix::fs::fcntl_setfl(&*file, host)?;
        *kept = flags;
        Ok(())
    }

    /// The standard deprecated rights: they are ignored.
    pub(super) fn fd_fdstat_set_rights(
        &mut self,
        _: &mut Memory<'_>,
        fd: u32,
        _base: u64,
        _inheriting: u64,
    ) -> Answer {
        self.descriptor(fd).map(drop)
    }

    pub(super) fn fd_filestat_get(&mut self, memory: &mut Memory<'_>, fd: u32, at: u32) -> Answer {
        let bytes = match self.on_disk(fd) {
            Ok(file) => filestat(&fstat(file)?),
            Err(Errno::Badf) => return Err(Errno::Badf),
            Err(_) => {
                let mut bytes = [0; 64];
                bytes[16] = self.descriptor(fd)?.filetype();
                bytes
            }
        };
        memory.put(at, &bytes)
    }

    pub(super) fn fd_filestat_set_size(
        &mut self,
        _: &mut Memory<'_>,
        fd: u32,
        size: u64,
    ) -> Answer {
        let file = self.file(fd)?;
        let before = fstat(file)?;
        ftruncate(file, size)?;
        self.spent.changed(&before, &fstat(file)?);
        Ok(())
    }

    pub(super) fn fd_filestat_set_times(
        &mut self,
        _: &mut Memory<'_>,
        fd: u32,
        atim: u64,
        mtim: u64,
        flags: u32,
    ) -> Answer {
        let times = timestamps(atim, mtim, flags)?;
        match self.descriptor(fd)? {
            // A writable handle was checked when it was opened.
            Descriptor::File(file, _) => {
                let writes =
                    rustix::fs::fcntl_getfl(file)?.intersects(OFlags::RDWR | OFlags::WRONLY);
                match writes {
                    true => Ok(futimens(file, &times)?),
                    false => Err(Errno::Badf),
                }
            }
            Descriptor::Mount(directory) | Descriptor::Directory(directory) => {
                directory.check_writable()?;
                Ok(futimens(&directory.fd, &times)?)
            }
            _ => Err(Errno::Inval),
        }
    }

    /// Images try numbers from 3 on until one is not a mount; any other error would be
    /// fatal to them.
    pub(super) fn fd_prestat_get(&mut self, memory: &mut Memory<'_>, fd: u32, at: u32) -> Answer {
        let Descriptor::Mount(directory) = self.descriptor(fd)? else {
            return Err(Errno::Badf);
        };
        let len = directory.root.guest.len() as u32;
        memory.put_u32(at, 0)?;
        memory.put_u32(at.checked_add(4).ok_or(Errno::Fault)?, len)
    }

    pub(super) fn fd_prestat_dir_name(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        at: u32,
        len: u32,
    ) -> Answer {
        let Descriptor::Mount(directory) = self.descriptor(fd)? else {
            return Err(Errno::Badf);
        };
        let name = directory.root.guest.as_bytes();
        match (len as usize) < name.len() {
            true => Err(Errno::Nametoolong),
            false => memory.put(at, name),
        }
    }

    pub(super) fn fd_readdir(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        buffer: u32,
        len: u32,
        cookie: u64,
        result: u32,
    ) -> Answer {
        let directory = self.directory(fd)?;
        let buffer = memory.slice_mut(buffer, len)?;
        let used = read_directory(directory, cookie, buffer)?;
        memory.put_u32(result, used as u32)
    }
}

/// Fills a buffer with `dirent`s from a cookie on. The last one may be cut, which shows the
/// program that there are more. Cookies are the file system's own, so they stay valid while
/// entries come and go.
fn read_directory(directory: &Directory, cookie: u64, buffer: &mut [u8]) -> Answer<usize> {
    // Opened anew for a separate position.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat(&directory.fd, c".", flags, Mode::empty())?;
    if cookie > 0 {
        seek(&fd, SeekFrom::Start(cookie))?;
    }
    let mut entries = [MaybeUninit::uninit(); DIRECTORY_BUFFER];
    let mut entries = RawDir::new(&fd, &mut entries);
    let mut used = 0;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let mut dirent = [0; DIRENT];
        dirent[..8].copy_from_slice(&entry.next_entry_cookie().to_le_bytes());
        dirent[8..16].copy_from_slice(&entry.ino().to_le_bytes());
        dirent[16..20].copy_from_slice(&(name.len() as u32).to_le_bytes());
        dirent[20] = kind(entry.file_type());
        for part in [&dirent[..], name] {
            let room = &mut buffer[used..];
            let fits = part.len().min(room.len());
            room[..fits].copy_from_slice(&part[..fits]);
            used += fits;
        }
        if used == buffer.len() {
            break;
        }
    }
    Ok(used)
}

/// Converts a file type to `filetype`.
fn kind(kind: FileType) -> u8 {
    match kind {
        FileType::RegularFile => filetype::REGULAR_FILE,
        FileType::Directory => filetype::DIRECTORY,
        FileType::Symlink => filetype::SYMBOLIC_LINK,
        _ => filetype::UNKNOWN,
    }
}

/// Encodes a `filestat`.
pub(super) fn filestat(stat: &Stat) -> [u8; 64] {
    let nanoseconds = |seconds: i64, rest: u64| {
        let seconds = u64::try_from(seconds).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(rest)
    };
    let words = [
        stat.st_dev,
        stat.st_ino,
        u64::from(kind(FileType::from_raw_mode(stat.st_mode))),
        stat.st_nlink,
        stat.st_size as u64,
        nanoseconds(stat.st_atime, stat.st_atime_nsec),
        nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    ];
    let mut bytes = [0; 64];
    for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes
}

/// Decodes the times that a call sets.
pub(super) fn timestamps(atim: u64, mtim: u64, flags: u32) -> Answer<Timestamps> {
    let time = |value: u64, set: u16, now: u16| {
        let (set, now) = (flags & u32::from(set) != 0, flags & u32::from(now) != 0);
        Ok(Timespec {
            tv_sec: match set {
                true => (value / 1_000_000_000) as i64,
                false => 0,
            },
            tv_nsec: match (set, now) {
                (true, true) => return Err(Errno::Inval),
                (true, false) => (value % 1_000_000_000) as _,
                (false, true) => rustix::fs::UTIME_NOW,
                (false, false) => rustix::fs::UTIME_OMIT,
            },
        })
    };
    Ok(Timestamps {
        last_access: time(atim, fstflags::ATIM, fstflags::ATIM_NOW)?,
        last_modification: time(mtim, fstflags::MTIM, fstflags::MTIM_NOW)?,
    })
}

/// Moves bytes between a file and buffers, until a short transfer.
fn transfer(
    memory: &mut Memory<'_>,
    iovecs: u32,
    count: u32,
    mut step: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> Answer<u32> {
    let mut total = 0;
    for (at, len) in memory.iovecs(iovecs, count)? {
        let wanted = len.min(MAX_TRANSFER - total);
        let done = match step(memory.slice_mut(at, wanted)?) {
            Err(_) if total > 0 => break,
            done => done? as u32,
        };
        total += done;
        if done < len {
            break;
        }
    }
    Ok(total)
}

/// Collects the content of buffers, as much as one call takes.
fn gather(memory: &Memory<'_>, iovecs: u32, count: u32) -> Answer<Vec<u8>> {
    let mut all = Vec::new();
    for (at, len) in memory.iovecs(iovecs, count)? {
        let bytes = memory.slice(at, len)?;
        all.extend(&bytes[..bytes.len().min(MAX_WORDS - all.len())]);
    }
    Ok(all)
}
