//! The machine as an engine of vectors, with runs that are suspended and restored on the way,
//! each time by a fresh engine.

use super::vm_engine::{capabilities, host_atom, options, ran, strict_condition, wait};
use super::{Engine, EngineOutcome, RunSpec};
use a99_core::value::Value;
use agent99::capabilities::MemoryProcedures;
use agent99::{
    AbortSignal, Agent, CallId, Engine as Agents, Next, Outcome, Run, RunClock, RunOptions,
    all_atoms,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Suspensions of a run that are all taken; later ones only at powers of two.
const MANY: usize = 48;

/// The register machine with suspensions, driven directly.
#[derive(Debug, Default)]
pub struct SuspendedEngine {
    /// The single suspension to make; `None` for all.
    only: Option<usize>,
    /// Work between two pauses.
    slice: u32,
    taken: AtomicUsize,
    bytes: AtomicUsize,
}

impl SuspendedEngine {
    /// Suspends each run at every call and pause, with this much work between pauses.
    #[must_use]
    pub fn at_all(slice: u32) -> SuspendedEngine {
        SuspendedEngine {
            slice,
            ..SuspendedEngine::default()
        }
    }

    /// Suspends each run once, at the call or pause with this number.
    #[must_use]
    pub fn at(number: usize, slice: u32) -> SuspendedEngine {
        SuspendedEngine {
            only: Some(number),
            slice,
            ..SuspendedEngine::default()
        }
    }

    /// Number of restored snapshots.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Bytes of all snapshots.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn is_due(&self, seen: usize) -> bool {
        // Loops with thousands of iterations pause at each.
        let of_all = seen < MANY || seen.is_power_of_two();
        self.only.map_or(of_all, |only| only == seen)
    }
}

/// An engine with the atoms of a vector, and its program. Stored procedures belong to the host
/// and outlive engines.
fn prepared(spec: &RunSpec, procedures: &Stored) -> Result<(Agents, Agent), String> {
    let mut atoms = all_atoms();
    for atom in &spec.atoms {
        atoms.insert(host_atom(atom, &spec.script));
    }
    let engine = Agents::builder()
        .atoms(atoms)
        .procedures(procedures.clone())
        .build();
    let mut text = Vec::new();
    spec.program.write_json(spec.program.root(), &mut text);
    match engine.compile(text) {
        Ok(agent) => Ok((engine, agent)),
        Err(refused) => {
            let is_error = |d: &&agent99::Diagnostic| d.severity == agent99::Severity::Error;
            let first = refused.iter().find(is_error);
            Err(first.map_or_else(String::new, |d| d.message.clone()))
        }
    }
}

type Stored = Arc<MemoryProcedures>;

/// Time since a run was started or restored.
struct Since(Instant);

impl RunClock for Since {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A run with its start time.
struct Going<'e> {
    engine: &'e SuspendedEngine,
    spec: &'e RunSpec,
    procedures: &'e Stored,
    options: RunOptions,
    run: Run,
    began: Instant,
    /// Suspension points seen so far.
    seen: usize,
    /// The call given before the run was restored.
    again: Option<CallId>,
}

impl Going<'_> {
    fn next(&mut self) -> Next {
        self.run.next(Since(self.began))
    }

    /// Suspends and restores the run, if due.
    fn hop(&mut self) -> bool {
        let due = self.engine.is_due(self.seen);
        self.seen += 1;
        if due {
            let bytes = self.run.snapshot().expect("a run that waits");
            let (engine, agent) =
                prepared(self.spec, self.procedures).expect("it was compiled before");
            let granted = capabilities(&self.spec.script);
            let restored = engine.restore(&agent, &bytes, self.options.clone(), granted);
            let restored = restored.expect("a snapshot of this run");
            let again = restored.snapshot().expect("a run that waits");
            assert!(again == bytes, "the restored run is another one");
            self.run = restored;
            self.run.set_slice(self.engine.slice);
            self.began = Instant::now();
            self.engine.taken.fetch_add(1, Ordering::Relaxed);
            self.engine.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        }
        due
    }

    async fn ended(mut self) -> Outcome {
        if self.run.snapshot().is_ok() {
            // Before its first slice.
            self.hop();
        }
        loop {
            match self.next() {
                Next::Done(outcome) => return *outcome,
                Next::Pause => {
                    self.hop();
                    tokio::task::yield_now().await;
                }
                Next::Wait(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                Next::Call(call) => {
                    let is_again = self.again.take().is_some_and(|id| id == call.id);
                    if !is_again && self.hop() {
                        self.again = Some(call.id);
                        continue;
                    }
                    let id = call.id.clone();
                    let deadline = call.deadline.map(|at| self.began + at);
                    let mut answer = Box::pin(call.start(deadline));
                    loop {
                        let tick = Duration::from_millis(1);
                        match tokio::time::timeout(tick, &mut answer).await {
                            Ok(answer) => {
                                // The run itself decides whether the answer is in time.
                                let _ = self.run.answer(&id, answer);
                                break;
                            }
                            Err(_) => match self.next() {
                                Next::Wait(_) => {}
                                Next::Done(outcome) => return *outcome,
                                Next::Pause => break,
                                Next::Call(next) => {
                                    panic!("{id} was not waited for, {} is made", next.id)
                                }
                            },
                        }
                    }
                }
            }
        }
    }
}

impl Engine for SuspendedEngine {
    fn name(&self) -> &str {
        "suspended"
    }

    fn run_program(&self, mut spec: RunSpec) -> EngineOutcome {
        /// Replacement of a zero timeout, in milliseconds.
        const NO_TIME_MS: f64 = 60_000.0;

        let procedures = Stored::default();
        let (engine, agent) = match prepared(&spec, &procedures) {
            Ok(prepared) => prepared,
            Err(message) => return EngineOutcome::Rejected { message },
        };
        // In the references a zero timeout expires only at a wait; a suspended and restored run
        // uses some time before that.
        if spec
            .timeout_ms
            .map_or(spec.fuel.micro() <= 0, |ms| ms <= 0.0)
        {
            spec.timeout_ms = Some(NO_TIME_MS);
        }
        let signal = AbortSignal::new();
        if spec.aborted {
            signal.abort();
        }
        let stop = signal.clone();
        let args = std::mem::replace(&mut spec.args, Value::Undefined);
        let given = options(&spec, engine.atoms()).signal(signal.clone());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .build();
        let Ok(runtime) = runtime else {
            return EngineOutcome::Rejected {
                message: "no runtime".into(),
            };
        };
        runtime.block_on(async {
            if let Some(ms) = spec.abort_after_ms {
                tokio::spawn(async move {
                    wait(ms).await;
                    signal.abort();
                });
            }
            let granted = capabilities(&spec.script);
            let mut run = engine.start(&agent, args, given, granted);
            run.set_slice(self.slice);
            let going = Going {
                engine: self,
                spec: &spec,
                procedures: &procedures,
                // Fresh quotas: the snapshot restores their counts.
                options: options(&spec, engine.atoms()).signal(stop),
                run,
                began: Instant::now(),
                seen: 0,
                again: None,
            };
            ran(going.ended().await)
        })
    }

    fn parse_condition(&self, text: &str) -> Result<Value, String> {
        strict_condition(text)
    }
}
