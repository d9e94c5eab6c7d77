//! Sizes of values as formulas name them.

use crate::formula::Measure;
use a99_core::value::Value;

/// The values at a place below others.
fn values_at<'v>(roots: &[&'v Value], names: &[Option<Vec<u8>>], below: bool) -> Vec<&'v Value> {
    let mut at = roots.to_vec();
    for name in names {
        at = at
            .into_iter()
            .flat_map(|value| members(value, name.as_deref()))
            .collect();
    }
    if below {
        let mut todo = at.clone();
        while let Some(value) = todo.pop() {
            let inner = members(value, None);
            todo.extend(&inner);
            at.extend(inner);
        }
    }
    at
}

/// The largest size of the values at a place below others.
pub(crate) fn size_at(
    wanted: Measure,
    roots: &[&Value],
    names: &[Option<Vec<u8>>],
    below: bool,
) -> f64 {
    let found = measure(wanted, &values_at(roots, names, below));
    match names.split_last() {
        // The width of a list or text is a member of it.
        Some((Some(last), names)) if last == b"length" && wanted == Measure::Value => {
            let lists = values_at(roots, names, false);
            let lists = lists
                .into_iter()
                .filter(|value| !matches!(value, Value::Object(_)));
            let lists: Vec<&Value> = lists.collect();
            found
                .max(measure(Measure::Len, &lists))
                .max(measure(Measure::Chars, &lists))
        }
        _ => found,
    }
}

fn members<'v>(value: &'v Value, name: Option<&[u8]>) -> Vec<&'v Value> {
    match (value, name) {
        (Value::Array(items), None) => items.iter().collect(),
        (Value::Array(items), Some(name)) => {
            let index = std::str::from_utf8(name)
                .ok()
                .and_then(|name| name.parse::<usize>().ok());
            index.and_then(|at| items.get(at)).into_iter().collect()
        }
        (Value::Object(map), None) => map.iter().map(|(_, value)| value).collect(),
        (Value::Object(map), Some(name)) => map.get_bytes(name).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The largest size of these values.
fn measure(measure: Measure, values: &[&Value]) -> f64 {
    values
        .iter()
        .map(|value| size(measure, value))
        .fold(0.0, f64::max)
}

fn units(text: &[u8]) -> f64 {
    f64::from(crate::build::units(text))
}

fn size(measure: Measure, value: &Value) -> f64 {
    match (measure, value) {
        (Measure::Text, Value::String(_) | Value::Array(_) | Value::Object(_)) => 1.0,
        (Measure::Text, _) => 0.0,
        (Measure::Chars, Value::String(text)) => units(text.as_bytes()),
        (Measure::Chars, _) => 0.0,
        (Measure::Len, Value::Array(items)) => items.len() as f64,
        (Measure::Len, Value::Object(map)) => map.len() as f64,
        (Measure::Len, _) => 0.0,
        (Measure::Value, Value::Number(n)) => n.max(0.0),
        (Measure::Value, Value::Null | Value::Undefined) => 0.0,
        (Measure::Value, Value::Bool(_)) => 1.0,
        (Measure::Value, Value::String(text)) => {
            let text = String::from_utf8_lossy(text.as_bytes());
            // Other spellings of numbers are long ones at most.
            text.trim()
                .parse::<f64>()
                .map_or(f64::INFINITY, |n| n.max(0.0))
        }
        (Measure::Value, _) => f64::INFINITY,
        (_, value) => total(measure, value, true),
    }
}

/// A total of a value with all that is in it.
fn total(measure: Measure, value: &Value, outermost: bool) -> f64 {
    let own = match (measure, value) {
        (Measure::Inner, Value::String(text)) if !outermost => units(text.as_bytes()),
        (Measure::Inner, Value::Object(map)) => {
            map.iter().map(|(name, _)| units(name.as_bytes())).sum()
        }
        (Measure::Digits, Value::Number(_)) => value.to_json_string().len().max(9) as f64,
        (Measure::Digits, Value::Null | Value::Undefined | Value::Bool(_)) => 9.0,
        (Measure::Texts, Value::String(_))
        | (Measure::Objects, Value::Array(_) | Value::Object(_)) => 1.0,
        (Measure::Elements, Value::Array(items)) => items.len() as f64,
        (Measure::Members, Value::Object(map)) => map.len() as f64,
        _ => 0.0,
    };
    own + members(value, None)
        .into_iter()
        .map(|inner| total(measure, inner, false))
        .sum::<f64>()
}
