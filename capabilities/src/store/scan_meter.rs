//! What stores look at on behalf of a run.

use crate::size::value_bytes;
use a99_core::value::Value;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a document counts beside its own: finding and reading it.
const DOCUMENT_BYTES: u64 = 256;

/// Counts the documents that a store looks at to answer a query, which may be many more than
/// it gives: whoever asks pays for them. Each counts its bytes, as [`value_bytes`] estimates
/// them, and 256 more.
///
/// A store that counts ends a query that has looked at more than the caller can pay; what it
/// answers then is worth nothing.
#[derive(Debug)]
pub struct ScanMeter {
    bytes: AtomicU64,
    most: u64,
}

impl ScanMeter {
    /// Nothing yet, of so many bytes that the caller can pay.
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

    /// Counts work of another kind, as so many bytes.
    pub fn add(&self, bytes: u64) {
        let add = |now: u64| Some(now.saturating_add(bytes));
        // The closure never refuses.
        let _ = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The bytes that the caller can still pay.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.bytes())
    }

    /// The bytes of all documents so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it is more than the caller can pay.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.bytes() > self.most
    }
}
