//! Progress of a run: counters that the run updates between slices and another thread reads.

use crate::link::Executable;
use crate::machine::{CodePlace, Machine, Request};
use a99_core::call_id::CallId;
use a99_core::fuel::Fuel;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Counters of a run in progress, for [`RunOptions::progress`](crate::RunOptions::progress).
///
/// A run updates them some ten thousand times a second, at less than a hundredth of its time,
/// and never waits for a reader.
#[derive(Default)]
pub struct RunProgress {
    /// Micro-units that the run has left, and those that it started with.
    fuel: AtomicI64,
    budget: AtomicI64,
    calls: AtomicU64,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    place: Option<CodePlace>,
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    id: CallId,
    op: Cow<'static, str>,
    since: Option<Instant>,
}

impl fmt::Debug for RunProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunProgress").finish_non_exhaustive()
    }
}

/// A snapshot of a run's progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Fuel used so far.
    pub fuel_used: Fuel,
    /// Number of host calls made.
    pub calls: u64,
    /// The op of the current step, if the run has begun.
    pub op: Option<String>,
    /// JSON pointer of the step in the program, as in an error.
    pub pointer: Option<String>,
    /// Line and column of the step in the text that was compiled.
    pub line_col: Option<(u32, u32)>,
    /// The calls in progress: id, atom, start time.
    pub under_way: Vec<(CallId, String, Option<Instant>)>,
}

impl RunProgress {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the current progress.
    #[must_use]
    pub fn read(&self) -> Progress {
        let now = self.now();
        let used = self.budget.load(Ordering::Relaxed) - self.fuel.load(Ordering::Relaxed);
        let under_way = now.under_way.iter();
        let place = now.place.as_ref();
        Progress {
            fuel_used: Fuel::from_micro(used.max(0)),
            calls: self.calls.load(Ordering::Relaxed),
            op: place.and_then(CodePlace::op),
            pointer: place.and_then(CodePlace::pointer),
            line_col: place.and_then(CodePlace::line_col),
            under_way: under_way
                .map(|call| (call.id.clone(), call.op.to_string(), call.since))
                .collect(),
        }
    }
}

impl Machine {
    /// Updates the counters, if there is a reader.
    #[inline]
    pub(crate) fn report(&self) {
        if let Some(progress) = &self.run_options().progress {
            self.report_to(progress);
        }
    }

    #[cold]
    fn report_to(&self, progress: &RunProgress) {
        let (fuel, budget) = self.fuel_of_budget();
        progress.fuel.store(fuel, Ordering::Relaxed);
        progress.budget.store(budget, Ordering::Relaxed);
        // A reader holds the lock: the next slice updates it.
        if let Ok(mut now) = progress.now.try_lock() {
            let place = self.place(None);
            match &mut now.place {
                Some(old) if old.is_of(&place) => old.moved_to(&place),
                old => *old = Some(place),
            }
        }
    }

    /// Counts a call made to the host.
    #[inline]
    pub(crate) fn report_call(&self, request: &Request) {
        if let Some(progress) = &self.run_options().progress {
            self.report_to(progress);
            progress.calls.fetch_add(1, Ordering::Relaxed);
            progress.now().under_way.push(UnderWay {
                id: request.call.id.clone(),
                op: request.call.op.clone(),
                since: crate::clock::wall_clock(),
            });
        }
    }

    /// Records that one of several calls was answered.
    #[inline]
    pub(crate) fn report_answer(&self, id: &CallId) {
        if let Some(progress) = &self.run_options().progress {
            progress.now().under_way.retain(|call| call.id != *id);
        }
    }

    /// Records that all calls were answered.
    #[inline]
    pub(crate) fn report_answers(&self) {
        if let Some(progress) = &self.run_options().progress {
            progress.now().under_way.clear();
        }
    }
}

/// A place needs its program, which is kept while it is shown.
impl CodePlace {
    fn is_of(&self, other: &CodePlace) -> bool {
        Arc::ptr_eq(self.executable(), other.executable())
    }
}

/// Other threads read programs.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Executable>();
};
