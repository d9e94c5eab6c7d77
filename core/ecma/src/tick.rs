//! Work on long text that can be ended early.
//!
//! A function that takes a [`Tick`] calls it at least once for every few
//! thousand bytes, with how many it is about to work on. The ones without are
//! for text that is known to be short.

use std::convert::Infallible;

/// Told of the bytes that are about to be worked on; its error ends the work.
pub trait Tick<E>: FnMut(usize) -> Result<(), E> {}

impl<E, F: FnMut(usize) -> Result<(), E>> Tick<E> for F {}

/// The outcome of work that nothing ends early.
pub(crate) fn whole<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// Bytes that are worked on between two ticks.
pub(crate) const PIECE: usize = 4 << 10;

/// The end of a piece of a text that begins at `at`, between two code points.
pub(crate) fn piece_end(text: &[u8], at: usize) -> usize {
    let mut end = text.len().min(at + PIECE);
    while end < text.len() && text[end] & 0xC0 == 0x80 {
        end += 1;
    }
    end
}
