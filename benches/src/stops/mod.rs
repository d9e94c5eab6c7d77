//! Stop latency: how long a run continues after a stop, at any point.
//!
//! For each long operation it measures the longest CPU time of the run's thread between two checks
//! of the host, and from the last check to the outcome. A check notices an abort or deadline at any
//! time. Exhausted fuel is noticed where work is paid, and the rest is measured as the end.

mod hosts;
mod operations;

use a99_compiler::{CompileOptions, compile};
use a99_core::json::{Document, Limits};
use a99_core::verify::verify;
use a99_vm::Executable;
use a99_vm::machine::{Machine, Step};
use a99_vm::native::{Host, StopReason};
use agent99::{AtomSet, CostModel, ErrorCode, Fuel, RunOptions, Value};
use cpu_time::ThreadTime;
use serde_json::{Value as Json, json};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bound of the time that a run may continue, in microseconds.
pub const BOUND_US: u64 = 1_000;

thread_local! {
    static START: ThreadTime = ThreadTime::now();
    static OWN_US: Cell<u64> = const { Cell::new(0) };
    /// The deadline of the pending call. `OWN_LATE` is the host's own time since then.
    static CALL_END: Cell<Option<Instant>> = const { Cell::new(None) };
    static OWN_LATE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// CPU time of this thread in microseconds, without the host's own time.
fn cpu_us() -> u64 {
    START.with(|start| start.elapsed().as_micros() as u64) - OWN_US.get()
}

/// Runs work of host functions on values of host types. It counts as the host's own time: no run
/// can interrupt it.
fn own_time(work: impl FnOnce()) {
    let (begun, clock) = (cpu_us(), Instant::now());
    work();
    OWN_US.set(OWN_US.get() + (cpu_us() - begun));
    if CALL_END.get().is_some_and(|end| clock >= end) {
        OWN_LATE.set(OWN_LATE.get() + clock.elapsed());
    }
}

/// Makes a call with a deadline. Returns its result and how late it ends, without the host's own
/// time.
fn lateness<T>(end: Instant, call: impl FnOnce() -> T) -> (T, Duration) {
    CALL_END.set(Some(end));
    OWN_LATE.set(Duration::ZERO);
    let made = call();
    let late = Instant::now().saturating_duration_since(end);
    CALL_END.set(None);
    (made, late.saturating_sub(OWN_LATE.get()))
}

/// How a run is stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// By its deadline, with metered prices.
    Metered,
    /// By its deadline, with the flat prices.
    Flat,
    /// By its fuel, in the middle of the operation.
    Fuel,
}

/// Amount of measurement.
#[derive(Copy, Clone, Debug)]
pub struct Effort {
    /// Divisor of the operands' full size.
    pub part: u32,
    /// How long an operation is watched, in microseconds of CPU time.
    pub watched_us: u64,
    /// Number of tries; the smallest figure counts, because other load on the machine costs time of
    /// this thread too, through its caches.
    pub tries: usize,
    /// A figure at or below this ends the tries.
    pub enough_us: u64,
}

impl Effort {
    /// Effort for measuring the bound.
    pub const WHOLE: Effort = Effort {
        part: 1,
        watched_us: 60_000,
        tries: 6,
        enough_us: BOUND_US,
    };
}

/// Measurement of a row.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The operation.
    pub name: String,
    /// How it was stopped.
    pub how: How,
    /// The longest time in microseconds.
    pub longest_us: u64,
    /// Number of checks of the host.
    pub looks: u64,
}

/// Host that records the time between checks, and stops the run after a while.
#[derive(Default)]
struct Watch {
    watched_us: u64,
    begin: AtomicU64,
    last: AtomicU64,
    longest: AtomicU64,
    looks: AtomicU64,
    calls: AtomicU64,
}

impl Watch {
    fn look(&self) -> u64 {
        let now = cpu_us();
        let last = self.last.swap(now, Relaxed);
        self.longest.fetch_max(now.saturating_sub(last), Relaxed);
        self.looks.fetch_add(1, Relaxed);
        now
    }

    /// Records an answer that was late by the clock. CPU time bounds the delay: other processes may
    /// have had the processor.
    fn answered(&self, begun: u64, late: u64) {
        let now = cpu_us();
        let late = late.min(now.saturating_sub(begun));
        self.longest.fetch_max(late, Relaxed);
        self.last.store(now, Relaxed);
    }

    /// Starts the measurement, and discards earlier figures.
    fn begin(&self) {
        let now = cpu_us();
        self.begin.store(now, Relaxed);
        self.last.store(now, Relaxed);
        self.longest.store(0, Relaxed);
        self.looks.store(0, Relaxed);
    }
}

impl Host for Watch {
    fn stop(&self) -> Option<StopReason> {
        let now = self.look();
        let late = now.saturating_sub(self.begin.load(Relaxed)) > self.watched_us;
        late.then_some(StopReason::Deadline)
    }

    fn now_ms(&self) -> f64 {
        // A program reads the time to signal that its preparations are done; calls of the host read
        // it, too.
        if self.begin.load(Relaxed) == u64::MAX {
            self.begin();
        }
        1_700_000_000_000.0
    }

    fn random(&self, out: &mut [u8]) {
        out.fill(0x5A);
    }
}

/// A long operation.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the operation.
    pub name: String,
    step: Json,
}

/// All rows.
pub fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (name, step) in operations::operations()
        .into_iter()
        .chain(hosts::operations())
    {
        rows.push(Row { name, step });
    }
    rows
}

/// Measures rows.
#[derive(Debug)]
pub struct Rig {
    atoms: Arc<AtomSet>,
    args: Value,
    effort: Effort,
}

/// Result of a try.
struct Ended {
    longest_us: u64,
    looks: u64,
    code: ErrorCode,
    fuel: Fuel,
}

impl Rig {
    /// With all atoms, and some that only convert values.
    pub fn new(effort: Effort) -> Rig {
        Rig {
            atoms: Arc::new(hosts::atoms()),
            args: operations::args(effort.part),
            effort,
        }
    }

    fn linked(&self, program: &Json) -> Result<Arc<Executable>, String> {
        let document = Document::parse(program.to_string(), &Limits::default())
            .map_err(|error| format!("{error:?}"))?;
        let program = compile(
            &Arc::new(document),
            &*self.atoms,
            &CompileOptions::default(),
        )
        .map_err(|refused| format!("{refused:?}"))?;
        let artifact = verify(program).map_err(|error| format!("{error:?}"))?;
        let exe = Executable::link(&artifact, &self.atoms).map_err(|error| error.to_string())?;
        Ok(Arc::new(exe))
    }

    /// Runs preparations, then the operation in an endless loop that ignores its errors.
    fn endless(&self, operation: &Json) -> Json {
        let mut steps = operations::preparations(operation, self.effort.part);
        steps.push(
            json!({"op": "varSet", "key": "begun", "value": {"$expr": "methodCall",
            "object": {"$expr": "ident", "name": "Date"}, "method": "now", "arguments": []}}),
        );
        steps.push(
            json!({"op": "while", "condition": {"$expr": "literal", "value": true}, "body": [
                {"op": "try", "try": [operation], "catch": []}
            ]}),
        );
        json!({"op": "seq", "helpers": operations::helpers(self.effort.part), "steps": steps})
    }

    fn run(&self, exe: &Arc<Executable>, how: How, fuel: f64) -> Result<Ended, String> {
        let args = self.args.clone();
        let options = RunOptions::new()
            .fuel(fuel)
            .map_err(|error| format!("{error:?}"))?
            .cost_model(match how {
                How::Flat => CostModel::Flat,
                How::Metered | How::Fuel => CostModel::Metered,
            })
            .heap_bytes(256 << 20);
        let watch = Watch {
            // The preparations are not limited.
            watched_us: self.effort.watched_us,
            ..Watch::default()
        };
        let mut machine = Box::<Machine>::default();
        watch.begin.store(u64::MAX, Relaxed);
        machine.start(exe, args, options.into(), &watch);
        watch.begin();
        watch.begin.store(u64::MAX, Relaxed);
        let mut step = machine.resume(&watch);
        loop {
            step = match step {
                Step::Done => break,
                Step::Yield => machine.resume(&watch),
                Step::Call(request) => hosts::answer(&mut machine, request, &watch)?,
                Step::CallAll(requests) => hosts::answer_all(&mut machine, *requests, &watch)?,
                Step::Load(request) => {
                    let loaded = hosts::load(&self.atoms, &request, &watch);
                    machine.load(loaded, *request, &watch);
                    machine.resume(&watch)
                }
            };
        }
        let outcome = machine.finish(&Duration::ZERO);
        machine.release();
        let end = cpu_us().saturating_sub(watch.last.load(Relaxed));
        let error = outcome.error.ok_or("it ended")?;
        Ok(Ended {
            longest_us: watch.longest.load(Relaxed).max(end),
            looks: watch.looks.load(Relaxed),
            code: error.code,
            fuel: outcome.fuel_used,
        })
    }

    /// Measures a row.
    ///
    /// # Errors
    /// An invalid program, or a run that ends in another way.
    pub fn measure(&self, row: &Row, how: How) -> Result<Figure, String> {
        let exe = self.linked(&self.endless(&row.step))?;
        let plenty = 1e12;
        let (fuel, code) = match how {
            How::Fuel => {
                let whole = self.run(&exe, How::Metered, plenty)?.fuel.to_f64();
                // Most of the fuel that it uses until the watch ends.
                (whole * 0.9, ErrorCode::OutOfFuel)
            }
            How::Metered | How::Flat => (plenty, ErrorCode::RunTimeout),
        };
        let mut best: Option<Ended> = None;
        for _ in 0..self.effort.tries {
            let ended = self.run(&exe, how, fuel)?;
            // A busy machine may reach the deadline first.
            if ended.code != code && ended.code != ErrorCode::RunTimeout {
                return Err(format!("{}: ended by {:?}", row.name, ended.code));
            }
            if best
                .as_ref()
                .is_none_or(|best| ended.longest_us < best.longest_us)
            {
                best = Some(ended);
            }
            if best
                .as_ref()
                .is_some_and(|best| best.longest_us <= self.effort.enough_us)
            {
                break;
            }
        }
        let best = best.ok_or("no try")?;
        Ok(Figure {
            name: row.name.clone(),
            how,
            longest_us: best.longest_us,
            looks: best.looks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No operation runs long without a check. The bound here is coarse enough for a busy machine
    /// and an unoptimized build; `cargo xtask stops` measures the real bound.
    #[test]
    fn every_long_operation_looks_at_its_host() {
        const BOUND_US: u64 = 30_000;
        let rig = Rig::new(Effort {
            part: 16,
            watched_us: 2_000,
            tries: 10,
            enough_us: BOUND_US,
        });
        let mut late = Vec::new();
        for row in rows() {
            let figure = rig.measure(&row, How::Metered).expect("a row");
            if figure.longest_us > BOUND_US {
                late.push(figure);
            }
        }
        assert!(late.is_empty(), "{late:#?}");
    }
}
