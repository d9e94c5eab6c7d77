//! The Linux sandbox: a guest that runs in WebAssembly, without KVM, root,
//! Docker or a network.
//!
//! [`image`] builds what a guest starts from: its kernel and its root file
//! system. [`vm`] starts guests and runs commands in them.

pub mod image;
pub mod vm;
