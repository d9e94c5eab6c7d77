//! Connection of a command: sends frames, and reads those of the answer.

use super::Refusal;
use a99_frame::{Envelope, Frame, Incoming, Step};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Lost {
    Refused(Refusal),
    /// Nothing arrived within the stream's timeout; reading may go on.
    Late,
    /// The other end is another version of this program: it does not send frames.
    OtherVersion,
    Gone(String),
}

/// A connection to a host or to the daemon of a sandbox.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: UnixStream,
    /// The frame that has arrived in part.
    incoming: Incoming,
}

impl Connection {
    pub(crate) fn new(stream: UnixStream) -> Connection {
        Connection {
            stream,
            incoming: Incoming::default(),
        }
    }

    /// Sends a frame. The other end may have answered and closed before it read all of it: that
    /// answer is the error to report.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.stream.write_all(frame) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// The next frame of the answer: a notification, or the result.
    pub(crate) fn next(&mut self) -> Result<Frame, Lost> {
        let frame = self.frame().map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Lost::Late,
            ErrorKind::InvalidData => Lost::OtherVersion,
            _ => Lost::Gone(error.to_string()),
        })?;
        let frame = frame.ok_or_else(|| Lost::Gone("it ended".to_owned()))?;
        match frame.envelope {
            Envelope::Failed(_, error) => Err(Lost::Refused(error.into())),
            _ => Ok(frame),
        }
    }

    /// Reads a frame; `None` at the end of the stream. After a timeout it continues where it was.
    pub(crate) fn frame(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let count = match self.stream.read(self.incoming.room()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                count => count?,
            };
            match self.incoming.advance(count).map_err(invalid)? {
                Step::More => {}
                Step::Frame(frame) => return Ok(Some(frame)),
                Step::End => return Ok(None),
            }
        }
    }
}

/// An error of a frame as one of its stream.
pub(crate) fn invalid(error: a99_frame::FrameError) -> io::Error {
    let kind = match error {
        a99_frame::FrameError::Cut => ErrorKind::UnexpectedEof,
        _ => ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}
