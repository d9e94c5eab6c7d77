//! Use of models by a program's calls: their tokens and what they cost.

use super::lock;
use crate::metered::Asked;
use a99_capabilities::AiProvider;
use a99_capabilities::ai::Done;
use agent99::replay::ModelUse;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tracing::Span;

tokio::task_local! {
    /// The call that is polled: a model is asked below it, by the same task.
    static CALL: Arc<Ledger>;
}

/// The answers of models that a call asked for.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    open: Vec<(Done, Arc<dyn AiProvider>, Asked)>,
    sum: Option<ModelUse>,
}

impl Entries {
    /// Adds the answers that have ended; at the end of the call others count as unknown.
    fn settle(&mut self, is_end: bool) {
        let mut context = Context::from_waker(Waker::noop());
        for (mut done, ai, asked) in std::mem::take(&mut self.open) {
            let used = match Pin::new(&mut done).poll(&mut context) {
                Poll::Pending if !is_end => {
                    self.open.push((done, ai, asked));
                    continue;
                }
                Poll::Pending => ModelUse::default(),
                // No model worked on it.
                Poll::Ready(Err(error))
                    if error.partial.is_none() && error.code.is_unprocessed() =>
                {
                    continue;
                }
                Poll::Ready(result) => {
                    let answer = result.as_ref();
                    let answer = answer.map_or_else(|error| error.partial.as_deref(), Some);
                    let usage = answer.map(|answer| answer.usage);
                    let usage = usage.filter(|usage| usage.total() > 0);
                    ModelUse {
                        tokens: usage.map(|of| (of.prompt_tokens, of.completion_tokens)),
                        money: asked.cost(&*ai, answer).map(|cost| cost.money),
                    }
                }
            };
            self.sum = Some(self.sum.map_or(used, |sum| sum.plus(used)));
        }
    }
}

/// Runs a poll of a call within its span, and counts the models that it asks.
pub(super) fn polled<T>(span: &Span, ledger: Option<&Arc<Ledger>>, poll: impl FnOnce() -> T) -> T {
    let _within = span.enter();
    match ledger {
        Some(ledger) => CALL.sync_scope(Arc::clone(ledger), poll),
        None => poll(),
    }
}

impl Ledger {
    /// What the call used, when it has ended; `None` if it asked no model.
    pub(super) fn used(&self) -> Option<ModelUse> {
        let mut entries = lock(&self.0);
        entries.settle(true);
        entries.sum
    }
}

/// Adds an answer to the call that is polled, if its use is counted.
pub(crate) fn asked(done: impl FnOnce() -> Done, ai: &Arc<dyn AiProvider>, asked: &Asked) {
    // Outside of a counted call there is nothing to add.
    let _ = CALL.try_with(|ledger| {
        let mut entries = lock(&ledger.0);
        entries.settle(false);
        entries.open.push((done(), Arc::clone(ai), asked.clone()));
    });
}
