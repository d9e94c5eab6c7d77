//! Send queue: collects frames for the guest in a step of the gateway and moves them to the
//! link at its end.

use super::link::{Frame, Shared};
use super::rate::TokenBucket;
use super::wire::{
    self, ETHERNET_BYTES, Fragment, IPV4_BYTES, IPV6_BYTES, IPV6_FRAGMENT_BYTES, TYPE_IPV4,
    TYPE_IPV6, Unreachable,
};
use super::{GATEWAY, GATEWAY_V6, guest_for};
use smoltcp::wire::IpProtocol;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Room beyond the queue's limit for replies, which cannot wait. Replies that do not fit
/// are lost, and the client retries.
const ANSWERS_BYTES: usize = 256 << 10;

/// Minimum room for reading a datagram from the host.
const DATAGRAM_BYTES: usize = 66_000;

/// Collects frames for the guest.
#[derive(Debug)]
pub(super) struct Outbox {
    frames: VecDeque<Frame>,
    /// Free bytes in the link; negative after replies beyond the limit.
    room: isize,
    rate: TokenBucket,
    mtu: usize,
    /// MAC address of the guest, once it is known.
    mac: Option<[u8; 6]>,
    /// Identification of the next fragmented datagram.
    ident: u32,
    /// A TCP packet did not fit in this step.
    held_back: bool,
    dropped: u64,
}

impl Outbox {
    pub(super) fn new(mtu: u16, mac: Option<[u8; 6]>, rate: Option<u64>) -> Self {
        Self {
            frames: VecDeque::new(),
            room: 0,
            rate: TokenBucket::new(rate, Instant::now()),
            mtu: usize::from(mtu),
            mac,
            ident: 0,
            held_back: false,
            dropped: 0,
        }
    }

    /// Begins a step.
    pub(super) fn begin(&mut self, link: &Shared, now: Instant) {
        self.room = link.room() as isize;
        self.rate.fill(now);
        self.held_back = false;
    }

    /// Ends a step; returns whether the guest must be woken. `waits` says that traffic
    /// other than TCP waits for room.
    pub(super) fn end(&mut self, link: &Shared, waits: bool) -> bool {
        link.counters.dropped.store(self.dropped, Ordering::Relaxed);
        let full = self.room <= 0 && self.held_back;
        link.put(&mut self.frames, full || waits)
    }

    pub(super) fn learn(&mut self, mac: [u8; 6]) {
        self.mac = Some(mac);
    }

    /// MAC address of the guest, once it is known.
    pub(super) fn guest(&self) -> Option<[u8; 6]> {
        self.mac
    }

    /// Whether a TCP packet may be sent now; a refusal is recorded.
    pub(super) fn open(&mut self) -> bool {
        let open = self.room > 0 && self.rate.open() && self.mac.is_some();
        self.held_back |= !open;
        open
    }

    /// Whether a TCP packet had to wait in this step.
    pub(super) fn held_back(&self) -> bool {
        self.held_back
    }

    /// Time until which the rate limit blocks all traffic.
    pub(super) fn closed_until(&self, now: Instant) -> Option<Instant> {
        self.rate.closed_for().map(|time| now + time)
    }

    /// Whether a datagram of any size fits.
    pub(super) fn fits_datagram(&self) -> bool {
        self.room >= DATAGRAM_BYTES as isize && self.rate.open()
    }

    /// Sends a complete frame.
    pub(super) fn frame(&mut self, bytes: Vec<u8>, checksums_valid: bool) {
        let frame = Frame {
            bytes,
            checksums_valid,
        };
        if self.room < -(ANSWERS_BYTES as isize) {
            self.dropped += 1;
            return;
        }
        self.room -= frame.cost() as isize;
        self.rate.take(frame.bytes.len());
        self.frames.push_back(frame);
    }

    /// Sends an IP packet that `write` fills in, for smoltcp.
    pub(super) fn raw_packet<R>(
        &mut self,
        len: usize,
        checksums_valid: bool,
        write: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        let mut bytes = vec![0; ETHERNET_BYTES + len];
        let result = write(&mut bytes[ETHERNET_BYTES..]);
        match self.mac {
            Some(mac) => {
                let kind = ether_type(&bytes[ETHERNET_BYTES..]);
                wire::ethernet(&mut bytes, mac, kind);
                self.frame(bytes, checksums_valid);
            }
            None => self.dropped += 1,
        }
        result
    }

    /// Sends a payload to the guest, fragmented if necessary.
    pub(super) fn packet(&mut self, protocol: IpProtocol, from: IpAddr, payload: &[u8]) {
        match self.mac {
            Some(mac) => self.packet_to(mac, guest_for(from), protocol, from, payload),
            None => self.dropped += 1,
        }
    }

    /// Does the same as [`Outbox::packet`] for arbitrary addresses.
    pub(super) fn packet_to(
        &mut self,
        mac: [u8; 6],
        to: IpAddr,
        protocol: IpProtocol,
        from: IpAddr,
        payload: &[u8],
    ) {
        let (header, cut_header) = match from {
            IpAddr::V4(_) => (IPV4_BYTES, IPV4_BYTES),
            IpAddr::V6(_) => (IPV6_BYTES, IPV6_BYTES + IPV6_FRAGMENT_BYTES),
        };
        let whole = payload.len() + header <= self.mtu;
        let step = match whole {
            true => payload.len().max(1),
            false => (self.mtu - cut_header) & !7,
        };
        if !whole {
            self.ident = self.ident.wrapping_add(1);
        }
        let mut offset = 0;
        loop {
            let part = &payload[offset..payload.len().min(offset + step)];
            let end = offset + part.len();
            let cut = (!whole).then_some(Fragment {
                ident: self.ident,
                offset: offset as u16,
                more: end < payload.len(),
            });
            let Some(mut bytes) = wire::packet(protocol, (from, to), part, cut) else {
                return self.count_drop();
            };
            let kind = ether_type(&bytes[ETHERNET_BYTES..]);
            wire::ethernet(&mut bytes, mac, kind);
            self.frame(bytes, false);
            offset = end;
            if offset >= payload.len() {
                return;
            }
        }
    }

    /// Sends the guest "destination unreachable" about a packet, given in full or in part.
    pub(super) fn unreachable(&mut self, why: Unreachable, quoted: &[u8]) {
        let message = wire::unreachable(why, quoted);
        match wire::is_v6(quoted) {
            true => self.packet(IpProtocol::Icmpv6, GATEWAY_V6.into(), &message),
            false => self.packet(IpProtocol::Icmp, GATEWAY.into(), &message),
        }
    }

    /// Counts a dropped frame or packet of either side.
    pub(super) fn count_drop(&mut self) {
        self.dropped += 1;
    }

    /// Takes the frames of this step so far.
    #[cfg(test)]
    pub(super) fn drain(&mut self) -> Vec<Frame> {
        self.frames.drain(..).collect()
    }
}

/// EtherType of an IP packet.
fn ether_type(packet: &[u8]) -> u16 {
    match wire::is_v6(packet) {
        true => TYPE_IPV6,
        false => TYPE_IPV4,
    }
}

#[cfg(test)]
mod tests {
    use super::super::GUEST_V6;
    use super::super::packet::{self, Parsed};
    use super::*;
    use smoltcp::wire::Ipv4Packet;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn outbox(mtu: u16) -> Outbox {
        let mut outbox = Outbox::new(mtu, Some(MAC), None);
        outbox.begin(&Shared::new().expect("an eventfd"), Instant::now());
        outbox
    }

    #[test]
    fn long_payloads_go_in_fragments() {
        let mut outbox = outbox(1500);
        let payload: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
        outbox.packet(IpProtocol::Udp, GATEWAY.into(), &payload);
        outbox.packet(IpProtocol::Udp, GATEWAY.into(), &payload[..1480]);
        outbox.packet(IpProtocol::Udp, GATEWAY.into(), &[]);
        let frames = outbox.drain();
        assert_eq!(frames.len(), 6);
        let mut got = Vec::new();
        for (index, frame) in frames[..4].iter().enumerate() {
            assert!(frame.bytes.len() <= 1514 && frame.bytes[..6] == MAC);
            let packet = Ipv4Packet::new_checked(&frame.bytes[14..]).expect("a packet");
            assert!(packet.verify_checksum());
            assert_eq!(usize::from(packet.frag_offset()), got.len());
            assert_eq!((packet.more_frags(), packet.ident()), (index < 3, 1));
            got.extend_from_slice(packet.payload());
        }
        assert_eq!(got, payload);
        assert_eq!(frames[4].bytes.len(), 1514);
        assert_eq!(frames[5].bytes.len(), 34);
    }

    #[test]
    fn long_payloads_of_ipv6_go_in_fragments() {
        let mut outbox = outbox(1500);
        let payload: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
        outbox.packet(IpProtocol::Udp, GATEWAY_V6.into(), &payload);
        outbox.packet(IpProtocol::Udp, GATEWAY_V6.into(), &payload[..1460]);
        let frames = outbox.drain();
        assert_eq!(frames.len(), 5);
        let mut got = Vec::new();
        for (index, frame) in frames[..4].iter().enumerate() {
            assert!(frame.bytes.len() <= 1514 && frame.bytes[12..14] == [0x86, 0xdd]);
            let Some(Parsed::Part(part)) = packet::parse(&frame.bytes[14..]) else {
                panic!("a fragment");
            };
            assert_eq!((part.offset, part.ident), (got.len(), 1));
            assert_eq!((part.more, part.to), (index < 3, GUEST_V6.into()));
            got.extend_from_slice(part.payload);
        }
        assert_eq!(got, payload);
        assert_eq!(frames[4].bytes.len(), 1514);
    }

    #[test]
    fn answers_are_bounded() {
        let mut outbox = outbox(1500);
        for _ in 0..100_000 {
            outbox.packet(IpProtocol::Icmp, GATEWAY.into(), &[0; 1400]);
        }
        let bytes: usize = outbox.drain().iter().map(Frame::cost).sum();
        assert!(bytes < super::super::link::TO_GUEST_BYTES + ANSWERS_BYTES + 2000);
        assert!(outbox.dropped > 0 && !outbox.open() && outbox.held_back());
    }
}
