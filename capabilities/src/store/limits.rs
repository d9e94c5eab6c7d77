//! Limits of a namespace of a store, and what it holds.

/// What may be kept in a namespace, and asked of it. An entry counts the bytes of its key
/// and of its value as stored, and 64 more.
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

/// What a namespace holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct StoreUsage {
    /// Keys, with those that have expired and are not removed yet.
    pub keys: u64,
    /// Bytes of keys and values as stored, and 64 for each entry.
    pub bytes: u64,
}
