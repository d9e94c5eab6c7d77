//! `toFixed`, `toExponential` and `toPrecision`: the exact value rounded to a number of
//! digits, ties away from zero (ECMA-262 §21.1.3.2, .3 and .5).
//!
//! The standard library's precision formatting is exact but rounds ties to even, so ties are
//! detected beforehand and rounded here.

use super::radix::decimal_digits;
use super::shortest::{Shortest, parse_exponent};
use super::{into_string, non_finite, number_to_string, push_exponential, push_plain};
use crate::RangeError;
use crate::arith::to_integer_or_infinity;

/// Maximum number of digits of the three methods.
const MAX_DIGITS: f64 = 100.0;

/// Number of digits that the standard library computes without long arithmetic.
const FAST_DIGITS: usize = 17;

/// From here on `toFixed` uses `Number::toString`.
const FIXED_LIMIT: f64 = 1e21;

/// `Number.prototype.toFixed` (ECMA-262 §21.1.3.3); `digits` is truncated.
///
/// # Errors
/// `digits` outside 0 to 100.
pub fn to_fixed(x: f64, digits: f64) -> Result<String, RangeError> {
    let digits = to_integer_or_infinity(digits);
    if !(0.0..=MAX_DIGITS).contains(&digits) {
        return Err(RangeError::new(
            "toFixed() argument must be between 0 and 100",
        ));
    }
    if x.is_nan() || x.abs() >= FIXED_LIMIT {
        return Ok(number_to_string(x));
    }
    let digits = digits as usize;
    let magnitude = x.abs();
    let mut text = if is_tie(magnitude, -(digits as i32) - 1) {
        // One digit more is the exact value; dropping its 5 rounds up.
        let mut text = format!("{magnitude:.*}", digits + 1).into_bytes();
        text.truncate(text.len() - if digits == 0 { 2 } else { 1 });
        if increment(&mut text) {
            text.insert(0, b'1');
        }
        into_string(text)
    } else {
        format!("{magnitude:.digits$}")
    };
    if x < 0.0 {
        text.insert(0, '-');
    }
    Ok(text)
}

/// `Number.prototype.toExponential` (ECMA-262 §21.1.3.2); `digits` (after the point) is
/// truncated, `None` uses the shortest form.
///
/// # Errors
/// `digits` outside 0 to 100, for a finite number.
pub fn to_exponential(x: f64, digits: Option<f64>) -> Result<String, RangeError> {
    if let Some(name) = non_finite(x) {
        return Ok(name.to_owned());
    }
    let digits = digits.map(to_integer_or_infinity);
    if digits.is_some_and(|digits| !(0.0..=MAX_DIGITS).contains(&digits)) {
        return Err(RangeError::new(
            "toExponential() argument must be between 0 and 100",
        ));
    }
    let mut out = Vec::new();
    if x < 0.0 {
        out.push(b'-');
    }
    match digits {
        Some(digits) => {
            let (digits, exponent) = rounded_digits(x.abs(), digits as usize + 1);
            push_exponential(&mut out, &digits, exponent);
        }
        None => {
            let shortest = Shortest::of(x.abs());
            push_exponential(&mut out, shortest.digits(), shortest.exponent());
        }
    }
    Ok(into_string(out))
}

/// `Number.prototype.toPrecision` (ECMA-262 §21.1.3.5); `precision`
/// (significant digits) is truncated, `None` is `Number::toString`.
///
/// # Errors
/// `precision` outside 1 to 100, for a finite number.
pub fn to_precision(x: f64, precision: Option<f64>) -> Result<String, RangeError> {
    let Some(precision) = precision.map(to_integer_or_infinity) else {
        return Ok(number_to_string(x));
    };
    if let Some(name) = non_finite(x) {
        return Ok(name.to_owned());
    }
    if !(1.0..=MAX_DIGITS).contains(&precision) {
        return Err(RangeError::new(
            "toPrecision() argument must be between 1 and 100",
        ));
    }
    let mut out = Vec::new();
    if x < 0.0 {
        out.push(b'-');
    }
    let (digits, exponent) = rounded_digits(x.abs(), precision as usize);
    if exponent < -6 || exponent >= precision as i32 {
        push_exponential(&mut out, &digits, exponent);
    } else {
        push_plain(&mut out, &digits, exponent);
    }
    Ok(into_string(out))
}

/// `count` significant digits of a finite, non-negative number and the decimal
/// exponent of the first one.
fn rounded_digits(x: f64, count: usize) -> (Vec<u8>, i32) {
    if count > FAST_DIGITS {
        let (mut digits, exponent) = decimal_digits(x, count + 1);
        // The digit after the last one decides the rounding of the exact value.
        return match digits.pop() {
            Some(b'5'..) if increment(&mut digits) => {
                digits.pop();
                digits.insert(0, b'1');
                (digits, exponent + 1)
            }
            _ => (digits, exponent),
        };
    }
    let (digits, exponent) = formatted_digits(x, count);
    // Rounding up to a power of ten increments the exponent.
    let grown = digits[0] == b'1' && digits[1..].iter().all(|digit| *digit == b'0');
    let is_tie = |exponent: i32| is_tie(x, exponent - count as i32);
    if !(is_tie(exponent) || grown && is_tie(exponent - 1)) {
        return (digits, exponent);
    }
    // One digit more is the exact value; dropping its 5 rounds up.
    let (mut digits, exponent) = formatted_digits(x, count + 1);
    if digits.pop() != Some(b'5') {
        return formatted_digits(x, count);
    }
    if !increment(&mut digits) {
        return (digits, exponent);
    }
    digits.pop();
    digits.insert(0, b'1');
    (digits, exponent + 1)
}

/// As [`rounded_digits`], but ties go to even.
pub(super) fn formatted_digits(x: f64, count: usize) -> (Vec<u8>, i32) {
    let text = format!("{x:.*e}", count - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    (digits, parse_exponent(exponent.as_bytes()))
}

/// Whether the last non-zero decimal digit of `x` (finite, not negative) is a
/// 5 that stands for `5 * 10^position`.
///
/// With `x = m * 2^e` and `m` odd, that holds just when `e = position` and
/// `5^(position + 1)` divides `m`.
pub(super) fn is_tie(x: f64, position: i32) -> bool {
    /// Larger powers of five exceed every mantissa (5^23 > 2^53).
    const MAX_POWER_OF_FIVE: i32 = 22;
    if x == 0.0 {
        return false;
    }
    let bits = x.to_bits();
    let biased = ((bits >> 52) & 0x7FF) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) = if biased == 0 {
        (fraction, -1074)
    } else {
        (fraction | (1 << 52), biased - 1075)
    };
    let zeros = mantissa.trailing_zeros();
    if exponent + zeros as i32 != position {
        return false;
    }
    let power = position + 1;
    power <= 0 || (power <= MAX_POWER_OF_FIVE && (mantissa >> zeros) % 5_u64.pow(power as u32) == 0)
}

/// Increments the last digit, skipping a point; true if the carry left the first digit.
fn increment(text: &mut [u8]) -> bool {
    for byte in text.iter_mut().rev() {
        match *byte {
            b'.' => {}
            b'9' => *byte = b'0',
            _ => {
                *byte += 1;
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed() {
        let cases: &[(f64, f64, &str)] = &[
            (1.005, 2.0, "1.00"),
            (1.45, 1.0, "1.4"),
            (2.5, 0.0, "3"),
            (-1.5, 0.0, "-2"),
            (1e21, 2.0, "1e+21"),
            (0.0, 2.0, "0.00"),
            (-0.0, 2.0, "0.00"),
            (123.456, 1.0, "123.5"),
            (f64::NAN, 2.0, "NaN"),
            (1e-6, 7.0, "0.0000010"),
            (10.235, 2.0, "10.23"),
            (-1e-7, 2.0, "-0.00"),
            (0.5, 0.0, "1"),
            (1.5, 0.0, "2"),
            (19.99, 20.0, "19.98999999999999843681"),
            (9.5, 0.0, "10"),
            (99.5, 0.0, "100"),
            (9.96875, 4.0, "9.9688"),
            (0.125, 2.0, "0.13"),
            (-0.125, 2.0, "-0.13"),
            (
                999_999_999_999_999_900_000.0,
                1.0,
                "999999999999999868928.0",
            ),
        ];
        for &(x, digits, text) in cases {
            assert_eq!(to_fixed(x, digits).as_deref(), Ok(text), "{x} {digits}");
        }
        for digits in [-1.0, 101.0, f64::INFINITY] {
            assert_eq!(
                to_fixed(1.0, digits).unwrap_err().message(),
                "toFixed() argument must be between 0 and 100"
            );
        }
        assert_eq!(to_fixed(1.0, -0.5).as_deref(), Ok("1"));
    }

    #[test]
    fn precision() {
        let cases: &[(f64, f64, &str)] = &[
            (123.456, 4.0, "123.5"),
            (0.000_123, 2.0, "0.00012"),
            (25.0, 1.0, "3e+1"),
            (35.0, 1.0, "4e+1"),
            (1250.0, 2.0, "1.3e+3"),
            (0.0, 3.0, "0.00"),
            (99.99, 3.0, "100"),
            (99.99, 2.0, "1.0e+2"),
            (95.0, 1.0, "1e+2"),
            (1e21, 22.0, "1000000000000000000000"),
            (1e-7, 2.0, "1.0e-7"),
            (-1.25, 2.0, "-1.3"),
            (f64::INFINITY, 200.0, "Infinity"),
        ];
        for &(x, precision, text) in cases {
            assert_eq!(to_precision(x, Some(precision)).as_deref(), Ok(text), "{x}");
        }
        assert_eq!(to_precision(1.5, None).as_deref(), Ok("1.5"));
        assert!(to_precision(1.0, Some(0.0)).is_err());
        assert!(to_precision(1.0, Some(101.0)).is_err());
    }

    #[test]
    fn exponential() {
        let cases: &[(f64, Option<f64>, &str)] = &[
            (123_456.0, Some(2.0), "1.23e+5"),
            (0.0, None, "0e+0"),
            (0.0, Some(2.0), "0.00e+0"),
            (123_456.0, None, "1.23456e+5"),
            (-1e-7, Some(0.0), "-1e-7"),
            (2.5, Some(0.0), "3e+0"),
            (9.5, Some(0.0), "1e+1"),
            (f64::NAN, Some(-3.0), "NaN"),
        ];
        for &(x, digits, text) in cases {
            assert_eq!(to_exponential(x, digits).as_deref(), Ok(text), "{x}");
        }
        assert!(to_exponential(1.0, Some(-1.0)).is_err());
        let long = to_exponential(5e-324, Some(100.0)).unwrap();
        assert_eq!(long.len(), 2 + 100 + 5);
    }

    #[test]
    fn every_small_dyadic_tie_rounds_up() {
        for n in 0..4000_u32 {
            let x = f64::from(2 * n + 1) / 2.0;
            assert_eq!(to_fixed(x, 0.0).unwrap(), (n + 1).to_string());
            let x = f64::from(2 * n + 1) / 8.0;
            let thousandths = (2 * n + 1) * 125;
            let hundredths = (thousandths + 5) / 10;
            let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            assert_eq!(to_fixed(x, 2.0).unwrap(), text);
        }
    }
}
