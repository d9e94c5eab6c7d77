//! End of a run: its outcome and usage, and the reset of the machine.

use super::Machine;
use super::suspend::MAX_SPARE_STACK;
use crate::clock::RunClock;
use crate::options::{self, Outcome};
use a99_core::error::RunError;
use a99_core::fuel::Fuel;
use a99_core::value::Value;
use a99_run::account::{Spend, Usage};
use std::collections::HashMap;

/// Number of memoized results that are dropped inline.
const FEW_MEMOS: usize = 1024;

pub(super) enum End {
    Result(Value),
    Failed(Box<Failed>),
}

/// The result and the error of a failed run.
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
    /// Drops everything that belongs to the run and its host: an idle machine keeps no grant,
    /// program or signal alive.
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

    /// Frees a large machine of a stopped run on a separate thread: tens of megabytes of
    /// pages, or hundreds of thousands of names, take longer than the run may continue.
    /// Without threads it is freed here.
    pub fn release(self: Box<Self>) {
        release(self);
    }

    /// Takes the outcome. Afterwards the machine is empty, except for memory that takes time
    /// to free and that [`Machine::memory_bytes`] counts.
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

    /// Passes new console lines to the host.
    #[inline]
    pub(crate) fn hand_over_lines(&mut self) {
        if self.heap.console.has_fresh() {
            let (console, events) = (self.options.console.as_ref(), self.options.events.as_ref());
            let freed = self.heap.console.hand_over(console, events);
            self.heap.sub_external(freed);
        }
    }

    /// Usage besides fuel, if the run has an account or made calls.
    fn usage(&self, fuel: Fuel, clock: &impl RunClock, failed: bool) -> Option<Box<Usage>> {
        let calls = Spend {
            calls: self.calls,
            ..Spend::default()
        };
        let account = match (&self.options.account, self.locals.own_account()) {
            (Some(account), _) => account,
            (None, Some(own)) => {
                // The account has no limits.
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

/// Drops a value that takes long to drop, on a separate thread.
pub(crate) fn release(what: impl Send + 'static) {
    let thread = std::thread::Builder::new().name("a99-release".to_owned());
    // A failed spawn drops the closure with the value.
    let _ = thread.spawn(move || drop(what));
}
