//! Bytes behind RAM: one run that grows without moving in the emulator, and anywhere else
//! by copying.

#[cfg(not(target_arch = "wasm32"))]
pub(super) use copied::Backing;
#[cfg(target_arch = "wasm32")]
pub(super) use linear::Backing;

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "memory that the allocator does not manage")]
mod linear {
    use core::arch::wasm32::{memory_grow, memory_size};
    use std::hint::black_box;

    /// Bytes of a page of WebAssembly.
    const WASM_PAGE: usize = 64 << 10;

    /// Heap that the allocator gets before RAM is placed: more than a machine uses until its
    /// snapshot, so that nothing stands behind RAM then. Untouched memory costs nothing.
    const HEAP_BYTES: usize = 96 << 20;

    /// The last run of linear memory.
    #[derive(Debug)]
    pub(in super::super) struct Backing(&'static mut [u8]);

    impl Backing {
        /// Appends `bytes` zero bytes to linear memory; none if it cannot grow so far.
        pub(in super::super) fn new(bytes: usize) -> Self {
            // The allocator keeps freed memory.
            drop(black_box(Vec::<u8>::with_capacity(HEAP_BYTES)));
            let before = memory_grow::<0>(bytes.div_ceil(WASM_PAGE));
            if before == usize::MAX {
                return Self(&mut []);
            }
            let start = (before * WASM_PAGE) as *mut u8;
            // SAFETY: these pages are new, zero and known to no one else; the allocator
            // uses only what it grew itself. They stay as long as the module.
            Self(unsafe { core::slice::from_raw_parts_mut(start, bytes) })
        }

        pub(in super::super) fn bytes(&self) -> &[u8] {
            self.0
        }

        pub(in super::super) fn bytes_mut(&mut self) -> &mut [u8] {
            self.0
        }

        /// Grows to `bytes`, if it is still the last run of linear memory.
        pub(in super::super) fn grow(&mut self, bytes: usize) -> bool {
            let start = self.0.as_mut_ptr();
            let end = (start as usize + self.0.len()).div_ceil(WASM_PAGE);
            let pages = (start as usize + bytes).div_ceil(WASM_PAGE);
            if bytes < self.0.len() || memory_size::<0>() != end {
                return false;
            }
            if memory_grow::<0>(pages - end) != end {
                return false;
            }
            // SAFETY: the old slice is replaced. The run now includes the pages behind it,
            // which are new, as in `new`.
            self.0 = unsafe { core::slice::from_raw_parts_mut(start, bytes) };
            true
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod copied {
    use super::super::ALIGNMENT;

    /// A buffer larger than its bytes, which begin at `start`.
    #[derive(Debug)]
    pub(in super::super) struct Backing {
        buffer: Vec<u8>,
        start: usize,
        size: usize,
    }

    impl Backing {
        /// Allocates `size` zero bytes.
        pub(in super::super) fn new(size: usize) -> Self {
            let buffer = vec![0; size + ALIGNMENT];
            let start = buffer.as_ptr().addr().wrapping_neg() % ALIGNMENT;
            Self {
                buffer,
                start,
                size,
            }
        }

        pub(in super::super) fn bytes(&self) -> &[u8] {
            &self.buffer[self.start..self.start + self.size]
        }

        pub(in super::super) fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.buffer[self.start..self.start + self.size]
        }

        /// Grows to `size` bytes, elsewhere.
        pub(in super::super) fn grow(&mut self, size: usize) -> bool {
            if size < self.size {
                return false;
            }
            let mut grown = Self::new(size);
            grown.bytes_mut()[..self.size].copy_from_slice(self.bytes());
            *self = grown;
            true
        }
    }
}
