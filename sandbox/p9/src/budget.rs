//! Write budget: how much a guest may add to a mount, bytes on the host's disk and
//! entries.
//!
//! Counted is what this guest changed: blocks that its writes took and gave
//! back, entries that it made and removed. What was there before costs nothing,
//! and what replaces it only the difference. A write is asked about before it is
//! done, so the budget is passed by one message at most.

use rustix::fs::{Stat, fstat};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes of a block as `stat` counts them.
const BLOCK: i64 = 512;

/// How much a guest may add to a mount. More: `EDQUOT` in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes on the host's disk.
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

    /// A file is gone for good.
    pub fn freed(&self, file: &Stat) {
        self.bytes.fetch_sub(taken(file), Ordering::Relaxed);
    }

    /// Whether one more entry may be made.
    ///
    /// # Errors
    /// `EDQUOT`.
    pub fn check_entry(&self) -> Result<(), Errno> {
        match self.left().1 {
            0 => Err(Errno::DQUOT),
            _ => Ok(()),
        }
    }

    /// An entry was made.
    pub fn made(&self) {
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    /// An entry was removed.
    pub fn removed(&self) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
    }
}
