//! Directory listing.
//!
//! An entry's cookie comes from the host's file system, so it stays valid as entries come
//! and go, and the server keeps no list.

use super::host::{Identity, Node, qid_path};
use super::wire::{Qid, READ_OVERHEAD, Reader, Writer};
use super::{Fid, ROOT_QID, Server};
use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom, seek, statat};
use rustix::io::Errno;

/// Bytes of entries read from the host's kernel at once. Entries that do not fit the
/// message are read again.
const ENTRIES_BYTES: usize = 32 << 10;

/// Size of an entry without its name: qid, cookie, type and the name's length.
const ENTRY_OVERHEAD: usize = Qid::BYTES + 8 + 1 + 2;

/// Entry types (`DT_DIR`, `DT_UNKNOWN`).
const DT_DIR: u8 = 4;
const DT_UNKNOWN: u8 = 0;

impl Server {
    pub(super) fn readdir(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, cookie, count) = (r.u32()?, r.u64()?, r.u32()?);
        let count = (count as usize).min(self.msize - READ_OVERHEAD);
        let at = w.len();
        w.u32(0);
        let limit = at + 4 + count;
        match self.fids.get(fid)? {
            Fid::Root => self.list_mounts(cookie, limit, w),
            _ => self.list_folder(fid, cookie, limit, w)?,
        }
        let written = w.len() - at - 4;
        w.patch_u32(at, written as u32);
        Ok(())
    }

    /// Lists the root's entries; their cookies count from 1.
    fn list_mounts(&self, cookie: u64, limit: usize, w: &mut Writer<'_>) {
        let own = [
            (ROOT_QID, DT_DIR, ".".into()),
            (ROOT_QID, DT_DIR, "..".into()),
        ];
        let mounts = self.mounts.iter().enumerate().map(|(number, mount)| {
            let kind = match mount.root.kind {
                FileType::Directory => Qid::DIR,
                _ => 0,
            };
            let qid = entry_qid(kind, qid_path(number, mount.root.id));
            (qid, dt(mount.root.kind), Self::entry_name(number))
        });
        let skipped = usize::try_from(cookie).unwrap_or(usize::MAX);
        for (number, (qid, kind, name)) in own.into_iter().chain(mounts).enumerate().skip(skipped) {
            if !put_entry(w, limit, qid, number as u64 + 1, kind, name.as_bytes()) {
                break;
            }
        }
    }

    fn list_folder(
        &mut self,
        fid: u32,
        cookie: u64,
        limit: usize,
        w: &mut Writer<'_>,
    ) -> Result<(), Errno> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.reserve(ENTRIES_BYTES);
        let listed = self.list_into(fid, cookie, limit, w, &mut entries);
        self.entries = entries;
        let position = listed?;
        if let Fid::File(file) = self.fids.get_mut(fid)?
            && let Some(open) = &mut file.open
        {
            open.position = position;
        }
        Ok(())
    }

    /// Lists from `cookie` on; returns the position of the host's kernel.
    fn list_into(
        &self,
        fid: u32,
        cookie: u64,
        limit: usize,
        w: &mut Writer<'_>,
        entries: &mut Vec<u8>,
    ) -> Result<Option<u64>, Errno> {
        let file = self.file(fid)?;
        let open = file.opened()?;
        if file.node.kind != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        if open.position != Some(cookie) {
            seek(&*open.file, SeekFrom::Start(cookie))?;
        }
        let start = w.len();
        let mut position = cookie;
        let mut dir = RawDir::new(&*open.file, entries.spare_capacity_mut());
        while let Some(entry) = dir.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // Entries read before it count; the error will recur.
                Err(_) if w.len() > start => return Ok(None),
                Err(errno) => return Err(errno),
            };
            let name = entry.file_name().to_bytes();
            let (qid, kind) = self.describe(&file.node, name, entry.ino(), entry.file_type());
            let next = entry.next_entry_cookie();
            if !put_entry(w, limit, qid, next, kind, name) {
                // Not even one entry fits: the guest must offer more room.
                let nothing = w.len() == start;
                return if nothing { Err(Errno::INVAL) } else { Ok(None) };
            }
            position = next;
        }
        Ok(Some(position))
    }

    /// Qid and type of an entry. The type is looked up if the file system does not return
    /// it with the name.
    fn describe(&self, dir: &Node, name: &[u8], ino: u64, kind: FileType) -> (Qid, u8) {
        if name == b".." && dir.id == self.mounts[dir.mount].root.id {
            return (ROOT_QID, DT_DIR);
        }
        let kind = match kind {
            FileType::Unknown => statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| {
                    FileType::from_raw_mode(stat.st_mode)
                }),
            kind => kind,
        };
        let bits = match kind {
            FileType::Directory => Qid::DIR,
            FileType::Symlink => Qid::SYMLINK,
            _ => 0,
        };
        let id = Identity {
            dev: dir.id.dev,
            ino,
        };
        (entry_qid(bits, qid_path(dir.mount, id)), dt(kind))
    }
}

/// Qid of an entry without a version, which a walk will fetch.
fn entry_qid(kind: u8, path: u64) -> Qid {
    Qid {
        kind,
        version: 0,
        path,
    }
}

/// Type of an entry in the encoding of Linux's `readdir`.
fn dt(kind: FileType) -> u8 {
    match kind {
        FileType::Unknown => DT_UNKNOWN,
        // `DT_*` are the upper bits of modes (`IFTODT` of the C library).
        kind => (kind.as_raw_mode() >> 12) as u8,
    }
}

/// Appends an entry if it fits.
fn put_entry(
    w: &mut Writer<'_>,
    limit: usize,
    qid: Qid,
    cookie: u64,
    kind: u8,
    name: &[u8],
) -> bool {
    if w.len() + ENTRY_OVERHEAD + name.len() > limit {
        return false;
    }
    w.qid(qid);
    w.u64(cookie);
    w.u8(kind);
    w.string(name);
    true
}
