//! The builders: JSON Schema from schemas, examples and constants.

use super::{BoundaryLimits, Cx, Fault, Val, Value, from_value, host_value, schema};
use a99_core::value::Map;

/// Runs a builder on converted arguments.
pub(super) fn call(
    cx: &mut Cx<'_>,
    args: &[Val],
    builder: fn(&[Value]) -> Value,
) -> Result<Val, Fault> {
    let mut values = Vec::new();
    for arg in args {
        values.push(host_value(cx, *arg)?);
    }
    let built = builder(&values);
    from_value(cx.heap, &built, &BoundaryLimits::default())
}

/// Keys of schemas that have no `type`, and which builders here write.
const UNTYPED: [&str; 4] = ["anyOf", "enum", "const", "x-tjs-undefined"];

/// A schema as it is, anything else as an example of one. The empty object is
/// the schema of everything.
pub(super) fn as_schema(value: Value) -> Value {
    match &value {
        Value::Object(map) if map.is_empty() => value,
        Value::Object(map) if is_schema(map) => value,
        _ => schema::from_example(&value),
    }
}

fn is_schema(map: &Map) -> bool {
    let typed = map
        .get("type")
        .is_some_and(|t| matches!(t, Value::String(_) | Value::Array(_)));
    typed || UNTYPED.iter().any(|key| map.contains(key))
}

fn arg(args: &[Value], at: usize) -> Value {
    args.get(at).cloned().unwrap_or(Value::Undefined)
}

fn schema_arg(args: &[Value], at: usize) -> Value {
    as_schema(arg(args, at))
}

/// The arguments as a list: one array, or several values.
fn list(args: &[Value]) -> Vec<Value> {
    match args {
        [Value::Array(items)] => items.clone(),
        several => several.to_vec(),
    }
}

fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().collect())
}

fn text(format: &str) -> Value {
    map([("type", "string".into()), ("format", format.into())])
}

pub(super) fn any(_: &[Value]) -> Value {
    Value::Object(Map::new())
}

pub(super) fn array(args: &[Value]) -> Value {
    map([("type", "array".into()), ("items", schema_arg(args, 0))])
}

pub(super) fn constant(args: &[Value]) -> Value {
    map([("const", arg(args, 0))])
}

pub(super) fn datetime(_: &[Value]) -> Value {
    text("date-time")
}

pub(super) fn email(_: &[Value]) -> Value {
    text("email")
}

pub(super) fn emoji(_: &[Value]) -> Value {
    text("emoji")
}

pub(super) fn ipv4(_: &[Value]) -> Value {
    text("ipv4")
}

pub(super) fn url(_: &[Value]) -> Value {
    text("uri")
}

pub(super) fn uuid(_: &[Value]) -> Value {
    text("uuid")
}

pub(super) fn enumeration(args: &[Value]) -> Value {
    let values = list(args);
    let kind = values.first().map_or("", Value::kind);
    let same = values.iter().all(|v| v.kind() == kind);
    let members = [("enum", Value::Array(values))];
    match kind {
        "string" | "number" | "boolean" if same => {
            let [(name, values)] = members;
            map([("type", kind.into()), (name, values)])
        }
        _ => map(members),
    }
}

pub(super) fn from_example(args: &[Value]) -> Value {
    schema::from_example(&arg(args, 0))
}

pub(super) fn infer(args: &[Value]) -> Value {
    schema::infer(&arg(args, 0))
}

pub(super) fn null(_: &[Value]) -> Value {
    map([("type", "null".into())])
}

pub(super) fn undefined(_: &[Value]) -> Value {
    map([("x-tjs-undefined", true.into())])
}

pub(super) fn pattern(args: &[Value]) -> Value {
    map([("type", "string".into()), ("pattern", arg(args, 0))])
}

pub(super) fn record(args: &[Value]) -> Value {
    map([
        ("type", "object".into()),
        ("additionalProperties", schema_arg(args, 0)),
    ])
}

pub(super) fn tuple(args: &[Value]) -> Value {
    let items: Vec<Value> = list(args).into_iter().map(as_schema).collect();
    map([("type", "array".into()), ("items", items.into())])
}

pub(super) fn union(args: &[Value]) -> Value {
    let schemas: Vec<Value> = list(args).into_iter().map(as_schema).collect();
    map([("anyOf", schemas.into())])
}

/// Every property is required unless its schema allows `null` beside a type.
pub(super) fn object(args: &[Value]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Value::Object(given) = arg(args, 0) {
        for (name, value) in given {
            let property = as_schema(value);
            let optional = matches!(
                property.get("type"),
                Some(Value::Array(types)) if types.iter().any(|t| t.as_str() == Some("null"))
            );
            if !optional {
                required.push(Value::String(name.clone()));
            }
            properties.insert(name, property);
        }
    }
    map([
        ("type", "object".into()),
        ("properties", properties.into()),
        ("required", required.into()),
        ("additionalProperties", false.into()),
    ])
}

/// What language models take as a response format.
pub(super) fn response(args: &[Value]) -> Value {
    let schema = schema_arg(args, 1);
    let inner = map([
        ("name", arg(args, 0)),
        ("strict", true.into()),
        ("schema", schema),
    ]);
    map([("type", "json_schema".into()), ("json_schema", inner)])
}
