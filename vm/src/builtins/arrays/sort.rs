//! `sort` and `toSorted`: a stable merge sort whose comparisons may fail.
//!
//! The comparator is not trusted: an inconsistent one gives some order, in the same number of
//! steps (security C05). `undefined` goes to the end without a comparison (ECMA-262
//! §23.1.3.30.2).

use super::{arg, check_room, copy_items, new_array};
use crate::builtins::{call_builtin_value, is_callable};
use crate::coerce;
use crate::convert::temp;
use crate::heap::{Ref, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{Formula, READ, Sizes, comparator_steps, sorted_units};
use std::cmp::Ordering;

/// Length of the runs that insertion sort makes before merging.
const RUN: usize = 8;

pub(super) fn sort(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let items = sorted(cx, r, "sort", arg(args, 0))?;
    // Cannot fail: the number of values is unchanged.
    cx.heap.items_mut(r).copy_from_slice(&items);
    Ok(Val::Arr(r))
}

pub(super) fn to_sorted(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let items = sorted(cx, r, "toSorted", arg(args, 0))?;
    new_array(cx, &items)
}

fn sorted(cx: &mut Cx<'_>, r: Ref, method: &str, compare: Val) -> Result<Vec<Val>, Fault> {
    let compare = match compare {
        Val::Undefined | Val::Unbound => None,
        f @ Val::Builtin(n) if is_callable(n) => Some(f),
        _ => {
            return Err(Fault::throw(format!(
                "Array.prototype.{method} requires that the comparator be a function or undefined"
            )));
        }
    };
    let len = cx.heap.len(r);
    let units = |v: &Val| if let Val::Str(s) = v { s.units() } else { 0 };
    let units = cx
        .heap
        .items(r)
        .iter()
        .map(units)
        .fold(0usize, usize::saturating_add);
    cx.charge(Formula::Sort, Sizes::elements(len).in_units(units))?;
    if compare.is_some() {
        let steps = Sizes::elements(comparator_steps(len));
        cx.pay_metered(READ.price(steps))?;
    }
    check_room(cx.heap, len.saturating_mul(3))?;
    let mut items = copy_items(cx, r, 0..len)?;
    items.retain(|v| !v.is_undefined());
    match compare {
        Some(f) => merge_sort(cx, &mut items, |cx, a, b| {
            let order = call_builtin_value(cx, f, &[*a, *b])?;
            let order = coerce::to_number(cx, order)?;
            // NaN counts as equal.
            Ok(order.partial_cmp(&0.0).unwrap_or(Ordering::Equal))
        })?,
        None => sort_by_text(cx, &mut items, len)?,
    }
    items.resize(len, Val::Undefined);
    Ok(items)
}

fn sort_by_text(cx: &mut Cx<'_>, items: &mut Vec<Val>, len: usize) -> Result<(), Fault> {
    let mut keyed: Vec<(Str, Val)> = temp::with_room(cx.heap, items.len())?;
    for item in items.iter() {
        cx.work(8)?;
        keyed.push((coerce::to_str(cx, *item)?, *item));
    }
    for (text, _) in &keyed {
        let units = sorted_units(len, text.len_bytes());
        if units > 0 {
            cx.charge(READ, Sizes::units(units))?;
        }
    }
    merge_sort(cx, &mut keyed, |cx, a, b| {
        cx.work(8)?;
        coerce::str_order_paid(cx, a.0, b.0)
    })?;
    items.clear();
    items.extend(keyed.iter().map(|(_, item)| *item));
    Ok(())
}

/// Sorts in `n * ceil(log2 n)` comparisons at most, plus those of the runs.
pub(in crate::builtins) fn merge_sort<T: Copy>(
    cx: &mut Cx<'_>,
    items: &mut Vec<T>,
    mut compare: impl FnMut(&mut Cx<'_>, &T, &T) -> Result<Ordering, Fault>,
) -> Result<(), Fault> {
    for run in items.chunks_mut(RUN) {
        for i in 1..run.len() {
            let mut at = i;
            while at > 0 && compare(cx, &run[at - 1], &run[at])? == Ordering::Greater {
                run.swap(at - 1, at);
                at -= 1;
            }
        }
        cx.work(RUN as i64)?;
    }
    let mut out: Vec<T> = temp::with_room(cx.heap, items.len())?;
    let mut width = RUN;
    while width < items.len() {
        out.clear();
        for pair in items.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(cx, left, right, &mut out, &mut compare)?;
        }
        std::mem::swap(items, &mut out);
        width *= 2;
    }
    Ok(())
}

/// Merges two sorted runs, stably.
fn merge<T: Copy>(
    cx: &mut Cx<'_>,
    left: &[T],
    right: &[T],
    out: &mut Vec<T>,
    compare: &mut impl FnMut(&mut Cx<'_>, &T, &T) -> Result<Ordering, Fault>,
) -> Result<(), Fault> {
    cx.work((left.len() + right.len()).min(1 << 12) as i64)?;
    let (mut i, mut j) = (0, 0);
    // Runs that are in order already need one comparison.
    let in_order = match (left.last(), right.first()) {
        (Some(a), Some(b)) => compare(cx, a, b)? != Ordering::Greater,
        _ => true,
    };
    while !in_order && i < left.len() && j < right.len() {
        cx.work(2)?;
        if compare(cx, &left[i], &right[j])? == Ordering::Greater {
            out.push(right[j]);
            j += 1;
        } else {
            out.push(left[i]);
            i += 1;
        }
    }
    out.extend_from_slice(&left[i..]);
    out.extend_from_slice(&right[j..]);
    Ok(())
}
