//! `structuredClone`, `btoa`, `atob`, and dates as text for people.

use super::coerce::{to_num, to_str};
use super::memo::pay_copied;
use super::meter::pay_metered;
use super::statics::now;
use super::strings::Args;
use super::value::{OVal, Obj, Res, fail, js, to_wtf8};
use a99_core::costs::DATE_TEXT;
use a99_ecma::date::locale::{DateOptions, Defaults, OPTIONS, REFUSED};
use a99_ecma::date::time_clip;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn call(name: &str, args: &Args<'_>) -> Res<OVal> {
    match name {
        "structuredClone" => {
            let value = args.get(0);
            pay_copied(&value, &mut HashSet::new())?;
            Ok(clone(&value, &mut HashMap::new()))
        }
        "btoa" => btoa(&args.text(0)?),
        _ => atob(&args.text(0)?),
    }
}

/// A copy in which shared parts stay shared.
fn clone(value: &OVal, copies: &mut HashMap<usize, OVal>) -> OVal {
    let (at, copy) = match value {
        OVal::Arr(items) => (Rc::as_ptr(items) as usize, OVal::array(Vec::new())),
        OVal::Set(items) => (Rc::as_ptr(items) as usize, OVal::set(Vec::new())),
        OVal::Obj(obj) => (Rc::as_ptr(obj) as usize, OVal::object(Obj::new())),
        OVal::Date(ms) => return OVal::date(**ms),
        other => return other.clone(),
    };
    if let Some(copy) = copies.get(&at) {
        return copy.clone();
    }
    copies.insert(at, copy.clone());
    match (value, &copy) {
        (OVal::Arr(from), OVal::Arr(to)) | (OVal::Set(from), OVal::Set(to)) => {
            for item in from.borrow().iter() {
                let item = clone(item, copies);
                to.borrow_mut().push(item);
            }
        }
        (OVal::Obj(from), OVal::Obj(to)) => {
            for (key, item) in from.iter() {
                to.insert(key, clone(&item, copies));
            }
        }
        _ => {}
    }
    copy
}

/// A date as text for people; the options are the second argument.
pub(super) fn date_text(ms: f64, args: &[OVal], defaults: Defaults) -> Res<OVal> {
    let options = options(args.get(1), defaults)?;
    Ok(OVal::str(
        &options.text(ms).unwrap_or("Invalid Date".to_owned()),
    ))
}

/// `Date.toLocale`.
pub(super) fn format(args: &Args<'_>) -> Res<OVal> {
    let options = options(args.0.get(2), Defaults::Format)?;
    let ms = match args.get(0) {
        OVal::Date(ms) => *ms,
        OVal::Undef => time_clip(now()),
        value => time_clip(to_num(&value)?),
    };
    match options.text(ms) {
        Some(text) => Ok(OVal::str(&text)),
        None => fail("Invalid time value"),
    }
}

fn options(given: Option<&OVal>, defaults: Defaults) -> Res<DateOptions> {
    pay_metered(DATE_TEXT)?;
    let given = match given {
        Some(OVal::Obj(given)) => given.clone(),
        Some(OVal::Null) => return fail("Cannot convert undefined or null to object"),
        _ => Rc::new(Obj::new()),
    };
    let member = |name: &str| given.get(&js(name)).filter(|value| !value.is_undef());
    if let Some(name) = REFUSED.iter().find(|name| member(name).is_some()) {
        return fail(format!("the option {name} is not supported"));
    }
    let mut words = HashMap::new();
    for name in OPTIONS {
        if let Some(value) = member(name) {
            let text = match name {
                "hour12" => value.truthy().to_string(),
                _ => {
                    let bytes = to_wtf8(&to_str(&value)?);
                    String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned()
                }
            };
            words.insert(name, text);
        }
    }
    let found = DateOptions::new(defaults, |name| words.get(name).cloned());
    found.or_else(fail)
}

fn btoa(text: &[u16]) -> Res<OVal> {
    if text.iter().any(|unit| *unit > 255) {
        return fail("Invalid character");
    }
    let mut out = String::new();
    for chunk in text.chunks(3) {
        let bits: String = chunk.iter().map(|byte| format!("{byte:08b}")).collect();
        let bits = format!("{bits:0<width$}", width = bits.len().div_ceil(6) * 6);
        for six in bits.as_bytes().chunks(6) {
            let value = six
                .iter()
                .fold(0, |value, bit| value * 2 + usize::from(bit - b'0'));
            out.push(char::from(DIGITS[value]));
        }
        out.push_str(&"="[..1].repeat(3 - chunk.len()));
    }
    Ok(OVal::str(&out))
}

fn atob(text: &[u16]) -> Res<OVal> {
    const WRONG: &str = "The string to be decoded is not correctly encoded.";
    let mut text: Vec<u16> = text.to_vec();
    text.retain(|unit| !matches!(unit, 9 | 10 | 12 | 13 | 32));
    if text.len().is_multiple_of(4) {
        for _ in 0..2 {
            if text.last() == Some(&u16::from(b'=')) {
                text.pop();
            }
        }
    }
    if text.len() % 4 == 1 {
        return fail(WRONG);
    }
    let mut bits = String::new();
    for unit in &text {
        match DIGITS.iter().position(|digit| u16::from(*digit) == *unit) {
            Some(value) => bits.push_str(&format!("{value:06b}")),
            None => return fail(WRONG),
        }
    }
    let bytes = bits.as_bytes().chunks_exact(8);
    let byte = |bits: &[u8]| {
        bits.iter()
            .fold(0, |value, bit| value * 2 + u16::from(bit - b'0'))
    };
    Ok(OVal::units(bytes.map(byte).collect()))
}
