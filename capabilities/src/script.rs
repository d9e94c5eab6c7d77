//! Scripted replies of the mocks of remote capabilities.
//!
//! A table answers by its first argument, a queue answers in order. Both record every call for
//! tests.

use crate::error::CapabilityError;
use a99_core::diag::suggest;
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Answer = Result<Value, CapabilityError>;

/// Locks a mutex whose data stays valid after a panic of its holder.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of an unknown member in a script's object.
pub(crate) fn unknown_member(key: &Text, known: &[&str]) -> String {
    let near = suggest(&key.to_string_lossy(), known.iter().copied());
    let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let known = known.join(", ");
    format!("unknown member `{key}`; {near}known are {known}")
}

/// Recorded calls of a scripted capability, each a list of arguments.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Vec<Vec<Value>>>);

impl Calls {
    pub(crate) fn note(&self, args: Vec<Value>) {
        lock(&self.0).push(args);
    }

    pub(crate) fn list(&self) -> Vec<Vec<Value>> {
        lock(&self.0).clone()
    }
}

/// Answers by the first argument; the last entry of a key wins.
#[derive(Debug, Default)]
pub(crate) struct Table {
    entries: Vec<(Value, Answer)>,
    pub(crate) calls: Calls,
}

impl Table {
    pub(crate) fn on(&mut self, key: Value, answer: Answer) {
        self.entries.push((key, answer));
    }

    pub(crate) fn has(&self, key: &Value) -> bool {
        self.entries.iter().any(|(known, _)| known == key)
    }

    /// The answer for `args[0]`, or `otherwise` for an unknown one.
    pub(crate) fn answer(&self, args: Vec<Value>, otherwise: &str) -> Answer {
        let found = args
            .first()
            .and_then(|key| self.entries.iter().rev().find(|(k, _)| k == key))
            .map(|(_, answer)| answer.clone());
        self.calls.note(args);
        found.unwrap_or_else(|| Err(CapabilityError::new(otherwise)))
    }
}

/// Answers in order, then refuses.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    left: Mutex<VecDeque<Answer>>,
    pub(crate) calls: Calls,
}

impl Queue {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Queue {
        Queue {
            left: Mutex::new(answers.into_iter().collect()),
            calls: Calls::default(),
        }
    }

    pub(crate) fn push(&self, answer: Answer) {
        lock(&self.left).push_back(answer);
    }

    pub(crate) fn answer(&self, args: Vec<Value>, exhausted: &str) -> Answer {
        self.calls.note(args);
        lock(&self.left)
            .pop_front()
            .unwrap_or_else(|| Err(CapabilityError::new(exhausted)))
    }
}
