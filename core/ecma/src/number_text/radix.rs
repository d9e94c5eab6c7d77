//! `Number.prototype.toString` with a radix (ECMA-262 §21.1.3.6).
//!
//! The language leaves the digits to implementations. As in JavaScriptCore the integer part
//! is exact, and the fraction has enough digits to distinguish the number from its
//! neighbours, the last one rounded.

use super::{into_string, non_finite, number_to_string};
use crate::RangeError;
use crate::arith::to_integer_or_infinity;

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Number of 32-bit limbs for the integer part of any double (2^1024).
const WHOLE_LIMBS: usize = 32;

/// Number of 64-bit limbs for the fraction of any double and half the step to its neighbour:
/// the least bit is 2^-1075.
const FRACTION_LIMBS: usize = 17;

/// Formats `x` in the given radix, which is truncated.
///
/// # Errors
/// A radix outside 2 to 36.
pub fn to_radix(x: f64, radix: f64) -> Result<String, RangeError> {
    let radix = to_integer_or_infinity(radix);
    if !(2.0..=36.0).contains(&radix) {
        return Err(RangeError::new(
            "toString() radix argument must be between 2 and 36",
        ));
    }
    if radix == 10.0 {
        return Ok(number_to_string(x));
    }
    if let Some(name) = non_finite(x) {
        return Ok(name.to_owned());
    }
    let radix = radix as u32;
    let magnitude = x.abs();
    let whole = magnitude.floor();
    let mut fraction = Vec::new();
    let mut carry = false;
    if magnitude > whole {
        (fraction, carry) = fraction_digits(magnitude, whole, radix);
    }
    let mut out = whole_digits(if carry { whole + 1.0 } else { whole }, radix);
    if x < 0.0 {
        out.push(b'-');
    }
    out.reverse();
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend(fraction.iter().map(|&digit| DIGITS[digit as usize]));
    }
    Ok(into_string(out))
}

/// The digits of an integer, last one first.
fn whole_digits(whole: f64, radix: u32) -> Vec<u8> {
    let mut limbs = [0_u32; WHOLE_LIMBS];
    let (mantissa, exponent) = decompose(whole);
    if exponent >= 0 {
        place(&mut limbs, mantissa, exponent as usize);
    } else {
        place(&mut limbs, mantissa >> (-exponent).min(63), 0);
    }
    let mut used = WHOLE_LIMBS;
    let mut out = Vec::new();
    // Each division by a limb yields several digits.
    let (chunk, digits) = power_below(u64::from(radix), 1 << 32);
    loop {
        while used > 0 && limbs[used - 1] == 0 {
            used -= 1;
        }
        // Division by a constant compiles to a multiplication.
        let mut rest = match chunk {
            1_000_000_000 => divide(&mut limbs[..used], 1_000_000_000),
            _ => divide(&mut limbs[..used], chunk),
        };
        let is_last = limbs[..used].iter().all(|limb| *limb == 0);
        for _ in 0..digits {
            out.push(DIGITS[(rest % radix) as usize]);
            rest /= radix;
            if is_last && rest == 0 {
                return out;
            }
        }
    }
}

/// Divides an integer in limbs by a divisor below 2^32 and returns the remainder.
#[inline(always)]
fn divide(limbs: &mut [u32], divisor: u64) -> u32 {
    let mut remainder = 0;
    for limb in limbs.iter_mut().rev() {
        let value = remainder << 32 | u64::from(*limb);
        *limb = (value / divisor) as u32;
        remainder = value % divisor;
    }
    remainder as u32
}

/// The first decimal digits of the exact value of a finite, non-negative number, and the
/// exponent of the first one.
pub(super) fn decimal_digits(x: f64, count: usize) -> (Vec<u8>, i32) {
    /// The largest power of ten in a limb, and its exponent.
    const CHUNK: (u64, usize) = (10_000_000_000_000_000_000, 19);
    if x == 0.0 {
        return (vec![b'0'; count], 0);
    }
    let whole = x.floor();
    let mut digits = match whole {
        0.0 => Vec::new(),
        _ => whole_digits(whole, 10),
    };
    digits.reverse();
    let mut exponent = digits.len() as i32 - 1;
    let mut fraction = Fixed::half_of(x - whole);
    fraction.multiply(2);
    while digits.len() < count {
        fraction.multiply(CHUNK.0);
        let mut rest = std::mem::take(&mut fraction.whole);
        if digits.is_empty() && rest == 0 {
            exponent -= CHUNK.1 as i32;
            continue;
        }
        let mut chunk = [b'0'; CHUNK.1];
        for digit in chunk.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let mut new = &chunk[..];
        if digits.is_empty() {
            let zeros = chunk.iter().take_while(|digit| **digit == b'0').count();
            exponent -= zeros as i32;
            new = &chunk[zeros..];
        }
        digits.extend_from_slice(new);
    }
    digits.truncate(count);
    (digits, exponent)
}

/// The largest power of `base` below `limit`, and its exponent.
fn power_below(base: u64, limit: u128) -> (u64, u32) {
    let (mut power, mut exponent) = (base, 1);
    while u128::from(power) * u128::from(base) < limit {
        power *= base;
        exponent += 1;
    }
    (power, exponent)
}

/// The digit values after the point of `value`, which is not an integer and has the integer
/// part `whole`. The flag is set if rounding carried past the point.
fn fraction_digits(value: f64, whole: f64, radix: u32) -> (Vec<u8>, bool) {
    let next = f64::from_bits(value.to_bits() + 1);
    let last = f64::from_bits(value.to_bits() - 1);
    let mut fraction = Fixed::half_of(value - whole);
    fraction.multiply(2);
    let mut half_next = Fixed::half_of(next - value);
    let mut half_last = Fixed::half_of(value - last);
    let mut digits: Vec<u8> = Vec::new();
    // Ties go to an even text: in an even radix the last digit decides, in an odd one the sum
    // of all digits.
    let whole_is_odd = whole % 2.0 != 0.0;
    let mut odd = whole_is_odd;
    // Skips leading zeros of a small number in chunks: a value below a limb's least bit stays
    // below one, and the steps to its neighbours scale with it.
    let (chunk, zeros) = power_below(u64::from(radix), 1 << 64);
    while fraction.is_below_a_limb() {
        for number in [&mut fraction, &mut half_next, &mut half_last] {
            number.multiply(chunk);
        }
        digits.resize(digits.len() + zeros as usize, 0);
    }
    let radix = u64::from(radix);
    loop {
        let half = fraction.compare_half();
        if half.is_gt() || (half.is_eq() && odd) {
            if fraction.reaches_past_one_with(&half_next) {
                return round_up(digits, radix as u32);
            }
        } else if fraction.is_less_than(&half_last) {
            while digits.last() == Some(&0) {
                digits.pop();
            }
            return (digits, false);
        }
        fraction.multiply(radix);
        let digit = std::mem::take(&mut fraction.whole) as u8;
        digits.push(digit);
        odd = (digit & 1 == 1) ^ (radix & 1 == 1 && odd);
        half_next.multiply(radix);
        half_last.multiply(radix);
    }
}

/// Increments the last digit, dropping digits that overflow.
fn round_up(mut digits: Vec<u8>, radix: u32) -> (Vec<u8>, bool) {
    while let Some(last) = digits.pop() {
        if u32::from(last) + 1 < radix {
            digits.push(last + 1);
            return (digits, false);
        }
    }
    (digits, true)
}

/// Mantissa and binary exponent of a finite, non-negative number.
fn decompose(x: f64) -> (u64, i32) {
    let biased = (x.to_bits() >> 52 & 0x7FF) as i32;
    let fraction = x.to_bits() & ((1 << 52) - 1);
    if biased == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, biased - 1075)
    }
}

/// Stores a mantissa in little-endian limbs, shifted left by `shift` bits.
fn place(limbs: &mut [u32], mantissa: u64, shift: usize) {
    let wide = u128::from(mantissa) << (shift % 32);
    for (index, limb) in limbs.iter_mut().skip(shift / 32).take(3).enumerate() {
        *limb = (wide >> (32 * index)) as u32;
    }
}

/// A small integer and an exact binary fraction, limbs in little-endian order.
struct Fixed {
    whole: u64,
    limbs: [u64; FRACTION_LIMBS],
    /// Range of the limbs that may be non-zero.
    used: std::ops::Range<usize>,
}

impl Fixed {
    /// Half of a number below one.
    fn half_of(x: f64) -> Self {
        const FRACTION_BITS: i32 = 64 * FRACTION_LIMBS as i32;
        let (mantissa, exponent) = decompose(x);
        let mut limbs = [0; FRACTION_LIMBS];
        let shift = usize::try_from(FRACTION_BITS + exponent - 1).unwrap_or(0);
        let wide = u128::from(mantissa) << (shift % 64);
        let first = shift / 64;
        for (index, limb) in limbs.iter_mut().skip(first).take(2).enumerate() {
            *limb = (wide >> (64 * index)) as u64;
        }
        Self {
            whole: 0,
            limbs,
            used: first..(first + 2).min(FRACTION_LIMBS),
        }
    }

    /// Whether it is below 2^-64.
    fn is_below_a_limb(&self) -> bool {
        self.whole == 0 && self.limbs[FRACTION_LIMBS - 1] == 0
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0_u64;
        for limb in &mut self.limbs[self.used.clone()] {
            let value = u128::from(*limb) * u128::from(factor) + u128::from(carry);
            *limb = value as u64;
            carry = (value >> 64) as u64;
        }
        if self.used.end == FRACTION_LIMBS {
            self.whole = self.whole.wrapping_mul(factor).wrapping_add(carry);
        } else if carry != 0 {
            self.limbs[self.used.end] = carry;
            self.used.end += 1;
        }
        while self.used.start < self.used.end && self.limbs[self.used.start] == 0 {
            self.used.start += 1;
        }
    }

    /// Compares a fraction (with integer part zero) with one half.
    fn compare_half(&self) -> std::cmp::Ordering {
        let (top, rest) = self.limbs.split_last().unwrap_or((&0, &[]));
        let rest_is_zero = || rest.iter().all(|&limb| limb == 0);
        match top.cmp(&(1 << 63)) {
            std::cmp::Ordering::Equal if !rest_is_zero() => std::cmp::Ordering::Greater,
            order => order,
        }
    }

    fn is_less_than(&self, other: &Self) -> bool {
        let limbs = self.limbs.iter().rev().cmp(other.limbs.iter().rev());
        self.whole.cmp(&other.whole).then(limbs).is_lt()
    }

    /// Whether the sum with `other` is greater than one.
    fn reaches_past_one_with(&self, other: &Self) -> bool {
        let (mut carry, mut rest_is_zero) = (0_u128, true);
        for (&a, &b) in self.limbs.iter().zip(&other.limbs) {
            let value = u128::from(a) + u128::from(b) + carry;
            rest_is_zero &= value as u64 == 0;
            carry = value >> 64;
        }
        let whole = u128::from(self.whole) + u128::from(other.whole) + carry;
        whole > 1 || (whole == 1 && !rest_is_zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let cases: &[(f64, f64, &str)] = &[
            (255.0, 16.0, "ff"),
            (-255.0, 2.0, "-11111111"),
            (35.0, 36.0, "z"),
            (0.5, 2.0, "0.1"),
            (3.75, 2.0, "11.11"),
            (1e21, 10.0, "1e+21"),
            (f64::NAN, 2.0, "NaN"),
            (-0.0, 2.0, "0"),
            (1e21, 16.0, "3635c9adc5dea00000"),
            (1e21, 36.0, "5v1j4f4ds79m9s"),
            (
                9_007_199_254_740_994.0,
                3.0,
                "1121202011211211122211100012101121",
            ),
            (f64::NEG_INFINITY, 36.0, "-Infinity"),
        ];
        for &(x, radix, text) in cases {
            assert_eq!(to_radix(x, radix).as_deref(), Ok(text), "{x} {radix}");
        }
        for radix in [1.0, 37.0, f64::NAN, f64::INFINITY] {
            assert_eq!(
                to_radix(1.0, radix).unwrap_err().message(),
                "toString() radix argument must be between 2 and 36"
            );
        }
    }

    /// Many digits at once are those that come one by one.
    #[test]
    fn e1_digits_of_small_and_large_numbers_are_exact() {
        let digits = |x: f64, radix: f64| {
            let text = to_radix(x, radix).unwrap();
            let zeros = text
                .bytes()
                .take_while(|b| matches!(b, b'0' | b'.'))
                .count();
            (text.len(), text[zeros..].to_owned())
        };
        assert_eq!(digits(5e-324, 3.0), (680, "2".to_owned()));
        for power in [1.0, 3.0, 40.0, 41.0, 600.0] {
            let (x, radix) = (2f64.powi(power as i32), 2.0);
            assert_eq!(
                to_radix(x, radix).unwrap(),
                format!("1{}", "0".repeat(power as usize))
            );
            let small = format!("0.{}1", "0".repeat(power as usize - 1));
            assert_eq!(to_radix(1.0 / x, radix).unwrap(), small);
        }
        let whole = to_radix(1e300, 36.0).unwrap();
        let value = whole.chars().fold(0.0, |sum: f64, c| {
            sum.mul_add(36.0, f64::from(c.to_digit(36).unwrap()))
        });
        assert!((value / 1e300 - 1.0).abs() < 1e-12, "{whole}");
        for (x, wanted) in [
            (f64::MAX, format!("{:.99e}", f64::MAX)),
            (5e-324, format!("{:.99e}", 5e-324)),
            (0.1, format!("{:.54e}", 0.1)),
        ] {
            let (mantissa, exponent) = wanted.split_once('e').unwrap();
            let mantissa = mantissa.replace('.', "");
            let (digits, found) = decimal_digits(x, mantissa.len() - 1);
            assert_eq!(found.to_string(), exponent);
            assert!(mantissa.as_bytes().starts_with(&digits), "{x:e}");
        }
    }

    #[test]
    fn extremes_are_exact() {
        assert_eq!(
            to_radix(f64::MAX, 2.0).unwrap(),
            "1".repeat(53) + &"0".repeat(971)
        );
        let least = to_radix(5e-324, 2.0).unwrap();
        assert_eq!(least, format!("0.{}1", "0".repeat(1073)));
        let one_below = f64::from_bits(1.0_f64.to_bits() - 1);
        assert_eq!(
            to_radix(one_below, 2.0).unwrap(),
            format!("0.{}", "1".repeat(53))
        );
    }

    #[test]
    fn fractions_read_back() {
        let mut seed = 11_u64;
        for _ in 0..3000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let x = f64::from_bits((seed >> 12) | 0x3FE0_0000_0000_0000);
            let text = to_radix(x, 16.0).unwrap();
            let digits = text.strip_prefix("0.").unwrap();
            let scaled = u64::from_str_radix(digits, 16).unwrap() as f64;
            assert_eq!(scaled / 16.0_f64.powi(digits.len() as i32), x, "{text}");
        }
    }
}
