//! Timers of runs whose host has the main loop: a waiting run says when it is to go on.

use agent99::Timers;
use agent99::capabilities::{BoxFuture, Clock};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

thread_local! {
    /// The earliest moment that a future polled on this thread waits for.
    static EARLIEST: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Polls futures of a run, and returns how long the first of their timers still runs.
pub(crate) fn watched(poll: impl FnOnce()) -> Option<Duration> {
    let outer = EARLIEST.replace(None);
    poll();
    EARLIEST.replace(outer)
}

/// Timers by a moment at which they are due.
pub(crate) struct HostTimers(Arc<dyn Clock>);

impl HostTimers {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> HostTimers {
        HostTimers(clock)
    }
}

impl Timers for HostTimers {
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep {
            watch: Moment::now(&self.0),
            time,
        })
    }
}

/// A moment of a clock that does not go back: the system's, or that of the host on a target
/// without one.
pub(crate) struct Moment {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    at: std::time::Instant,
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    at: (f64, Arc<dyn Clock>),
}

impl Moment {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub(crate) fn now(_: &Arc<dyn Clock>) -> Moment {
        Moment {
            at: std::time::Instant::now(),
        }
    }

    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    pub(crate) fn now(clock: &Arc<dyn Clock>) -> Moment {
        Moment {
            at: (clock.now_ms(), Arc::clone(clock)),
        }
    }

    pub(crate) fn passed(&self) -> Duration {
        #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
        return self.at.elapsed();
        #[cfg(all(target_family = "wasm", target_os = "unknown"))]
        return crate::runs::millis(self.at.1.now_ms() - self.at.0);
    }
}

struct Sleep {
    watch: Moment,
    time: Duration,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.time.checked_sub(self.watch.passed()) {
            None | Some(Duration::ZERO) => Poll::Ready(()),
            Some(rest) => {
                let earliest = EARLIEST.get().map_or(rest, |other| other.min(rest));
                EARLIEST.set(Some(earliest));
                Poll::Pending
            }
        }
    }
}
