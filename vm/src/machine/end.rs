//! End of a run: its outcome, what it used, and the machine as it is for the next one.

use super::Machine;
use super::suspend::MAX_SPARE_STACK;
use crate::options::{self, Outcome};
use crate::run::RunClock;
use a99_core::error::RunError;
use a99_core::fuel::Fuel;
use a99_core::value::Value;
use a99_run::account::{Spend, Usage};
use std::collections::HashMap;

/// So many remembered results are given back at once.
const FEW_MEMOS: usize = 1024;

/// How a run ended.
pub(super) enum End {
    Result(Value),
    Failed(Box<Failed>),
}

/// What a run that failed gives.
pub(super) struct Failed {
    pub(super) result: Value,
    pub(super) error: RunError,
}

impl End {
    fn into_parts(self) -> (Value, Option<RunError>) {
        match self {
            End::Result(result) => (result, None),
            End::Failed(failed) => (failed.result, Some(failed.error)),
        }
    }
}

impl Machine {
    /// Drops everything that belongs to the run and its host: a machine
    /// that waits for its next run keeps no grant, program or signal alive.
    fn reset(&mut self) {
        if self.stack.capacity() <= MAX_SPARE_STACK {
            self.leave_stack(Vec::new());
        }
        self.frames.clear();
        self.programs.clear();
        if self.memo.len() <= FEW_MEMOS {
            self.memo = HashMap::new();
        }
        self.caught = None;
        self.call = None;
        self.waiting = None;
        self.prepared = Vec::new();
        self.options = options::of_no_run();
        self.locals.renew();
    }

    /// Gives back the memory of a large machine whose run was stopped, on a
    /// thread of its own: tens of megabytes of pages, or hundreds of thousands
    /// of names, take longer than the run may go on. Where there are no threads
    /// it is given back here.
    pub fn release(self: Box<Self>) {
        release(self);
    }

    /// The outcome; the machine is empty afterwards, but for memory that takes
    /// time to give back and that [`Machine::memory_bytes`] counts.
    pub fn finish(&mut self, clock: &impl RunClock) -> Outcome {
        let end = self.outcome.take();
        let (result, error) = end.map_or((Value::Undefined, None), End::into_parts);
        let mut warnings = self.locals.take_warnings();
        let trace = self
            .tracer
            .take()
            .and_then(|tracer| tracer.into_events(&mut warnings));
        self.hand_over_lines();
        let logs = self.heap.console.take(&mut warnings);
        let fuel_used = self.fuel_used();
        let usage = self.usage(fuel_used, clock, error.is_some());
        self.reset();
        Outcome {
            result,
            error,
            fuel_used,
            trace,
            warnings,
            logs,
            usage,
        }
    }

    /// Gives the host the lines that the program wrote since it was last given some.
    #[inline]
    pub(crate) fn hand_over_lines(&mut self) {
        if self.heap.console.has_fresh() {
            let freed = self.heap.console.hand_over(&self.options);
            self.heap.sub_external(freed);
        }
    }

    /// What the run used beside fuel, if it has an account or made calls.
    fn usage(&self, fuel: Fuel, clock: &impl RunClock, failed: bool) -> Option<Box<Usage>> {
        let calls = Spend {
            calls: self.calls,
            ..Spend::default()
        };
        let account = match (&self.options.account, self.locals.own_account()) {
            (Some(account), _) => account,
            (None, Some(own)) => {
                // It has no limits.
                let _ = own.spend(calls);
                own
            }
            (None, None) if self.calls == 0 => return None,
            (None, None) => {
                return Some(Box::new(Usage {
                    runs: 1,
                    failed: u64::from(failed),
                    fuel,
                    time: clock.elapsed(),
                    spent: calls,
                    ..Usage::default()
                }));
            }
        };
        account.note_run(fuel, clock.elapsed(), failed);
        Some(Box::new(account.usage()))
    }
}

/// Drops on a thread of its own what takes long to drop.
pub(crate) fn release(what: impl Send + 'static) {
    let thread = std::thread::Builder::new().name("a99-release".to_owned());
    // What fails to start drops what it was given.
    let _ = thread.spawn(move || drop(what));
}
