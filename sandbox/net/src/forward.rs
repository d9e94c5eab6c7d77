//! Port forwards: ports of the host connected to ports of the guest.

use super::config::Forward;
use super::error::{NetCode, NetError};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

/// Maximum connections accepted by one listener in a step.
const ACCEPTS_PER_STEP: usize = 16;

/// A listening socket of the host.
pub(super) struct Listener {
    socket: TcpListener,
    guest_port: u16,
    ready: bool,
    /// The host has no descriptor for a pending connection; retrying at once would
    /// busy-loop.
    paused: bool,
}

/// Listens for all forwards.
pub(super) fn listen(forwards: &[Forward]) -> Result<Vec<Listener>, NetError> {
    forwards.iter().map(Listener::new).collect()
}

impl Listener {
    fn new(forward: &Forward) -> Result<Self, NetError> {
        let failed = |error: std::io::Error| {
            let text = format!(
                "cannot listen on {}: {error}; choose another port or address",
                forward.listen
            );
            NetError::new(NetCode::Listen, text)
        };
        if forward.guest_port == 0 {
            let text = format!(
                "the forward from {} leads to port 0; name a port of the guest",
                forward.listen
            );
            return Err(NetError::new(NetCode::Listen, text));
        }
        let socket = TcpListener::bind(forward.listen).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            socket,
            guest_port: forward.guest_port,
            ready: false,
            paused: false,
        })
    }

    /// Address of the listener.
    pub(super) fn address(&self) -> Result<SocketAddr, NetError> {
        self.socket
            .local_addr()
            .map_err(|error| NetError::new(NetCode::Listen, error.to_string()))
    }

    /// Passes pending connections to `take`, with their guest port, while there is `room`.
    pub(super) fn accept(&mut self, room: usize, mut take: impl FnMut(OwnedFd, u16)) {
        if !self.ready {
            return;
        }
        self.ready = false;
        for _ in 0..room.min(ACCEPTS_PER_STEP) {
            let socket = match self.socket.accept() {
                Ok((socket, _)) => socket,
                Err(error) => {
                    self.paused = error.kind() != ErrorKind::WouldBlock;
                    return;
                }
            };
            if socket.set_nonblocking(true).is_ok() {
                take(OwnedFd::from(socket), self.guest_port);
            }
        }
    }

    /// Descriptor and events to poll.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        (!self.paused).then(|| PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN))
    }

    /// Resumes accepting.
    pub(super) fn resume(&mut self) {
        self.paused = false;
    }

    /// Whether it is paused because descriptors ran out.
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Marks a pending connection.
    pub(super) fn set_ready(&mut self) {
        self.ready = true;
    }
}
