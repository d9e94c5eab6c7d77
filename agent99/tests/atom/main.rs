//! `#[atom]`: the generated items, and their behavior in programs.

mod attribute;
mod calls;
mod direct;
mod errors;
mod host;
mod literals;
mod prompt;
mod schema;
mod sets;
mod tool_calls;
mod tools;

use agent99::{AtomDef, Engine, Outcome, RunOptions, Value, json};

/// Runs one step with these atoms and returns its value.
fn run_step(atoms: impl IntoIterator<Item = AtomDef>, step: serde_json::Value) -> Outcome {
    run_step_with(atoms, step, json!({}), RunOptions::new())
}

fn run_step_with(
    atoms: impl IntoIterator<Item = AtomDef>,
    mut step: serde_json::Value,
    args: impl Into<Value>,
    options: RunOptions,
) -> Outcome {
    let mut set = agent99::core_atoms();
    atoms.into_iter().for_each(|atom| set.insert(atom));
    let engine = Engine::builder().atoms(set).build();
    step["result"] = json!("it");
    let program = json!({"op": "seq", "steps": [
        step,
        {"op": "return", "schema": {"type": "object", "properties": {"it": {}}}},
    ]});
    let agent = engine
        .compile(program.to_string())
        .unwrap_or_else(|refused| panic!("{refused:?}"));
    engine.run_sync(&agent, args, options)
}

/// The value of the step.
fn value(outcome: &Outcome) -> Value {
    assert_eq!(outcome.error, None);
    outcome
        .result
        .get("it")
        .cloned()
        .unwrap_or(Value::Undefined)
}

/// The message of the error that ended the run, and its op.
fn failure(outcome: &Outcome) -> (String, String) {
    let error = outcome.error.as_ref().expect("the run fails");
    (error.op.to_string(), error.message.to_string())
}
