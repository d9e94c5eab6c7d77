//! Pacing of serialization: polls before each value, and keeps unfinished values to be
//! dropped in pieces.

use super::call::CallWatch;
use super::mismatch::Mismatch;
use crate::machine::release;
use crate::native::{Cx, Fault};
use crate::pace::Watch;
use a99_core::value::Value;
use std::cell::RefCell;

/// Work to read or write a value.
const VALUE: i64 = 64;

/// Work to drop a value.
const DROPPED: usize = 16;

/// Polled before each value that is read or written.
#[derive(Default)]
pub struct Pace<'p> {
    stop: Option<&'p dyn Fn() -> bool>,
    /// Unfinished values; mostly none.
    left: RefCell<Option<Vec<Value>>>,
}

impl<'p> Pace<'p> {
    fn until(stop: &'p dyn Fn() -> bool) -> Pace<'p> {
        let left = RefCell::default();
        let stop = Some(stop);
        Pace { stop, left }
    }

    pub(super) fn go_on(&self) -> Result<(), Mismatch> {
        match self.stop.is_some_and(|stop| stop()) {
            true => Err(Mismatch::other("stopped".to_owned())),
            false => Ok(()),
        }
    }

    /// Keeps values that did not become part of a whole.
    pub(super) fn leave(&self, values: impl IntoIterator<Item = Value>) {
        if self.stop.is_some() {
            self.left
                .borrow_mut()
                .get_or_insert_default()
                .extend(values);
        }
    }
}

impl std::fmt::Debug for Pace<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pace").finish_non_exhaustive()
    }
}

/// Works while `ask`, polled before each value, allows it. Returns the result, the unfinished
/// values, and how the polling ended.
#[inline(always)]
fn paced<T, E>(
    ask: impl FnMut() -> Result<(), E>,
    work: impl FnOnce(&Pace<'_>) -> T,
) -> (T, Option<Vec<Value>>, Result<(), E>) {
    let state = RefCell::new((ask, Ok(())));
    let stop = || {
        let (ask, ended) = &mut *state.borrow_mut();
        if ended.is_ok() {
            *ended = ask();
        }
        ended.is_err()
    };
    let pace = Pace::until(&stop);
    let made = work(&pace);
    let left = pace.left.into_inner();
    (made, left, state.into_inner().1)
}

/// Works at the pace of an instruction.
///
/// # Errors
/// A stop.
#[inline(always)]
pub(super) fn within<T>(cx: &mut Cx<'_>, work: impl FnOnce(&Pace<'_>) -> T) -> Result<T, Fault> {
    let (made, left, ended) = paced(|| cx.work(VALUE), work);
    if let Some(left) = left {
        cx.discard(left)?;
    }
    ended?;
    Ok(made)
}

/// Works at the pace of a pending call; `None` if its answer is no longer wanted.
pub(super) fn while_wanted<T>(watch: &CallWatch, work: impl FnOnce(&Pace<'_>) -> T) -> Option<T> {
    let mut clock = Watch::new(watch);
    let (made, left, ended) = paced(|| clock.work(VALUE as usize), work);
    let dropped = discard(watch, left.unwrap_or_default());
    (dropped && ended.is_ok()).then_some(made)
}

/// Drops values with polling. When they are no longer awaited, a thread drops the rest.
/// Returns whether they were awaited to the end.
pub(super) fn discard(watch: &CallWatch, mut values: Vec<Value>) -> bool {
    let mut clock = Watch::new(watch);
    let ended = Value::dispose_all(&mut values, |n| clock.work(n * DROPPED));
    if !values.is_empty() {
        release(values);
    }
    ended.is_ok()
}
