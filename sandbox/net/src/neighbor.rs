//! Neighbor discovery (RFC 4861): the gateway's answers to solicitations, IPv6's ARP.

use super::packet::IpPacket;
use super::wire::{self, ETHERNET_BYTES, IPV6_BYTES, LINK_HOP_LIMIT, TYPE_IPV6};
use super::{GATEWAY_MAC, GUEST_V6, is_gateway};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, Icmpv6Packet, Icmpv6Repr, IpProtocol, NdiscNeighborFlags, NdiscRepr,
};
use std::net::{IpAddr, Ipv6Addr};

/// Message type of a solicitation.
const SOLICITATION: u8 = 135;
/// All nodes of the link, and their MAC address (RFC 2464).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// Whether a packet is a neighbor solicitation.
pub(super) fn is_solicitation(packet: &IpPacket<'_>) -> bool {
    packet.protocol == IpProtocol::Icmpv6 && packet.payload.first() == Some(&SOLICITATION)
}

/// Builds the frame that answers a solicitation for an address of the gateway. It goes to
/// `mac`, or to all if the guest has no address yet.
pub(super) fn answer(packet: &IpPacket<'_>, mac: [u8; 6]) -> Option<Vec<u8>> {
    let (IpAddr::V6(from), IpAddr::V6(to)) = (packet.from, packet.to) else {
        return None;
    };
    // Byte 7 is the hop limit; a lower one has crossed a router, or is a forgery.
    if packet.bytes.get(7) != Some(&LINK_HOP_LIMIT) {
        return None;
    }
    let caps = ChecksumCapabilities::default();
    let message = Icmpv6Packet::new_checked(packet.payload).ok()?;
    let solicitation = Icmpv6Repr::parse(&from, &to, &message, &caps).ok()?;
    let Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr, .. }) = solicitation else {
        return None;
    };
    if !is_gateway(target_addr.into()) {
        return None;
    }
    let mut flags = NdiscNeighborFlags::ROUTER | NdiscNeighborFlags::OVERRIDE;
    let (to, to_mac) = match from {
        Ipv6Addr::UNSPECIFIED => (ALL_NODES, ALL_NODES_MAC),
        _ if from == GUEST_V6 || from.is_unicast_link_local() => {
            flags |= NdiscNeighborFlags::SOLICITED;
            (from, mac)
        }
        _ => return None,
    };
    let repr = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags,
        target_addr,
        lladdr: Some(EthernetAddress(GATEWAY_MAC).into()),
    });
    let mut frame = vec![0; ETHERNET_BYTES + IPV6_BYTES + repr.buffer_len()];
    wire::ethernet(&mut frame, to_mac, TYPE_IPV6);
    let ip = &mut frame[ETHERNET_BYTES..];
    wire::ipv6(ip, IpProtocol::Icmpv6, target_addr, to, LINK_HOP_LIMIT);
    let message = &mut Icmpv6Packet::new_unchecked(&mut ip[IPV6_BYTES..]);
    repr.emit(&target_addr, &to, message, &caps);
    Some(frame)
}
