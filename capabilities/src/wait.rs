//! Blocking on a future, for hosts and tests without an executor.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to completion on the calling thread, which sleeps between wake-ups. Unsuitable
/// for threads that poll other futures, and for futures that need a runtime.
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
