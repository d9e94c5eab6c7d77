//! Methods of numbers (ECMA-262 §21.1.3). Range errors are worded as in
//! JavaScriptCore.

use super::{NumFn, arg, charge_text};
use crate::coerce::to_number;
use crate::heap::Val;
use crate::native::{Cx, Fault};
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

/// The argument, or `None` where `undefined` asks for all digits.
fn digits(cx: &mut Cx<'_>, args: &[Val]) -> Result<Option<f64>, Fault> {
    match arg(args, 0) {
        v if v.is_undefined() => Ok(None),
        v => to_number(cx, v).map(Some),
    }
}

fn to_fixed(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    let digits = to_number(cx, arg(args, 0))?;
    text(cx, number_text::to_fixed(n, digits))
}

fn to_exponential(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    let digits = digits(cx, args)?;
    text(cx, number_text::to_exponential(n, digits))
}

fn to_precision(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    let digits = digits(cx, args)?;
    text(cx, number_text::to_precision(n, digits))
}

fn to_string(cx: &mut Cx<'_>, n: f64, args: &[Val]) -> Result<Val, Fault> {
    match digits(cx, args)? {
        None => paid(cx, &number_text::number_to_string(n)),
        Some(radix) => {
            let digits = number_text::to_radix(n, radix);
            paid(cx, &digits.map_err(|e| Fault::throw(e.message()))?)
        }
    }
}

/// ASCII text as the result, which is paid.
fn paid(cx: &mut Cx<'_>, text: &str) -> Result<Val, Fault> {
    charge_text(cx, text.len())?;
    cx.str(text.as_bytes())
}

fn to_locale_string(cx: &mut Cx<'_>, n: f64, _: &[Val]) -> Result<Val, Fault> {
    paid(cx, &number_text::to_locale_string(n))
}
