//! Host interface of the machine: two clocks, randomness, and the sectors of its disks.
//!
//! All other data (console bytes, frames, file requests) travels through the channels,
//! which the embedder fills and drains between two calls of `run`. So calls out of the
//! machine wait only for files.

#[cfg(any(test, feature = "testing"))]
mod memory;

#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryHost;

pub use a99_sandbox_abi::Disk;

/// Clocks, entropy and disks that the embedder provides.
pub trait Host {
    /// Monotonic clock in nanoseconds from an arbitrary origin. Its resolution is the
    /// guest's.
    fn monotonic_ns(&mut self) -> u64;

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    fn wall_ns(&mut self) -> u64;

    /// Fills `buf` with cryptographically secure random bytes.
    fn random(&mut self, buf: &mut [u8]);

    /// Requests the translation of a page, for user mode only or for any mode, hot at these
    /// offsets; or, without any, what the embedder already has for these bytes and this mode.
    /// The page may be followed by the first two bytes of the next one. If it returns `true`,
    /// it announces the result later, between two runs, with the ticket.
    fn translate(&mut self, _page: &[u8], _user: bool, _entries: &[u16], _ticket: u32) -> bool {
        false
    }

    /// Reads from a disk at `offset`; `false` on failure.
    fn disk_read(&mut self, _disk: Disk, _offset: u64, _buf: &mut [u8]) -> bool {
        false
    }

    /// Writes to a disk at `offset`; `false` on failure.
    fn disk_write(&mut self, _disk: Disk, _offset: u64, _bytes: &[u8]) -> bool {
        false
    }

    /// Discards `len` bytes of a disk at `offset`. With `zero` they must read as zeros
    /// afterwards, else as anything. `false` on failure.
    fn disk_discard(&mut self, _disk: Disk, _offset: u64, _len: u64, _zero: bool) -> bool {
        false
    }

    /// Makes earlier writes as durable as the disk.
    fn disk_flush(&mut self, _disk: Disk) -> bool {
        false
    }

    /// Releases a memory range that the guest does not use. Its contents may change to any
    /// bytes that the guest may know.
    fn release(&mut self, _memory: &mut [u8]) {}
}
