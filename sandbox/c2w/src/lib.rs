//! Images of container2wasm: other people's WebAssembly modules that hold an
//! emulator and a container, for WASI preview1.
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
//! An image is compiled, never loaded as machine code; it may import preview1
//! and nothing else; its memory is bounded; it can be stopped at any point. Its
//! files are those of its mounts, held beneath them by the kernel; its network
//! is a [`FrameLink`] and not there without one.
//!
//! # What such an image cannot do
//!
//! Our own guest ([`a99_sandbox_runner`]) has a channel for commands apart from its
//! console. These images have a terminal only, so here:
//!
//! - standard error comes on standard output ([`Output::stderr`] holds what the
//!   emulator itself says);
//! - a command's standard input is whole before it starts, and at most 1 MiB
//!   ([`Run::stdin`]); without one it reads from `/dev/null`;
//! - commands run one after the other, in one shell;
//! - a command that ignores the terminal's interrupts cannot be ended; others
//!   are refused while it runs. A command's background children live on;
//! - a program in the background that prints while a command runs is mixed into
//!   its output;
//! - a terminal makes two bytes of each line end, which are made one again;
//! - an exit status of the container's own command is not reported, and there is no
//!   size of the terminal to set;
//! - arguments, environment and mounts together have 1,024 bytes;
//! - permission bits, locks and ownership do not pass through mounts;
//! - all machines of an image begin with the same random state, as the image
//!   has it.
//!
//! - `image`: looking through and compiling; `options`: what a machine gets;
//!   `machine`: its thread and its callers; `console`: what the two share.
//! - `wasi`: preview1; `files`: mounts; `link`: frames.
//! - `session`: commands over the console; `marker`: finding their ends in it.

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
