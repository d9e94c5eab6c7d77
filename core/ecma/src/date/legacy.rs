//! Informal dates: RFC 2822 mails, `Jan 1, 2024`, `2024/01/02 3:04 pm` and similar formats,
//! as the common engines parse them.
//!
//! The language leaves these to implementations (ECMA-262 §21.4.3.2). One pass over the text
//! collects numbers, names, a clock time and an offset, in any order. Unknown words, unlike
//! in some engines, always make the text invalid.

use super::{days_from_civil, fraction_ms, read_digits};

const MONTHS: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

const WEEKDAYS: [&[u8; 3]; 7] = [b"sun", b"mon", b"tue", b"wed", b"thu", b"fri", b"sat"];

/// Zone names and their offsets from UTC in hours (RFC 2822 §4.3).
const ZONES: [(&[u8], i64); 12] = [
    (b"utc", 0),
    (b"ut", 0),
    (b"gmt", 0),
    (b"z", 0),
    (b"est", -5),
    (b"edt", -4),
    (b"cst", -6),
    (b"cdt", -5),
    (b"mst", -7),
    (b"mdt", -6),
    (b"pst", -8),
    (b"pdt", -7),
];

/// Larger years are refused before they are multiplied.
const MAX_YEAR: i64 = 1_000_000;

/// The parts parsed so far.
#[derive(Default)]
struct Parts {
    /// Day, month and year numbers in order of appearance.
    numbers: Vec<i64>,
    /// Month given by name, 1 to 12.
    month: Option<i64>,
    time: Option<Time>,
    /// Whether the clock time is in the afternoon, if am or pm was given.
    afternoon: Option<bool>,
    /// Offset from UTC in minutes.
    offset: Option<i64>,
}

#[derive(Clone, Copy, Default)]
struct Time {
    hours: i64,
    minutes: i64,
    seconds: i64,
    ms: i64,
}

/// Parses an informal date; `None` for other text.
pub(super) fn parse(text: &[u8]) -> Option<f64> {
    let mut parts = Parts::default();
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = match byte {
            b'(' => skip_comment(rest),
            b'0'..=b'9' => parts.number(rest)?,
            b'+' | b'-' if parts.takes_offset(tail) => parts.numeric_offset(byte == b'-', tail)?,
            b'-' | b'/' | b',' | b'.' | b' ' | b'\t' | b'\n' | b'\r' => tail,
            _ if byte.is_ascii_alphabetic() => parts.word(rest)?,
            // White space beyond ASCII, such as the narrow space before "PM".
            _ => match crate::wtf8::trim_start(rest) {
                trimmed if trimmed.len() < rest.len() => trimmed,
                _ => return None,
            },
        };
    }
    parts.finish()
}

/// Skips a comment in parentheses, which may nest.
fn skip_comment(text: &[u8]) -> &[u8] {
    let mut depth = 0_usize;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[index + 1..];
        }
    }
    &[]
}

impl Parts {
    /// A number of the date, or a clock time if a colon follows.
    fn number<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        /// Day, month and year.
        const MAX_NUMBERS: usize = 3;
        let read = read_digits(text)?;
        let rest = &text[read.count..];
        if rest.first() == Some(&b':') && self.time.is_none() {
            return self.clock(read.value, &rest[1..]);
        }
        if self.numbers.len() == MAX_NUMBERS {
            return None;
        }
        self.numbers.push(read.value);
        // The T of "2024-1-5T10:00" is adjacent to both numbers.
        match rest {
            [b'T' | b't', tail @ ..] if tail.first().is_some_and(u8::is_ascii_digit) => Some(tail),
            _ => Some(rest),
        }
    }

    /// Parses the rest of a clock time after its first colon.
    fn clock<'a>(&mut self, hours: i64, text: &'a [u8]) -> Option<&'a [u8]> {
        let minutes = read_digits(text)?;
        let mut rest = &text[minutes.count..];
        let mut time = Time {
            hours,
            minutes: minutes.value,
            ..Time::default()
        };
        if let [b':', tail @ ..] = rest {
            let seconds = read_digits(tail)?;
            time.seconds = seconds.value;
            rest = &tail[seconds.count..];
            if let [b'.', tail @ ..] = rest {
                let count = read_digits(tail)?.count;
                time.ms = fraction_ms(&tail[..count]);
                rest = &tail[count..];
            }
        }
        self.time = Some(time);
        Some(rest)
    }

    /// Whether a sign here begins an offset: after a time or a zone name, and followed by a
    /// digit.
    fn takes_offset(&self, after_sign: &[u8]) -> bool {
        (self.time.is_some() || self.offset == Some(0))
            && after_sign.first().is_some_and(u8::is_ascii_digit)
    }

    /// `hh`, `hhmm` or `hh:mm` after a sign.
    fn numeric_offset<'a>(&mut self, negative: bool, text: &'a [u8]) -> Option<&'a [u8]> {
        let read = read_digits(text)?;
        let mut rest = &text[read.count..];
        let minutes = if let [b':', tail @ ..] = rest {
            let minutes = read_digits(tail)?;
            rest = &tail[minutes.count..];
            read.value.checked_mul(60)?.checked_add(minutes.value)?
        } else if read.count <= 2 {
            read.value * 60
        } else {
            read.value / 100 * 60 + read.value % 100
        };
        /// No zone differs from UTC by a day.
        const MAX_OFFSET: i64 = 24 * 60;
        if minutes >= MAX_OFFSET || self.offset.is_some_and(|offset| offset != 0) {
            return None;
        }
        self.offset = Some(if negative { -minutes } else { minutes });
        Some(rest)
    }

    /// A month, a weekday, am or pm, or a zone.
    fn word<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        let length = text.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (word, mut rest) = text.split_at(length);
        let word = word.to_ascii_lowercase();
        let is_prefix = |name: &[u8; 3]| word.starts_with(name);
        if word == b"am" || word == b"pm" {
            self.time?;
            if self.afternoon.replace(word == b"pm").is_some() {
                return None;
            }
        } else if let Some((_, hours)) = ZONES.iter().find(|(name, _)| *name == word) {
            if self.offset.replace(hours * 60).is_some() {
                return None;
            }
        } else if let Some(index) = MONTHS.iter().position(|name| is_prefix(name)) {
            if self.month.replace(index as i64 + 1).is_some() {
                return None;
            }
        } else if !WEEKDAYS.iter().any(|name| is_prefix(name)) {
            return None;
        }
        // The dot of an abbreviation such as "Jan.".
        if let [b'.', tail @ ..] = rest {
            rest = tail;
        }
        Some(rest)
    }

    fn finish(self) -> Option<f64> {
        let (year, month, day) = self.date()?;
        let mut time = self.time.unwrap_or_default();
        if let Some(afternoon) = self.afternoon {
            if !(0..=12).contains(&time.hours) {
                return None;
            }
            time.hours = time.hours % 12 + if afternoon { 12 } else { 0 };
        }
        let end_of_day = time.hours == 24 && time.minutes == 0 && time.seconds == 0 && time.ms == 0;
        if !end_of_day && (time.hours > 23 || time.minutes > 59 || time.seconds > 59) {
            return None;
        }
        let minutes = time.hours * 60 + time.minutes - self.offset.unwrap_or(0);
        let days = days_from_civil(year, month, 1) + day - 1;
        Some((days * 86_400_000 + minutes * 60_000 + time.seconds * 1000 + time.ms) as f64)
    }

    /// Year, month and day, assigned by the possible range of each number.
    fn date(&self) -> Option<(i64, i64, i64)> {
        let is_day = |number: i64| (1..=31).contains(&number);
        let first = *self.numbers.first()?;
        let second = self.numbers.get(1).copied().unwrap_or(1);
        let third = self.numbers.get(2).copied().unwrap_or(1);
        let (year, month, day) = match self.month {
            None if !is_day(first) => (first, second, third),
            None => (third, first, second),
            Some(month) if !is_day(first) => (first, month, second),
            Some(month) => (second, month, first),
        };
        let year = match year {
            0..=49 => year + 2000,
            50..=99 => year + 1900,
            _ => year,
        };
        let valid = year <= MAX_YEAR && (1..=12).contains(&month) && is_day(day);
        valid.then_some((year, month, day))
    }
}
