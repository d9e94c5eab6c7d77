//! Element look-up: `at`, `includes`, `indexOf`, `lastIndexOf`.

use super::{arg, index_arg};
use crate::coerce;
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes};
use a99_ecma::text_index;

/// Elements compared between two yield points.
const SLICE: usize = 4096;

pub(super) fn at(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let index = index_arg(cx, args, 0, 0.0)?;
    let items = cx.heap.items(r);
    Ok(text_index::at(index, items.len()).map_or(Val::Undefined, |at| items[at]))
}

/// Pays for the comparison of a text with the elements. Texts of equal length are compared to
/// the end, so their units count (C07: many views of one text).
fn charge_search(cx: &mut Cx<'_>, r: Ref, needle: Val) -> Result<(), Fault> {
    if let Val::Str(needle) = needle {
        let same = |v: &&Val| matches!(v, Val::Str(s) if s.units() == needle.units());
        let mut alike = 0usize;
        for at in (0..cx.heap.len(r)).step_by(SLICE) {
            let items = &cx.heap.items(r)[at..];
            alike += items.iter().take(SLICE).filter(same).count();
            cx.work(SLICE as i64)?;
        }
        cx.charge(READ, Sizes::units(alike.saturating_mul(needle.units())))?;
    }
    Ok(())
}

pub(in crate::builtins) type Equal = fn(&mut Cx<'_>, Val, Val) -> Result<bool, Fault>;

/// The first element equal to `needle` at or after `from`.
pub(in crate::builtins) fn find_from(
    cx: &mut Cx<'_>,
    r: Ref,
    needle: Val,
    from: usize,
    equal: Equal,
) -> Result<Option<usize>, Fault> {
    charge_search(cx, r, needle)?;
    for at in from..cx.heap.len(r) {
        if at % SLICE == 0 {
            cx.work(SLICE as i64)?;
        }
        let item = cx.heap.items(r)[at];
        if equal(cx, item, needle)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

pub(super) fn includes(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let from = text_index::clamp_relative(index_arg(cx, args, 1, 0.0)?, cx.heap.len(r));
    let found = find_from(cx, r, arg(args, 0), from, coerce::same_value_zero_paid)?;
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
        coerce::strict_eq_paid,
    )?))
}

/// ECMA-262 §23.1.3.20: an explicit `undefined` index counts as 0.
pub(super) fn last_index_of(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let len = cx.heap.len(r);
    let needle = arg(args, 0);
    let from = match args.get(1) {
        None => f64::INFINITY,
        Some(v) => coerce::to_integer(cx, *v)?,
    };
    let end = if from < 0.0 {
        // The element at the index is included: one more.
        text_index::clamp(len as f64 + from + 1.0, len)
    } else {
        text_index::clamp(from + 1.0, len)
    };
    charge_search(cx, r, needle)?;
    for at in (0..end).rev() {
        if at % SLICE == 0 {
            cx.work(SLICE as i64)?;
        }
        let item = cx.heap.items(r)[at];
        if coerce::strict_eq_paid(cx, item, needle)? {
            return Ok(index_val(Some(at)));
        }
    }
    Ok(index_val(None))
}
