//! Packet builder: Ethernet, IPv4, UDP and ICMP around a payload.

use super::{GATEWAY, GATEWAY_MAC, GUEST};
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress, IpProtocol, Ipv4Packet};
use std::net::Ipv4Addr;

/// Size of an Ethernet header in bytes.
pub(super) const ETHERNET_BYTES: usize = 14;
/// Size of an IPv4 header without options in bytes.
pub(super) const IPV4_BYTES: usize = 20;
/// Size of the UDP and ICMP headers in bytes.
pub(super) const UDP_BYTES: usize = 8;

/// EtherTypes.
pub(super) const TYPE_IPV4: u16 = 0x0800;
pub(super) const TYPE_ARP: u16 = 0x0806;

/// TTL of the gateway's packets.
const TTL: u8 = 64;

/// Size of an ICMP error without its Ethernet header in bytes, which every host accepts
/// (RFC 1812 section 4.3.2.3).
const ICMP_ERROR_BYTES: usize = 576;

/// Codes of ICMP's "destination unreachable" (RFC 792, RFC 1812 section 5.2.7.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreachable {
    Network = 0,
    Host = 1,
    Port = 3,
    /// Administratively prohibited, by the policy.
    Prohibited = 13,
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
    pub(super) ident: u16,
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
    packet.set_ident(fragment.ident);
    packet.clear_flags();
    packet.set_more_frags(fragment.more);
    packet.set_frag_offset(fragment.offset);
    packet.set_hop_limit(TTL);
    packet.set_next_header(protocol);
    packet.set_src_addr(from);
    packet.set_dst_addr(to);
    packet.fill_checksum();
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

/// Builds the pseudo header of UDP and TCP (RFC 768).
pub(super) fn pseudo_header(
    from: Ipv4Addr,
    to: Ipv4Addr,
    protocol: IpProtocol,
    len: usize,
) -> [u8; 12] {
    let mut header = [0; 12];
    header[..4].copy_from_slice(&from.octets());
    header[4..8].copy_from_slice(&to.octets());
    header[9] = protocol.into();
    header[10..].copy_from_slice(&(len as u16).to_be_bytes());
    header
}

/// Builds a UDP datagram; `None` if the payload is too long.
pub(super) fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Option<Vec<u8>> {
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
    let header = pseudo_header(from.0, to.0, IpProtocol::Udp, len);
    // Zero means "no checksum" (RFC 768).
    let sum = match checksum(&[&header, &datagram]) {
        0 => 0xffff,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    Some(datagram)
}

/// Builds an ICMP message from type, code, the four bytes after the checksum and the data.
pub(super) fn icmp(kind: u8, code: u8, rest: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(8 + data.len());
    message.extend_from_slice(&[kind, code, 0, 0]);
    message.extend_from_slice(&rest);
    message.extend_from_slice(data);
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// The part of a packet that an ICMP error quotes.
pub(super) fn quote(packet: &[u8]) -> &[u8] {
    &packet[..packet.len().min(ICMP_ERROR_BYTES - IPV4_BYTES - 8)]
}

/// Builds the ICMP error about a guest packet that starts with `quoted`.
pub(super) fn unreachable(why: Unreachable, quoted: &[u8]) -> Vec<u8> {
    icmp(3, why as u8, [0; 4], quote(quoted))
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
    use smoltcp::wire::{Icmpv4Packet, Ipv4Repr, UdpPacket};

    #[test]
    fn checksums_verify_to_zero() {
        let from = (GATEWAY, 53);
        let to = (GUEST, 4000);
        for payload in [&b""[..], b"odd", b"even", &[0xff; 1400]] {
            let datagram = udp(from, to, payload).expect("it fits");
            let packet = UdpPacket::new_checked(&datagram).expect("a datagram");
            assert!(packet.verify_checksum(&GATEWAY.into(), &GUEST.into()));
            assert_eq!(packet.payload(), payload);
            let header = pseudo_header(GATEWAY, GUEST, IpProtocol::Udp, datagram.len());
            assert_eq!(checksum(&[&header, &datagram]), 0);
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
    }
}
