//! Path calls, all of them beneath a mount.

use super::abi::{Answer, Errno, Memory, SYMLINK_FOLLOW};
use super::io::{filestat, timestamps};
use super::state::{Descriptor, Host};
use crate::files::{Directory, How, Opened};

/// Bytes of a folder, or of a link's target, on usual file systems.
const BLOCK_BYTES: usize = 4096;

impl Host {
    /// Creates an entry charged to the budget.
    fn charged<T>(
        &self,
        directory: &Directory,
        path: &[u8],
        more: usize,
        make: impl FnOnce() -> Answer<T>,
    ) -> Answer<T> {
        match directory.is_read_only() {
            true => make(),
            false => self.spent.charge(path, more, make),
        }
    }

    pub(super) fn path_create_directory(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        path: u32,
        len: u32,
    ) -> Answer {
        let path = memory.path(path, len)?;
        let directory = self.directory(fd)?;
        self.charged(directory, &path, BLOCK_BYTES, || {
            directory.make_directory(&path)
        })
    }

    pub(super) fn path_filestat_get(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        lookup: u32,
        path: u32,
        len: u32,
        result: u32,
    ) -> Answer {
        let path = memory.path(path, len)?;
        let stat = self
            .directory(fd)?
            .stat(&path, lookup & SYMLINK_FOLLOW != 0)?;
        memory.put(result, &filestat(&stat))
    }

    #[expect(clippy::too_many_arguments, reason = "preview1's")]
    pub(super) fn path_filestat_set_times(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        lookup: u32,
        path: u32,
        len: u32,
        atim: u64,
        mtim: u64,
        flags: u32,
    ) -> Answer {
        let path = memory.path(path, len)?;
        let times = timestamps(atim, mtim, flags)?;
        let follow = lookup & SYMLINK_FOLLOW != 0;
        self.directory(fd)?.set_times(&path, follow, &times)
    }

    #[expect(clippy::too_many_arguments, reason = "preview1's")]
    pub(super) fn path_link(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        _lookup: u32,
        path: u32,
        len: u32,
        to: u32,
        new: u32,
        new_len: u32,
    ) -> Answer {
        let (path, new) = (memory.path(path, len)?, memory.path(new, new_len)?);
        let to = self.directory(to)?;
        let make = || self.directory(fd)?.link(&path, to, &new);
        self.charged(to, &new, 0, make)
    }

    #[expect(clippy::too_many_arguments, reason = "preview1's")]
    pub(super) fn path_open(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        lookup: u32,
        path: u32,
        len: u32,
        oflags: u32,
        rights: u64,
        _inheriting: u64,
        flags: u32,
        result: u32,
    ) -> Answer {
        let path = memory.path(path, len)?;
        // Checks the result's address before any file is created.
        memory.slice(result, 4)?;
        let how = How {
            follow: lookup & SYMLINK_FOLLOW != 0,
            oflags: u16::try_from(oflags).map_err(|_| Errno::Inval)?,
            rights,
            fdflags: u16::try_from(flags).map_err(|_| Errno::Inval)?,
        };
        let directory = self.directory(fd)?;
        let is_new = how.creates() && directory.stat(&path, false).is_err();
        let opened = match is_new {
            true => self.charged(directory, &path, 0, || directory.open(&path, how))?,
            false => directory.open(&path, how)?,
        };
        let opened = match opened {
            Opened::File(file) => Descriptor::File(file, how.fdflags),
            Opened::Directory(directory) => Descriptor::Directory(directory),
        };
        let number = self.insert(opened)?;
        memory.put_u32(result, number)
    }

    #[expect(clippy::too_many_arguments, reason = "preview1's")]
    pub(super) fn path_readlink(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        path: u32,
        len: u32,
        buffer: u32,
        buffer_len: u32,
        result: u32,
    ) -> Answer {
        let path = memory.path(path, len)?;
        let target = self.directory(fd)?.read_link(&path)?;
        // Truncated if necessary, as in POSIX.
        let fits = target.len().min(buffer_len as usize);
        memory.put(buffer, &target[..fits])?;
        memory.put_u32(result, fits as u32)
    }

    pub(super) fn path_remove_directory(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        path: u32,
        len: u32,
    ) -> Answer {
        let path = memory.path(path, len)?;
        self.directory(fd)?.remove(&path, true)?;
        self.spent.removed(&path, BLOCK_BYTES);
        Ok(())
    }

    pub(super) fn path_unlink_file(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        path: u32,
        len: u32,
    ) -> Answer {
        let path = memory.path(path, len)?;
        self.directory(fd)?.remove(&path, false)?;
        self.spent.removed(&path, 0);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "preview1's")]
    pub(super) fn path_rename(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        path: u32,
        len: u32,
        to: u32,
        new: u32,
        new_len: u32,
    ) -> Answer {
        let (path, new) = (memory.path(path, len)?, memory.path(new, new_len)?);
        self.directory(fd)?.rename(&path, self.directory(to)?, &new)
    }

    pub(super) fn path_symlink(
        &mut self,
        memory: &mut Memory<'_>,
        target: u32,
        target_len: u32,
        fd: u32,
        path: u32,
        len: u32,
    ) -> Answer {
        let target = memory.slice(target, target_len)?.to_vec();
        if target.contains(&0) {
            return Err(Errno::Ilseq);
        }
        let path = memory.path(path, len)?;
        let directory = self.directory(fd)?;
        self.charged(directory, &path, BLOCK_BYTES, || {
            directory.symlink(&target, &path)
        })
    }
}
