//! Entries of `a99 repl`: reads them, and turns them into programs.

use crate::failure::Failure;
use crate::output;
use agent99::{Diagnostic, Diagnostics, Engine, Map, expression, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, Read as _};

/// Most bytes of an entry.
const MAX_BYTES: u64 = 1 << 20;

/// Name of entries in messages.
const NAME: &str = "<repl>";

/// Variable for the value of a step, before it becomes `_`.
pub(super) const NEW_VALUE: &str = "_new";

/// Keys of a step that name variables it sets.
const NAMING: [&str; 4] = ["key", "result", "keys", "catchParam"];

/// Reads entries from standard input.
pub(super) struct Reader {
    interactive: bool,
}

impl Reader {
    /// Prompts if a person types.
    pub(super) fn new(interactive: bool) -> Reader {
        Reader { interactive }
    }

    /// Reads the next entry: a line, or several until the brackets of JSON are closed.
    pub(super) fn next(&mut self) -> Result<Option<String>, Failure> {
        let mut entry = String::new();
        loop {
            if self.interactive {
                output::err_plain(if entry.is_empty() { "> " } else { ". " });
            }
            let Some(line) = line(MAX_BYTES - entry.len() as u64)? else {
                return Ok(Some(entry).filter(|entry| !entry.is_empty()));
            };
            entry.push_str(&line);
            if !is_open(&entry) {
                return Ok(Some(entry));
            }
        }
    }
}

fn line(most: u64) -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    let read = io::stdin()
        .lock()
        .take(most + 1)
        .read_until(b'\n', &mut bytes);
    read.map_err(|error| Failure::about("<stdin>", error))?;
    if bytes.len() as u64 > most {
        let text = format!("an entry has more than {MAX_BYTES} bytes");
        return Err(Failure::about("<stdin>", text));
    }
    let text = String::from_utf8(bytes).map_err(|error| Failure::about("<stdin>", error))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Whether the JSON continues on the next line.
fn is_open(text: &str) -> bool {
    let text = text.trim_start();
    if !text.starts_with(['{', '[']) {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0i64, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

/// A parsed entry.
#[derive(Debug)]
pub(super) enum Entry {
    /// An assignment.
    Set {
        /// The variable; `_` if the entry names no variable.
        name: String,
        /// The expression node or literal.
        value: serde_json::Value,
    },
    /// A step whose value goes into `_`, if it has one.
    Step {
        step: serde_json::Value,
        /// Whether to show its value.
        value: bool,
    },
    /// A whole program or a `return`; its result is shown.
    Program(serde_json::Value),
}

impl Entry {
    pub(super) fn parse(text: &str, engine: &Engine) -> Result<Entry, Failure> {
        if text.starts_with(['{', '[']) {
            return Entry::of_json(text, engine);
        }
        let (name, text) = assignment(text).unwrap_or(("_", text));
        match expression(text) {
            Ok(value) => Ok(Entry::Set {
                name: name.to_owned(),
                value,
            }),
            Err(diagnostics) => Err(rejected(diagnostics, text)),
        }
    }

    fn of_json(text: &str, engine: &Engine) -> Result<Entry, Failure> {
        // Parsed by the engine's reader for its diagnostics.
        let limits = agent99::ReadLimits::default();
        if let Err(diagnostics) = a99_core::json::Document::parse(text, &limits) {
            return Err(rejected(diagnostics, text));
        }
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| Failure::about(NAME, error))?;
        let op = value.get("op").and_then(|op| op.as_str());
        let is_node = value.get("$expr").is_some() || value.get("$kind").is_some();
        let Some(op) = op.filter(|_| !is_node) else {
            return Ok(Entry::Set {
                name: "_".to_owned(),
                value,
            });
        };
        if matches!(op, "seq" | "return") {
            return Ok(Entry::Program(value));
        }
        // A step without a value leaves `NEW_VALUE` unbound.
        let takes_value = engine.atoms().get(op).is_some() && value.get("result").is_none();
        let mut step = value;
        if takes_value && let Some(map) = step.as_object_mut() {
            map.insert("result".to_owned(), NEW_VALUE.into());
        }
        Ok(Entry::Step {
            step,
            value: takes_value,
        })
    }

    /// The variable that holds the value to show, if any.
    pub(super) fn value_name(&self) -> Option<&str> {
        match self {
            Entry::Set { name, .. } if name == "_" => Some("_"),
            Entry::Step { value: true, .. } => Some(NEW_VALUE),
            _ => None,
        }
    }

    /// Whether the program returns its result instead of the variables.
    pub(super) fn returns(&self) -> bool {
        matches!(self, Entry::Program(_))
    }

    /// The program: it takes the variables, runs the entry, and returns the variables.
    pub(super) fn program(&self, variables: &Map) -> serde_json::Value {
        let known: Vec<String> = variables
            .keys()
            .map(|k| k.to_string_lossy().into())
            .collect();
        let import = json!({"op": "varsImport", "keys": known});
        let mut names: BTreeSet<String> = known.into_iter().collect();
        let step = match self {
            Entry::Program(program) if program["op"] == "seq" => return program.clone(),
            Entry::Program(step) => return json!({"op": "seq", "steps": [import, step]}),
            Entry::Set { name, value } => {
                names.insert(name.clone());
                json!({"op": "varSet", "key": name, "value": value})
            }
            Entry::Step { step, value } => {
                names.extend(value.then(|| NEW_VALUE.to_owned()));
                bound(step, &mut names);
                step.clone()
            }
        };
        let back = json!({"op": "return", "schema": schema(names)});
        json!({"op": "seq", "steps": [import, step, back]})
    }

    /// The program for lint rules. It declares the variables, so that unknown names get a warning.
    /// A run would refuse numbers that are not finite.
    pub(super) fn declared(&self, variables: &Map) -> serde_json::Value {
        let mut program = self.program(variables);
        if let Some(map) = program.as_object_mut()
            && !map.contains_key("inputSchema")
        {
            let names = variables.keys().map(|k| k.to_string_lossy().into());
            map.insert("inputSchema".to_owned(), schema(names));
        }
        program
    }
}

/// The schema of an object with these members.
fn schema(names: impl IntoIterator<Item = String>) -> serde_json::Value {
    let properties: serde_json::Map<_, _> =
        names.into_iter().map(|name| (name, json!({}))).collect();
    json!({"type": "object", "properties": properties})
}

/// Splits `name = expression` into variable and expression.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let name = name.trim_end();
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let is_name = !name.is_empty()
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && !rest.starts_with(['=', '>'])).then_some((name, rest))
}

/// Collects the names that a step and its inner steps may bind.
fn bound(step: &serde_json::Value, names: &mut BTreeSet<String>) {
    use serde_json::Value as Json;
    let mut left = vec![step];
    while let Some(value) = left.pop() {
        match value {
            Json::Array(items) => left.extend(items),
            Json::Object(map) => {
                for (key, value) in map {
                    match value {
                        Json::String(name) if NAMING.contains(&key.as_str()) => {
                            names.insert(name.clone());
                        }
                        Json::Object(inner) if key == "vars" || key == "keys" => {
                            names.extend(inner.keys().cloned());
                        }
                        Json::Array(list) if key == "keys" => {
                            names.extend(list.iter().filter_map(Json::as_str).map(str::to_owned));
                        }
                        _ => {}
                    }
                    left.push(value);
                }
            }
            _ => {}
        }
    }
}

/// The refusal of an entry, with positions in its text.
pub(super) fn rejected(diagnostics: Diagnostics, text: &str) -> Failure {
    let in_entry = |found: &Diagnostic| {
        let end = found.span.as_ref().map_or(0, |span| span.end as usize);
        end <= text.len()
    };
    let diagnostics: Diagnostics = diagnostics
        .into_iter()
        .map(|mut found| {
            if !in_entry(&found) {
                found.span = None;
                found.region = None;
            }
            found
        })
        .collect();
    Failure::Rejected {
        diagnostics,
        name: NAME.to_owned(),
        source: text.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_apart() {
        assert_eq!(assignment("a = 1"), Some(("a", " 1")));
        assert_eq!(assignment("a == 1"), None);
        assert_eq!(assignment("a.b = 1"), None);
        assert_eq!(assignment("1 = 1"), None);
        assert!(is_open("{\"a\": [") && !is_open("{\"a\": \"[\"}") && !is_open("a[1"));
        let engine = Engine::new();
        let parse = |text| Entry::parse(text, &engine);
        assert!(matches!(parse("[1, 2]"), Ok(Entry::Set { .. })));
        let step = parse(r#"{"op": "split", "str": "a", "sep": ","}"#);
        assert!(
            matches!(step, Ok(Entry::Step { value: true, .. })),
            "{step:?}"
        );
        assert!(matches!(
            parse(r#"{"op": "seq", "steps": []}"#),
            Ok(Entry::Program(_))
        ));
        assert!(matches!(parse("1 +"), Err(Failure::Rejected { .. })));
    }

    #[test]
    fn bound_names() {
        let step = json!({"op": "if", "then": [
            {"op": "varSet", "key": "a"}, {"op": "x", "result": "b"},
            {"op": "varsLet", "vars": {"c": 1}}, {"op": "varsImport", "keys": ["d"]}]});
        let mut names = BTreeSet::new();
        bound(&step, &mut names);
        assert_eq!(names.into_iter().collect::<String>(), "abcd");
        let program = Entry::Program(json!({"op": "return"})).program(&Map::new());
        assert_eq!(program["steps"][0], json!({"op": "varsImport", "keys": []}));
    }
}
