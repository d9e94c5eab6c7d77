//! In-memory host, whose clocks and randomness its owner controls.
//!
//! It makes runs repeatable: tests move time by hand, and the same seed gives the same
//! "random" bytes. It is unsuitable for guests that need secrets.

use super::{Disk, Host};

/// A repeatable host.
#[derive(Clone, Debug)]
pub struct MemoryHost {
    /// Next value of [`Host::monotonic_ns`].
    pub monotonic_ns: u64,
    /// Value of [`Host::wall_ns`], in nanoseconds since 1970.
    pub wall_ns: u64,
    /// Nanoseconds that each read advances the monotonic clock.
    pub step_ns: u64,
    /// Contents of the disk, shared by all disk numbers.
    pub disk: Vec<u8>,
    /// Lengths of the memory ranges that the guest released.
    pub released: Vec<usize>,
    state: u64,
}

impl MemoryHost {
    /// Creates a host with clocks at zero that only move by hand; `seed` determines the
    /// bytes of [`Host::random`].
    pub fn new(seed: u64) -> Self {
        Self {
            monotonic_ns: 0,
            wall_ns: 0,
            step_ns: 0,
            disk: Vec::new(),
            released: Vec::new(),
            state: seed,
        }
    }

    /// The next value of SplitMix64 (Steele, Lea, Flood: Fast splittable
    /// pseudorandom number generators).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn sectors(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.disk.get_mut(offset..offset.checked_add(len)?)
    }
}

impl Host for MemoryHost {
    fn monotonic_ns(&mut self) -> u64 {
        let now = self.monotonic_ns;
        self.monotonic_ns = now.saturating_add(self.step_ns);
        now
    }

    fn wall_ns(&mut self) -> u64 {
        self.wall_ns
    }

    fn random(&mut self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }

    fn disk_read(&mut self, _: Disk, offset: u64, buf: &mut [u8]) -> bool {
        let sectors = self.sectors(offset, buf.len());
        sectors.map(|from| buf.copy_from_slice(from)).is_some()
    }

    fn disk_write(&mut self, _: Disk, offset: u64, bytes: &[u8]) -> bool {
        let sectors = self.sectors(offset, bytes.len());
        sectors.map(|to| to.copy_from_slice(bytes)).is_some()
    }

    fn disk_discard(&mut self, _: Disk, offset: u64, len: u64, _: bool) -> bool {
        let sectors = self.sectors(offset, len as usize);
        sectors.map(|sectors| sectors.fill(0)).is_some()
    }

    fn disk_flush(&mut self, _: Disk) -> bool {
        true
    }

    fn release(&mut self, memory: &mut [u8]) {
        memory.fill(0);
        self.released.push(memory.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_itself() {
        let (mut a, mut b) = (MemoryHost::new(7), MemoryHost::new(7));
        let (mut x, mut y) = ([0; 21], [0; 21]);
        a.random(&mut x);
        b.random(&mut y);
        assert_eq!(x, y);
        a.random(&mut x);
        assert_ne!(x, y);
        a.step_ns = 5;
        assert_eq!((a.monotonic_ns(), a.monotonic_ns()), (0, 5));
    }
}
