//! Virtio 1.2 devices over MMIO (version 2) with split virtqueues.
//!
//! All that the guest gives (addresses, lengths, indices, register writes) is
//! checked. A guest that breaks the rules finds its device in the state
//! `DEVICE_NEEDS_RESET`; it cannot make the emulator panic, loop or touch
//! memory that is not RAM.

pub mod balloon;
pub mod blk;
pub mod console;
pub mod mmio;
pub mod net;
pub mod p9;
pub mod queue;
pub mod rng;

#[cfg(test)]
mod driver;
