//! Waiting for a future on a thread, for hosts and tests without an executor.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future to its end on the calling thread, which sleeps until it is woken. Not
/// for threads that drive other futures, nor for futures that need a runtime.
///
/// ```
/// use a99_capabilities::{MemoryStore, Store, block_on};
///
/// let store = MemoryStore::new();
/// block_on(store.set("k".into(), "v".into()))?;
/// assert_eq!(block_on(store.get("k".into()))?, "v".into());
/// # Ok::<(), a99_capabilities::CapabilityError>(())
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
