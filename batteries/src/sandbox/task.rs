//! Blocking work on a thread, awaited as a future that cancels it when it is
//! dropped. Needs no runtime.

use a99_capabilities::{ShellError, ShellErrorKind, ShellReply};
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Stack of a thread that waits for a command: it calls nothing deep.
const STACK_BYTES: usize = 256 << 10;

/// Locks what every holder leaves whole, whatever it panics at.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells work that nobody waits for it any more.
#[derive(Clone, Default)]
pub(super) struct Cancel(Arc<Mutex<CancelState>>);

#[derive(Default)]
struct CancelState {
    cancelled: bool,
    listener: Option<Box<dyn Fn() + Send>>,
}

impl Cancel {
    fn cancel(&self) {
        let mut state = lock(&self.0);
        state.cancelled = true;
        if let Some(listener) = state.listener.take() {
            listener();
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        lock(&self.0).cancelled
    }

    /// Sends `note` when it is cancelled; at once if it was.
    pub fn notify<T: Send + 'static>(
        &self,
        sender: Sender<T>,
        note: impl Fn() -> T + Send + 'static,
    ) {
        let mut state = lock(&self.0);
        // Who does not listen any more has nothing to end.
        let tell = move || drop(sender.send(note()));
        match state.cancelled {
            true => tell(),
            false => state.listener = Some(Box::new(tell)),
        }
    }
}

/// Where the thread leaves its result.
struct Slot<T> {
    result: Option<Result<T, ShellError>>,
    waker: Option<Waker>,
}

/// The thread's end of a slot: whatever becomes of it, there is a result.
struct Filler<T>(Arc<Mutex<Slot<T>>>);

impl<T> Filler<T> {
    fn fill(&self, result: Result<T, ShellError>) {
        let mut slot = lock(&self.0);
        slot.result.get_or_insert(result);
        if let Some(waker) = slot.waker.take() {
            drop(slot);
            waker.wake();
        }
    }
}

impl<T> Drop for Filler<T> {
    fn drop(&mut self) {
        let text = "The computer failed";
        self.fill(Err(ShellError::new(ShellErrorKind::Crashed, text)));
    }
}

/// Waits for the thread.
struct Waiting<T> {
    slot: Arc<Mutex<Slot<T>>>,
    cancel: Cancel,
}

impl<T> Future for Waiting<T> {
    type Output = Result<T, ShellError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.slot);
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Does the work on a thread as soon as the future is polled.
pub(super) fn spawn<T: Send + 'static>(
    work: impl FnOnce(&Cancel) -> Result<T, ShellError> + Send + 'static,
) -> ShellReply<'static, T> {
    Box::pin(async move {
        let waiting = Waiting {
            slot: Arc::new(Mutex::new(Slot {
                result: None,
                waker: None,
            })),
            cancel: Cancel::default(),
        };
        let (filler, cancel) = (Filler(Arc::clone(&waiting.slot)), waiting.cancel.clone());
        let thread = std::thread::Builder::new()
            .name("a99-shell".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || filler.fill(work(&cancel)));
        if thread.is_err() {
            let text = "The host has no thread left for the command";
            return Err(ShellError::new(ShellErrorKind::Unavailable, text));
        }
        waiting.await
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::task::Wake;
    use std::thread::{self, Thread};
    use std::time::Duration;

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<T>(mut future: ShellReply<'static, T>) -> Result<T, ShellError> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
                return result;
            }
            thread::park();
        }
    }

    #[test]
    fn work_answers() {
        let slow = spawn(|_| {
            thread::sleep(Duration::from_millis(30));
            Ok(7)
        });
        assert_eq!(block_on(slow), Ok(7));
    }

    #[test]
    fn work_that_panics_is_an_error() {
        let broken = spawn::<()>(|_| panic!("deliberately"));
        assert_eq!(block_on(broken).unwrap_err().kind, ShellErrorKind::Crashed);
    }

    #[test]
    fn a_dropped_future_cancels() {
        let (told, tells) = channel();
        let (began, begins) = channel();
        let mut work = spawn(move |cancel| {
            cancel.notify(told, || "cancelled");
            began.send(()).unwrap();
            Ok(())
        });
        let polled = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending() || polled.is_ready());
        begins.recv().unwrap();
        drop(work);
        assert_eq!(tells.recv(), Ok("cancelled"));
    }

    #[test]
    fn work_that_began_too_late_hears_of_it() {
        let cancel = Cancel::default();
        cancel.cancel();
        let (told, tells) = channel();
        cancel.notify(told, || 1);
        assert_eq!(tells.try_recv(), Ok(1));
    }
}
