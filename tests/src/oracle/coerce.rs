//! Coercions, operators and comparisons of ECMA-262 §7 on the oracle's values
//! (language section 3.3, decision D6).

use super::meter::owe_compare;
use super::meter::{formatted, pay, unformatted};
use super::value::{Fail, JsStr, OVal, Res, from_wtf8, js, to_wtf8};
use a99_core::builtins::FUNCTIONS;
use a99_core::costs::{LIST_TEXT, NUMERAL, Sizes, WRITTEN};
use a99_ecma::{arith, number_parse, number_text};
use std::cell::RefCell;
use std::rc::Rc;

/// Most nested arrays in a conversion to text.
const MAX_JOIN_DEPTH: usize = 512;

/// Arrays in conversion to text, outermost first.
type Open = Vec<Rc<RefCell<Vec<OVal>>>>;

/// ECMA-262 §7.1.17 ToString. An array pays for its elements and its text.
pub(super) fn to_str(value: &OVal) -> Res<JsStr> {
    let text = unformatted(str_within(value, &mut Vec::new()))?;
    if matches!(value, OVal::Arr(_)) {
        pay(WRITTEN, Sizes::default().out_units(text.len()))?;
    }
    Ok(text)
}

fn str_within(value: &OVal, open: &mut Open) -> Res<JsStr> {
    Ok(match value {
        OVal::Undef => js("undefined"),
        OVal::Null => js("null"),
        OVal::Bool(b) => js(if *b { "true" } else { "false" }),
        OVal::Num(n) => js(&number_text::number_to_string(*n)),
        OVal::Str(s) => s.clone(),
        OVal::Arr(items) => {
            enter(items, open)?;
            pay(LIST_TEXT, Sizes::elements(items.borrow().len()))?;
            join_within(items, &[u16::from(b',')], open)?
        }
        OVal::Obj(_) | OVal::Set(_) | OVal::Map(_) => js("[object Object]"),
        OVal::Date(ms) => js(&super::dates::iso(**ms).ok_or_else(|| Fail::new("Invalid Date"))?),
        OVal::Fn(f) => js(&format!(
            "function {}() {{ [native code] }}",
            FUNCTIONS[*f as usize].name
        )),
        OVal::Ns(_) => js("[object Object]"),
    })
}

/// `Array.prototype.join` (ECMA-262 §23.1.3.18); pays for the elements of nested arrays.
pub(super) fn join(items: &Rc<RefCell<Vec<OVal>>>, sep: &[u16]) -> Res<JsStr> {
    unformatted(join_within(items, sep, &mut Vec::new()))
}

/// Refuses a cyclic array, and too deep nesting.
fn enter(items: &Rc<RefCell<Vec<OVal>>>, open: &Open) -> Res<()> {
    if open.iter().any(|o| Rc::ptr_eq(o, items)) {
        return Err(Fail::new("Cannot convert a cyclic array to text"));
    }
    if open.len() >= MAX_JOIN_DEPTH {
        return Err(Fail::new(format!(
            "Cannot convert an array to text that is nested deeper than {MAX_JOIN_DEPTH}"
        )));
    }
    Ok(())
}

fn join_within(items: &Rc<RefCell<Vec<OVal>>>, sep: &[u16], open: &mut Open) -> Res<JsStr> {
    open.push(items.clone());
    let mut out = Vec::new();
    for (i, item) in items.borrow().iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(sep);
        }
        if !item.is_nullish() {
            let text = str_within(item, open)?;
            if !matches!(item, OVal::Str(_) | OVal::Arr(_)) {
                formatted(text.len());
            }
            out.extend_from_slice(&text);
        }
    }
    open.pop();
    Ok(out.into())
}

/// ECMA-262 §7.1.4 ToNumber.
pub(super) fn to_num(value: &OVal) -> Res<f64> {
    Ok(match value {
        OVal::Undef => f64::NAN,
        OVal::Null => 0.0,
        OVal::Bool(b) => f64::from(*b),
        OVal::Num(n) => *n,
        OVal::Str(s) => text_to_num(s)?,
        OVal::Arr(_) => text_to_num(&to_str(value)?)?,
        // The text of these never spells a number.
        OVal::Obj(_) | OVal::Set(_) | OVal::Map(_) | OVal::Date(_) | OVal::Fn(_) | OVal::Ns(_) => {
            f64::NAN
        }
    })
}

fn text_to_num(text: &JsStr) -> Res<f64> {
    pay(NUMERAL, Sizes::units(text.len()))?;
    Ok(number_parse::string_to_number(&to_wtf8(text)))
}

/// ECMA-262 §7.1.1 ToPrimitive: every compound value becomes text.
pub(super) fn to_primitive(value: &OVal) -> Res<OVal> {
    Ok(match value {
        OVal::Undef | OVal::Null | OVal::Bool(_) | OVal::Num(_) | OVal::Str(_) => value.clone(),
        other => OVal::Str(to_str(other)?),
    })
}

/// `==` (ECMA-262 §7.2.13).
pub(super) fn loose_eq(a: &OVal, b: &OVal) -> Res<bool> {
    if a.is_nullish() || b.is_nullish() {
        return Ok(a.is_nullish() && b.is_nullish());
    }
    let is_primitive = |v: &OVal| matches!(v, OVal::Bool(_) | OVal::Num(_) | OVal::Str(_));
    match (a, b) {
        (OVal::Str(x), OVal::Str(y)) => {
            owe_compare(x, y, true);
            Ok(x == y)
        }
        _ if is_primitive(a) && is_primitive(b) => Ok(to_num(a)? == to_num(b)?),
        _ if !is_primitive(a) && !is_primitive(b) => Ok(a.strict_eq(b)),
        _ => loose_eq(&to_primitive(a)?, &to_primitive(b)?),
    }
}

/// Owes for comparing two values that may be texts.
fn owe_texts(a: &OVal, b: &OVal) {
    if let (OVal::Str(x), OVal::Str(y)) = (a, b) {
        owe_compare(x, y, true);
    }
}

/// v3's `==` (run option `equality: exact`): identical, both NaN, or both
/// nullish.
pub(super) fn exact_eq(a: &OVal, b: &OVal) -> bool {
    (a.is_nullish() && b.is_nullish()) || {
        owe_texts(a, b);
        a.same_value_zero(b)
    }
}

/// `<` with `undefined` (NaN) as `None` (ECMA-262 §7.2.12).
pub(super) fn less(a: &OVal, b: &OVal) -> Res<Option<bool>> {
    let (a, b) = (to_primitive(a)?, to_primitive(b)?);
    if let (OVal::Str(x), OVal::Str(y)) = (&a, &b) {
        owe_compare(x, y, false);
        return Ok(Some(x < y));
    }
    let (x, y) = (to_num(&a)?, to_num(&b)?);
    Ok(if x.is_nan() || y.is_nan() {
        None
    } else {
        Some(x < y)
    })
}

/// The arithmetic and relational operators; `None` for an unknown one. `+` on texts calls
/// `price` before it makes the text.
pub(super) fn binary(
    op: &str,
    a: &OVal,
    b: &OVal,
    exact: bool,
    price: &mut dyn FnMut(usize) -> Res<()>,
) -> Res<Option<OVal>> {
    let num = |f: fn(f64, f64) -> f64| -> Res<Option<OVal>> {
        let x = to_num(a)?;
        Ok(Some(OVal::Num(f(x, to_num(b)?))))
    };
    let yes = |r: bool| Ok(Some(OVal::Bool(r)));
    match op {
        "+" => {
            let (x, y) = (to_primitive(a)?, to_primitive(b)?);
            if matches!(x, OVal::Str(_)) || matches!(y, OVal::Str(_)) {
                let (x, y) = (to_str(&x)?, to_str(&y)?);
                price(x.len() + y.len())?;
                let mut out = x.to_vec();
                out.extend_from_slice(&y);
                return Ok(Some(OVal::units(out)));
            }
            Ok(Some(OVal::Num(to_num(&x)? + to_num(&y)?)))
        }
        "-" => num(|x, y| x - y),
        "*" => num(|x, y| x * y),
        "/" => num(|x, y| x / y),
        "%" => num(arith::fmod),
        "**" => num(arith::pow),
        "<" => yes(less(a, b)? == Some(true)),
        ">" => yes(less_swapped(a, b)? == Some(true)),
        "<=" => yes(less_swapped(a, b)? == Some(false)),
        ">=" => yes(less(a, b)? == Some(false)),
        "==" | "!=" => {
            let same = if exact {
                exact_eq(a, b)
            } else {
                loose_eq(a, b)?
            };
            yes(same == (op == "=="))
        }
        "===" | "!==" => {
            owe_texts(a, b);
            yes(a.strict_eq(b) == (op == "==="))
        }
        _ => Ok(None),
    }
}

/// `b < a`, the left operand converted first.
fn less_swapped(a: &OVal, b: &OVal) -> Res<Option<bool>> {
    let (a, b) = (to_primitive(a)?, to_primitive(b)?);
    less(&b, &a)
}

/// Text of an ASCII or WTF-8 byte result of the shared primitives.
pub(super) fn bytes(result: &[u8]) -> OVal {
    OVal::Str(from_wtf8(result))
}
