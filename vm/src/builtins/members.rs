//! The atoms `memberSet` and `memberDelete` (D66).
//!
//! Names of members are data here, even `constructor`: there are no prototypes (D16).

use crate::coerce;
use crate::heap::{Ref, Str, Val, array_index};
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes};

const SET: &str = "memberSet";
const DELETE: &str = "memberDelete";

/// The name of a value's kind, for errors.
fn kind_of(value: Val) -> &'static str {
    match value {
        Val::Null => "null",
        Val::Date(_) => "a date",
        Val::Set(_) => "a set",
        Val::Map(_) => "a map",
        Val::Arr(_) => "a list",
        other => coerce::type_of(other),
    }
}

/// A key as text; pays for reading it.
fn key_text(cx: &mut Cx<'_>, op: &str, key: Val) -> Result<Str, Fault> {
    match key {
        Val::Str(_) | Val::Num(_) | Val::Bool(_) => {}
        Val::Null | Val::Undefined | Val::Unbound => {
            return Err(Fault::throw(format!("{op}: there is no key")));
        }
        _ => return Err(no_key()),
    }
    let key = coerce::to_str(cx, key)?;
    cx.charge(READ, Sizes::units(key.units()))?;
    cx.charge_name(key)?;
    Ok(key)
}

fn no_key() -> Fault {
    Fault::throw("Property key must be a string or number")
}

/// A prefix of a key, for an error.
fn shown(cx: &Cx<'_>, key: Str) -> String {
    let text = String::from_utf8_lossy(cx.bytes(key));
    text.chars().take(40).collect()
}

/// Sets a member of an object, or an item of a list, in place.
///
/// # Errors
/// Another kind of target, an invalid key, an index beyond the end; fuel, memory, a stop.
pub fn set(cx: &mut Cx<'_>, target: Val, key: Val, value: Val) -> Result<Val, Fault> {
    let value = match value {
        Val::Unbound => Val::Undefined,
        value => value,
    };
    let name = key_text(cx, SET, key)?;
    match target {
        Val::Obj(r) => {
            let key = cx.intern_name(name)?;
            let (heap, mut clock) = cx.split();
            heap.set_member(r, key, value, &mut clock)?;
        }
        Val::Arr(r) => set_item(cx, r, name, value)?,
        other => {
            return Err(Fault::throw(format!(
                "{SET} wants an object or a list, got {}",
                kind_of(other)
            )));
        }
    }
    Ok(target)
}

fn set_item(cx: &mut Cx<'_>, list: Ref, key: Str, value: Val) -> Result<(), Fault> {
    let len = cx.heap.len(list);
    let Some(at) = array_index(cx.bytes(key)) else {
        let shown = shown(cx, key);
        return Err(Fault::throw(format!(
            "{SET}: '{shown}' is no index of a list"
        )));
    };
    match (at as usize).cmp(&len) {
        std::cmp::Ordering::Less => cx.heap.items_mut(list)[at as usize] = value,
        std::cmp::Ordering::Equal => cx.push(list, value)?,
        std::cmp::Ordering::Greater => {
            return Err(Fault::throw(format!(
                "{SET}: index {at} is beyond the end of a list of {len}"
            )));
        }
    }
    Ok(())
}

/// Sets a member of an object under construction (D67).
///
/// # Errors
/// An invalid key; fuel, memory, a stop.
pub(crate) fn put(cx: &mut Cx<'_>, object: Val, key: Val, value: Val) -> Result<(), Fault> {
    let Val::Obj(r) = object else {
        return Err(Fault::invalid("PutMember without an object"));
    };
    let key = match key {
        Val::Null | Val::Undefined | Val::Unbound => Err(no_key()),
        key => key_text(cx, SET, key),
    };
    let key = key?;
    let key = cx.intern_name(key)?;
    let (heap, mut clock) = cx.split();
    heap.set_member(r, key, value, &mut clock)
}

/// Deletes a member of an object in place; whether it existed.
///
/// # Errors
/// A target that is not an object, an invalid key; fuel, memory, a stop.
pub fn delete(cx: &mut Cx<'_>, target: Val, key: Val) -> Result<Val, Fault> {
    let name = key_text(cx, DELETE, key)?;
    let Val::Obj(r) = target else {
        return Err(Fault::throw(format!(
            "{DELETE} wants an object, got {}",
            kind_of(target)
        )));
    };
    let Some(key) = cx.find_name(name)? else {
        return Ok(Val::Bool(false));
    };
    let (heap, mut clock) = cx.split();
    Ok(Val::Bool(heap.delete_member(r, key, &mut clock)?))
}
