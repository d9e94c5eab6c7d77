//! TCP proxy connection: a socket of smoltcp's, a socket of the host, bytes between.
//!
//! Bytes go from one socket's buffer into the other's without a stop: the host
//! reads what smoltcp received, and writes into what it will send. When one
//! side is slow its buffer fills and the other's window closes, so nothing is
//! lost and nothing piles up. Ends and resets are passed on, each way.
//!
//! After the last acknowledgement a connection is forgotten at once instead of
//! lingering in TIME-WAIT: the link neither loses nor reorders what could come
//! afterwards, and a guest that asks again gets RST.

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

/// Buffer of each direction by the number of connections there are: few fast
/// ones may be fast, many together stay within 60 MB.
const BUFFERS: [(usize, usize); 2] = [(16, 256 << 10), (64, 64 << 10)];
const SMALL_BUFFER: usize = 16 << 10;

/// Pause after a timer that had nothing to do: smoltcp sometimes wants to be
/// asked at once while a window is closed.
const MIN_TIMER: Duration = Duration::from_millis(1);

/// After which silence of the guest unacknowledged bytes go again; twice as long
/// each time, unless smoltcp's own timer is sooner.
const RETRANSMIT_AFTER: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// A way to have smoltcp send what is unacknowledged again.
#[derive(Copy, Clone, Debug)]
enum Resend {
    /// Three duplicates of the guest's last acknowledgement: it has no timer.
    Duplicates,
    /// Its clock is set forward by so much, to its retransmission timer.
    Forward(Duration),
}

/// A connection.
pub(super) struct Flow {
    /// `None` after it was reset.
    host: Option<OwnedFd>,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// The host's socket may have bytes, or an end.
    readable: bool,
    /// It may take bytes.
    writable: bool,
    /// The peer has ended its half.
    peer_ended: bool,
    /// And the guest was sent a FIN.
    guest_fin_sent: bool,
    /// The guest has ended its half.
    guest_ended: bool,
    /// And the peer was sent one.
    peer_fin_sent: bool,
    established: bool,
    /// Both halves have ended, and the guest's end is acknowledged.
    acknowledged: bool,
    used: Instant,
    /// Something may have to be sent to the guest.
    pending: bool,
    timer: Option<Instant>,
    acknowledgement: Option<Acknowledgement>,
    /// What has smoltcp send again when the timer is due, unless that is its own.
    resend: Option<Resend>,
    /// After which silence that is.
    retransmit_after: Duration,
    /// By how much smoltcp's clock for this connection is ahead.
    ahead: Duration,
}

fn socket(connections: usize) -> Socket<'static> {
    let size = BUFFERS.iter().find(|(below, _)| connections < *below);
    let size = size.map_or(SMALL_BUFFER, |(_, size)| *size);
    let buffer = || SocketBuffer::new(vec![0; size]);
    let mut socket = Socket::new(buffer(), buffer());
    // Whoever wrote the bytes has decided when they should go.
    socket.set_nagle_enabled(false);
    // Acknowledgements go at the end of a step, so they are few anyway.
    socket.set_ack_delay(None);
    socket
}

impl Flow {
    fn new(host: OwnedFd, socket: Socket<'static>, now: Instant) -> Self {
        // Bytes come in the portions that the guest sent.
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
            // A SYN that smoltcp does not take; the host's peer sees a reset.
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

    /// Takes a packet of the guest.
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

    /// Keeps what a segment of the guest acknowledges.
    pub(super) fn acknowledge(&mut self, segment: &TcpPacket<&[u8]>) {
        let last = self.acknowledgement;
        self.acknowledgement = Acknowledgement::of(segment).or(last);
        if self.acknowledgement.map(Acknowledgement::number) != last.map(Acknowledgement::number) {
            self.retransmit_after = RETRANSMIT_AFTER.0;
        }
    }

    /// Since when the guest has left its side half open, if it has.
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

    /// Moves bytes, ends and resets between the two sides. Whether something may
    /// have to be sent to the guest.
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

    /// From the guest to the host.
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
            // The peer may be gone already, which reading finds out.
            let _ = rustix::net::shutdown(host, Shutdown::Write);
            self.peer_fin_sent = true;
        }
        Ok(())
    }

    /// From the host to the guest.
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
                // All that there was; polling shows when there is more.
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

    /// Ends the guest's side after the peer's. If the guest has ended its half, not
    /// before it has everything: in LAST-ACK smoltcp takes neither duplicates nor
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

    /// Ends the host's side if the guest's has ended for good.
    fn end_host(&mut self) {
        if self.state() != State::Closed || self.host.is_none() {
            return;
        }
        if !(self.guest_ended && self.peer_ended) {
            // A reset, or nobody was there.
            self.reset_host();
        } else if self.peer_fin_sent {
            self.host = None;
        }
    }

    /// Sends a packet if there is one; whether there was.
    pub(super) fn egress(&mut self, stack: &mut Stack, out: &mut Outbox, now: Instant) -> bool {
        // smoltcp would forget bytes that the host has not taken yet when its
        // time of waiting is over.
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
        // A closed window is probed at smoltcp's pace.
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

    /// Has smoltcp send again what the guest did not acknowledge, if the timer is
    /// there for that.
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

    /// Whether nothing is left to do.
    pub(super) fn is_over(&mut self) -> bool {
        match self.state() {
            State::TimeWait => self.acknowledged && self.peer_fin_sent,
            // A reset of ours may still have to go.
            State::Closed => self.host.is_none() && self.socket().remote_endpoint().is_none(),
            _ => false,
        }
    }

    /// Resets a connection that was silent for too long.
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
        // What is pending waits for room instead.
        self.timer.filter(|_| !self.pending)
    }

    /// What to wait for.
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

    /// The host's socket has something.
    pub(super) fn ready(&mut self, events: PollFlags) {
        let broken = events.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        self.readable |= broken || events.contains(PollFlags::IN);
        self.writable |= broken || events.contains(PollFlags::OUT);
    }
}
