//! The Linux sandbox: a guest that runs in WebAssembly, without KVM, root,
//! Docker or a network.
//!
//! [`image`] builds what a guest starts from: its kernel and its root file
//! system. `vm`, a feature, starts guests and runs commands in them; with it
//! comes `c2w`, which does the same with images of container2wasm.

#[cfg(feature = "vm")]
pub mod c2w;
pub mod image;
#[cfg(feature = "vm")]
pub mod vm;
