//! The byte stream to the host.

use crate::protocol::{FrameReader, PORT_NAME, ProtocolError, Report, Request};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Where the kernel lists the named ports of virtio consoles.
const PORTS: &str = "/sys/class/virtio-ports";

/// Wait between two looks for the port, which the kernel adds some time after
/// the device.
const PORT_RETRY: Duration = Duration::from_millis(2);

/// Bytes that one read from the host takes.
const READ_BYTES: usize = 16 << 10;

/// Unsent bytes above which no more output of commands is read: they wait in
/// their pipes, and what is urgent does not wait long behind them.
const QUEUE_BYTES: usize = 64 << 10;

/// The port, with what came in part and what the host has not taken.
#[derive(Debug)]
pub(super) struct Port {
    fd: OwnedFd,
    reader: FrameReader,
    queue: Vec<u8>,
    sent: usize,
}

impl Port {
    /// Opens the port of the agent, once the kernel has it.
    pub fn open() -> io::Result<Self> {
        loop {
            if let Some(device) = find()? {
                let flags = OFlags::RDWR | OFlags::CLOEXEC;
                let fd = rustix::fs::open(device, flags, Mode::empty())?;
                return Self::new(fd);
            }
            std::thread::sleep(PORT_RETRY);
        }
    }

    /// Speaks over `fd`.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self {
            fd,
            reader: FrameReader::new(),
            queue: Vec::new(),
            sent: 0,
        })
    }

    /// Reads what is there; `false` at the end of the stream.
    pub fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0; READ_BYTES];
        loop {
            match rustix::io::read(&self.fd, &mut buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => self.reader.push(&buffer[..count]),
                Err(Errno::AGAIN) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next request that came.
    pub fn next(&mut self) -> Result<Option<(u32, Request)>, ProtocolError> {
        self.reader.next(Request::decode)
    }

    /// Queues a report.
    pub fn send(&mut self, id: u32, report: &Report) {
        report.encode(id, &mut self.queue);
    }

    /// The queue, for output read straight into it.
    pub fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.queue
    }

    /// Whether output of commands may be added.
    pub fn has_room(&self) -> bool {
        self.queue.len() - self.sent < QUEUE_BYTES
    }

    /// Whether something waits to be sent.
    pub fn is_pending(&self) -> bool {
        self.sent < self.queue.len()
    }

    /// Sends what the host takes.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.is_pending() {
            match rustix::io::write(&self.fd, &self.queue[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.queue.clear();
        self.sent = 0;
        Ok(())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes reads and writes of `fd` return at once.
pub(super) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// Path of the device of the agent's port, if it is there.
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
