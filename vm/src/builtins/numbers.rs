//! Methods of numbers (ECMA-262 §21.1.3). Range errors have the messages of JavaScriptCore.

use super::{NumFn, arg, charge_text};
use crate::coerce::{to_number, to_str, truthy};
use crate::heap::Val;
use crate::native::{Cx, Fault};
use a99_core::costs::{FEW_DIGITS, FEW_RADIX_DIGITS, MANY_DIGITS};
use a99_ecma::number_text::{LocaleOptions, LocaleWords};
use a99_ecma::{RangeError, number_text};

/// Code of the methods in this file.
pub(super) const METHODS: &[(&str, NumFn)] = &[
    ("toFixed", to_fixed),
    ("toExponential", to_exponential),
    ("toPrecision", to_precision),
    ("toString", to_string),
    ("toLocaleString", to_locale_string),
    ("valueOf", |_, n, _| Ok(Val::Num(n))),
];

fn text(cx: &mut Cx<'_>, text: Result<String, RangeError>) -> Result<Val, Fault> {
    match text {
        Ok(text) => cx.str(text.as_bytes()),
        Err(error) => Err(Fault::throw(error.message())),
    }
}

/// The argument, or `None` if `undefined` asks for all digits.
fn digits(cx: &mut Cx<'_>, args: &[Val]) -> Result<Option<f64>, Fault> {
    match arg(args, 0) {
        v if v.is_undefined() => Ok(None),
        v => to_number(cx, v).map(Some),
    }
}

/// Pays for digits computed by long arithmetic.
fn pay_digits(cx: &mut Cx<'_>, digits: f64) -> Result<(), Fault> {
    match digits > FEW_DIGITS as f64 {
        true => cx.pay_metered(MANY_DIGITS),
        false => Ok(()),
    }
}

fn to_fixed(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    let digits = to_number(cx, arg(args, 0))?;
    pay_digits(cx, digits)?;
    text(cx, number_text::to_fixed(n, digits))
}

fn to_exponential(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    let digits = digits(cx, args)?;
    pay_digits(cx, digits.unwrap_or(0.0))?;
    text(cx, number_text::to_exponential(n, digits))
}

fn to_precision(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    let digits = digits(cx, args)?;
    pay_digits(cx, digits.unwrap_or(0.0))?;
    text(cx, number_text::to_precision(n, digits))
}

fn to_string(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    match digits(cx, args)? {
        None => paid(cx, &number_text::number_to_string(n)),
        Some(radix) => {
            let digits = number_text::to_radix(n, radix);
            let digits = digits.map_err(|e| Fault::throw(e.message()))?;
            if digits.len() > FEW_RADIX_DIGITS {
                cx.pay_metered(MANY_DIGITS)?;
            }
            paid(cx, &digits)
        }
    }
}

/// Returns a text after paying for it.
fn paid(cx: &mut Cx<'_>, text: &str) -> Result<Val, Fault> {
    charge_text(cx, text.chars().map(char::len_utf16).sum())?;
    cx.str(text.as_bytes())
}

fn to_locale_string(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    let options = locale_options(cx, args)?;
    paid(cx, &number_text::to_locale_text(n, &options))
}

/// Maximum bytes of a style or a code to read.
const WORD: usize = 16;

/// The options after a locale, if they are an object (D89).
pub(super) fn locale_options(cx: &mut Cx<'_>, args: &[Val]) -> Result<LocaleOptions, Fault> {
    let Val::Obj(given) = arg(args, 1) else {
        return Ok(LocaleOptions::default());
    };
    let member = |cx: &Cx<'_>, key: &str| {
        let value = cx.heap.get_text(given, key.as_bytes());
        value.filter(|value| !value.is_undefined())
    };
    let word = |cx: &mut Cx<'_>, key: &str| -> Result<Option<String>, Fault> {
        let Some(value) = member(cx, key) else {
            return Ok(None);
        };
        let text = to_str(cx, value)?;
        let bytes = cx.bytes(text);
        let bytes = &bytes[..bytes.len().min(WORD)];
        Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
    };
    let style = word(cx, "style")?;
    let currency = word(cx, "currency")?;
    let number = |cx: &mut Cx<'_>, key: &str| {
        let value = member(cx, key);
        value.map(|value| to_number(cx, value)).transpose()
    };
    let words = LocaleWords {
        style: style.as_deref(),
        currency: currency.as_deref(),
        min_fraction: number(cx, "minimumFractionDigits")?,
        max_fraction: number(cx, "maximumFractionDigits")?,
        grouping: member(cx, "useGrouping").map(|value| truthy(cx.heap, value)),
    };
    LocaleOptions::new(words).map_err(|error| Fault::throw(error.message()))
}
