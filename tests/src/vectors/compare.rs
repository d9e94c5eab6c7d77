//! Comparison of an outcome with an expectation.

use super::read::{Vector, marker, now_ms, special_number};
use super::{EngineEvent, EngineOutcome};
use a99_core::fuel::Fuel;
use a99_core::pointer;
use a99_core::text::Text;
use a99_core::value::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Tolerance for fuel and inexact functions: relative to the larger, and to 1 at least.
const TOLERANCE: f64 = 1e-9;

/// Tolerance of `$now`, in milliseconds.
const NOW_SLACK_MS: f64 = 10_000.0;

/// A difference between an outcome and an expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Pointer into the vector.
    pub path: String,
    /// Expected value.
    pub expected: String,
    /// Actual value.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            path,
            expected,
            got,
        } = self;
        write!(f, "{path}\n      expected {expected}\n      got      {got}")
    }
}

/// Rules of comparison.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Pointers to ignored parts.
    pub ignore: &'a BTreeSet<String>,
    /// True if numbers may differ in the last digits.
    pub inexact: bool,
    /// True if the expectation is an alternative, whose messages have one JavaScript engine's
    /// wording without a mark.
    pub repaired: bool,
}

impl Rules<'_> {
    /// True if a place, or one around it, is ignored.
    fn skips(&self, path: &str) -> bool {
        let mut ends = path.rmatch_indices('/').map(|(at, _)| at);
        self.ignore.contains(path) || ends.any(|at| self.ignore.contains(&path[..at]))
    }
}

/// Prefix of the messages of that engine's JSON parser.
const ENGINE_WORDED: &[u8] = b"JSON Parse error: ";

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1.0)
}

fn differ(path: &str, expected: impl fmt::Debug, got: impl fmt::Debug) -> Option<Difference> {
    let cut = |text: String| match text.char_indices().nth(600) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    };
    Some(Difference {
        path: path.to_owned(),
        expected: cut(format!("{expected:?}")),
        got: cut(format!("{got:?}")),
    })
}

fn same_number(a: f64, b: f64, rules: &Rules<'_>) -> bool {
    a == b && (a != 0.0 || a.is_sign_negative() == b.is_sign_negative())
        || a.is_nan() && b.is_nan()
        || rules.inexact && close(a, b)
}

/// The first difference between a value in a vector's notation and a value.
pub(super) fn value_difference(
    expected: &Value,
    got: &Value,
    path: &str,
    rules: &Rules<'_>,
) -> Option<Difference> {
    if rules.skips(path) {
        return None;
    }
    match (expected, got) {
        (Value::Object(map), _) if marker(map).is_some() => marked(map, got, path, rules),
        (Value::Object(a), Value::Object(b)) => object_difference(a, b, path, rules),
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len())).find_map(|i| {
            let mut inner = path.to_owned();
            pointer::push_index(&mut inner, i);
            match (a.get(i), b.get(i)) {
                (Some(x), Some(y)) => value_difference(x, y, &inner, rules),
                _ if rules.skips(&inner) => None,
                _ => differ(path, expected, got),
            }
        }),
        (Value::Number(a), Value::Number(b)) if same_number(*a, *b, rules) => None,
        (Value::Number(_), Value::Number(_)) => differ(path, expected, got),
        (a, b) if a == b => None,
        (Value::String(a), Value::String(b))
            if rules.repaired && a.as_bytes().starts_with(ENGINE_WORDED) && !b.is_empty() =>
        {
            None
        }
        _ => differ(path, expected, got),
    }
}

fn object_difference(a: &Map, b: &Map, path: &str, rules: &Rules<'_>) -> Option<Difference> {
    for (key, x) in a {
        let mut inner = path.to_owned();
        pointer::push_key(&mut inner, &key.to_string_lossy());
        let y = b.get_bytes(key.as_bytes()).unwrap_or(&Value::Undefined);
        if let Some(difference) = value_difference(x, y, &inner, rules) {
            return Some(difference);
        }
    }
    b.iter().find_map(|(key, y)| {
        let extra = a.get_bytes(key.as_bytes()).is_none() && !y.is_undefined();
        let mut inner = path.to_owned();
        pointer::push_key(&mut inner, &key.to_string_lossy());
        if extra && !rules.skips(&inner) {
            differ(&inner, Value::Undefined, y)
        } else {
            None
        }
    })
}

fn marked(map: &Map, got: &Value, path: &str, rules: &Rules<'_>) -> Option<Difference> {
    let (name, value) = marker(map)?;
    let met = match (name, got) {
        ("$any", _) => true,
        ("$undefined", got) => got.is_undefined(),
        ("$number", Value::Number(n)) => same_number(special_number(value), *n, rules),
        ("$now", Value::Number(n)) => {
            (n - now_ms() - value.as_f64().unwrap_or(0.0)).abs() < NOW_SLACK_MS
        }
        ("$set", got) => return value_difference(value, got, path, rules),
        ("$date", got) => value == got,
        ("$engine", Value::String(text)) => !text.is_empty(),
        _ => false,
    };
    if met {
        None
    } else {
        differ(path, Value::Object(map.clone()), got)
    }
}

fn fuel_difference(
    expected: Option<&Value>,
    got: Fuel,
    path: &str,
    rules: &Rules<'_>,
) -> Option<Difference> {
    let expected = expected.filter(|_| !rules.skips(path))?;
    if matches!(expected, Value::Object(map) if matches!(marker(map), Some(("$any", _)))) {
        return None;
    }
    match expected.as_f64() {
        Some(n) if close(n, got.to_f64()) => None,
        _ => differ(path, expected, got.to_f64()),
    }
}

fn message_difference(
    expected: &Value,
    got: &Text,
    path: &str,
    rules: &Rules<'_>,
) -> Option<Difference> {
    value_difference(expected, &Value::String(got.clone()), path, rules)
}

/// The first difference between a vector's expectation and an outcome; `repaired` marks the
/// expectation as an alternative.
#[must_use]
pub fn outcome_difference(
    vector: &Vector,
    expect: &Value,
    repaired: bool,
    outcome: &EngineOutcome,
) -> Option<Difference> {
    let rules = Rules {
        ignore: &vector.ignore,
        inexact: vector.inexact,
        repaired,
    };
    if rules.skips("/expect") {
        return None;
    }
    let EngineOutcome::Ran {
        result,
        error,
        fuel_used,
        trace,
    } = outcome
    else {
        return rejected_difference(expect, outcome, &rules);
    };
    let spent = || {
        let wanted = expect.get("fuelUsed");
        fuel_difference(wanted, *fuel_used, "/expect/fuelUsed", &rules)
    };
    if let Some(thrown) = expect.get("thrown") {
        // v1 throws the error that we report as the outcome's error (D7).
        let message = thrown.get("message").unwrap_or(&Value::Undefined);
        return match error {
            Some(error) => {
                message_difference(message, &error.message, "/expect/thrown/message", &rules)
            }
            None if rules.skips("/expect/thrown") => None,
            None => differ("/expect/thrown", thrown, result),
        };
    }
    if expect.get("rejected").is_some() {
        return differ("/expect", "the program is rejected", result);
    }
    let none = Value::Null;
    let wanted = expect.get("error").unwrap_or(&none);
    if let Some(error) = error.as_ref().filter(|e| e.aborted) {
        // Of an abort only kind, op and fuel are compared (D24).
        let op = wanted.get("op").unwrap_or(&Value::Undefined);
        return message_difference(op, &error.op, "/expect/error/op", &rules).or_else(spent);
    }
    match (wanted, error) {
        _ if rules.skips("/expect/error") => {}
        (Value::Null, Some(error)) => return differ("/expect/error", wanted, error),
        (Value::Object(_), None) => return differ("/expect/error", wanted, result),
        (Value::Object(map), Some(error)) => {
            let message = map.get("message").unwrap_or(&none);
            let op = map.get("op").unwrap_or(&none);
            let difference =
                message_difference(message, &error.message, "/expect/error/message", &rules)
                    .or_else(|| message_difference(op, &error.op, "/expect/error/op", &rules));
            if difference.is_some() {
                return difference;
            }
        }
        _ => {}
    }
    value_difference(
        expect.get("result").unwrap_or(&Value::Undefined),
        result,
        "/expect/result",
        &rules,
    )
    .or_else(spent)
    .or_else(|| trace_difference(expect.get("trace"), trace.as_deref(), &rules))
}

fn rejected_difference(
    expect: &Value,
    outcome: &EngineOutcome,
    rules: &Rules<'_>,
) -> Option<Difference> {
    let EngineOutcome::Rejected { message } = outcome else {
        return None;
    };
    match expect.get("thrown") {
        _ if expect.get("rejected").is_some() => None,
        Some(thrown) => {
            let wanted = thrown.get("message").unwrap_or(&Value::Undefined);
            message_difference(
                wanted,
                &message.as_str().into(),
                "/expect/thrown/message",
                rules,
            )
        }
        None => differ("/expect", expect, format!("rejected: {message}")),
    }
}

fn trace_difference(
    expected: Option<&Value>,
    got: Option<&[EngineEvent]>,
    rules: &Rules<'_>,
) -> Option<Difference> {
    let expected = expected?.as_array()?;
    let got = got.unwrap_or_default();
    if rules.skips("/expect/trace") {
        return None;
    }
    let uneven = expected.len().min(got.len())..expected.len().max(got.len());
    let skipped = |i: usize| rules.skips(&format!("/expect/trace/{i}"));
    if !uneven.into_iter().all(skipped) {
        let ops: Vec<_> = got.iter().map(|e| e.op.to_string()).collect();
        let wanted: Vec<_> = expected.iter().map(|e| e.get("op").cloned()).collect();
        return differ("/expect/trace", wanted, ops);
    }
    expected
        .iter()
        .zip(got)
        .enumerate()
        .find_map(|(i, (wanted, event))| {
            let at = |key: &str| format!("/expect/trace/{i}/{key}");
            let part = |key: &str| wanted.get(key).unwrap_or(&Value::Undefined);
            let error = event.error.clone().map_or(Value::Null, Value::String);
            message_difference(part("op"), &event.op, &at("op"), rules)
                .or_else(|| value_difference(part("input"), &event.input, &at("input"), rules))
                .or_else(|| {
                    value_difference(
                        part("stateDiff"),
                        &event.state_diff,
                        &at("stateDiff"),
                        rules,
                    )
                })
                .or_else(|| value_difference(part("result"), &event.result, &at("result"), rules))
                .or_else(|| value_difference(part("error"), &error, &at("error"), rules))
                .or_else(|| {
                    fuel_difference(
                        wanted.get("fuelBefore"),
                        event.fuel_before,
                        &at("fuelBefore"),
                        rules,
                    )
                })
                .or_else(|| {
                    fuel_difference(
                        wanted.get("fuelAfter"),
                        event.fuel_after,
                        &at("fuelAfter"),
                        rules,
                    )
                })
        })
}

/// The difference between a condition's result and its expectation.
#[must_use]
pub fn condition_difference(
    expect: &Value,
    got: &Result<Value, String>,
    ignore: &BTreeSet<String>,
) -> Option<Difference> {
    let rules = Rules {
        ignore,
        inexact: false,
        repaired: false,
    };
    match (expect.get("expr"), expect.get("error"), got) {
        _ if rules.skips("/expect") => None,
        _ if expect.get("rejected").is_some() && got.is_err() => None,
        (Some(expr), _, Ok(node)) => value_difference(expr, node, "/expect/expr", &rules),
        (_, Some(error), Err(message)) => {
            let wanted = error.get("message").unwrap_or(&Value::Undefined);
            message_difference(
                wanted,
                &message.as_str().into(),
                "/expect/error/message",
                &rules,
            )
        }
        _ => differ("/expect", expect, got),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::read::parse;

    fn difference(expected: &str, got: &str) -> Option<String> {
        let ignore = BTreeSet::from(["/skip".to_owned()]);
        let rules = Rules {
            ignore: &ignore,
            inexact: false,
            repaired: false,
        };
        let value = |text: &str| parse(text.as_bytes()).expect("JSON");
        value_difference(
            &value(expected),
            &super::super::decode(&value(got)),
            "",
            &rules,
        )
        .map(|d| d.path)
    }

    #[test]
    fn values() {
        for (expected, got) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#),
            (r#"{"a":{"$undefined":true}}"#, "{}"),
            ("{}", r#"{"a":{"$undefined":true}}"#),
            (r#"{"$number":"NaN"}"#, r#"{"$number":"NaN"}"#),
            (r#"{"$engine":{"jsc":"a","v8":"b"}}"#, r#""c""#),
            (r#"{"skip":1}"#, r#"{"skip":2}"#),
            (r#"{"$any":true}"#, "[1]"),
        ] {
            assert_eq!(difference(expected, got), None, "{expected} {got}");
        }
        for (expected, got, path) in [
            (r#"{"a":[1,2]}"#, r#"{"a":[1,3]}"#, "/a/1"),
            ("{}", r#"{"x":1}"#, "/x"),
            (r#"{"$engine":{"jsc":"a","v8":"b"}}"#, r#""""#, ""),
            ("0.1", "0.10000000000000002", ""),
            ("0", r#"{"$number":"-0"}"#, ""),
            (r#"{"$function":true}"#, r#"{"$undefined":true}"#, ""),
        ] {
            assert_eq!(
                difference(expected, got).as_deref(),
                Some(path),
                "{expected} {got}"
            );
        }
    }

    #[test]
    fn fuel_is_close() {
        let used = Fuel::from_micro(400_000);
        let ignore = BTreeSet::from(["/expect/trace/1".to_owned()]);
        let rules = Rules {
            ignore: &ignore,
            inexact: false,
            repaired: false,
        };
        let differs = |n: f64, path| {
            let wanted = Value::Number(n);
            fuel_difference(Some(&wanted), used, path, &rules).is_some()
        };
        assert!(!differs(0.400_000_000_1, "/expect/fuelUsed"));
        assert!(differs(0.400_01, "/expect/fuelUsed"));
        assert!(!differs(9.0, "/expect/trace/1/fuelAfter"));
        assert!(differs(9.0, "/expect/trace/10/fuelAfter"));
    }

    #[test]
    fn what_is_ignored_is_not_compared() {
        let outcome = EngineOutcome::Ran {
            result: parse(br#"{"a":1,"b":[1,2]}"#).expect("JSON"),
            error: None,
            fuel_used: Fuel::from_micro(5),
            trace: Some(Vec::new()),
        };
        let met = |ignore: &str, expect: &str| {
            let text = format!(
                r#"{{"id":"x","generation":"v2","ast":{{}},"ignore":{ignore},"expect":{expect}}}"#
            );
            let vector = Vector::of_value(parse(text.as_bytes()).expect("JSON")).expect("a vector");
            outcome_difference(&vector, &vector.expect, false, &outcome).is_none()
        };
        let wrong = r#"{"result":{"a":2,"b":[1]},"error":{"message":"m","op":"o"},"fuelUsed":9,
                        "trace":[{"op":"seq"}]}"#;
        assert!(!met("[]", wrong));
        let all = r#"["/expect/result/a","/expect/result/b/1","/expect/error","/expect/fuelUsed",
                      "/expect/trace/0"]"#;
        assert!(met(all, wrong));
        assert!(met(r#"["/expect"]"#, wrong));
        for one in ["a", "b/1"] {
            assert!(!met(
                &all.replace(&format!("/expect/result/{one}"), "/x"),
                wrong
            ));
        }
        for one in ["error", "fuelUsed", "trace/0"] {
            assert!(!met(&all.replace(&format!("/expect/{one}"), "/x"), wrong));
        }
    }
}
