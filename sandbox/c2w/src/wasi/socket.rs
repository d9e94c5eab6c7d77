//! Socket calls of the image's network: a socket that accepts once, and a stream of frames
//! that never fails and never ends, because images close the wrong file when it does.

use super::abi::{Answer, Errno, Memory};
use super::state::{CONNECTION_FD, Descriptor, Host};
use std::time::{Duration, Instant};

/// `riflags` of `sock_recv`: leave the bytes unread.
const PEEK: u32 = 1;

/// Maximum wait for a slow network; then frames are lost.
const CONGESTION_TIMEOUT: Duration = Duration::from_millis(20);

/// Interval of polls meanwhile.
const CONGESTION_POLL_INTERVAL: Duration = Duration::from_millis(1);

impl Host {
    /// Whether the network connection was accepted.
    pub(super) fn is_connected(&self) -> bool {
        self.descriptors.contains_key(&CONNECTION_FD)
    }

    pub(super) fn sock_accept(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        _flags: u32,
        result: u32,
    ) -> Answer {
        match self.descriptor(fd)? {
            Descriptor::Listener if self.is_connected() => Err(Errno::Again),
            Descriptor::Listener => {
                memory.put_u32(result, CONNECTION_FD)?;
                let connection = Descriptor::Connection;
                self.descriptors.insert(CONNECTION_FD, connection);
                Ok(())
            }
            _ => Err(Errno::Notsock),
        }
    }

    fn connection(&self, fd: u32) -> Answer {
        match self.descriptor(fd)? {
            Descriptor::Connection => Ok(()),
            _ => Err(Errno::Notsock),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "preview1's")]
    pub(super) fn sock_recv(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        iovecs: u32,
        count: u32,
        flags: u32,
        result: u32,
        out_flags: u32,
    ) -> Answer {
        self.connection(fd)?;
        let read = self.receive(memory, iovecs, count, flags & PEEK != 0)?;
        memory.put(out_flags, &[0, 0])?;
        memory.put_u32(result, read)
    }

    /// Reads available bytes of one frame from the network.
    pub(super) fn receive(
        &mut self,
        memory: &mut Memory<'_>,
        iovecs: u32,
        count: u32,
        peek: bool,
    ) -> Answer<u32> {
        let buffers = memory.iovecs(iovecs, count)?;
        let network = self.network.as_mut().ok_or(Errno::Badf)?;
        let room: u64 = buffers.iter().map(|&(_, len)| u64::from(len)).sum();
        let available = network.readable();
        if available == 0 {
            return Err(Errno::Again);
        }
        let bytes = network.peek(usize::try_from(room).unwrap_or(usize::MAX));
        let mut left = bytes;
        for (at, len) in buffers {
            let (now, later) = left.split_at(left.len().min(len as usize));
            memory.put(at, now)?;
            left = later;
        }
        let read = bytes.len();
        if !peek {
            network.consume(read);
        }
        Ok(read as u32)
    }

    pub(super) fn sock_send(
        &mut self,
        memory: &mut Memory<'_>,
        fd: u32,
        iovecs: u32,
        count: u32,
        _flags: u32,
        result: u32,
    ) -> Answer {
        self.connection(fd)?;
        let written = self.transmit(memory, iovecs, count)?;
        memory.put_u32(result, written)
    }

    /// Writes to the network, which takes all bytes.
    pub(super) fn transmit(&mut self, memory: &Memory<'_>, iovecs: u32, count: u32) -> Answer<u32> {
        let buffers = memory.iovecs(iovecs, count)?;
        let network = self.network.as_mut().ok_or(Errno::Badf)?;
        let mut written = 0_u64;
        for (at, len) in buffers {
            if let Err(bad) = network.write(memory.slice(at, len)?) {
                self.broken = Some(format!(
                    "the image sends a frame of {} bytes to its network",
                    bad.0
                ));
                return Err(Errno::Io);
            }
            written += u64::from(len);
        }
        self.wait_congestion();
        u32::try_from(written).map_err(|_| Errno::Overflow)
    }

    /// Slows down an image whose network is behind.
    fn wait_congestion(&mut self) {
        let began = Instant::now();
        while let Some(network) = &mut self.network {
            network.flush();
            let over = began.elapsed() >= CONGESTION_TIMEOUT;
            if over || !network.is_congested() || self.console.is_stopped() {
                return;
            }
            self.console
                .wait_stop(Some(Instant::now() + CONGESTION_POLL_INTERVAL));
        }
    }

    /// The network does not end in one direction; closing ends it.
    pub(super) fn sock_shutdown(&mut self, _: &mut Memory<'_>, fd: u32, _how: u32) -> Answer {
        self.connection(fd)
    }
}
