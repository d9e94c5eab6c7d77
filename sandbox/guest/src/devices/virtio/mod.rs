//! Virtio 1.2 devices over MMIO (version 2) with split virtqueues.
//!
//! All guest input (addresses, lengths, indices, register writes) is checked. A guest that
//! violates the protocol finds its device in the state `DEVICE_NEEDS_RESET`; it cannot make
//! the emulator panic, loop or access memory outside RAM.

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
