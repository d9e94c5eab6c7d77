//! What rejects a program before it runs (decisions D2, D16, D44).

use super::condition;
use super::options::Rejected;
use a99_core::builtins::{forbidden_text, is_forbidden};
use a99_core::value::{Map, Value};

/// Checks a whole program.
pub(super) fn program(root: &Value) -> Result<(), Rejected> {
    if root.get("op").and_then(Value::as_str) != Some("seq") {
        return Err(Rejected {
            message: "Root AST must be 'seq'".into(),
        });
    }
    step(root)?;
    if let Some(Value::Object(helpers)) = root.get("helpers") {
        for helper in helpers.values() {
            list(helper.get("steps"))?;
            for name in helper
                .get("paramNames")
                .and_then(Value::as_array)
                .unwrap_or_default()
            {
                bound(Some(name))?;
            }
        }
    }
    Ok(())
}

fn list(steps: Option<&Value>) -> Result<(), Rejected> {
    steps
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter()
        .try_for_each(step)
}

fn bound(name: Option<&Value>) -> Result<(), Rejected> {
    match name.and_then(Value::as_str) {
        Some(name) if is_forbidden(name.as_bytes()) => Err(Rejected {
            message: forbidden_text(name),
        }),
        _ => Ok(()),
    }
}

fn step(step: &Value) -> Result<(), Rejected> {
    let Some(map) = step.as_object() else {
        return Ok(());
    };
    let op = map.get("op").and_then(Value::as_str).unwrap_or_default();
    bound(map.get("result"))?;
    let bodies: &[&str] = match op {
        "seq" | "scope" | "map" | "reduce" | "memoize" | "cache" => &["steps"],
        "if" => &["then", "else"],
        "while" => &["body"],
        "try" => &["try", "catch"],
        _ => &[],
    };
    if matches!(op, "if" | "while" | "filter" | "find")
        && let Some(Value::String(text)) = map.get("condition")
    {
        condition::parse_condition(&text.to_string_lossy()).map_err(|why| Rejected {
            message: format!("malformed condition: {why}"),
        })?;
    }
    names(op, map)?;
    bodies.iter().try_for_each(|body| list(map.get(body)))
}

fn names(op: &str, map: &Map) -> Result<(), Rejected> {
    match op {
        "varSet" | "constSet" => bound(map.get("key")),
        "map" | "filter" | "find" | "callAll" => bound(map.get("as")),
        "reduce" => bound(map.get("as")).and(bound(map.get("accumulator"))),
        "try" => bound(map.get("catchParam")),
        "varsImport" => match map.get("keys") {
            Some(Value::Array(names)) => names.iter().try_for_each(|n| bound(Some(n))),
            Some(Value::Object(names)) => names
                .keys()
                .try_for_each(|n| bound(Some(&Value::String(n.clone())))),
            _ => Ok(()),
        },
        "varsLet" => map
            .keys()
            .filter(|k| is_forbidden(k.as_bytes()))
            .try_for_each(|k| bound(Some(&Value::String(k.clone())))),
        _ => Ok(()),
    }
}
