//! Host interface of the machine: two clocks, randomness, and the
//! sectors of its disks.
//!
//! Everything else (console bytes, frames, file requests) travels through the
//! channels, which the embedder fills and drains between two calls of `run`. So no call out of the machine waits for anything but a file.

#[cfg(any(test, feature = "testing"))]
mod memory;

#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryHost;

pub use a99_sandbox_abi::Disk;

/// Clocks, entropy and disks, given by the embedder.
pub trait Host {
    /// A clock that never goes back, in nanoseconds from any origin. Its
    /// resolution is the guest's.
    fn monotonic_ns(&mut self) -> u64;

    /// Nanoseconds since 1970-01-01T00:00:00Z.
    fn wall_ns(&mut self) -> u64;

    /// Fills `buf` with bytes fit for keys.
    fn random(&mut self, buf: &mut [u8]);

    /// Asks for a module to be compiled, off this thread. If that works out,
    /// the embedder says so later, between two runs, with the ticket; it need
    /// not.
    fn translate(&mut self, _module: &[u8], _ticket: u32) {}

    /// Fills `buf` with what is at `offset` of a disk; `false` if that cannot be
    /// read.
    fn disk_read(&mut self, _disk: Disk, _offset: u64, _buf: &mut [u8]) -> bool {
        false
    }

    /// Writes at `offset` of a disk; `false` if that cannot be done.
    fn disk_write(&mut self, _disk: Disk, _offset: u64, _bytes: &[u8]) -> bool {
        false
    }

    /// Gives up `len` bytes at `offset` of a disk. With `zero` they must read as
    /// zeros afterwards, else as anything. `false` if that cannot be done.
    fn disk_discard(&mut self, _disk: Disk, _offset: u64, _len: u64, _zero: bool) -> bool {
        false
    }

    /// What was written is to last as long as the disk does.
    fn disk_flush(&mut self, _disk: Disk) -> bool {
        false
    }

    /// The guest does not use this range of its memory. Its contents may change
    /// to anything that the guest may know.
    fn release(&mut self, _memory: &mut [u8]) {}
}
