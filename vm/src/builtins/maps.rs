//! `Map` (D111): entries of any key in the order of their insertion, compared with
//! SameValueZero. Maps are mutable and shared by reference.
//!
//! A text, number, boolean, `null` or `undefined` is found by a tagged text in the map's
//! object: the price does not depend on the number of entries. Other keys are compared by
//! identity, and such a look-up pays for all entries.

use super::objects::iterate;
use super::{arg, call_builtin_value, charge_list, is_callable};
use crate::convert::temp;
use crate::heap::{KeyId, MapParts, Ref, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes, WRITTEN, read};

type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;
type Method = fn(&mut Cx<'_>, Ref, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, Code)] = &[("Array", "toMap", to_map)];

/// Code of each method.
pub(super) const METHODS: &[(&str, Method)] = &[
    ("clear", clear),
    ("delete", delete),
    ("entries", entries),
    ("forEach", for_each),
    ("get", get),
    ("has", has),
    ("keys", keys),
    ("set", set),
    ("values", values),
];

/// Values of an entry as an array, with its header.
const PAIR: usize = 4;

/// A key, as it is looked up.
enum Name {
    /// The tagged text of a key that is compared by its value.
    Text(Vec<u8>),
    /// A key that is compared by identity.
    Identity(Ref),
}

fn parts(cx: &Cx<'_>, r: Ref) -> Result<MapParts, Fault> {
    let parts = cx.heap.map_parts(r);
    parts.ok_or_else(|| Fault::throw("the map is damaged"))
}

/// Pays for the look-up of a key and returns what it is found by.
fn name_of(cx: &mut Cx<'_>, r: Ref, key: Val) -> Result<Name, Fault> {
    cx.work(16)?;
    if let Val::Str(s) = key {
        cx.charge(READ, Sizes::units(s.units()))?;
        cx.heap.check(s.len_bytes() + 1)?;
        cx.work((s.len_bytes() / 8) as i64)?;
    } else if key.as_ref().is_some() {
        let len = cx.heap.map_len(r);
        cx.charge(READ, Sizes::elements(len))?;
        cx.work(len as i64 * 4)?;
    }
    Ok(name_of_paid(cx, key))
}

/// The number of an entry in the list of those with an identity, and its key in the object.
fn named(cx: &mut Cx<'_>, parts: MapParts, key: Ref) -> Result<Option<(usize, KeyId)>, Fault> {
    let entries = cx.heap.items(parts.named);
    let found = entries.iter().position(|entry| match entry {
        Val::Arr(entry) => {
            let first = cx.heap.items(*entry).first();
            first.and_then(|first| first.as_ref()) == Some(key)
        }
        _ => false,
    });
    let Some(at) = found else { return Ok(None) };
    let number = match entries[at] {
        Val::Arr(entry) => cx.heap.items(entry).get(2).copied(),
        _ => None,
    };
    let Some(Val::Num(number)) = number else {
        return Ok(None);
    };
    Ok(find(cx, &identity_name(number))?.map(|key| (at, key)))
}

fn identity_name(number: f64) -> Vec<u8> {
    format!("o{number}").into_bytes()
}

fn find(cx: &mut Cx<'_>, name: &[u8]) -> Result<Option<KeyId>, Fault> {
    let (heap, mut clock) = cx.split();
    Ok(heap.shapes.find_long(name, &mut clock)?.1)
}

fn intern(cx: &mut Cx<'_>, name: &[u8]) -> Result<KeyId, Fault> {
    let (heap, mut clock) = cx.split();
    match heap.shapes.find_long(name, &mut clock)? {
        (_, Some(key)) => Ok(key),
        (hash, None) => Ok(heap.add_key(hash, name)?),
    }
}

/// The key in the map's object and the value there.
fn look_up(cx: &mut Cx<'_>, r: Ref, key: Val) -> Result<Option<(KeyId, Val)>, Fault> {
    let parts = parts(cx, r)?;
    let found = match name_of(cx, r, key)? {
        Name::Text(name) => find(cx, &name)?,
        Name::Identity(key) => named(cx, parts, key)?.map(|(_, key)| key),
    };
    Ok(found.and_then(|key| Some((key, cx.heap.get(parts.table, key)?))))
}

/// The value of an entry, from what the map's object holds for its tag.
fn value_of(cx: &Cx<'_>, key: KeyId, held: Val) -> Val {
    match held {
        Val::Arr(entry) if cx.heap.shapes.key_text(key).first() == Some(&b'o') => cx
            .heap
            .items(entry)
            .get(1)
            .copied()
            .unwrap_or(Val::Undefined),
        held => held,
    }
}

fn get(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    Ok(match look_up(cx, r, arg(args, 0))? {
        Some((key, held)) => value_of(cx, key, held),
        None => Val::Undefined,
    })
}

fn has(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(look_up(cx, r, arg(args, 0))?.is_some()))
}

fn set(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    put(cx, r, arg(args, 0), arg(args, 1))?;
    Ok(Val::Map(r))
}

/// Sets the value of a key, after paying for a new entry.
fn put(cx: &mut Cx<'_>, r: Ref, key: Val, value: Val) -> Result<(), Fault> {
    let value = match value {
        Val::Unbound => Val::Undefined,
        value => value,
    };
    let found = look_up(cx, r, key)?;
    let parts = parts(cx, r)?;
    if let Some((id, held)) = found {
        match held {
            Val::Arr(entry) if key.as_ref().is_some() => {
                if let Some(slot) = cx.heap.items_mut(entry).get_mut(1) {
                    *slot = value;
                }
            }
            _ => {
                let (heap, mut clock) = cx.split();
                heap.set_member(parts.table, id, value, &mut clock)?;
            }
        }
        return Ok(());
    }
    charge_list(cx, 1)?;
    match name_of_paid(cx, key) {
        Name::Text(name) => {
            let id = intern(cx, &name)?;
            let (heap, mut clock) = cx.split();
            heap.set_member(parts.table, id, value, &mut clock)
        }
        // Everything that may fail comes before the first change.
        Name::Identity(_) => {
            let id = intern(cx, &identity_name(parts.next))?;
            let entry = Val::Arr(cx.heap.alloc_arr(&[key, value, Val::Num(parts.next)])?);
            let (heap, mut clock) = cx.split();
            heap.room_for_one(parts.named, &mut clock)?;
            heap.set_member(parts.table, id, entry, &mut clock)?;
            heap.push_long(parts.named, entry, &mut clock)?;
            heap.items_mut(r)[2] = Val::Num(parts.next + 1.0);
            Ok(())
        }
    }
}

/// What a key is found by; its look-up was paid for.
fn name_of_paid(cx: &Cx<'_>, key: Val) -> Name {
    let tagged = |tag: u8, text: &[u8]| Name::Text([&[tag], text].concat());
    match key {
        Val::Str(s) => tagged(b's', cx.heap.bytes(s)),
        Val::Num(n) => tagged(b'n', a99_ecma::number_text::number_to_string(n).as_bytes()),
        Val::Bool(true) => tagged(b't', b""),
        Val::Bool(false) => tagged(b'f', b""),
        Val::Null => tagged(b'l', b""),
        Val::Undefined | Val::Unbound => tagged(b'u', b""),
        Val::Builtin(n) => tagged(b'b', n.to_string().as_bytes()),
        Val::Arr(at) | Val::Obj(at) | Val::Set(at) | Val::Date(at) | Val::Map(at) => {
            Name::Identity(at)
        }
    }
}

fn delete(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let parts = parts(cx, r)?;
    let (at, id) = match name_of(cx, r, arg(args, 0))? {
        Name::Text(name) => (None, find(cx, &name)?),
        Name::Identity(key) => match named(cx, parts, key)? {
            Some((at, id)) => (Some(at), Some(id)),
            None => (None, None),
        },
    };
    let Some(id) = id else {
        return Ok(Val::Bool(false));
    };
    let (heap, mut clock) = cx.split();
    let was_there = heap.delete_member(parts.table, id, &mut clock)?;
    if let Some(at) = at {
        let entries = heap.items_mut(parts.named);
        let last = entries.len() - 1;
        entries.swap(at, last);
        heap.truncate(parts.named, last);
    }
    Ok(Val::Bool(was_there))
}

fn clear(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    let parts = parts(cx, r)?;
    let table = cx.heap.alloc_obj_keys(&[], &[])?;
    cx.heap.items_mut(r)[0] = Val::Obj(table);
    cx.heap.truncate(parts.named, 0);
    Ok(Val::Undefined)
}

/// The entries in the order of their insertion; keys only if `with_keys` is set, whose texts
/// are paid for.
fn members(cx: &mut Cx<'_>, r: Ref, with_keys: bool) -> Result<Vec<(Val, Val)>, Fault> {
    let parts = parts(cx, r)?;
    cx.charge(READ, Sizes::elements(cx.heap.len(parts.table)))?;
    let found = cx.members(parts.table)?;
    let mut out: Vec<(Val, Val)> = temp::with_room(cx.heap, found.len())?;
    for (key, held) in found {
        cx.work(8)?;
        let name = match with_keys {
            true => key_of(cx, key, held)?,
            false => Val::Undefined,
        };
        out.push((name, value_of(cx, key, held)));
    }
    Ok(out)
}

/// The key that a tagged text stands for.
fn key_of(cx: &mut Cx<'_>, key: KeyId, held: Val) -> Result<Val, Fault> {
    let text = cx.heap.shapes.key_text(key);
    let rest = text.get(1..).unwrap_or_default();
    Ok(match text.first() {
        Some(b's') => {
            let units = cx.heap.shapes.key_units(key) - 1;
            cx.charge(READ, Sizes::units(units))?;
            let whole = cx.heap.key_str(key)?;
            Val::Str(whole.view(1, whole.len_bytes(), units))
        }
        Some(b'n') => Val::Num(match rest {
            b"NaN" => f64::NAN,
            rest => a99_ecma::number_parse::string_to_number(rest),
        }),
        Some(b't') => Val::Bool(true),
        Some(b'f') => Val::Bool(false),
        Some(b'l') => Val::Null,
        Some(b'b') => {
            let text = std::str::from_utf8(rest).unwrap_or_default();
            text.parse().map_or(Val::Undefined, Val::Builtin)
        }
        Some(b'o') => match held {
            Val::Arr(entry) => {
                let first = cx.heap.items(entry).first();
                first.copied().unwrap_or(Val::Undefined)
            }
            _ => Val::Undefined,
        },
        _ => Val::Undefined,
    })
}

fn keys(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    charge_list(cx, cx.heap.map_len(r))?;
    let keys = key_list(cx, r)?;
    Ok(Val::Arr(cx.list(&keys)?))
}

/// The keys, whose texts are paid for.
pub(super) fn key_list(cx: &mut Cx<'_>, r: Ref) -> Result<Vec<Val>, Fault> {
    let members = members(cx, r, true)?;
    let mut out: Vec<Val> = temp::with_room(cx.heap, members.len())?;
    out.extend(members.into_iter().map(|(key, _)| key));
    Ok(out)
}

fn values(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    charge_list(cx, cx.heap.map_len(r))?;
    let members = members(cx, r, false)?;
    let mut out: Vec<Val> = temp::with_room(cx.heap, members.len())?;
    out.extend(members.into_iter().map(|(_, value)| value));
    Ok(Val::Arr(cx.list(&out)?))
}

fn entries(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    charge_list(cx, cx.heap.map_len(r))?;
    let entries = entry_list(cx, r)?;
    Ok(Val::Arr(cx.list(&entries)?))
}

/// The entries as arrays of key and value, which are paid for.
pub(super) fn entry_list(cx: &mut Cx<'_>, r: Ref) -> Result<Vec<Val>, Fault> {
    let len = cx.heap.map_len(r);
    cx.charge(
        WRITTEN,
        Sizes::default().out_elements(len.saturating_mul(2)),
    )?;
    super::arrays::check_room(cx.heap, len.saturating_mul(PAIR))?;
    let members = members(cx, r, true)?;
    let mut out: Vec<Val> = temp::with_room(cx.heap, members.len())?;
    for (key, value) in members {
        cx.work(4)?;
        out.push(Val::Arr(cx.heap.alloc_arr(&[key, value])?));
    }
    Ok(out)
}

/// Calls a builtin function for each value, with its key.
fn for_each(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let f = arg(args, 0);
    if !matches!(f, Val::Builtin(n) if is_callable(n)) {
        return Err(Fault::throw(
            "Map.prototype.forEach callback must be a function",
        ));
    }
    // The row pays for elements of receivers that are lists.
    cx.charge(read(36), Sizes::elements(cx.heap.map_len(r)))?;
    for (key, value) in members(cx, r, true)? {
        cx.work(8)?;
        call_builtin_value(cx, f, &[value, key, Val::Map(r)])?;
    }
    Ok(Val::Undefined)
}

/// `Array.toMap(entries)`: later entries replace earlier ones with the same key.
fn to_map(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let source = arg(args, 0);
    let pairs = match source.is_nullish() {
        true => Vec::new(),
        false => iterate(cx, source)?,
    };
    let map = cx.heap.alloc_map()?;
    for pair in pairs {
        cx.work(8)?;
        let part = |at: usize, name: &[u8]| match pair {
            Val::Arr(r) => Some(cx.heap.items(r).get(at).copied()),
            Val::Obj(r) => Some(cx.heap.get_text(r, name)),
            _ => None,
        };
        let (Some(key), Some(value)) = (part(0, b"0"), part(1, b"1")) else {
            return Err(Fault::throw(
                "an entry of a Map must be a list of key and value",
            ));
        };
        let (key, value) = (
            key.unwrap_or(Val::Undefined),
            value.unwrap_or(Val::Undefined),
        );
        put(cx, map, key, value)?;
    }
    Ok(Val::Map(map))
}
