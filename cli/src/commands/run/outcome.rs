//! The outcome of a run, as people and programs see it.

use crate::output;
use crate::pretty::pretty;
use a99_core::text::escape_for_terminal;
use agent99::{Diagnostics, Map, Outcome, RunError, Value};

/// The outcome as JSON: [`Outcome::to_json`], and `diagnostics`.
pub(super) fn outcome_json(
    outcome: &Outcome,
    diagnostics: &Diagnostics,
    place: Option<(u32, u32)>,
) -> Value {
    let mut json = outcome.to_json();
    if let Value::Object(map) = &mut json {
        if let (Some(error), Some(_)) = (map.get("error").cloned(), place) {
            map.insert("error", with_place(error, place));
        }
        map.insert("diagnostics", diagnostics.to_json());
    }
    json
}

/// The outcome as the last line of an event stream.
pub(super) fn as_event(outcome: Value) -> Value {
    let mut map = Map::new();
    map.insert("event", "outcome");
    if let Value::Object(members) = outcome {
        map.extend(members);
    }
    Value::Object(map)
}

/// Adds line and column to JSON about a place in a source other than JSON.
fn with_place(mut json: Value, place: Option<(u32, u32)>) -> Value {
    if let (Value::Object(map), Some((line, column))) = (&mut json, place) {
        map.insert("line", line);
        map.insert("column", column);
    }
    json
}

/// Prints the outcome for people.
pub(super) fn show(outcome: &Outcome, place: Option<(&str, (u32, u32))>) {
    for warning in &outcome.warnings {
        output::note("warning", &warning.to_string_lossy());
    }
    match &outcome.error {
        Some(error) => output::err(&error_text(error, place)),
        None => output::out(&format!("{}\n", pretty(&outcome.result.to_json_string()))),
    }
    output::note("fuel used", &outcome.fuel_used.to_string());
}

/// A failed run, in the format of the compiler's diagnostics.
pub(crate) fn error_text(error: &RunError, place: Option<(&str, (u32, u32))>) -> String {
    let shown = |text: &str| escape_for_terminal(text);
    let (code, message) = (error.code, error.message.to_string_lossy());
    let mut text = format!("error[{code}]: {}\n", shown(&message));
    let op = match &*error.op.to_string_lossy() {
        // The run itself, which is not a step of the program.
        "vm.run" => "the run".to_owned(),
        op => shown(op),
    };
    text += &match (&error.pointer, place) {
        (Some(pointer), Some((name, (line, column)))) => {
            let name = shown(name);
            format!("  --> {name}:{line}:{column} ({op}, {})\n", shown(pointer))
        }
        (Some(pointer), None) => format!("  --> {op} ({})\n", shown(pointer)),
        (None, _) => format!("  --> {op}\n"),
    };
    if let Some(help) = &error.help {
        text += &format!("  = help: {}\n", shown(help));
    }
    text
}
