//! Array methods (language section 3.5, after ECMA-262 §23.1.3).
//!
//! Arrays are dense and never have holes. Callbacks can only be builtin functions (D35), none
//! of which changes an array, so an array is stable during a walk. Mutators change the array
//! only after all fallible work.

mod callbacks;
mod copies;
mod mutators;
mod search;
mod sort;
#[cfg(test)]
mod tests;

pub(super) use search::find_from;
pub(super) use sort::merge_sort;

use super::arg;
use crate::coerce;
use crate::heap::{Heap, Ref, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{Sizes, WRITTEN};
use a99_ecma::date::locale::Defaults;
use a99_ecma::text_index;
use std::ops::Range;

/// Code of an array method.
pub(super) type ArrayFn = fn(&mut Cx<'_>, Ref, &[Val]) -> Result<Val, Fault>;

/// The array methods by name.
#[rustfmt::skip]
pub(super) const METHODS: &[(&str, ArrayFn)] = &[
    ("at", search::at),
    ("concat", copies::concat),
    ("copyWithin", mutators::copy_within),
    ("entries", copies::entries),
    ("every", callbacks::every),
    ("fill", mutators::fill),
    ("filter", callbacks::filter),
    ("find", callbacks::find),
    ("findIndex", callbacks::find_index),
    ("findLast", callbacks::find_last),
    ("findLastIndex", callbacks::find_last_index),
    ("flat", copies::flat),
    ("flatMap", callbacks::flat_map),
    ("forEach", callbacks::for_each),
    ("includes", search::includes),
    ("indexOf", search::index_of),
    ("join", join),
    ("keys", copies::keys),
    ("lastIndexOf", search::last_index_of),
    ("map", callbacks::map),
    ("pop", mutators::pop),
    ("push", mutators::push),
    ("reduce", callbacks::reduce),
    ("reduceRight", callbacks::reduce_right),
    ("reverse", mutators::reverse),
    ("shift", mutators::shift),
    ("slice", copies::slice),
    ("some", callbacks::some),
    ("sort", sort::sort),
    ("splice", mutators::splice),
    ("toLocaleString", to_locale_string),
    ("toReversed", copies::to_reversed),
    ("toSorted", sort::to_sorted),
    ("toSpliced", copies::to_spliced),
    ("toString", to_string),
    ("unshift", mutators::unshift),
    ("values", copies::values),
    ("with", copies::with),
];

/// `join(separator)`.
fn join(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let sep = match arg(args, 0) {
        Val::Undefined | Val::Unbound => None,
        sep => Some(coerce::to_str(cx, sep)?),
    };
    join_text(cx, r, sep)
}

fn to_string(cx: &mut Cx<'_>, r: Ref, _: &[Val]) -> Result<Val, Fault> {
    join_text(cx, r, None)
}

fn join_text(cx: &mut Cx<'_>, r: Ref, sep: Option<Str>) -> Result<Val, Fault> {
    // The size of separators and texts is known beforehand: a result that is too large is
    // refused before a byte is written (C12).
    let items = cx.heap.items(r);
    let seps = sep
        .map_or(1, Str::len_bytes)
        .saturating_mul(items.len().saturating_sub(1));
    let text = |v: &Val| {
        if let Val::Str(s) = v {
            s.len_bytes()
        } else {
            0
        }
    };
    cx.heap
        .check(items.iter().map(text).fold(seps, usize::saturating_add))?;
    cx.work(items.len() as i64)?;
    Ok(Val::Str(coerce::join(cx, r, sep)?))
}

/// `toLocaleString`: numbers with grouping, dates in en-US, other values as `toString`.
fn to_locale_string(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let options = super::numbers::locale_options(cx, args)?;
    let mut items = copy_items(cx, r, 0..cx.heap.len(r))?;
    let mut units = 0_usize;
    for item in &mut items {
        cx.work(16)?;
        let text = match *item {
            Val::Num(n) => Some(a99_ecma::number_text::to_locale_text(n, &options)),
            Val::Date(r) => {
                let given = arg(args, 1);
                let options = super::dates_locale::options(cx, given, Defaults::All)?;
                Some(super::dates_locale::text_of(cx.heap.date_ms(r), &options))
            }
            _ => None,
        };
        if let Some(text) = text {
            *item = cx.str(text.as_bytes())?;
            if let Val::Str(text) = item {
                units = units.saturating_add(text.units());
            }
            // A number may have hundreds of digits, which are paid in the join.
            cx.foresee(WRITTEN, Sizes::default().out_units(units))?;
        }
    }
    let texts = cx.list(&items)?;
    join_text(cx, texts, None)
}

/// An optional index argument as a number; `default` if it is `undefined`.
fn index_arg(cx: &mut Cx<'_>, args: &[Val], at: usize, default: f64) -> Result<f64, Fault> {
    match arg(args, at) {
        Val::Undefined | Val::Unbound => Ok(default),
        v => coerce::to_number(cx, v),
    }
}

/// The range given by `start` and `end` arguments.
fn range_args(
    cx: &mut Cx<'_>,
    args: &[Val],
    first: usize,
    len: usize,
) -> Result<Range<usize>, Fault> {
    let start = index_arg(cx, args, first, 0.0)?;
    let end = index_arg(cx, args, first + 1, f64::INFINITY)?;
    Ok(text_index::slice_range(start, Some(end), len))
}

/// Copies a range of values out of the heap.
fn copy_items(cx: &mut Cx<'_>, r: Ref, range: Range<usize>) -> Result<Vec<Val>, Fault> {
    cx.copy_out(r, range)
}

/// Allocates an array of values collected outside the heap.
fn new_array(cx: &mut Cx<'_>, items: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Arr(cx.list(items)?))
}

/// Checks that `n` more values fit into the heap, with a copy of them outside.
pub(super) fn check_room(heap: &Heap, n: usize) -> Result<(), Fault> {
    Ok(heap.check(n.saturating_mul(2 * size_of::<Val>()))?)
}
