//! Counting the JSON text of a value without writing it.

use super::{BoundaryLimits, rejected};
use crate::native::Fault;
use a99_core::text::surrogate_at;

/// Bytes of JSON text seen so far, against a limit.
pub(super) struct Count {
    left: usize,
    max: usize,
    scratch: Vec<u8>,
}

impl Count {
    pub(super) fn new(limits: &BoundaryLimits) -> Count {
        Count {
            left: limits.max_bytes,
            max: limits.max_bytes,
            scratch: Vec::new(),
        }
    }

    /// Counts `n` bytes.
    #[inline]
    pub(super) fn add(&mut self, n: usize) -> Result<(), Fault> {
        match self.left.checked_sub(n) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(rejected(format_args!(
                "exceeds the {}-byte limit",
                self.max
            ))),
        }
    }

    /// Counts the brackets and commas of a container, before its elements.
    pub(super) fn container(&mut self, len: usize) -> Result<(), Fault> {
        self.add(len.max(1).saturating_add(1))
    }

    /// Counts a number.
    pub(super) fn number(&mut self, n: f64) -> Result<(), Fault> {
        self.scratch.clear();
        a99_core::json::write_json_number(n, &mut self.scratch);
        self.add(self.scratch.len())
    }

    /// Counts a string with quotes and escapes.
    pub(super) fn string(&mut self, text: &[u8]) -> Result<(), Fault> {
        // Long text is refused before it is looked at.
        self.add(text.len() + 2)?;
        let mut more = 0;
        for (at, byte) in text.iter().enumerate() {
            more += match byte {
                b'"' | b'\\' | 0x08 | 0x09 | 0x0A | 0x0C | 0x0D => 1,
                0x00..0x20 => 5,
                0xED if surrogate_at(&text[at..]).is_some() => 3,
                _ => 0,
            };
        }
        self.add(more)
    }
}
