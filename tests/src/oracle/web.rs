//! `structuredClone`, `btoa` and `atob`.

use super::memo::pay_copied;
use super::strings::Args;
use super::value::{OVal, Obj, Res, fail};
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

fn btoa(text: &[u16]) -> Res<OVal> {
    if text.iter().any(|unit| *unit > 255) {
        return fail("Invalid character");
    }
    let mut out = String::new();
    for chunk in text.chunks(3) {
        let bits: String = chunk.iter().map(|byte| format!("{byte:08b}")).collect();
        let bits = format!("{bits:0<width$}", width = bits.len().div_ceil(6) * 6);
        for six in bits.as_bytes().chunks(6) {
            let value = six.iter().fold(0, |value, bit| value * 2 + usize::from(bit - b'0'));
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
    let byte = |bits: &[u8]| bits.iter().fold(0, |value, bit| value * 2 + u16::from(bit - b'0'));
    Ok(OVal::units(bytes.map(byte).collect()))
}
