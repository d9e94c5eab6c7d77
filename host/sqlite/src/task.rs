//! Jobs of a database thread, and the futures of their results.

use crate::error::{SqliteCode, SqliteError};
use crate::watch::Link;
use a99_capabilities::block_on;
use rusqlite::Connection;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A transaction for work: a connection on which the work must not begin or end transactions.
/// Savepoints are allowed.
pub struct Tx<'a> {
    connection: &'a Link,
    is_left: &'a AtomicBool,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(connection: &'a Link, is_left: &'a AtomicBool) -> Tx<'a> {
        Tx {
            connection,
            is_left,
        }
    }

    pub(crate) fn link(&self) -> &'a Link {
        self.connection
    }

    /// Fails once the caller gave up; long work calls it regularly.
    ///
    /// # Errors
    /// [`SqliteCode::Stopped`]
    pub fn go_on(&self) -> Result<(), SqliteError> {
        match self.is_left.load(Ordering::Relaxed) {
            true => Err(stopped()),
            false => Ok(()),
        }
    }
}

impl Deref for Tx<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

pub(crate) fn stopped() -> SqliteError {
    SqliteError::new(
        SqliteCode::Stopped,
        "the database was closed, or the work given up",
    )
}

/// State of a job, shared by its thread and its caller.
struct Slot<T> {
    is_left: Arc<AtomicBool>,
    state: Mutex<State<T>>,
}

struct State<T> {
    result: Option<Result<T, SqliteError>>,
    waker: Option<Waker>,
}

/// The result of work on another thread: a future for any executor, or [`Task::wait`]. Dropping
/// it before the work began cancels the work; later, the work runs whole or not at all.
#[must_use = "work that nobody waits for is given up"]
pub struct Task<T>(Arc<Slot<T>>);

/// The sending half of a [`Task`].
pub(crate) struct Promise<T>(Arc<Slot<T>>);

pub(crate) fn task<T>() -> (Promise<T>, Task<T>) {
    let slot = Arc::new(Slot {
        is_left: Arc::default(),
        state: Mutex::new(State {
            result: None,
            waker: None,
        }),
    });
    (Promise(Arc::clone(&slot)), Task(slot))
}

impl<T> Promise<T> {
    pub(crate) fn is_left(&self) -> &Arc<AtomicBool> {
        &self.0.is_left
    }

    pub(crate) fn end(&self, result: Result<T, SqliteError>) {
        let mut state = locked(&self.0.state);
        if state.result.is_none() {
            state.result = Some(result);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A promise dropped without a value reports an error, so that its caller never hangs.
impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) > 1 {
            self.end(Err(stopped()));
        }
    }
}

impl<T> Task<T> {
    /// Blocks this thread for the result; unsuitable for threads that poll other futures.
    ///
    /// # Errors
    /// Errors of the work.
    pub fn wait(self) -> Result<T, SqliteError> {
        block_on(self)
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, SqliteError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = locked(&self.0.state);
        match state.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.is_left.store(true, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

/// A job in a queue.
pub(crate) trait Job: Send {
    /// Flag that is set when the caller gives up.
    fn left(&self) -> &Arc<AtomicBool>;

    /// True once the caller gave up.
    fn is_left(&self) -> bool {
        self.left().load(Ordering::Relaxed)
    }

    /// True if the job runs outside of transactions.
    fn is_alone(&self) -> bool;

    /// Runs the job, in a transaction unless it is alone. The result is held until
    /// [`Job::end`].
    fn run(&mut self, connection: &Link) -> Result<(), SqliteError>;

    /// Sends the caller the result, or the error of the transaction.
    fn end(self: Box<Self>, kept: Result<(), SqliteError>);
}

pub(crate) struct Work<T, F> {
    f: Option<F>,
    output: Option<T>,
    promise: Promise<T>,
    is_alone: bool,
}

impl<T, F> Work<T, F>
where
    T: Send + 'static,
    F: FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send + 'static,
{
    pub(crate) fn of(f: F) -> (Box<dyn Job>, Task<T>) {
        Work::waiting(f, false)
    }

    /// A job that runs outside of transactions.
    pub(crate) fn alone(f: F) -> (Box<dyn Job>, Task<T>) {
        Work::waiting(f, true)
    }

    fn waiting(f: F, is_alone: bool) -> (Box<dyn Job>, Task<T>) {
        let (promise, task) = task();
        let work = Work {
            f: Some(f),
            output: None,
            promise,
            is_alone,
        };
        (Box::new(work), task)
    }
}

impl<T, F> Job for Work<T, F>
where
    T: Send,
    F: FnOnce(&Tx<'_>) -> Result<T, SqliteError> + Send,
{
    fn left(&self) -> &Arc<AtomicBool> {
        self.promise.is_left()
    }

    fn is_alone(&self) -> bool {
        self.is_alone
    }

    fn run(&mut self, connection: &Link) -> Result<(), SqliteError> {
        let Some(f) = self.f.take() else {
            return Err(stopped());
        };
        let tx = Tx::new(connection, self.promise.is_left());
        // The caller of this job rolls the transaction back after a panic.
        let output = catch_unwind(AssertUnwindSafe(|| f(&tx))).unwrap_or_else(|_| {
            let message = "the work ended in a fault";
            Err(SqliteError::new(SqliteCode::Failed, message))
        })?;
        self.output = Some(output);
        Ok(())
    }

    fn end(self: Box<Self>, kept: Result<(), SqliteError>) {
        let work = *self;
        let output = work.output;
        work.promise
            .end(kept.and_then(|()| output.ok_or_else(stopped)));
    }
}
