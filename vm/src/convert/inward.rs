//! Copies from the host into the heap, and within it.

use super::count::{Count, ESCAPED, LONGEST_SCALAR};
use super::{BoundaryLimits, rejected, temp, too_deep};
use crate::heap::{Heap, KeyId, Oom, Ref, Val};
use crate::native::{Cx, Fault};
use crate::pace::Clock;
use a99_core::costs::{
    READ, Sizes, copied, crossing_list, crossing_object, crossing_text, name_units,
};
use a99_core::value::Value;
use a99_ecma::wtf8;
use std::collections::HashMap;

/// A container whose parts are on the stack of [`Builder`].
struct InwardFrame {
    object: bool,
    vals: usize,
    keys: usize,
    /// Length of the walk's stack when the container is complete.
    end: usize,
}

/// Finished values of open containers.
struct Builder<'h> {
    heap: &'h mut Heap,
    vals: Vec<Val>,
    keys: Vec<KeyId>,
    open: Vec<InwardFrame>,
}

impl<'h> Builder<'h> {
    fn new(heap: &'h mut Heap) -> Self {
        Builder {
            heap,
            vals: Vec::new(),
            keys: Vec::new(),
            open: Vec::new(),
        }
    }

    fn open(&mut self, object: bool, end: usize) -> Result<(), Oom> {
        let open = InwardFrame {
            object,
            vals: self.vals.len(),
            keys: self.keys.len(),
            end,
        };
        temp::push(self.heap, &mut self.open, open)
    }

    fn key(&mut self, text: &[u8]) -> Result<(), Oom> {
        let key = self.heap.intern(text)?;
        temp::push(self.heap, &mut self.keys, key)
    }

    fn val(&mut self, val: Val) -> Result<(), Oom> {
        temp::push(self.heap, &mut self.vals, val)
    }

    /// Allocates the innermost container.
    fn close(&mut self) -> Result<(), Oom> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let vals = &self.vals[open.vals..];
        let val = if open.object {
            Val::Obj(self.heap.alloc_obj_keys(&self.keys[open.keys..], vals)?)
        } else {
            Val::Arr(self.heap.alloc_arr(vals)?)
        };
        self.vals.truncate(open.vals);
        self.keys.truncate(open.keys);
        self.val(val)
    }

    /// Closes all complete containers; `todo` is the length of the walk's stack.
    fn close_done(&mut self, todo: usize) -> Result<(), Oom> {
        while self.open.last().is_some_and(|open| open.end == todo) {
            self.close()?;
        }
        Ok(())
    }

    fn finish(mut self) -> Val {
        self.vals.pop().unwrap_or(Val::Undefined)
    }
}

/// Work to copy a value, with its place in a container.
const VALUE_WORK: i64 = 16;

/// Work to copy a key.
const KEY_WORK: i64 = 32;

/// Copies a host value into the heap, at the host's cost.
///
/// # Errors
/// [`ErrorCode::Boundary`](a99_core::error::ErrorCode::Boundary): too large or
/// too deep; memory; a stop.
pub fn from_value(cx: &mut Cx<'_>, v: &Value, limits: &BoundaryLimits) -> Result<Val, Fault> {
    inward(cx, v, limits, false)
}

/// Copies a host value into the heap as an answer to a program. In the metered model the run
/// pays.
///
/// # Errors
/// As [`from_value`]; fuel.
pub fn from_answer(cx: &mut Cx<'_>, v: &Value, limits: &BoundaryLimits) -> Result<Val, Fault> {
    inward(cx, v, limits, true)
}

fn inward(cx: &mut Cx<'_>, v: &Value, limits: &BoundaryLimits, paid: bool) -> Result<Val, Fault> {
    // Most answers are numbers and booleans, which always fit.
    if limits.max_bytes >= LONGEST_SCALAR
        && let Some(val) = in_register(v)
    {
        return Ok(val);
    }
    if let Value::String(text) = v {
        return whole_text(cx, text.as_bytes(), limits, paid);
    }
    let mut count = Count::new(limits);
    let (heap, mut clock) = cx.split();
    if !matches!(v, Value::Array(_) | Value::Object(_)) {
        return scalar_val(heap, v, &mut count, &mut clock, paid);
    }
    let mut build = Builder::new(heap);
    // Values still to copy, the next one last.
    let mut todo: Vec<(Option<&[u8]>, &Value)> = vec![(None, v)];
    while let Some((key, value)) = todo.pop() {
        clock.work(VALUE_WORK)?;
        if let Some(key) = key {
            count.string(key, &mut clock)?;
            clock.work(KEY_WORK)?;
            count.add(1)?;
            if paid {
                clock.pay_metered(READ.price(Sizes::units(name_units(key.len()))))?;
            }
            build.key(key)?;
        }
        let container = matches!(value, Value::Array(_) | Value::Object(_));
        if container && build.open.len() >= limits.max_depth as usize {
            return Err(too_deep(limits));
        }
        match value {
            Value::Array(items) => {
                if paid {
                    clock.pay_metered(crossing_list(items.len()))?;
                }
                count.container(items.len())?;
                build.open(false, todo.len())?;
                temp::reserve(build.heap, &mut todo, items.len())?;
                todo.extend(items.iter().rev().map(|item| (None, item)));
            }
            Value::Object(map) => {
                if paid {
                    clock.pay_metered(crossing_object(map.len()))?;
                }
                count.container(map.len())?;
                let start = todo.len();
                build.open(true, start)?;
                temp::reserve(build.heap, &mut todo, map.len())?;
                todo.extend(map.iter().map(|(key, value)| (Some(key.as_bytes()), value)));
                todo[start..].reverse();
            }
            scalar => {
                let val = scalar_val(build.heap, scalar, &mut count, &mut clock, paid)?;
                build.val(val)?;
            }
        }
        build.close_done(todo.len())?;
    }
    Ok(build.finish())
}

/// The value of a scalar that needs no heap.
fn in_register(v: &Value) -> Option<Val> {
    match v {
        Value::Undefined => Some(Val::Undefined),
        Value::Null => Some(Val::Null),
        Value::Bool(b) => Some(Val::Bool(*b)),
        Value::Number(n) => Some(Val::Num(*n)),
        Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn scalar_val(
    heap: &mut Heap,
    value: &Value,
    count: &mut Count,
    clock: &mut Clock<'_>,
    paid: bool,
) -> Result<Val, Fault> {
    Ok(match value {
        Value::Null => {
            count.add(4)?;
            Val::Null
        }
        Value::Bool(b) => {
            count.add(if *b { 4 } else { 5 })?;
            Val::Bool(*b)
        }
        Value::Number(n) => {
            count.number(*n)?;
            Val::Num(*n)
        }
        Value::String(text) => text_val(heap, text.as_bytes(), count, clock, paid)?,
        // Containers are handled by the caller.
        Value::Undefined | Value::Array(_) | Value::Object(_) => {
            count.add(4)?;
            Val::Undefined
        }
    })
}

fn text_val(
    heap: &mut Heap,
    text: &[u8],
    count: &mut Count,
    clock: &mut Clock<'_>,
    paid: bool,
) -> Result<Val, Fault> {
    count.string(text, clock)?;
    let units = crate::heap::paced::count_units(text, clock)?;
    if paid {
        clock.pay_metered(crossing_text(units))?;
    }
    Ok(Val::Str(heap.copy_text(text, Some(units), clock)?))
}

/// Copies a text of the host into the heap, as [`from_value`] does.
///
/// # Errors
/// As [`from_value`].
pub(crate) fn from_text(
    cx: &mut Cx<'_>,
    text: &str,
    limits: &BoundaryLimits,
) -> Result<Val, Fault> {
    whole_text(cx, text.as_bytes(), limits, false)
}

/// Copies a text of the host into the heap, as [`from_answer`] does.
///
/// # Errors
/// As [`from_answer`].
#[cfg(feature = "typed")]
pub(crate) fn text_answer(
    cx: &mut Cx<'_>,
    text: &str,
    limits: &BoundaryLimits,
) -> Result<Val, Fault> {
    whole_text(cx, text.as_bytes(), limits, true)
}

fn whole_text(
    cx: &mut Cx<'_>,
    text: &[u8],
    limits: &BoundaryLimits,
    paid: bool,
) -> Result<Val, Fault> {
    if text.len() <= SHORT_TEXT && limits.max_bytes >= ESCAPED * SHORT_TEXT + QUOTES {
        return short_text(cx, text, paid);
    }
    let (heap, mut clock) = cx.split();
    let mut count = Count::new(limits);
    text_val(heap, text, &mut count, &mut clock, paid)
}

/// Length up to which texts need no counting, if the limit allows the longest escapes for
/// each byte, and the quotes.
const SHORT_TEXT: usize = 256;

/// Bytes of the quotes around a text.
const QUOTES: usize = 2;

/// Copies a text that certainly fits, without counting it.
#[inline]
fn short_text(cx: &mut Cx<'_>, text: &[u8], paid: bool) -> Result<Val, Fault> {
    let (heap, mut clock) = cx.split();
    clock.work(2 + text.len() as i64 / 2)?;
    let units = wtf8::utf16_len(text);
    if paid {
        clock.pay_metered(crossing_text(units))?;
    }
    match heap.alloc_str_units(text, units) {
        Ok(text) => Ok(Val::Str(text)),
        Err(oom) => Err(oom.into()),
    }
}

/// Copies a value within the heap in the form of a host copy: a tree without sharing, with an
/// array for a set, a text for a date and `undefined` for a builtin.
///
/// # Errors
/// As the host copy: too large, too deep, cyclic; memory; a stop.
pub(crate) fn copy_plain(cx: &mut Cx<'_>, v: Val, limits: &BoundaryLimits) -> Result<Val, Fault> {
    /// A container whose first `next` parts are done or begun.
    struct Part {
        of: Val,
        r: Ref,
        next: usize,
    }
    let mut count = Count::new(limits);
    let mut open: Vec<Part> = Vec::new();
    let mut vals: Vec<Val> = Vec::new();
    let mut next = v;
    loop {
        let (heap, mut clock) = cx.split();
        clock.work(VALUE_WORK)?;
        match next {
            Val::Arr(r) | Val::Set(r) | Val::Obj(r) => {
                if open.iter().any(|part| part.r == r) {
                    return Err(rejected("contains a cycle"));
                }
                if open.len() >= limits.max_depth as usize {
                    return Err(too_deep(limits));
                }
                clock.work(open.len() as i64)?;
                count.container(heap.len(r))?;
                if let Val::Obj(r) = next {
                    heap.settle(r, &mut clock)?;
                }
                let part = Part {
                    of: next,
                    r,
                    next: 0,
                };
                temp::push(heap, &mut open, part)?;
            }
            scalar => {
                let val = plain_scalar(heap, scalar, &mut count, &mut clock)?;
                temp::push(heap, &mut vals, val)?;
            }
        }
        // Closes all complete containers.
        loop {
            let Some(part) = open.last_mut() else {
                return Ok(vals.pop().unwrap_or(Val::Undefined));
            };
            if let Some(item) = heap.items(part.r).get(part.next) {
                if let Val::Obj(r) = part.of {
                    let key = heap.shapes.keys(heap.shape(r))[part.next];
                    count.string(heap.shapes.key_text(key), &mut clock)?;
                    count.add(1)?;
                }
                next = *item;
                part.next += 1;
                break;
            }
            let parts = &vals[vals.len() - part.next..];
            let val = match part.of {
                Val::Obj(r) => Val::Obj(heap.object_like(r, parts, &mut clock)?),
                _ => Val::Arr(heap.copy_list(parts, &mut clock)?),
            };
            vals.truncate(vals.len() - part.next);
            open.pop();
            temp::push(heap, &mut vals, val)?;
        }
    }
}

fn plain_scalar(
    heap: &mut Heap,
    v: Val,
    count: &mut Count,
    clock: &mut Clock<'_>,
) -> Result<Val, Fault> {
    match v {
        Val::Bool(b) => count.add(if b { 4 } else { 5 })?,
        Val::Num(n) => count.number(n)?,
        Val::Str(s) => count.string(heap.bytes(s), clock)?,
        Val::Date(r) if heap.date_ms(r).is_nan() => {
            count.add(4)?;
            return Ok(Val::Null);
        }
        Val::Date(r) => {
            let iso = a99_ecma::date::to_iso(heap.date_ms(r));
            count.add(iso.len() + 2)?;
            return Ok(heap.str_val(iso.as_bytes())?);
        }
        Val::Undefined | Val::Unbound | Val::Builtin(_) => {
            count.add(4)?;
            return Ok(Val::Undefined);
        }
        Val::Map(_) => return Err(super::is_map()),
        _ => count.add(4)?,
    }
    Ok(v)
}

/// Copies a value within the heap without sharing arrays, sets or objects with the original;
/// sharing and cycles within it are preserved.
///
/// # Errors
/// Memory; a stop.
pub fn copy_deep(cx: &mut Cx<'_>, v: Val) -> Result<Val, Fault> {
    /// Bytes per entry of the copy table, with empty slots.
    const ENTRY: usize = 24;
    let mut copies: HashMap<Ref, Val> = HashMap::new();
    let mut todo: Vec<Ref> = Vec::new();
    let mut copy = |cx: &mut Cx<'_>, todo: &mut Vec<Ref>, v: Val| -> Result<Val, Fault> {
        let Some(r) = v.as_ref() else { return Ok(v) };
        if let Some(copy) = copies.get(&r) {
            return Ok(*copy);
        }
        let copy = shallow_copy(cx, v, r)?;
        cx.heap.check(copies.len() * 2 * ENTRY)?;
        copies.insert(r, copy);
        if let Some(new) = copy.as_ref() {
            temp::push(cx.heap, todo, new)?;
        }
        Ok(copy)
    };
    let top = copy(cx, &mut todo, v)?;
    while let Some(new) = todo.pop() {
        for i in 0..cx.heap.len(new) {
            cx.work(2)?;
            let item = cx.heap.items(new)[i];
            if item.as_ref().is_some() {
                let item = copy(cx, &mut todo, item)?;
                cx.heap.items_mut(new)[i] = item;
            }
        }
    }
    Ok(top)
}

/// Copies a cell, with the original values.
fn shallow_copy(cx: &mut Cx<'_>, v: Val, r: Ref) -> Result<Val, Fault> {
    let len = match v {
        // The parts of a map pay for its entries.
        Val::Date(_) | Val::Map(_) => 0,
        _ => cx.heap.len(r),
    };
    cx.pay_metered(READ.price(Sizes::elements(copied(len))))?;
    let mut items = temp::with_room(cx.heap, cx.heap.len(r))?;
    let (heap, mut clock) = cx.split();
    if let Val::Obj(r) = v {
        heap.settle(r, &mut clock)?;
    }
    heap.copy_out(r, 0..heap.len(r), &mut items, &mut clock)?;
    Ok(match v {
        Val::Arr(_) => Val::Arr(cx.list(&items)?),
        Val::Set(_) => Val::Set(cx.set_of(&items)?),
        Val::Date(_) => Val::Date(cx.heap.alloc_date(cx.heap.date_ms(r))?),
        Val::Map(_) => Val::Map(cx.heap.map_of_slots(&items)?),
        Val::Obj(_) => {
            let (heap, mut clock) = cx.split();
            Val::Obj(heap.object_like(r, &items, &mut clock)?)
        }
        other => other,
    })
}
