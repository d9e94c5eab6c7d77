//! Running guests: the emulator under wasmtime, one thread for each guest.
//!
//! A guest starts from a snapshot, a module whose memory holds a Linux that has
//! booted, mapped copy-on-write. [`Sandbox`] is such a guest; what it runs goes
//! over the agent's port as [`a99_guest_agent::protocol`] describes, never over
//! the console.
//!
//! - `engine`: wasmtime's configuration; `imports`: the few functions that the
//!   emulator gets; `instance`: its exports.
//! - `guest`: a guest driven turn by turn; `thread`: the loop around it, which
//!   sleeps while the guest does; `sandbox` and `stream`: what callers see.
//! - `snapshot`: from kernel and files to the module that guests start from;
//!   `precompiled`: that module as machine code on disk, and loading it;
//!   `image`: the one of the last build; `machine`: all this for the builder of
//!   images; `trial`: guests that prove that it works.

mod engine;
mod error;
mod guest;
mod image;
mod imports;
mod instance;
mod machine;
mod precompiled;
mod sandbox;
mod snapshot;
mod stream;
mod thread;
mod trial;

pub use engine::{compatibility, engine};
pub use error::{VmCode, VmError};
pub use guest::Boot;
pub use image::Image;
pub use machine::WasmMachine;
pub use precompiled::{Manifest, load, verify, write};
pub use sandbox::{Command, Options, Output, Run, Sandbox};
pub use snapshot::{Figures, snapshot};
pub use thread::Event;
pub use trial::{Booter, Tried, prove};
