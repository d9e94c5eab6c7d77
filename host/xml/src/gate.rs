//! Gate: limits concurrently read documents. A run is charged for a tree only when it gets it;
//! until then, sixty-four of them would be charged to no run (security N12).

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Maximum documents that a parser reads at once.
pub(crate) const AT_ONCE: usize = 4;

/// The gate of a parser and its clones.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    count: usize,
    waiting: Vec<Waker>,
}

/// Admission through the gate, until dropped.
#[derive(Debug)]
pub(crate) struct Pass(Arc<Gate>);

impl Gate {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room.
    pub(crate) async fn enter(self: &Arc<Gate>) -> Pass {
        poll_fn(|cx| {
            let mut inside = self.inside();
            if inside.count < AT_ONCE {
                inside.count += 1;
                return Poll::Ready(());
            }
            if !inside.waiting.iter().any(|w| w.will_wake(cx.waker())) {
                inside.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
        Pass(Arc::clone(self))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.0.inside();
        inside.count = inside.count.saturating_sub(1);
        let waiting = std::mem::take(&mut inside.waiting);
        drop(inside);
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::Context;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn n12_so_many_are_within_at_most() {
        let gate: Arc<Gate> = Arc::default();
        let mut within: Vec<Pass> = (0..AT_ONCE)
            .map(|_| match poll(pin!(gate.enter())) {
                Poll::Ready(pass) => pass,
                Poll::Pending => panic!("there is room"),
            })
            .collect();
        let mut next = pin!(gate.enter());
        let mut given_up = Box::pin(gate.enter());
        assert!(poll(next.as_mut()).is_pending() && poll(given_up.as_mut()).is_pending());
        drop(given_up);
        within.pop();
        assert!(poll(next.as_mut()).is_ready());
        drop(within);
        assert_eq!(gate.inside().count, 0);
    }
}
