//! Options of a database, and limits of what is kept in it.

use std::time::Duration;

/// What a power cut may take. A process that ends or is killed loses nothing that was
/// acknowledged, in either case.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing that was acknowledged: each commit waits until the disk has it. Writes that
    /// are asked for at the same time share a commit.
    #[default]
    Power,
    /// The writes of the last moments, never a part of one: the disk is waited for only
    /// when the log is copied into the file.
    Process,
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
}

impl Default for SqliteOptions {
    /// Nothing is lost with the power, a minute of waiting, as many readers as processors
    /// and at most four, and files as large as the disk.
    fn default() -> SqliteOptions {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        SqliteOptions {
            durability: Durability::default(),
            busy_timeout: Duration::from_secs(60),
            readers: processors.min(4),
            max_file_bytes: None,
        }
    }
}

/// What may be kept in a namespace of a [`SqliteStore`](crate::SqliteStore), and asked of
/// it. An entry counts the bytes of its key and of its value as stored, and 64 more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of all entries.
    pub max_bytes: u64,
    /// Keys.
    pub max_keys: u64,
    /// Bytes of a value as stored, which is JSON text for most.
    pub max_value_bytes: usize,
    /// Bytes of a page of keys, and of the documents that a query gives as they are in
    /// memory; longer ones end early.
    pub max_page_bytes: usize,
}

impl Default for StoreLimits {
    /// 1 GiB, ten million keys, 8 MiB a value, 4 MiB a page.
    fn default() -> StoreLimits {
        StoreLimits {
            max_bytes: 1 << 30,
            max_keys: 10_000_000,
            max_value_bytes: 8 << 20,
            max_page_bytes: 4 << 20,
        }
    }
}
