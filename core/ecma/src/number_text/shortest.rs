//! The shortest decimal digits that parse to the same number.

use super::exact::{formatted_digits, is_tie};
use std::fmt::Write as _;

/// Maximum number of digits of a shortest form.
const MAX_DIGITS: usize = 17;

/// Shortest digits of a positive finite number; the first one has the value `10^exponent`.
pub(super) struct Shortest {
    digits: [u8; MAX_DIGITS],
    len: usize,
    exponent: i32,
}

impl Shortest {
    /// The digits of `x`, which is finite and not negative.
    pub(super) fn of(x: f64) -> Self {
        let mut text = StackText::default();
        // The standard library's `{:e}` is the shortest form that round-trips, and the
        // nearest of those; the buffer fits any of them.
        let _ = write!(text, "{x:e}");
        let mut shortest = Self {
            digits: [b'0'; MAX_DIGITS],
            len: 0,
            exponent: 0,
        };
        let mut parts = text.as_bytes().split(|&b| b == b'e');
        for &byte in parts.next().unwrap_or_default() {
            if byte.is_ascii_digit() && shortest.len < MAX_DIGITS {
                shortest.digits[shortest.len] = byte;
                shortest.len += 1;
            }
        }
        shortest.exponent = parts.next().map_or(0, parse_exponent);
        if is_tie(x, shortest.exponent - shortest.len as i32) {
            shortest.prefer_even(x);
        }
        shortest
    }

    /// Chooses the even one of two equally near shortest forms, as the language requires; the
    /// standard library does not guarantee it.
    #[cold]
    fn prefer_even(&mut self, x: f64) {
        let (digits, exponent) = formatted_digits(x, self.len);
        let text = format!(
            "{}e{}",
            String::from_utf8_lossy(&digits),
            exponent + 1 - self.len as i32
        );
        if text.parse() == Ok(x) {
            self.digits[..self.len].copy_from_slice(&digits);
            self.exponent = exponent;
        }
    }

    pub(super) fn digits(&self) -> &[u8] {
        &self.digits[..self.len.max(1)]
    }

    pub(super) fn exponent(&self) -> i32 {
        self.exponent
    }
}

/// Parses the exponent after the `e` of a formatted number.
pub(super) fn parse_exponent(text: &[u8]) -> i32 {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let magnitude = digits
        .iter()
        .fold(0, |sum, &d| sum * 10 + i32::from(d - b'0'));
    if negative { -magnitude } else { magnitude }
}

/// A stack buffer for the formatter, long enough for any shortest form.
#[derive(Default)]
struct StackText {
    bytes: [u8; 32],
    len: usize,
}

impl StackText {
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl std::fmt::Write for StackText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        let target = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        target.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
