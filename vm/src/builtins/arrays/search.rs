//! Looking things up: `at`, `includes`, `indexOf`, `lastIndexOf`.

use super::{arg, index_arg};
use crate::coerce;
use crate::heap::{Heap, Ref, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes};
use a99_ecma::text_index;

/// Elements compared between two looks at the host.
const SLICE: usize = 4096;

pub(super) fn at(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let index = index_arg(cx, args, 0, 0.0)?;
    let items = cx.heap.items(r);
    Ok(text_index::at(index, items.len()).map_or(Val::Undefined, |at| items[at]))
}

/// Pays for comparing a text with the elements: texts of the same length are
/// compared to the end, so their units count (C07: many views of one text).
pub(in crate::builtins) fn charge_search(
    cx: &mut Cx<'_>,
    r: Ref,
    needle: Val,
) -> Result<(), Fault> {
    if let Val::Str(needle) = needle {
        let same = |v: &&Val| matches!(v, Val::Str(s) if s.units() == needle.units());
        let alike = cx.heap.items(r).iter().filter(same).count();
        cx.charge(READ, Sizes::units(alike.saturating_mul(needle.units())))?;
    }
    Ok(())
}

type Equal = fn(&Heap, Val, Val) -> bool;

/// The first element equal to `needle` at or after `from`.
fn find_from(
    cx: &mut Cx<'_>,
    r: Ref,
    needle: Val,
    from: usize,
    equal: Equal,
) -> Result<Option<usize>, Fault> {
    charge_search(cx, r, needle)?;
    let mut at = from;
    while at < cx.heap.len(r) {
        let items = cx.heap.items(r);
        let slice = &items[at..items.len().min(at + SLICE)];
        if let Some(found) = slice.iter().position(|item| equal(cx.heap, *item, needle)) {
            return Ok(Some(at + found));
        }
        at += slice.len();
        cx.work(SLICE as i64)?;
    }
    Ok(None)
}

pub(super) fn includes(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let from = text_index::clamp_relative(index_arg(cx, args, 1, 0.0)?, cx.heap.len(r));
    let found = find_from(cx, r, arg(args, 0), from, coerce::same_value_zero)?;
    Ok(Val::Bool(found.is_some()))
}

fn index_val(found: Option<usize>) -> Val {
    Val::Num(found.map_or(-1.0, |at| at as f64))
}

pub(super) fn index_of(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let from = text_index::clamp_relative(index_arg(cx, args, 1, 0.0)?, cx.heap.len(r));
    Ok(index_val(find_from(
        cx,
        r,
        arg(args, 0),
        from,
        coerce::strict_eq,
    )?))
}

/// ECMA-262 §23.1.3.20: an index that is given but `undefined` counts as 0.
pub(super) fn last_index_of(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let needle = arg(args, 0);
    let from = match args.get(1) {
        None => f64::INFINITY,
        Some(v) => coerce::to_integer(cx, *v)?,
    };
    let end = if from < 0.0 {
        // The element itself is looked at: one more than it.
        text_index::clamp(len as f64 + from + 1.0, len)
    } else {
        text_index::clamp(from + 1.0, len)
    };
    charge_search(cx, r, needle)?;
    let mut end = end;
    while end > 0 {
        let start = end.saturating_sub(SLICE);
        let slice = &cx.heap.items(r)[start..end];
        if let Some(at) = slice
            .iter()
            .rposition(|v| coerce::strict_eq(cx.heap, *v, needle))
        {
            return Ok(index_val(Some(start + at)));
        }
        end = start;
        cx.work(SLICE as i64)?;
    }
    Ok(index_val(None))
}
