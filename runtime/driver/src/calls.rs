//! Running method calls of this host, so that the caller can cancel them.

use crate::hub::locked;
use a99_runtime_engine::Uuid;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Cancellations remembered until their turn begins. A forgotten one has no effect: the call
/// runs, like any call whose cancellation arrives too late.
const REMEMBERED: usize = 1_024;

/// A call and its caller. Only the caller may cancel it.
type Call = (Uuid, Uuid);

#[derive(Debug, Default)]
struct Known {
    running: HashMap<Call, watch::Sender<bool>>,
    cancelled: VecDeque<Call>,
}

/// Running calls, and calls cancelled before they ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<Known>>);

/// Registers a running call while it is held.
#[derive(Debug)]
pub(crate) struct RunningCall {
    calls: Calls,
    call: Call,
    cancelled: watch::Receiver<bool>,
}

impl Calls {
    /// Registers a running call.
    pub(crate) fn begin(&self, id: Uuid, caller: Uuid) -> RunningCall {
        let call = (id, caller);
        let mut known = locked(&self.0);
        let before = known.cancelled.iter().position(|other| *other == call);
        let is_cancelled = before.and_then(|at| known.cancelled.remove(at)).is_some();
        let (sender, cancelled) = watch::channel(is_cancelled);
        known.running.insert(call, sender);
        drop(known);
        RunningCall {
            calls: self.clone(),
            call,
            cancelled,
        }
    }

    /// Cancels a running or queued call.
    pub(crate) fn cancel(&self, id: Uuid, caller: Uuid) {
        let call = (id, caller);
        let mut known = locked(&self.0);
        if let Some(running) = known.running.get(&call) {
            running.send_replace(true);
        } else {
            if known.cancelled.len() == REMEMBERED {
                known.cancelled.pop_front();
            }
            known.cancelled.push_back(call);
        }
    }
}

impl RunningCall {
    /// Resolves when the call is cancelled; otherwise never.
    pub(crate) async fn cancelled(&mut self) {
        if self.cancelled.wait_for(|is| *is).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        locked(&self.calls.0).running.remove(&self.call);
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, REMEMBERED};
    use a99_runtime_engine::Uuid;
    use futures_util::FutureExt;

    fn is_cancelled(call: &mut super::RunningCall) -> bool {
        call.cancelled().now_or_never().is_some()
    }

    #[test]
    fn only_the_caller_cancels() {
        let (calls, id) = (Calls::default(), Uuid::from_u128(1));
        let [ann, bob] = [2, 3].map(Uuid::from_u128);
        let mut running = calls.begin(id, ann);
        calls.cancel(id, bob);
        assert!(!is_cancelled(&mut running));
        calls.cancel(id, ann);
        assert!(is_cancelled(&mut running));
    }

    #[test]
    fn a_call_that_waits_is_cancelled_once() {
        let (calls, ann) = (Calls::default(), Uuid::from_u128(2));
        let id = |n: usize| Uuid::from_u128(100 + n as u128);
        calls.cancel(id(0), ann);
        assert!(is_cancelled(&mut calls.begin(id(0), ann)));
        assert!(!is_cancelled(&mut calls.begin(id(0), ann)));
        for n in 0..=REMEMBERED {
            calls.cancel(id(n), ann);
        }
        // The oldest is forgotten.
        assert!(!is_cancelled(&mut calls.begin(id(0), ann)));
        assert!(is_cancelled(&mut calls.begin(id(1), ann)));
    }
}
