//! `Number.prototype.toLocaleString` in its one locale, en-US.
//!
//! Grouping by thousands, at most three fraction digits, ties away from zero
//! on the shortest digits (ECMA-402 §15.3 defaults). Options and other locales
//! are not offered: output must not depend on the host.

use super::shortest::Shortest;

/// Fraction digits kept by default.
const MAX_FRACTION_DIGITS: i32 = 3;

/// Digits between separators.
const GROUP: usize = 3;

/// `x` as en-US text.
#[must_use]
pub fn to_locale_string(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    let mut out = String::new();
    if x.is_sign_negative() {
        out.push('-');
    }
    if x.is_infinite() {
        out.push('∞');
        return out;
    }
    let (whole, fraction) = rounded(x.abs());
    for (index, &digit) in whole.iter().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(GROUP) {
            out.push(',');
        }
        out.push(char::from(digit));
    }
    if !fraction.is_empty() {
        out.push('.');
        out.extend(fraction.iter().map(|&digit| char::from(digit)));
    }
    out
}

/// Integer and fraction digits after rounding, trailing zeros dropped.
fn rounded(x: f64) -> (Vec<u8>, Vec<u8>) {
    let shortest = Shortest::of(x);
    let digits = shortest.digits();
    let exponent = shortest.exponent();
    // Digit values from 10^max(exponent, 0) down to 10^-3.
    let digit_at = |position: i32| {
        let index = exponent - position;
        usize::try_from(index)
            .ok()
            .and_then(|index| digits.get(index))
            .copied()
            .unwrap_or(b'0')
    };
    let mut all: Vec<u8> = (-MAX_FRACTION_DIGITS..=exponent.max(0))
        .rev()
        .map(digit_at)
        .collect();
    if digit_at(-MAX_FRACTION_DIGITS - 1) >= b'5' {
        let mut carry = true;
        for digit in all.iter_mut().rev() {
            if *digit == b'9' {
                *digit = b'0';
            } else {
                *digit += 1;
                carry = false;
                break;
            }
        }
        if carry {
            all.insert(0, b'1');
        }
    }
    let mut fraction = all.split_off(all.len() - MAX_FRACTION_DIGITS as usize);
    while fraction.last() == Some(&b'0') {
        fraction.pop();
    }
    (all, fraction)
}

#[cfg(test)]
mod tests {
    use super::to_locale_string;

    #[test]
    fn texts() {
        let cases: &[(f64, &str)] = &[
            (1234.5, "1,234.5"),
            (0.0, "0"),
            (-0.0, "-0"),
            (999.0, "999"),
            (1000.0, "1,000"),
            (-1_234_567.891_9, "-1,234,567.892"),
            (0.0004, "0"),
            (0.0005, "0.001"),
            (1.0005, "1.001"),
            (999.9999, "1,000"),
            (1e21, "1,000,000,000,000,000,000,000"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-∞"),
        ];
        for &(x, text) in cases {
            assert_eq!(to_locale_string(x), text);
        }
    }
}
