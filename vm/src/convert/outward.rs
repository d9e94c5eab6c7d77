//! Copies from the heap to the host.

use super::count::{Count, LONGEST_SCALAR};
use super::{BoundaryLimits, rejected, too_deep};
use crate::heap::{Heap, KeyId, Oom, Ref, Val};
use crate::native::{Cx, Fault};
use crate::pace::Clock;
use a99_core::costs::{
    READ, SHORT_TEXT, Sizes, crossing_list, crossing_object, crossing_text, name_units,
};
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::ops::{Deref, DerefMut};

/// Bytes of a text in memory beyond its content: reference counts and allocator overhead.
const TEXT_BYTES: usize = 32;

/// Bytes of an array in memory beyond its elements: allocator overhead.
const ARRAY_BYTES: usize = 16;

/// Bytes of an object in memory beyond its members.
const OBJECT_BYTES: usize = 112;

/// Number of members up to which an object is a list.
const SMALL_OBJECT: usize = 8;

/// Bytes of a member of a small object beyond its key's text.
const MEMBER_BYTES: usize = 40;

/// Bytes of a member of a larger object beyond its key's text, with its place in the index,
/// and empty and duplicated parts during growth.
const INDEXED_MEMBER_BYTES: usize = 128;

/// Work to copy a value.
const VALUE_WORK: i64 = 16;

/// Work to allocate a text or a container: it costs a few times as much as a number.
const MADE_WORK: i64 = 64;

/// Work to copy a member, without its value.
const MEMBER_WORK: i64 = 48;

/// Makes host copies of guest values; no other code does.
///
/// Their bytes count against the ceiling of the run's heap, from before they are made until
/// this is dropped. A deadline or an abort interrupts the work.
pub struct Copies<'c, 'a> {
    cx: &'c mut Cx<'a>,
    before: usize,
    /// Whether the run pays for the copies, and the free amount.
    paid: bool,
    free: i64,
}

impl std::fmt::Debug for Copies<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copies").finish_non_exhaustive()
    }
}

impl<'a> Deref for Copies<'_, 'a> {
    type Target = Cx<'a>;

    fn deref(&self) -> &Cx<'a> {
        self.cx
    }
}

impl<'a> DerefMut for Copies<'_, 'a> {
    fn deref_mut(&mut self) -> &mut Cx<'a> {
        self.cx
    }
}

impl Drop for Copies<'_, '_> {
    fn drop(&mut self) {
        self.cx.heap.end_copies(self.before);
    }
}

impl<'c, 'a> Copies<'c, 'a> {
    /// Starts without copies.
    pub fn new(cx: &'c mut Cx<'a>) -> Self {
        let before = cx.heap.copies();
        Copies {
            cx,
            before,
            paid: false,
            free: 0,
        }
    }

    /// Starts without copies; the run pays for them in the metered model, each value before
    /// it is copied.
    pub fn paid(cx: &'c mut Cx<'a>) -> Self {
        Copies::paid_beyond(cx, 0)
    }

    /// As [`Copies::paid`], with the first `free` micro-units free.
    pub(crate) fn paid_beyond(cx: &'c mut Cx<'a>, free: i64) -> Self {
        let before = cx.heap.copies();
        Copies {
            cx,
            before,
            paid: true,
            free,
        }
    }

    /// Copies a guest value for the host.
    ///
    /// A set becomes an array, a date its ISO text (`null` if invalid), a builtin `undefined`
    /// (D34, D35). `undefined` members are kept.
    ///
    /// # Errors
    /// [`ErrorCode::Boundary`](a99_core::error::ErrorCode::Boundary): too
    /// large, too deep, cyclic. Memory; a stop.
    pub fn to_value(&mut self, v: Val, limits: &BoundaryLimits) -> Result<Value, Fault> {
        self.copy_within(v, limits, usize::MAX)
    }

    /// Copies a value of at most `most` bytes in memory.
    pub(crate) fn copy_within(
        &mut self,
        v: Val,
        limits: &BoundaryLimits,
        max_copy: usize,
    ) -> Result<Value, Fault> {
        let (paid, free) = (self.paid, self.free);
        let (heap, mut clock) = self.cx.split();
        // Most inputs are numbers and booleans, which always fit.
        if limits.max_bytes >= LONGEST_SCALAR
            && max_copy >= size_of::<Value>()
            && let Some(value) = from_register(v)
        {
            heap.copy(size_of::<Value>())?;
            clock.work(VALUE_WORK)?;
            return Ok(value);
        }
        let parts = Parts {
            heap,
            clock,
            limits,
            count: Count::new(limits),
            left: max_copy,
            paid,
            free,
        };
        let mut walk = Walk {
            parts,
            open: Vec::new(),
        };
        let copied = walk.run(v);
        self.free = walk.parts.free;
        if walk.open.is_empty() {
            return copied;
        }
        // Much of an interrupted copy may exist.
        let parts = walk.open.into_iter().map(|open| match open {
            OutwardFrame::Array { items, .. } => Value::Array(items),
            OutwardFrame::Object { map, .. } => Value::Object(map),
        });
        let Parts { heap, clock, .. } = &mut walk.parts;
        heap.discard(parts.collect(), clock)?;
        copied
    }

    /// Pays for a text and counts it; the caller copies it.
    ///
    /// # Errors
    /// Fuel, memory, a stop.
    #[cfg(feature = "typed")]
    pub(crate) fn text(&mut self, s: crate::heap::Str) -> Result<(), Fault> {
        if self.paid {
            let price = crossing_text(s.units());
            let free = self.free.min(price);
            self.free -= free;
            self.cx.pay_metered(price - free)?;
        }
        self.cx.work(1 + s.len_bytes() as i64 / 4)?;
        self.count(TEXT_BYTES + s.len_bytes())
    }

    /// Counts bytes derived from copies.
    ///
    /// # Errors
    /// Memory.
    pub fn count(&mut self, bytes: usize) -> Result<(), Fault> {
        Ok(self.cx.heap.copy(bytes)?)
    }

    /// Bytes counted so far.
    pub fn bytes(&self) -> usize {
        self.cx.heap.copies().saturating_sub(self.before)
    }
}

/// The bytes that [`Copies`] counts for a copy like this one, unless the value exceeds the
/// boundary limits. The limit check counts JSON text without escapes, and numbers at one
/// byte.
pub(crate) fn copy_bytes(value: &Value, limits: &BoundaryLimits) -> Option<usize> {
    let (mut bytes, mut text) = (0usize, 0usize);
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > limits.max_depth as usize || text > limits.max_bytes {
            return None;
        }
        bytes += if depth == 0 { size_of::<Value>() } else { 0 };
        match value {
            Value::Undefined | Value::Null | Value::Bool(_) => text += 4,
            Value::Number(_) => text += 1,
            Value::String(s) => {
                bytes += TEXT_BYTES + s.len_bytes();
                text += s.len_bytes() + 2;
            }
            Value::Array(items) => {
                bytes += ARRAY_BYTES + items.len() * size_of::<Value>();
                text += items.len() + 1;
                open.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(map) => {
                let member = match map.len() <= SMALL_OBJECT {
                    true => MEMBER_BYTES,
                    false => INDEXED_MEMBER_BYTES,
                };
                bytes += OBJECT_BYTES + map.len() * member;
                for (key, item) in map.iter() {
                    text += key.len_bytes() + 4;
                    open.push((item, depth + 1));
                }
            }
        }
    }
    (text <= limits.max_bytes).then_some(bytes)
}

/// The host value of a scalar that needs no heap.
fn from_register(v: Val) -> Option<Value> {
    match v {
        Val::Undefined | Val::Unbound | Val::Builtin(_) => Some(Value::Undefined),
        Val::Null => Some(Value::Null),
        Val::Bool(b) => Some(Value::Bool(b)),
        Val::Num(n) => Some(Value::Number(n)),
        _ => None,
    }
}

/// A container under construction.
enum OutwardFrame {
    Array {
        r: Ref,
        next: usize,
        items: Vec<Value>,
    },
    Object {
        r: Ref,
        next: usize,
        map: Map,
        /// The name of the member under construction.
        key: Option<Text>,
    },
}

impl OutwardFrame {
    fn cell(&self) -> Ref {
        match self {
            OutwardFrame::Array { r, .. } | OutwardFrame::Object { r, .. } => *r,
        }
    }
}

enum OutwardStep {
    Visit(Val),
    Done(Value),
}

struct Walk<'a> {
    parts: Parts<'a>,
    open: Vec<OutwardFrame>,
}

/// The counters of a walk.
struct Parts<'a> {
    heap: &'a mut Heap,
    clock: Clock<'a>,
    limits: &'a BoundaryLimits,
    count: Count,
    /// Bytes in memory that the copy may still take.
    left: usize,
    paid: bool,
    free: i64,
}

impl Parts<'_> {
    /// Counts memory before it is allocated.
    #[inline]
    fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return Err(Oom { wanted: bytes }.into()),
        }
        Ok(self.heap.copy(bytes)?)
    }

    /// Pays for a part of the copy, unless copies are free.
    #[inline]
    fn pay(&mut self, price: i64) -> Result<(), Fault> {
        if !self.paid {
            return Ok(());
        }
        let free = self.free.min(price);
        self.free -= free;
        self.clock.pay_metered(price - free)
    }

    /// Converts a scalar; `None` for a container.
    #[inline]
    fn scalar(&mut self, v: Val) -> Result<Option<Value>, Fault> {
        Ok(Some(match v {
            Val::Undefined | Val::Unbound | Val::Builtin(_) => {
                self.count.add(4)?;
                Value::Undefined
            }
            Val::Null => {
                self.count.add(4)?;
                Value::Null
            }
            Val::Bool(b) => {
                self.count.add(if b { 4 } else { 5 })?;
                Value::Bool(b)
            }
            Val::Num(n) => {
                self.count.number(n)?;
                Value::Number(n)
            }
            Val::Str(s) => {
                self.pay(crossing_text(s.units()))?;
                self.clock.work(MADE_WORK)?;
                self.count.string(self.heap.bytes(s), &mut self.clock)?;
                self.take(TEXT_BYTES + s.len_bytes())?;
                Value::String(Text::copy_wtf8(self.heap.bytes(s)))
            }
            Val::Date(r) => {
                let ms = self.heap.date_ms(r);
                if ms.is_nan() {
                    self.count.add(4)?;
                    return Ok(Some(Value::Null));
                }
                let iso = a99_ecma::date::to_iso(ms);
                self.pay(crossing_text(iso.len()))?;
                self.count.add(iso.len() + 2)?;
                self.take(TEXT_BYTES + iso.len())?;
                Value::from(iso)
            }
            Val::Map(_) => return Err(super::is_map()),
            Val::Arr(_) | Val::Set(_) | Val::Obj(_) => return Ok(None),
        }))
    }

    /// Counts the name of a member, and pays for it.
    fn key(&mut self, key: KeyId) -> Result<Text, Fault> {
        let name = self.heap.shapes.key_name(key);
        let text = name.as_bytes();
        if self.paid && text.len() > SHORT_TEXT {
            let units = name_units(text.len());
            self.clock.pay_metered(READ.price(Sizes::units(units)))?;
        }
        self.count.string(text, &mut self.clock)?;
        self.clock.work(MEMBER_WORK)?;
        self.count.add(1)?;
        Ok(name.clone())
    }
}

impl Walk<'_> {
    fn run(&mut self, v: Val) -> Result<Value, Fault> {
        self.parts.take(size_of::<Value>())?;
        let mut done = self.begin(v)?;
        // Most values are scalars.
        if self.open.is_empty() {
            return Ok(done.unwrap_or(Value::Undefined));
        }
        loop {
            match self.advance(done)? {
                OutwardStep::Visit(val) => done = self.begin(val)?,
                OutwardStep::Done(value) => return Ok(value),
            }
        }
    }

    /// Converts a scalar; for a container opens it and returns `None`.
    fn begin(&mut self, v: Val) -> Result<Option<Value>, Fault> {
        self.parts.clock.work(VALUE_WORK)?;
        match v {
            Val::Arr(r) | Val::Set(r) => {
                let price = crossing_list(self.parts.heap.len(r));
                let len = self.enter(r, ARRAY_BYTES, size_of::<Value>(), price)?;
                let mut items = Vec::new();
                items.try_reserve_exact(len).map_err(|_| Oom {
                    wanted: len * size_of::<Value>(),
                })?;
                self.open.push(OutwardFrame::Array { r, next: 0, items });
                Ok(None)
            }
            Val::Obj(r) => {
                let Parts { heap, clock, .. } = &mut self.parts;
                heap.settle(r, clock)?;
                let member = match heap.len(r) <= SMALL_OBJECT {
                    true => MEMBER_BYTES,
                    false => INDEXED_MEMBER_BYTES,
                };
                let price = crossing_object(heap.len(r));
                let len = self.enter(r, OBJECT_BYTES, member, price)?;
                self.open.push(OutwardFrame::Object {
                    r,
                    next: 0,
                    map: Map::with_capacity(len),
                    key: None,
                });
                Ok(None)
            }
            scalar => self.parts.scalar(scalar),
        }
    }

    /// Checks and counts a container before it is copied.
    fn enter(&mut self, r: Ref, whole: usize, part: usize, price: i64) -> Result<usize, Fault> {
        if self.open.iter().any(|open| open.cell() == r) {
            return Err(rejected("contains a cycle"));
        }
        let parts = &mut self.parts;
        if self.open.len() >= parts.limits.max_depth as usize {
            return Err(too_deep(parts.limits));
        }
        let len = parts.heap.len(r);
        parts.pay(price)?;
        parts.count.container(len)?;
        parts.clock.work(MADE_WORK + self.open.len() as i64)?;
        parts.take(whole.saturating_add(len.saturating_mul(part)))?;
        Ok(len)
    }

    /// Stores a finished value in the innermost container, with the scalars after it, and
    /// finds the next step.
    fn advance(&mut self, done: Option<Value>) -> Result<OutwardStep, Fault> {
        let mut done = done;
        let parts = &mut self.parts;
        loop {
            let Some(open) = self.open.last_mut() else {
                return Ok(OutwardStep::Done(done.unwrap_or(Value::Undefined)));
            };
            match open {
                OutwardFrame::Array { r, next, items } => {
                    items.extend(done.take());
                    while let Some(val) = parts.heap.items(*r).get(*next).copied() {
                        *next += 1;
                        if is_container(val) {
                            return Ok(OutwardStep::Visit(val));
                        }
                        parts.clock.work(VALUE_WORK)?;
                        items.extend(parts.scalar(val)?);
                    }
                    done = Some(Value::Array(std::mem::take(items)));
                }
                OutwardFrame::Object { r, next, map, key } => {
                    if let (Some(key), Some(value)) = (key.take(), done.take()) {
                        map.push_distinct(key, value);
                    }
                    while let Some(val) = parts.heap.items(*r).get(*next).copied() {
                        let name = parts.heap.shapes.keys(parts.heap.shape(*r))[*next];
                        let name = parts.key(name)?;
                        *next += 1;
                        if is_container(val) {
                            *key = Some(name);
                            return Ok(OutwardStep::Visit(val));
                        }
                        parts.clock.work(VALUE_WORK)?;
                        if let Some(value) = parts.scalar(val)? {
                            map.push_distinct(name, value);
                        }
                    }
                    done = Some(Value::Object(std::mem::take(map)));
                }
            }
            self.open.pop();
        }
    }
}

fn is_container(val: Val) -> bool {
    matches!(val, Val::Arr(_) | Val::Set(_) | Val::Obj(_))
}
