//! From the heap to the host.

use super::count::Count;
use super::{BoundaryLimits, rejected, too_deep};
use crate::heap::{Heap, Oom, Ref, Val};
use crate::native::Fault;
use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// Room made for the members of an object at once; more would trust a length
/// that the program chose.
const ROOM: usize = 64;

/// A container under construction.
enum Open {
    Array {
        r: Ref,
        next: usize,
        items: Vec<Value>,
    },
    Object {
        r: Ref,
        next: usize,
        map: Map,
    },
}

impl Open {
    fn cell(&self) -> Ref {
        match self {
            Open::Array { r, .. } | Open::Object { r, .. } => *r,
        }
    }
}

/// Copies a guest value for the host.
///
/// A set becomes an array, a date its ISO text (`null` if invalid), a builtin
/// `undefined` (D34, D35). Members that are `undefined` stay.
///
/// # Errors
/// [`ErrorCode::Boundary`](a99_core::error::ErrorCode::Boundary): too large,
/// too deep, cyclic.
pub fn to_value(heap: &Heap, v: Val, limits: &BoundaryLimits) -> Result<Value, Fault> {
    let mut walk = Walk {
        heap,
        limits,
        count: Count::new(limits),
        open: Vec::new(),
    };
    let mut next = v;
    loop {
        let done = walk.begin(next)?;
        match walk.advance(done)? {
            Step::Visit(val) => next = val,
            Step::Done(value) => return Ok(value),
        }
    }
}

enum Step {
    Visit(Val),
    Done(Value),
}

struct Walk<'a> {
    heap: &'a Heap,
    limits: &'a BoundaryLimits,
    count: Count,
    open: Vec<Open>,
}

impl Walk<'_> {
    /// Converts a scalar; opens a container and gives `None`.
    fn begin(&mut self, v: Val) -> Result<Option<Value>, Fault> {
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
                let bytes = self.heap.bytes(s);
                self.count.string(bytes)?;
                Value::String(text(bytes))
            }
            Val::Date(r) => {
                let ms = self.heap.date_ms(r);
                if ms.is_nan() {
                    self.count.add(4)?;
                    return Ok(Some(Value::Null));
                }
                let iso = a99_ecma::date::to_iso(ms);
                self.count.add(iso.len() + 2)?;
                Value::from(iso)
            }
            Val::Arr(r) | Val::Set(r) => {
                let len = self.enter(r)?;
                let mut items = Vec::new();
                items.try_reserve_exact(len).map_err(|_| Oom {
                    wanted: len * size_of::<Value>(),
                })?;
                self.open.push(Open::Array { r, next: 0, items });
                return Ok(None);
            }
            Val::Obj(r) => {
                let len = self.enter(r)?;
                self.open.push(Open::Object {
                    r,
                    next: 0,
                    map: Map::with_capacity(len.min(ROOM)),
                });
                return Ok(None);
            }
        }))
    }

    fn enter(&mut self, r: Ref) -> Result<usize, Fault> {
        if self.open.iter().any(|open| open.cell() == r) {
            return Err(rejected("contains a cycle"));
        }
        if self.open.len() >= self.limits.max_depth as usize {
            return Err(too_deep(self.limits));
        }
        let len = self.heap.len(r);
        self.count.container(len)?;
        Ok(len)
    }

    /// Stores a finished value into the innermost container and finds what
    /// comes next.
    fn advance(&mut self, done: Option<Value>) -> Result<Step, Fault> {
        let mut done = done;
        loop {
            let Some(open) = self.open.last_mut() else {
                return Ok(Step::Done(done.unwrap_or(Value::Undefined)));
            };
            match open {
                Open::Array { r, next, items } => {
                    items.extend(done.take());
                    if let Some(val) = self.heap.items(*r).get(*next) {
                        *next += 1;
                        return Ok(Step::Visit(*val));
                    }
                    done = Some(Value::Array(std::mem::take(items)));
                }
                Open::Object { r, next, map } => {
                    let keys = self.heap.shapes.keys(self.heap.shape(*r));
                    if let Some(value) = done.take() {
                        let key = keys[*next - 1];
                        map.insert(self.heap.shapes.key_name(key).clone(), value);
                    }
                    if let Some(val) = self.heap.items(*r).get(*next) {
                        self.count.string(self.heap.shapes.key_text(keys[*next]))?;
                        self.count.add(1)?;
                        *next += 1;
                        return Ok(Step::Visit(*val));
                    }
                    done = Some(Value::Object(std::mem::take(map)));
                }
            }
            self.open.pop();
        }
    }
}

fn text(bytes: &[u8]) -> Text {
    match std::str::from_utf8(bytes) {
        Ok(text) => Text::from(text),
        Err(_) => Text::from_wtf8(bytes.to_vec()),
    }
}
