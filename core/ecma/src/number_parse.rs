//! Number parsing: `ToNumber` of a string, `parseFloat`, `parseInt` and JSON numbers.
//!
//! All functions are linear in the length of the text and correctly rounded (for radixes that
//! are neither ten nor powers of two: as exact as ECMA-262 §19.2.5 requires, up to 2^53).
//! Input is WTF-8; invalid numbers are NaN, never an error.

use crate::arith::to_int32;
use crate::tick::{Tick, whole};
use crate::wtf8::{trim, trim_start};

/// Length above which decimal texts are first cut to their leading digits.
const LONG_DECIMAL: usize = 1024;

/// Significant digits kept of a long text. 767 decide any rounding; one more digit represents
/// the rest.
const KEPT_DIGITS: usize = 800;

/// Exponents beyond this are infinite or zero for any kept digits.
const EXPONENT_BOUND: i64 = 20_000;

/// Decimal integers of at most this many digits are exact below 2^53.
const SHORT_INTEGER: usize = 15;

/// Bytes of a number scanned between two calls of a [`Tick`].
const PIECE: usize = 8 << 10;

/// Whether all bytes of a text satisfy `is`.
fn all<E>(text: &[u8], tick: &mut impl Tick<E>, mut is: impl FnMut(u8) -> bool) -> Result<bool, E> {
    Ok(run(text, tick, &mut is)? == text.len())
}

/// Length of the prefix whose bytes satisfy `is`.
fn run<E>(
    text: &[u8],
    tick: &mut impl Tick<E>,
    mut is: impl FnMut(u8) -> bool,
) -> Result<usize, E> {
    if text.len() <= PIECE {
        return Ok(text.iter().position(|&b| !is(b)).unwrap_or(text.len()));
    }
    for (n, part) in text.chunks(PIECE).enumerate() {
        if n > 0 {
            tick(part.len())?;
        }
        if let Some(end) = part.iter().position(|&byte| !is(byte)) {
            return Ok(n * PIECE + end);
        }
    }
    Ok(text.len())
}

/// `StringToNumber` (ECMA-262 §7.1.4.1.1).
#[must_use]
pub fn string_to_number(text: &[u8]) -> f64 {
    whole(trimmed_to_number(trim(text), &mut |_| Ok(())))
}

/// [`string_to_number`] for possibly long text without white space at its ends.
///
/// # Errors
/// Those of `tick`.
pub fn trimmed_to_number<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<f64, E> {
    match text {
        [] => return Ok(0.0),
        [b'0', b'x' | b'X', digits @ ..] => return whole_power_of_two(digits, 4, tick),
        [b'0', b'o' | b'O', digits @ ..] => return whole_power_of_two(digits, 3, tick),
        [b'0', b'b' | b'B', digits @ ..] => return whole_power_of_two(digits, 1, tick),
        _ => {}
    }
    let (negative, body) = split_sign(text);
    let value = if body == b"Infinity" {
        f64::INFINITY
    } else if decimal_prefix(body, tick)? == Some(body.len()) {
        decimal(body, tick)?
    } else {
        return Ok(f64::NAN);
    };
    Ok(if negative { -value } else { value })
}

/// `parseFloat` (ECMA-262 §19.2.4): the longest prefix that is a decimal.
#[must_use]
pub fn parse_float(text: &[u8]) -> f64 {
    whole(trimmed_float(trim_start(text), &mut |_| Ok(())))
}

/// [`parse_float`] for possibly long text without leading white space.
///
/// # Errors
/// Those of `tick`.
pub fn trimmed_float<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<f64, E> {
    let (negative, body) = split_sign(text);
    let value = if body.starts_with(b"Infinity") {
        f64::INFINITY
    } else if let Some(end) = decimal_prefix(body, tick)? {
        decimal(&body[..end], tick)?
    } else {
        return Ok(f64::NAN);
    };
    Ok(if negative { -value } else { value })
}

/// `parseInt` (ECMA-262 §19.2.5); `radix` is the number before `ToInt32`, NaN
/// or zero meaning none was given.
#[must_use]
pub fn parse_int(text: &[u8], radix: f64) -> f64 {
    whole(trimmed_int(trim_start(text), radix, &mut |_| Ok(())))
}

/// [`parse_int`] for possibly long text without leading white space.
///
/// # Errors
/// Those of `tick`.
pub fn trimmed_int<E>(text: &[u8], radix: f64, tick: &mut impl Tick<E>) -> Result<f64, E> {
    let (negative, mut body) = split_sign(text);
    let mut radix = to_int32(radix);
    if radix == 0 || radix == 16 {
        if let [b'0', b'x' | b'X', rest @ ..] = body {
            body = rest;
            radix = 16;
        } else if radix == 0 {
            radix = 10;
        }
    }
    if !(2..=36).contains(&radix) {
        return Ok(f64::NAN);
    }
    let radix = radix as u32;
    let body = &body[..run(body, tick, |b| digit(b, radix).is_some())?];
    if body.is_empty() {
        return Ok(f64::NAN);
    }
    let value = if radix == 10 {
        decimal(body, tick)?
    } else if radix.is_power_of_two() {
        power_of_two(body, radix.trailing_zeros(), tick)?
    } else {
        let mut sum = 0.0;
        all(body, tick, |b| {
            let d = digit(b, radix).unwrap_or(0);
            sum = sum * f64::from(radix) + f64::from(d);
            true
        })?;
        sum
    };
    Ok(if negative { -value } else { value })
}

/// Parses a number in the grammar of JSON (RFC 8259 §6) that spans the whole text.
#[must_use]
pub fn json_number(text: &[u8]) -> Option<f64> {
    whole(long_json_number(text, &mut |_| Ok(())))
}

/// [`json_number`] for possibly long text.
///
/// # Errors
/// Those of `tick`.
pub fn long_json_number<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<Option<f64>, E> {
    let (negative, body) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let whole_part = digit_run(body, tick)?;
    if whole_part == 0 || (whole_part > 1 && body[0] == b'0') {
        return Ok(None);
    }
    let mut end = whole_part;
    if body.get(end) == Some(&b'.') {
        let fraction = digit_run(&body[end + 1..], tick)?;
        if fraction == 0 {
            return Ok(None);
        }
        end += 1 + fraction;
    }
    end += exponent_length(&body[end..], tick)?;
    if end != body.len() {
        return Ok(None);
    }
    let value = decimal(body, tick)?;
    Ok(Some(if negative { -value } else { value }))
}

/// Splits a leading `+` or `-` off.
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Length of the run of decimal digits at the start.
fn digit_run<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<usize, E> {
    run(text, tick, |b| b.is_ascii_digit())
}

/// Length of an exponent part (`e`, sign, digits) at the start, or zero.
fn exponent_length<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<usize, E> {
    let [b'e' | b'E', rest @ ..] = text else {
        return Ok(0);
    };
    let (_, digits) = split_sign(rest);
    Ok(match digit_run(digits, tick)? {
        0 => 0,
        run => text.len() - digits.len() + run,
    })
}

/// Length of the longest unsigned decimal literal at the start.
fn decimal_prefix<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<Option<usize>, E> {
    let whole = digit_run(text, tick)?;
    let mut end = whole;
    if text.get(end) == Some(&b'.') {
        let fraction = digit_run(&text[end + 1..], tick)?;
        if whole + fraction == 0 {
            return Ok(None);
        }
        end += 1 + fraction;
    } else if whole == 0 {
        return Ok(None);
    }
    Ok(Some(end + exponent_length(&text[end..], tick)?))
}

/// The value of a text that [`decimal_prefix`] accepts entirely.
fn decimal<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<f64, E> {
    if text.len() <= SHORT_INTEGER && text.iter().all(u8::is_ascii_digit) {
        let n = text
            .iter()
            .fold(0_u64, |sum, d| sum * 10 + u64::from(d - b'0'));
        return Ok(n as f64);
    }
    if text.len() <= LONG_DECIMAL {
        return Ok(standard_decimal(text));
    }
    Ok(standard_decimal(&shorten(text, tick)?))
}

fn standard_decimal(text: &[u8]) -> f64 {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(f64::NAN)
}

/// A short decimal with the value that a long one rounds to. The exponent stays exact for any
/// number of digits, unlike the standard library's bounded exponent.
fn shorten<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<Vec<u8>, E> {
    let mantissa_end = run(text, tick, |b| !matches!(b, b'e' | b'E'))?;
    let mut digits = Vec::with_capacity(KEPT_DIGITS + 16);
    let (mut exponent, mut after_point, mut dropped) = (0_i64, false, false);
    all(&text[..mantissa_end], tick, |byte| {
        if byte == b'.' {
            after_point = true;
            return true;
        }
        let leading_zero = byte == b'0' && digits.is_empty();
        let kept = !leading_zero && digits.len() < KEPT_DIGITS;
        if kept {
            digits.push(byte);
        } else if !leading_zero {
            dropped |= byte != b'0';
        }
        if after_point && (kept || leading_zero) {
            exponent -= 1;
        } else if !after_point && !kept && !leading_zero {
            exponent += 1;
        }
        true
    })?;
    if digits.is_empty() {
        return Ok(b"0".to_vec());
    }
    if dropped {
        digits.push(b'1');
        exponent -= 1;
    }
    if let Some(literal) = text.get(mantissa_end + 1..) {
        exponent = exponent.saturating_add(exponent_value(literal, tick)?);
    }
    let exponent = exponent.clamp(-EXPONENT_BOUND, EXPONENT_BOUND);
    digits.push(b'e');
    crate::number_text::write_integer(&mut digits, exponent);
    Ok(digits)
}

/// The value of an exponent, saturating.
fn exponent_value<E>(text: &[u8], tick: &mut impl Tick<E>) -> Result<i64, E> {
    let (negative, digits) = split_sign(text);
    let mut magnitude = 0_i64;
    all(digits, tick, |d| {
        magnitude = magnitude
            .saturating_mul(10)
            .saturating_add(i64::from(d - b'0'));
        true
    })?;
    Ok(if negative { -magnitude } else { magnitude })
}

/// The value of a digit or letter in the radix.
#[inline]
fn digit(byte: u8, radix: u32) -> Option<u32> {
    char::from(byte).to_digit(radix)
}

/// The value of a text that consists of digits of the radix `2^bits`; else NaN.
fn whole_power_of_two<E>(digits: &[u8], bits: u32, tick: &mut impl Tick<E>) -> Result<f64, E> {
    if digits.is_empty() || !all(digits, tick, |b| digit(b, 1 << bits).is_some())? {
        return Ok(f64::NAN);
    }
    power_of_two(digits, bits, tick)
}

/// The correctly rounded value of digits of the radix `2^bits`.
fn power_of_two<E>(digits: &[u8], bits: u32, tick: &mut impl Tick<E>) -> Result<f64, E> {
    let (mut value, mut dropped_bits, mut sticky) = (0_u64, 0_usize, false);
    all(digits, tick, |b| {
        let d = digit(b, 1 << bits).unwrap_or(0);
        if dropped_bits == 0 && value.leading_zeros() >= bits {
            value = (value << bits) | u64::from(d);
        } else {
            dropped_bits += bits as usize;
            sticky |= d != 0;
        }
        true
    })?;
    // The dropped bits are below the rounding position of the 59 or more kept bits; a sticky
    // bit at the end represents them.
    let kept = (value | u64::from(sticky)) as f64;
    if dropped_bits > 1023 {
        return Ok(f64::INFINITY);
    }
    Ok(kept * f64::from_bits((1023 + dropped_bits as u64) << 52))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn to_number() {
        let cases: &[(&str, f64)] = &[
            ("", 0.0),
            (" \n\t\u{FEFF}\u{A0}\u{2029} ", 0.0),
            ("42", 42.0),
            (" -17.5e-1 ", -1.75),
            ("+.5", 0.5),
            ("5.", 5.0),
            ("-0", -0.0),
            (".", f64::NAN),
            ("+", f64::NAN),
            ("1e", f64::NAN),
            ("1_0", f64::NAN),
            ("0x1F", 31.0),
            ("-0x1F", f64::NAN),
            ("0x", f64::NAN),
            ("0o17", 15.0),
            ("0b101", 5.0),
            ("0b102", f64::NAN),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("inf", f64::NAN),
            ("infinity", f64::NAN),
            ("nan", f64::NAN),
            ("1e1000", f64::INFINITY),
            ("1e-1000", 0.0),
            ("12px", f64::NAN),
            ("1 2", f64::NAN),
            ("0x20000000000001", 9_007_199_254_740_992.0),
            ("0x20000000000003", 9_007_199_254_740_996.0),
        ];
        for &(text, value) in cases {
            let got = string_to_number(text.as_bytes());
            assert!(same(got, value), "{text:?}: {got}");
        }
        assert!(string_to_number(&[0xED, 0xA0, 0x80]).is_nan());
    }

    #[test]
    fn ints() {
        let cases: &[(&str, f64, f64)] = &[
            ("42px", f64::NAN, 42.0),
            ("  -17.9 ", f64::NAN, -17.0),
            ("0x1F", f64::NAN, 31.0),
            ("0xff", 16.0, 255.0),
            ("101", 2.0, 5.0),
            ("z", 36.0, 35.0),
            ("9", 8.0, f64::NAN),
            ("12", 1.0, f64::NAN),
            ("12", 37.0, f64::NAN),
            ("12", 4_294_967_306.0, 12.0),
            ("+5", 0.0, 5.0),
            ("-0", 0.0, -0.0),
            ("true", 36.0, 1_389_110.0),
            ("0x", 16.0, f64::NAN),
            ("0x", 10.0, 0.0),
            ("9007199254740993", 10.0, 9_007_199_254_740_992.0),
            ("100000000000000000000000", 10.0, 1e23),
        ];
        for &(text, radix, value) in cases {
            let got = parse_int(text.as_bytes(), radix);
            assert!(same(got, value), "{text:?}: {got}");
        }
    }

    #[test]
    fn floats() {
        let cases: &[(&str, f64)] = &[
            ("3.25abc", 3.25),
            (".5.5", 0.5),
            ("-.5e-2x", -0.005),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("Infinityx", f64::INFINITY),
            ("inf", f64::NAN),
            ("0x10", 0.0),
            (" \n 2", 2.0),
            ("-0", -0.0),
            ("-", f64::NAN),
            ("5.e1", 50.0),
        ];
        for &(text, value) in cases {
            assert!(same(parse_float(text.as_bytes()), value), "{text:?}");
        }
    }

    #[test]
    fn json() {
        for bad in [
            "", "-", "+1", "01", "1.", ".5", "1e", "0x1", "1 ", "NaN", "--1", "1e+",
        ] {
            assert_eq!(json_number(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(json_number(b"-1.5e+3"), Some(-1500.0));
        assert_eq!(json_number(b"0"), Some(0.0));
        assert!(same(json_number(b"-0").unwrap(), -0.0));
        assert_eq!(json_number(b"1E400"), Some(f64::INFINITY));
    }

    #[test]
    fn long_texts_are_exact_and_quick() {
        let long = vec![b'9'; 10_000_000];
        assert_eq!(string_to_number(&long), f64::INFINITY);
        assert_eq!(parse_int(&long, 10.0), f64::INFINITY);
        assert_eq!(parse_int(&long, 16.0), f64::INFINITY);
        assert_eq!(parse_int(&long, 11.0), f64::INFINITY);

        let mut tiny = b"0.".to_vec();
        tiny.resize(200_002, b'0');
        tiny.extend_from_slice(b"15e200001");
        assert_eq!(string_to_number(&tiny), 1.5);

        let mut big = b"25".to_vec();
        big.resize(300_002, b'0');
        big.extend_from_slice(b"e-300000");
        assert_eq!(string_to_number(&big), 25.0);

        // Just above the middle of two doubles, by a digit far away.
        let mut middle = b"9007199254740993.".to_vec();
        middle.resize(5000, b'0');
        assert_eq!(string_to_number(&middle), 9_007_199_254_740_992.0);
        middle.push(b'1');
        assert_eq!(string_to_number(&middle), 9_007_199_254_740_994.0);
    }

    #[test]
    fn powers_of_two_round_to_even() {
        assert_eq!(
            whole(power_of_two(b"20000000000001", 4, &mut |_| Ok(()))),
            9_007_199_254_740_992.0
        );
        let mut sticky = b"20000000000001".to_vec();
        sticky.extend_from_slice(b"0000000000000001");
        let expected = 9_007_199_254_740_994.0 * 18_446_744_073_709_551_616.0;
        assert_eq!(whole(power_of_two(&sticky, 4, &mut |_| Ok(()))), expected);
        let ones = vec![b'1'; 1024];
        assert_eq!(
            whole(power_of_two(&ones, 1, &mut |_| Ok(()))),
            f64::INFINITY
        );
        assert_eq!(
            whole(power_of_two(&ones[..1023], 1, &mut |_| Ok(()))),
            2.0_f64.powi(1023)
        );
    }
}
