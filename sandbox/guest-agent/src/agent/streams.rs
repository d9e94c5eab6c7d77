//! Pipes of a command, with their credit.

use super::port::{Port, set_nonblocking};
use crate::protocol::{Stream, WINDOW_BYTES};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use std::io;

/// A pipe: end to read, end to write. Neither outlives an `exec`.
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// A stream that is empty, and takes everything.
pub(super) fn nothing() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(c"/dev/null", flags, Mode::empty())?)
}

/// Where an output stands after [`Output::pump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Something was moved; there may be more.
    Moved,
    /// Credit or the port's room is used up.
    Held,
    /// Nothing to read for now.
    Dry,
    /// Nobody can write to it any more.
    Ended,
}

/// The end to read of standard output or standard error.
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

    /// Of a descriptor whose reads return at once.
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

    /// Whether a read makes sense as far as the host's credit goes.
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
            // A terminal whose last user is gone gives EIO.
            Err(_) => Flow::Ended,
        }
    }

    /// The descriptor, for one who reads on without reports to the host.
    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Reads and forgets; `false` once nobody can write to it any more.
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

/// Bytes that go out as they are taken. Those that went are forgotten also if there are
/// always more: a stream of gigabytes takes no more memory than what waits.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    taken: usize,
}

/// Bytes that are gone and still there, at most: moving what waits to the front costs
/// little beside sending them.
const MAX_TAKEN: usize = 64 << 10;

impl Outgoing {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Those that wait.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Where more is added.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The first of them went.
    pub(super) fn took(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() || self.taken >= MAX_TAKEN {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}

/// Standard input of a command: the end to write and what waits for it.
#[derive(Debug)]
pub(super) struct Input {
    fd: OwnedFd,
    waiting: Outgoing,
    /// Bytes taken since the last credit.
    unacked: u32,
    /// No more will come.
    finished: bool,
}

/// The end-of-file character of a terminal in its initial state, ^D.
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

    /// Writes what the command takes; `false` when the pipe is of no more use.
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
                    // Nobody reads: the rest counts as taken.
                    self.unacked += self.waiting.len() as u32;
                    return false;
                }
            }
        }
        !self.finished
    }

    /// Credit for the host, in amounts worth a frame.
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
            // There is always more than is taken.
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
