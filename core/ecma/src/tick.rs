//! Interruptible work on long text.
//!
//! A function with a [`Tick`] calls it at least once per few thousand bytes, with the number
//! of bytes it is about to process. The variants without one are for text that is known to be
//! short.

use std::convert::Infallible;

/// Called with the number of bytes about to be processed; an error ends the work.
pub trait Tick<E>: FnMut(usize) -> Result<(), E> {}

impl<E, F: FnMut(usize) -> Result<(), E>> Tick<E> for F {}

/// The result of work that cannot be interrupted.
pub(crate) fn whole<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// Bytes processed between two ticks.
pub(crate) const PIECE: usize = 4 << 10;

/// The end of the piece of a text that begins at `at`, between two code points.
pub(crate) fn piece_end(text: &[u8], at: usize) -> usize {
    let mut end = text.len().min(at + PIECE);
    while end < text.len() && text[end] & 0xC0 == 0x80 {
        end += 1;
    }
    end
}
