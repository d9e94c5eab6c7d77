//! Write budget: limits the bytes on the host's disk and the entries that a guest may add
//! to a mount.
//!
//! The budget counts this guest's changes: blocks that its writes allocated and freed,
//! entries that it made and removed, and the bytes of names, link targets and attributes.
//! File systems store these in different places and report only some, so they count by
//! length, in addition to the blocks of files and folders. Existing content costs nothing,
//! and replacing it costs only the difference. Each write is checked before it is done, so
//! the budget is exceeded by one message at most.

use rustix::fs::{Stat, fstat};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI64, Ordering};

/// Size of a `stat` block in bytes.
const BLOCK: i64 = 512;

/// Bytes charged for an entry in addition to its name and content: the inode size of usual
/// file systems.
const ENTRY_BYTES: u64 = 256;

/// How much a guest may add to a mount; beyond it the guest sees `EDQUOT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes on the host's disk: contents, names, link targets, attributes.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
}

impl Default for Budget {
    /// A gibibyte in a hundred thousand files: a project with its installed dependencies.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            entries: 100_000,
        }
    }
}

impl Budget {
    /// No limit but the host's.
    pub const UNLIMITED: Self = Self {
        bytes: u64::MAX,
        entries: u64::MAX,
    };
}

/// Use of a budget.
#[derive(Debug, Default)]
pub struct Spent {
    budget: Budget,
    bytes: AtomicI64,
    entries: AtomicI64,
    /// Bytes of attributes, which the other bytes include.
    attributes: AtomicI64,
}

/// Bytes charged for an entry of that name with `more` bytes of link target or attributes.
fn entry(name: &[u8], more: usize) -> u64 {
    ENTRY_BYTES + name.len() as u64 + more as u64
}

/// Disk space of a file in bytes.
fn taken(stat: &Stat) -> i64 {
    stat.st_blocks.saturating_mul(BLOCK)
}

fn left(most: u64, spent: &AtomicI64) -> u64 {
    let spent = spent.load(Ordering::Relaxed);
    match u64::try_from(spent) {
        Ok(spent) => most.saturating_sub(spent),
        Err(_) => most.saturating_add(spent.unsigned_abs()),
    }
}

impl Spent {
    /// Creates an unused budget.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// Remaining bytes and entries.
    pub fn left(&self) -> (u64, u64) {
        (
            left(self.budget.bytes, &self.bytes),
            left(self.budget.entries, &self.entries),
        )
    }

    /// Writes to a file if the budget covers the added bytes.
    ///
    /// # Errors
    /// `EDQUOT`, and those of `write`.
    pub fn write<T>(
        &self,
        file: impl AsFd,
        offset: u64,
        length: u64,
        write: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let before = fstat(&file)?;
        let size = u64::try_from(before.st_size).unwrap_or(0);
        let has_holes = taken(&before).unsigned_abs() < size;
        let grows = has_holes || offset.saturating_add(length) > size;
        if grows && length > self.left().0 {
            return Err(Errno::DQUOT);
        }
        let written = write();
        self.changed(&before, &fstat(&file)?);
        written
    }

    /// Charges a file's change of disk space.
    pub fn changed(&self, before: &Stat, after: &Stat) {
        let change = taken(after) - taken(before);
        self.bytes.fetch_add(change, Ordering::Relaxed);
    }

    /// Charges a new folder or link.
    pub fn took(&self, made: &Stat) {
        self.bytes.fetch_add(taken(made), Ordering::Relaxed);
    }

    /// Refunds a file, folder or link that was deleted.
    pub fn freed(&self, file: &Stat) {
        self.bytes.fetch_sub(taken(file), Ordering::Relaxed);
    }

    /// Makes an entry of that name in a folder if the budget covers it; `more` are the
    /// bytes of a link's target.
    ///
    /// # Errors
    /// `EDQUOT`, and those of `make`.
    pub fn make<T>(
        &self,
        folder: impl AsFd,
        name: &[u8],
        more: usize,
        make: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.charge(name, more, || {
            let before = fstat(&folder)?;
            let made = make()?;
            // Folders grow with their entries.
            self.changed(&before, &fstat(&folder)?);
            Ok(made)
        })
    }

    /// Does the same without the growth of the folder.
    ///
    /// # Errors
    /// `EDQUOT`, and those of `make`.
    pub fn charge<T, E: From<Errno>>(
        &self,
        name: &[u8],
        more: usize,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let bytes = entry(name, more);
        let left = self.left();
        if left.1 == 0 || left.0 < bytes {
            return Err(Errno::DQUOT.into());
        }
        let made = make()?;
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.add(bytes);
        Ok(made)
    }

    /// Refunds a removed entry of that name with `more` bytes.
    pub fn removed(&self, name: &[u8], more: usize) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        self.give_back(entry(name, more));
    }

    /// Adjusts for a renamed entry.
    pub fn renamed(&self, from: &[u8], to: &[u8]) {
        self.give_back(entry(from, 0));
        self.add(entry(to, 0));
    }

    /// Sets an attribute of a file if the budget covers it; the file's attributes grow from
    /// `before` to `after` bytes.
    ///
    /// # Errors
    /// `EDQUOT`, and those of `set`.
    pub fn set_attribute(
        &self,
        file: impl AsFd,
        before: usize,
        after: usize,
        set: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if after.saturating_sub(before) as u64 > self.left().0 {
            return Err(Errno::DQUOT);
        }
        let blocks = fstat(&file)?;
        set()?;
        self.changed(&blocks, &fstat(&file)?);
        let change = after as i64 - before as i64;
        self.bytes.fetch_add(change, Ordering::Relaxed);
        self.attributes.fetch_add(change, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the guest may have set attributes that still exist.
    pub fn has_attributes(&self) -> bool {
        self.attributes.load(Ordering::Relaxed) > 0
    }

    /// Refunds the attributes of a deleted file.
    pub fn attributes_freed(&self, bytes: usize) {
        self.give_back(bytes as u64);
        self.attributes.fetch_sub(bytes as i64, Ordering::Relaxed);
    }

    fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes as i64, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes as i64, Ordering::Relaxed);
    }
}
