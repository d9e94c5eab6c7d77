//! Fuzz input: arbitrary bytes, read as choices.

/// Reads choices from bytes; past their end all choices are zero.
#[derive(Debug)]
pub(super) struct Script<'a> {
    bytes: &'a [u8],
}

impl<'a> Script<'a> {
    /// Creates a script.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next byte; `None` at the end.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    /// A number below `limit`, which must not be zero.
    pub(super) fn small(&mut self, limit: u8) -> u8 {
        self.byte().unwrap_or(0) % limit
    }

    /// A number of any size, small ones more often.
    pub(super) fn number(&mut self) -> u64 {
        let len = usize::from(self.small(9));
        (0..len).fold(0, |number, _| {
            number << 8 | u64::from(self.byte().unwrap_or(0))
        })
    }

    /// An offset below `size`, mostly a register's.
    pub(super) fn offset(&mut self, size: u64) -> u64 {
        let number = self.number();
        if self.small(8) == 0 {
            number % size
        } else {
            (number & !3) % size.min(0x200)
        }
    }
}
