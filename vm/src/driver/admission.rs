//! Admission of runs to a pool, and the wait for a place.

use super::active::{Listener, timer};
use crate::clock::Stopwatch;
use crate::pace::{Host, StopReason};
use crate::run::RunHost;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Admits runs to a pool by the memory they may take.
#[derive(Debug)]
pub(crate) struct Admission {
    permits: Semaphore,
    bytes: usize,
    unit: usize,
    total: u32,
}

/// The reason why a run was not admitted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The run may take more than the whole pool, which has this many bytes.
    TooLarge(usize),
    /// The run was stopped while it waited.
    Stopped(StopReason),
    /// The deadline cannot be kept: the runtime has no timers.
    NoTimers,
}

/// Message without timers.
pub(crate) const NO_TIMERS: &str =
    "A run that waits for a pool needs a tokio runtime whose time is enabled";

impl Admission {
    /// Creates the admission of a pool. Memory is granted in pieces of `unit` bytes.
    pub(crate) fn new(bytes: usize, unit: usize) -> Admission {
        let pieces = u32::try_from(bytes / unit).unwrap_or(u32::MAX >> 3);
        // A pool smaller than a piece still admits one small run.
        let total = pieces.clamp(u32::from(bytes > 0), u32::MAX >> 3);
        Admission {
            permits: Semaphore::new(total as usize),
            bytes,
            unit,
            total,
        }
    }

    fn pieces(&self, bytes: usize) -> Result<u32, Refusal> {
        if bytes > self.bytes || self.total == 0 {
            return Err(Refusal::TooLarge(self.bytes));
        }
        let pieces = u32::try_from(bytes.div_ceil(self.unit)).unwrap_or(u32::MAX);
        Ok(pieces.clamp(1, self.total))
    }

    /// Waits until `bytes` are free, at most until the run's deadline or abort.
    pub(crate) async fn admit(
        &self,
        bytes: usize,
        host: &RunHost<'_, Stopwatch>,
        clock: &Stopwatch,
    ) -> Result<SemaphorePermit<'_>, Refusal> {
        let pieces = self.pieces(bytes)?;
        if let Ok(permit) = self.permits.try_acquire_many(pieces) {
            return Ok(permit);
        }
        let mut place = pin!(self.permits.acquire_many(pieces));
        let Ok(sleep) = timer(host.deadline.and_then(|at| clock.at(at))) else {
            return Err(Refusal::NoTimers);
        };
        let mut sleep = pin!(sleep);
        let listener = Listener::of(host.signal);
        std::future::poll_fn(|context| {
            listener.listen(context);
            if let Some(reason) = host.stop() {
                return Poll::Ready(Err(Refusal::Stopped(reason)));
            }
            if let Poll::Ready(permit) = place.as_mut().poll(context) {
                // The semaphore is never closed.
                return Poll::Ready(permit.map_err(|_| Refusal::TooLarge(0)));
            }
            if let Some(sleep) = sleep.as_mut().get_mut()
                && sleep.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Err(Refusal::Stopped(StopReason::Deadline)));
            }
            Poll::Pending
        })
        .await
    }

    /// Takes `bytes` if they are free now.
    pub(crate) fn try_admit(&self, bytes: usize) -> Result<Option<SemaphorePermit<'_>>, Refusal> {
        let pieces = self.pieces(bytes)?;
        Ok(self.permits.try_acquire_many(pieces).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a9_only_what_fits_is_let_in() {
        let pieces = |pool: usize, run: usize| Admission::new(pool, 64).pieces(run);
        assert_eq!(pieces(0, 0), Err(Refusal::TooLarge(0)));
        assert_eq!(pieces(1000, 1001), Err(Refusal::TooLarge(1000)));
        // 15 whole pieces: a run of all of it takes them all.
        assert_eq!(pieces(1000, 1000), Ok(15));
        assert_eq!(pieces(1000, 65), Ok(2));
        assert_eq!(pieces(10, 10), Ok(1));
        assert_eq!(pieces(10, 0), Ok(1));
    }
}
