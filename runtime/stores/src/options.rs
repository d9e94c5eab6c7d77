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
}

impl Default for StoreOptions {
    /// [`Durability::Process`], with channels, in a file as large as the disk.
    fn default() -> StoreOptions {
        StoreOptions {
            durability: Durability::Process,
            limits: StoreLimits::default(),
            has_channels: true,
            max_file_bytes: None,
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
