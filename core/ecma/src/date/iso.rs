//! The date time string format (ECMA-262 §21.4.1.32).

use super::{days_from_civil, fraction_ms, read_digits};
use std::ops::RangeInclusive;

/// Valid days of any month: excess days overflow into the next month, so that February 30th
/// is a day in March, as in the common engines.
const DAYS: RangeInclusive<i64> = 1..=31;

/// Parses the whole text; `None` if it has another format. Dates without a time and times
/// without an offset are UTC.
pub(super) fn parse(text: &[u8]) -> Option<f64> {
    let (year, mut rest) = year(text)?;
    let (mut month, mut day) = (1, 1);
    if let Some(value) = field(&mut rest, b'-', 2)? {
        month = value;
        if let Some(value) = field(&mut rest, b'-', 2)? {
            day = value;
        }
    }
    if !(1..=12).contains(&month) || !DAYS.contains(&day) {
        return None;
    }
    let mut ms = days_from_civil(year, month, day) * 86_400_000;
    if let [b'T' | b't' | b' ', tail @ ..] = rest {
        rest = tail;
        ms += time(&mut rest)? + offset(&mut rest)?;
    }
    rest.is_empty().then_some(ms as f64)
}

/// Whether a text that [`parse`] refused has the format but an impossible date, such as
/// January 32nd or the year -000000: those are invalid, not informal.
pub(super) fn is_illegal(text: &[u8]) -> bool {
    if matches!(text, [b'+' | b'-', ..]) {
        return true;
    }
    let Some((_, mut rest)) = year(text) else {
        return false;
    };
    let Some(Some(month)) = field(&mut rest, b'-', 2) else {
        return false;
    };
    let Some(Some(day)) = field(&mut rest, b'-', 2) else {
        return false;
    };
    !(1..=12).contains(&month) || !DAYS.contains(&day)
}

/// `YYYY`, or a sign and `YYYYYY`, except -000000.
fn year(text: &[u8]) -> Option<(i64, &[u8])> {
    let (sign, digits, count) = match text {
        [b'+', digits @ ..] => (1, digits, 6),
        [b'-', digits @ ..] => (-1, digits, 6),
        _ => (1, text, 4),
    };
    let read = read_digits(digits).filter(|read| read.count == count)?;
    if sign < 0 && read.value == 0 {
        return None;
    }
    Some((sign * read.value, &digits[count..]))
}

/// A separator and its digits: the inner `None` means a missing separator, the outer one
/// wrong digits.
fn field(rest: &mut &[u8], separator: u8, count: usize) -> Option<Option<i64>> {
    let Some((&first, digits)) = rest.split_first() else {
        return Some(None);
    };
    if first != separator {
        return Some(None);
    }
    let read = read_digits(digits).filter(|read| read.count == count)?;
    *rest = &digits[count..];
    Some(Some(read.value))
}

/// `HH:mm`, `HH:mm:ss` or `HH:mm:ss.s…` in milliseconds; 24:00 is midnight.
fn time(rest: &mut &[u8]) -> Option<i64> {
    let hours = read_digits(rest).filter(|read| read.count == 2)?.value;
    *rest = &rest[2..];
    let minutes = field(rest, b':', 2)??;
    let seconds = field(rest, b':', 2)?;
    let mut ms = 0;
    if let ([b'.' | b',', digits @ ..], Some(_)) = (*rest, seconds) {
        let count = read_digits(digits)?.count;
        ms = fraction_ms(&digits[..count]);
        *rest = &digits[count..];
    }
    let seconds = seconds.unwrap_or(0);
    let end_of_day = hours == 24 && minutes == 0 && seconds == 0 && ms == 0;
    if !end_of_day && (hours > 23 || minutes > 59 || seconds > 59) {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + ms)
}

/// The milliseconds that an offset (`Z`, `±HH:mm`, or none) adds to reach UTC.
fn offset(rest: &mut &[u8]) -> Option<i64> {
    let sign = match rest {
        [] => return Some(0),
        [b'Z' | b'z'] => {
            *rest = &[];
            return Some(0);
        }
        [b'+', ..] => -1,
        [b'-', ..] => 1,
        _ => return None,
    };
    *rest = &rest[1..];
    let hours = read_digits(rest).filter(|read| read.count == 2)?.value;
    *rest = &rest[2..];
    let minutes = field(rest, b':', 2)??;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}
