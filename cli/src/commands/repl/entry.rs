//! Entries of `a99 repl` as programs.

use crate::failure::Failure;
use agent99::{Agent, Diagnostic, Diagnostics, Engine, Map, Outline, json, outline};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Name of entries in messages.
const NAME: &str = "<repl>";

/// Variable for the value of an entry, before it becomes `_`.
pub(super) const NEW_VALUE: &str = "_new";

/// Beginnings of JSON that is a step or an expression node; other objects are JavaScript.
const JSON_STARTS: [&str; 3] = ["\"op\"", "\"$expr\"", "\"$kind\""];

/// Keys of a step that name variables it sets.
const NAMING: [&str; 4] = ["key", "result", "keys", "catchParam"];

/// A parsed entry.
#[derive(Debug)]
pub(super) enum Entry {
    /// JavaScript: an expression or statements.
    Source { text: String, outline: Outline },
    /// A step whose value goes into `_`, if it has one; or an expression node, as an assignment.
    Step {
        step: serde_json::Value,
        /// Whether to show its value.
        value: bool,
    },
    /// A whole program or a `return`; its result is shown.
    Program(serde_json::Value),
}

/// Whether an entry is a step or an expression node in JSON.
pub(super) fn is_json(text: &str) -> bool {
    let inner = text.trim_start().strip_prefix('{').map(str::trim_start);
    inner.is_some_and(|inner| JSON_STARTS.iter().any(|start| inner.starts_with(start)))
}

impl Entry {
    pub(super) fn parse(text: &str, engine: &Engine) -> Result<Entry, Failure> {
        if is_json(text) {
            return Entry::of_json(text, engine);
        }
        Ok(Entry::Source {
            outline: outline(text),
            text: text.to_owned(),
        })
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
            return Ok(Entry::Step {
                step: json!({"op": "varSet", "key": NEW_VALUE, "value": value}),
                value: true,
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

    /// Whether the entry has a value to show, in [`NEW_VALUE`].
    pub(super) fn has_value(&self) -> bool {
        match self {
            Entry::Source { outline, .. } => outline.is_expression && outline.assigned.is_none(),
            Entry::Step { value, .. } => *value,
            Entry::Program(_) => false,
        }
    }

    /// Whether the program returns its result instead of the variables.
    pub(super) fn returns(&self) -> bool {
        matches!(self, Entry::Program(_))
    }

    /// The functions that the entry declares, with their text.
    pub(super) fn functions(&self) -> &[(String, String)] {
        match self {
            Entry::Source { outline, .. } => &outline.functions,
            _ => &[],
        }
    }

    /// Compiles the program of an entry: it takes the variables, runs the entry, and returns the
    /// variables. Places in findings are those of the entry.
    pub(super) fn compile(
        &self,
        engine: &Engine,
        variables: &Map,
        functions: &[(String, String)],
        written: &str,
    ) -> Result<Agent, Failure> {
        let (text, outline) = match self {
            Entry::Source { text, outline } => (text, outline),
            _ => {
                let program = self.program(variables).to_string();
                let agent = engine.compile(program);
                return agent.map_err(|found| rejected(found, written));
            }
        };
        let (source, at) = source(text, outline, variables, functions);
        let compiled = engine.compile_source(source.as_bytes());
        compiled.map_err(|mut found| {
            let first = found.iter().next().map(|one| (one.code, one.span.clone()));
            // A syntax error behind the entry has its place in the entry alone.
            if let Some((code, Some(span))) = first
                && span.end as usize > at + text.len()
                && let Err(alone) = engine.compile_source(text.as_bytes())
                && alone.iter().next().is_some_and(|one| one.code == code)
            {
                return rejected(alone, written);
            }
            for one in &mut found.0 {
                one.span = one.span.take().and_then(|span| {
                    let start = (span.start as usize).checked_sub(at)? as u32;
                    Some(start..(span.end as usize).checked_sub(at)? as u32)
                });
                one.region = None;
            }
            rejected(found, written)
        })
    }

    /// The program of an entry in JSON.
    fn program(&self, variables: &Map) -> serde_json::Value {
        let known: Vec<String> = variables
            .keys()
            .map(|k| k.to_string_lossy().into())
            .collect();
        let import = json!({"op": "varsImport", "keys": known});
        let mut names: BTreeSet<String> = known.into_iter().collect();
        names.remove("_");
        let step = match self {
            Entry::Program(program) if program["op"] == "seq" => return program.clone(),
            Entry::Program(step) => return json!({"op": "seq", "steps": [import, step]}),
            Entry::Source { .. } => json!({"op": "seq", "steps": []}),
            Entry::Step { step, value } => {
                names.extend(value.then(|| NEW_VALUE.to_owned()));
                bound(step, &mut names);
                step.clone()
            }
        };
        let back = json!({"op": "return", "schema": schema(names)});
        json!({"op": "seq", "steps": [import, step, back]})
    }

    /// The program for lint rules, if the entry is JSON. It declares the variables, so that unknown
    /// names get a warning.
    pub(super) fn declared(&self, variables: &Map) -> Option<serde_json::Value> {
        if matches!(self, Entry::Source { .. }) {
            return None;
        }
        let mut program = self.program(variables);
        if let Some(map) = program.as_object_mut()
            && !map.contains_key("inputSchema")
        {
            let names = variables.keys().map(|k| k.to_string_lossy().into());
            map.insert("inputSchema".to_owned(), schema(names));
        }
        Some(program)
    }
}

/// The source of an entry, and the offset of the entry in it.
fn source(
    text: &str,
    outline: &Outline,
    variables: &Map,
    functions: &[(String, String)],
) -> (String, usize) {
    let is_new = |name: &&str| {
        let declared = outline.functions.iter().map(|(name, _)| name);
        !outline
            .variables
            .iter()
            .chain(declared)
            .any(|new| new == *name)
    };
    let known: Vec<String> = variables
        .keys()
        .map(|key| key.to_string_lossy().into())
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).filter(is_new).collect();
    let mut source = format!(
        "export default async function agent({{ {} }}) {{\n",
        known.join(", ")
    );
    for (_, function) in functions.iter().filter(|(name, _)| is_new(&name.as_str())) {
        source.push_str(function);
        source.push('\n');
    }
    let mut names: BTreeSet<&str> = known.into_iter().collect();
    names.extend(outline.variables.iter().map(String::as_str));
    let assigned = outline.assigned.as_deref();
    if let Some(name) = assigned.filter(|name| !names.contains(name)) {
        source.push_str("let ");
        names.insert(name);
    } else if outline.is_expression && assigned.is_none() {
        let _ = write!(source, "const {NEW_VALUE} = (");
        names.insert(NEW_VALUE);
    }
    let at = source.len();
    source.push_str(text);
    if names.contains(NEW_VALUE) {
        source.push_str("\n)");
    }
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "_").collect();
    let _ = write!(source, "\nreturn {{ {} }}\n}}\n", names.join(", "));
    (source, at)
}

/// The schema of an object with these members.
fn schema(names: impl IntoIterator<Item = String>) -> serde_json::Value {
    let properties: serde_json::Map<_, _> =
        names.into_iter().map(|name| (name, json!({}))).collect();
    json!({"type": "object", "properties": properties})
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
    fn entries_are_json_or_source() {
        let engine = Engine::new();
        let parse = |text| Entry::parse(text, &engine);
        for text in ["[1, 2]", "{ a: 1 }", "{\"a\": 1}", "1 +"] {
            assert!(matches!(parse(text), Ok(Entry::Source { .. })), "{text}");
        }
        let step = parse(r#"{"op": "split", "str": "a", "sep": ","}"#);
        assert!(
            matches!(step, Ok(Entry::Step { value: true, .. })),
            "{step:?}"
        );
        assert!(matches!(
            parse(r#"{"op": "seq", "steps": []}"#),
            Ok(Entry::Program(_))
        ));
        assert!(parse("{\"op\": ").is_err());
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
