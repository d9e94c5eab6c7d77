//! Create requests: folders, symbolic links, files, hard links, with exact modes.

use super::data::PLAIN_MODE;
use super::git::{GitPlace, lock_parts};
use super::host::Node;
use super::wire::{MAX_TARGET_BYTES, Reader, Writer};
use super::{Fid, Server};
use rustix::fs::{AtFlags, FileType, Mode, chmodat, fstat, linkat, mkdirat, readlinkat, symlinkat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// File type bits of a mode (`S_IFMT`), and the one type that a guest can create with
/// `Tmknod`.
const KIND_BITS: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

impl Server {
    /// Checks that an entry may be created here: not a file that the host's git executes,
    /// not `.git`, and not the entry that would complete a git directory. The caller holds
    /// the returned lock until the entry exists.
    ///
    /// # Errors
    /// `EPERM`; `EBUSY`, see [`lock_parts`].
    pub(super) fn check_new_entry(
        &self,
        dir: &Node,
        name: &[u8],
    ) -> Result<(GitPlace, Option<OwnedFd>), Errno> {
        let place = self.git_place(dir, name)?;
        let lock = lock_parts(dir.as_fd(), name)?;
        let refused = matches!(place, GitPlace::Protected | GitPlace::Dot);
        match refused || self.completes_git(dir, name)? {
            true => Err(self.refuse_git(dir, name)),
            false => Ok((place, lock)),
        }
    }

    /// Sets the exact permissions that the guest asked for, regardless of this process's
    /// umask. The guest has applied its own.
    pub(super) fn apply_mode(&self, fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
        let wanted = mode & PLAIN_MODE;
        let found = fstat(fd)?.st_mode;
        if found & PLAIN_MODE == wanted {
            return Ok(());
        }
        // A folder inherits setgid from its parent.
        let kept = Mode::from_raw_mode(found) & Mode::SGID;
        let (folder, name) = self.host.handle(fd);
        let mode = Mode::from_raw_mode(wanted) | kept;
        chmodat(folder, name, mode, AtFlags::empty())
    }

    pub(super) fn mkdir(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, name, mode) = (r.u32()?, r.name()?, r.u32()?);
        let dir = self.writable_dir(fid)?;
        let _lock = self.check_new_entry(dir, name)?;
        let plain = Mode::from_raw_mode(mode & PLAIN_MODE);
        let spent = self.spent(dir);
        spent.make(dir, name, 0, || mkdirat(dir, name, plain))?;
        let node = self.host.step(dir, name)?;
        // Another process may have put a link there meanwhile.
        if node.kind == FileType::Directory {
            spent.took(&node.stat()?);
            self.apply_mode(node.as_fd(), mode)?;
        }
        w.qid(node.qid()?);
        Ok(())
    }

    pub(super) fn symlink(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, name, target) = (r.u32()?, r.name()?, r.string()?);
        if target.len() > MAX_TARGET_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        if target.contains(&0) {
            return Err(Errno::INVAL);
        }
        let dir = self.writable_dir(fid)?;
        // A link in a git directory would let another folder pass for a part of it.
        let (place, _lock) = self.check_new_entry(dir, name)?;
        if place != GitPlace::Outside {
            return Err(self.refuse_git(dir, name));
        }
        let make = || symlinkat(target, dir, name);
        self.spent(dir).make(dir, name, target.len(), make)?;
        let node = self.host.step(dir, name)?;
        // Another process may have put a file there meanwhile.
        if node.kind == FileType::Symlink {
            self.spent(dir).took(&node.stat()?);
        }
        w.qid(node.qid()?);
        Ok(())
    }

    /// Handles `Tmknod` for regular files only: devices, FIFOs and sockets would be the
    /// host's.
    pub(super) fn mknod(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, name, mode) = (r.u32()?, r.name()?, r.u32()?);
        let dir = self.writable_dir(fid)?;
        if !matches!(mode & KIND_BITS, 0 | REGULAR) {
            return Err(Errno::PERM);
        }
        let _lock = self.check_new_entry(dir, name)?;
        let (node, _closed) = self.create(dir, name, super::data::flag::WRITE_ONLY, mode)?;
        w.qid(node.qid()?);
        Ok(())
    }

    pub(super) fn link(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let (dir_fid, fid, name) = (r.u32()?, r.u32()?, r.name()?);
        let dir = self.writable_dir(dir_fid)?;
        let node = &self.file(fid)?.node;
        if node.mount != dir.mount {
            return Err(Errno::XDEV);
        }
        if !matches!(node.kind, FileType::RegularFile | FileType::Symlink) {
            return Err(Errno::PERM);
        }
        // A second name must not make a protected file writable.
        self.check_change(node)?;
        let (place, _lock) = self.check_new_entry(dir, name)?;
        if node.kind != FileType::RegularFile && place != GitPlace::Outside {
            return Err(self.refuse_git(dir, name));
        }
        let (folder, number) = self.host.handle(node.as_fd());
        let make = || linkat(folder, &number, dir, name, AtFlags::SYMLINK_FOLLOW);
        self.spent(dir).make(dir, name, 0, make)
    }

    pub(super) fn readlink(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let fid = r.u32()?;
        if matches!(self.fids.get(fid)?, Fid::Root) {
            return Err(Errno::INVAL);
        }
        let node = &self.file(fid)?.node;
        if node.kind != FileType::Symlink {
            return Err(Errno::INVAL);
        }
        w.string(readlinkat(node, "", Vec::new())?.as_bytes());
        Ok(())
    }
}
