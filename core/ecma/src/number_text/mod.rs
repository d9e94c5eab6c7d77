//! Number formatting: `Number::toString`, the methods of `Number.prototype`, and en-US
//! grouping.
//!
//! Digits are always correct: the shortest ones that parse to the same number (ECMA-262
//! §6.1.6.1.20), or the exact value rounded with ties away from zero (§21.1.3). Range errors
//! have the messages of JavaScriptCore.

mod exact;
mod locale;
mod radix;
mod shortest;

pub use exact::{to_exponential, to_fixed, to_precision};
pub use locale::{LocaleOptions, LocaleWords, to_locale_string, to_locale_text};
pub use radix::to_radix;
use shortest::Shortest;

/// Integers below this magnitude (2^53) take the integer path.
const EXACT_INTEGER_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Decimal exponents from this one on are written with an exponent (ECMA-262 §6.1.6.1.20).
const PLAIN_DIGITS_LIMIT: i32 = 21;

/// Appends `Number::toString(x)` (ECMA-262 §6.1.6.1.20, radix 10).
#[inline]
pub fn write_number(out: &mut Vec<u8>, x: f64) {
    if x.abs() < EXACT_INTEGER_LIMIT && x.trunc() == x {
        write_integer(out, x as i64);
    } else {
        write_general(out, x);
    }
}

/// `Number::toString(x)` as a string.
#[must_use]
pub fn number_to_string(x: f64) -> String {
    let mut out = Vec::with_capacity(24);
    write_number(&mut out, x);
    into_string(out)
}

/// Appends an integer in decimal; the fast path of [`write_number`].
#[inline]
pub fn write_integer(out: &mut Vec<u8>, value: i64) {
    let mut buffer = [0_u8; 20];
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    out.extend_from_slice(&buffer[at..]);
}

fn write_general(out: &mut Vec<u8>, x: f64) {
    if let Some(name) = non_finite(x) {
        out.extend_from_slice(name.as_bytes());
        return;
    }
    if x < 0.0 {
        out.push(b'-');
    }
    let shortest = Shortest::of(x.abs());
    let digits = shortest.digits();
    let exponent = shortest.exponent();
    if (-6..PLAIN_DIGITS_LIMIT).contains(&exponent) {
        push_plain(out, digits, exponent);
    } else {
        push_exponential(out, digits, exponent);
    }
}

/// The text of NaN and the infinities.
fn non_finite(x: f64) -> Option<&'static str> {
    if x.is_nan() {
        Some("NaN")
    } else if x == f64::INFINITY {
        Some("Infinity")
    } else if x == f64::NEG_INFINITY {
        Some("-Infinity")
    } else {
        None
    }
}

/// Appends digits without an exponent; the first digit has the value `10^exponent`.
fn push_plain(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(digits);
        out.resize(out.len() + whole - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}

/// Appends `d.ddde±x`; the first digit has the value `10^exponent`.
fn push_exponential(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.push(b'e');
    out.push(if exponent < 0 { b'-' } else { b'+' });
    write_integer(out, i64::from(exponent.unsigned_abs()));
}

/// Converts bytes that this module wrote, which are ASCII, to a string.
fn into_string(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_texts() {
        let cases: &[(f64, &str)] = &[
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-42.0, "-42"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (123_456.789, "123456.789"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1.5e-6, "0.0000015"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-7, "1.25e-7"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (-1e-300, "-1e-300"),
            (3_167_102_413_565_561.0 / 4.0, "791775603391390.2"),
            (5_977_881_043_601_969.0 / 4.0, "1494470260900492.2"),
            (5_977_881_043_601_971.0 / 4.0, "1494470260900492.8"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for &(x, text) in cases {
            assert_eq!(number_to_string(x), text);
        }
    }

    #[test]
    fn texts_read_back() {
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let x = f64::from_bits(seed ^ (seed >> 29));
            let text = number_to_string(x);
            let back = crate::number_parse::string_to_number(text.as_bytes());
            assert!(back == x || x.is_nan(), "{text}");
        }
    }
}
