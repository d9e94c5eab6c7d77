//! Options of a database.

use std::time::Duration;

/// Durability of acknowledged writes in a power cut. In every mode they survive the end or kill
/// of a process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// Loses no acknowledged write: each commit waits for the disk. Concurrent writes share a
    /// commit.
    #[default]
    Power,
    /// May lose the last writes, but never part of one: only checkpoints wait for the disk.
    Process,
    /// May lose all writes since [`Database::checkpoint`](crate::Database::checkpoint), and may
    /// corrupt the file: nothing else waits for the disk, so that parts of the file may be
    /// newer than others. Recovery then needs a backup.
    Relaxed,
}

/// Options of a [`Database`](crate::Database).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Durability of acknowledged writes in a power cut.
    pub durability: Durability,
    /// How long work waits while other processes write.
    pub busy_timeout: Duration,
    /// Reader threads, each with a connection; at least one.
    pub readers: usize,
    /// Largest size of the file in bytes, without its log; `None` for no limit.
    pub max_file_bytes: Option<u64>,
    /// True if no other process writes, which the host must ensure, for example with a lock.
    /// Other writers could still connect, but would rarely get the lock: transactions follow
    /// each other without a pause.
    pub is_exclusive: bool,
    /// Opens an existing file without changing it.
    pub is_read_only: bool,
}

impl Default for SqliteOptions {
    /// [`Durability::Power`], a busy timeout of one minute, one reader per processor up to
    /// four, no limit of the file's size, and shared access.
    fn default() -> SqliteOptions {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        SqliteOptions {
            durability: Durability::default(),
            busy_timeout: Duration::from_secs(60),
            readers: processors.min(4),
            max_file_bytes: None,
            is_exclusive: false,
            is_read_only: false,
        }
    }
}
