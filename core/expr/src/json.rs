//! The ExprNode JSON of a parsed text (language section 1.5).

use serde_json::{Map, Number, Value};

use super::MAX_NESTING;
use super::arena::{Expr, ExprId, ExprKind, Lit, ObjKey};

/// Largest magnitude of integers written without a fraction: 2^53, above which a double
/// cannot distinguish neighbouring integers (ECMA-262 §21.1.2.6).
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The ExprNode JSON of `expr`, in the form of the second generation's builder.
///
/// `null` for blank text, and for a tree deeper than [`MAX_NESTING`], because a JSON value is
/// dropped recursively.
#[must_use]
pub fn to_expr_json(expr: &Expr) -> Value {
    let Some(root) = expr.root else {
        return Value::Null;
    };
    if expr.depth() > MAX_NESTING {
        return Value::Null;
    }
    let parts = parts(expr, root);
    let mut done: Vec<Value> = Vec::with_capacity(expr.nodes.len());
    for (node, is_part) in expr.nodes.iter().zip(parts) {
        let value = match is_part {
            true => node_json(&node.kind, &mut done),
            false => Value::Null,
        };
        done.push(value);
    }
    std::mem::take(&mut done[root.0 as usize])
}

/// Marks the nodes of the root's tree. Other nodes come from reinterpreted syntax, as a list
/// read for `[key]` of an object, and share children with the tree.
fn parts(expr: &Expr, root: ExprId) -> Vec<bool> {
    let mut parts = vec![false; expr.nodes.len()];
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        parts[id.0 as usize] = true;
        expr.node(id).kind.for_each_child(|child| todo.push(child));
    }
    parts
}

/// Converts a node; takes its children out of `done`.
fn node_json(kind: &ExprKind, done: &mut [Value]) -> Value {
    let mut child = |id: &ExprId| std::mem::take(&mut done[id.0 as usize]);
    match kind {
        ExprKind::Literal(lit) => tagged("literal", [("value", lit_json(lit))]),
        ExprKind::Ident(name) => tagged("ident", [("name", text(name))]),
        ExprKind::Member {
            object,
            property,
            optional,
        } => {
            let members = [("object", child(object)), ("property", text(property))];
            flagged(tagged("member", members), *optional, "optional")
        }
        ExprKind::Index {
            object,
            index,
            optional,
        } => {
            let members = [("object", child(object)), ("property", child(index))];
            let node = flagged(tagged("member", members), true, "computed");
            flagged(node, *optional, "optional")
        }
        ExprKind::Unary { op, arg } => tagged(
            "unary",
            [("op", text(op.as_str())), ("argument", child(arg))],
        ),
        ExprKind::Binary { op, left, right } => {
            let (left, right) = (child(left), child(right));
            tagged(
                "binary",
                [("op", text(op.as_str())), ("left", left), ("right", right)],
            )
        }
        ExprKind::Logical { op, left, right } => {
            let (left, right) = (child(left), child(right));
            tagged(
                "logical",
                [("op", text(op.as_str())), ("left", left), ("right", right)],
            )
        }
        ExprKind::Conditional {
            test,
            consequent,
            alternate,
        } => {
            let (test, consequent) = (("test", child(test)), ("consequent", child(consequent)));
            tagged(
                "conditional",
                [test, consequent, ("alternate", child(alternate))],
            )
        }
        ExprKind::Array(items) => {
            tagged("array", [("elements", items.iter().map(child).collect())])
        }
        ExprKind::Object(entries) => {
            let property = |(key, value): &(ObjKey, ExprId)| {
                let key = match key {
                    ObjKey::Name(name) => text(name),
                    ObjKey::Computed(key) => child(key),
                };
                let members = [("key", key), ("value", child(value))];
                let named = members.map(|(name, value)| (name.to_owned(), value));
                Value::Object(named.into_iter().collect())
            };
            tagged(
                "object",
                [("properties", entries.iter().map(property).collect())],
            )
        }
        ExprKind::Call { callee, args } => {
            let args = args.iter().map(child).collect();
            tagged("call", [("callee", text(callee)), ("arguments", args)])
        }
        ExprKind::MethodCall {
            object,
            method,
            args,
            optional,
        } => {
            let object = ("object", child(object));
            let args = ("arguments", args.iter().map(child).collect());
            let node = tagged("methodCall", [object, ("method", text(method)), args]);
            flagged(node, *optional, "optional")
        }
        ExprKind::Context(path) => tagged("context", [("path", text(path))]),
        ExprKind::Unsupported { message, operands } => {
            let operands = operands.iter().map(child).collect();
            tagged(
                "unsupported",
                [("message", text(message)), ("operands", operands)],
            )
        }
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// A node with its tag and members.
fn tagged<const N: usize>(tag: &str, members: [(&str, Value); N]) -> Value {
    let mut node = Map::new();
    node.insert("$expr".to_owned(), text(tag));
    node.extend(members.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(node)
}

/// Adds `name: true` if it holds; a false member is left out.
fn flagged(mut node: Value, holds: bool, name: &str) -> Value {
    if let Value::Object(members) = &mut node
        && holds
    {
        members.insert(name.to_owned(), Value::Bool(true));
    }
    node
}

/// Converts a constant; a number that JSON cannot represent is `null`, as in
/// `JSON.stringify`.
fn lit_json(lit: &Lit) -> Value {
    match lit {
        Lit::Null => Value::Null,
        Lit::Bool(value) => Value::Bool(*value),
        Lit::Number(value) if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER => {
            Value::Number(Number::from(*value as i64))
        }
        Lit::Number(value) => Number::from_f64(*value).map_or(Value::Null, Value::Number),
        Lit::String(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
    }
}
