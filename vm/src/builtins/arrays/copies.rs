//! Methods that return a new array and do not change the old one.

use super::{arg, check_room, copy_items, index_arg, new_array, range_args};
use crate::builtins::charge_list;
use crate::convert::temp;
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{CostModel, READ, Sizes};
use a99_ecma::text_index;
use hashbrown::HashSet;
use std::ops::Range;

/// Maximum nesting that `flat` follows; deeper arrays are cycles or attacks.
const MAX_FLAT_DEPTH: usize = 512;

/// Number of open arrays up to which they are compared linearly.
const FEW: usize = 16;

pub(super) fn slice(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let range = range_args(cx, args, 0, cx.heap.len(r))?;
    charge_list(cx, range.len())?;
    let items = copy_items(cx, r, range)?;
    new_array(cx, &items)
}

/// `concat`: spreads array arguments by one level.
pub(super) fn concat(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let mut total = cx.heap.len(r);
    for val in args {
        total += if let Val::Arr(list) = val {
            cx.heap.len(*list)
        } else {
            1
        };
    }
    charge_list(cx, total)?;
    check_room(cx.heap, total)?;
    let mut out = temp::with_room(cx.heap, total)?;
    for val in [Val::Arr(r)].iter().chain(args) {
        match val {
            Val::Arr(list) => {
                let (heap, mut clock) = cx.split();
                heap.copy_out(*list, 0..heap.len(*list), &mut out, &mut clock)?;
            }
            other => out.push(*other),
        }
    }
    new_array(cx, &out)
}

/// Pays for another array that `flat` visits, except the outermost. The flat model's cap
/// applies to the whole call.
fn charge_flat(cx: &mut Cx<'_>, len: usize, total: &mut usize) -> Result<(), Fault> {
    *total = total.saturating_add(len);
    let n = if cx.meter.model == CostModel::Flat {
        *total
    } else {
        len
    };
    cx.charge(READ, Sizes::elements(n))
}

/// `flat(depth)`, without recursion. A cycle within the depth is an error; in JavaScript it
/// exhausts the stack (M10).
pub(super) fn flat(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let depth = index_arg(cx, args, 0, 1.0)?;
    let mut total = cx.heap.len(r);
    let mut out = Vec::new();
    let mut path: Vec<(Ref, usize)> = vec![(r, 0)];
    // The arrays of the path, used once it is long.
    let mut open: HashSet<Ref> = HashSet::new();
    while let Some((list, next)) = path.last_mut() {
        cx.work(2)?;
        let (list, at) = (*list, *next);
        *next += 1;
        match cx.heap.items(list).get(at).copied() {
            None => {
                path.pop();
                match path.len() {
                    ..=FEW => open.clear(),
                    _ => drop(open.remove(&list)),
                }
            }
            Some(Val::Arr(inner)) if path.len() as f64 <= depth => {
                // Deeper paths use the set: a linear comparison would make each array cost
                // time proportional to the depth.
                let cyclic = match path.len() {
                    ..=FEW => path.iter().any(|(list, _)| *list == inner),
                    _ => {
                        if open.is_empty() {
                            open.extend(path.iter().map(|(list, _)| *list));
                        }
                        !open.insert(inner)
                    }
                };
                if cyclic {
                    return Err(Fault::throw("Cannot flatten a cyclic array"));
                }
                if path.len() >= MAX_FLAT_DEPTH {
                    return Err(Fault::throw(format!(
                        "Cannot flatten an array nested deeper than {MAX_FLAT_DEPTH} levels"
                    )));
                }
                charge_flat(cx, cx.heap.len(inner), &mut total)?;
                path.push((inner, 0));
            }
            Some(val) => {
                if out.len() == out.capacity() {
                    check_room(cx.heap, out.len())?;
                }
                temp::push(cx.heap, &mut out, val)?;
            }
        }
    }
    charge_list(cx, out.len())?;
    new_array(cx, &out)
}

pub(super) fn keys(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    charge_list(cx, len)?;
    check_room(cx.heap, len)?;
    let mut out = temp::with_room(cx.heap, len)?;
    for at in 0..len {
        cx.work(2)?;
        out.push(Val::Num(at as f64));
    }
    new_array(cx, &out)
}

pub(super) fn values(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    slice(cx, r, &[])
}

/// Pairs of index and element, as an array: the language has no iterators.
pub(super) fn entries(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    /// Values per pair, with its header.
    const PAIR: usize = 4;
    let len = cx.heap.len(r);
    charge_list(cx, len)?;
    check_room(cx.heap, len.saturating_mul(PAIR))?;
    let mut out = temp::with_room(cx.heap, len)?;
    for at in 0..len {
        cx.work(4)?;
        let pair = [Val::Num(at as f64), cx.heap.items(r)[at]];
        out.push(new_array(cx, &pair)?);
    }
    new_array(cx, &out)
}

pub(super) fn to_reversed(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    charge_list(cx, len)?;
    let mut items = copy_items(cx, r, 0..len)?;
    cx.work(len as i64)?;
    items.reverse();
    new_array(cx, &items)
}

pub(super) fn with(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let index = index_arg(cx, args, 0, 0.0)?;
    let Some(at) = text_index::at(index, len) else {
        return Err(Fault::throw("Array index out of range"));
    };
    charge_list(cx, len)?;
    let mut items = copy_items(cx, r, 0..len)?;
    items[at] = arg(args, 1);
    new_array(cx, &items)
}

/// The range that the first two arguments of `splice` remove (ECMA-262 §23.1.3.31).
pub(super) fn splice_range(
    cx: &mut Cx<'_>,
    args: &[Val],
    len: usize,
) -> Result<Range<usize>, Fault> {
    let start = text_index::clamp_relative(index_arg(cx, args, 0, 0.0)?, len);
    let count = match args {
        [] => 0,
        [_] => len - start,
        [_, count, ..] => {
            let count = crate::coerce::to_integer(cx, *count)?;
            text_index::clamp(count, len - start)
        }
    };
    Ok(start..start + count)
}

/// The array after the splice.
pub(super) fn spliced(
    cx: &mut Cx<'_>,
    r: Ref,
    removed: &Range<usize>,
    inserted: &[Val],
) -> Result<Vec<Val>, Fault> {
    let len = cx.heap.len(r);
    let mut out = temp::with_room(cx.heap, len - removed.len() + inserted.len())?;
    let (heap, mut clock) = cx.split();
    heap.copy_out(r, 0..removed.start, &mut out, &mut clock)?;
    out.extend_from_slice(inserted);
    heap.copy_out(r, removed.end..len, &mut out, &mut clock)?;
    Ok(out)
}

pub(super) fn to_spliced(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let removed = splice_range(cx, args, len)?;
    let inserted = args.get(2..).unwrap_or_default();
    let total = len - removed.len() + inserted.len();
    charge_list(cx, total)?;
    check_room(cx.heap, total)?;
    let items = spliced(cx, r, &removed, inserted)?;
    new_array(cx, &items)
}
