//! Open, read and write requests.

use super::Server;
use super::descriptors::CountedFd;
use super::fid::{Fid, OpenFile};
use super::host::{Node, contained};
use super::wire::{READ_OVERHEAD, Reader, Writer};
use rustix::fs::{FileType, Mode, OFlags, fdatasync, fsync, openat2};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::AsFd;
use std::sync::Arc;

/// Flags of `Tlopen` and `Tlcreate` (`P9_DOTL_*` in Linux `9p.h`).
pub(super) mod flag {
    pub(crate) const ACCESS: u32 = 0o3;
    pub(crate) const READ_ONLY: u32 = 0o0;
    pub(crate) const WRITE_ONLY: u32 = 0o1;
    pub(crate) const READ_WRITE: u32 = 0o2;
    pub(crate) const EXCLUSIVE: u32 = 0o200;
    pub(crate) const TRUNCATE: u32 = 0o1000;
    pub(crate) const DATA_SYNC: u32 = 0o10000;
    pub(crate) const DIRECTORY: u32 = 0o200000;
    pub(crate) const SYNC: u32 = 0o4000000;
}

/// Mode bits allowed for new files: not setuid and setgid.
pub(super) const PLAIN_MODE: u32 = 0o1777;

/// Maps the guest's open flags to the host's.
///
/// Append is dropped: each write carries its offset. Linux writes pages of its cache back
/// through any file that is open for writing, and with append the host would put them at
/// the end. Access times and direct I/O are the host's choice.
///
/// # Errors
/// `EINVAL` for an invalid access mode.
pub(super) fn host_flags(flags: u32) -> Result<OFlags, Errno> {
    let mut host = match flags & flag::ACCESS {
        flag::READ_ONLY if flags & flag::TRUNCATE != 0 => OFlags::RDWR,
        flag::READ_ONLY => OFlags::RDONLY,
        flag::WRITE_ONLY => OFlags::WRONLY,
        flag::READ_WRITE => OFlags::RDWR,
        _ => return Err(Errno::INVAL),
    };
    host.set(OFlags::TRUNC, flags & flag::TRUNCATE != 0);
    host.set(OFlags::DSYNC, flags & flag::DATA_SYNC != 0);
    host.set(OFlags::SYNC, flags & flag::SYNC == flag::SYNC);
    Ok(host)
}

/// Whether these flags can change the file.
pub(super) fn writes(flags: u32) -> bool {
    flags & flag::ACCESS != flag::READ_ONLY || flags & flag::TRUNCATE != 0
}

impl Server {
    pub(super) fn lopen(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, flags) = (r.u32()?, r.u32()?);
        if matches!(self.fids.get(fid)?, Fid::Root) {
            if writes(flags) {
                return Err(Errno::ISDIR);
            }
            w.qid(super::ROOT_QID);
            w.u32(0);
            return Ok(());
        }
        let file = self.file(fid)?;
        if file.open.is_some() {
            return Err(Errno::BADF);
        }
        self.fids.check_open()?;
        let node = file.node.clone();
        let open = self.open_node(&node, flags)?;
        // Read after opening, which may have truncated the file.
        let qid = node.qid()?;
        self.fids.set_open(fid, node, open)?;
        w.qid(qid);
        // I/O unit 0: only the message size limits reads and writes.
        w.u32(0);
        Ok(())
    }

    /// Opens a file with the guest's flags, within the rights of its mount.
    pub(super) fn open_node(&self, node: &Node, flags: u32) -> Result<OpenFile, Errno> {
        let mut host_flags = host_flags(flags)?;
        if node.kind == FileType::Directory {
            if writes(flags) {
                return Err(Errno::ISDIR);
            }
            host_flags |= OFlags::DIRECTORY;
        } else if flags & flag::DIRECTORY != 0 {
            return Err(Errno::NOTDIR);
        }
        if writes(flags) {
            self.check_change(node)?;
            refuse_privileged(node)?;
        }
        let before = match flags & flag::TRUNCATE != 0 {
            true => Some(node.stat()?),
            false => None,
        };
        let file = self.host.reopen(node, host_flags)?;
        if let Some(before) = before {
            self.spent(node).changed(&before, &node.stat()?);
        }
        Ok(OpenFile {
            file: Arc::new(file),
            flags: flags & !flag::TRUNCATE,
            position: None,
        })
    }

    pub(super) fn lcreate(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, name, flags) = (r.u32()?, r.name()?, r.u32()?);
        let (mode, _gid) = (r.u32()?, r.u32()?);
        if self.file(fid)?.open.is_some() {
            return Err(Errno::BADF);
        }
        self.fids.check_open()?;
        let dir = self.writable_dir(fid)?;
        let lock = self.check_new_entry(dir, name)?;
        let (node, open) = match self.create(dir, name, flags, mode) {
            Err(Errno::EXIST) if flags & flag::EXCLUSIVE == 0 => {
                let node = self.host.step(dir, name)?;
                let open = self.open_node(&node, flags)?;
                (node, open)
            }
            created => created?,
        };
        drop(lock);
        let qid = node.qid()?;
        self.fids.set_open(fid, node, open)?;
        w.qid(qid);
        w.u32(0);
        Ok(())
    }

    /// Creates a regular file exclusively, so that no existing file of unknown type is
    /// opened.
    pub(super) fn create(
        &self,
        dir: &Node,
        name: &[u8],
        flags: u32,
        mode: u32,
    ) -> Result<(Node, OpenFile), Errno> {
        let create = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let access = host_flags(flags)? - OFlags::TRUNC;
        let plain = Mode::from_raw_mode(mode & PLAIN_MODE);
        let permit = self.host.permit()?;
        let file = self.spent(dir).make(dir, name, 0, || {
            openat2(dir, name, access | create, plain, contained())
        })?;
        self.apply_mode(file.as_fd(), mode)?;
        // Refers to the new file itself, even if its name changes meanwhile.
        let file = Arc::new(CountedFd::new(file, permit));
        let node = Node::of(dir.mount, Arc::clone(&file))?;
        let open = OpenFile {
            file,
            flags: flags & !(flag::TRUNCATE | flag::EXCLUSIVE),
            position: None,
        };
        Ok((node, open))
    }

    pub(super) fn read(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, offset, count) = (r.u32()?, r.u64()?, r.u32()?);
        let count = (count as usize).min(self.msize - READ_OVERHEAD);
        match self.fids.get(fid)? {
            Fid::XattrRead(value) => {
                let start = usize::try_from(offset).map_or(value.len(), |at| at.min(value.len()));
                let end = (start + count).min(value.len());
                w.u32((end - start) as u32);
                w.bytes(&value[start..end]);
                Ok(())
            }
            Fid::Root => Err(Errno::ISDIR),
            _ => {
                let open = self.file(fid)?.opened()?;
                check_range(offset, count)?;
                w.counted(count, |place| {
                    retry(|| pread(&*open.file, &mut *place, offset))
                })
            }
        }
    }

    pub(super) fn write(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, offset, count) = (r.u32()?, r.u64()?, r.u32()?);
        let bytes = r.bytes(count as usize)?;
        if let Fid::XattrWrite(xattr) = self.fids.get_mut(fid)? {
            xattr.write(offset, bytes)?;
            w.u32(count);
            return Ok(());
        }
        let file = self.file(fid)?;
        let open = file.opened()?;
        check_range(offset, bytes.len())?;
        let spent = self.spent(&file.node);
        let write = || retry(|| pwrite(&*open.file, bytes, offset));
        let written = spent.write(&*open.file, offset, bytes.len() as u64, write)?;
        w.u32(written as u32);
        Ok(())
    }

    pub(super) fn fsync(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let fid = r.u32()?;
        // Linux before 3.0 does not send whether syncing the data is enough.
        let data_only = r.u32().unwrap_or(0) != 0;
        if matches!(self.fids.get(fid)?, Fid::Root) {
            return Ok(());
        }
        let open = self.file(fid)?.opened()?;
        if data_only {
            fdatasync(&*open.file)
        } else {
            fsync(&*open.file)
        }
    }
}

/// Refuses setuid and setgid programs: a write would run the guest's code as another user.
///
/// # Errors
/// `EPERM`.
pub(super) fn refuse_privileged(node: &Node) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(node.stat()?.st_mode);
    let group = Mode::SGID | Mode::XGRP;
    if node.kind == FileType::RegularFile && (mode.contains(Mode::SUID) || mode.contains(group)) {
        return Err(Errno::PERM);
    }
    Ok(())
}

/// Checks that a range is a valid file range.
///
/// # Errors
/// `EINVAL` if it is not.
fn check_range(offset: u64, count: usize) -> Result<(), Errno> {
    match offset.checked_add(count as u64) {
        Some(end) if i64::try_from(end).is_ok() => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

/// Retries a call that a signal interrupted; signals need no handling here.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
