//! TCP proxy connection: a smoltcp socket and a host socket, with bytes moving between
//! them.
//!
//! Bytes move directly between the sockets' buffers: host reads fill smoltcp's send buffer,
//! and host writes drain its receive buffer. When one side is slow its buffer fills and the
//! other's window closes, so no data is lost or piles up. Ends and resets are passed on in
//! both directions.
//!
//! After the last acknowledgement a connection is dropped at once instead of lingering in
//! TIME-WAIT: the link neither loses nor reorders late segments, and a guest that sends
//! more gets RST.

use super::acknowledgement::Acknowledgement;
use super::{TcpKey, reset};
use crate::GUEST;
use crate::config::Limits;
use crate::outbox::Outbox;
use crate::stack::Stack;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, sockopt};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer, State};
use smoltcp::wire::TcpPacket;
use std::time::{Duration, Instant};

/// Buffer of each direction by the number of connections: a few fast ones get large
/// buffers, many together stay within 60 MB.
const BUFFERS: [(usize, usize); 2] = [(16, 256 << 10), (64, 64 << 10)];
const SMALL_BUFFER: usize = 16 << 10;

/// Minimum pause between timers: while a window is closed, smoltcp sometimes asks to be
/// polled at once.
const MIN_TIMER: Duration = Duration::from_millis(1);

/// Silence of the guest after which unacknowledged bytes are sent again, doubling up to the
/// second value, unless smoltcp's own timer fires first.
const RETRANSMIT_AFTER: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// How to make smoltcp retransmit.
#[derive(Copy, Clone, Debug)]
enum Resend {
    /// Sends three duplicates of the guest's last acknowledgement: smoltcp has no timer.
    Duplicates,
    /// Advances smoltcp's clock by this much, to its retransmission timer.
    Forward(Duration),
}

/// A proxied connection.
pub(super) struct Flow {
    /// `None` after a reset.
    host: Option<OwnedFd>,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// The host's socket may have bytes, or an end.
    readable: bool,
    /// The host's socket may accept bytes.
    writable: bool,
    /// The peer has ended its half.
    peer_ended: bool,
    /// The guest was sent a FIN for it.
    guest_fin_sent: bool,
    /// The guest has ended its half.
    guest_ended: bool,
    /// The peer was sent a FIN for it.
    peer_fin_sent: bool,
    established: bool,
    /// Both halves have ended, and the guest acknowledged the end.
    acknowledged: bool,
    used: Instant,
    /// Packets for the guest may be pending.
    pending: bool,
    timer: Option<Instant>,
    acknowledgement: Option<Acknowledgement>,
    /// How to make smoltcp retransmit when the timer fires, unless the timer is smoltcp's
    /// own.
    resend: Option<Resend>,
    /// Silence before the next retransmission.
    retransmit_after: Duration,
    /// Offset of smoltcp's clock for this connection.
    ahead: Duration,
}

fn socket(connections: usize) -> Socket<'static> {
    let size = BUFFERS.iter().find(|(below, _)| connections < *below);
    let size = size.map_or(SMALL_BUFFER, |(_, size)| *size);
    let buffer = || SocketBuffer::new(vec![0; size]);
    let mut socket = Socket::new(buffer(), buffer());
    // The sender has already decided when its bytes should go.
    socket.set_nagle_enabled(false);
    // Acknowledgements go at the end of a step, so they are few anyway.
    socket.set_ack_delay(None);
    socket
}

impl Flow {
    fn new(host: OwnedFd, socket: Socket<'static>, now: Instant) -> Self {
        // Bytes arrive in the portions that the guest sent.
        let _ = sockopt::set_tcp_nodelay(&host, true);
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Self {
            host: Some(host),
            sockets,
            handle,
            readable: true,
            writable: true,
            peer_ended: false,
            guest_fin_sent: false,
            guest_ended: false,
            peer_fin_sent: false,
            established: false,
            acknowledged: false,
            used: now,
            pending: true,
            timer: None,
            acknowledgement: None,
            resend: None,
            retransmit_after: RETRANSMIT_AFTER.0,
            ahead: Duration::ZERO,
        }
    }

    /// Answers the guest's SYN.
    pub(super) fn accept(
        key: TcpKey,
        host: OwnedFd,
        connections: usize,
        syn: &[u8],
        stack: &mut Stack,
        out: &mut Outbox,
        now: Instant,
    ) -> Option<Self> {
        let mut socket = socket(connections);
        let listening = socket.listen((key.peer, key.peer_port)).is_ok();
        let mut flow = Self::new(host, socket, now);
        if listening {
            flow.ingress(syn, stack, out, now);
        }
        if flow.socket().state() != State::SynReceived {
            // smoltcp rejected the SYN; the host's peer sees a reset.
            flow.reset_host();
            return None;
        }
        Some(flow)
    }

    /// Connects to the guest.
    pub(super) fn connect(
        key: TcpKey,
        host: OwnedFd,
        connections: usize,
        stack: &mut Stack,
        now: Instant,
    ) -> Option<Self> {
        let mut socket = socket(connections);
        let from = (key.peer, key.peer_port);
        if socket
            .connect(stack.context(), (GUEST, key.guest_port), from)
            .is_err()
        {
            reset(host);
            return None;
        }
        Some(Self::new(host, socket, now))
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn state(&self) -> State {
        self.sockets.get::<Socket<'_>>(self.handle).state()
    }

    /// Handles a packet of the guest.
    pub(super) fn ingress(
        &mut self,
        packet: &[u8],
        stack: &mut Stack,
        out: &mut Outbox,
        now: Instant,
    ) {
        stack.ingress(packet, &mut self.sockets, out, now + self.ahead);
        self.pending = true;
        self.acknowledged = false;
        match self.state() {
            State::Established => self.established = true,
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait => {
                self.established = true;
                self.guest_ended = true;
            }
            _ => {}
        }
    }

    /// Records the acknowledgement of a guest segment.
    pub(super) fn acknowledge(&mut self, segment: &TcpPacket<&[u8]>) {
        let last = self.acknowledgement;
        self.acknowledgement = Acknowledgement::of(segment).or(last);
        if self.acknowledgement.map(Acknowledgement::number) != last.map(Acknowledgement::number) {
            self.retransmit_after = RETRANSMIT_AFTER.0;
        }
    }

    /// Time since which the guest has left its side half open, if it has.
    pub(super) fn opening_since(&self) -> Option<Instant> {
        (self.state() == State::SynReceived).then_some(self.used)
    }

    pub(super) fn reset_host(&mut self) {
        if let Some(host) = self.host.take() {
            reset(host);
        }
    }

    /// Resets both sides.
    fn abort(&mut self) {
        self.socket().abort();
        self.reset_host();
        self.pending = true;
    }

    /// Moves bytes, ends and resets between the two sides. Returns whether packets for the
    /// guest may be pending.
    pub(super) fn pump(&mut self, now: Instant) -> bool {
        if self.host.is_some() {
            if let Err(_gone) = self.move_out(now).and_then(|()| self.move_in(now)) {
                self.abort();
            }
            self.end_guest();
            self.end_host();
        }
        self.pending |= self.timer.is_some_and(|timer| timer <= now);
        self.pending
    }

    /// Moves bytes from the guest to the host.
    fn move_out(&mut self, now: Instant) -> Result<(), Errno> {
        let Some(host) = &self.host else {
            return Ok(());
        };
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        while self.writable && socket.can_recv() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent = socket.recv(|bytes| match rustix::net::send(host, bytes, flags) {
                Ok(count) => (count, Ok(())),
                Err(error) => (0, Err(error)),
            });
            match sent {
                Ok(Ok(())) => {
                    self.used = now;
                    self.pending = true;
                }
                Ok(Err(Errno::AGAIN)) => self.writable = false,
                Ok(Err(Errno::INTR)) => {}
                Ok(Err(error)) => return Err(error),
                Err(RecvError::Finished | RecvError::InvalidState) => break,
            }
        }
        if self.guest_ended && !self.peer_fin_sent && !socket.can_recv() {
            // The peer may be gone already; reading will report that.
            let _ = rustix::net::shutdown(host, Shutdown::Write);
            self.peer_fin_sent = true;
        }
        Ok(())
    }

    /// Moves bytes from the host to the guest.
    fn move_in(&mut self, now: Instant) -> Result<(), Errno> {
        let Some(host) = &self.host else {
            return Ok(());
        };
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        while self.readable && !self.peer_ended && socket.can_send() {
            let received = socket.send(|room| {
                let size = room.len();
                match rustix::net::recv(host, room, RecvFlags::DONTWAIT) {
                    Ok((_, count)) => (count, Ok((count, size))),
                    Err(error) => (0, Err(error)),
                }
            });
            match received {
                Ok(Ok((0, _))) => self.peer_ended = true,
                // A short read took all there was; polling shows when more arrives.
                Ok(Ok((count, size))) => self.readable = count == size,
                Ok(Err(Errno::AGAIN)) => {
                    self.readable = false;
                    break;
                }
                Ok(Err(Errno::INTR)) => continue,
                Ok(Err(error)) => return Err(error),
                Err(_) => break,
            }
            self.used = now;
            self.pending = true;
        }
        Ok(())
    }

    /// Ends the guest's side after the peer's. If the guest has ended its half, this waits
    /// until it has received everything: in LAST-ACK smoltcp handles neither duplicates nor
    /// windows.
    fn end_guest(&mut self) {
        let guest_ended = self.guest_ended;
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        let all = !guest_ended || socket.send_queue() == 0;
        if self.peer_ended && !self.guest_fin_sent && all {
            socket.close();
            self.guest_fin_sent = true;
            self.pending = true;
        }
    }

    /// Ends the host's side if the guest's has fully ended.
    fn end_host(&mut self) {
        if self.state() != State::Closed || self.host.is_none() {
            return;
        }
        if !(self.guest_ended && self.peer_ended) {
            // A reset, or the guest never answered.
            self.reset_host();
        } else if self.peer_fin_sent {
            self.host = None;
        }
    }

    /// Sends a packet if one is pending; returns whether it did.
    pub(super) fn egress(&mut self, stack: &mut Stack, out: &mut Outbox, now: Instant) -> bool {
        // After its TIME-WAIT, smoltcp would drop bytes that the host has not taken yet.
        if self.acknowledged {
            self.pending = false;
            return false;
        }
        if self.timer.is_some_and(|timer| timer <= now) {
            self.send_again(stack, out, now);
        }
        let sent = stack.egress(&mut self.sockets, out, now + self.ahead);
        if !sent && !out.held_back() {
            self.pending = false;
            self.acknowledged = self.state() == State::TimeWait;
            self.set_timer(stack, now);
        }
        sent
    }

    fn set_timer(&mut self, stack: &mut Stack, now: Instant) {
        let timer = stack.poll_at(&self.sockets, now + self.ahead);
        let timer = timer.filter(|_| !self.acknowledged);
        let timer = timer.map(|timer| timer.checked_sub(self.ahead).unwrap_or(now));
        let again = now + self.retransmit_after;
        // smoltcp sets the pace of probes of a closed window.
        let open = self.acknowledgement.is_some_and(Acknowledgement::is_open);
        self.resend = match timer {
            _ if self.socket().send_queue() == 0 => None,
            None => Some(Resend::Duplicates),
            Some(timer) if open && timer > again => Some(Resend::Forward(timer - again)),
            Some(_) => None,
        };
        self.timer = match self.resend {
            Some(_) => Some(again),
            None => timer.map(|timer| timer.max(now + MIN_TIMER)),
        };
    }

    /// Makes smoltcp retransmit unacknowledged bytes, if the timer was set for that.
    fn send_again(&mut self, stack: &mut Stack, out: &mut Outbox, now: Instant) {
        let Some(resend) = self.resend.take() else {
            return;
        };
        self.retransmit_after = RETRANSMIT_AFTER.1.min(self.retransmit_after * 2);
        let socket = self.socket();
        let ends = (socket.remote_endpoint(), socket.local_endpoint());
        match (resend, self.acknowledgement, ends) {
            (Resend::Forward(by), ..) => self.ahead += by,
            (Resend::Duplicates, Some(last), (Some(guest), Some(peer))) => {
                for packet in last.duplicates(guest, peer) {
                    stack.ingress(&packet, &mut self.sockets, out, now + self.ahead);
                }
            }
            (Resend::Duplicates, ..) => {}
        }
    }

    /// Whether the connection is finished.
    pub(super) fn is_over(&mut self) -> bool {
        match self.state() {
            State::TimeWait => self.acknowledged && self.peer_fin_sent,
            // A reset of ours may still be pending.
            State::Closed => self.host.is_none() && self.socket().remote_endpoint().is_none(),
            _ => false,
        }
    }

    /// Resets an idle connection.
    pub(super) fn expire(&mut self, limits: &Limits, now: Instant) {
        let opening = !self.established;
        let closing = self.guest_ended && self.peer_ended;
        let limit = match opening || closing {
            true => limits.tcp_transitory,
            false => limits.tcp_idle,
        };
        if now.saturating_duration_since(self.used) >= limit {
            self.abort();
            self.used = now;
        }
    }

    pub(super) fn timer(&self) -> Option<Instant> {
        // Pending packets wait for room instead.
        self.timer.filter(|_| !self.pending)
    }

    /// Descriptor and events to poll.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        let host = self.host.as_ref()?;
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        let mut events = PollFlags::empty();
        if !self.readable && !self.peer_ended && socket.can_send() {
            events |= PollFlags::IN;
        }
        if !self.writable && socket.can_recv() {
            events |= PollFlags::OUT;
        }
        // Without interest even an error would wake the thread again and again.
        (!events.is_empty()).then(|| PollFd::from_borrowed_fd(host.as_fd(), events))
    }

    /// Records events of the host's socket.
    pub(super) fn ready(&mut self, events: PollFlags) {
        let broken = events.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        self.readable |= broken || events.contains(PollFlags::IN);
        self.writable |= broken || events.contains(PollFlags::OUT);
    }
}
