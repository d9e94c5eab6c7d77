//! Write budget: how much a guest may add to a mount, bytes on the host's disk and
//! entries.
//!
//! Counted is what this guest changed: blocks that its writes took and gave
//! back, entries that it made and removed, and in bytes what these hold besides
//! blocks: names, targets of links, attributes. File systems keep those in different
//! places and tell of some only, so they count as long as they are, and the blocks of
//! files and folders in addition. What was there before costs nothing, and what replaces
//! it only the difference. A write is asked about before it is done, so the budget is
//! passed by one message at most.

use rustix::fs::{Stat, fstat};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes of a block as `stat` counts them.
const BLOCK: i64 = 512;

/// Bytes that an entry counts besides its name and content: an inode of usual file
/// systems.
const ENTRY_BYTES: u64 = 256;

/// How much a guest may add to a mount. More: `EDQUOT` in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes on the host's disk: contents, names, targets of links, attributes.
    pub bytes: u64,
    /// Files, folders and links.
    pub entries: u64,
}

impl Default for Budget {
    /// A gibibyte in a hundred thousand files: a project with what it installs.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            entries: 100_000,
        }
    }
}

impl Budget {
    /// As much as the host has.
    pub const UNLIMITED: Self = Self {
        bytes: u64::MAX,
        entries: u64::MAX,
    };
}

/// What is spent of a budget.
#[derive(Debug, Default)]
pub struct Spent {
    budget: Budget,
    bytes: AtomicI64,
    entries: AtomicI64,
    /// Bytes of attributes, which are among the others.
    attributes: AtomicI64,
}

/// Bytes that an entry of that name counts, with `more` of its own.
fn entry(name: &[u8], more: usize) -> u64 {
    ENTRY_BYTES + name.len() as u64 + more as u64
}

/// Bytes that a file takes on the disk.
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
    /// Nothing yet of this budget.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// Bytes and entries that are left.
    pub fn left(&self) -> (u64, u64) {
        (
            left(self.budget.bytes, &self.bytes),
            left(self.budget.entries, &self.entries),
        )
    }

    /// Writes to a file, if what that may add is left.
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

    /// A file takes another room on the disk than before.
    pub fn changed(&self, before: &Stat, after: &Stat) {
        let change = taken(after) - taken(before);
        self.bytes.fetch_add(change, Ordering::Relaxed);
    }

    /// A folder or link was made.
    pub fn took(&self, made: &Stat) {
        self.bytes.fetch_add(taken(made), Ordering::Relaxed);
    }

    /// A file, folder or link is gone for good.
    pub fn freed(&self, file: &Stat) {
        self.bytes.fetch_sub(taken(file), Ordering::Relaxed);
    }

    /// Makes an entry of that name in a folder, if that is left. `more` are the bytes of
    /// a link's target.
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

    /// The same without the growth of the folder.
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

    /// An entry of that name was removed, with `more` bytes of its own.
    pub fn removed(&self, name: &[u8], more: usize) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        self.give_back(entry(name, more));
    }

    /// A name in a folder became another.
    pub fn renamed(&self, from: &[u8], to: &[u8]) {
        self.give_back(entry(from, 0));
        self.add(entry(to, 0));
    }

    /// Sets attributes of a file, which has `before` bytes of them and then `after`, if
    /// that is left.
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

    /// Whether the guest has set attributes that are there still, as far as is known.
    pub fn has_attributes(&self) -> bool {
        self.attributes.load(Ordering::Relaxed) > 0
    }

    /// Attributes are gone with their file.
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
