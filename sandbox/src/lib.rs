//! The Linux sandbox: a guest that runs in WebAssembly, without KVM, root,
//! Docker or a network.
//!
//! [`image`] builds what a guest starts from: its kernel and its root file
//! system. The rest, the feature `vm`, starts guests and runs commands in them.
#![cfg_attr(feature = "vm", doc = include_str!("tour.md"))]

#[cfg(feature = "vm")]
mod api;
pub mod image;
#[cfg(feature = "vm")]
pub mod vm;

#[cfg(feature = "vm")]
pub use api::*;
#[cfg(feature = "vm")]
pub use vm::{Image, Output, VmCode, VmError, block_on};
