//! Meter of the data that stores scan on behalf of a run.

use crate::size::value_bytes;
use a99_core::value::Value;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a document counts in addition to its size: finding and reading it.
const DOCUMENT_BYTES: u64 = 256;

/// Counts the documents that a store scans for a query, often many more than it returns: the
/// caller pays for them. Each counts its bytes, as [`value_bytes`] estimates them, plus 256.
///
/// A store ends a query once the caller cannot pay for more; its answer is then invalid.
#[derive(Debug)]
pub struct ScanMeter {
    bytes: AtomicU64,
    most: u64,
}

impl ScanMeter {
    /// A meter with a limit in bytes.
    #[must_use]
    pub fn up_to(most: u64) -> ScanMeter {
        ScanMeter {
            bytes: AtomicU64::new(0),
            most,
        }
    }

    /// Counts a document.
    pub fn note(&self, document: &Value) {
        self.add(DOCUMENT_BYTES.saturating_add(value_bytes(document) as u64));
    }

    /// Counts other work as bytes.
    pub fn add(&self, bytes: u64) {
        let add = |now: u64| Some(now.saturating_add(bytes));
        // The closure never refuses.
        let _ = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Bytes that the caller can still pay for.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.bytes())
    }

    /// Bytes of all documents so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// True once the limit is exceeded.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.bytes() > self.most
    }
}
