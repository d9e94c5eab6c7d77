//! Dates: milliseconds since 1970 and their UTC calendar fields.
//!
//! There is no local time (decision D34): texts without a zone are UTC. Time values are `f64`
//! milliseconds within ±8.64e15, NaN being the invalid date (ECMA-262 §21.4.1). The module
//! reads no clock.

mod iso;
mod legacy;
pub mod locale;
pub mod zone;

/// Milliseconds of a day.
const MS_PER_DAY: f64 = 86_400_000.0;

/// Largest magnitude of a time value (ECMA-262 §21.4.1.1).
const MAX_TIME: f64 = 8.64e15;

/// Bound of years and months: beyond it no day brings the date back into range. Integer
/// arithmetic within it is exact.
const MAX_YEAR: f64 = 1_000_000.0;
const MAX_MONTH: f64 = 10_000_000.0;

/// The UTC calendar fields of a time value; all NaN for the invalid date.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fields {
    /// Astronomical year.
    pub year: f64,
    /// Month, 1 to 12.
    pub month: f64,
    /// Day of the month, 1 to 31.
    pub day: f64,
    /// Hours, 0 to 23.
    pub hours: f64,
    /// Minutes, 0 to 59.
    pub minutes: f64,
    /// Seconds, 0 to 59.
    pub seconds: f64,
    /// Milliseconds, 0 to 999.
    pub ms: f64,
    /// Day of the week, Sunday being 0.
    pub weekday: f64,
}

/// `TimeClip` (ECMA-262 §21.4.1.31): whole milliseconds in range, or NaN.
#[must_use]
pub fn time_clip(ms: f64) -> f64 {
    if ms.abs() <= MAX_TIME {
        ms.trunc() + 0.0
    } else {
        f64::NAN
    }
}

/// The calendar fields of a time value in milliseconds.
#[must_use]
pub fn fields(ms: f64) -> Fields {
    let ms = time_clip(ms);
    if ms.is_nan() {
        let nan = f64::NAN;
        return Fields {
            year: nan,
            month: nan,
            day: nan,
            hours: nan,
            minutes: nan,
            seconds: nan,
            ms: nan,
            weekday: nan,
        };
    }
    let days = (ms / MS_PER_DAY).floor() as i64;
    let within = ms as i64 - days * MS_PER_DAY as i64;
    let (year, month, day) = civil_from_days(days);
    Fields {
        year: year as f64,
        month: month as f64,
        day: day as f64,
        hours: (within / 3_600_000) as f64,
        minutes: (within / 60_000 % 60) as f64,
        seconds: (within / 1000 % 60) as f64,
        ms: (within % 1000) as f64,
        // 1970-01-01 was a Thursday.
        weekday: (days + 4).rem_euclid(7) as f64,
    }
}

/// The time value of UTC fields, each truncated and free to overflow into the
/// next; `month0` counts from 0. NaN when a field is not finite or the date is
/// out of range (ECMA-262 §21.4.1.27 to .31). Years 0 to 99 are themselves.
#[must_use]
pub fn from_fields(
    year: f64,
    month0: f64,
    day: f64,
    hours: f64,
    minutes: f64,
    seconds: f64,
    ms: f64,
) -> f64 {
    let all = [year, month0, day, hours, minutes, seconds, ms];
    if !all.iter().all(|field| field.is_finite()) {
        return f64::NAN;
    }
    let [year, month0, day, hours, minutes, seconds, ms] = all.map(f64::trunc);
    if year.abs() > MAX_YEAR || month0.abs() > MAX_MONTH {
        return f64::NAN;
    }
    let months = year as i64 * 12 + month0 as i64;
    let first = days_from_civil(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
    let days = first as f64 + (day - 1.0);
    let time = hours * 3_600_000.0 + minutes * 60_000.0 + seconds * 1000.0 + ms;
    time_clip(days * MS_PER_DAY + time)
}

/// `toISOString` (ECMA-262 §21.4.4.36), with six year digits and a sign
/// outside 0 to 9999. The invalid date, for which the language throws, gives
/// `"Invalid Date"`; callers test for NaN first.
#[must_use]
pub fn to_iso(ms: f64) -> String {
    let f = fields(ms);
    if f.year.is_nan() {
        return "Invalid Date".to_owned();
    }
    let mut out = String::with_capacity("+275760-09-13T00:00:00.000Z".len());
    if (0.0..=9999.0).contains(&f.year) {
        digits(&mut out, f.year, 4);
    } else {
        out.push(if f.year < 0.0 { '-' } else { '+' });
        digits(&mut out, f.year.abs(), 6);
    }
    for (before, number, count) in [
        ('-', f.month, 2),
        ('-', f.day, 2),
        ('T', f.hours, 2),
        (':', f.minutes, 2),
        (':', f.seconds, 2),
        ('.', f.ms, 3),
    ] {
        out.push(before);
        digits(&mut out, number, count);
    }
    out.push('Z');
    out
}

/// Appends a whole number with `count` digits. The formats of `std` take about ten times as
/// long for this type, and the price of a date's text is only that of its units.
fn digits(out: &mut String, number: f64, count: usize) {
    const POWERS: [u32; 6] = [100_000, 10_000, 1_000, 100, 10, 1];
    let number = number as u32;
    for power in &POWERS[POWERS.len() - count..] {
        out.push(char::from(b'0' + (number / power % 10) as u8));
    }
}

/// `Date.parse` (ECMA-262 §21.4.3.2): the ISO format, else the informal formats of the common
/// engines. `None` for other text, and for text of more than 16 KiB.
#[must_use]
pub fn parse(text: &[u8]) -> Option<f64> {
    /// Comments and fractions may be long, but must not take noticeable time.
    const MAX_BYTES: usize = 16 << 10;
    let text = crate::wtf8::trim(text);
    if text.len() > MAX_BYTES {
        return None;
    }
    let ms = match iso::parse(text) {
        Some(ms) => ms,
        None if iso::is_illegal(text) => return None,
        None => legacy::parse(text)?,
    };
    let clipped = time_clip(ms);
    (!clipped.is_nan()).then_some(clipped)
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have the leap day last; eras are 400 years.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day from the days since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// A run of decimal digits read by a parser.
#[derive(Clone, Copy)]
struct Digits {
    /// The value, saturating.
    value: i64,
    /// The number of digits.
    count: usize,
}

/// Parses the digits at the start; `None` if there are none.
fn read_digits(text: &[u8]) -> Option<Digits> {
    let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let value = text[..count].iter().fold(0_i64, |sum, d| {
        sum.saturating_mul(10).saturating_add(i64::from(d - b'0'))
    });
    (count > 0).then_some(Digits { value, count })
}

/// Milliseconds from the digits after a decimal point; further digits are truncated.
fn fraction_ms(digits: &[u8]) -> i64 {
    let digit = |index: usize| digits.get(index).map_or(0, |d| i64::from(d - b'0'));
    digit(0) * 100 + digit(1) * 10 + digit(2)
}

#[cfg(test)]
mod tests;
