//! IP reassembly of the guest's fragmented datagrams (RFC 791, RFC 815, RFC 8200).
//!
//! Overlapping fragments discard their datagram: honest senders do not make them, and
//! systems differ in how they read them (RFC 3128, RFC 5722).

use super::packet::Part;
use super::wire::{self, IPV4_BYTES};
use smoltcp::wire::IpProtocol;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum incomplete datagrams; beyond it the oldest is dropped.
const MAX_DATAGRAMS: usize = 16;
/// Maximum separate runs of received bytes in a datagram: fragments mostly come in order.
const MAX_RUNS: usize = 64;
/// Time limit for the rest of a datagram (RFC 1122 section 3.3.2 asks for a minute on the
/// Internet; this is a link).
const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum payload of an IP packet in bytes; IPv6 would allow 20 more, which no datagram
/// of a socket uses.
const MAX_BYTES: usize = 65_535 - IPV4_BYTES;

#[derive(PartialEq, Eq)]
struct DatagramKey(IpAddr, IpAddr, IpProtocol, u32);

struct Datagram {
    key: DatagramKey,
    started: Instant,
    bytes: Vec<u8>,
    /// Received runs of bytes, in order and not adjacent.
    runs: Vec<(usize, usize)>,
    total: Option<usize>,
}

/// Incomplete datagrams of the guest.
#[derive(Default)]
pub(super) struct Reassembler {
    datagrams: Vec<Datagram>,
}

impl Reassembler {
    /// Adds a fragment; returns the packet once it is complete, with room for an Ethernet
    /// header before it.
    pub(super) fn add(&mut self, part: &Part<'_>, now: Instant) -> Option<Vec<u8>> {
        if part.offset == 0 && !part.more {
            // IPv6's atomic fragment stands alone (RFC 6946).
            return wire::packet(part.protocol, (part.from, part.to), part.payload, None);
        }
        self.datagrams.retain(|datagram| {
            now.saturating_duration_since(datagram.started) < REASSEMBLY_TIMEOUT
        });
        let key = DatagramKey(part.from, part.to, part.protocol, part.ident);
        let found = self
            .datagrams
            .iter()
            .position(|datagram| datagram.key == key);
        let index = found.unwrap_or_else(|| {
            if self.datagrams.len() == MAX_DATAGRAMS {
                self.datagrams.remove(0);
            }
            self.datagrams.push(Datagram {
                key,
                started: now,
                bytes: Vec::new(),
                runs: Vec::new(),
                total: None,
            });
            self.datagrams.len() - 1
        });
        let datagram = &mut self.datagrams[index];
        match datagram.add(part.offset, part.payload, part.more) {
            Some(false) => None,
            Some(true) => self.datagrams.remove(index).packet(),
            None => {
                self.datagrams.remove(index);
                None
            }
        }
    }
}

impl Datagram {
    /// Adds a fragment; returns whether the datagram is complete, or `None` if it never can
    /// be.
    fn add(&mut self, offset: usize, fragment: &[u8], more: bool) -> Option<bool> {
        let end = offset + fragment.len();
        let aligned = !more || (fragment.len().is_multiple_of(8) && !fragment.is_empty());
        if !aligned || end > MAX_BYTES || self.total.is_some_and(|total| end > total) {
            return None;
        }
        if !more {
            let last = self.runs.last().map_or(0, |run| run.1);
            if self.total.is_some_and(|total| total != end) || last > end {
                return None;
            }
            self.total = Some(end);
        }
        let at = self.runs.partition_point(|run| run.1 <= offset);
        if self.runs.get(at).is_some_and(|run| run.0 < end) {
            return None;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(fragment);
        self.runs.insert(at, (offset, end));
        self.runs.dedup_by(|next, run| {
            let touch = run.1 == next.0;
            if touch {
                run.1 = next.1;
            }
            touch
        });
        let complete = self.total.is_some_and(|total| self.runs == [(0, total)]);
        (self.runs.len() <= MAX_RUNS).then_some(complete)
    }

    fn packet(self) -> Option<Vec<u8>> {
        let DatagramKey(from, to, protocol, _) = self.key;
        wire::packet(protocol, (from, to), &self.bytes, None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{self, Parsed};
    use super::super::wire::{ETHERNET_BYTES, Fragment};
    use super::super::{GATEWAY, GATEWAY_V6, GUEST, GUEST_V6};
    use super::*;
    use proptest::prelude::*;

    const ENDS: [(IpAddr, IpAddr); 2] = [
        (IpAddr::V4(GUEST), IpAddr::V4(GATEWAY)),
        (IpAddr::V6(GUEST_V6), IpAddr::V6(GATEWAY_V6)),
    ];

    fn fragment_of(
        ends: (IpAddr, IpAddr),
        ident: u16,
        offset: usize,
        bytes: &[u8],
        more: bool,
    ) -> Vec<u8> {
        let fragment = Fragment {
            ident: ident.into(),
            offset: offset as u16,
            more,
        };
        let frame = wire::packet(IpProtocol::Udp, ends, bytes, Some(fragment));
        frame.expect("one family").split_off(ETHERNET_BYTES)
    }

    fn fragment(ident: u16, offset: usize, bytes: &[u8], more: bool) -> Vec<u8> {
        fragment_of(ENDS[0], ident, offset, bytes, more)
    }

    fn add(reassembler: &mut Reassembler, packet: &[u8], now: Instant) -> Option<Vec<u8>> {
        let Some(Parsed::Part(part)) = packet::parse(packet) else {
            panic!("a fragment");
        };
        reassembler.add(&part, now)
    }

    #[test]
    fn an_atomic_fragment_stands_alone() {
        let now = Instant::now();
        let mut reassembler = Reassembler::default();
        add(
            &mut reassembler,
            &fragment_of(ENDS[1], 9, 0, &[1; 16], true),
            now,
        );
        let whole = add(
            &mut reassembler,
            &fragment_of(ENDS[1], 9, 0, b"alone", false),
            now,
        );
        let whole = whole.expect("a packet").split_off(ETHERNET_BYTES);
        let Some(Parsed::Whole(packet)) = packet::parse(&whole) else {
            panic!("a packet");
        };
        assert_eq!((packet.payload, packet.from), (&b"alone"[..], ENDS[1].0));
        assert_eq!(reassembler.datagrams.len(), 1);
    }

    #[test]
    fn fragments_make_a_datagram_in_any_order() {
        let now = Instant::now();
        let bytes: Vec<u8> = (0..4000u32).map(|n| (n / 7) as u8).collect();
        let fragments = ENDS.map(|ends| {
            [
                fragment_of(ends, 9, 2960, &bytes[2960..], false),
                fragment_of(ends, 9, 0, &bytes[..1480], true),
                fragment_of(ends, 9, 1480, &bytes[1480..2960], true),
            ]
        });
        let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]];
        let all = orders
            .iter()
            .flat_map(|order| fragments.iter().map(move |all| (order, all)));
        for (order, fragments) in all {
            let mut reassembler = Reassembler::default();
            let mut got = order.map(|index| add(&mut reassembler, &fragments[index], now));
            assert!(got[0].is_none() && got[1].is_none());
            let packet = got[2].take().expect("complete").split_off(ETHERNET_BYTES);
            let Some(Parsed::Whole(packet)) = packet::parse(&packet) else {
                panic!("a packet");
            };
            assert_eq!(packet.payload, bytes);
            assert!(reassembler.datagrams.is_empty());
        }
    }

    #[test]
    fn impossible_fragments_end_their_datagram() {
        let now = Instant::now();
        for (offset, bytes, more) in [
            (8, &[0; 16][..], true),
            (0, &[0; 8], true),
            (24, &[0; 9], true),
            (24, &[], true),
            (8, &[0; 4], false),
            (65_528, &[0; 16], false),
        ] {
            for ends in ENDS {
                let mut reassembler = Reassembler::default();
                let first = fragment_of(ends, 1, 0, &[1; 16], true);
                assert_eq!(add(&mut reassembler, &first, now), None);
                let bad = fragment_of(ends, 1, offset, bytes, more);
                assert_eq!(add(&mut reassembler, &bad, now), None);
                assert!(reassembler.datagrams.is_empty());
            }
        }
    }

    #[test]
    fn the_table_is_bounded_and_forgets() {
        let now = Instant::now();
        let mut reassembler = Reassembler::default();
        for ident in 0..1000 {
            add(&mut reassembler, &fragment(ident, 0, &[1; 1400], true), now);
        }
        assert_eq!(reassembler.datagrams.len(), MAX_DATAGRAMS);
        for offset in 0..1000 {
            add(
                &mut reassembler,
                &fragment(999, 1400 + offset * 16, &[1; 8], true),
                now,
            );
        }
        assert!(
            reassembler
                .datagrams
                .iter()
                .all(|datagram| datagram.runs.len() <= MAX_RUNS)
        );
        add(
            &mut reassembler,
            &fragment(5, 0, &[1; 8], true),
            now + REASSEMBLY_TIMEOUT,
        );
        assert_eq!(reassembler.datagrams.len(), 1);
    }

    proptest! {
        #[test]
        fn any_fragments_are_bounded(fragments in prop::collection::vec((0u16..3, 0u16..8200, 0usize..1500, any::<bool>()), 0..200), v6 in any::<bool>()) {
            let mut reassembler = Reassembler::default();
            let now = Instant::now();
            for (ident, offset, len, more) in fragments {
                let offset = usize::from(offset % 8192) * 8;
                let packet = fragment_of(ENDS[usize::from(v6)], ident, offset, &vec![0; len], more);
                // Without offset and continuation it is a whole packet of IPv4.
                let Some(Parsed::Part(part)) = packet::parse(&packet) else {
                    continue;
                };
                let whole = reassembler.add(&part, now);
                prop_assert!(whole.is_none_or(|packet| packet.len() <= 14 + 20 + 65_535));
                prop_assert!(reassembler.datagrams.len() <= 3);
            }
        }
    }
}
