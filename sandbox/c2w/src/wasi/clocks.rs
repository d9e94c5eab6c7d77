//! Clocks. Coarse on purpose: a fine one tells an image about its neighbours.

use super::abi::{Answer, Errno, Memory, clock};
use super::state::Host;
use std::time::{SystemTime, UNIX_EPOCH};

impl Host {
    /// A clock in nanoseconds.
    ///
    /// # Errors
    /// `notsup` for the clocks of processor time, `inval` for others.
    pub(super) fn now(&self, id: u32) -> Answer<u64> {
        let now = match id {
            clock::REALTIME => SystemTime::now().duration_since(UNIX_EPOCH).ok(),
            clock::MONOTONIC => Some(self.start.elapsed()),
            2 | 3 => return Err(Errno::Notsup),
            _ => return Err(Errno::Inval),
        };
        let now = now.map_or(0, |now| now.as_nanos() as u64);
        Ok(now - now % self.clock_resolution)
    }

    pub(super) fn clock_res_get(&mut self, memory: &mut Memory<'_>, id: u32, at: u32) -> Answer {
        self.now(id)?;
        memory.put_u64(at, self.clock_resolution)
    }

    pub(super) fn clock_time_get(
        &mut self,
        memory: &mut Memory<'_>,
        id: u32,
        _precision: u64,
        at: u32,
    ) -> Answer {
        memory.put_u64(at, self.now(id)?)
    }
}
