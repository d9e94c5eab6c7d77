//! Options of a database.

use std::time::Duration;

/// What a power cut may take. A process that ends or is killed loses nothing that was
/// acknowledged, in any case.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing that was acknowledged: each commit waits until the disk has it. Writes that
    /// are asked for at the same time share a commit.
    #[default]
    Power,
    /// The writes of the last moments, never a part of one: the disk is waited for only
    /// when the log is copied into the file.
    Process,
    /// What was written since [`Database::checkpoint`](crate::Database::checkpoint), and
    /// perhaps the file with it: the disk is never waited for otherwise, so that parts of
    /// the file may be newer than others. A backup helps then.
    Relaxed,
}

/// How a [`Database`](crate::Database) works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// What a power cut may take.
    pub durability: Durability,
    /// How long work waits while other processes write.
    pub busy_timeout: Duration,
    /// Threads that read, each with a connection; at least one.
    pub readers: usize,
    /// Bytes of the file at most, beside its log; no limit if there is none.
    pub max_file_bytes: Option<u64>,
    /// Whether no other process writes, which the host sees to, as with a lock of its own.
    /// Others could still, but would hardly find a moment: transactions follow each other
    /// without a pause.
    pub is_exclusive: bool,
    /// Whether the file is only read: it must be there, and nothing in it is changed.
    pub is_read_only: bool,
}

impl Default for SqliteOptions {
    /// Nothing is lost with the power, a minute of waiting, as many readers as processors
    /// and at most four, files as large as the disk, and other processes that write.
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
