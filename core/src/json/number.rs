//! Number formatting as in JavaScript (ECMA-262 §6.1.6.1.20).

use serde_json::ser::{CompactFormatter, Formatter as _};

/// 2^53: integers below are exact in `f64` and in `i64`.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Most integer digits without an exponent.
const MAX_PLAIN_DIGITS: i32 = 21;
/// Lowest position of the first digit that is written as `0.000..`.
const MIN_PLAIN_POINT: i32 = -5;

/// Appends a number as JSON text: `null` if it is not finite (ECMA-262 §25.5.2.2).
pub fn write_json_number(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        write_js_number(number, out);
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends the text of `Number::toString(number, 10)`.
pub fn write_js_number(number: f64, out: &mut Vec<u8>) {
    if number.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if number < 0.0 {
        out.push(b'-');
    }
    let number = number.abs();
    if number.is_infinite() {
        out.extend_from_slice(b"Infinity");
    } else if number < EXACT && number.trunc() == number {
        write_integer(number as u64, out);
    } else {
        write_decimal(number, out);
    }
}

fn write_integer(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a positive finite non-integer, or an integer beyond 2^53, from its shortest digits.
fn write_decimal(number: f64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 32];
    match Shortest::of(number, &mut buffer) {
        Shortest::Same(text) => out.extend_from_slice(text),
        Shortest::Other(digits, exponent) => {
            let (digits, count) = significant(digits);
            place_point(&digits[..count], exponent + 1, out);
        }
    }
}

/// Length of the JSON text of a number, for the price of finding its digits.
#[must_use]
pub fn json_number_len(number: f64) -> usize {
    if !number.is_finite() {
        return "null".len();
    }
    let sign = usize::from(number < 0.0);
    let number = number.abs();
    if number < EXACT && number.trunc() == number {
        let digits = (number as u64).checked_ilog10().unwrap_or(0) as usize + 1;
        return sign + digits;
    }
    let mut buffer = [0u8; 32];
    let length = match Shortest::of(number, &mut buffer) {
        Shortest::Same(text) => text.len(),
        Shortest::Other(digits, exponent) => {
            let (digits, count) = significant(digits);
            let mut text = Vec::with_capacity(32);
            place_point(&digits[..count], exponent + 1, &mut text);
            text.len()
        }
    };
    sign + length
}

/// The shortest digits that read back as the number: of those the nearest, of two equally near the
/// even ones. The formats of `std` do not guarantee the latter and are several times slower. Digits
/// have the form `dd.dddd` or `d.dddde+16`.
enum Shortest<'b> {
    /// The same text as in JavaScript.
    Same(&'b [u8]),
    /// Digits and an exponent for which JavaScript writes zeros.
    Other(&'b [u8], i32),
}

impl<'b> Shortest<'b> {
    fn of(number: f64, buffer: &'b mut [u8; 32]) -> Shortest<'b> {
        let size = buffer.len();
        let mut rest = &mut buffer[..];
        // Cannot fail: the buffer is large enough.
        let _ = CompactFormatter.write_f64(&mut rest, number);
        let used = size - rest.len();
        let text = &buffer[..used];
        let Some(mark) = text.iter().rposition(|&b| b == b'e') else {
            return match text.strip_suffix(b".0") {
                Some(whole) => Shortest::Same(whole),
                None => Shortest::Same(text),
            };
        };
        let exponent = std::str::from_utf8(&text[mark + 1..]);
        let exponent: i32 = exponent.map_or(0, |text| text.parse().unwrap_or(0));
        match (MIN_PLAIN_POINT..=MAX_PLAIN_DIGITS).contains(&(exponent + 1)) {
            true => Shortest::Other(&text[..mark], exponent),
            false => Shortest::Same(text),
        }
    }
}

/// The digits without the decimal point, and their count.
fn significant(text: &[u8]) -> ([u8; 32], usize) {
    let (mut digits, mut count) = ([0u8; 32], 0);
    for &byte in text.iter().filter(|b| b.is_ascii_digit()) {
        digits[count] = byte;
        count += 1;
    }
    (digits, count)
}

/// Writes 0.`digits` x 10^`point` by the cases of ECMA-262 §6.1.6.1.20.
fn place_point(digits: &[u8], point: i32, out: &mut Vec<u8>) {
    let count = digits.len() as i32;
    if (MIN_PLAIN_POINT..=0).contains(&point) {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + point.unsigned_abs() as usize, b'0');
        out.extend_from_slice(digits);
    } else if count <= point && point <= MAX_PLAIN_DIGITS {
        out.extend_from_slice(digits);
        out.resize(out.len() + (point - count) as usize, b'0');
    } else if 0 < point && point <= MAX_PLAIN_DIGITS {
        let (whole, part) = digits.split_at(point as usize);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(part);
    } else {
        let (first, rest) = digits.split_at(1);
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        out.extend_from_slice(if point > 0 { b"e+" } else { b"e-" });
        write_integer(u64::from((point - 1).unsigned_abs()), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn javascript_forms() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-7, "1.25e-7"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (-1e-7, "-1e-7"),
            (1234.5678, "1234.5678"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            let mut out = Vec::new();
            write_js_number(number, &mut out);
            assert_eq!(std::str::from_utf8(&out).unwrap(), expected);
            if number.is_finite() {
                assert_eq!(json_number_len(number), expected.len(), "{number}");
            }
        }
        assert_eq!(json_number_len(f64::NAN), 4);
        let mut out = Vec::new();
        write_json_number(f64::NAN, &mut out);
        assert_eq!(out, b"null");
    }

    /// Digits and exponent of a number by the formats of `std`.
    fn by_std(number: f64) -> String {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').expect("an exponent");
        let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).collect();
        let mut out = Vec::new();
        let point: i32 = exponent.parse().expect("a number");
        place_point(&digits, point + 1, &mut out);
        String::from_utf8(out).expect("digits")
    }

    #[test]
    fn digits_are_the_nearest_of_the_shortest() {
        let mut state: u64 = 5;
        let mut bits = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed ^ (mixed >> 27)
        };
        let any = (0..300_000).map(|_| f64::from_bits(bits() >> 1));
        let any: Vec<f64> = any.filter(|number| number.is_finite()).collect();
        // Powers of two have neighbours at different distances.
        let powers = (0..2_047_u64).map(|exponent| f64::from_bits(exponent << 52));
        let short = (1..3_000).flat_map(|n| {
            let n = f64::from(n);
            [
                n / 8.0,
                n / 1_000.0,
                n * 1e300,
                n / 1e300,
                n * 1e21,
                n * 5e-324,
            ]
        });
        let mut ties = 0;
        for number in any.into_iter().chain(powers).chain(short) {
            if number > 0.0 && number < f64::INFINITY {
                let mut out = Vec::new();
                write_decimal(number, &mut out);
                if number >= EXACT || number.trunc() != number {
                    assert_eq!(json_number_len(-number), out.len() + 1, "{number}");
                }
                let (text, other) = (String::from_utf8(out).unwrap(), by_std(number));
                if text != other {
                    // Of two equally near digits, the even one.
                    assert_eq!(text.len(), other.len(), "{text} {other}");
                    assert_eq!(text.parse(), Ok(number));
                    assert!(text.ends_with(['0', '2', '4', '6', '8']), "{text} {other}");
                    ties += 1;
                }
            }
        }
        assert!(ties < 100, "{ties} ties");
        let mut out = Vec::new();
        let between = 194_505_780_970_023.0 + 0.125;
        write_decimal(between, &mut out);
        assert_eq!(out, b"194505780970023.12");
    }
}
