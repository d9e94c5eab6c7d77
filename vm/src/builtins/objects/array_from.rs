//! `Array.from`, and the conversion of arrays, sets and texts to lists that other builtins
//! share.

use super::super::{arg, call_builtin_value, charge_list, charge_reads, is_callable};
use crate::coerce;
use crate::convert::temp;
use crate::heap::{Ref, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::builtins::Reads;
use a99_core::costs::Formula;

/// The largest `length` of ECMA-262 §7.1.20 ToLength.
const MAX_LENGTH: f64 = 9_007_199_254_740_991.0;

/// `Array.from(source, mapper?)`.
pub(super) fn from(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let mapper = match arg(args, 1) {
        Val::Undefined | Val::Unbound => None,
        f @ Val::Builtin(n) if is_callable(n) => Some(f),
        _ => {
            return Err(Fault::throw(
                "Array.from requires that the second argument, when provided, be a function",
            ));
        }
    };
    let mut items = match arg(args, 0) {
        Val::Null | Val::Undefined | Val::Unbound => {
            return Err(Fault::throw(
                "Array.from requires an array-like object - not null or undefined",
            ));
        }
        Val::Obj(r) => array_like(cx, r)?,
        list @ (Val::Arr(_) | Val::Set(_) | Val::Map(_) | Val::Str(_)) => {
            let items = iterate(cx, list)?;
            charge_list(cx, items.len())?;
            items
        }
        _ => Vec::new(),
    };
    if let Some(f) = mapper {
        for (at, item) in items.iter_mut().enumerate() {
            cx.work(8)?;
            *item = call_builtin_value(cx, f, &[*item, Val::Num(at as f64)])?;
        }
    }
    Ok(Val::Arr(cx.list(&items)?))
}

/// `Array.items(source, name?)`: the values that JavaScript would iterate, as a list. An
/// array is returned unchanged. Matches, which are objects here, count as the arrays that
/// they represent.
pub(super) fn items(cx: &mut Cx<'_>, args: &[Val]) -> Result<Val, Fault> {
    let source = arg(args, 0);
    let is_match = |cx: &Cx<'_>, r| cx.heap.get_text(r, b"length").is_some();
    match source {
        Val::Arr(_) => Ok(source),
        Val::Obj(r) if !is_match(cx, r) => Err(not_iterable(cx, arg(args, 1))),
        Val::Set(_) | Val::Map(_) | Val::Str(_) | Val::Obj(_) => {
            charge_reads(cx, AS_FROM, Reads::First, None, args)?;
            from(cx, &[source])
        }
        _ => Err(not_iterable(cx, arg(args, 1))),
    }
}

/// The price to convert a text, a set or matches to a list.
const AS_FROM: Formula = Formula::Keys(24);

/// Maximum bytes of a name to show.
const NAME_BYTES: usize = 80;

#[cold]
fn not_iterable(cx: &Cx<'_>, name: Val) -> Fault {
    let name = match name {
        Val::Str(s) => cx.bytes(s),
        _ => b"the value",
    };
    let name = a99_core::text::wtf8_to_string_lossy(&name[..name.len().min(NAME_BYTES)]);
    Fault::throw(format!("{name} is not iterable"))
}

/// The elements of an object with a `length`. Only the length determines the price, so it is
/// paid and checked before anything is built (C07).
fn array_like(cx: &mut Cx<'_>, r: Ref) -> Result<Vec<Val>, Fault> {
    let length = cx.heap.get_text(r, b"length").unwrap_or(Val::Undefined);
    let length = coerce::to_integer(cx, length)?.clamp(0.0, MAX_LENGTH);
    // At most 2^53, which a usize holds.
    let length = length as usize;
    charge_list(cx, length)?;
    cx.heap.check(length.saturating_mul(2 * size_of::<Val>()))?;
    let mut items = temp::with_room(cx.heap, length)?;
    let mut name = Vec::new();
    // An object without index keys needs no look-ups.
    let has_indices = cx.heap.len(r) > usize::from(cx.heap.get_text(r, b"length").is_some());
    for at in 0..length {
        cx.work(2)?;
        name.clear();
        let found = if has_indices {
            a99_ecma::number_text::write_integer(&mut name, at as i64);
            cx.heap.get_text(r, &name)
        } else {
            None
        };
        items.push(found.unwrap_or(Val::Undefined));
    }
    Ok(items)
}

/// The items of an array, a set or a text (its code points). The reads are paid with the
/// arguments of the function.
///
/// # Errors
/// `Type error`, as in JavaScriptCore, for other values.
pub(in crate::builtins) fn iterate(cx: &mut Cx<'_>, v: Val) -> Result<Vec<Val>, Fault> {
    match v {
        Val::Arr(r) | Val::Set(r) => {
            let len = cx.heap.len(r);
            cx.heap.check(len.saturating_mul(2 * size_of::<Val>()))?;
            cx.copy_out(r, 0..len)
        }
        Val::Str(s) => code_points(cx, s),
        Val::Map(r) => super::super::maps::entry_list(cx, r),
        _ => Err(Fault::throw("Type error")),
    }
}

/// The code points of a text as views of it.
pub(in crate::builtins) fn code_points(cx: &mut Cx<'_>, s: Str) -> Result<Vec<Val>, Fault> {
    cx.heap
        .check(s.units().saturating_mul(2 * size_of::<Val>()))?;
    let mut out = temp::with_room(cx.heap, s.units())?;
    let mut start = 0;
    while start < s.len_bytes() {
        cx.work(1)?;
        let len = match cx.heap.bytes(s)[start] {
            0x00..0x80 => 1,
            0x80..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        let end = (start + len).min(s.len_bytes());
        out.push(Val::Str(s.view(start, end, if len == 4 { 2 } else { 1 })));
        start = end;
    }
    Ok(out)
}
