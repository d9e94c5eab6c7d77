//! Member access (language section 3.4).
//!
//! Objects have own members only (D16), strings and arrays `length` and indices, sets and maps `size`,
//! dates their fields, namespaces their constants and functions. Other members, and all
//! members of nullish values, are `undefined`. A forbidden name is refused before the lookup.

use crate::builtins;
use crate::heap::{KeyId, Ref, Str, Val, array_index, builtin};
use crate::native::{Cx, Fault};
use a99_core::builtins::{constant, function, is_forbidden, unknown_member};
use a99_ecma::number_text;

/// Reads `object.key`; `key_text` is the text of `key`.
///
/// # Errors
/// Forbidden names; unknown members of namespaces.
#[inline]
pub fn member(cx: &mut Cx<'_>, object: Val, key: KeyId, key_text: &[u8]) -> Result<Val, Fault> {
    if let Val::Obj(r) = object
        && let Some(val) = cx.heap.get(r, key)
        && !is_forbidden(key_text)
    {
        return Ok(val);
    }
    member_text(cx, object, key_text)
}

/// Reads a member by the text of its name.
///
/// # Errors
/// As [`member`]; fuel for units of text that is not ASCII.
pub fn member_text(cx: &mut Cx<'_>, object: Val, key: &[u8]) -> Result<Val, Fault> {
    if is_forbidden(key) {
        return Err(forbidden(key));
    }
    Ok(match object {
        Val::Obj(r) => cx.heap.get_text(r, key).unwrap_or(Val::Undefined),
        Val::Arr(r) => match key {
            b"length" => Val::Num(cx.heap.len(r) as f64),
            _ => array_index(key).map_or(Val::Undefined, |i| element(cx, r, i as usize)),
        },
        Val::Str(s) => match key {
            b"length" => Val::Num(s.units() as f64),
            _ => match array_index(key) {
                Some(i) => unit(cx, s, i as usize)?,
                None => Val::Undefined,
            },
        },
        Val::Map(r) if key == b"size" => Val::Num(cx.heap.map_len(r) as f64),
        Val::Set(r) if key == b"size" => Val::Num(cx.heap.len(r) as f64),
        Val::Date(r) => {
            let ms = cx.heap.date_ms(r);
            builtins::date_field(cx, ms, key)?.unwrap_or(Val::Undefined)
        }
        Val::Builtin(n) => builtin_member(n, key)?,
        _ => Val::Undefined,
    })
}

#[inline]
fn element(cx: &Cx<'_>, r: Ref, i: usize) -> Val {
    cx.heap.items(r).get(i).copied().unwrap_or(Val::Undefined)
}

#[inline]
fn unit(cx: &mut Cx<'_>, s: Str, i: usize) -> Result<Val, Fault> {
    Ok(builtins::unit_at(cx, s, i)?.map_or(Val::Undefined, Val::Str))
}

fn builtin_member(n: u16, key: &[u8]) -> Result<Val, Fault> {
    let Some(ns) = builtin::namespace_name(n) else {
        return Ok(Val::Undefined);
    };
    let name = String::from_utf8_lossy(key);
    if let Some(number) = constant(ns, &name) {
        return Ok(Val::Num(number));
    }
    match function(ns, &name) {
        Some(f) => Ok(Val::Builtin(f)),
        None => Err(Fault::throw(unknown_member(ns, &name))),
    }
}

#[cold]
fn forbidden(key: &[u8]) -> Fault {
    Fault::forbidden(&String::from_utf8_lossy(key))
}

/// Reads `object[key]`. Numbers, booleans, `null` and `undefined` become the
/// text that JavaScript uses as a key; other keys are refused, so that no
/// conversion can hide a name from the check (D16).
///
/// # Errors
/// As [`member_text`]; keys that are not text.
#[inline]
pub fn index(cx: &mut Cx<'_>, object: Val, key: Val) -> Result<Val, Fault> {
    if let Val::Num(n) = key {
        let i = n as u32;
        if f64::from(i) == n {
            match object {
                Val::Arr(r) => return Ok(element(cx, r, i as usize)),
                Val::Str(s) => return unit(cx, s, i as usize),
                _ => {}
            }
        }
    }
    index_slow(cx, object, key)
}

fn index_slow(cx: &mut Cx<'_>, object: Val, key: Val) -> Result<Val, Fault> {
    let mut text = Vec::new();
    match key {
        Val::Str(s) => {
            // Longer than any meaningful name.
            if let Val::Obj(r) = object
                && !is_forbidden(cx.bytes(s))
            {
                return named(cx, r, s);
            }
            let name = cx.bytes(s);
            text.extend_from_slice(&name[..name.len().min(MAX_NAME_BYTES)]);
        }
        Val::Num(n) => number_text::write_number(&mut text, n),
        Val::Bool(b) => text.extend_from_slice(if b { b"true" } else { b"false" }),
        Val::Null => text.extend_from_slice(b"null"),
        Val::Undefined | Val::Unbound => text.extend_from_slice(b"undefined"),
        key => {
            // No other key is valid, but a forbidden name keeps its specific error.
            if let Val::Arr(r) = key
                && let [Val::Str(s)] = cx.heap.items(r)
                && is_forbidden(cx.bytes(*s))
            {
                return Err(forbidden(cx.bytes(*s)));
            }
            return Err(Fault::throw("Property key must be a string or number"));
        }
    }
    member_text(cx, object, &text)
}

/// As [`member_text`], but a refused name is read if an object has it as an own member (D68).
///
/// # Errors
/// As [`member_text`], if the member is missing.
pub fn own_text(cx: &mut Cx<'_>, object: Val, key: &[u8]) -> Result<Val, Fault> {
    if is_forbidden(key)
        && let Val::Obj(r) = object
        && let Some(val) = cx.heap.get_text(r, key)
    {
        return Ok(val);
    }
    member_text(cx, object, key)
}

/// As [`index`], but a computed key is data, whatever its text: a missing member is
/// `undefined` (D105).
///
/// # Errors
/// As [`index`]; the refused names of namespaces and functions.
#[inline]
pub fn own_index(cx: &mut Cx<'_>, object: Val, key: Val) -> Result<Val, Fault> {
    match (object, key) {
        (Val::Obj(r), Val::Str(name)) => named(cx, r, name),
        (Val::Builtin(_), _) => index(cx, object, key),
        (_, Val::Str(name)) if is_forbidden(cx.bytes(name)) => Ok(Val::Undefined),
        _ => index(cx, object, key),
    }
}

/// The member with this name, or `undefined`; looks objects up without copying.
fn named(cx: &mut Cx<'_>, r: Ref, name: Str) -> Result<Val, Fault> {
    cx.charge_name(name)?;
    let found = match cx.find_name(name)? {
        Some(key) => cx.heap.member(r, key).copied(),
        None => None,
    };
    Ok(found.unwrap_or(Val::Undefined))
}

/// As [`walk`], with own members whatever their names (D68).
///
/// # Errors
/// As [`own_text`], for every segment.
pub fn walk_own(cx: &mut Cx<'_>, root: Val, segments: &[&[u8]]) -> Result<Val, Fault> {
    let mut at = root;
    for segment in segments {
        at = own_text(cx, at, segment)?;
    }
    Ok(at)
}

/// Keys of values other than objects are compared up to this many bytes: names of builtin
/// members and array indices are shorter.
const MAX_NAME_BYTES: usize = 64;

/// Follows a dotted path from `root`; nullish values have only `undefined`
/// members.
///
/// # Errors
/// As [`member_text`], for every segment, reached or not.
pub fn walk(cx: &mut Cx<'_>, root: Val, segments: &[&[u8]]) -> Result<Val, Fault> {
    let mut at = root;
    for segment in segments {
        at = member_text(cx, at, segment)?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::testing::{Bench, message};

    #[test]
    fn strings_and_arrays() {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let s = cx.str("a👍é".as_bytes()).unwrap();
        assert!(matches!(
            member_text(&mut cx, s, b"length"),
            Ok(Val::Num(4.0))
        ));
        for (i, want) in [
            (0, "a".as_bytes()),
            (1, b"\xED\xA0\xBD"),
            (2, b"\xED\xB1\x8D"),
        ] {
            let Ok(Val::Str(got)) = index(&mut cx, s, Val::Num(f64::from(i))) else {
                panic!()
            };
            assert_eq!((cx.bytes(got), got.units()), (want, 1));
        }
        assert!(matches!(
            index(&mut cx, s, Val::Num(4.0)),
            Ok(Val::Undefined)
        ));
        assert!(matches!(
            index(&mut cx, s, Val::Num(-1.0)),
            Ok(Val::Undefined)
        ));
        let arr = Val::Arr(cx.heap.alloc_arr(&[Val::Null, Val::Bool(true)]).unwrap());
        assert!(matches!(
            member_text(&mut cx, arr, b"1"),
            Ok(Val::Bool(true))
        ));
        assert!(matches!(
            member_text(&mut cx, arr, b"01"),
            Ok(Val::Undefined)
        ));
        assert!(matches!(index(&mut cx, arr, Val::Num(-0.0)), Ok(Val::Null)));
        assert!(matches!(
            member_text(&mut cx, arr, b"length"),
            Ok(Val::Num(2.0))
        ));
        let fault = index(&mut cx, arr, arr).unwrap_err();
        assert_eq!(message(fault), "Property key must be a string or number");
    }

    #[test]
    fn objects_and_paths() {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let key = cx.heap.intern(b"a").unwrap();
        let inner = Val::Obj(cx.heap.alloc_obj_keys(&[key], &[Val::Num(7.0)]).unwrap());
        let outer = Val::Obj(cx.heap.alloc_obj_keys(&[key], &[inner]).unwrap());
        assert!(matches!(
            walk(&mut cx, outer, &[b"a", b"a"]),
            Ok(Val::Num(7.0))
        ));
        assert!(matches!(
            walk(&mut cx, outer, &[b"x", b"y", b"z"]),
            Ok(Val::Undefined)
        ));
        assert!(matches!(member(&mut cx, outer, key, b"a"), Ok(Val::Obj(_))));
        for object in [outer, Val::Null, Val::Num(1.0)] {
            let fault = walk(&mut cx, object, &[b"nope", b"constructor"]).unwrap_err();
            let text = "Security Error: Access to 'constructor' is forbidden";
            assert_eq!(message(fault), text);
        }
    }

    #[test]
    fn namespaces() {
        let mut bench = Bench::default();
        let mut cx = bench.cx();
        let math = builtin::namespace(0);
        assert!(matches!(member_text(&mut cx, math, b"PI"), Ok(Val::Num(n)) if n > 3.1));
        assert!(matches!(
            member_text(&mut cx, math, b"max"),
            Ok(Val::Builtin(_))
        ));
        let fault = member_text(&mut cx, math, b"f16round").unwrap_err();
        assert!(message(fault).starts_with("Math.f16round is not supported in AsyncJS."));
    }
}
