//! Walk requests: from folders to their files.

use super::fid::{Fid, File};
use super::host::Node;
use super::mount::OpenMount;
use super::wire::{MAX_WALK_NAMES, Reader, Writer};
use super::{ROOT_QID, Server};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::path::Path;

impl Server {
    /// Walks as far as possible. Only a complete walk creates the new fid, and only a
    /// failure of its first step is an error.
    pub(super) fn walk(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, new_fid, count) = (r.u32()?, r.u32()?, r.u16()?);
        if count > MAX_WALK_NAMES {
            return Err(Errno::INVAL);
        }
        if new_fid != fid && self.fids.contains(new_fid) {
            return Err(Errno::BADF);
        }
        let mut at = self.start(fid)?;
        let start = w.len();
        w.u16(0);
        let mut walked = 0;
        for _ in 0..count {
            let name = r.string()?;
            match self.step(at.as_ref(), name).and_then(|next| {
                let qid = next.as_ref().map_or(Ok(ROOT_QID), Node::qid)?;
                Ok((next, qid))
            }) {
                Ok((next, qid)) => {
                    w.qid(qid);
                    at = next;
                    walked += 1;
                }
                Err(errno) if walked == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        w.patch_u16(start, walked);
        if walked == count {
            if new_fid == fid {
                self.drop_fid(fid)?;
            }
            self.fids.insert(new_fid, closed(at))?;
        }
        Ok(())
    }

    /// Walks one step and returns the attributes of the file there. The new fid may be one
    /// that is not open, which is replaced, except on error.
    pub(super) fn walkattr(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, new_fid, name) = (r.u32()?, r.u32()?, r.string()?);
        let start = self.start(fid)?;
        let found = self.step(start.as_ref(), name)?;
        self.write_attributes(found.as_ref(), w)?;
        self.fids.put(new_fid, closed(found))
    }

    /// Start of a walk from `fid`; `None` is the root of all mounts.
    fn start(&self, fid: u32) -> Result<Option<Node>, Errno> {
        match self.fids.get(fid)? {
            Fid::Root => Ok(None),
            Fid::File(file) => Ok(Some(file.node.clone())),
            _ => Err(Errno::BADF),
        }
    }

    /// The file `name` in folder `at`; `None` is the root of all mounts.
    fn step(&self, at: Option<&Node>, name: &[u8]) -> Result<Option<Node>, Errno> {
        match (at, name) {
            (None, b"..") => Ok(None),
            (None, name) => {
                let mount = self.mount_named(name).ok_or(Errno::NOENT)?;
                Ok(Some(mount.root.clone()))
            }
            (Some(node), b"..") => self.parent(node),
            (Some(_), b"" | b".") => Err(Errno::NOENT),
            (Some(_), name) if name.iter().any(|byte| matches!(byte, 0 | b'/')) => {
                Err(Errno::NOENT)
            }
            (Some(node), name) => self.host.step(node, name).map(Some),
        }
    }

    fn mount_named(&self, name: &[u8]) -> Option<&OpenMount> {
        let text = std::str::from_utf8(name).ok()?;
        let number = text.parse().ok()?;
        // Each number has one spelling: no `+1`, no `01`.
        let mount: &OpenMount = self.mounts.get(number)?;
        (Self::entry_name(number) == text).then_some(mount)
    }

    /// The parent folder, at most the root of all mounts.
    fn parent(&self, node: &Node) -> Result<Option<Node>, Errno> {
        if node.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        let mount = &self.mounts[node.mount];
        if node.id == mount.root.id {
            return Ok(None);
        }
        let path = self.host.path(node)?;
        let above = mount.relative(&self.host, &path)?.parent();
        let above = above.unwrap_or(Path::new(""));
        self.host.resolve(&mount.root, above).map(Some)
    }
}

/// A fid for the result of a walk, not open.
fn closed(at: Option<Node>) -> Fid {
    at.map_or(Fid::Root, |node| Fid::File(File::closed(node)))
}
