//! The Linux sandbox: a guest that runs in WebAssembly, without KVM, root,
//! Docker or a network.
//!
//! [`cache`] is what a guest starts from, an image in the user's cache folder, and
//! how it comes there out of a file. [`net`] is the backend of its network, [`p9`] the
//! server of its mounts. The feature `vm` starts guests and runs commands in them, the
//! feature `c2w` does the same with images of container2wasm, and the feature
//! `build` makes images (`image`). Starting a guest never builds one, with that
//! feature neither: where no image is, it fails with `VmCode::NoImage`, which names
//! the command that builds.
#![cfg_attr(feature = "vm", doc = include_str!("tour.md"))]
//
// - `builder`: what can be chosen, and the start; `sandbox`: what a running
//   one does.
// - `command`: a program to run; `collect`: waiting for its end; `process`:
//   following its streams; `cancel`: ending it from elsewhere.
// - `copy`: files between host and guest.
// - `foreign`: an image of container2wasm in place of our guest.
//
// Nothing here waits but futures and `Builder::start_blocking`; the guest's own
// thread (`a99_sandbox_runner`) does the work.
#![warn(unreachable_pub)]

#[cfg(feature = "vm")]
mod builder;
#[cfg(feature = "vm")]
mod cancel;
#[cfg(feature = "vm")]
mod collect;
#[cfg(feature = "vm")]
mod command;
#[cfg(feature = "vm")]
mod copy;
#[cfg(feature = "c2w")]
mod foreign;
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
pub use a99_sandbox_p9 as p9;

#[cfg(feature = "vm")]
pub use self::{
    builder::Builder,
    cancel::Cancel,
    command::{Command, ExecOptions},
    process::{Chunk, Process},
    sandbox::Sandbox,
    vm::{GuestJit, Image, Output, VmCode, VmError, block_on},
};
#[cfg(feature = "vm")]
pub use a99_egress::{Policy, PolicyError};
#[cfg(feature = "vm")]
pub use a99_sandbox_p9::{Mount, MountMode};
#[cfg(feature = "vm")]
pub use a99_sandbox_protocol::{Ending, Exited, Stream, tree::Copied};
