//! `Number.prototype.toLocaleString` in its one locale, en-US.
//!
//! Grouping by thousands, ties away from zero on the shortest digits, and the common options
//! of ECMA-402 §15.1: fraction digits, percents, currencies by symbol. Other locales are not
//! supported: output must not depend on the host.

use super::into_string;
use super::shortest::Shortest;
use crate::RangeError;

/// Default maximum of fraction digits.
const MAX_FRACTION_DIGITS: u8 = 3;

/// Largest valid number of fraction digits.
const MOST_DIGITS: u8 = 20;

/// Digits between separators.
const GROUP: usize = 3;

/// The unit of the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Style {
    #[default]
    Decimal,
    Percent,
    /// A currency by its code of ISO 4217, in upper case.
    Currency(String),
}

/// Format options; the default is `toLocaleString` without options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocaleOptions {
    style: Style,
    min: u8,
    max: Option<u8>,
    without_groups: bool,
}

/// Unvalidated options; a missing one is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocaleWords<'a> {
    /// `decimal`, `percent` or `currency`.
    pub style: Option<&'a str>,
    /// The code of a currency.
    pub currency: Option<&'a str>,
    /// `minimumFractionDigits`.
    pub min_fraction: Option<f64>,
    /// `maximumFractionDigits`.
    pub max_fraction: Option<f64>,
    /// `useGrouping`.
    pub grouping: Option<bool>,
}

impl LocaleOptions {
    /// Validates options (ECMA-402 §15.1.2, §16.1.2).
    ///
    /// # Errors
    /// A style or code is invalid, or a number of digits is out of range.
    pub fn new(words: LocaleWords<'_>) -> Result<LocaleOptions, RangeError> {
        let code = words.currency.map(str::to_ascii_uppercase);
        if let Some(code) = &code
            && !(code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()))
        {
            return Err(RangeError::new(
                "currency is not a well-formed currency code",
            ));
        }
        let style = match (words.style, code) {
            (None | Some("decimal"), _) => Style::Decimal,
            (Some("percent"), _) => Style::Percent,
            (Some("currency"), Some(code)) => Style::Currency(code),
            (Some("currency"), None) => {
                return Err(RangeError::new(
                    "currency must be a string when style is currency",
                ));
            }
            _ => {
                return Err(RangeError::new(
                    "style must be either \"decimal\", \"percent\" or \"currency\"",
                ));
            }
        };
        let (least, most) = match &style {
            Style::Decimal => (0, MAX_FRACTION_DIGITS),
            Style::Percent => (0, 0),
            Style::Currency(code) => (decimals(code), decimals(code)),
        };
        let digits = |given: Option<f64>, message| match given {
            None => Ok(None),
            Some(n) if (0.0..=f64::from(MOST_DIGITS)).contains(&n) => Ok(Some(n as u8)),
            Some(_) => Err(RangeError::new(message)),
        };
        let min = digits(words.min_fraction, "minimumFractionDigits is out of range")?;
        let max = digits(words.max_fraction, "maximumFractionDigits is out of range")?;
        let (min, max) = match (min, max) {
            (None, None) => (least, most),
            (Some(min), None) => (min, most.max(min)),
            (None, Some(max)) => (least.min(max), max),
            (Some(min), Some(max)) if min <= max => (min, max),
            _ => {
                return Err(RangeError::new(
                    "minimumFractionDigits is larger than maximumFractionDigits",
                ));
            }
        };
        Ok(LocaleOptions {
            style,
            min,
            max: Some(max),
            without_groups: words.grouping == Some(false),
        })
    }
}

/// Formats `x` for en-US.
#[must_use]
pub fn to_locale_string(x: f64) -> String {
    to_locale_text(x, &LocaleOptions::default())
}

/// Formats `x` for en-US with these options.
#[must_use]
pub fn to_locale_text(x: f64, options: &LocaleOptions) -> String {
    let mut out = String::new();
    if x.is_sign_negative() && !x.is_nan() {
        out.push('-');
    }
    if let Style::Currency(code) = &options.style {
        let symbol = SYMBOLS.iter().find(|(known, _)| known == code);
        let symbol = symbol.map_or(code.as_str(), |(_, symbol)| symbol);
        out.push_str(symbol);
        // A no-break space, after alphabetic symbols only.
        if x.is_finite() && symbol.ends_with(|c: char| c.is_ascii_alphabetic() || c == '.') {
            out.push('\u{a0}');
        }
    }
    if x.is_nan() {
        out.push_str("NaN");
    } else if x.is_infinite() {
        out.push('∞');
    } else {
        digits(x.abs(), options, &mut out);
    }
    if options.style == Style::Percent {
        out.push('%');
    }
    out
}

/// Appends the digits of a number with separators.
fn digits(x: f64, options: &LocaleOptions, out: &mut String) {
    let max = options.max.unwrap_or(MAX_FRACTION_DIGITS);
    let shift = match options.style {
        Style::Percent => 2,
        _ => 0,
    };
    let (whole, fraction) = rounded(x, shift, options.min, max);
    // A long number's price covers only its units, so the room is reserved at once.
    let mut text = Vec::with_capacity(whole.len() / GROUP * (GROUP + 1) + fraction.len() + 4);
    let (first, groups) = whole.split_at(match options.without_groups {
        true => whole.len(),
        false => (whole.len() - 1) % GROUP + 1,
    });
    text.extend_from_slice(first);
    for group in groups.chunks(GROUP) {
        text.push(b',');
        text.extend_from_slice(group);
    }
    if !fraction.is_empty() {
        text.push(b'.');
        text.extend_from_slice(&fraction);
    }
    out.push_str(&into_string(text));
}

/// Integer and fraction digits of `x * 10^shift` after rounding, without trailing zeros
/// beyond `min` fraction digits.
fn rounded(x: f64, shift: i32, min: u8, max: u8) -> (Vec<u8>, Vec<u8>) {
    let shortest = Shortest::of(x);
    let digits = shortest.digits();
    let exponent = shortest.exponent() + shift;
    let last = -i32::from(max);
    let digit_at = |position: i32| {
        let index = exponent - position;
        usize::try_from(index)
            .ok()
            .and_then(|index| digits.get(index))
            .copied()
            .unwrap_or(b'0')
    };
    // Digit values from 10^max(exponent, 0) down to 10^last.
    let high = exponent.max(0);
    let mut all = vec![b'0'; (high - last + 1) as usize];
    let lead = (high - exponent) as usize;
    if let Some(room) = all.get_mut(lead..) {
        let count = digits.len().min(room.len());
        room[..count].copy_from_slice(&digits[..count]);
    }
    if digit_at(last - 1) >= b'5' {
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
    let mut fraction = all.split_off(all.len() - usize::from(max));
    while fraction.len() > usize::from(min) && fraction.last() == Some(&b'0') {
        fraction.pop();
    }
    // A zero before the shift leaves leading zeros.
    while all.len() > 1 && all[0] == b'0' {
        all.remove(0);
    }
    (all, fraction)
}

/// Number of decimals of a currency.
fn decimals(code: &str) -> u8 {
    match code {
        _ if WHOLE.contains(&code) => 0,
        "BHD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

/// Currencies without decimals.
const WHOLE: &[&str] = &[
    "AFN", "ALL", "BIF", "CLP", "COP", "DJF", "GNF", "HUF", "IDR", "IQD", "IRR", "ISK", "JPY",
    "KMF", "KPW", "KRW", "LAK", "LBP", "MGA", "MMK", "PKR", "PYG", "RWF", "SLL", "SOS", "SYP",
    "UGX", "VND", "VUV", "XAF", "XOF", "XPF", "YER",
];

/// Currencies with a symbol in en-US; others show their code.
const SYMBOLS: &[(&str, &str)] = &[
    ("AUD", "A$"),
    ("BRL", "R$"),
    ("CAD", "CA$"),
    ("CNY", "CN¥"),
    ("EUR", "€"),
    ("GBP", "£"),
    ("HKD", "HK$"),
    ("ILS", "₪"),
    ("INR", "₹"),
    ("JPY", "¥"),
    ("KRW", "₩"),
    ("MXN", "MX$"),
    ("NZD", "NZ$"),
    ("PHP", "₱"),
    ("TWD", "NT$"),
    ("USD", "$"),
    ("VND", "₫"),
    ("XAF", "FCFA"),
    ("XCD", "EC$"),
    ("XCG", "Cg."),
    ("XOF", "F\u{202f}CFA"),
    ("XPF", "CFPF"),
    ("XXX", "¤"),
];

#[cfg(test)]
mod tests {
    use super::{LocaleOptions, LocaleWords, to_locale_string, to_locale_text};

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

    /// Results of ECMA-402, as in V8.
    #[test]
    fn options() {
        let shown = |x: f64, words| LocaleOptions::new(words).map(|o| to_locale_text(x, &o));
        let fraction = |min_fraction, max_fraction| LocaleWords {
            min_fraction,
            max_fraction,
            ..LocaleWords::default()
        };
        let two = fraction(Some(2.0), Some(2.0));
        let cases: &[(f64, LocaleWords<'_>, &str)] = &[
            (1234.5, two, "1,234.50"),
            (1.005, two, "1.01"),
            (999.999, two, "1,000.00"),
            (-0.001, two, "-0.00"),
            (0.0, two, "0.00"),
            (
                1e21,
                fraction(Some(1.9), None),
                "1,000,000,000,000,000,000,000.0",
            ),
            (1.23456, fraction(Some(4.0), None), "1.2346"),
            (1.5, fraction(None, Some(0.0)), "2"),
            (0.5, fraction(None, Some(0.0)), "1"),
            (1.0, fraction(Some(20.0), None), "1.00000000000000000000"),
            (f64::NAN, two, "NaN"),
        ];
        for &(x, words, text) in cases {
            assert_eq!(shown(x, words).as_deref(), Ok(text));
        }
        let percent = LocaleWords {
            style: Some("percent"),
            ..LocaleWords::default()
        };
        for (x, text) in [
            (0.1234, "12%"),
            (0.005, "1%"),
            (12.0, "1,200%"),
            (0.0, "0%"),
            (0.0001, "0%"),
        ] {
            assert_eq!(shown(x, percent).as_deref(), Ok(text));
        }
        let plain = LocaleWords {
            grouping: Some(false),
            ..two
        };
        assert_eq!(shown(1234.5, plain).as_deref(), Ok("1234.50"));
        let currencies: &[(f64, &str, &str)] = &[
            (-3.0, "usd", "-$3.00"),
            (1234.5, "EUR", "€1,234.50"),
            (1234.5, "JPY", "¥1,235"),
            (1.5, "KWD", "KWD\u{a0}1.500"),
            (-1.0, "CHF", "-CHF\u{a0}1.00"),
            (2.0, "XOF", "F\u{202f}CFA\u{a0}2"),
            (f64::INFINITY, "CHF", "CHF∞"),
        ];
        for &(x, code, text) in currencies {
            let words = LocaleWords {
                style: Some("currency"),
                currency: Some(code),
                ..LocaleWords::default()
            };
            assert_eq!(shown(x, words).as_deref(), Ok(text));
        }
    }

    #[test]
    fn options_that_are_none() {
        let fails = |words| LocaleOptions::new(words).expect_err("options").message();
        let words = LocaleWords::default();
        let style = LocaleWords {
            style: Some("unit"),
            ..words
        };
        assert!(fails(style).contains("style must be"));
        let currency = LocaleWords {
            style: Some("currency"),
            ..words
        };
        assert!(fails(currency).contains("currency must be"));
        for code in ["EU", "€", "1234"] {
            let words = LocaleWords {
                currency: Some(code),
                ..words
            };
            assert!(fails(words).contains("well-formed"));
        }
        for n in [-1.0, 20.5, f64::NAN] {
            let words = LocaleWords {
                max_fraction: Some(n),
                ..words
            };
            assert!(fails(words).contains("maximumFractionDigits is out of range"));
            let words = LocaleWords {
                min_fraction: Some(n),
                ..LocaleWords::default()
            };
            assert!(fails(words).contains("minimumFractionDigits is out of range"));
        }
        let crossed = LocaleWords {
            min_fraction: Some(2.0),
            max_fraction: Some(1.0),
            ..words
        };
        assert!(fails(crossed).contains("larger"));
    }
}
