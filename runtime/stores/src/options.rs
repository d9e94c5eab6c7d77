//! Options of a store: durability and limits.

use a99_sqlite::Durability;

/// Options of a [`SqliteRuntime`](crate::SqliteRuntime).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// How much a power failure may lose. A killed process never loses acknowledged data: each
    /// commit is acknowledged after the transaction of its group committed.
    ///
    /// - [`Durability::Relaxed`]: only [`flush`](a99_runtime_engine::AgentStore::flush) waits
    ///   for the disk. A power failure may lose everything since the last flush, and damage the
    ///   file.
    /// - [`Durability::Process`]: checkpoints of the write-ahead log wait for the disk. A power
    ///   failure may lose the last moments, in whole commits.
    /// - [`Durability::Power`]: each group commit waits for the disk. Nothing is lost.
    pub durability: Durability,
    /// Size limits of stored data.
    pub limits: StoreLimits,
    /// Whether this file holds the logs of channels. Otherwise events that agents send go into
    /// its outbox, to be forwarded to another store.
    pub has_channels: bool,
    /// Maximum bytes of the file, without its write-ahead log; `None` for no limit.
    pub max_file_bytes: Option<u64>,
    /// Limits of agents' SQL tables.
    pub tables: TableLimits,
    /// Whether to refuse ([`StoreCode::Copied`](a99_runtime_engine::StoreCode::Copied)) a file
    /// other than the one that an owner opened last: a copy, a restored backup, a file from
    /// another disk. Otherwise it is accepted, and the host logs it once. A renamed file is the
    /// same file.
    pub refuses_copies: bool,
    /// Whether other owners may open the file meanwhile, in this process and in others of this
    /// machine. Opening then acquires no shard
    /// ([`acquire`](a99_runtime_engine::AgentStore::acquire)). An owner that does not share the
    /// file waits for the end of those that do, and the reverse.
    pub is_shared: bool,
}

impl Default for StoreOptions {
    /// [`Durability::Process`], with channels, without a file size limit.
    fn default() -> StoreOptions {
        StoreOptions {
            durability: Durability::Process,
            limits: StoreLimits::default(),
            has_channels: true,
            max_file_bytes: None,
            tables: TableLimits::default(),
            refuses_copies: false,
            is_shared: false,
        }
    }
}

/// Size limits of a store; larger data is refused as
/// [`StoreCode::TooLarge`](a99_runtime_engine::StoreCode::TooLarge).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Maximum bytes of a state, and of settings, as JSON text.
    pub max_state_bytes: usize,
    /// Maximum bytes of an event's body in its row; a longer body is a blob.
    pub max_inline_bytes: usize,
    /// Maximum bytes of a body and of an attachment.
    pub max_blob_bytes: usize,
    /// Maximum timers of an agent.
    pub max_timers: usize,
}

#[cfg(feature = "testing")]
impl StoreLimits {
    /// Small limits for the [suite](crate::suite).
    pub const SMALL: StoreLimits = StoreLimits {
        max_state_bytes: 8 << 10,
        max_inline_bytes: 4 << 10,
        max_blob_bytes: 64 << 10,
        max_timers: 20,
    };
}

impl Default for StoreLimits {
    /// States of 16 MiB, bodies of 256 KiB in a row and 64 MiB as a blob, 1,000 timers.
    fn default() -> StoreLimits {
        StoreLimits {
            max_state_bytes: 16 << 20,
            max_inline_bytes: 256 << 10,
            max_blob_bytes: 64 << 20,
            max_timers: 1_000,
        }
    }
}

/// Limits of an agent's tables and statements; larger data is refused as
/// [`StoreCode::TooLarge`](a99_runtime_engine::StoreCode::TooLarge).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Maximum bytes of an agent's file, without its write-ahead log.
    pub max_file_bytes: u64,
    /// Maximum bytes of a value, and of a row. An SQL function on a single value cannot be
    /// interrupted, so larger values delay interrupts.
    pub max_value_bytes: usize,
    /// Maximum bytes of an SQL text.
    pub max_sql_bytes: usize,
    /// Maximum rows of a result.
    pub max_rows: usize,
    /// Maximum bytes of a result.
    pub max_result_bytes: usize,
    /// Bytes that SQLite may allocate while a statement runs, on top of earlier allocations,
    /// counted for all files of the process together. A statement that continues beyond it is
    /// interrupted ([`StoreCode::Interrupted`](a99_runtime_engine::StoreCode::Interrupted)).
    pub max_memory_bytes: u64,
    /// Maximum open files apart from those of running turns; each takes a thread.
    pub max_open: usize,
}

impl Default for TableLimits {
    /// Files of 256 MiB, values of 1 MiB, texts of 128 KiB, results of 10,000 rows and 8 MiB,
    /// 256 MiB of memory, 64 open files.
    fn default() -> TableLimits {
        TableLimits {
            max_file_bytes: 256 << 20,
            max_value_bytes: 1 << 20,
            max_sql_bytes: 128 << 10,
            max_rows: 10_000,
            max_result_bytes: 8 << 20,
            max_memory_bytes: 256 << 20,
            max_open: 64,
        }
    }
}
