//! The direct path of numbers, booleans and texts between registers and functions: results
//! and prices equal those of the slow path by values, serde and a check of the declared
//! schema.

use crate::run_step_with;
use agent99::{AtomDecl, CostModel, RunOptions, Text, Value, atom, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Atoms that return their input: of a type that fits a register, and of an equivalent type
/// that does not.
macro_rules! pairs {
    ($($module:ident $kind:ty,)*) => {
        $(#[allow(dead_code, reason = "nobody builds a step of these")]
        mod $module {
            use super::*;

            #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
            #[serde(transparent)]
            pub(super) struct Long($kind);

            /// Gives what it is given.
            #[atom(name = "same", cost = 1)]
            pub(super) fn direct(x: $kind) -> $kind {
                x
            }

            /// Gives what it is given.
            #[atom(name = "same", cost = 1)]
            pub(super) fn long(x: Long) -> Long {
                x
            }
        })*

        const PAIRS: &[(AtomDecl, AtomDecl)] = &[$(($module::DIRECT, $module::LONG)),*];
    };
}
pairs! {
    double f64, float f32, flag bool, byte u8, short i16, int i32, long_int i64, large u64,
    size usize, text String, maybe_double Option<f64>, maybe_byte Option<u8>,
    maybe_flag Option<bool>, maybe_text Option<String>,
}

/// Several inputs, of which some may be left out.
#[atom(name = "several", cost = 1)]
fn several(
    text: &str,
    #[atom(default = 3)] count: u8,
    #[atom(default = "-".to_owned())] between: String,
) -> Result<String, String> {
    match count {
        0 => Err(format!("no {text}")),
        _ => Ok(vec![text; usize::from(count)].join(&between)),
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
struct LongText(String);

/// Several inputs, of which some may be left out.
#[atom(name = "several", cost = 1)]
fn several_long(
    text: LongText,
    #[atom(default = 3)] count: u8,
    #[atom(default = "-".to_owned())] between: String,
) -> Result<LongText, String> {
    several(&text.0, count, between).map(LongText)
}

/// The value, the error and the price of a program with one step.
fn outcome(
    atom: AtomDecl,
    step: &serde_json::Value,
    args: &Value,
    options: &RunOptions,
) -> (Value, Option<String>, agent99::Fuel) {
    let outcome = run_step_with([atom.def()], step.clone(), args.clone(), options.clone());
    let error = outcome.error.map(|e| format!("{}: {}", e.code, e.message));
    (outcome.result, error, outcome.fuel_used)
}

fn assert_same(pair: &(AtomDecl, AtomDecl), step: &serde_json::Value, args: &Value) {
    let least = || RunOptions::new().fuel(1.0).expect("a budget");
    let flat = || RunOptions::new().cost_model(CostModel::Flat);
    for options in [RunOptions::new(), flat(), least()] {
        // Never times out.
        let options = options.timeout_ms(600_000);
        let (direct, long) = pair;
        assert_eq!(
            outcome(*direct, step, args, &options),
            outcome(*long, step, args, &options),
            "{args:?}"
        );
    }
    let (direct, long) = pair;
    assert_eq!(direct.input_schema(), long.input_schema());
}

#[test]
fn values_errors_and_fuel_are_those_of_the_long_way() {
    let lone = Value::String(Text::from_wtf8(vec![b'x', 0xED, 0xA0, 0x80]));
    let mut values = vec![Value::Undefined, Value::Null, lone];
    values.extend([true, false].map(Value::Bool));
    let numbers = [
        0.0, -0.0, 1.0, -1.0, 0.5, 255.0, 256.0, 70_000.0, 3e9, -3e9, 1e17, 1.9e19, -1e300,
    ];
    values.extend(numbers.map(Value::Number));
    values.extend([f64::NAN, f64::INFINITY].map(Value::Number));
    values.extend(["", "text", "ä€😀 \"\n"].map(Value::from));
    values.extend(["long ".repeat(4_000)].map(Value::from));
    values.extend([json!([1]), json!({"a": 1})].map(Value::from));
    let step = json!({"op": "same", "x": {"$kind": "arg", "path": "x"}});
    for value in values {
        let args = Value::Object([("x", value)].into_iter().collect());
        for pair in PAIRS {
            assert_same(pair, &step, &args);
        }
    }
}

#[test]
fn defaults_stand_in_on_both_ways() {
    let pair = (SEVERAL, SEVERAL_LONG);
    for step in [
        json!({"op": "several", "text": "a"}),
        json!({"op": "several", "text": "a", "count": null, "between": ", "}),
        json!({"op": "several", "text": "ä", "count": 2, "between": null}),
        json!({"op": "several", "text": "a", "count": 0}),
        json!({"op": "several", "text": "a", "count": 300}),
        json!({"op": "several", "count": 1}),
    ] {
        assert_same(&pair, &step, &json!({}).into());
    }
    let step = json!({"op": "several", "text": "a"});
    let (result, error, _) = outcome(SEVERAL, &step, &json!({}).into(), &RunOptions::new());
    assert_eq!((result.to_json(), error), (json!({"it": "a-a-a"}), None));
}
