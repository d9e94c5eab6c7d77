//! Schemas on values of the heap: read, checked and projected in place.
//!
//! Each part is paid before it is read, and checks stop within about a microsecond. Values
//! are not copied. A flattened schema counts against the heap ceiling while it is used.

use crate::heap::{Heap, Oom, Val};
use crate::native::{Cx, Fault, Reading};
use crate::regex;
use a99_core::costs::{READ, SCHEMA_NODE, SCHEMA_READ, Sizes, WRITTEN};
use a99_core::schema::{
    self, Data, Gauge, KeptItems, KeptMembers, Part, Schema, SchemaError, View,
};

/// Work per part of a schema.
const NODE_WORK: i64 = 64;

/// A value in the heap.
#[derive(Copy, Clone)]
struct Guest<'h> {
    heap: &'h Heap,
    val: Val,
}

impl<'h> Guest<'h> {
    fn new(heap: &'h Heap, val: Val) -> Self {
        Guest { heap, val }
    }
}

impl<'h> Data<'h> for Guest<'h> {
    /// Sets, dates and maps are objects without own members.
    fn view(self) -> View<'h> {
        match self.val {
            Val::Unbound | Val::Undefined | Val::Builtin(_) => View::Undefined,
            Val::Null => View::Null,
            Val::Bool(b) => View::Bool(b),
            Val::Num(n) => View::Number(n),
            Val::Str(s) => View::Text(self.heap.bytes(s), Some(s.units())),
            Val::Arr(r) => View::Array(self.heap.len(r)),
            Val::Obj(r) => View::Object(self.heap.len(r)),
            Val::Set(_) | Val::Date(_) | Val::Map(_) => View::Object(0),
        }
    }

    fn item(self, index: usize) -> Option<Self> {
        match self.val {
            Val::Arr(r) => {
                let val = *self.heap.items(r).get(index)?;
                Some(Guest { val, ..self })
            }
            _ => None,
        }
    }

    fn member(self, key: &[u8]) -> Option<Self> {
        match self.val {
            Val::Obj(r) => {
                let val = self.heap.get_text(r, key)?;
                Some(Guest { val, ..self })
            }
            _ => None,
        }
    }

    fn members(self) -> impl Iterator<Item = (&'h [u8], Self)> {
        let heap = self.heap;
        let object = match self.val {
            Val::Obj(r) => Some(r),
            _ => None,
        };
        let members = object.into_iter().flat_map(|r| heap.entries(r));
        members.map(move |(key, val)| (heap.shapes.key_text(key), Guest { heap, val }))
    }
}

/// Charges the run and polls for a stop.
struct PaidReads<'r> {
    run: Reading<'r>,
    held: usize,
    /// The price per part.
    part: i64,
}

impl Gauge for PaidReads<'_> {
    type Stop = Fault;

    fn nodes(&mut self, n: usize) -> Result<(), Fault> {
        let n = n as i64;
        self.run.pay_metered(n.saturating_mul(self.part))?;
        self.run.work(n.saturating_mul(NODE_WORK))
    }

    fn reads(&mut self, elements: usize, units: usize) -> Result<(), Fault> {
        self.run
            .charge(READ, Sizes::elements(elements).in_units(units))
    }

    fn passes(&mut self, nanos: usize) -> Result<(), Fault> {
        self.run.work(nanos as i64)
    }

    fn holds(&mut self, bytes: usize) -> Result<(), Fault> {
        self.held = self.held.saturating_add(bytes);
        Ok(self.run.heap().check(self.held)?)
    }

    fn matches(
        &mut self,
        pattern: &[u8],
        text: &[u8],
        units: usize,
    ) -> Result<Result<bool, String>, Fault> {
        regex::search(&mut self.run, pattern, text, units)
    }
}

/// Starts a check that counts the memory of its schema, which was read before.
fn paid<'r>(cx: &'r mut Cx<'_>, held: usize) -> PaidReads<'r> {
    let run = cx.reading();
    PaidReads {
        run,
        held,
        part: SCHEMA_NODE,
    }
}

/// Reads a schema from a value of the program.
///
/// # Errors
/// Fuel, memory, a stop.
pub(crate) fn read(cx: &mut Cx<'_>, schema: Val) -> Result<Schema, Fault> {
    let mut paid = PaidReads {
        part: SCHEMA_READ,
        ..paid(cx, 0)
    };
    let data = Guest::new(paid.run.heap(), schema);
    Schema::read(data, &mut paid)
}

/// Checks a value of the program; the mismatch, if there is one.
///
/// # Errors
/// Fuel, memory, a stop.
pub(crate) fn check(
    cx: &mut Cx<'_>,
    val: Val,
    schema: &Schema,
) -> Result<Result<(), SchemaError>, Fault> {
    let mut paid = paid(cx, schema.bytes());
    let data = Guest::new(paid.run.heap(), val);
    schema::check(data, schema, &mut paid, false)
}

/// Checks a value of the program against a schema that is also a value of the program. An
/// invalid schema allows every value.
///
/// # Errors
/// Fuel, memory, a stop.
pub fn mismatch(cx: &mut Cx<'_>, val: Val, schema: Val) -> Result<Option<SchemaError>, Fault> {
    let schema = read(cx, schema)?;
    Ok(check(cx, val, &schema)?.err())
}

/// Whether a value of the program matches.
///
/// # Errors
/// Fuel, memory, a stop.
pub(crate) fn conforms(cx: &mut Cx<'_>, val: Val, schema: &Schema) -> Result<bool, Fault> {
    let mut paid = paid(cx, schema.bytes());
    let data = Guest::new(paid.run.heap(), val);
    schema::conforms(data, schema, &mut paid)
}

/// Checks data of the host; the mismatch, if there is one. `strict` as for [`schema::check`].
///
/// # Errors
/// Fuel, memory, a stop.
pub(crate) fn check_host<'d, D: Data<'d>>(
    cx: &mut Cx<'_>,
    data: D,
    schema: &Schema,
    strict: bool,
) -> Result<Result<(), SchemaError>, Fault> {
    schema::check(data, schema, &mut paid(cx, 0), strict)
}

/// Keeps the declared members of a matching value; a part that is kept whole is not copied.
/// Recursion is bounded by the schema's depth.
///
/// # Errors
/// Fuel, memory, a stop.
pub(crate) fn project(cx: &mut Cx<'_>, val: Val, part: Part<'_>) -> Result<Val, Fault> {
    paid(cx, 0).nodes(1)?;
    match val {
        Val::Obj(_) => match part.kept_members() {
            Some(kept) => kept_members(cx, val, kept),
            None => Ok(val),
        },
        Val::Arr(r) => match part.kept_items() {
            Some(KeptItems::All(inner)) => {
                let n = cx.heap.len(r);
                kept_items(cx, val, n, &|_| inner)
            }
            Some(KeptItems::Each(first, n)) => {
                let n = n.min(cx.heap.len(r));
                kept_items(cx, val, n, &|at| first.nth(at))
            }
            None => Ok(val),
        },
        Val::Builtin(_) | Val::Unbound => Ok(Val::Undefined),
        other => Ok(other),
    }
}

fn kept_members(cx: &mut Cx<'_>, val: Val, kept: KeptMembers<'_>) -> Result<Val, Fault> {
    let n = kept.len();
    paid(cx, 0).reads(n, kept.units())?;
    let mut keys = Vec::new();
    let mut vals = Vec::new();
    for at in 0..n {
        cx.work(NODE_WORK)?;
        let (name, inner) = kept.get(at);
        let Some(member) = Guest::new(cx.heap, val).member(name) else {
            continue;
        };
        let member = project(cx, member.val, inner)?;
        // Member names are already interned.
        let key = cx.heap.intern(name)?;
        crate::convert::temp::push(cx.heap, &mut keys, key)?;
        crate::convert::temp::push(cx.heap, &mut vals, member)?;
    }
    cx.charge(WRITTEN, Sizes::default().out_elements(vals.len()))?;
    Ok(Val::Obj(cx.object(&keys, &vals)?))
}

fn kept_items<'s>(
    cx: &mut Cx<'_>,
    val: Val,
    n: usize,
    part: &dyn Fn(usize) -> Part<'s>,
) -> Result<Val, Fault> {
    cx.charge(WRITTEN, Sizes::default().out_elements(n))?;
    let mut items = Vec::new();
    let wanted = n.saturating_mul(size_of::<Val>());
    cx.heap.check(2 * wanted)?;
    items.try_reserve_exact(n).map_err(|_| Oom { wanted })?;
    for at in 0..n {
        let item = Guest::new(cx.heap, val).item(at);
        let item = item.map_or(Val::Undefined, |item| item.val);
        items.push(project(cx, item, part(at))?);
    }
    Ok(Val::Arr(cx.list(&items)?))
}
