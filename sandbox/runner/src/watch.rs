//! Watched value that futures wait for: the bridge from a guest's thread to any executor,
//! or to none.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// A value under a lock, with the wakers that wait for its change.
pub struct Watch<T> {
    inner: Mutex<(T, Vec<Waker>)>,
}

impl<T> Watch<T> {
    /// Creates a value without waiters.
    pub fn new(value: T) -> Self {
        Self {
            inner: Mutex::new((value, Vec::new())),
        }
    }

    /// Changes the value and wakes all waiters. Ignores poisoning: changes are single
    /// steps, so a panicking thread leaves a valid value.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut inner.0);
        let wakers = std::mem::take(&mut inner.1);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Reads the value.
    pub fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.inner.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Waits until `check` returns `Some`. It may take data out of the value; that wakes no
    /// other waiter.
    pub fn until<R, F: FnMut(&mut T) -> Option<R>>(&self, check: F) -> Until<'_, T, F> {
        Until { watch: self, check }
    }
}

impl<T: fmt::Debug> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read(|value| f.debug_tuple("Watch").field(value).finish())
    }
}

/// Future of [`Watch::until`].
pub struct Until<'a, T, F> {
    watch: &'a Watch<T>,
    check: F,
}

// No field is pinned.
impl<T, F> Unpin for Until<'_, T, F> {}

impl<T, R, F: FnMut(&mut T) -> Option<R>> Future for Until<'_, T, F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let this = &mut *self;
        let inner = &this.watch.inner;
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = (this.check)(&mut inner.0) {
            return Poll::Ready(answer);
        }
        let waker = context.waker();
        if !inner.1.iter().any(|other| other.will_wake(waker)) {
            inner.1.push(waker.clone());
        }
        Poll::Pending
    }
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future of this crate to its end on the calling thread, for programs without an
/// executor.
///
/// Do not call this on an executor's thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_change_wakes_who_waits_for_it() {
        let watch = Arc::new(Watch::new(0));
        let theirs = Arc::clone(&watch);
        let thread = std::thread::spawn(move || {
            for _ in 0..10 {
                std::thread::sleep(Duration::from_millis(1));
                theirs.change(|number| *number += 1);
            }
        });
        let taken = block_on(watch.until(|number| (*number == 10).then(|| std::mem::take(number))));
        assert_eq!((taken, watch.read(|number| *number)), (10, 0));
        thread.join().unwrap();
    }

    #[test]
    fn one_who_polls_often_is_remembered_once() {
        let watch = Watch::new(());
        let mut context = Context::from_waker(Waker::noop());
        let mut until = watch.until(|()| None::<()>);
        for _ in 0..100 {
            assert!(Pin::new(&mut until).poll(&mut context).is_pending());
        }
        assert_eq!(watch.inner.lock().unwrap().1.len(), 1);
    }
}
