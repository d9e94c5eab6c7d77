//! A program that was written to a file and loaded again is the same program:
//! result, error, fuel and trace, bit for bit; stripped, all but places and the
//! inputs in traces.

use a99_core::value::Value;
use a99_testkit::vectors::{
    DEFAULT_FUEL, EngineOutcome, Route, Subject, Vector, read_file, run_by,
};
use std::path::Path;

/// Everything. The tokens of stored procedures are drawn from the system, so
/// that they cannot be guessed; they are cut out.
fn whole(outcome: &EngineOutcome) -> String {
    without_tokens(&format!("{outcome:?}"))
}

fn without_tokens(text: &str) -> String {
    const UUID_CHARS: usize = 36;
    let mut parts = text.split("proc_");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        out + "proc_" + part.get(UUID_CHARS..).unwrap_or(part)
    })
}

/// What must agree even if the source is gone.
fn bare(outcome: &EngineOutcome) -> String {
    match outcome {
        EngineOutcome::Rejected { message } => message.clone(),
        EngineOutcome::NotJudged => "not judged".to_owned(),
        EngineOutcome::Ran {
            result,
            error,
            fuel_used,
            trace,
        } => {
            let events: Vec<String> = trace
                .iter()
                .flatten()
                .map(|e| {
                    let (diff, result) = (&e.state_diff, &e.result);
                    let fuel = (e.fuel_before, e.fuel_after);
                    format!("{:?} {diff:?} {result:?} {:?} {fuel:?}", e.op, e.error)
                })
                .collect();
            without_tokens(&format!("{result:?} {error:?} {fuel_used:?} {events:?}"))
        }
    }
}

/// More than any of these runs takes on a busy machine.
const TIMEOUT_MS: f64 = 60_000.0;

/// Whether the wall clock decides where the run stops.
fn timed(vector: &Vector) -> bool {
    let spec = vector.run_spec().expect("a program");
    spec.abort_after_ms.is_some() || spec.timeout_ms.is_some()
}

fn args(vector: &Vector) -> Value {
    vector.run_spec().expect("a program").args
}

#[test]
fn every_vector_is_the_same_through_a_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let entries = std::fs::read_dir(folder).expect("the folder of vectors");
    let (mut same, mut skipped) = (0, 0);
    for file in entries.map(|e| e.expect("an entry").path()) {
        if file.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        for vector in read_file(&file).expect("vectors") {
            if !matches!(vector.subject, Subject::Program) {
                continue;
            }
            if vector.run_spec().is_err() {
                // Refused for its options, which are no part of a program.
                continue;
            }
            if timed(&vector) {
                skipped += 1;
                continue;
            }
            let run = |route| {
                let mut spec = vector.run_spec().expect("a program");
                // Inputs take room in a long trace, which is cut at a size.
                spec.trace |= spec.fuel.to_f64() <= DEFAULT_FUEL;
                spec.trace &= !matches!(route, Route::Bound);
                // Fuel ends each of them; the time for it is the machine's.
                spec.timeout_ms = Some(TIMEOUT_MS);
                run_by(route, spec)
            };
            let mut json = run(Route::Json);
            let file = run(Route::File);
            let (a, b) = (whole(&file), whole(&json));
            assert!(a == b, "{}: {:.600}\n{:.600}", vector.id, a, b);
            let stripped = run(Route::Stripped);
            let (a, b) = (bare(&stripped), bare(&json));
            assert!(a == b, "{}: {:.600}\n{:.600}", vector.id, a, b);
            if matches!(args(&vector), Value::Object(_) | Value::Undefined) {
                // Bound calls keep no trace; all else is the same.
                if let EngineOutcome::Ran { trace, .. } = &mut json {
                    *trace = None;
                }
                let (a, b) = (whole(&run(Route::Bound)), whole(&json));
                assert!(a == b, "{} bound: {:.600}\n{:.600}", vector.id, a, b);
            }
            same += 1;
        }
    }
    assert!(same > 1_000 && skipped < 60, "{same} {skipped}");
}
