//! Iteration over UTF-16 units and code points.

use super::{decode, surrogates_of};

/// Iterator over the UTF-16 units of a text; see [`units`].
#[derive(Clone, Debug)]
pub struct Units<'a> {
    text: &'a [u8],
    at: usize,
    pending: Option<u16>,
}

/// The UTF-16 units, in order.
#[inline]
#[must_use]
pub fn units(text: &[u8]) -> Units<'_> {
    Units {
        text,
        at: 0,
        pending: None,
    }
}

impl Iterator for Units<'_> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        if let Some(low) = self.pending.take() {
            return Some(low);
        }
        let (code_point, length) = decode(self.text, self.at)?;
        self.at += length;
        if length < 4 {
            return Some(code_point as u16);
        }
        let (high, low) = surrogates_of(code_point);
        self.pending = Some(low);
        Some(high)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let bytes = self.text.len() - self.at;
        let pending = usize::from(self.pending.is_some());
        (bytes.div_ceil(3) + pending, Some(bytes + pending))
    }
}

/// Iterator over the code points of a text; see [`code_points`].
#[derive(Clone, Debug)]
pub struct CodePoints<'a> {
    text: &'a [u8],
    at: usize,
}

/// The code points; lone surrogates are returned unchanged (ECMA-262 §22.1.5).
#[inline]
#[must_use]
pub fn code_points(text: &[u8]) -> CodePoints<'_> {
    CodePoints { text, at: 0 }
}

impl CodePoints<'_> {
    /// Byte offset of the next code point.
    #[inline]
    #[must_use]
    pub fn byte_offset(&self) -> usize {
        self.at
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let (code_point, length) = decode(self.text, self.at)?;
        self.at += length;
        Some(code_point)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let bytes = self.text.len() - self.at;
        (bytes.div_ceil(4), Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::samples;
    use super::*;

    #[test]
    fn code_points_agree_with_utf16() {
        for (wide, bytes) in samples() {
            let expected: Vec<u32> = char::decode_utf16(wide)
                .map(|c| c.map_or_else(|e| u32::from(e.unpaired_surrogate()), u32::from))
                .collect();
            assert_eq!(code_points(&bytes).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn size_hints_hold() {
        for (_, bytes) in samples() {
            let (low, high) = units(&bytes).size_hint();
            let count = units(&bytes).count();
            assert!(low <= count && count <= high.unwrap());
        }
    }
}
