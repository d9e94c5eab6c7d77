//! Methods that take a builtin function (D35): called with element, index and
//! array, as in JavaScript, which is why `[3, 1].reduce(Math.max)` is NaN.

use super::{arg, new_array};
use crate::builtins::{call_builtin_value, charge_list};
use crate::coerce;
use crate::convert::temp;
use crate::heap::{Ref, Val};
use crate::native::{Cx, Fault};

/// Rejects values that are not callable, with the message of JavaScriptCore.
fn callback(method: &str, args: &[Val]) -> Result<Val, Fault> {
    match arg(args, 0) {
        f @ Val::Builtin(n) if crate::heap::builtin::is_callable(n) => Ok(f),
        _ => Err(Fault::throw(format!(
            "Array.prototype.{method} callback must be a function"
        ))),
    }
}

fn call(cx: &mut Cx<'_>, f: Val, r: Ref, at: usize) -> Result<Val, Fault> {
    let item = item(cx, r, at);
    call_builtin_value(cx, f, &[item, Val::Num(at as f64), Val::Arr(r)])
}

fn item(cx: &Cx<'_>, r: Ref, at: usize) -> Val {
    cx.heap.items(r).get(at).copied().unwrap_or(Val::Undefined)
}

fn test(cx: &mut Cx<'_>, f: Val, r: Ref, at: usize) -> Result<bool, Fault> {
    cx.work(8)?;
    let result = call(cx, f, r, at)?;
    Ok(coerce::truthy(cx.heap, result))
}

/// The first index, in the given order, whose element passes.
fn search(
    cx: &mut Cx<'_>,
    r: Ref,
    (method, args): (&str, &[Val]),
    backwards: bool,
    wanted: bool,
) -> Result<Option<usize>, Fault> {
    let f = callback(method, args)?;
    let len = cx.heap.len(r);
    for i in 0..len {
        let at = if backwards { len - 1 - i } else { i };
        if test(cx, f, r, at)? == wanted {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

pub(super) fn every(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(
        search(cx, r, ("every", args), false, false)?.is_none(),
    ))
}

pub(super) fn some(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    Ok(Val::Bool(
        search(cx, r, ("some", args), false, true)?.is_some(),
    ))
}

fn index_val(found: Option<usize>) -> Val {
    Val::Num(found.map_or(-1.0, |at| at as f64))
}

pub(super) fn find(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let found = search(cx, r, ("find", args), false, true)?;
    Ok(found.map_or(Val::Undefined, |at| item(cx, r, at)))
}

pub(super) fn find_index(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    Ok(index_val(search(cx, r, ("findIndex", args), false, true)?))
}

pub(super) fn find_last(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let found = search(cx, r, ("findLast", args), true, true)?;
    Ok(found.map_or(Val::Undefined, |at| item(cx, r, at)))
}

pub(super) fn find_last_index(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    Ok(index_val(search(
        cx,
        r,
        ("findLastIndex", args),
        true,
        true,
    )?))
}

pub(super) fn for_each(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let f = callback("forEach", args)?;
    let len = cx.heap.len(r);
    for at in 0..len {
        cx.work(8)?;
        call(cx, f, r, at)?;
    }
    Ok(Val::Undefined)
}

/// The results of the callback, which are not paid yet.
fn results(cx: &mut Cx<'_>, r: Ref, f: Val) -> Result<Vec<Val>, Fault> {
    let len = cx.heap.len(r);
    super::check_room(cx.heap, len)?;
    let mut out = temp::with_room(cx.heap, len)?;
    for at in 0..len {
        cx.work(8)?;
        out.push(call(cx, f, r, at)?);
    }
    Ok(out)
}

pub(super) fn map(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let f = callback("map", args)?;
    let out = results(cx, r, f)?;
    charge_list(cx, out.len())?;
    new_array(cx, &out)
}

pub(super) fn filter(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let f = callback("filter", args)?;
    let len = cx.heap.len(r);
    let mut out = Vec::new();
    for at in 0..len {
        if test(cx, f, r, at)? {
            let kept = item(cx, r, at);
            temp::push(cx.heap, &mut out, kept)?;
        }
    }
    charge_list(cx, out.len())?;
    new_array(cx, &out)
}

pub(super) fn flat_map(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    let f = callback("flatMap", args)?;
    let mapped = results(cx, r, f)?;
    let mut total = 0usize;
    for val in &mapped {
        total += if let Val::Arr(inner) = val {
            cx.heap.len(*inner)
        } else {
            1
        };
    }
    charge_list(cx, total)?;
    super::check_room(cx.heap, total)?;
    let mut out = temp::with_room(cx.heap, total)?;
    for val in &mapped {
        match val {
            Val::Arr(inner) => out.extend_from_slice(cx.heap.items(*inner)),
            other => out.push(*other),
        }
    }
    new_array(cx, &out)
}

fn fold(
    cx: &mut Cx<'_>,
    r: Ref,
    (method, args): (&str, &[Val]),
    backwards: bool,
) -> Result<Val, Fault> {
    let f = callback(method, args)?;
    let len = cx.heap.len(r);
    let place = |i: usize| if backwards { len - 1 - i } else { i };
    let (mut acc, first) = match args.get(1) {
        Some(initial) => (*initial, 0),
        None if len == 0 => {
            return Err(Fault::throw(format!(
                "{method} of empty array with no initial value"
            )));
        }
        None => (item(cx, r, place(0)), 1),
    };
    for i in first..len {
        cx.work(8)?;
        let at = place(i);
        let val = item(cx, r, at);
        acc = call_builtin_value(cx, f, &[acc, val, Val::Num(at as f64), Val::Arr(r)])?;
    }
    Ok(acc)
}

pub(super) fn reduce(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    fold(cx, r, ("reduce", args), false)
}

pub(super) fn reduce_right(cx: &mut Cx<'_>, r: Ref, args: &[Val]) -> Result<Val, Fault> {
    fold(cx, r, ("reduceRight", args), true)
}
