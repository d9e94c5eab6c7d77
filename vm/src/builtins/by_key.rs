//! The atoms `sort`, `groupBy`, `unique` and `sum`, on lists of values by a member (D73).
//!
//! Sorting is stable and by kind: numbers as numbers, texts by UTF-16 units, `false` before
//! `true`, dates by time, then other values in their original order. Missing values and NaN
//! (`null`, `undefined`, NaN) come last, in either direction.

use super::arrays::merge_sort;
use super::sets::Distinct;
use super::{charge_list, date_field, unit_at};
use crate::coerce;
use crate::convert::temp;
use crate::heap::{KeyId, Ref, Str, Val, array_index};
use crate::native::{Cx, Fault, ObjDraft};
use a99_core::costs::{Formula, MEMBERS, NUMERAL, READ, Sizes, sorted_units};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Maximum number of members to sort by.
pub const MAX_KEYS: usize = 16;

/// Elements charged for reading a member.
const MEMBER_READ: usize = 2;

/// Bytes per entry of the group table, with empty slots.
const GROUP_BYTES: usize = 64;

/// A dotted path to a member, as a text of the heap; `None` for the item itself.
pub type By = Option<Str>;

/// A member to sort by.
#[derive(Copy, Clone, Debug)]
pub struct SortKey {
    /// The path to the member.
    pub by: By,
    /// Whether the order is descending.
    pub descending: bool,
}

/// A parsed path.
struct Path(Vec<(KeyId, Str)>);

impl Path {
    /// Parses a path, and pays for reading it from this number of items.
    fn paid(cx: &mut Cx<'_>, by: By, items: usize) -> Result<Path, Fault> {
        let path = Path::read(cx, by)?;
        let reads = items.saturating_mul(path.0.len() * MEMBER_READ);
        cx.charge(READ, Sizes::elements(reads))?;
        Ok(path)
    }

    fn read(cx: &mut Cx<'_>, by: By) -> Result<Path, Fault> {
        let Some(text) = by else {
            return Ok(Path(Vec::new()));
        };
        cx.charge(READ, Sizes::units(text.units()))?;
        let mut ends: Vec<usize> = Vec::new();
        for (at, byte) in cx.bytes(text).iter().enumerate() {
            if *byte == b'.' {
                temp::push(cx.heap, &mut ends, at)?;
            }
        }
        temp::push(cx.heap, &mut ends, text.len_bytes())?;
        let mut parts = temp::with_room(cx.heap, ends.len())?;
        let mut from = 0;
        for to in ends {
            cx.work(32)?;
            let units = cx.units_of(text, from..to)?;
            let name = text.view(from, to, units);
            cx.charge_name(name)?;
            parts.push((cx.intern_name(name)?, name));
            from = to + 1;
        }
        Ok(Path(parts))
    }

    /// Reads the member of an item; members of objects are data, whatever their name.
    fn of(&self, cx: &mut Cx<'_>, item: Val) -> Result<Val, Fault> {
        cx.work(4 + 8 * self.0.len() as i64)?;
        let mut at = item;
        for (key, name) in &self.0 {
            at = own(cx, at, *key, *name)?;
        }
        Ok(at)
    }
}

/// An own member: of objects by name, of arrays and texts by index and `length`, of dates
/// their fields.
fn own(cx: &mut Cx<'_>, value: Val, key: KeyId, name: Str) -> Result<Val, Fault> {
    let index = |cx: &Cx<'_>| array_index(cx.bytes(name)).map(|index| index as usize);
    Ok(match value {
        Val::Obj(r) => cx.own_member(r, key).unwrap_or(Val::Undefined),
        Val::Arr(r) if cx.bytes(name) == b"length" => Val::Num(cx.heap.len(r) as f64),
        Val::Arr(r) => {
            let item = index(cx).and_then(|at| cx.heap.items(r).get(at).copied());
            item.unwrap_or(Val::Undefined)
        }
        Val::Str(s) if cx.bytes(name) == b"length" => Val::Num(s.units() as f64),
        Val::Str(s) => match index(cx) {
            Some(at) => unit_at(cx, s, at)?.map_or(Val::Undefined, Val::Str),
            None => Val::Undefined,
        },
        Val::Date(r) => {
            let ms = cx.heap.date_ms(r);
            let name = cx.bytes(name);
            // Longer than the name of any field.
            let name = name[..name.len().min(16)].to_vec();
            date_field(cx, ms, &name)?.unwrap_or(Val::Undefined)
        }
        _ => Val::Undefined,
    })
}

/// The items of a list or set, and their number.
fn items(cx: &Cx<'_>, op: &str, list: Val) -> Result<(Ref, usize), Fault> {
    match list {
        Val::Arr(r) | Val::Set(r) => Ok((r, cx.heap.len(r))),
        other => Err(Fault::throw(format!(
            "{op} wants a list of items, got {}",
            kind_of(other)
        ))),
    }
}

/// The name of a value's kind, for errors.
fn kind_of(value: Val) -> &'static str {
    match value {
        Val::Null => "null",
        Val::Date(_) => "a date",
        Val::Map(_) => "a map",
        Val::Arr(_) | Val::Set(_) => "a list",
        other => coerce::type_of(other),
    }
}

/// Runs a function with the copies outside the heap counted.
fn counted<T>(
    cx: &mut Cx<'_>,
    bytes: usize,
    run: impl FnOnce(&mut Cx<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let before = cx.heap.copies();
    cx.heap.copy(bytes)?;
    let done = run(cx);
    cx.heap.end_copies(before);
    done
}

/// The rank of a value's kind in the sort order.
fn rank(value: Val) -> u8 {
    match value {
        Val::Num(n) if n.is_nan() => 5,
        Val::Num(_) => 0,
        Val::Str(_) => 1,
        Val::Bool(_) => 2,
        Val::Date(_) => 3,
        Val::Null | Val::Undefined | Val::Unbound => 5,
        _ => 4,
    }
}

fn order(cx: &mut Cx<'_>, a: Val, b: Val, descending: bool) -> Result<Ordering, Fault> {
    /// The rank of missing values, which come last in either direction.
    const MISSING: u8 = 5;
    let ranks = (rank(a), rank(b));
    if ranks.0 == MISSING || ranks.1 == MISSING {
        return Ok(ranks.0.cmp(&ranks.1));
    }
    let order = match (a, b) {
        (Val::Num(a), Val::Num(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Val::Str(a), Val::Str(b)) => coerce::str_order_paid(cx, a, b)?,
        (Val::Bool(a), Val::Bool(b)) => a.cmp(&b),
        (Val::Date(a), Val::Date(b)) => {
            let (a, b) = (cx.heap.date_ms(a), cx.heap.date_ms(b));
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
        _ => ranks.0.cmp(&ranks.1),
    };
    Ok(if descending { order.reverse() } else { order })
}

/// A sorted copy of a list.
///
/// # Errors
/// A value that is not a list; fuel, memory, a stop.
pub fn sort(cx: &mut Cx<'_>, list: Val, keys: &[SortKey]) -> Result<Val, Fault> {
    let (list, n) = items(cx, "sort", list)?;
    let mut paths = Vec::with_capacity(keys.len());
    for key in keys {
        paths.push(Path::paid(cx, key.by, n)?);
    }
    let steps = n.saturating_mul(keys.len());
    cx.charge(Formula::Sort, Sizes::elements(steps))?;
    charge_list(cx, n)?;
    let bytes = steps
        .saturating_add(n)
        .saturating_mul(size_of::<Val>())
        .saturating_add(n.saturating_mul(2 * size_of::<u32>()));
    counted(cx, bytes, |cx| {
        let mut values: Vec<Val> = temp::with_room(cx.heap, steps)?;
        for at in 0..n {
            let item = cx.heap.items(list)[at];
            for path in &paths {
                let value = path.of(cx, item)?;
                if let Val::Str(text) = value {
                    let more = sorted_units(n, text.len_bytes());
                    cx.charge(READ, Sizes::units(text.units().saturating_add(more)))?;
                }
                values.push(value);
            }
        }
        let mut places: Vec<u32> = temp::with_room(cx.heap, n)?;
        places.extend(0..n as u32);
        let width = keys.len();
        merge_sort(cx, &mut places, |cx, a, b| {
            cx.work(8)?;
            let (a, b) = (*a as usize * width, *b as usize * width);
            for (at, key) in keys.iter().enumerate() {
                let order = order(cx, values[a + at], values[b + at], key.descending)?;
                if order != Ordering::Equal {
                    return Ok(order);
                }
            }
            Ok(Ordering::Equal)
        })?;
        values.clear();
        let sorted = cx.list_with_room(n)?;
        for place in places {
            cx.work(2)?;
            let item = cx.heap.items(list)[place as usize];
            cx.heap.push(sorted, item)?;
        }
        Ok(Val::Arr(sorted))
    })
}

/// Groups items by a member: an object with a list for each value, as text.
///
/// # Errors
/// A value that is not a list; fuel, memory, a stop.
pub fn group_by(cx: &mut Cx<'_>, list: Val, by: By) -> Result<Val, Fault> {
    let (list, n) = items(cx, "groupBy", list)?;
    let path = Path::paid(cx, by, n)?;
    cx.charge(MEMBERS, Sizes::elements(n))?;
    counted(cx, n.saturating_mul(GROUP_BYTES), |cx| {
        // The group of each item; the key and size of each group.
        let mut groups: Vec<u32> = temp::with_room(cx.heap, n)?;
        let mut found: Vec<(KeyId, usize)> = Vec::new();
        let mut known: HashMap<KeyId, u32> = HashMap::new();
        for at in 0..n {
            cx.work(ObjDraft::MEMBER_WORK)?;
            let item = cx.heap.items(list)[at];
            let value = path.of(cx, item)?;
            let name = coerce::to_str(cx, value)?;
            cx.charge(READ, Sizes::units(name.units()))?;
            cx.charge_name(name)?;
            let key = cx.intern_name(name)?;
            let group = *known.entry(key).or_insert(found.len() as u32);
            if group as usize == found.len() {
                temp::push(cx.heap, &mut found, (key, 0))?;
            }
            found[group as usize].1 += 1;
            groups.push(group);
        }
        let mut lists: Vec<Ref> = temp::with_room(cx.heap, found.len())?;
        let mut draft = ObjDraft::with_room(found.len());
        for (key, len) in &found {
            cx.work(ObjDraft::MEMBER_WORK)?;
            let group = cx.list_with_room(*len)?;
            lists.push(group);
            draft.set(*key, Val::Arr(group));
        }
        for (at, group) in groups.iter().enumerate() {
            cx.work(4)?;
            let item = cx.heap.items(list)[at];
            cx.heap.push(lists[*group as usize], item)?;
        }
        draft.finish(cx)
    })
}

/// The items with distinct values, or distinct members; the first of each is kept.
///
/// # Errors
/// A value that is not a list; fuel, memory, a stop.
pub fn unique(cx: &mut Cx<'_>, list: Val, by: By) -> Result<Val, Fault> {
    let (list, n) = items(cx, "unique", list)?;
    let path = Path::paid(cx, by, n)?;
    cx.charge(UNIQUE, Sizes::elements(n))?;
    let mut seen = Distinct::new(cx, n)?;
    let mut kept: Vec<Val> = temp::with_room(cx.heap, n)?;
    for at in 0..n {
        cx.work(16)?;
        let item = cx.heap.items(list)[at];
        let value = path.of(cx, item)?;
        let before = seen.len();
        seen.add(cx, value)?;
        if seen.len() > before {
            kept.push(item);
        }
    }
    charge_list(cx, kept.len())?;
    Ok(Val::Arr(cx.list(&kept)?))
}

/// The price of the reads of `unique`.
pub const UNIQUE: Formula = Formula::Keys(10);

/// The sum of the items, or of a member of each; missing values are skipped.
///
/// # Errors
/// A value that is not a list, or an item that is not a number; fuel, a stop.
pub fn sum(cx: &mut Cx<'_>, list: Val, by: By) -> Result<Val, Fault> {
    let (list, n) = items(cx, "sum", list)?;
    let path = Path::paid(cx, by, n)?;
    cx.charge(READ, Sizes::elements(n))?;
    let mut total = 0.0;
    for at in 0..n {
        cx.work(4)?;
        let item = cx.heap.items(list)[at];
        let value = path.of(cx, item)?;
        let refuse = |what: &str| Fault::throw(format!("sum: item {at} is {what}, no number"));
        total += match value {
            Val::Null | Val::Undefined | Val::Unbound => continue,
            Val::Num(n) => n,
            Val::Str(text) => {
                cx.charge(NUMERAL, Sizes::units(text.units()))?;
                match coerce::to_number(cx, value)? {
                    n if n.is_nan() => return Err(refuse("a text")),
                    n => n,
                }
            }
            other => return Err(refuse(kind_of(other))),
        };
    }
    Ok(Val::Num(total))
}
