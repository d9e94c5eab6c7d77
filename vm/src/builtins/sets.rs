//! `Set` (language section 3.6, D34): distinct values in insertion order, compared with
//! SameValueZero. Sets are mutable and shared by reference; the set operations return new
//! ones.

#[cfg(test)]
mod tests;

use super::objects::iterate;
use super::strings_find::find;
use super::{arg, arrays, call_builtin_value, charge_list, is_callable, unknown_method};
use crate::coerce;
use crate::convert::temp;
use crate::heap::{Ref, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

type Code = fn(&mut Cx<'_>, &[Val]) -> Result<Val, Fault>;
type Method = fn(&mut Cx<'_>, Ref, &[Val]) -> Result<Val, Fault>;

/// Namespace, name and code of each function.
pub(super) const FUNCTIONS: &[(&str, &str, Code)] = &[("", "Set", set)];

/// Code of each method.
pub(super) const METHODS: &[(&str, Method)] = &[
    ("add", add),
    ("clear", clear),
    ("delete", delete),
    ("diff", diff),
    ("difference", difference),
    ("entries", entries),
    ("filter", filter),
    ("forEach", for_each),
    ("has", has),
    ("intersection", intersection),
    ("isDisjointFrom", is_disjoint_from),
    ("isSubsetOf", is_subset_of),
    ("isSupersetOf", is_superset_of),
    ("keys", to_array),
    ("map", map),
    ("remove", remove),
    ("symmetricDifference", symmetric_difference),
    ("toArray", to_array),
    ("toJSON", to_array),
    ("union", union),
    ("values", to_array),
];

/// `Set(items)`; further arguments are ignored.
fn set(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let items = list(cx, arg(args, 0))?;
    new_set(cx, &items)
}

/// The items of an argument; `undefined` and `null` have none.
fn list(cx: &mut Cx<'_>, v: Val) -> Result<Vec<Val>, Fault> {
    if v.is_nullish() {
        Ok(Vec::new())
    } else {
        iterate(cx, v)
    }
}

/// A set of the distinct items, after paying for it.
fn new_set(cx: &mut Cx<'_>, items: &[Val]) -> Result<Val, Fault> {
    let mut found = Distinct::new(cx, items.len())?;
    for item in items {
        found.add(cx, *item)?;
    }
    charge_list(cx, found.items.len())?;
    Ok(Val::Set(cx.set_of(&found.items)?))
}

/// Distinct values by randomly keyed hash (security C10): building a set is linear for any
/// values.
pub(super) struct Distinct {
    state: RandomState,
    /// The last item with each hash.
    heads: HashMap<u64, u32>,
    /// The previous item with the same hash.
    before: Vec<u32>,
    items: Vec<Val>,
}

/// Bytes of a text hashed between two yield points.
const PIECE: usize = 16 << 10;

/// End of a chain.
const NONE: u32 = u32::MAX;

impl Distinct {
    pub(super) fn new(cx: &Cx<'_>, n: usize) -> Result<Distinct, Fault> {
        /// Bytes of a hash entry, with empty slots.
        const ENTRY: usize = 32;
        cx.heap
            .check(n.saturating_mul(ENTRY + 2 * size_of::<Val>()))?;
        let mut heads = HashMap::new();
        heads
            .try_reserve(n)
            .map_err(|_| crate::heap::Oom { wanted: n })?;
        let (before, items) = (temp::with_room(cx.heap, n)?, temp::with_room(cx.heap, n)?);
        Ok(Distinct {
            state: RandomState::new(),
            heads,
            before,
            items,
        })
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    fn hash(&self, cx: &mut Cx<'_>, v: Val) -> Result<u64, Fault> {
        let tagged = |tag: u8, n: u64| self.state.hash_one((tag, n));
        Ok(match v {
            Val::Undefined | Val::Unbound => tagged(0, 0),
            Val::Null => tagged(1, 0),
            Val::Bool(b) => tagged(2, u64::from(b)),
            Val::Num(n) if n.is_nan() => tagged(3, 0),
            // Both zeros are equal.
            Val::Num(n) => tagged(4, (n + 0.0).to_bits()),
            Val::Str(s) => {
                let mut hasher = self.state.build_hasher();
                for at in (0..s.len_bytes()).step_by(PIECE) {
                    let end = s.len_bytes().min(at + PIECE);
                    cx.work((end - at) as i64)?;
                    hasher.write(&cx.heap.bytes(s)[at..end]);
                }
                hasher.finish()
            }
            Val::Builtin(n) => tagged(5, u64::from(n)),
            Val::Arr(r) | Val::Obj(r) | Val::Set(r) | Val::Date(r) | Val::Map(r) => {
                self.state.hash_one(r)
            }
        })
    }

    fn find(&self, cx: &mut Cx<'_>, v: Val, hash: u64) -> Result<bool, Fault> {
        let mut at = self.heads.get(&hash).copied().unwrap_or(NONE);
        while at != NONE {
            if coerce::same_value_zero_paid(cx, self.items[at as usize], v)? {
                return Ok(true);
            }
            at = self.before[at as usize];
        }
        Ok(false)
    }

    /// Pays for the text of a value and looks it up.
    fn has(&self, cx: &mut Cx<'_>, v: Val) -> Result<bool, Fault> {
        Self::pay(cx, v)?;
        let hash = self.hash(cx, v)?;
        self.find(cx, v, hash)
    }

    pub(super) fn add(&mut self, cx: &mut Cx<'_>, v: Val) -> Result<(), Fault> {
        Self::pay(cx, v)?;
        let hash = self.hash(cx, v)?;
        if !self.find(cx, v, hash)? {
            let at = self.items.len() as u32;
            self.before
                .push(self.heads.insert(hash, at).unwrap_or(NONE));
            self.items.push(without_sign(v));
        }
        Ok(())
    }

    fn pay(cx: &mut Cx<'_>, v: Val) -> Result<(), Fault> {
        if let Val::Str(s) = v {
            cx.charge(READ, Sizes::units(s.units()))?;
        }
        cx.work(16)
    }
}

/// Replaces negative zero, which sets do not hold (ECMA-262 §24.2.1.1).
fn without_sign(v: Val) -> Val {
    match v {
        // The sum of both zeros is positive zero.
        Val::Num(n) => Val::Num(n + 0.0),
        other => other,
    }
}

fn add(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    if position(cx, r, arg(args, 0))?.is_none() {
        cx.push(r, arg(args, 0))?;
    }
    Ok(Val::Set(r))
}

fn position(cx: &mut Cx<'_>, r: Ref, v: Val) -> Result<Option<usize>, Fault> {
    arrays::find_from(cx, r, v, 0, coerce::same_value_zero_paid)
}

fn remove(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    if let Some(at) = position(cx, r, arg(args, 0))? {
        let items = cx.heap.items_mut(r);
        items.copy_within(at + 1.., at);
        let len = items.len() - 1;
        cx.heap.truncate(r, len);
    }
    Ok(Val::Set(r))
}

/// `delete`, which returns whether the member was there.
fn delete(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    remove(cx, r, args)?;
    Ok(Val::Bool(cx.heap.len(r) < len))
}

/// Arrays of each member twice, as `Map` has key and value.
fn entries(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    /// Values per pair, with its header.
    const PAIR: usize = 4;
    let len = cx.heap.len(r);
    charge_list(cx, len)?;
    arrays::check_room(cx.heap, len.saturating_mul(PAIR))?;
    let mut out = temp::with_room(cx.heap, len)?;
    for at in 0..len {
        cx.work(4)?;
        let item = cx.heap.items(r)[at];
        out.push(Val::Arr(cx.heap.alloc_arr(&[item, item])?));
    }
    Ok(Val::Arr(cx.list(&out)?))
}

fn clear(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    cx.heap.truncate(r, 0);
    Ok(Val::Set(r))
}

fn has(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(position(cx, r, arg(args, 0))?.is_some()))
}

fn to_array(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    charge_list(cx, len)?;
    let items = cx.copy_out(r, 0..len)?;
    Ok(Val::Arr(cx.list(&items)?))
}

fn union(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let mut items = iterate(cx, Val::Set(r))?;
    let others = list(cx, arg(args, 0))?;
    temp::extend(cx.heap, &mut items, &others)?;
    new_set(cx, &items)
}

/// The items that the argument contains, or those that it does not.
fn select(cx: &mut Cx<'_>, r: Ref, other: Val, wanted: bool) -> Result<Val, Fault> {
    let items = iterate(cx, Val::Set(r))?;
    match other {
        Val::Str(text) => return select_in_text(cx, &items, text, wanted),
        Val::Set(_) | Val::Arr(_) | Val::Undefined | Val::Unbound | Val::Null => {}
        _ => return select_in_none(cx, &items, other),
    }
    let others = list(cx, other)?;
    let mut table = Distinct::new(cx, others.len())?;
    for item in others {
        table.add(cx, item)?;
    }
    let mut kept = temp::with_room(cx.heap, items.len())?;
    for item in items {
        if table.has(cx, item)? == wanted {
            kept.push(without_sign(item));
        }
    }
    charge_list(cx, kept.len())?;
    Ok(Val::Set(cx.set_of(&kept)?))
}

/// Selects by inclusion in a text: it contains its substrings.
fn select_in_text(cx: &mut Cx<'_>, items: &[Val], text: Str, wanted: bool) -> Result<Val, Fault> {
    let mut kept = temp::with_room(cx.heap, items.len())?;
    for item in items {
        let part = coerce::to_str(cx, *item)?;
        cx.charge(READ, Sizes::units(text.units() + part.units()))?;
        cx.work(((text.len_bytes() + part.len_bytes()) / 16) as i64)?;
        if find(cx, text, part, 0)?.is_some() == wanted {
            kept.push(without_sign(*item));
        }
    }
    charge_list(cx, kept.len())?;
    Ok(Val::Set(cx.set_of(&kept)?))
}

/// Selects from an argument that is neither list nor text: an error at the first look-up.
fn select_in_none(cx: &mut Cx<'_>, items: &[Val], other: Val) -> Result<Val, Fault> {
    if let Val::Obj(r) = other
        && cx
            .heap
            .get_text(r, b"toArray")
            .is_some_and(|v| !v.is_nullish())
    {
        return Err(Fault::throw("'toArray' is not a function"));
    }
    match items {
        [] => new_set(cx, &[]),
        _ => Err(unknown_method(cx, other, "includes")),
    }
}

fn intersection(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    select(cx, r, arg(args, 0), true)
}

fn diff(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    select(cx, r, arg(args, 0), false)
}

/// The members of another set, or the keys of a map. JavaScript's set operations refuse lists.
fn members_of(cx: &mut Cx<'_>, other: Val) -> Result<Vec<Val>, Fault> {
    match other {
        Val::Set(_) => iterate(cx, other),
        Val::Map(r) => super::maps::key_list(cx, r),
        _ => Err(Fault::throw("a set operation needs a set: new Set(list)")),
    }
}

/// The items of a list that are in another, or those that are not.
fn filtered(cx: &mut Cx<'_>, items: &[Val], of: &[Val], wanted: bool) -> Result<Vec<Val>, Fault> {
    let mut table = Distinct::new(cx, of.len())?;
    for item in of {
        table.add(cx, *item)?;
    }
    let mut kept = temp::with_room(cx.heap, items.len())?;
    for item in items {
        if table.has(cx, *item)? == wanted {
            kept.push(without_sign(*item));
        }
    }
    Ok(kept)
}

fn difference(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let items = iterate(cx, Val::Set(r))?;
    let others = members_of(cx, arg(args, 0))?;
    let kept = filtered(cx, &items, &others, false)?;
    charge_list(cx, kept.len())?;
    Ok(Val::Set(cx.set_of(&kept)?))
}

fn symmetric_difference(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let items = iterate(cx, Val::Set(r))?;
    let others = members_of(cx, arg(args, 0))?;
    let mut kept = filtered(cx, &items, &others, false)?;
    let new = filtered(cx, &others, &items, false)?;
    temp::extend(cx.heap, &mut kept, &new)?;
    charge_list(cx, kept.len())?;
    Ok(Val::Set(cx.set_of(&kept)?))
}

fn is_subset_of(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let items = iterate(cx, Val::Set(r))?;
    let others = members_of(cx, arg(args, 0))?;
    let kept = filtered(cx, &items, &others, false)?;
    Ok(Val::Bool(kept.is_empty()))
}

fn is_superset_of(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let items = iterate(cx, Val::Set(r))?;
    let others = members_of(cx, arg(args, 0))?;
    let kept = filtered(cx, &others, &items, false)?;
    Ok(Val::Bool(kept.is_empty()))
}

fn is_disjoint_from(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let items = iterate(cx, Val::Set(r))?;
    let others = members_of(cx, arg(args, 0))?;
    let kept = filtered(cx, &items, &others, true)?;
    Ok(Val::Bool(kept.is_empty()))
}

/// The results of a callback on each item.
fn results(cx: &mut Cx<'_>, r: Ref, method: &str, f: Val) -> Result<Vec<(Val, Val)>, Fault> {
    if !matches!(f, Val::Builtin(n) if is_callable(n)) {
        return Err(Fault::throw(format!(
            "Array.prototype.{method} callback must be a function"
        )));
    }
    let items = iterate(cx, Val::Set(r))?;
    // The callback gets the underlying list, as in the references.
    let list = Val::Arr(cx.list(&items)?);
    let mut out = temp::with_room(cx.heap, items.len())?;
    for (at, item) in items.into_iter().enumerate() {
        cx.work(8)?;
        out.push((
            item,
            call_builtin_value(cx, f, &[item, Val::Num(at as f64), list])?,
        ));
    }
    Ok(out)
}

fn map(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let results = results(cx, r, "map", arg(args, 0))?;
    let mut items: Vec<Val> = temp::with_room(cx.heap, results.len())?;
    items.extend(results.iter().map(|(_, result)| *result));
    new_set(cx, &items)
}

fn filter(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let mut results = results(cx, r, "filter", arg(args, 0))?;
    results.retain(|(_, result)| coerce::truthy(cx.heap, *result));
    let mut items: Vec<Val> = temp::with_room(cx.heap, results.len())?;
    items.extend(results.iter().map(|(item, _)| without_sign(*item)));
    charge_list(cx, items.len())?;
    Ok(Val::Set(cx.set_of(&items)?))
}

fn for_each(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    results(cx, r, "forEach", arg(args, 0))?;
    Ok(Val::Undefined)
}
