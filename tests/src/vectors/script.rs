//! Scripted capabilities: the expected calls of a program, in order, and their answers. One
//! script serves every engine.

use super::compare;
use super::read::decode;
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// A script that several capability adapters share.
pub type SharedScript = Arc<Mutex<Script>>;

/// A host atom of a vector.
#[derive(Clone, Debug)]
pub struct HostAtom {
    /// Its name.
    pub op: String,
    /// Its price in units of fuel.
    pub cost: f64,
    /// Its time limit in milliseconds; 0 for none.
    pub timeout_ms: f64,
}

impl HostAtom {
    pub(super) fn read_all(value: Option<&Value>) -> Vec<HostAtom> {
        let number = |atom: &Value, key: &str| atom.get(key).map(decode).and_then(|n| n.as_f64());
        let atoms = value.and_then(Value::as_array).unwrap_or_default();
        atoms
            .iter()
            .map(|atom| HostAtom {
                op: atom
                    .get("op")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                cost: number(atom, "cost").unwrap_or(0.0),
                timeout_ms: number(atom, "timeoutMs").unwrap_or(0.0),
            })
            .collect()
    }
}

/// An answer of the script: a value or an error text, and its delay in milliseconds.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The value, or the message.
    pub result: Result<Value, Text>,
    /// Milliseconds.
    pub delay_ms: f64,
}

/// The script of one run.
#[derive(Debug, Default)]
pub struct Script {
    /// Existing methods; `None` grants no capabilities at all.
    provides: Option<Vec<String>>,
    calls: Vec<Value>,
    at: usize,
    /// For each host atom its place in the vector, its script and the number of used entries.
    atoms: HashMap<String, (usize, Vec<Value>, usize)>,
    ignore: BTreeSet<String>,
    problems: Vec<String>,
    log: Vec<(String, Value)>,
}

fn reply(entry: &Value) -> Reply {
    let message = entry.get("error").map(|e| match e.get("message") {
        Some(Value::String(text)) => text.clone(),
        _ => Text::from("undefined"),
    });
    Reply {
        result: match message {
            Some(message) => Err(message),
            None => Ok(entry.get("result").map_or(Value::Undefined, decode)),
        },
        delay_ms: entry.get("delayMs").and_then(Value::as_f64).unwrap_or(0.0),
    }
}

/// A value without undefined members, for comparing arguments.
fn tidy(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(tidy).collect()),
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(k, v)| !v.is_undefined() && **k != "signal")
                .map(|(k, v)| (k.clone(), tidy(v)))
                .collect(),
        ),
        other => other.clone(),
    }
}

impl Script {
    pub(super) fn new(
        capabilities: Option<&Value>,
        whole: &Value,
        ignore: &BTreeSet<String>,
    ) -> Script {
        let list = |v: &Value, key: &str| {
            v.get(key)
                .and_then(Value::as_array)
                .unwrap_or_default()
                .to_vec()
        };
        let mut script = Script {
            ignore: ignore.clone(),
            ..Script::default()
        };
        if let Some(capabilities) = capabilities {
            let names = list(capabilities, "provides");
            let names = names.iter().filter_map(|n| n.as_str().map(str::to_owned));
            script.provides = Some(names.collect());
            script.calls = list(capabilities, "calls");
        }
        for (place, atom) in whole
            .get("customAtoms")
            .and_then(Value::as_array)
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let op = atom.get("op").and_then(Value::as_str).unwrap_or_default();
            let calls = list(atom, "calls");
            script.atoms.insert(op.to_owned(), (place, calls, 0));
        }
        script
    }

    /// True if a method exists, such as `store.get`.
    #[must_use]
    pub fn provides(&self, method: &str) -> bool {
        self.provides.iter().flatten().any(|m| m == method)
    }

    /// All methods that exist.
    #[must_use]
    pub fn provided(&self) -> Vec<String> {
        self.provides.iter().flatten().cloned().collect()
    }

    /// True if any method of a capability exists, such as `store`.
    #[must_use]
    pub fn provides_any(&self, capability: &str) -> bool {
        let prefix = format!("{capability}.");
        self.provides
            .iter()
            .flatten()
            .any(|m| m == capability || m.starts_with(&prefix))
    }

    fn unexpected(&mut self, what: String) -> Reply {
        self.problems.push(what.clone());
        Reply {
            result: Err(what.into()),
            delay_ms: 0.0,
        }
    }

    /// Answers a call of a capability.
    pub fn call(&mut self, method: &str, args: &[Value]) -> Reply {
        let mut args: Vec<Value> = args.iter().map(tidy).collect();
        while args.last().is_some_and(Value::is_undefined) {
            args.pop();
        }
        let args = Value::Array(args);
        self.log.push((method.to_owned(), args.clone()));
        let n = self.at;
        let Some(entry) = self.calls.get(n).cloned() else {
            return self.unexpected(format!("call {n}: {method}{args:?} is not in the script"));
        };
        self.at += 1;
        let named = format!("/capabilities/calls/{n}/method");
        if entry.get("method").and_then(Value::as_str) != Some(method)
            && !self.ignore.contains(&named)
        {
            return self.unexpected(format!("call {n}: {method}{args:?}, scripted is {entry:?}"));
        }
        let mut wanted = entry
            .get("args")
            .and_then(Value::as_array)
            .unwrap_or_default()
            .to_vec();
        while wanted.last().is_some_and(|a| decode(a).is_undefined()) {
            wanted.pop();
        }
        let base = format!("/capabilities/calls/{n}/args");
        let rules = compare::Rules {
            ignore: &self.ignore,
            inexact: false,
            repaired: false,
        };
        if let Some(difference) =
            compare::value_difference(&Value::Array(wanted), &args, &base, &rules)
        {
            // The run continues as scripted, so that its outcome can be reported.
            self.problems
                .push(format!("call {n} of {method}: {difference}"));
        }
        reply(&entry)
    }

    /// Answers an execution of a host atom.
    pub fn atom(&mut self, op: &str, input: &Value) -> Reply {
        self.log.push((op.to_owned(), tidy(input)));
        let Some((place, calls, at)) = self.atoms.get_mut(op) else {
            return self.unexpected(format!("no host atom {op}"));
        };
        let n = *at;
        *at += 1;
        let Some(entry) = calls.get(n).cloned() else {
            return self.unexpected(format!("execution {n} of {op} is not in the script"));
        };
        let wanted = entry.get("input").unwrap_or(&Value::Undefined);
        let base = format!("/customAtoms/{place}/calls/{n}/input");
        let rules = compare::Rules {
            ignore: &self.ignore,
            inexact: false,
            repaired: false,
        };
        if let Some(difference) = compare::value_difference(wanted, &tidy(input), &base, &rules) {
            self.problems
                .push(format!("execution {n} of {op}: {difference}"));
        }
        reply(&entry)
    }

    /// Every call so far, in order, with its arguments.
    #[must_use]
    pub fn log(&self) -> &[(String, Value)] {
        &self.log
    }

    /// Errors of the run, including unused entries.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.problems.clone();
        if self.at < self.calls.len() {
            problems.push(format!(
                "{} of {} scripted calls were made",
                self.at,
                self.calls.len()
            ));
        }
        for (op, (_, calls, at)) in &self.atoms {
            if *at < calls.len() {
                problems.push(format!(
                    "{at} of {} executions of {op} were made",
                    calls.len()
                ));
            }
        }
        problems
    }
}
