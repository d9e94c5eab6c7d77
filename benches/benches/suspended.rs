//! W9: what a run holds while it waits on the host, in bytes.
//!
//! `cargo bench -p a99-benches --features peers --bench suspended`
//!
//! It has a binary of its own because every allocation of the process is
//! counted, which would slow the timings of `floor`. Counted is the boxed
//! future with everything behind it, the deadline's timer included.

use a99_benches::{compiled, engine, limits, programs};
use agent99::{Capabilities, Value};
use cap::Cap;
use std::alloc::System;
use std::task::{Context, Waker};

#[global_allocator]
static COUNTED: Cap<System> = Cap::new(System, usize::MAX);

/// Runs suspended at once.
const RUNS: usize = 10_000;

/// The floor of this stage, in bytes for each run.
const FLOOR: usize = 4 << 10;

fn main() {
    let engine = engine();
    let agent = compiled(&engine, programs::SUSPENDED);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let _timers = runtime.enter();
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = Vec::with_capacity(RUNS);
    let before = COUNTED.allocated();
    let mut size = 0;
    for _ in 0..RUNS {
        let run = engine.run(&agent, Value::Undefined, limits(), Capabilities::none());
        size = size_of_val(&run);
        let mut future = Box::pin(run);
        assert!(
            future.as_mut().poll(&mut context).is_pending(),
            "the run waits"
        );
        waiting.push(future);
    }
    let each = (COUNTED.allocated() - before) / waiting.len();
    println!("{RUNS} suspended runs: {each} bytes each, {size} of them the future itself");
    println!(
        "{:<10}W9 at most {FLOOR} bytes",
        if each <= FLOOR { "met" } else { "NOT MET" }
    );
}
