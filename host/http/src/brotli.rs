//! Brotli decoder that counts its memory (security N08).
//!
//! A few bytes can make the decoder allocate a window of 16 MiB (RFC 7932 section 9.1), in
//! addition to the decompressed body.

use brotli_decompressor::writer::DecompressorWriterCustomAlloc;
use brotli_decompressor::{Allocator, SliceWrapper, StandardAlloc};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The counting allocator of one decoder; clones share the count.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

impl<T: Clone + Default> Allocator<T> for Counted {
    type AllocatedMemory = <StandardAlloc as Allocator<T>>::AllocatedMemory;

    fn alloc_cell(&mut self, len: usize) -> Self::AllocatedMemory {
        let bytes = len.saturating_mul(size_of::<T>());
        self.0.fetch_add(bytes, Ordering::Relaxed);
        StandardAlloc::default().alloc_cell(len)
    }

    fn free_cell(&mut self, data: Self::AllocatedMemory) {
        let bytes = size_of_val(data.slice());
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

type Buffer = <StandardAlloc as Allocator<u8>>::AllocatedMemory;

/// A decoder that writes its output.
pub(crate) struct Brotli<W: Write> {
    writer: DecompressorWriterCustomAlloc<W, Buffer, Counted, Counted, Counted>,
    taken: Counted,
}

impl<W: Write> Brotli<W> {
    /// A decoder that writes `step` bytes at a time.
    pub(crate) fn new(to: W, step: usize) -> Brotli<W> {
        let taken = Counted::default();
        let [mut texts, numbers, codes] = [taken.clone(), taken.clone(), taken.clone()];
        let buffer = texts.alloc_cell(step);
        Brotli {
            writer: DecompressorWriterCustomAlloc::new(to, buffer, texts, numbers, codes),
            taken,
        }
    }

    /// Bytes that the decoder holds, without its output.
    pub(crate) fn taken(&self) -> usize {
        self.taken.0.load(Ordering::Relaxed)
    }

    pub(crate) fn get_ref(&self) -> &W {
        self.writer.get_ref()
    }

    pub(crate) fn get_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.writer.close()
    }
}

impl<W: Write> Write for Brotli<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two uncompressed parts of one byte, of a window of 2^24 bytes.
    const WIDE: [u8; 9] = [0x0F, 0, 0x80, b'a', 0, 0, 0x08, b'b', 3];

    #[test]
    fn n08_a_window_is_counted() {
        let mut brotli = Brotli::new(Vec::new(), 1 << 10);
        assert!((1 << 10..1 << 20).contains(&brotli.taken()));
        brotli.write_all(&WIDE[..6]).expect("a stream");
        assert!((1 << 24..1 << 25).contains(&brotli.taken()));
        brotli.write_all(&WIDE[6..]).expect("a stream");
        brotli.close().expect("the end");
        assert_eq!(brotli.get_ref(), b"ab");
        let taken = brotli.taken.clone();
        drop(brotli);
        assert!(taken.0.load(Ordering::Relaxed) < 1 << 20);
    }
}
