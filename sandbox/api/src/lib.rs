//! The Linux sandbox: a guest that runs in WebAssembly, without KVM, root,
//! Docker or a network.
//!
//! [`cache`] manages images in the user's cache folder, and compiles a module file into
//! one. [`net`] is the backend of a guest's network, [`p9`] the server of its mounts. The
//! feature `vm` starts guests and runs commands in them, `c2w` does the same with
//! container2wasm images, and `build` builds images (`image`). Starting a guest never
//! builds one, even with `build`: without an image it fails with `VmCode::NoImage`, which
//! names the command that builds.
#![cfg_attr(feature = "vm", doc = include_str!("tour.md"))]
//
// - `builder`: options and start; `checks`: their limits; `layers`, `packs`: files of its root;
//   `sandbox`: the operations of a running sandbox.
// - `command`: a program to run; `collect`: waiting for its end; `process`: following its
//   streams; `cancel`: ending it from elsewhere.
// - `copied`: what a restored or forked sandbox continues from.
// - `copy`: files between host and guest.
// - `foreign`: a container2wasm image instead of our guest.
//
// Only futures and `Builder::start_blocking` wait; the guest's own thread
// (`a99_sandbox_runner`) does the work.
#![warn(unreachable_pub)]

#[cfg(feature = "vm")]
mod builder;
#[cfg(feature = "vm")]
mod cancel;
#[cfg(feature = "vm")]
mod checks;
#[cfg(feature = "vm")]
mod collect;
#[cfg(feature = "vm")]
mod command;
#[cfg(feature = "vm")]
mod copied;
#[cfg(feature = "vm")]
mod copy;
#[cfg(feature = "vm")]
mod disk;
#[cfg(feature = "c2w")]
mod foreign;
#[cfg(feature = "vm")]
mod layers;
#[cfg(feature = "vm")]
mod packs;
#[cfg(feature = "vm")]
mod process;
#[cfg(feature = "vm")]
mod sandbox;
#[cfg(feature = "vm")]
pub mod vm;

#[cfg(feature = "c2w")]
pub use a99_sandbox_c2w as c2w;
pub use a99_sandbox_cache as cache;
#[cfg(feature = "build")]
pub use a99_sandbox_image as image;
pub use a99_sandbox_net as net;
#[cfg(feature = "vm")]
pub use a99_sandbox_oci as oci;
pub use a99_sandbox_p9 as p9;

#[cfg(feature = "vm")]
pub use self::{
    builder::Builder,
    cancel::Cancel,
    command::{Command, ExecOptions},
    process::{Chunk, Process},
    sandbox::Sandbox,
    vm::{Frozen, GuestJit, Image, Layer, Output, VmCode, VmError, block_on},
};
#[cfg(feature = "vm")]
pub use a99_egress::{Policy, PolicyError};
#[cfg(feature = "vm")]
pub use a99_sandbox_p9::{Mount, MountMode};
#[cfg(feature = "vm")]
pub use a99_sandbox_protocol::{Ending, Exited, Stream, tree::Copied};
