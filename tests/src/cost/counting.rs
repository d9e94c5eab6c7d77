//! An allocator that counts: live and peak bytes, the largest block, and all that was
//! ever handed out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Passes calls on to the system's allocator and counts them.
#[derive(Debug, Default)]
pub struct Counting {
    live: AtomicUsize,
    peak: AtomicUsize,
    largest: AtomicUsize,
    total: AtomicUsize,
}

impl Counting {
    /// An allocator that has handed out nothing.
    #[must_use]
    pub const fn new() -> Counting {
        Counting {
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
        }
    }

    /// Bytes that are in use.
    pub fn live(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// The most bytes that were in use since [`Self::forget`].
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Bytes of the largest block since [`Self::forget`].
    pub fn largest(&self) -> usize {
        self.largest.load(Relaxed)
    }

    /// Bytes of all blocks that were ever handed out; of one that grew, what it grew by.
    pub fn total(&self) -> usize {
        self.total.load(Relaxed)
    }

    /// Begins anew: the peak is what is in use, no block was large. Gives what is in use.
    pub fn forget(&self) -> usize {
        let live = self.live();
        self.peak.store(live, Relaxed);
        self.largest.store(0, Relaxed);
        live
    }

    fn took(&self, bytes: usize) {
        let live = self.live.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(live, Relaxed);
        self.largest.fetch_max(bytes, Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged; the
// counters touch no memory of anybody's.
#[allow(unsafe_code, reason = "an allocator that counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.took(layout.size());
        self.total.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `at` came from `System` with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.live.fetch_sub(layout.size(), Relaxed);
        self.took(size);
        let grown = size.saturating_sub(layout.size());
        self.total.fetch_add(grown, Relaxed);
        // SAFETY: `at` came from `System` with this layout.
        unsafe { System.realloc(at, layout, size) }
    }
}
