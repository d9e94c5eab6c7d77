//! What the machine asks of the world around it: two clocks and randomness.
//!
//! Everything else (console bytes, frames, file requests) travels through the
//! [channels](crate::channels), which the embedder fills and drains between two
//! calls of `run`. So no call out of the machine ever blocks.

mod memory;

pub use memory::MemoryHost;

/// Clocks and entropy, given by the embedder.
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
}
