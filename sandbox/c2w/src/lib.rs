//! container2wasm images: foreign WebAssembly modules that hold an emulator and a
//! container, for WASI preview1.
//!
//! ```no_run
//! use a99_sandbox_c2w::{Image, Machine, Mount, Options, Run};
//! use std::time::Duration;
//!
//! let image = Image::open("alpine.wasm")?;
//! let mount = Mount {
//!     guest: "/mnt/data".into(),
//!     host: "data".into(),
//!     ..Mount::default()
//! };
//! let options = Options {
//!     mounts: vec![mount],
//!     ..Options::default()
//! };
//! let machine = Machine::start(&image, options)?;
//! let run = Run {
//!     timeout: Some(Duration::from_secs(10)),
//!     ..Run::default()
//! };
//! let output = machine.exec("ls /mnt/data", &run)?;
//! assert_eq!(output.exit_code, 0);
//! machine.stop();
//! # Ok::<(), a99_sandbox_runner::VmError>(())
//! ```
//!
//! An image is compiled, never loaded as machine code; it may import only preview1; its
//! memory is bounded; it can be stopped at any point. Its files are those of its mounts, to
//! which the kernel confines it. Its network is a [`FrameLink`]; without one it has no network.
//!
//! # Limits of such an image
//!
//! Our own guest ([`a99_sandbox_runner`]) has a channel for commands apart from its
//! console. These images have only a terminal, so here:
//!
//! - standard error arrives on standard output ([`Output::stderr`] holds the emulator's own
//!   messages);
//! - a command's standard input must be complete before it starts, and has at most 1 MiB
//!   ([`Run::stdin`]); without one the command reads from `/dev/null`;
//! - commands run one after the other, in one shell;
//! - a command that ignores the terminal's interrupts cannot be ended; other commands are
//!   refused while it runs. A command's background children keep running;
//! - output of a background program that prints while a command runs is mixed into the
//!   command's output;
//! - a terminal makes two bytes of each line end, which are turned back into one;
//! - the exit status of the container's own command is not reported, and the terminal's
//!   size cannot be set;
//! - arguments, environment and mounts together have 1,024 bytes;
//! - permission bits, locks and ownership do not pass through mounts;
//! - all machines of an image start with the image's random state.
//!
//! - `image`: checks and compiles; `options`: options of a machine; `machine`: its thread
//!   and its callers; `console`: state shared by the two.
//! - `wasi`: preview1; `files`: mounts; `link`: frames.
//! - `session`: commands over the console; `marker`: finds their ends in it.

#![warn(unreachable_pub)]

mod console;
mod files;
mod image;
mod link;
mod machine;
mod marker;
mod options;
mod session;
mod wasi;

pub use a99_sandbox_runner::{MAX_CODE, MAX_FUNCTION, MAX_FUNCTION_HERE, MAX_FUNCTIONS};
pub use console::{OnOutput, Source};
pub use image::{Image, MAX_FILE, precompile};
pub use link::{FrameLink, MAX_FRAME, Wake};
pub use machine::Machine;
pub use options::{INFO_BYTES, MAX_INPUT, Mount, Options, Run};
pub use session::Output;
