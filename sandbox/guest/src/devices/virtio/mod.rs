//! Virtio 1.2 devices over MMIO (version 2) with split virtqueues.
//!
//! All that the guest gives (addresses, lengths, indices, register writes) is
//! checked. A guest that breaks the rules finds its device in the state
//! `DEVICE_NEEDS_RESET`; it cannot make the emulator panic, loop or touch
//! memory that is not RAM.

pub(crate) mod balloon;
pub(crate) mod blk;
pub(crate) mod console;
pub(crate) mod mmio;
pub(crate) mod net;
pub(crate) mod p9;
pub(crate) mod queue;
pub(crate) mod rng;

#[cfg(test)]
mod driver;
