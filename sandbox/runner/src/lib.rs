//! Guest runner: the emulator under wasmtime, one thread for each guest.
//!
//! A guest starts from a snapshot: a module whose memory holds a booted Linux, mapped
//! copy-on-write. Commands travel over the agent's port as [`a99_sandbox_protocol`]
//! describes, never over the console.
//!
//! - `engine`: wasmtime's configuration; `imports`: the few functions that the emulator
//!   gets; `instance`: its exports.
//! - `guest`: a guest driven step by step; `event_loop`: the loop around it, which sleeps
//!   while the guest does; `mailbox` and `watch`: state shared with callers; `command` and
//!   `ledger`: state and credit of a command; `guest_time`: the guest's own time;
//!   `watchdog`: pings the agent; `backends`: traits of device backends.
//! - `launch`: starts the loop's thread; `handle`: handles of guest and commands for the
//!   library; `output`: results of commands.
//! - `translator`: compiles hot guest code.
//! - `disk`: the files behind a guest's disks; `release`: returns unused memory.
//! - `connect`: turns mounts and network into those backends.
//! - `foreign`: limits of foreign modules; `worker`: compiles and tests them in a separate
//!   process.
//! - `frozen`: the state of a running guest, shared with its copies: `cow` its memory,
//!   `levels` its disk; `save`: that state as data.
//! - `snapshot`: from kernel and files to the module that guests start from; `training` and
//!   `link`: add AOT regions of a training workload to it; `precompiled`: writes that
//!   module as machine code to disk, and loads it; `bare`: machine code without Linux, for
//!   tests and measurements; `image`: the image of the last build; `machine`: all this for
//!   the image builder; `smoke_test`: boots guests to verify an image.

#![warn(unreachable_pub)]

mod backends;
#[cfg(feature = "testing")]
mod bare;
mod code_store;
mod command;
mod connect;
mod cow;
mod disk;
mod engine;
mod error;
mod event_loop;
mod foreign;
mod frozen;
mod guest;
mod guest_time;
mod handle;
mod image;
mod imports;
mod instance;
mod known_code;
mod launch;
mod ledger;
mod levels;
mod link;
mod machine;
mod mailbox;
mod output;
mod precompiled;
mod release;
mod save;
mod smoke_test;
mod snapshot;
mod training;
mod translator;
mod watch;
mod watchdog;
mod worker;

pub use backends::{Backends, FileServer, NetBackend};
#[cfg(feature = "testing")]
pub use bare::{Bare, Execution, Instances};
pub use connect::{BackendOptions, ConnectedBackends, has_network, start_gateway};
pub use disk::{DiskOptions, Layer, MAX_LAYERS, OwnDisk, check as check_disk};
pub use engine::{compatibility, engine};
pub use error::{VmCode, VmError};
pub use event_loop::{Bounds, CREDIT_BYTES, refuse};
pub use foreign::{
    MAX_CODE, MAX_FUNCTION, MAX_FUNCTION_HERE, MAX_FUNCTIONS, check_code, check_code_here, too_much,
};
pub use frozen::{Frozen, MAX_DESCRIPTORS, Origin};
pub use guest::{Boot, Setup};
pub use handle::{CommandHandle, GuestHandle, SpawnOptions, random_id};
pub use image::Image;
pub use launch::{launch, spawn_thread};
pub use machine::{CMDLINE, MAX_RAM_BYTES, RAM_BYTES, WasmMachine, ram_of};
pub use mailbox::{Event, FrozenSlot, Mailbox, Message, Sink, SpawnRequest, Status, stopped};
pub use output::Output;
pub use precompiled::{Manifest, from_worker, load, verify, write};
pub use save::Saved;
pub use smoke_test::{Booter, ScriptOutcome, smoke_test};
pub use translator::{GuestJit, Translations};
pub use watch::{Until, Watch, block_on};
pub use worker::{CompileForeign, Worker, serve};
