//! Replays the condition vectors, and fuzzes this parser and those of the compatibility
//! dialects.

use serde_json::Value;

use super::*;

mod conditions;
mod fuzz;

/// The vectors for the dialects.
const VECTORS: &[&str] = &[
    include_str!("../../../tests/vectors/conditions.jsonl"),
    include_str!("../../../tests/vectors/quirks.jsonl"),
];

/// The accepted accidents that the strict v2 dialect refuses (decision D3).
pub(crate) const REFUSED_ACCIDENTS: &[&str] = &[
    "quirk-cond-err-template",
    "quirk-cond-err-brace",
    "quirk-cond-err-inc",
    "quirk-cond-strict-eq",
    "quirk-cond-strict-neq",
    "quirk-cond-skipped-chars",
    "quirk-cond-empty",
    "quirk-cond-blank",
    "quirk-cond-unclosed-paren",
    "quirk-cond-unclosed-string",
    "quirk-cond-dangling-op",
    "quirk-cond-dangling-and",
    "quirk-cond-dangling-dot",
    "quirk-cond-two-dots-number",
    "quirk-cond-lone-bang",
    "quirk-cond-paren-empty",
];

pub(crate) fn condition_vectors() -> impl Iterator<Item = Value> {
    VECTORS
        .iter()
        .flat_map(|file| file.lines())
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str::<Value>(line).expect("a vector is JSON"))
        .filter(|vector| vector["kind"] == "condition")
}

/// Every v2 condition except accidents has the same meaning in the superset grammar, except
/// where precedence (D2), escapes or JSEP's reading of white space differ.
#[test]
fn superset_accepts_the_accepted_condition_vectors() {
    let differing = [
        "cond-str-escape-n",
        "quirk-cond-newline-escape",
        // Refused: a digit after the dot.
        "quirk-cond-dot-number",
        // Accepted, with their meaning in JavaScript.
        "quirk-cond-strict-eq",
        "quirk-cond-strict-neq",
        "quirk-cond-empty",
        "quirk-cond-blank",
    ];
    for vector in condition_vectors() {
        let id = vector["id"].as_str().expect("an id");
        let text = vector["condition"].as_str().expect("a text");
        let Some(expected) = vector["expect"].get("expr") else {
            continue;
        };
        let given = parse_condition(text);
        if differing.contains(&id) {
            continue;
        }
        if REFUSED_ACCIDENTS.contains(&id) {
            assert!(given.is_err(), "{id}: {text:?}");
        } else {
            let given = given.unwrap_or_else(|error| panic!("{id}: {error}"));
            assert_eq!(to_expr_json(&given), *expected, "{id}");
        }
    }
}

/// Writes a tree with all its parentheses.
pub(crate) fn show(expr: &Expr) -> String {
    expr.root
        .map_or_else(|| "undefined".to_owned(), |root| show_node(expr, root))
}

fn show_node(expr: &Expr, id: ExprId) -> String {
    let show = |id: &ExprId| show_node(expr, *id);
    let list = |ids: &[ExprId]| ids.iter().map(show).collect::<Vec<_>>().join(" ");
    let dot = |optional: bool| if optional { "?." } else { "." };
    match &expr.node(id).kind {
        ExprKind::Literal(Lit::Null) => "null".into(),
        ExprKind::Literal(Lit::Bool(value)) => value.to_string(),
        ExprKind::Literal(Lit::Number(value)) => value.to_string(),
        ExprKind::Literal(Lit::String(bytes)) => format!("{:?}", String::from_utf8_lossy(bytes)),
        ExprKind::Ident(name) => name.to_string(),
        ExprKind::Member {
            object,
            property,
            optional,
        } => {
            format!("{}{}{property}", show(object), dot(*optional))
        }
        ExprKind::Index {
            object,
            index,
            optional,
        } => {
            format!(
                "{}{}[{}]",
                show(object),
                if *optional { "?." } else { "" },
                show(index)
            )
        }
        ExprKind::Unary { op, arg } => format!("({} {})", op.as_str(), show(arg)),
        ExprKind::Binary { op, left, right } => {
            format!("({} {} {})", show(left), op.as_str(), show(right))
        }
        ExprKind::Logical { op, left, right } => {
            format!("({} {} {})", show(left), op.as_str(), show(right))
        }
        ExprKind::Conditional {
            test,
            consequent,
            alternate,
        } => {
            format!(
                "({} ? {} : {})",
                show(test),
                show(consequent),
                show(alternate)
            )
        }
        ExprKind::Array(items) => format!("[{}]", list(items)),
        ExprKind::Object(entries) => {
            let entry = |(key, value): &(ObjKey, ExprId)| match key {
                ObjKey::Name(key) => format!("{key}: {}", show(value)),
                ObjKey::Computed(key) => format!("[{}]: {}", show(key), show(value)),
            };
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(" "))
        }
        ExprKind::Call { callee, args } => format!("{callee}({})", list(args)),
        ExprKind::MethodCall {
            object,
            method,
            args,
            optional,
        } => {
            format!("{}{}{method}({})", show(object), dot(*optional), list(args))
        }
        ExprKind::Context(path) => format!("context<{path}>"),
        ExprKind::Unsupported { message, operands } => format!("<{message}: {}>", list(operands)),
    }
}
