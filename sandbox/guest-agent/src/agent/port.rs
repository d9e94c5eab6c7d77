//! Port: the byte stream to the host.

use super::streams::Outgoing;
use crate::protocol::{
    FrameReader, MAX_CHUNK, PORT_NAME, ProtocolError, Report, Request, Stream, output_frame,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Folder in which the kernel lists the named ports of virtio consoles.
const PORTS: &str = "/sys/class/virtio-ports";

/// Interval at which the port is polled for: the kernel adds it some time after the device.
const PORT_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Unsent bytes above which no more output of commands is read: it waits in the pipes, so
/// that urgent frames do not wait long behind it.
const QUEUE_BYTES: usize = 64 << 10;

/// The port, with partly received frames and unsent bytes.
#[derive(Debug)]
pub(super) struct Port {
    fd: OwnedFd,
    reader: FrameReader,
    queue: Outgoing,
    /// Read buffer of [`MAX_CHUNK`] bytes. It is reused because clearing it for each read
    /// takes longer than the rest of a short command.
    scratch: Vec<u8>,
}

impl Port {
    /// Opens the agent's port, once the kernel has it.
    pub(super) fn open() -> io::Result<Self> {
        loop {
            if let Some(device) = find()? {
                let flags = OFlags::RDWR | OFlags::CLOEXEC;
                let fd = rustix::fs::open(device, flags, Mode::empty())?;
                return Self::new(fd);
            }
            std::thread::sleep(PORT_POLL_INTERVAL);
        }
    }

    /// Uses `fd` as the port.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self {
            fd,
            reader: FrameReader::new(),
            queue: Outgoing::default(),
            scratch: vec![0; MAX_CHUNK],
        })
    }

    /// Reads available bytes; `false` at the end of the stream.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        loop {
            match rustix::io::read(&self.fd, &mut self.scratch) {
                Ok(0) => return Ok(false),
                Ok(count) => self.reader.push(&self.scratch[..count]),
                Err(Errno::AGAIN) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the next complete request.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Request)>, ProtocolError> {
        self.reader.next(Request::decode)
    }

    /// Queues a report.
    pub(super) fn send(&mut self, id: u64, report: &Report) {
        report.encode(id, self.queue.end());
    }

    /// Queues output that `read` fills into a buffer of at most `limit` bytes; returns the
    /// result of `read`, the number of bytes.
    pub(super) fn send_output(
        &mut self,
        id: u64,
        stream: Stream,
        limit: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let room = limit.min(self.scratch.len());
        let count = read(&mut self.scratch[..room])?;
        if count > 0 {
            output_frame(self.queue.end(), id, stream, &self.scratch[..count]);
        }
        Ok(count)
    }

    /// Whether output of commands may be queued.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < QUEUE_BYTES
    }

    /// Whether bytes wait to be sent.
    pub(super) fn is_pending(&self) -> bool {
        self.queue.len() > 0
    }

    /// Sends bytes as far as the host takes them.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.is_pending() {
            match rustix::io::write(&self.fd, self.queue.bytes()) {
                Ok(count) => self.queue.took(count),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes reads and writes of `fd` non-blocking.
pub(super) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// Finds the device path of the agent's port, if it exists.
fn find() -> io::Result<Option<String>> {
    let Ok(ports) = std::fs::read_dir(PORTS) else {
        return Ok(None);
    };
    for port in ports {
        let port = port?;
        let name = std::fs::read_to_string(port.path().join("name")).unwrap_or_default();
        if name.trim_end() == PORT_NAME {
            return Ok(port.file_name().to_str().map(|name| format!("/dev/{name}")));
        }
    }
    Ok(None)
}
