//! Options of a store: durability and limits.

use a99_sqlite::Durability;

/// How a [`SqliteRuntime`](crate::SqliteRuntime) works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// What a power cut may take. A process that is killed loses nothing that was
    /// acknowledged, in any case: each commit is acknowledged after the transaction that it
    /// shares with others was committed.
    ///
    /// - [`Durability::Relaxed`]: the disk is never waited for but in
    ///   [`flush`](a99_runtime_engine::AgentStore::flush). A power cut may take all since
    ///   the last one, and damage the file.
    /// - [`Durability::Process`]: the disk is waited for when the log is copied into the
    ///   file. A power cut may take the last moments, whole commits.
    /// - [`Durability::Power`]: each group of commits waits for the disk. Nothing is lost.
    pub durability: Durability,
    /// What may be kept.
    pub limits: StoreLimits,
    /// Whether the logs of channels lie in this file. Events that agents send go into its
    /// outbox otherwise, for whoever carries them to another store.
    pub has_channels: bool,
    /// Bytes of the file at most, beside its log; no limit if there is none.
    pub max_file_bytes: Option<u64>,
    /// What agents may keep in tables of their own.
    pub tables: TableLimits,
    /// Whether a file is refused ([`StoreCode::Copied`](a99_runtime_engine::StoreCode::Copied))
    /// that is not the one which an owner opened last: a copy, a restored backup, a file from
    /// another disk. Otherwise it is taken, and the host's log says so once. A file that was
    /// renamed is the same one.
    pub refuses_copies: bool,
}

impl Default for StoreOptions {
    /// [`Durability::Process`], with channels, in a file as large as the disk.
    fn default() -> StoreOptions {
        StoreOptions {
            durability: Durability::Process,
            limits: StoreLimits::default(),
            has_channels: true,
            max_file_bytes: None,
            tables: TableLimits::default(),
            refuses_copies: false,
        }
    }
}

/// What a store keeps at most. What is more is refused as
/// [`StoreCode::TooLarge`](a99_runtime_engine::StoreCode::TooLarge).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of a state, and of settings, as JSON text.
    pub max_state_bytes: usize,
    /// Bytes of the body of an event that lie with it; a longer one is a blob.
    pub max_inline_bytes: usize,
    /// Bytes of a body and of an attachment.
    pub max_blob_bytes: usize,
    /// Timers of an agent.
    pub max_timers: usize,
}

#[cfg(feature = "testing")]
impl StoreLimits {
    /// Small ones, for the [suite](crate::suite).
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

/// What an agent's tables and its statements may take at most. What is more is refused as
/// [`StoreCode::TooLarge`](a99_runtime_engine::StoreCode::TooLarge).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Bytes of the file of an agent, beside its log.
    pub max_file_bytes: u64,
    /// Bytes of a value, and of a row. What a function does with one value is not stopped in
    /// the middle: with larger ones that takes long.
    pub max_value_bytes: usize,
    /// Bytes of a text of SQL.
    pub max_sql_bytes: usize,
    /// Rows of a result.
    pub max_rows: usize,
    /// Bytes of a result.
    pub max_result_bytes: usize,
    /// Bytes that SQLite may take in memory while a statement runs, beside those that it had
    /// then, for all files of the process together. A statement that goes on beyond it is
    /// stopped ([`StoreCode::Interrupted`](a99_runtime_engine::StoreCode::Interrupted)).
    pub max_memory_bytes: u64,
    /// Files that are open at a time, beside those of turns that run; each takes a thread.
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
