//! Calls under way at once: how long a `callAll` of twenty takes, each of which waits
//! 300 ms, with room for all of them.
//!
//! `cargo bench -p a99-benches --bench fan_out`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use a99_benches::engine;
use agent99::capabilities::{Capabilities, Fetch, Reply};
use agent99::{RunOptions, Value};
use std::time::{Duration, Instant};

/// Calls of a run.
const CALLS: usize = 20;

/// What each of them waits.
const WAIT: Duration = Duration::from_millis(300);

/// What a run may take.
const BOUND: Duration = Duration::from_millis(350);

/// Runs that are measured.
const RUNS: usize = 10;

/// Answers later.
struct Slow;

impl Fetch for Slow {
    fn fetch(&self, url: Value, _: Value) -> Reply<'_> {
        Box::pin(async move {
            tokio::time::sleep(WAIT).await;
            Ok(url)
        })
    }
}

fn main() {
    let items: Vec<String> = (0..CALLS).map(|n| format!("https://a.test/{n}")).collect();
    let program = serde_json::json!({"op": "seq", "steps": [
        {"op": "callAll", "limit": CALLS, "items": items, "as": "url", "result": "pages",
         "call": {"op": "httpFetch", "url": {"$expr": "ident", "name": "url"}}},
        {"op": "return", "schema": {"type": "object", "properties": {"pages": {}}}}
    ]});
    let engine = engine();
    let agent = engine.compile(program.to_string()).expect("it compiles");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let granted = Capabilities::none().with_fetch(Slow);
            let options = RunOptions::new().timeout_ms(60_000);
            let outcome = runtime.block_on(engine.run(&agent, Value::Undefined, options, granted));
            let took = start.elapsed();
            let pages = outcome.result.to_json()["pages"].clone();
            assert_eq!(pages.as_array().map(Vec::len), Some(CALLS), "{outcome:?}");
            took
        })
        .collect();
    times.sort_unstable();
    let (best, median, worst) = (times[0], times[RUNS / 2], times[RUNS - 1]);
    println!("{CALLS} calls of {WAIT:?}: {best:?} best, {median:?} median, {worst:?} worst");
    let met = if median <= BOUND { "met" } else { "NOT MET" };
    println!("{met:<10}at most {BOUND:?}");
}
