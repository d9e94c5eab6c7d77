//! File and file-system attributes.
//!
//! Ids are mapped in both directions: the user of this process is the guest's ordinary
//! user, so files of either belong to the other. The host's root, and the host user with
//! the id of the guest's ordinary user, appear as "nobody" in the guest. Other ids are the
//! same on both sides. A guest cannot change owners.

use super::data::{flag, refuse_privileged};
use super::fid::Fid;
use super::host::{Node, qid};
use super::mount::OpenMount;
use super::wire::{MAX_NAME_BYTES, Reader, Writer};
use super::{Owner, ROOT_QID, Server};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, StatVfs, Timespec, Timestamps, chmodat, chownat,
    fstatvfs, ftruncate, utimensat,
};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// All fields of `stat` (`P9_STATS_BASIC`).
const BASIC: u64 = 0x7ff;

/// File-system magic that the guest sees (`V9FS_MAGIC`): programs test it to predict
/// behaviour.
const FS_KIND: u32 = 0x0102_1997;

/// Mode of the root: every user may list it.
const ROOT_MODE: u32 = 0o040_555;

/// Overflow user and group for ids without a mapping (`overflowuid`).
const NOBODY: u32 = 65_534;

/// Fields that `Tsetattr` changes (`P9_SETATTR_*`).
mod set {
    pub(super) const MODE: u32 = 0x1;
    pub(super) const UID: u32 = 0x2;
    pub(super) const GID: u32 = 0x4;
    pub(super) const SIZE: u32 = 0x8;
    pub(super) const ATIME: u32 = 0x10;
    pub(super) const MTIME: u32 = 0x20;
    pub(super) const CTIME: u32 = 0x40;
    pub(super) const ATIME_GIVEN: u32 = 0x80;
    pub(super) const MTIME_GIVEN: u32 = 0x100;
    pub(super) const ALL: u32 = 0x1ff;
}

/// Mode bits that run a program as another user.
const PRIVILEGED: u32 = 0o6000;

/// A request to change attributes.
struct Change {
    valid: u32,
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    times: [Timespec; 2],
}

impl Change {
    fn read(r: &mut Reader<'_>) -> Result<Self, Errno> {
        let (valid, mode, uid, gid) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        let size = r.u64()?;
        let mut times = [Timespec::default(); 2];
        for time in &mut times {
            time.tv_sec = r.u64()? as i64;
            time.tv_nsec = r.u64()? as _;
        }
        if valid & !set::ALL != 0 {
            return Err(Errno::INVAL);
        }
        Ok(Self {
            valid,
            mode,
            uid,
            gid,
            size,
            times,
        })
    }

    fn has(&self, what: u32) -> bool {
        self.valid & what != 0
    }

    /// One of the times: a given value, now, or unchanged.
    ///
    /// # Errors
    /// `EINVAL` for nanoseconds of a second or more.
    fn time(&self, number: usize, changed: u32, given: u32) -> Result<Timespec, Errno> {
        if !self.has(changed) {
            return Ok(special_time(rustix::fs::UTIME_OMIT));
        }
        if !self.has(given) {
            return Ok(special_time(rustix::fs::UTIME_NOW));
        }
        match self.times[number] {
            time if (0..1_000_000_000).contains(&time.tv_nsec) => Ok(time),
            _ => Err(Errno::INVAL),
        }
    }
}

fn special_time(tv_nsec: rustix::fs::Nsecs) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec }
}

impl Owner {
    fn guest_uid(self, uid: u32) -> u32 {
        guest_number(self.uid, uid)
    }

    fn guest_gid(self, gid: u32) -> u32 {
        guest_number(self.gid, gid)
    }
}

/// Ids of the guest's ordinary user and its group.
const GUEST_USER: u32 = 1000;

/// Ids of the guest's administrator and its group.
const GUEST_ROOT: u32 = 0;

fn guest_number(own: u32, number: u32) -> u32 {
    match number {
        number if number == own => GUEST_USER,
        0 | GUEST_USER => NOBODY,
        number => number,
    }
}

impl Server {
    pub(super) fn getattr(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let (fid, _mask) = (r.u32()?, r.u64()?);
        match self.fids.get(fid)? {
            Fid::Root => self.write_attributes(None, w),
            _ => self.write_attributes(Some(&self.file(fid)?.node), w),
        }
    }

    /// Writes the fields of `Rgetattr` for a file, or for the root of all mounts if `None`.
    pub(super) fn write_attributes(
        &self,
        node: Option<&Node>,
        w: &mut Writer<'_>,
    ) -> Result<(), Errno> {
        w.u64(BASIC);
        match node {
            None => self.write_root(w),
            Some(node) => {
                let stat = node.stat()?;
                w.qid(qid(node.mount, &stat));
                self.write_stat(&stat, w);
            }
        }
        // Birth time, generation and data version: not sent.
        for _ in 0..4 {
            w.u64(0);
        }
        Ok(())
    }

    #[allow(
        clippy::unnecessary_cast,
        reason = "the widths differ between machines"
    )]
    fn write_stat(&self, stat: &Stat, w: &mut Writer<'_>) {
        w.u32(stat.st_mode);
        w.u32(self.owner.guest_uid(stat.st_uid));
        w.u32(self.owner.guest_gid(stat.st_gid));
        for number in [
            stat.st_nlink as u64,
            stat.st_rdev as u64,
            stat.st_size as u64,
            stat.st_blksize as u64,
            stat.st_blocks as u64,
            stat.st_atime as u64,
            stat.st_atime_nsec as u64,
            stat.st_mtime as u64,
            stat.st_mtime_nsec as u64,
            stat.st_ctime as u64,
            stat.st_ctime_nsec as u64,
        ] {
            w.u64(number);
        }
    }

    fn write_root(&self, w: &mut Writer<'_>) {
        w.qid(ROOT_QID);
        w.u32(ROOT_MODE);
        w.u32(0);
        w.u32(0);
        let links = self.mounts.len() as u64 + 2;
        let (size, block) = (0, 4096);
        for number in [links, 0, size, block] {
            w.u64(number);
        }
        // Blocks and times.
        for _ in 0..7 {
            w.u64(0);
        }
    }

    pub(super) fn setattr(&mut self, r: &mut Reader<'_>) -> Result<(), Errno> {
        let fid = r.u32()?;
        let change = Change::read(r)?;
        let file = self.file(fid)?;
        let node = &file.node;
        self.check_change(node)?;
        let times = Timestamps {
            last_access: change.time(0, set::ATIME, set::ATIME_GIVEN)?,
            last_modification: change.time(1, set::MTIME, set::MTIME_GIVEN)?,
        };
        // The order of Linux's own file systems: changes that may lack permission first,
        // times last, because the others modify them.
        if change.has(set::UID | set::GID) {
            self.change_owner(node, &change)?;
        }
        if change.has(set::MODE) {
            self.change_mode(node, change.mode)?;
        }
        if change.has(set::SIZE) {
            let before = node.stat()?;
            let open = file.open.as_ref();
            // An open file may be truncated although its mode no longer allows writing.
            match open.filter(|open| open.flags & flag::ACCESS != flag::READ_ONLY) {
                Some(open) => ftruncate(&*open.file, change.size)?,
                None => self.cut(node, change.size)?,
            }
            self.spent(node).changed(&before, &node.stat()?);
        }
        let (folder, name) = self.host.handle(node.as_fd());
        if change.has(set::ATIME | set::MTIME) {
            utimensat(folder, name, &times, AtFlags::empty())?;
        } else if change.valid == set::CTIME {
            // Updates the change time without any other change.
            chownat(folder, name, None, None, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Owners never change: a guest of the host's root could give files to any user there,
    /// and other users could not anyway. Requests without effect succeed. So does a request
    /// of the guest's root to own files of this process's user, as archives and copies make
    /// it: both are that user.
    ///
    /// # Errors
    /// `EPERM`.
    fn change_owner(&self, node: &Node, change: &Change) -> Result<(), Errno> {
        let stat = node.stat()?;
        let (uid, gid) = (
            self.owner.guest_uid(stat.st_uid),
            self.owner.guest_gid(stat.st_gid),
        );
        let other = |wanted, is| wanted != is && (wanted != GUEST_ROOT || is != GUEST_USER);
        let other_user = change.has(set::UID) && other(change.uid, uid);
        let other_group = change.has(set::GID) && other(change.gid, gid);
        match other_user || other_group {
            true => Err(Errno::PERM),
            false => Ok(()),
        }
    }

    /// Changes permissions. Setuid and setgid can be kept and removed, but not added.
    fn change_mode(&self, node: &Node, mode: u32) -> Result<(), Errno> {
        let given = mode & PRIVILEGED & !node.stat()?.st_mode;
        if given != 0 {
            return Err(Errno::PERM);
        }
        let (folder, name) = self.host.handle(node.as_fd());
        chmodat(
            folder,
            name,
            Mode::from_raw_mode(mode & 0o7777),
            AtFlags::empty(),
        )
    }

    fn cut(&self, node: &Node, size: u64) -> Result<(), Errno> {
        match node.kind {
            FileType::Directory => return Err(Errno::ISDIR),
            FileType::RegularFile => {}
            _ => return Err(Errno::INVAL),
        }
        refuse_privileged(node)?;
        ftruncate(self.host.reopen(node, OFlags::WRONLY)?, size)
    }

    pub(super) fn statfs(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), Errno> {
        let fid = r.u32()?;
        let mount = match self.fids.get(fid)? {
            // Programs that search a file's mount point find the root of all mounts first,
            // and mean one of these.
            Fid::Root => self.mounts.first(),
            _ => Some(&self.mounts[self.file(fid)?.node.mount]),
        };
        w.u32(FS_KIND);
        match mount {
            None => {
                w.u32(4096);
                for _ in 0..6 {
                    w.u64(0);
                }
                w.u32(MAX_NAME_BYTES as u32);
            }
            Some(mount) => write_statfs(&available(mount, fstatvfs(&mount.root)?), w),
        }
        Ok(())
    }
}

/// Caps a mount's free space at the guest's remaining budget.
fn available(mount: &OpenMount, mut found: StatVfs) -> StatVfs {
    if mount.writable() {
        let blocks = mount.spent.left().0 / found.f_frsize.max(1);
        found.f_bavail = found.f_bavail.min(blocks);
    }
    found
}

/// Writes `Rstatfs`. Blocks are counted in fragments, as in `statvfs`; 9p has only one
/// size.
fn write_statfs(found: &StatVfs, w: &mut Writer<'_>) {
    w.u32(found.f_frsize as u32);
    for number in [
        found.f_blocks,
        found.f_bfree,
        found.f_bavail,
        found.f_files,
        found.f_ffree,
        found.f_fsid,
    ] {
        w.u64(number);
    }
    w.u32(found.f_namemax as u32);
}
