//! Pipes of a command, with credit-based flow control.

use super::port::{Port, set_nonblocking};
use crate::protocol::{Stream, WINDOW_BYTES};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use std::io;

/// Makes a pipe: read end, write end. Both are closed by `exec`.
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// Opens a stream that is empty and accepts everything.
pub(super) fn nothing() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(c"/dev/null", flags, Mode::empty())?)
}

/// State of an output after [`Output::pump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Bytes were moved; there may be more.
    Moved,
    /// The credit or the port's room is used up.
    Held,
    /// No bytes are available for now.
    Dry,
    /// The pipe has no writers left.
    Ended,
}

/// Read end of standard output or standard error.
#[derive(Debug)]
pub(super) struct Output {
    fd: OwnedFd,
    stream: Stream,
    credit: u32,
}

impl Output {
    pub(super) fn new(fd: OwnedFd, stream: Stream) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self::nonblocking(fd, stream))
    }

    /// Wraps a non-blocking descriptor.
    pub(super) fn nonblocking(fd: OwnedFd, stream: Stream) -> Self {
        Self {
            fd,
            stream,
            credit: WINDOW_BYTES,
        }
    }

    pub(super) fn stream(&self) -> Stream {
        self.stream
    }

    pub(super) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes);
    }

    /// Whether the host's credit allows a read.
    pub(super) fn wants_data(&self) -> bool {
        self.credit > 0
    }

    /// Moves one chunk to the host.
    pub(super) fn pump(&mut self, port: &mut Port, id: u64) -> Flow {
        if self.credit == 0 || !port.has_room() {
            return Flow::Held;
        }
        let limit = self.credit as usize;
        let read = port.send_output(id, self.stream, limit, |buffer| {
            rustix::io::read(&self.fd, buffer)
        });
        match read {
            Ok(0) => Flow::Ended,
            Ok(count) => {
                self.credit -= count as u32;
                Flow::Moved
            }
            Err(Errno::AGAIN) => Flow::Dry,
            Err(Errno::INTR) => Flow::Moved,
            // A terminal whose last user is gone returns EIO.
            Err(_) => Flow::Ended,
        }
    }

    /// Returns the descriptor, for a reader that does not report to the host.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Reads and discards; `false` once there are no writers left.
pub(super) fn discard(fd: &OwnedFd) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match rustix::io::read(fd, &mut buffer) {
            Ok(1..) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return true,
            Ok(0) | Err(_) => return false,
        }
    }
}

/// Send buffer. Sent bytes are freed even if it never becomes empty: a stream of gigabytes
/// needs no more memory than the pending bytes.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    taken: usize,
}

/// Maximum sent bytes before the pending ones are moved to the front, which is cheap
/// compared to sending them.
const MAX_TAKEN: usize = 64 << 10;

impl Outgoing {
    /// Number of pending bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// The pending bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// The buffer to append to.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Removes the first `count` bytes, which were sent.
    pub(super) fn took(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() || self.taken >= MAX_TAKEN {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}

/// Standard input of a command: the write end and the bytes that wait for it.
#[derive(Debug)]
pub(super) struct Input {
    fd: OwnedFd,
    waiting: Outgoing,
    /// Bytes taken since the last credit.
    unacked: u32,
    /// No further bytes will come.
    finished: bool,
}

/// End-of-file character of a terminal in its initial state, ^D.
pub(super) const TERMINAL_EOF: u8 = 0x04;

impl Input {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self {
            fd,
            waiting: Outgoing::default(),
            unacked: 0,
            finished: false,
        })
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.waiting.end().extend(bytes);
    }

    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.len() > 0
    }

    /// Writes bytes as far as the command takes them; `false` when the pipe is closed.
    pub(super) fn pump(&mut self) -> bool {
        while self.is_waiting() {
            match rustix::io::write(&self.fd, self.waiting.bytes()) {
                Ok(count) => {
                    self.waiting.took(count);
                    self.unacked += count as u32;
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => {
                    // The reader is gone: the rest counts as taken.
                    self.unacked += self.waiting.len() as u32;
                    return false;
                }
            }
        }
        !self.finished
    }

    /// Takes the credit to return to the host, in amounts worth a frame.
    pub(super) fn take_credit(&mut self) -> Option<u32> {
        let worth = !self.is_waiting() || self.unacked >= WINDOW_BYTES / 4;
        (worth && self.unacked > 0).then(|| std::mem::take(&mut self.unacked))
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_bytes_that_went_take_no_memory() {
        let mut outgoing = Outgoing::default();
        let mut expected = 0..=u8::MAX;
        for number in 0..100_000u32 {
            outgoing.end().extend([number as u8; 1000]);
            // More is added than is taken.
            if number > 100 {
                let next = expected.next().unwrap_or_else(|| {
                    expected = 1..=u8::MAX;
                    0
                });
                assert_eq!(outgoing.bytes()[..1000], [next; 1000]);
                outgoing.took(1000);
            }
        }
        assert_eq!(outgoing.len(), 101 * 1000);
        let held = outgoing.end().capacity();
        assert!(held < 4 * (101 * 1000 + MAX_TAKEN), "{held}");
        outgoing.took(101 * 1000);
        assert_eq!(outgoing.bytes(), b"");
    }
}
