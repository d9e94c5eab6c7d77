//! Runtime: a thread that drives the connections, independent of the store's executor.

use crate::error::PostgresError;
use crate::options::PostgresOptions;
use crate::pool::{Call, Pool, stopped};
use a99_capabilities::block_on;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The thread and its connections, which end together.
pub(crate) struct Engine {
    pub(crate) pool: Arc<Pool>,
    handle: Handle,
    stop: Mutex<Option<(oneshot::Sender<()>, thread::JoinHandle<()>)>>,
}

impl Engine {
    pub(crate) fn start(options: &PostgresOptions) -> Result<Engine, PostgresError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let pool = Arc::new(Pool::new(options, handle.clone())?);
        let (stop, stopped) = oneshot::channel::<()>();
        let driven = Arc::clone(&pool);
        let thread = thread::Builder::new()
            .name("a99-postgres".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    drop(stopped.await);
                    driven.close().await;
                });
                // Does not wait for name lookups.
                runtime.shutdown_background();
            })?;
        Ok(Engine {
            pool,
            handle,
            stop: Mutex::new(Some((stop, thread))),
        })
    }

    /// Starts work on the runtime.
    pub(crate) fn call<C: Call>(&self, call: C) -> Task<C::Output> {
        Task(self.handle.spawn(Arc::clone(&self.pool).run(call)))
    }

    /// Starts other work on the runtime.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, PostgresError>> + Send + 'static,
    ) -> Task<T> {
        Task(self.handle.spawn(work))
    }

    /// Ends the thread and waits for it.
    pub(crate) fn close(&self) {
        if let Some(thread) = self.stop() {
            drop(thread.join());
        }
    }

    fn stop(&self) -> Option<thread::JoinHandle<()>> {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        let (stop, thread) = stop.take()?;
        // The thread may already have ended.
        stop.send(()).ok();
        Some(thread)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Dropping a store never blocks on a server.
        drop(self.stop());
    }
}

/// The result of work on the server: a future for any executor, or [`Task::wait`]. Dropping it
/// cancels the work; its writes then commit whole or not at all.
#[must_use = "work that nobody waits for is given up"]
pub struct Task<T>(JoinHandle<Result<T, PostgresError>>);

impl<T> Task<T> {
    /// Blocks this thread for the result; unsuitable for threads that poll other futures.
    ///
    /// # Errors
    /// Errors of the work.
    pub fn wait(self) -> Result<T, PostgresError> {
        block_on(self)
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, PostgresError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let done = Pin::new(&mut self.0).poll(cx);
        done.map(|done| done.unwrap_or_else(|_| Err(stopped())))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}
