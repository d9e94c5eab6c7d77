//! Room in the heap: garbage is squeezed out of it where it runs short, and that is paid for.

use super::Machine;
use crate::heap::Visit;
use crate::native::{Fault, Host, StopReason, Watch};

/// Nanoseconds of a compaction that are part of the instruction it serves: a
/// heap of some ten thousand bytes takes no longer, however low its ceiling and
/// however often it runs, so that fuel does not depend on that.
const SMALL_COMPACTION: usize = 16_384;

/// Bytes whose allocation pays for a nanosecond of compaction.
const ALLOCATED_A_NANOSECOND: usize = 2;

impl Machine {
    /// Does what needs memory and may be done twice; once more after a
    /// compaction where there was too little.
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

    /// Squeezes garbage out; every live value is reachable from here. `tight`
    /// is for a heap that has run short.
    ///
    /// # Errors
    /// The host says stop; nothing may read the heap any more.
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
        // What was allocated has paid for as much work.
        let paid = SMALL_COMPACTION + allocated / ALLOCATED_A_NANOSECOND;
        *unpaid = work.saturating_sub(paid);
        Ok(())
    }

    /// Pays for what the last compaction did beyond what was allocated before it; whether
    /// there was fuel for that. A run that holds almost all it may would have the same values
    /// looked through again and again for the little that it drops.
    pub(super) fn pay_compaction(&mut self) -> bool {
        let work = std::mem::take(&mut self.unpaid);
        if work > 0 {
            self.meter.compacted(work);
            if self.meter.fuel <= 0 {
                // What callers have prepaid belongs to the budget.
                self.settle_fuel();
            }
        }
        self.meter.fuel > 0
    }
}
