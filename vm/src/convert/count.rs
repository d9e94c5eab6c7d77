//! Size of a value's JSON text, computed without writing it.

use super::{BoundaryLimits, rejected, special, temp, too_deep};
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};
use crate::pace::Clock;
use a99_core::json::json_number_len;
use a99_core::text::surrogate_at;
use smallvec::SmallVec;

/// Length of the longest JSON text of a number: `-1.2345678901234567e-308`.
const LONGEST_NUMBER: usize = 25;

/// Length of the longest JSON text of a value other than texts, arrays and objects.
pub(crate) const LONGEST_SCALAR: usize = LONGEST_NUMBER;

/// Maximum bytes of JSON text per byte of a text.
pub(crate) const ESCAPED: usize = 6;

/// Maximum number of fractions waiting to be measured.
const MAX_UNMEASURED: usize = 4096;

/// Bytes of JSON text counted so far, against a limit.
///
/// Measuring a fraction means computing its digits. So fractions are first counted at their
/// maximum, and measured only if the limit depends on it.
pub(super) struct Count {
    left: usize,
    max: usize,
    unmeasured: SmallVec<[f64; 8]>,
}

impl Count {
    pub(super) fn new(limits: &BoundaryLimits) -> Count {
        Count {
            left: limits.max_bytes,
            max: limits.max_bytes,
            unmeasured: SmallVec::new(),
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
            None if !self.unmeasured.is_empty() => {
                self.measure();
                self.add(n)
            }
            None => Err(rejected(format_args!(
                "exceeds the {}-byte limit",
                self.max
            ))),
        }
    }

    /// Measures the pending fractions and subtracts the excess.
    #[cold]
    fn measure(&mut self) {
        for n in std::mem::take(&mut self.unmeasured) {
            self.left += LONGEST_NUMBER.saturating_sub(json_number_len(n));
        }
    }

    /// Counts the brackets and commas of a container, before its elements.
    pub(super) fn container(&mut self, len: usize) -> Result<(), Fault> {
        self.add(len.max(1).saturating_add(1))
    }

    /// Counts a number.
    pub(super) fn number(&mut self, n: f64) -> Result<(), Fault> {
        // Small whole numbers, the common case, are measured without writing them; -0 is
        // written as 0.
        let whole = n as i32;
        if f64::from(whole) == n {
            let digits = whole.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
            return self.add(digits + usize::from(whole < 0));
        }
        if self.left < LONGEST_NUMBER || self.unmeasured.len() == MAX_UNMEASURED {
            self.measure();
        }
        if self.left < LONGEST_NUMBER {
            return self.add(json_number_len(n));
        }
        self.unmeasured.push(n);
        self.add(LONGEST_NUMBER)
    }

    /// Counts a string with quotes and escapes; `clock` counts the reading.
    pub(super) fn string(&mut self, text: &[u8], clock: &mut Clock<'_>) -> Result<(), Fault> {
        // Long text is refused before it is read.
        self.add(text.len().saturating_add(2))?;
        if text.len() <= SHORT && is_plain(text) {
            return clock.work(1 + text.len() as i64 / 4);
        }
        let mut start = 0;
        for part in text.chunks(PART) {
            clock.work(1 + part.len() as i64 / 4)?;
            self.add(escapes(part))?;
            // Lone surrogates are rare, and so is their first byte.
            if part.contains(&SURROGATE) {
                let places = (start..start + part.len()).filter(|at| text[*at] == SURROGATE);
                let halves = places.filter(|at| surrogate_at(&text[*at..]).is_some());
                self.add(3 * halves.count())?;
            }
            start += part.len();
        }
        Ok(())
    }
}

/// Length up to which most texts are names and words without escapes.
const SHORT: usize = 64;

/// Whether a text is ASCII without control characters, quotes and backslashes: its JSON form
/// is two bytes longer.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    text.is_ascii() && special(text).is_none()
}

/// Checks a tree built from a host's JSON text, as [`from_value`](super::from_value) checks
/// the same tree of the host.
///
/// # Errors
/// [`ErrorCode::Boundary`](a99_core::error::ErrorCode::Boundary): too large or too deep;
/// memory; a stop.
pub(crate) fn check_val(cx: &mut Cx<'_>, val: Val, limits: &BoundaryLimits) -> Result<(), Fault> {
    let mut count = Count::new(limits);
    let (heap, mut clock) = cx.split();
    let heap = &*heap;
    // Containers with the next position in each.
    let mut open: Vec<(Ref, bool, usize)> = Vec::new();
    let mut next = val;
    loop {
        clock.work(4)?;
        match next {
            Val::Arr(r) | Val::Obj(r) => {
                if open.len() >= limits.max_depth as usize {
                    return Err(too_deep(limits));
                }
                count.container(heap.len(r))?;
                let object = matches!(next, Val::Obj(_));
                temp::push(heap, &mut open, (r, object, 0))?;
            }
            Val::Bool(false) => count.add(5)?,
            Val::Num(n) => count.number(n)?,
            Val::Str(s) => count.string(heap.bytes(s), &mut clock)?,
            _ => count.add(4)?,
        }
        loop {
            let Some((r, object, at)) = open.last_mut() else {
                return Ok(());
            };
            let Some(item) = heap.items(*r).get(*at) else {
                open.pop();
                continue;
            };
            if *object {
                let key = heap.shapes.keys(heap.shape(*r))[*at];
                count.string(heap.shapes.key_text(key), &mut clock)?;
                count.add(1)?;
            }
            *at += 1;
            next = *item;
            break;
        }
    }
}

/// Bytes of a text read between two yield points.
const PART: usize = 8192;

/// The first byte of lone surrogates, whose JSON text is three bytes longer.
const SURROGATE: u8 = 0xED;

/// Additional bytes of a text's JSON form, without lone surrogates.
fn escapes(text: &[u8]) -> usize {
    /// Number of bytes whose escapes a byte can count.
    const LANES: usize = 32;
    const FEW: [u8; 256] = {
        let mut few = [0; 256];
        let mut byte = 0;
        while byte < few.len() {
            few[byte] = escape(byte as u8);
            byte += 1;
        }
        few
    };
    let (lanes, rest) = text.as_chunks::<LANES>();
    let lane = |lane: &[u8; LANES]| lane.iter().map(|byte| escape(*byte)).sum::<u8>();
    let whole: usize = lanes.iter().map(|bytes| usize::from(lane(bytes))).sum();
    let rest: u8 = rest.iter().map(|byte| FEW[usize::from(*byte)]).sum();
    whole + usize::from(rest)
}

/// Additional bytes for one byte; branch-free, so that it vectorizes.
#[inline]
const fn escape(byte: u8) -> u8 {
    let named = (byte == b'"')
        | (byte == b'\\')
        | (byte.wrapping_sub(0x08) < 3)
        | (byte.wrapping_sub(0x0C) < 2);
    let control = (byte < 0x20) & !named;
    named as u8 + 5 * control as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::Bench;

    #[test]
    fn short_texts_are_plain_that_nothing_is_added_to() {
        for byte in 0..=u8::MAX {
            for (len, at) in (1..20).flat_map(|len| (0..len).map(move |at| (len, at))) {
                let mut text = vec![b'a'; len];
                text[at] = byte;
                let is_plain_byte = byte.is_ascii() && escape(byte) == 0;
                assert_eq!(is_plain(&text), is_plain_byte, "{text:?}");
            }
        }
        assert!(is_plain(b"") && is_plain(b" ~ #![]"));
    }

    #[test]
    fn numbers_count_as_they_are_written() {
        let numbers = [
            0.0,
            -0.0,
            1.0,
            9.0,
            10.0,
            -10.0,
            1e9,
            f64::from(i32::MAX),
            f64::from(i32::MIN),
            2_147_483_648.0,
            1e21,
            0.1,
            -1.5e-7,
            f64::NAN,
        ];
        for n in numbers {
            let mut text = Vec::new();
            a99_core::json::write_json_number(n, &mut text);
            let mut count = Count::new(&BoundaryLimits::default());
            count.number(n).unwrap();
            assert!(count.max - count.left >= text.len(), "{n}");
            count.measure();
            assert_eq!(count.max - count.left, text.len(), "{n}");
        }
    }

    #[test]
    fn texts_count_as_they_are_written() {
        let mut text = Vec::new();
        for byte in 0..0x80 {
            text.push(byte);
            text.resize(text.len() + usize::from(byte) % 7, b'x');
        }
        let rare = [
            "\u{7f}é\u{2028}\u{d7ff}\u{e000}𝄞".as_bytes(),
            b"\xED\xA0\x80",
            b"\xED\xBF\xBFz",
        ];
        text.extend(rare.concat());
        let long = text.repeat(2 * PART / text.len());
        for text in (0..text.len()).map(|at| &text[..at]).chain([&long[..]]) {
            let mut written = Vec::new();
            a99_core::json::write_json_string(text, &mut written);
            let mut count = Count::new(&BoundaryLimits::default());
            let mut bench = Bench::default();
            let mut cx = bench.cx();
            count.string(text, &mut cx.split().1).unwrap();
            assert_eq!(count.max - count.left, written.len(), "{text:?}");
        }
    }

    #[test]
    fn fractions_are_measured_before_a_value_is_refused() {
        let limits = BoundaryLimits {
            max_bytes: 30,
            ..BoundaryLimits::default()
        };
        let mut count = Count::new(&limits);
        for _ in 0..10 {
            count.number(0.5).unwrap();
        }
        assert!(count.number(0.5).is_err());
    }
}
