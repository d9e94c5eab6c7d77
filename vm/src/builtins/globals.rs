//! Functions without a receiver kind: the globals of language section 3.6, `String.*`,
//! `Number.*`, `console.*`, and the methods of every value.

use super::console::log;
use super::{AnyFn, FunctionFn, arg, charge_text};
use crate::coerce::{self, to_number, to_str, trimmed_range};
use crate::convert::{BoundaryLimits, cut};
use crate::heap::{Str, Val, array_index};
use crate::native::{Cx, Fault};
use a99_ecma::arith::to_uint32;
use a99_ecma::uri::{self, UriError};
use a99_ecma::{number_parse, number_text, wtf8};
use a99_run::events::LogLevel;
use std::borrow::Cow;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, FunctionFn)] = &[
    ("", "parseInt", parse_int),
    ("", "parseFloat", parse_float),
    ("", "isNaN", |cx, args| {
        Ok(Val::Bool(to_number(cx, arg(args, 0))?.is_nan()))
    }),
    ("", "isFinite", |cx, args| {
        Ok(Val::Bool(to_number(cx, arg(args, 0))?.is_finite()))
    }),
    ("", "encodeURI", |cx, args| {
        encode(cx, args, |text, mut tick| {
            uri::encode_uri_with(text, &mut tick)
        })
    }),
    ("", "encodeURIComponent", |cx, args| {
        encode(cx, args, |text, mut tick| {
            uri::encode_uri_component_with(text, &mut tick)
        })
    }),
    ("", "decodeURI", |cx, args| {
        decode(cx, args, |text, mut tick| {
            uri::decode_uri_with(text, &mut tick)
        })
    }),
    ("", "decodeURIComponent", |cx, args| {
        decode(cx, args, |text, mut tick| {
            uri::decode_uri_component_with(text, &mut tick)
        })
    }),
    ("", "Error", error),
    ("", "Number", |cx, args| match args {
        [] => Ok(Val::Num(0.0)),
        [value, ..] => Ok(Val::Num(to_number(cx, *value)?)),
    }),
    ("", "String", |cx, args| match args {
        [] => Ok(Val::Str(Str::EMPTY)),
        [value, ..] => text_of(cx, *value, &[]),
    }),
    ("", "Boolean", |cx, args| {
        Ok(Val::Bool(coerce::truthy(cx.heap, arg(args, 0))))
    }),
    ("Number", "parseInt", parse_int),
    ("Number", "parseFloat", parse_float),
    ("Number", "isNaN", |_, args| number_test(args, f64::is_nan)),
    ("Number", "isFinite", |_, args| {
        number_test(args, f64::is_finite)
    }),
    ("Number", "isInteger", |_, args| {
        number_test(args, is_integer)
    }),
    ("Number", "isSafeInteger", |_, args| {
        number_test(args, |n| is_integer(n) && n.abs() <= MAX_SAFE_INTEGER)
    }),
    ("String", "fromCharCode", from_char_code),
    ("String", "fromCodePoint", from_code_point),
    ("console", "debug", |cx, args| {
        log(cx, LogLevel::Debug, args)
    }),
    ("console", "log", |cx, args| log(cx, LogLevel::Log, args)),
    ("console", "warn", |cx, args| log(cx, LogLevel::Warn, args)),
    ("console", "error", |cx, args| {
        log(cx, LogLevel::Error, args)
    }),
    ("console", "info", |cx, args| log(cx, LogLevel::Info, args)),
];

/// The methods of every value that is not nullish and not a builtin. An object's own member
/// with the same name takes precedence and is not callable.
pub(super) const ANY_METHODS: &[(&str, AnyFn)] = &[
    ("toString", text_of),
    ("toLocaleString", text_of),
    ("valueOf", |_, v, _| Ok(v)),
    ("hasOwnProperty", has_own),
    ("propertyIsEnumerable", is_enumerable),
    // There are no prototypes (D16), so the result is always false.
    ("isPrototypeOf", |_, _, _| Ok(Val::Bool(false))),
];

fn text_of(cx: &mut Cx<'_>, v: Val, _: &[Val]) -> Result<Val, Fault> {
    let text = to_str(cx, v)?;
    charge_text(cx, text.units())?;
    Ok(Val::Str(text))
}

/// Receives the number of bytes about to be read.
type Tick<'t> = &'t mut dyn FnMut(usize) -> Result<(), Fault>;

/// An encoder.
type EncodeFn = fn(&[u8], Tick<'_>) -> Result<Result<Vec<u8>, UriError>, Fault>;

/// A decoder; text without escapes is returned unchanged.
type DecodeFn = for<'a> fn(&'a [u8], Tick<'_>) -> Result<Result<Cow<'a, [u8]>, UriError>, Fault>;

/// 2^53 - 1.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

fn is_integer(n: f64) -> bool {
    n.is_finite() && n.trunc() == n
}

/// A test that is false for all values except numbers.
fn number_test(args: &[Val], test: fn(f64) -> bool) -> Result<Val, Fault> {
    Ok(Val::Bool(matches!(arg(args, 0), Val::Num(n) if test(n))))
}

/// The first argument as text.
fn text_arg(cx: &mut Cx<'_>, args: &[Val]) -> Result<Str, Fault> {
    to_str(cx, arg(args, 0))
}

fn parse_float(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let s = text_arg(cx, args)?;
    let inside = trimmed_range(cx, s, true, false)?;
    let n = cx.read_text(s, inside, |text, mut tick| {
        number_parse::trimmed_float(text, &mut tick)
    })?;
    Ok(Val::Num(n))
}

fn parse_int(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let s = text_arg(cx, args)?;
    let radix = to_number(cx, arg(args, 1))?;
    let inside = trimmed_range(cx, s, true, false)?;
    let n = cx.read_text(s, inside, |text, mut tick| {
        number_parse::trimmed_int(text, radix, &mut tick)
    })?;
    Ok(Val::Num(n))
}

fn encode(cx: &mut Cx<'_>, args: &[Val], f: EncodeFn) -> Result<Val, Fault> {
    /// Each byte becomes a percent sign and two digits at most.
    const GROWTH: usize = 3;
    let s = text_arg(cx, args)?;
    let most = s.len_bytes().saturating_mul(GROWTH);
    cx.heap.check(most)?;
    let text = cx.read_text(s, 0..s.len_bytes(), f)?;
    let text = text.map_err(|e| Fault::throw(e.to_string()))?;
    // Encoded text is ASCII.
    charge_text(cx, text.len())?;
    Ok(Val::Str(cx.str_units(&text, text.len())?))
}

fn decode(cx: &mut Cx<'_>, args: &[Val], f: DecodeFn) -> Result<Val, Fault> {
    let s = text_arg(cx, args)?;
    cx.heap.check(s.len_bytes())?;
    let text = cx.read_text(s, 0..s.len_bytes(), |text, tick| {
        Ok(f(text, tick)?.map(owned))
    })?;
    match text.map_err(|e| Fault::throw(e.to_string()))? {
        None => {
            charge_text(cx, s.units())?;
            Ok(Val::Str(s))
        }
        Some(text) => {
            let units = cx.count_units(&text)?;
            charge_text(cx, units)?;
            Ok(Val::Str(cx.str_units(&text, units)?))
        }
    }
}

/// The result of a function, if it differs from its argument.
pub(super) fn owned(text: Cow<'_, [u8]>) -> Option<Vec<u8>> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

/// The message of a program's own error (language section 3.7); the machine adds op and
/// place.
fn error(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut fault = Fault::by("Error", "Error");
    if let Val::Str(s) = arg(args, 0) {
        let text = cut(cx.bytes(s), &BoundaryLimits::default());
        cx.heap.check(text.len())?;
        if let Fault::Throw(thrown) = &mut fault {
            thrown.message = text.to_vec();
        }
    }
    Err(fault)
}

fn from_char_code(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut out = Vec::with_capacity(args.len());
    for v in args {
        let unit = to_uint32(to_number(cx, *v)?) as u16;
        wtf8::push_code_unit(&mut out, unit);
    }
    cx.str(&out)
}

fn from_code_point(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mut out = Vec::with_capacity(args.len());
    for v in args {
        let n = to_number(cx, *v)?;
        if !(0.0..=1_114_111.0).contains(&n) || n.trunc() != n {
            return Err(Fault::throw(
                "Arguments contain a value that is out of range of code points",
            ));
        }
        wtf8::push_code_point(&mut out, n as u32);
    }
    cx.str(&out)
}

/// Whether a value has an own member with this name.
fn has_member(cx: &mut Cx<'_>, v: Val, name: Str) -> Result<bool, Fault> {
    if let Val::Obj(r) = v {
        let key = cx.find_name(name)?;
        return Ok(key.is_some_and(|key| cx.heap.get(r, key).is_some()));
    }
    let (heap, name) = (&*cx.heap, cx.heap.bytes(name));
    let indexed = |len: usize| array_index(name).is_some_and(|i| (i as usize) < len);
    Ok(match v {
        Val::Arr(r) => name == b"length" || indexed(heap.len(r)),
        Val::Str(s) => name == b"length" || indexed(s.units()),
        Val::Set(_) | Val::Map(_) => name == b"size",
        _ => false,
    })
}

fn has_own(cx: &mut Cx<'_>, v: Val, args: &[Val]) -> Result<Val, Fault> {
    let name = to_str(cx, arg(args, 0))?;
    cx.charge_name(name)?;
    Ok(Val::Bool(has_member(cx, v, name)?))
}

fn is_enumerable(cx: &mut Cx<'_>, v: Val, args: &[Val]) -> Result<Val, Fault> {
    let name = to_str(cx, arg(args, 0))?;
    cx.charge_name(name)?;
    let hidden = cx.heap.bytes(name) == b"length" && !matches!(v, Val::Obj(_));
    Ok(Val::Bool(!hidden && has_member(cx, v, name)?))
}

/// The text of a number in messages.
pub(super) fn shown(v: Val) -> String {
    match v {
        Val::Num(n) => number_text::number_to_string(n),
        Val::Bool(b) => b.to_string(),
        Val::Null => "null".to_owned(),
        other => coerce::type_of(other).to_owned(),
    }
}
