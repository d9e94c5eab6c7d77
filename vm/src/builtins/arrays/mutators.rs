//! Methods that change their array. Each first computes, pays for its writes and allocates:
//! the instruction may run a second time.

use super::copies::{splice_range, spliced};
use super::{arg, check_room, copy_items, index_arg, new_array, range_args};
use crate::builtins::charge_list;
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};
use a99_ecma::text_index;

pub(super) fn push(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    for item in args {
        if let Err(oom) = cx.heap.push(r, *item) {
            // All or nothing: the instruction may run again.
            cx.heap.truncate(r, len);
            return Err(oom.into());
        }
    }
    Ok(Val::Num(cx.heap.len(r) as f64))
}

pub(super) fn pop(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    let last = cx.heap.items(r).last().copied();
    if last.is_some() {
        cx.heap.truncate(r, cx.heap.len(r) - 1);
    }
    Ok(last.unwrap_or(Val::Undefined))
}

pub(super) fn shift(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let Some(first) = cx.heap.items(r).first().copied() else {
        return Ok(Val::Undefined);
    };
    cx.heap.items_mut(r).copy_within(1.., 0);
    cx.heap.truncate(r, len - 1);
    Ok(first)
}

pub(super) fn unshift(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let total = len + args.len();
    if !args.is_empty() {
        check_room(cx.heap, total)?;
        let items = spliced(cx, r, &(0..0), args)?;
        cx.heap.replace(r, &items)?;
    }
    Ok(Val::Num(total as f64))
}

pub(super) fn reverse(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    cx.heap.items_mut(r).reverse();
    Ok(Val::Arr(r))
}

pub(super) fn fill(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let range = range_args(cx, args, 1, cx.heap.len(r))?;
    cx.heap.items_mut(r)[range].fill(arg(args, 0));
    Ok(Val::Arr(r))
}

pub(super) fn copy_within(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let to = text_index::clamp_relative(index_arg(cx, args, 0, 0.0)?, len);
    let from = range_args(cx, args, 1, len)?;
    let count = from.len().min(len - to);
    cx.heap
        .items_mut(r)
        .copy_within(from.start..from.start + count, to);
    Ok(Val::Arr(r))
}

pub(super) fn splice(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let removed = splice_range(cx, args, len)?;
    let inserted = args.get(2..).unwrap_or_default();
    charge_list(cx, removed.len())?;
    let total = len - removed.len() + inserted.len();
    check_room(cx.heap, total.saturating_add(removed.len()))?;
    let gone = copy_items(cx, r, removed.clone())?;
    let result = new_array(cx, &gone)?;
    if total <= len {
        let items = cx.heap.items_mut(r);
        items.copy_within(removed.end.., removed.start + inserted.len());
        items[removed.start..removed.start + inserted.len()].copy_from_slice(inserted);
        cx.heap.truncate(r, total);
    } else {
        let items = spliced(cx, r, &removed, inserted)?;
        cx.heap.replace(r, &items)?;
    }
    Ok(result)
}
