//! Checks that reject a program before it runs (decisions D2, D16, D44).

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
    let version_4 = root.get("a99").and_then(Value::as_f64) == Some(4.0);
    let top = Place {
        version_4,
        in_loop: false,
        helpers: root.get("helpers"),
    };
    step(root, top)?;
    if let Some(Value::Object(helpers)) = root.get("helpers") {
        for helper in helpers.values() {
            list(helper.get("steps"), top)?;
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

/// Inputs without expressions.
const AS_WRITTEN: [&str; 2] = ["schema", "pattern"];

fn malformed(why: String) -> Rejected {
    Rejected {
        message: format!("malformed expression: {why}"),
    }
}

/// Checks the formula of a program of version 4.
fn formula(op: &str, map: &Map) -> Result<(), Rejected> {
    match map.get("expr").filter(|_| op == "mathCalc") {
        Some(Value::String(text)) => condition::parse_expression(&text.to_string_lossy())
            .map(|_| ())
            .map_err(malformed),
        _ => Ok(()),
    }
}

/// Checks the expression texts in an input.
fn texts(value: &Value) -> Result<(), Rejected> {
    if let Some(text) = super::expr::expr_text(value) {
        let parsed = condition::parse_expression(&text.to_string_lossy());
        return parsed.map(|_| ()).map_err(malformed);
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(texts),
        Value::Object(map) if value.get("$expr").and_then(Value::as_str) != Some("literal") => {
            map.values().try_for_each(texts)
        }
        _ => Ok(()),
    }
}

/// Position of a step.
#[derive(Clone, Copy)]
struct Place<'v> {
    helpers: Option<&'v Value>,
    version_4: bool,
    /// True inside a loop that `break` and `continue` may leave.
    in_loop: bool,
}

fn list(steps: Option<&Value>, place: Place<'_>) -> Result<(), Rejected> {
    let steps = steps.and_then(Value::as_array).unwrap_or_default();
    steps.iter().try_for_each(|one| step(one, place))
}

fn bound(name: Option<&Value>) -> Result<(), Rejected> {
    match name.and_then(Value::as_str) {
        Some(name) if is_forbidden(name.as_bytes()) => Err(Rejected {
            message: forbidden_text(name),
        }),
        _ => Ok(()),
    }
}

fn step(step: &Value, place: Place<'_>) -> Result<(), Rejected> {
    let Some(map) = step.as_object() else {
        return Ok(());
    };
    let op = map.get("op").and_then(Value::as_str).unwrap_or_default();
    bound(map.get("result"))?;
    let bodies: &[&str] = match op {
        "seq" | "scope" | "map" | "reduce" | "memoize" | "cache" | "forEach" => &["steps"],
        "if" => &["then", "else"],
        "while" => &["body"],
        "try" => &["try", "catch"],
        _ => &[],
    };
    if matches!(op, "if" | "while" | "filter" | "find")
        && let Some(Value::String(text)) = map.get("condition")
    {
        let text = text.to_string_lossy();
        let parsed = match place.version_4 {
            true => condition::parse_expression(&text),
            false => condition::parse_condition(&text),
        };
        parsed.map_err(|why| Rejected {
            message: format!("malformed condition: {why}"),
        })?;
    }
    if place.version_4 {
        formula(op, map)?;
        let inputs = map.iter().filter(|(key, _)| {
            let key = key.to_string_lossy();
            // A missing helper takes no arguments.
            let unknown = op == "callLocal" && *key == *"args" && !is_helper(map, place);
            op != "Error" && !unknown && !bodies.contains(&&*key) && !AS_WRITTEN.contains(&&*key)
        });
        inputs.into_iter().try_for_each(|(_, value)| texts(value))?;
    }
    if matches!(op, "break" | "continue") && !place.in_loop {
        return Err(Rejected {
            message: format!("no loop is around this `{op}`"),
        });
    }
    names(op, map, place)?;
    let in_loop = match op {
        "while" | "forEach" => true,
        "map" | "reduce" | "memoize" | "cache" => false,
        _ => place.in_loop,
    };
    let inside = Place { in_loop, ..place };
    bodies
        .iter()
        .try_for_each(|body| list(map.get(body), inside))
}

/// True if a step calls a helper of the program.
fn is_helper(step: &Map, place: Place<'_>) -> bool {
    let name = step.get("name").and_then(Value::as_str);
    name.is_some_and(|name| place.helpers.is_some_and(|all| all.get(name).is_some()))
}

fn names(op: &str, map: &Map, place: Place<'_>) -> Result<(), Rejected> {
    let counts = op == "forEach" || place.version_4;
    if counts && matches!(op, "forEach" | "map" | "filter" | "find" | "reduce") {
        bound(map.get("index"))?;
    }
    match op {
        "varSet" | "constSet" => bound(map.get("key")),
        "map" | "forEach" | "filter" | "find" | "callAll" => bound(map.get("as")),
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
