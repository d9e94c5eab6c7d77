//! Runs that somebody listens to end as those that nobody listens to.

use super::vectors::{files, list};
use a99_testkit::vectors::{Engine, EngineOutcome, RunSpec, VmEngine, read_deviations, replay};
use agent99::EventSink;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The machine, which notes each outcome: result, error, fuel and trace.
struct Noting {
    listener: Option<EventSink>,
    outcomes: Mutex<Vec<String>>,
}

impl Engine for Noting {
    fn name(&self) -> &str {
        "vm"
    }

    fn run_program(&self, spec: RunSpec) -> EngineOutcome {
        let listener = self.listener.clone();
        let outcome = VmEngine.run_program(RunSpec { listener, ..spec });
        let mut outcomes = self.outcomes.lock().expect("whole");
        outcomes.push(format!("{outcome:?}"));
        outcome
    }

    fn parse_condition(&self, text: &str) -> Result<a99_core::value::Value, String> {
        VmEngine.parse_condition(text)
    }
}

fn outcomes(listener: Option<EventSink>) -> Vec<String> {
    let engine = Noting {
        listener,
        outcomes: Mutex::default(),
    };
    let listed = read_deviations(&list()).expect("the list");
    let report = replay(&engine, &files(), &listed).expect("a replay");
    assert!(report.failed.is_empty(), "{}", report.render());
    engine.outcomes.into_inner().expect("whole")
}

#[test]
fn a_listener_changes_nothing() {
    let told: Arc<Mutex<BTreeMap<&str, usize>>> = Arc::default();
    let counts = Arc::clone(&told);
    let listener = EventSink::to_function(move |event| {
        let mut counts = counts.lock().expect("whole");
        *counts.entry(event.kind.name()).or_default() += 1;
    });
    let (alone, heard) = std::thread::scope(|scope| {
        let alone = scope.spawn(|| outcomes(None));
        let heard = outcomes(Some(listener));
        (alone.join().expect("it ended"), heard)
    });
    assert_eq!(alone.len(), heard.len());
    let mut late = 0;
    for (alone, heard) in alone.iter().zip(&heard) {
        // A loop that is stopped within a millisecond may be over by then.
        let is_late = [alone, heard]
            .iter()
            .any(|one| one.contains("timeout: fuel"));
        if alone != heard && is_late {
            late += 1;
            continue;
        }
        assert_eq!(alone, heard);
    }
    assert!(late < 4, "{late} runs ended by time");
    let told = told.lock().expect("whole");
    assert!(told["step"] > 2_000 && told["call"] > 200, "{told:?}");
    assert_eq!(told["call"], told["call_end"]);
}
