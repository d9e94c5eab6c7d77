//! Rename and unlink requests.

use super::git::{GitPlace, lock_parts};
use super::host::Node;
use super::wire::Reader;
use super::{Fid, Server};
use rustix::fs::{AtFlags, FileType, renameat, unlinkat};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

/// Flag of `Tunlinkat` that removes a folder (`P9_DOTL_AT_REMOVEDIR`).
const REMOVE_FOLDER: u32 = 0x200;

impl Server {
    pub(super) fn renameat(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let (old_fid, old_name) = (r.u32()?, r.name()?);
        let (new_fid, new_name) = (r.u32()?, r.name()?);
        let old_dir = self.writable_dir(old_fid)?.clone();
        let new_dir = self.writable_dir(new_fid)?.clone();
        self.move_entry(&old_dir, old_name, &new_dir, new_name)
    }

    /// Handles the older request, which names the file by its fid.
    pub(super) fn rename(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let (fid, dir_fid, name) = (r.u32()?, r.u32()?, r.name()?);
        let new_dir = self.writable_dir(dir_fid)?.clone();
        let (old_dir, old_name) = self.entry_of(&self.file(fid)?.node)?;
        self.move_entry(&old_dir, &old_name, &new_dir, name)
    }

    fn move_entry(
        &mut self,
        old_dir: &Node,
        old_name: &[u8],
        new_dir: &Node,
        new_name: &[u8],
    ) -> Result<(), Errno> {
        if old_dir.mount != new_dir.mount {
            return Err(Errno::XDEV);
        }
        let moved = self.host.step(old_dir, old_name)?;
        let kind = moved.kind;
        let replaced = self.host.step(new_dir, new_name).ok();
        // Git creates and removes files in a git directory as it works. Folders and links
        // may not move: written elsewhere and moved in, or moved out and back, they would
        // carry protected files.
        for (dir, name) in [(old_dir, old_name), (new_dir, new_name)] {
            let refused = match self.git_place(dir, name)? {
                GitPlace::Protected | GitPlace::Dot => true,
                GitPlace::Inside => kind != FileType::RegularFile,
                GitPlace::Outside => false,
            };
            if refused {
                return Err(self.refuse_git(dir, name));
            }
        }
        let _lock = lock_parts(new_dir.as_fd(), new_name)?;
        if self.completes_git(new_dir, new_name)? {
            return Err(self.refuse_git(new_dir, new_name));
        }
        let before = new_dir.stat()?;
        renameat(old_dir, old_name, new_dir, new_name)?;
        let spent = self.spent(new_dir);
        spent.changed(&before, &new_dir.stat()?);
        match replaced {
            // Two names of one file: both stay.
            Some(replaced) if replaced.is(&moved) => {}
            replaced => {
                spent.renamed(old_name, new_name);
                if let Some(replaced) = replaced {
                    self.name_removed(&replaced, new_name);
                }
            }
        }
        Ok(())
    }

    pub(super) fn unlinkat(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let (fid, name, flags) = (r.u32()?, r.name()?, r.u32()?);
        let flags = match flags {
            0 => AtFlags::empty(),
            REMOVE_FOLDER => AtFlags::REMOVEDIR,
            _ => return Err(Errno::INVAL),
        };
        let dir = self.writable_dir(fid)?.clone();
        self.remove_entry(&dir, name, flags)
    }

    /// Handles the older request, which names the file by its fid and always clunks it.
    pub(super) fn remove(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let fid = r.u32()?;
        let removed = match self.fids.get(fid)? {
            Fid::Root => Err(Errno::ROFS),
            _ => self.remove_file(fid),
        };
        let dropped = self.drop_fid(fid);
        removed.and(dropped)
    }

    fn remove_file(&mut self, fid: u32) -> Result<(), Errno> {
        let node = &self.file(fid)?.node;
        self.check_writable(node)?;
        let flags = match node.kind {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        let (dir, name) = self.entry_of(node)?;
        self.remove_entry(&dir, &name, flags)
    }

    fn remove_entry(&mut self, dir: &Node, name: &[u8], flags: AtFlags) -> Result<(), Errno> {
        if self.git_place(dir, name)? == GitPlace::Protected {
            return Err(self.refuse_git(dir, name));
        }
        let removed = self.host.step(dir, name)?;
        unlinkat(dir, name, flags)?;
        self.name_removed(&removed, name);
        Ok(())
    }

    /// The folder that contains a file, and its name there.
    ///
    /// # Errors
    /// `EBUSY` for the root of a mount; `ENOENT` if the file is no longer there.
    fn entry_of(&self, node: &Node) -> Result<(Node, Vec<u8>), Errno> {
        let mount = &self.mounts[node.mount];
        if node.id == mount.root.id {
            return Err(Errno::BUSY);
        }
        let path = self.host.path(node)?;
        let relative = mount.relative(&self.host, &path)?;
        let (Some(above), Some(name)) = (relative.parent(), relative.file_name()) else {
            return Err(Errno::BUSY);
        };
        let dir = self.host.resolve(&mount.root, above)?;
        if self.host.step(&dir, name.as_bytes())?.id != node.id {
            return Err(Errno::NOENT);
        }
        Ok((dir, name.as_bytes().to_vec()))
    }
}
