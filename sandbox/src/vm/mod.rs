//! Running guests: the emulator under wasmtime, one thread for each guest.
//!
//! A guest starts from a snapshot, a module whose memory holds a Linux that has
//! booted, mapped copy-on-write. What it runs goes over the agent's port as
//! [`a99_sandbox_protocol`] describes, never over the console.
//!
//! - `engine`: wasmtime's configuration; `imports`: the few functions that the
//!   emulator gets; `instance`: its exports.
//! - `guest`: a guest driven turn by turn; `thread`: the loop around it, which
//!   sleeps while the guest does; `mailbox` and `watch`: what it shares with
//!   callers; `ledger`: the credit of a command; `lived`: the guest's own time;
//!   `pulse`: whether its agent is there;
//!   `attach`: the far ends of the guest's devices.
//! - `launch`: starts that thread; `handle`: it, as [`crate::Sandbox`] holds it;
//!   `output`: what commands give.
//! - `translator`: compiles hot guest code.
//! - `disk`: the files behind a guest's disks; `release`: memory that it does not
//!   use.
//! - `apart`: compiles and tries what others made, in a process of its own.
//! - `save`: a running guest as data.
//! - `snapshot`: from kernel and files to the module that guests start from;
//!   `rehearsal` and `link`: with the translations that are worth shipping in it;
//!   `precompiled`: that module as machine code on disk, and loading it;
//!   `bare`: machine code without Linux, for tests and measurements;
//!   `image`: the one of the last build; `machine`: all this for the builder of
//!   images; `trial`: guests that prove that it works.

mod apart;
mod attach;
mod bare;
mod disk;
mod engine;
mod error;
mod guest;
mod handle;
mod image;
mod imports;
mod instance;
mod launch;
mod ledger;
mod link;
mod lived;
mod machine;
mod mailbox;
mod output;
mod precompiled;
mod pulse;
mod rehearsal;
mod release;
mod save;
mod snapshot;
mod thread;
mod translator;
mod trial;
mod watch;

pub use apart::{Worker, serve};
pub(crate) use attach::{Attachments, Cable, FileServer};
pub use bare::{Bare, Execution};
pub(crate) use disk::{DiskOptions, OwnDisk, check as check_disk};
pub use engine::{compatibility, engine};
pub use error::{VmCode, VmError};
pub use guest::Boot;
pub(crate) use guest::Setup;
pub(crate) use handle::{Handle, Opening, Running};
pub use image::Image;
pub(crate) use launch::{launch, spawn};
pub use machine::{CMDLINE, WasmMachine};
pub(crate) use mailbox::{Event, Mailbox, Message, Open, Sink, stopped};
pub use output::Output;
pub(crate) use precompiled::from_worker;
pub use precompiled::{Manifest, load, verify, write};
pub(crate) use save::Saved;
pub(crate) use thread::{Bounds, CREDIT_BYTES, refuse};
pub use translator::{Translate, Translations};
pub use trial::{Booter, Tried, prove};
pub(crate) use watch::Watch;
pub use watch::block_on;
