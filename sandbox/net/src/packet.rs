//! IP packet of the guest, of either family.

use super::wire;
use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6FragmentHeader, Ipv6Packet};
use std::net::IpAddr;

/// A complete packet.
#[derive(Copy, Clone, Debug)]
pub(super) struct IpPacket<'a> {
    /// All of it, from the IP header on.
    pub(super) bytes: &'a [u8],
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) protocol: IpProtocol,
    pub(super) payload: &'a [u8],
}

/// A part of a fragmented packet.
#[derive(Copy, Clone, Debug)]
pub(super) struct Part<'a> {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) protocol: IpProtocol,
    pub(super) ident: u32,
    pub(super) offset: usize,
    pub(super) more: bool,
    pub(super) payload: &'a [u8],
}

/// What an IP header says of the bytes after it.
#[derive(Copy, Clone, Debug)]
pub(super) enum Parsed<'a> {
    Whole(IpPacket<'a>),
    Part(Part<'a>),
}

/// Parses a packet, which may be followed by the padding of a short frame; `None` if it is
/// malformed.
pub(super) fn parse(bytes: &[u8]) -> Option<Parsed<'_>> {
    match wire::is_v6(bytes) {
        true => parse_v6(bytes),
        false => parse_v4(bytes),
    }
}

fn parse_v4(bytes: &[u8]) -> Option<Parsed<'_>> {
    let ip = Ipv4Packet::new_checked(bytes).ok()?;
    if ip.version() != 4 || !ip.verify_checksum() {
        return None;
    }
    let (from, to) = (ip.src_addr().into(), ip.dst_addr().into());
    let (protocol, payload) = (ip.next_header(), ip.payload());
    if ip.more_frags() || ip.frag_offset() != 0 {
        return Some(Parsed::Part(Part {
            from,
            to,
            protocol,
            ident: ip.ident().into(),
            offset: ip.frag_offset().into(),
            more: ip.more_frags(),
            payload,
        }));
    }
    Some(Parsed::Whole(IpPacket {
        bytes: bytes.get(..usize::from(ip.total_len()))?,
        from,
        to,
        protocol,
        payload,
    }))
}

/// Of the extension headers only the one of a fragment is understood: the others serve
/// routers and mobile hosts, and hide the protocol from a filter (RFC 7045).
fn parse_v6(bytes: &[u8]) -> Option<Parsed<'_>> {
    let ip = Ipv6Packet::new_checked(bytes).ok()?;
    let (from, to) = (ip.src_addr().into(), ip.dst_addr().into());
    let (protocol, payload) = (ip.next_header(), ip.payload());
    if protocol != IpProtocol::Ipv6Frag {
        return Some(Parsed::Whole(IpPacket {
            bytes: bytes.get(..ip.total_len())?,
            from,
            to,
            protocol,
            payload,
        }));
    }
    let (head, payload) = payload.split_at_checked(wire::IPV6_FRAGMENT_BYTES)?;
    // smoltcp's header begins after the two bytes that all extension headers have.
    let fragment = Ipv6FragmentHeader::new_checked(&head[2..]).ok()?;
    Some(Parsed::Part(Part {
        from,
        to,
        protocol: head[0].into(),
        ident: fragment.ident(),
        offset: usize::from(fragment.frag_offset()) * 8,
        more: fragment.more_frags(),
        payload,
    }))
}
