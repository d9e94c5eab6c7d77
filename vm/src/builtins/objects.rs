//! `Object.*` and `Array.*` (language section 3.6, after ECMA-262 §20.1.2 and
//! §23.1.2).
//!
//! Objects have own members only (D16). The keys of texts and arrays are their indices; sets,
//! dates, numbers and builtins have none. `Object.assign` creates a new object and never
//! changes its target.

mod array_from;
#[cfg(test)]
mod tests;

pub(in crate::builtins) use array_from::{code_points, iterate};

use super::{arg, charge_list};
use crate::coerce;
use crate::convert::temp;
use crate::heap::{Str, Val};
use crate::native::{Cx, Fault, ObjDraft};
use a99_ecma::wtf8;

type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, Code)] = &[
    ("Array", "from", array_from::from),
    ("Array", "isArray", is_array),
    ("Array", "items", array_from::items),
    ("Array", "of", array_of),
    ("Object", "assign", assign),
    ("Object", "entries", entries),
    ("Object", "fromEntries", from_entries),
    ("Object", "hasOwn", has_own),
    ("Object", "is", is_same),
    ("Object", "keys", keys),
    ("Object", "values", values),
];

/// Bytes per member of a draft, beyond those of the heap.
const DRAFT_BYTES: usize = 64;

fn is_array(_: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(matches!(arg(args, 0), Val::Arr(_))))
}

fn array_of(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Arr(cx.list(args)?))
}

/// Number of keys of a value; `null` and `undefined` are refused.
fn width(cx: &Cx<'_>, v: Val, function: &str) -> Result<usize, Fault> {
    match v {
        Val::Null | Val::Undefined | Val::Unbound => Err(Fault::throw(format!(
            "Object.{function} requires that input parameter not be null or undefined"
        ))),
        other => Ok(count_keys(cx, other)),
    }
}

fn count_keys(cx: &Cx<'_>, v: Val) -> usize {
    match v {
        Val::Obj(r) | Val::Arr(r) => cx.heap.len(r),
        Val::Str(s) => s.units(),
        _ => 0,
    }
}

/// The members of a value in enumeration order; keys are strings if `with_keys` is set.
fn members(cx: &mut Cx<'_>, v: Val, with_keys: bool) -> Result<Vec<(Val, Val)>, Fault> {
    let len = count_keys(cx, v);
    super::arrays::check_room(cx.heap, len.saturating_mul(2))?;
    let mut out: Vec<(Val, Val)> = temp::with_room(cx.heap, len)?;
    match v {
        Val::Obj(r) => {
            for (key, val) in cx.members(r)? {
                cx.work(4)?;
                let name = if with_keys {
                    cx.key_name(key)?
                } else {
                    Val::Undefined
                };
                out.push((name, val));
            }
        }
        Val::Arr(r) => {
            for at in 0..len {
                cx.work(4)?;
                let name = if with_keys {
                    index_str(cx, at)?
                } else {
                    Val::Undefined
                };
                out.push((name, cx.heap.items(r)[at]));
            }
        }
        Val::Str(s) => {
            for (at, unit) in units(cx, s)?.into_iter().enumerate() {
                cx.work(4)?;
                let name = if with_keys {
                    index_str(cx, at)?
                } else {
                    Val::Undefined
                };
                out.push((name, unit));
            }
        }
        _ => {}
    }
    Ok(out)
}

fn index_str(cx: &mut Cx<'_>, at: usize) -> Result<Val, Fault> {
    let mut text = Vec::with_capacity(20);
    a99_ecma::number_text::write_integer(&mut text, at as i64);
    Ok(Val::Str(cx.heap.alloc_str_units(&text, text.len())?))
}

/// The UTF-16 units of a string, each as a string.
fn units(cx: &mut Cx<'_>, s: Str) -> Result<Vec<Val>, Fault> {
    let mut out = temp::with_room(cx.heap, s.units())?;
    for whole in code_points(cx, s)? {
        cx.work(2)?;
        match whole {
            Val::Str(pair) if pair.units() == 2 => {
                let halves: Vec<u16> = wtf8::units(cx.heap.bytes(pair)).collect();
                for half in halves {
                    out.push(cx.str(&wtf8::from_utf16(&[half]))?);
                }
            }
            one => out.push(one),
        }
    }
    Ok(out)
}

fn keys(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let len = width(cx, arg(args, 0), "keys")?;
    charge_list(cx, len)?;
    let mut out: Vec<Val> = temp::with_room(cx.heap, len)?;
    out.extend(members(cx, arg(args, 0), true)?.iter().map(|(key, _)| *key));
    Ok(Val::Arr(cx.list(&out)?))
}

fn values(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let len = width(cx, arg(args, 0), "values")?;
    charge_list(cx, len)?;
    let mut out: Vec<Val> = temp::with_room(cx.heap, len)?;
    out.extend(
        members(cx, arg(args, 0), false)?
            .iter()
            .map(|(_, val)| *val),
    );
    Ok(Val::Arr(cx.list(&out)?))
}

fn entries(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let len = width(cx, arg(args, 0), "entries")?;
    charge_list(cx, len)?;
    let mut out: Vec<Val> = temp::with_room(cx.heap, len)?;
    for (key, val) in members(cx, arg(args, 0), true)? {
        cx.work(4)?;
        out.push(Val::Arr(cx.heap.alloc_arr(&[key, val])?));
    }
    Ok(Val::Arr(cx.list(&out)?))
}

/// `Object.fromEntries(list)`: a later pair replaces an earlier one with the same key.
fn from_entries(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let pairs = iterate(cx, arg(args, 0))?;
    cx.heap.check(pairs.len().saturating_mul(DRAFT_BYTES))?;
    let mut draft = ObjDraft::with_room(pairs.len());
    for pair in pairs {
        cx.work(ObjDraft::MEMBER_WORK)?;
        let (key, val) = match pair {
            Val::Arr(r) => {
                let part = |at: usize| cx.heap.items(r).get(at).copied().unwrap_or(Val::Undefined);
                (part(0), part(1))
            }
            Val::Obj(r) => {
                let part = |name: &[u8]| cx.heap.get_text(r, name).unwrap_or(Val::Undefined);
                (part(b"0"), part(b"1"))
            }
            _ => {
                return Err(Fault::throw(
                    "Object.fromEntries requires the first iterable parameter yields objects",
                ));
            }
        };
        set_member(cx, &mut draft, key, val)?;
    }
    finish(cx, draft)
}

/// Allocates the object and pays for it.
fn finish(cx: &mut Cx<'_>, mut draft: ObjDraft) -> Result<Val, Fault> {
    charge_list(cx, draft.len())?;
    draft.finish(cx)
}

fn set_member(cx: &mut Cx<'_>, draft: &mut ObjDraft, key: Val, val: Val) -> Result<(), Fault> {
    let text = coerce::to_str(cx, key)?;
    cx.charge_name(text)?;
    let id = cx.intern_name(text)?;
    draft.set(id, val);
    Ok(())
}

/// `Object.assign(target, ...sources)` into a new object. `__proto__` is an ordinary key
/// (D16).
fn assign(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let total = args
        .iter()
        .fold(0usize, |sum, v| sum.saturating_add(count_keys(cx, *v)));
    cx.heap.check(total.saturating_mul(DRAFT_BYTES))?;
    let mut draft = ObjDraft::with_room(total);
    for source in args {
        match *source {
            Val::Obj(r) => {
                for (key, val) in cx.members(r)? {
                    cx.work(ObjDraft::MEMBER_WORK)?;
                    draft.set(key, val);
                }
            }
            other => {
                for (key, val) in members(cx, other, true)? {
                    cx.work(ObjDraft::MEMBER_WORK)?;
                    set_member(cx, &mut draft, key, val)?;
                }
            }
        }
    }
    finish(cx, draft)
}

/// `SameValue` (ECMA-262 §7.2.10).
fn is_same(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(match (arg(args, 0), arg(args, 1)) {
        (Val::Num(a), Val::Num(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (a, b) => coerce::strict_eq(cx, a, b)?,
    }))
}

fn has_own(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    width(cx, arg(args, 0), "hasOwn")?;
    let key = coerce::to_str(cx, arg(args, 1))?;
    cx.charge_name(key)?;
    let name = key;
    let key = cx.heap.bytes(key);
    let has_index = |len: usize| {
        key == b"length" || crate::heap::array_index(key).is_some_and(|at| (at as usize) < len)
    };
    Ok(Val::Bool(match arg(args, 0) {
        Val::Obj(r) => match cx.find_name(name)? {
            Some(key) => cx.heap.get(r, key).is_some(),
            None => false,
        },
        Val::Arr(r) => has_index(cx.heap.len(r)),
        Val::Str(s) => has_index(s.units()),
        _ => false,
    }))
}
