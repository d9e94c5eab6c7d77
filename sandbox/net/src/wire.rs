//! Packet builder: Ethernet, IP, UDP and ICMP around a payload.

use super::{GATEWAY, GATEWAY_MAC, GATEWAY_V6, GUEST, GUEST_V6};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, IpProtocol, Ipv4Packet, Ipv6Packet,
    checksum as sums,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Size of an Ethernet header in bytes.
pub(super) const ETHERNET_BYTES: usize = 14;
/// Size of an IPv4 header without options in bytes.
pub(super) const IPV4_BYTES: usize = 20;
/// Size of an IPv6 header in bytes, and of its extension for fragments.
pub(super) const IPV6_BYTES: usize = 40;
pub(super) const IPV6_FRAGMENT_BYTES: usize = 8;
/// Size of the UDP and ICMP headers in bytes.
pub(super) const UDP_BYTES: usize = 8;

/// EtherTypes.
pub(super) const TYPE_IPV4: u16 = 0x0800;
pub(super) const TYPE_ARP: u16 = 0x0806;
pub(super) const TYPE_IPV6: u16 = 0x86dd;

/// TTL of the gateway's packets.
const TTL: u8 = 64;
/// Hop limit of neighbor discovery (RFC 4861): such a packet crossed no router.
pub(super) const LINK_HOP_LIMIT: u8 = 255;

/// Size of an ICMP error without its Ethernet header in bytes, which every host accepts
/// (RFC 1812 section 4.3.2.3).
const ICMP_ERROR_BYTES: usize = 576;
/// The same for IPv6: its minimum MTU (RFC 4443 section 2.4).
const ICMPV6_ERROR_BYTES: usize = 1280;

/// Why ICMP's "destination unreachable" is sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreachable {
    Network,
    Host,
    Port,
    /// Administratively prohibited, by the policy.
    Prohibited,
}

impl Unreachable {
    /// Code of ICMP (RFC 792, RFC 1812 section 5.2.7.1).
    fn code(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::Host => 1,
            Unreachable::Port => 3,
            Unreachable::Prohibited => 13,
        }
    }

    /// Code of ICMPv6 (RFC 4443 section 3.1).
    fn code_v6(self) -> u8 {
        match self {
            Unreachable::Network => 0,
            Unreachable::Prohibited => 1,
            Unreachable::Host => 3,
            Unreachable::Port => 4,
        }
    }
}

/// Writes an Ethernet header with the gateway as source.
pub(super) fn ethernet(frame: &mut [u8], to: [u8; 6], kind: u16) {
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&GATEWAY_MAC);
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
}

/// A fragment's position in its datagram.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Fragment {
    pub(super) ident: u32,
    pub(super) offset: u16,
    pub(super) more: bool,
}

/// Writes an IPv4 header with its checksum; `packet` has the full length.
pub(super) fn ipv4(
    packet: &mut [u8],
    protocol: IpProtocol,
    from: Ipv4Addr,
    to: Ipv4Addr,
    fragment: Fragment,
) {
    let len = packet.len();
    let mut packet = Ipv4Packet::new_unchecked(packet);
    packet.set_version(4);
    packet.set_header_len(IPV4_BYTES as u8);
    packet.set_dscp(0);
    packet.set_ecn(0);
    packet.set_total_len(len as u16);
    packet.set_ident(fragment.ident as u16);
    packet.clear_flags();
    packet.set_more_frags(fragment.more);
    packet.set_frag_offset(fragment.offset);
    packet.set_hop_limit(TTL);
    packet.set_next_header(protocol);
    packet.set_src_addr(from);
    packet.set_dst_addr(to);
    packet.fill_checksum();
}

/// Writes an IPv6 header; `packet` has the full length.
pub(super) fn ipv6(
    packet: &mut [u8],
    next: IpProtocol,
    from: Ipv6Addr,
    to: Ipv6Addr,
    hop_limit: u8,
) {
    let len = packet.len().saturating_sub(IPV6_BYTES);
    let mut packet = Ipv6Packet::new_unchecked(packet);
    packet.set_version(6);
    packet.set_traffic_class(0);
    packet.set_flow_label(0);
    packet.set_payload_len(len as u16);
    packet.set_next_header(next);
    packet.set_hop_limit(hop_limit);
    packet.set_src_addr(from);
    packet.set_dst_addr(to);
}

/// Builds a packet with an Ethernet header's room before it; `cut` says which part of a
/// datagram it is, if it is not all of it. Addresses of different families make no packet.
pub(super) fn packet(
    protocol: IpProtocol,
    (from, to): (IpAddr, IpAddr),
    payload: &[u8],
    cut: Option<Fragment>,
) -> Option<Vec<u8>> {
    let mut frame = vec![0; ETHERNET_BYTES];
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.resize(ETHERNET_BYTES + IPV4_BYTES, 0);
            frame.extend_from_slice(payload);
            let cut = cut.unwrap_or_default();
            ipv4(&mut frame[ETHERNET_BYTES..], protocol, from, to, cut);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.resize(ETHERNET_BYTES + IPV6_BYTES, 0);
            if let Some(Fragment {
                ident,
                offset,
                more,
            }) = cut
            {
                frame.extend_from_slice(&[protocol.into(), 0]);
                frame.extend_from_slice(&(offset | u16::from(more)).to_be_bytes());
                frame.extend_from_slice(&ident.to_be_bytes());
            }
            frame.extend_from_slice(payload);
            let next = cut.map_or(protocol, |_| IpProtocol::Ipv6Frag);
            ipv6(&mut frame[ETHERNET_BYTES..], next, from, to, TTL);
        }
        _ => return None,
    }
    Some(frame)
}

/// Computes the folded checksum of RFC 1071 over parts that, except the last, have even
/// length.
pub(super) fn checksum(parts: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let sum = |part: &&[u8]| part.chunks(2).map(word).sum::<u64>();
    let mut total: u64 = parts.iter().map(sum).sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

/// Computes the checksum of a UDP, TCP or ICMPv6 message with its pseudo header (RFC 768,
/// RFC 8200 section 8.1); zero if the one in the message is right. Both addresses are of
/// one family.
pub(super) fn message_checksum(
    (from, to): (IpAddr, IpAddr),
    protocol: IpProtocol,
    message: &[u8],
) -> u16 {
    let head = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            sums::pseudo_header_v4(&from, &to, protocol, message.len() as u32)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            sums::pseudo_header_v6(&from, &to, protocol, message.len() as u32)
        }
        _ => 0,
    };
    !sums::combine(&[head, !checksum(&[message])])
}

/// Builds a UDP datagram; `None` if the payload is too long.
pub(super) fn udp(from: (IpAddr, u16), to: (IpAddr, u16), payload: &[u8]) -> Option<Vec<u8>> {
    let len = UDP_BYTES + payload.len();
    if IPV4_BYTES + len > usize::from(u16::MAX) {
        return None;
    }
    let mut datagram = Vec::with_capacity(len);
    datagram.extend_from_slice(&from.1.to_be_bytes());
    datagram.extend_from_slice(&to.1.to_be_bytes());
    datagram.extend_from_slice(&(len as u16).to_be_bytes());
    datagram.extend_from_slice(&[0, 0]);
    datagram.extend_from_slice(payload);
    // Zero means "no checksum" (RFC 768).
    let sum = match message_checksum((from.0, to.0), IpProtocol::Udp, &datagram) {
        0 => 0xffff,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    Some(datagram)
}

/// Builds an ICMP message from type, code, the four bytes after the checksum and the data.
pub(super) fn icmp(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut message = unsummed(kind, code, rest, data);
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Lays out a message of ICMP or ICMPv6, whose checksum is still zero.
fn unsummed(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(8 + data.len());
    message.extend_from_slice(&[kind, code, 0, 0]);
    message.extend_from_slice(&rest);
    message.extend_from_slice(data);
    message
}

/// Builds an ICMPv6 message, whose checksum covers its addresses too.
pub(super) fn icmpv6(
    addresses: (IpAddr, IpAddr),
    kind: u8,
    code: u8,
    rest: [u8; 4],
    data: &[u8],
) -> Vec<u8> {
    let mut message = unsummed(kind, code, rest, data);
    let sum = message_checksum(addresses, IpProtocol::Icmpv6, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Whether a packet is of IPv6.
pub(super) fn is_v6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|byte| byte >> 4 == 6)
}

/// The part of a packet that an ICMP error quotes.
pub(super) fn quote(packet: &[u8]) -> &[u8] {
    let most = match is_v6(packet) {
        true => ICMPV6_ERROR_BYTES - IPV6_BYTES - 8,
        false => ICMP_ERROR_BYTES - IPV4_BYTES - 8,
    };
    &packet[..packet.len().min(most)]
}

/// Builds the ICMP error about a guest packet that starts with `quoted`.
pub(super) fn unreachable(why: Unreachable, quoted: &[u8]) -> Vec<u8> {
    let quoted_part = quote(quoted);
    match is_v6(quoted) {
        true => {
            let addresses = (GATEWAY_V6.into(), GUEST_V6.into());
            icmpv6(addresses, 1, why.code_v6(), [0; 4], quoted_part)
        }
        false => icmp(3, why.code(), [0; 4], quoted_part),
    }
}

/// Builds an ARP frame of the gateway, which speaks for the address `own`.
pub(super) fn arp(
    operation: ArpOperation,
    own: Ipv4Addr,
    to_mac: [u8; 6],
    to: Ipv4Addr,
) -> Vec<u8> {
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(GATEWAY_MAC),
        source_protocol_addr: own,
        target_hardware_addr: EthernetAddress(to_mac),
        target_protocol_addr: to,
    };
    let mut frame = vec![0; ETHERNET_BYTES + repr.buffer_len()];
    repr.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET_BYTES..]));
    ethernet(&mut frame, to_mac, TYPE_ARP);
    frame
}

/// Builds an ARP request for the guest's address.
pub(super) fn arp_request() -> Vec<u8> {
    let mut frame = arp(ArpOperation::Request, GATEWAY, [0; 6], GUEST);
    ethernet(&mut frame, [0xff; 6], TYPE_ARP);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{Icmpv4Packet, Icmpv6Packet, Ipv4Repr, UdpPacket};

    #[test]
    fn checksums_verify_to_zero() {
        let from = (GATEWAY.into(), 53);
        let to = (GUEST.into(), 4000);
        for payload in [&b""[..], b"odd", b"even", &[0xff; 1400]] {
            let datagram = udp(from, to, payload).expect("it fits");
            let packet = UdpPacket::new_checked(&datagram).expect("a datagram");
            assert!(packet.verify_checksum(&GATEWAY.into(), &GUEST.into()));
            assert_eq!(packet.payload(), payload);
            let ends = (from.0, to.0);
            assert_eq!(message_checksum(ends, IpProtocol::Udp, &datagram), 0);
            let ends = (GATEWAY_V6.into(), GUEST_V6.into());
            let datagram = udp((ends.0, 53), (ends.1, 4000), payload).expect("it fits");
            let packet = UdpPacket::new_checked(&datagram).expect("a datagram");
            assert!(packet.verify_checksum(&ends.0.into(), &ends.1.into()));
            let echo = icmpv6(ends, 129, 0, [1, 2, 3, 4], payload);
            let packet = Icmpv6Packet::new_checked(&echo[..]).expect("a message");
            assert!(packet.verify_checksum(&GATEWAY_V6, &GUEST_V6));
            assert_eq!(message_checksum(ends, IpProtocol::Icmpv6, &echo), 0);
            let echo = icmp(0, 0, [1, 2, 3, 4], payload);
            let packet = Icmpv4Packet::new_checked(&echo).expect("a message");
            assert!(packet.verify_checksum());
            assert_eq!(checksum(&[&echo]), 0);
        }
        assert_eq!(udp(from, to, &vec![0; 65_508]), None);
        let mut packet = vec![0; IPV4_BYTES + 8];
        ipv4(
            &mut packet,
            IpProtocol::Icmp,
            GATEWAY,
            GUEST,
            Fragment::default(),
        );
        assert_eq!(checksum(&[&packet[..IPV4_BYTES]]), 0);
        let view = Ipv4Packet::new_checked(&packet[..]).expect("a packet");
        let repr = Ipv4Repr::parse(&view, &ChecksumCapabilities::default()).expect("valid");
        assert_eq!(
            (repr.src_addr, repr.dst_addr, repr.payload_len),
            (GATEWAY, GUEST, 8)
        );
    }

    #[test]
    fn errors_quote_the_packet() {
        let mut packet = vec![7; 2000];
        ipv4(
            &mut packet,
            IpProtocol::Udp,
            GUEST,
            GATEWAY,
            Fragment::default(),
        );
        let message = unreachable(Unreachable::Prohibited, &packet);
        assert_eq!(IPV4_BYTES + message.len(), ICMP_ERROR_BYTES);
        let view = Icmpv4Packet::new_checked(&message).expect("a message");
        assert_eq!((view.msg_code(), &message[8..28]), (13, &packet[..20]));
        assert!(view.verify_checksum());
        ipv6(&mut packet, IpProtocol::Udp, GUEST_V6, GATEWAY_V6, 64);
        for (why, code) in [
            (Unreachable::Network, 0),
            (Unreachable::Prohibited, 1),
            (Unreachable::Host, 3),
            (Unreachable::Port, 4),
        ] {
            let message = unreachable(why, &packet);
            assert_eq!(IPV6_BYTES + message.len(), ICMPV6_ERROR_BYTES);
            let view = Icmpv6Packet::new_checked(&message[..]).expect("a message");
            assert_eq!((message[0], message[1]), (1, code));
            assert_eq!(message[8..48], packet[..40]);
            assert!(view.verify_checksum(&GATEWAY_V6, &GUEST_V6));
        }
    }
}
