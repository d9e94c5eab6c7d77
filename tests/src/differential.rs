//! Differential test of one program on the oracle, on the machine, and on the machine through
//! an `.a99b` file: all host-visible results must agree.
//!
//! Compared are the result, the error with its op, fuel to the micro-unit, the calls of host
//! atoms and capabilities in order with their arguments, and the trace. Not compared:
//!
//! * message and fuel of a run that returns a cyclic value;
//! * texts whose wording is specific to one JavaScript engine, which programs should not rely
//!   on (`worded`), in errors and wherever a program caught one;
//! * a vector whose run reached an atom of a host, which the oracle does not judge;
//! * the overdraft of an exhausted budget in the metered model, where long texts are paid for
//!   piece by piece.

use crate::generate::Case;
use crate::vectors::{
    ArtifactEngine, Engine, EngineEvent, EngineOutcome, OracleEngine, RunSpec, Vector, VmEngine,
};
use a99_core::fuel::Fuel;
use a99_core::value::Value;

/// Trace text of a cyclic value.
const NOT_SHOWN: &str = "[not shown]";

/// True if an error is about a cyclic result.
fn is_cyclic(message: &str) -> bool {
    message.contains("value contains a cycle") || message.contains("value is cyclic")
}

/// Placeholder for texts that engines word differently.
const WORDED: &str = "(a text of the engine)";

/// The message of an exhausted budget.
const OUT_OF_FUEL: &str = "Out of Fuel";

/// Outcome of a run that the oracle does not judge: random programs have none.
const NOT_JUDGED: &str = "the oracle does not judge it";

/// A timeout longer than any of these runs, in milliseconds.
const NO_TIMEOUT_MS: f64 = 600_000.0;

/// Most trace events: the machine alone drops the first ones of longer traces.
const MOST_EVENTS: usize = 1_000;

/// Host-visible results of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    /// Empty if the engine does not judge the run.
    outcome: Vec<(String, String)>,
}

/// Describes the engines' difference on a case; `None` if they agree.
#[must_use]
pub fn difference(case: &Case) -> Option<String> {
    difference_of(&case.to_value())
}

/// Like [`difference`], for a case in the format of vectors.
#[must_use]
pub fn difference_of(whole: &Value) -> Option<String> {
    match Vector::of_value(whole.clone()) {
        // Without the timeout that little fuel implies, which is real time.
        Ok(vector) => difference_with(&vector, &|spec| {
            spec.timeout_ms = spec.timeout_ms.or(Some(NO_TIMEOUT_MS));
        }),
        Err(why) => Some(why),
    }
}

/// Compares the engines on a vector whose budget ends at one of the moments in its trace, or
/// right before or after one; tries `most` of these.
///
/// # Errors
/// The first difference, with its budget.
pub fn difference_at_ends(vector: &Vector, metered: bool, most: usize) -> Result<(), String> {
    let change = |fuel: Option<Fuel>| {
        move |spec: &mut RunSpec| {
            spec.trace = true;
            spec.metered |= metered;
            // Without the timeout that little fuel implies, which is real time.
            spec.timeout_ms = Some(NO_TIMEOUT_MS);
            spec.fuel = fuel.unwrap_or(spec.fuel);
        }
    };
    let mut spec = vector.run_spec()?;
    change(None)(&mut spec);
    let given = spec.fuel.micro();
    let EngineOutcome::Ran {
        trace, fuel_used, ..
    } = VmEngine.run_program(spec)
    else {
        return Ok(());
    };
    let events = trace.unwrap_or_default();
    if events.len() > MOST_EVENTS {
        return Ok(());
    }
    let moments = events.iter().flat_map(|e| [e.fuel_before, e.fuel_after]);
    let mut budgets: Vec<i64> = moments
        .map(|left| given - left.micro())
        .chain([fuel_used.micro()])
        .flat_map(|used| [used - 1, used, used + 1])
        .filter(|budget| (1..given).contains(budget))
        .collect();
    budgets.sort_unstable();
    budgets.dedup();
    let step = budgets.len().div_ceil(most).max(1);
    for micro in budgets.into_iter().step_by(step) {
        let fuel = Fuel::from_micro(micro);
        if let Some(why) = difference_with(vector, &change(Some(fuel)))
            && why != NOT_JUDGED
        {
            return Err(format!("{}: budget {fuel}: {why}", vector.id));
        }
    }
    Ok(())
}

/// The engines' difference on a vector with changed options.
fn difference_with(vector: &Vector, change: &dyn Fn(&mut RunSpec)) -> Option<String> {
    let vm = match see(&VmEngine, vector, change) {
        Ok(vm) => vm,
        Err(why) => return Some(why),
    };
    let others: [&dyn Engine; 2] = [&ArtifactEngine, &OracleEngine];
    others.into_iter().find_map(|other| {
        let seen = match see(other, vector, change) {
            Ok(seen) => seen,
            Err(why) => return Some(why),
        };
        if seen.outcome.is_empty() {
            return Some(NOT_JUDGED.to_owned());
        }
        let pairs = seen.outcome.iter().zip(&vm.outcome);
        let name = other.name();
        pairs
            .clone()
            .find(|(a, b)| a != b && !b.1.contains(NOT_SHOWN))
            .map(|(a, b)| format!("{}\n  {name} {}\n  vm     {} {}", a.0, a.1, b.0, b.1))
            .or_else(|| {
                let (a, b) = (seen.outcome.len(), vm.outcome.len());
                (a != b).then(|| format!("{a} things seen of {name}, {b} of the VM"))
            })
    })
}

fn see(
    engine: &dyn Engine,
    vector: &Vector,
    change: &dyn Fn(&mut RunSpec),
) -> Result<Seen, String> {
    let mut spec = vector.run_spec()?;
    change(&mut spec);
    let (script, fuel, metered) = (spec.script.clone(), spec.fuel, spec.metered);
    let made = engine.run_program(spec);
    let mut outcome = Vec::new();
    let mut say = |what: &str, shown: String| outcome.push((what.to_owned(), shown));
    match made {
        EngineOutcome::NotJudged => return Ok(Seen { outcome }),
        EngineOutcome::Rejected { message } => {
            // The order of several diagnostics is unspecified.
            say(
                "rejected",
                String::from(if message.is_empty() { "" } else { "yes" }),
            );
        }
        EngineOutcome::Ran {
            result,
            error,
            fuel_used,
            trace,
        } => {
            let out = error.as_ref().is_some_and(|e| e.message == *OUT_OF_FUEL);
            if error
                .as_ref()
                .is_some_and(|e| is_cyclic(&e.message.to_string()))
            {
                // The progress of copying such a value is unspecified.
                say("error", "a cycle".to_owned());
                return Ok(Seen { outcome });
            }
            match &error {
                Some(e) => say(
                    "error",
                    format!("{} at {}", worded(&e.message.to_string()), e.op),
                ),
                None => say("result", show(&result)),
            }
            let overdrawn = metered && out && fuel_used.micro() >= fuel.micro();
            say(
                "fuel",
                if overdrawn {
                    "all".into()
                } else {
                    fuel_used.to_string()
                },
            );
            for (i, event) in trace.unwrap_or_default().iter().enumerate() {
                say(&format!("trace {i}"), show_event(event, overdrawn));
            }
        }
    }
    let script = script.lock().unwrap_or_else(|e| e.into_inner());
    for (i, (method, args)) in script.log().iter().enumerate() {
        say(&format!("call {i}"), format!("{method} {}", show(args)));
    }
    Ok(Seen { outcome })
}

fn show_event(e: &EngineEvent, overdrawn: bool) -> String {
    let after = if overdrawn && e.fuel_after.micro() <= 0 {
        "nothing".to_owned()
    } else {
        e.fuel_after.to_string()
    };
    let error = e.error.as_ref().map(|text| worded(&text.to_string()));
    format!(
        "{} input {} diff {} result {} error {error:?} fuel {} to {after}",
        e.op,
        show(&e.input),
        show(&e.state_diff),
        // The key of a body is engine-specific.
        match e.op == "hash" && e.input.get("value").is_some_and(|v| v.as_array().is_some()) {
            true => "a digest".to_owned(),
            false => show(&e.result),
        },
        e.fuel_before,
    )
}

/// A value with engine-specific texts replaced.
fn show(value: &Value) -> String {
    match value {
        Value::Undefined => "undefined".to_owned(),
        Value::String(text) => format!("{:?}", worded(&format!("{text:?}"))),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let mut members: Vec<String> = map
                .iter_js_order()
                .filter(|(_, v)| !v.is_undefined())
                // The expiry of a cached value depends on the clock.
                .map(|(k, v)| match *k == "_exp" {
                    true => "_exp".to_owned(),
                    false => format!("{k:?}:{}", show(v)),
                })
                .collect();
            // The order of own variables in a state is unspecified.
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        Value::Number(n) if *n == 0.0 && n.is_sign_negative() => "-0".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Prefixes of texts that JavaScript engines word differently.
const BEGINNINGS: &[&str] = &[
    "JSON Parse error",
    "undefined is not",
    "null is not",
    "Type error",
    "Array.from requires",
    "Object.",
    "Array.prototype.",
    "reduce of empty",
    "reduceRight of empty",
    "Cannot flatten",
    "JSON.stringify cannot",
];

/// Parts of such texts.
const PARTS: &[&str] = &[
    // Expiry of a cached value, in a message of the script.
    "_exp",
    "is not an object",
    "is not a function",
    "is not iterable",
    "callback must be",
    "Unexpected token",
];

fn worded(text: &str) -> String {
    let bare = text.trim_matches('"');
    let free =
        BEGINNINGS.iter().any(|b| bare.starts_with(b)) || PARTS.iter().any(|p| bare.contains(p));
    if free {
        WORDED.to_owned()
    } else {
        text.to_owned()
    }
}
