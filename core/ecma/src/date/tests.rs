//! Tests of the date functions.

use super::*;

fn iso(text: &str) -> String {
    parse(text.as_bytes()).map_or_else(|| "none".to_owned(), to_iso)
}

/// Days of a month.
fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[test]
fn calendar_round_trips() {
    let mut previous = civil_from_days(-800_001);
    for days in -800_000..=800_000 {
        let (year, month, day) = civil_from_days(days);
        assert_eq!(days_from_civil(year, month, day), days);
        assert!((year, month, day) > previous);
        assert!((1..=days_in_month(year, month)).contains(&day));
        previous = (year, month, day);
    }
}

#[test]
fn fields_and_weekdays() {
    let f = fields(1_709_211_909_120.0);
    assert_eq!((f.year, f.month, f.day), (2024.0, 2.0, 29.0));
    assert_eq!(
        (f.hours, f.minutes, f.seconds, f.ms),
        (13.0, 5.0, 9.0, 120.0)
    );
    assert_eq!(f.weekday, 4.0);
    assert_eq!(fields(-1.0).year, 1969.0);
    assert_eq!(fields(-1.0).ms, 999.0);
    assert_eq!(fields(0.0).weekday, 4.0);
    assert!(fields(f64::NAN).year.is_nan());
    assert!(fields(8.64e15 + 1.0).weekday.is_nan());
}

#[test]
fn iso_texts() {
    assert_eq!(to_iso(0.0), "1970-01-01T00:00:00.000Z");
    assert_eq!(to_iso(8.64e15), "+275760-09-13T00:00:00.000Z");
    assert_eq!(to_iso(-8.64e15), "-271821-04-20T00:00:00.000Z");
    assert_eq!(to_iso(-62_198_755_200_000.0), "-000001-01-01T00:00:00.000Z");
    assert_eq!(to_iso(f64::NAN), "Invalid Date");
}

#[test]
fn iso_texts_are_those_of_the_formats_of_std() {
    for turn in -40_000..40_000_i64 {
        let ms = (turn * 215_999_999_987) as f64;
        let f = fields(ms);
        let sign = if f.year < 0.0 { '-' } else { '+' };
        let year = match f.year {
            0.0..=9999.0 => format!("{:04}", f.year),
            year => format!("{sign}{:06}", year.abs()),
        };
        let (date, time) = ((f.month, f.day), (f.hours, f.minutes, f.seconds, f.ms));
        let expected = format!(
            "{year}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            date.0, date.1, time.0, time.1, time.2, time.3
        );
        assert_eq!(to_iso(ms), expected, "{ms}");
    }
}

#[test]
fn fields_overflow() {
    assert_eq!(
        to_iso(from_fields(2023.0, 1.0, 31.0, 0.0, 0.0, 0.0, 0.0)),
        "2023-03-03T00:00:00.000Z"
    );
    assert_eq!(
        to_iso(from_fields(2024.0, -1.0, 1.0, 25.0, -1.0, 0.0, 1.9)),
        "2023-12-02T00:59:00.001Z"
    );
    assert_eq!(
        to_iso(from_fields(99.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0)),
        "0099-01-01T00:00:00.000Z"
    );
    assert!(from_fields(1e300, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0).is_nan());
    assert!(from_fields(2024.0, f64::NAN, 1.0, 0.0, 0.0, 0.0, 0.0).is_nan());
    assert!(from_fields(275_761.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0).is_nan());
    assert!(from_fields(2024.0, 0.0, 1e300, 0.0, 0.0, 0.0, 0.0).is_nan());
}

#[test]
fn iso_parsing() {
    let cases = [
        ("2024", "2024-01-01T00:00:00.000Z"),
        ("2024-02", "2024-02-01T00:00:00.000Z"),
        ("2024-02-29", "2024-02-29T00:00:00.000Z"),
        ("2024-07-01T00:30:00", "2024-07-01T00:30:00.000Z"),
        ("2024-02-29T13:05:09.12Z", "2024-02-29T13:05:09.120Z"),
        ("2024-02-29T13:05:09.1239999Z", "2024-02-29T13:05:09.123Z"),
        ("2024-02-29T13:05+02:30", "2024-02-29T10:35:00.000Z"),
        ("2024-02-29 13:05:09-01:00", "2024-02-29T14:05:09.000Z"),
        ("2024-02T10:00Z", "2024-02-01T10:00:00.000Z"),
        ("2024-12-31T24:00:00", "2025-01-01T00:00:00.000Z"),
        ("+275760-09-13T00:00:00Z", "+275760-09-13T00:00:00.000Z"),
        ("-000001-01-01T00:00:00Z", "-000001-01-01T00:00:00.000Z"),
        ("+275760-09-13T00:00:00.001Z", "none"),
        ("-000000-01-01T00:00:00Z", "none"),
        ("2024-13-01", "none"),
        ("2023-02-29", "2023-03-01T00:00:00.000Z"),
        ("2024-01-32", "none"),
        ("2023-02-30 10:00 UTC", "2023-03-02T10:00:00.000Z"),
        ("2024-02-29T25:00:00Z", "none"),
        ("2024-02-29T24:00:01Z", "none"),
        ("2024-02-29T13:60Z", "none"),
    ];
    for (text, expected) in cases {
        assert_eq!(iso(text), expected, "{text}");
    }
}

#[test]
fn informal_parsing() {
    let cases = [
        ("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z"),
        (
            "Thu Jan 01 1970 00:00:00 GMT+0100 (Central European Time)",
            "1969-12-31T23:00:00.000Z",
        ),
        ("Jan 1, 2024", "2024-01-01T00:00:00.000Z"),
        ("1 January 2024 10:00", "2024-01-01T10:00:00.000Z"),
        ("January 2024", "2024-01-01T00:00:00.000Z"),
        ("2024/01/02", "2024-01-02T00:00:00.000Z"),
        ("1/2/2024", "2024-01-02T00:00:00.000Z"),
        ("01/02/99", "1999-01-02T00:00:00.000Z"),
        ("2024-1-5", "2024-01-05T00:00:00.000Z"),
        ("12/25/1995 1:30 PM", "1995-12-25T13:30:00.000Z"),
        ("Dec 25, 1995 12:05:06.789 am", "1995-12-25T00:05:06.789Z"),
        (
            "Mon, 25 Dec 1995 13:30:00 +0430",
            "1995-12-25T09:00:00.000Z",
        ),
        ("Mon, 25 Dec 1995 13:30:00 EST", "1995-12-25T18:30:00.000Z"),
        ("2024-01-02 10:00:00 UTC", "2024-01-02T10:00:00.000Z"),
        ("2024-01-02 10:00:00 +02", "2024-01-02T08:00:00.000Z"),
        ("1.2.2024", "2024-01-02T00:00:00.000Z"),
        ("", "none"),
        ("yesterday-ish", "none"),
        ("nonsense", "none"),
        ("12", "2001-12-01T00:00:00.000Z"),
        ("99999999999999999999", "none"),
        ("10:30", "none"),
        ("1 2 3 4", "none"),
        ("Jan Feb 1 2024", "none"),
        ("(((", "none"),
        ("1/2/2024 10:00 +99999999999999999999", "none"),
        ("Jan 1 2024 13:00 pm", "none"),
    ];
    for (text, expected) in cases {
        assert_eq!(iso(text), expected, "{text}");
    }
}

#[test]
fn printed_dates_read_back() {
    let mut seed = 3_u64;
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let ms = ((seed >> 10) as f64 - 9_007_199_254_740_992.0).clamp(-8.64e15, 8.64e15);
        assert_eq!(parse(to_iso(ms).as_bytes()), Some(ms));
        let f = fields(ms);
        let back = from_fields(
            f.year,
            f.month - 1.0,
            f.day,
            f.hours,
            f.minutes,
            f.seconds,
            f.ms,
        );
        assert_eq!(back, ms);
    }
}

#[test]
fn broken_texts_never_panic() {
    let alphabet: &[&[u8]] = &[
        b"1",
        b"99999999999999999999",
        b":",
        b"-",
        b"+",
        b"T",
        b"Jan",
        b"pm",
        b"(",
        b".",
        b"\xED\xA0\x80",
    ];
    let mut seed = 5_u64;
    for _ in 0..50_000 {
        let mut text = Vec::new();
        for _ in 0..6 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.extend_from_slice(alphabet[(seed >> 40) as usize % alphabet.len()]);
        }
        let _ = parse(&text);
    }
}
