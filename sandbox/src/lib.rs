//! The Linux sandbox: a guest that runs in WebAssembly, without KVM, root,
//! Docker or a network.
//!
//! [`image`] builds what a guest starts from: its kernel and its root file
//! system. [`p9`] serves the host's files to a guest. `vm`, a feature, starts guests and runs commands in them.

pub mod image;
pub mod p9;
#[cfg(feature = "vm")]
pub mod vm;
