//! Out-of-memory handling: compaction and its price.

use super::Machine;
use crate::heap::Visit;
use crate::pace::{Fault, Host, StopReason, Watch};

/// Nanoseconds of a compaction that are included in the instruction's price. A heap of some
/// ten thousand bytes takes no longer, at any ceiling and frequency, so that fuel does not
/// depend on these.
const SMALL_COMPACTION: usize = 16_384;

/// Bytes whose allocation pays for a nanosecond of compaction.
const ALLOCATED_A_NANOSECOND: usize = 2;

impl Machine {
    /// Runs repeatable work that allocates; retries once after a compaction if memory was
    /// short.
    pub(super) fn with_room<T>(
        &mut self,
        host: &dyn Host,
        mut work: impl FnMut(&mut Machine, &dyn Host) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let before = self.meter.mark();
        match work(self, host) {
            Err(Fault::Oom(_)) => {
                self.meter.back_to(before);
                self.compact(true, host)?;
                if let Some(reason) = host.stop() {
                    return Err(Fault::Stop(reason));
                }
                if !self.pay_compaction() {
                    return Err(Fault::OutOfFuel);
                }
                work(self, host)
            }
            done => done,
        }
    }

    /// Compacts the heap; all roots are in the machine. `tight` also drops spare room.
    ///
    /// # Errors
    /// The host stops the run; the heap is unreadable then.
    pub(super) fn compact(&mut self, tight: bool, host: &dyn Host) -> Result<(), StopReason> {
        let top = self.top();
        let Machine {
            heap,
            meter,
            stack,
            programs,
            memo,
            tracer,
            unpaid,
            ..
        } = self;
        let allocated = heap.allocated();
        let mut roots = |visit: &mut Visit<'_>| {
            stack[..top].iter_mut().try_for_each(&mut *visit)?;
            memo.values_mut().try_for_each(&mut *visit)?;
            for program in programs.iter_mut() {
                program.args.iter_mut().try_for_each(&mut *visit)?;
            }
            tracer.as_mut().map_or(Ok(()), |tracer| tracer.roots(visit))
        };
        let work = heap.compact(tight, &mut roots, &mut Watch::new(host))?;
        meter.did(work);
        // Allocations have paid for this part of the work.
        let paid = SMALL_COMPACTION + allocated / ALLOCATED_A_NANOSECOND;
        *unpaid = work.saturating_sub(paid);
        Ok(())
    }

    /// Pays for the work of the last compaction beyond the allocations before it; false if
    /// the fuel does not suffice. Without this price, a nearly full run could rescan the same
    /// values repeatedly for the little garbage it makes.
    pub(super) fn pay_compaction(&mut self) -> bool {
        let work = std::mem::take(&mut self.unpaid);
        if work > 0 {
            self.meter.compacted(work);
            if self.meter.fuel <= 0 {
                // Prepaid fuel of callers belongs to the budget.
                self.settle_fuel();
            }
        }
        self.meter.fuel > 0
    }
}
