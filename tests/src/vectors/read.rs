//! Reader of vectors: files, lines, and values beyond JSON.

use super::script::{HostAtom, Script};
use super::{DEFAULT_FUEL, RunSpec};
use a99_core::fuel::Fuel;
use a99_core::json::{Document, Limits};
use a99_core::value::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Subject of a vector.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program.
    Program,
    /// A condition text.
    Condition(String),
}

/// One vector.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Stable id.
    pub id: String,
    /// Title.
    pub title: String,
    /// True for the first generation, whose errors are thrown.
    pub first_generation: bool,
    /// Program or condition.
    pub subject: Subject,
    /// The outcome of the reference.
    pub expect: Value,
    /// Outcomes under repairs, by name.
    pub alternatives: BTreeMap<String, Value>,
    /// Pointers to ignored parts of the vector.
    pub ignore: BTreeSet<String>,
    /// Required features.
    pub requires: Vec<String>,
    /// True if numbers may differ in the last digits: the program calls an inexact function of
    /// `Math`.
    pub inexact: bool,
    whole: Value,
}

/// Functions of `Math` compared within a relative tolerance.
const INEXACT: [&str; 22] = [
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "exp", "expm1", "log", "log2", "log10", "log1p", "pow", "cbrt", "hypot",
];

/// Atoms whose time is that of their inner steps (decision D22).
const CONTAINERS: [&str; 15] = [
    "seq",
    "if",
    "while",
    "forEach",
    "try",
    "scope",
    "callLocal",
    "map",
    "filter",
    "find",
    "reduce",
    "memoize",
    "cache",
    "agentRun",
    "runCode",
];

/// Reads a file of vectors.
///
/// # Errors
/// A fault of the file, with its line.
pub fn read_file(path: &Path) -> Result<Vec<Vector>, String> {
    let text = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut vectors = Vec::new();
    for (number, line) in text.split(|b| *b == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let place = || format!("{}:{}", path.display(), number + 1);
        let value = parse(line).map_err(|e| format!("{}: {e}", place()))?;
        vectors.push(vector(value).ok_or_else(|| format!("{}: not a vector", place()))?);
    }
    Ok(vectors)
}

/// Parses one JSON text.
pub(super) fn parse(text: &[u8]) -> Result<Value, String> {
    let document = Document::parse(text, &Limits::default()).map_err(|d| d.render(None))?;
    Ok(document.to_value(document.root()))
}

fn text(value: &Value, key: &str) -> Option<String> {
    Some(value.get(key)?.as_text()?.to_string_lossy().into_owned())
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let items = value.get(key).and_then(Value::as_array).unwrap_or_default();
    items
        .iter()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect()
}

fn vector(whole: Value) -> Option<Vector> {
    let subject = match whole.get("kind").and_then(Value::as_str) {
        Some("condition") => Subject::Condition(text(&whole, "condition")?),
        _ => Subject::Program,
    };
    let mut alternatives = BTreeMap::new();
    if let Some(Value::Object(map)) = whole.get("alternatives") {
        for (name, outcome) in map {
            alternatives.insert(name.to_string_lossy().into_owned(), outcome.clone());
        }
    }
    Some(Vector {
        id: text(&whole, "id")?,
        title: text(&whole, "title").unwrap_or_default(),
        first_generation: whole.get("generation")?.as_str() == Some("v1"),
        subject,
        expect: whole.get("expect")?.clone(),
        alternatives,
        ignore: texts(&whole, "ignore").into_iter().collect(),
        requires: texts(&whole, "requires"),
        inexact: whole.get("ast").is_some_and(calls_inexact),
        whole,
    })
}

fn calls_inexact(ast: &Value) -> bool {
    match ast {
        Value::Array(items) => items.iter().any(calls_inexact),
        Value::Object(map) => map.iter().any(|(key, value)| {
            let named = *key == "method" || *key == "callee" || *key == "property";
            (named && value.as_str().is_some_and(|n| INEXACT.contains(&n)))
                || calls_inexact(value)
                || (*key == "op" && value.as_str() == Some("**"))
        }),
        _ => false,
    }
}

fn ops(ast: &Value, out: &mut BTreeSet<String>) {
    match ast {
        Value::Array(items) => items.iter().for_each(|v| ops(v, out)),
        Value::Object(map) => {
            if map.get("$expr").is_none()
                && let Some(op) = map.get("op").and_then(Value::as_str)
            {
                out.insert(op.to_owned());
            }
            map.values().for_each(|v| ops(v, out));
        }
        _ => {}
    }
}

/// Decodes a value in the notation of vectors, with markers replaced; sets and dates have their
/// JSON form.
#[must_use]
pub fn decode(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(decode).collect()),
        Value::Object(map) => match marker(map) {
            Some(("$undefined" | "$function" | "$cycle", _)) => Value::Undefined,
            Some(("$number", n)) => Value::Number(special_number(n)),
            Some(("$now", n)) => Value::Number(now_ms() + n.as_f64().unwrap_or(0.0)),
            Some(("$set", items)) => decode(items),
            Some(("$date", date)) => date.clone(),
            _ => Value::Object(map.iter().map(|(k, v)| (k.clone(), decode(v))).collect()),
        },
        other => other.clone(),
    }
}

/// Current time in milliseconds since the epoch.
pub(super) fn now_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |d| d.as_millis() as f64)
}

/// The number of a `$number` marker.
pub(super) fn special_number(value: &Value) -> f64 {
    match value.as_str() {
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        Some("-0") => -0.0,
        _ => f64::NAN,
    }
}

/// The one member of a marker object.
pub(super) fn marker(map: &Map) -> Option<(&'static str, &Value)> {
    const MARKERS: [&str; 9] = [
        "$undefined",
        "$number",
        "$now",
        "$set",
        "$date",
        "$function",
        "$cycle",
        "$engine",
        "$any",
    ];
    if map.len() != 1 {
        return None;
    }
    let (key, value) = map.iter().next()?;
    MARKERS.iter().find(|m| *key == **m).map(|m| (*m, value))
}

impl Vector {
    /// Reads a vector's JSON form.
    ///
    /// # Errors
    /// The value is not a vector.
    pub fn of_value(whole: Value) -> Result<Vector, String> {
        vector(whole).ok_or_else(|| "not a vector".to_owned())
    }

    /// Names of the host atoms that it registers.
    pub(super) fn host_atoms(&self) -> impl Iterator<Item = &str> {
        let atoms = self.whole.get("customAtoms").and_then(Value::as_array);
        let atoms = atoms.unwrap_or_default().iter();
        atoms.filter_map(|atom| atom.get("op").and_then(Value::as_str))
    }

    fn option(&self, key: &str) -> Option<Value> {
        self.whole.get("options")?.get(key).map(decode)
    }

    /// The program with all inputs, and a fresh script each time.
    ///
    /// # Errors
    /// A budget that is not an amount of fuel.
    pub fn run_spec(&self) -> Result<RunSpec, String> {
        let ast = self.whole.get("ast").unwrap_or(&Value::Null);
        let atoms: Vec<HostAtom> = HostAtom::read_all(self.whole.get("customAtoms"));
        let mut used = BTreeSet::new();
        ops(ast, &mut used);
        used.retain(|op| !CONTAINERS.contains(&op.as_str()) && !atoms.iter().any(|a| a.op == *op));
        let fuel = self
            .option("fuel")
            .and_then(|f| f.as_f64())
            .unwrap_or(DEFAULT_FUEL);
        let overrides = match self.option("costOverrides") {
            // Only numbers are prices; the facade accepts no other kind.
            Some(Value::Object(map)) => map
                .iter()
                .filter_map(|(op, price)| {
                    Some((op.to_string_lossy().into_owned(), price.as_f64()?))
                })
                .collect(),
            _ => Vec::new(),
        };
        let signal = self.option("signal").unwrap_or(Value::Undefined);
        let args = self.whole.get("args").map_or(Value::Undefined, decode);
        let script = Script::new(self.whole.get("capabilities"), &self.whole, &self.ignore);
        Ok(RunSpec {
            listener: None,
            program: Document::from_value(ast),
            args,
            fuel: Fuel::from_decimal(fuel).map_err(|e| e.to_string())?,
            timeout_ms: self.option("timeoutMs").and_then(|t| t.as_f64()),
            limited_atoms: used.into_iter().collect(),
            cost_overrides: overrides,
            quotas: match self.option("quotas") {
                Some(Value::Object(map)) => map
                    .iter()
                    .filter_map(|(op, n)| {
                        Some((op.to_string_lossy().into_owned(), n.as_f64()? as u64))
                    })
                    .collect(),
                _ => Vec::new(),
            },
            exact_equality: self
                .option("equality")
                .is_some_and(|e| e.as_str() == Some("exact")),
            context: self.option("context").unwrap_or(Value::Undefined),
            readable_context: match self.option("readableContext") {
                Some(Value::Array(paths)) => {
                    let paths = paths.iter().filter_map(Value::as_str);
                    paths.map(str::to_owned).collect()
                }
                _ => Vec::new(),
            },
            trace: self
                .option("trace")
                .is_some_and(|t| t.as_bool() == Some(true)),
            aborted: signal.get("aborted").and_then(Value::as_bool) == Some(true),
            abort_after_ms: signal.get("abortAfterMs").and_then(Value::as_f64),
            atoms,
            metered: self.requires.iter().any(|r| r == "metered"),
            script: Arc::new(Mutex::new(script)),
        })
    }
}
