//! The builders: JSON Schema from schemas, examples and constants.
//!
//! They allocate in the heap, where results are counted, and copy only the arguments that
//! become part of one. A builder of a constant reads no argument.

use super::{BoundaryLimits, Cx, Fault, Val, arg};
use crate::convert::copy_plain;
use crate::heap::{KeyId, Oom, Ref};
use crate::native::ObjDraft;
use a99_core::schema::MAX_SCHEMA_DEPTH;

type Made = Result<Val, Fault>;

/// Keywords of schemas without `type`, as written by the builders.
const UNTYPED: [&[u8]; 4] = [b"anyOf", b"enum", b"const", b"x-tjs-undefined"];

/// Work per part of a schema.
const PART_WORK: i64 = 64;

/// Copies an argument into a schema as a separate tree.
fn copy(cx: &mut Cx<'_>, v: Val) -> Made {
    copy_plain(cx, v, &BoundaryLimits::default())
}

/// A new object.
fn map(cx: &mut Cx<'_>, members: &[(&str, Val)]) -> Made {
    cx.work(PART_WORK)?;
    let mut draft = ObjDraft::new();
    for (key, val) in members {
        draft.set_text(cx.heap, key.as_bytes(), *val)?;
    }
    draft.finish(cx)
}

fn text(cx: &mut Cx<'_>, text: &str) -> Made {
    cx.str(text.as_bytes())
}

fn array_of(cx: &mut Cx<'_>, items: &[Val]) -> Made {
    Ok(Val::Arr(cx.list(items)?))
}

/// The schema of a type.
fn typed(cx: &mut Cx<'_>, kind: &str) -> Made {
    let kind = text(cx, kind)?;
    cx.work(PART_WORK)?;
    // An example has one for each of its members.
    let key = cx.heap.intern(b"type")?;
    Ok(Val::Obj(cx.object(&[key], &[kind])?))
}

fn member(cx: &Cx<'_>, v: Val, key: &str) -> Option<Val> {
    match v {
        Val::Obj(r) => cx.heap.get_text(r, key.as_bytes()),
        _ => None,
    }
}

/// A buffer for `n` values of an instruction.
fn room<T>(cx: &Cx<'_>, n: usize) -> Result<Vec<T>, Fault> {
    let wanted = n.saturating_mul(size_of::<T>());
    cx.heap.check(wanted)?;
    let mut list = Vec::new();
    list.try_reserve_exact(n).map_err(|_| Oom { wanted })?;
    Ok(list)
}

/// Returns a schema unchanged, and converts other values as examples. The empty object is the
/// schema that allows everything.
pub(super) fn as_schema(cx: &mut Cx<'_>, v: Val) -> Made {
    match v {
        Val::Obj(r) if cx.heap.is_empty(r) || is_schema(cx, r) => copy(cx, v),
        _ => by_example(cx, v),
    }
}

fn is_schema(cx: &Cx<'_>, r: Ref) -> bool {
    let typed = cx
        .heap
        .get_text(r, b"type")
        .is_some_and(|t| is_text(t) || is_list(t));
    typed || UNTYPED.iter().any(|key| cx.heap.get_text(r, key).is_some())
}

/// Whether a value is text at the boundary: a date is.
fn is_text(v: Val) -> bool {
    matches!(v, Val::Str(_) | Val::Date(_))
}

/// Whether a value is a list at the boundary: a set is.
fn is_list(v: Val) -> bool {
    matches!(v, Val::Arr(_) | Val::Set(_))
}

/// The schema of an example; see [`a99_core::schema::from_example`].
pub(super) fn by_example(cx: &mut Cx<'_>, example: Val) -> Made {
    // Unwraps a builder's result.
    if !member(cx, example, "type").is_some_and(is_text)
        && let Some(inner @ Val::Obj(_)) = member(cx, example, "schema")
    {
        return copy(cx, inner);
    }
    convert(cx, example, 0, true)
}

/// Converts an example. Recursion is bounded by the depth limit.
fn convert(cx: &mut Cx<'_>, example: Val, depth: u32, accept_schemas: bool) -> Made {
    cx.work(PART_WORK)?;
    if depth >= MAX_SCHEMA_DEPTH {
        return map(cx, &[]);
    }
    match example {
        Val::Undefined | Val::Unbound | Val::Builtin(_) => map(cx, &[]),
        Val::Map(_) => typed(cx, "object"),
        Val::Null => typed(cx, "null"),
        Val::Bool(_) => typed(cx, "boolean"),
        Val::Str(_) => typed(cx, "string"),
        Val::Date(r) if cx.heap.date_ms(r).is_nan() => typed(cx, "null"),
        Val::Date(_) => typed(cx, "string"),
        Val::Num(n) if n.is_finite() && n.trunc() == n => typed(cx, "integer"),
        Val::Num(_) => typed(cx, "number"),
        Val::Arr(r) | Val::Set(r) => {
            let kind = text(cx, "array")?;
            let Some(first) = cx.heap.items(r).first().copied() else {
                return map(cx, &[("type", kind)]);
            };
            let items = convert(cx, first, depth + 1, accept_schemas)?;
            map(cx, &[("type", kind), ("items", items)])
        }
        Val::Obj(r) => {
            let declared = cx.heap.get_text(r, b"type").is_some_and(is_text)
                || matches!(cx.heap.get_text(r, b"schema"), Some(Val::Obj(_)));
            if accept_schemas && declared {
                return copy(cx, example);
            }
            let mut each = |cx: &mut Cx<'_>, v| convert(cx, v, depth + 1, accept_schemas);
            object_of(cx, r, &mut each, |_, _| Ok(true))
        }
    }
}

/// The schema of an object: a property for each member, in enumeration order, and the names
/// of the required ones.
fn object_of(
    cx: &mut Cx<'_>,
    r: Ref,
    schema: &mut dyn FnMut(&mut Cx<'_>, Val) -> Made,
    required: fn(&Cx<'_>, Val) -> Result<bool, Fault>,
) -> Made {
    let n = cx.heap.len(r);
    let mut entries: Vec<(KeyId, Val)> = room(cx, n)?;
    entries.extend(cx.heap.entries(r));
    let (mut keys, mut vals) = (room::<KeyId>(cx, n)?, room::<Val>(cx, n)?);
    let mut names = room::<Val>(cx, n)?;
    for (key, val) in entries {
        cx.work(PART_WORK)?;
        let property = schema(cx, val)?;
        if required(cx, property)? {
            names.push(Val::Str(cx.heap.key_str(key)?));
        }
        keys.push(key);
        vals.push(property);
    }
    let properties = Val::Obj(cx.object(&keys, &vals)?);
    let names = array_of(cx, &names)?;
    let kind = text(cx, "object")?;
    map(
        cx,
        &[
            ("type", kind),
            ("properties", properties),
            ("required", names),
            ("additionalProperties", Val::Bool(false)),
        ],
    )
}

/// The arguments as a list: one array, or several values.
fn list(cx: &Cx<'_>, args: &[Val]) -> Result<Vec<Val>, Fault> {
    let items = match args {
        [one @ (Val::Arr(r) | Val::Set(r))] if is_list(*one) => cx.heap.items(*r),
        several => several,
    };
    let mut list = room(cx, items.len())?;
    list.extend_from_slice(items);
    Ok(list)
}

fn format(cx: &mut Cx<'_>, format: &str) -> Made {
    let kind = text(cx, "string")?;
    let format = text(cx, format)?;
    map(cx, &[("type", kind), ("format", format)])
}

pub(super) fn any(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    map(cx, &[])
}

pub(super) fn array(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let items = as_schema(cx, arg(args, 0))?;
    let kind = text(cx, "array")?;
    map(cx, &[("type", kind), ("items", items)])
}

pub(super) fn constant(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let value = copy(cx, arg(args, 0))?;
    map(cx, &[("const", value)])
}

pub(super) fn datetime(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    format(cx, "date-time")
}

pub(super) fn email(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    format(cx, "email")
}

pub(super) fn emoji(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    format(cx, "emoji")
}

pub(super) fn ipv4(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    format(cx, "ipv4")
}

pub(super) fn url(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    format(cx, "uri")
}

pub(super) fn uuid(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    format(cx, "uuid")
}

/// The kind of a value at the boundary, if an enumeration gives it a separate type.
fn kind(cx: &Cx<'_>, v: Val) -> &'static str {
    match v {
        Val::Str(_) => "string",
        Val::Date(r) if !cx.heap.date_ms(r).is_nan() => "string",
        Val::Num(_) => "number",
        Val::Bool(_) => "boolean",
        _ => "",
    }
}

pub(super) fn enumeration(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let mut values = list(cx, args)?;
    let first = values.first().map_or("", |v| kind(cx, *v));
    let mut same = !first.is_empty();
    for value in &mut values {
        same = same && kind(cx, *value) == first;
    }
    let values = array_of(cx, &values)?;
    let values = copy(cx, values)?;
    if !same {
        return map(cx, &[("enum", values)]);
    }
    let kind = text(cx, first)?;
    map(cx, &[("type", kind), ("enum", values)])
}

pub(super) fn from_example(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    by_example(cx, arg(args, 0))
}

pub(super) fn infer(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    convert(cx, arg(args, 0), 0, false)
}

pub(super) fn null(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    typed(cx, "null")
}

pub(super) fn undefined(cx: &mut Cx<'_>, _: &[Val]) -> Made {
    map(cx, &[("x-tjs-undefined", Val::Bool(true))])
}

pub(super) fn pattern(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let pattern = copy(cx, arg(args, 0))?;
    let kind = text(cx, "string")?;
    map(cx, &[("type", kind), ("pattern", pattern)])
}

pub(super) fn record(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let values = as_schema(cx, arg(args, 0))?;
    let kind = text(cx, "object")?;
    map(cx, &[("type", kind), ("additionalProperties", values)])
}

/// The schemas of a list of arguments.
fn schemas(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let mut values = list(cx, args)?;
    for value in &mut values {
        *value = as_schema(cx, *value)?;
    }
    array_of(cx, &values)
}

pub(super) fn tuple(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let items = schemas(cx, args)?;
    let kind = text(cx, "array")?;
    map(cx, &[("type", kind), ("items", items)])
}

pub(super) fn union(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let schemas = schemas(cx, args)?;
    map(cx, &[("anyOf", schemas)])
}

/// The schema of an object. A property is required unless its schema allows `null` in
/// addition to a type.
pub(super) fn object(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let given = match arg(args, 0) {
        Val::Obj(r) => r,
        _ => cx.heap.alloc_obj_keys(&[], &[])?,
    };
    object_of(cx, given, &mut as_schema, |cx, property| {
        let Some(Val::Arr(types)) = member(cx, property, "type") else {
            return Ok(true);
        };
        let null = |v: &Val| matches!(v, Val::Str(s) if cx.bytes(*s) == b"null");
        Ok(!cx.heap.items(types).iter().any(null))
    })
}

/// The response format of language models.
pub(super) fn response(cx: &mut Cx<'_>, args: &[Val]) -> Made {
    let name = copy(cx, arg(args, 0))?;
    let schema = as_schema(cx, arg(args, 1))?;
    let inner = map(
        cx,
        &[
            ("name", name),
            ("strict", Val::Bool(true)),
            ("schema", schema),
        ],
    )?;
    let kind = text(cx, "json_schema")?;
    map(cx, &[("type", kind), ("json_schema", inner)])
}
