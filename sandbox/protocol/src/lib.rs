//! Wire protocol: frames between host and agent over one byte stream.
//!
//! A frame is `len: u32`, `kind: u8`, `id: u64` (little endian), then `len` bytes of
//! payload. `id` names a command or another request. The host draws it at random for each,
//! and it ends with [`Report::Exited`], [`Report::Failed`] or the answer. A report about an
//! id that the host has not requested breaks the protocol: a sender that does not know an
//! id cannot forge a frame about it. Only frames of a guest that is being built have id 0.
//!
//! Credit bounds both directions of a command's data. A side sends no more bytes of a
//! stream than the other granted ([`WINDOW_BYTES`] at first, more by `Credit`), so an
//! unread stream never blocks the others.
//!
//! [`Request`] (host to guest) and [`Report`] (guest to host) describe the payloads.
//! Decoding accepts any bytes: a malformed frame is a [`ProtocolError`].

#![warn(unreachable_pub)]

mod codec;
pub mod kind;
mod report;
mod request;
mod resume;
#[cfg(target_os = "linux")]
pub mod tree;

pub use codec::{FrameReader, ProtocolError};
pub use report::{Ending, Exited, Reason, Report, output_frame};
pub use request::{Exec, Limits, PtySize, Request, Script, User, stdin_frame};
pub use resume::{Access, Identity, Ipv6, Mount, Network, Resume};

/// Protocol version, announced by [`Report::Ready`]. Both sides come from one build, so
/// they do not negotiate: another version is an error.
pub const VERSION: u16 = 7;

/// Name of the virtio-console port that carries the protocol.
pub const PORT_NAME: &str = "agent99.agent";

/// Size of a frame header in bytes.
pub const HEADER_BYTES: usize = 13;

/// Maximum payload in bytes. Linux accepts command lines up to a quarter of the stack, 2
/// MiB (`execve(2)`); a longer script belongs in a file.
pub const MAX_PAYLOAD: usize = (2 << 20) + (64 << 10);

/// Maximum bytes of a stream in one frame: small enough that streams which share the port
/// take turns, large enough that headers cost nothing.
pub const MAX_CHUNK: usize = 32 << 10;

/// Initial credit in bytes for one direction of a command, before the first `Credit`.
pub const WINDOW_BYTES: u32 = 256 << 10;

/// A stream of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    /// Standard input.
    Stdin = 0,
    /// Standard output, or all output of a terminal.
    Stdout = 1,
    /// Standard error.
    Stderr = 2,
}

impl Stream {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Stdin, Self::Stdout, Self::Stderr]
            .get(usize::from(number))
            .copied()
    }
}

#[cfg(test)]
mod tests;
