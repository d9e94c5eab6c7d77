//! Counting allocator: live and peak bytes, the largest block, and all allocated bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Forwards calls to the system's allocator and counts them.
#[derive(Debug)]
pub struct Counting {
    counts: AtomicBool,
    live: AtomicUsize,
    peak: AtomicUsize,
    largest: AtomicUsize,
    total: AtomicUsize,
}

impl Counting {
    /// An allocator that counts from the start.
    #[must_use]
    pub const fn new() -> Counting {
        Counting::with(true, 0)
    }

    /// An allocator that counts, at a cost, only after [`Self::begin`]. Its live bytes start at
    /// a large number, because blocks allocated earlier are freed too.
    #[must_use]
    pub const fn idle() -> Counting {
        Counting::with(false, usize::MAX / 2)
    }

    const fn with(counts: bool, live: usize) -> Counting {
        Counting {
            counts: AtomicBool::new(counts),
            live: AtomicUsize::new(live),
            peak: AtomicUsize::new(live),
            largest: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
        }
    }

    /// Starts counting.
    pub fn begin(&self) {
        self.counts.store(true, Relaxed);
    }

    /// Bytes in use.
    pub fn live(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// Most bytes in use since [`Self::forget`].
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Bytes of the largest block since [`Self::forget`].
    pub fn largest(&self) -> usize {
        self.largest.load(Relaxed)
    }

    /// Bytes of all blocks ever allocated; a grown block counts its growth.
    pub fn total(&self) -> usize {
        self.total.load(Relaxed)
    }

    /// Resets the peak to the bytes in use and the largest block to zero; returns the bytes in
    /// use.
    pub fn forget(&self) -> usize {
        let live = self.live();
        self.peak.store(live, Relaxed);
        self.largest.store(0, Relaxed);
        live
    }

    fn took(&self, bytes: usize, grown: usize) {
        let live = self.live.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(live, Relaxed);
        self.largest.fetch_max(bytes, Relaxed);
        self.total.fetch_add(grown, Relaxed);
    }

    fn gave_back(&self, bytes: usize) {
        self.live.fetch_sub(bytes, Relaxed);
    }

    fn counts(&self) -> bool {
        self.counts.load(Relaxed)
    }
}

impl Default for Counting {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counters touch no
// memory of callers.
#[allow(unsafe_code, reason = "an allocator that counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.counts() {
            self.took(layout.size(), layout.size());
        }
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if self.counts() {
            self.gave_back(layout.size());
        }
        // SAFETY: `at` came from `System` with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.counts() {
            self.gave_back(layout.size());
            self.took(size, size.saturating_sub(layout.size()));
        }
        // SAFETY: `at` came from `System` with this layout.
        unsafe { System.realloc(at, layout, size) }
    }
}
