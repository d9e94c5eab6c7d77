//! The Linux sandbox: a guest that runs in WebAssembly, without KVM, root,
//! Docker or a network.
//!
//! [`image`] builds what a guest starts from: its kernel and its root file
//! system. [`net`] is the far end of its network, [`p9`] the server of its
//! mounts. The rest, the feature `vm`, starts guests and runs commands in them,
//! and `c2w` does the same with images of container2wasm.
#![cfg_attr(feature = "vm", doc = include_str!("tour.md"))]

#[cfg(feature = "vm")]
mod api;
#[cfg(feature = "vm")]
pub mod c2w;
#[cfg(feature = "vm")]
pub mod vm;

pub use a99_sandbox_image as image;
pub use a99_sandbox_net as net;
pub use a99_sandbox_p9 as p9;
#[cfg(feature = "vm")]
pub use api::*;
#[cfg(feature = "vm")]
pub use vm::{Image, Output, Translate, VmCode, VmError, block_on};
