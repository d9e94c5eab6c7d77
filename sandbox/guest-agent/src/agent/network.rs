//! Network setup of the guest by rtnetlink(7), with fixed addresses from the host, so that
//! a start never waits for a lease.

use crate::protocol::{Ipv6, Network};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::fmt::Write;
use std::fs;
use std::io;

/// The only interface apart from loopback.
const INTERFACE: &str = "eth0";

/// Message types of rtnetlink(7).
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;

/// Flags of a request with an acknowledgement, and of one that creates or replaces.
const REQUEST_ACK: u16 = 0x01 | 0x04;
const CREATE_REPLACE: u16 = 0x100 | 0x400;

/// Attributes of a link, an address and a route.
const IFLA_ADDRESS: u16 = 1;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

/// `AF_INET`, `AF_INET6`, `IFF_UP`, `RT_TABLE_MAIN`, `RTPROT_STATIC`, `RTN_UNICAST`.
const INET: u8 = 2;
const INET6: u8 = 10;
const UP: u32 = 1;
const TABLE_MAIN: u8 = 254;
const PROTOCOL_STATIC: u8 = 4;
const UNICAST: u8 = 1;
/// `IFA_F_NODAD`: the guest is alone on its link, so no other node can have its address.
const NO_DETECTION: u8 = 2;

/// Size of `struct nlmsghdr` in bytes; in a reply the error number follows it.
const HEADER_BYTES: usize = 16;

/// Brings the interface up, with route and names, or down.
pub(super) fn set_up(network: Option<&Network>) -> io::Result<()> {
    let Ok(text) = fs::read_to_string(format!("/sys/class/net/{INTERFACE}/ifindex")) else {
        return match network {
            Some(_) => Err(io::Error::other(format!("there is no {INTERFACE}"))),
            None => Ok(()),
        };
    };
    let index: u32 = text.trim().parse().map_err(io::Error::other)?;
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // Zero, `NETLINK_ROUTE`.
        None,
    )?;
    let Some(network) = network else {
        return Ok(send(&socket, &link(index, None))?);
    };
    let broadcast = broadcast(network)?;
    send(&socket, &link(index, Some(network)))?;
    send(&socket, &address(index, network, broadcast))?;
    send(&socket, &route(index, INET, &network.gateway))?;
    if let Some(ipv6) = &network.ipv6 {
        send(&socket, &address_v6(index, ipv6))?;
        send(&socket, &route(index, INET6, &ipv6.gateway))?;
    }
    let [a, b, c, d] = network.dns;
    fs::write("/etc/resolv.conf", format!("nameserver {a}.{b}.{c}.{d}\n"))?;
    add_hosts(network)
}

/// Broadcast address of the network.
fn broadcast(network: &Network) -> io::Result<[u8; 4]> {
    if !(1..=30).contains(&network.prefix) {
        return Err(io::Error::other(format!(
            "prefix of {} bits",
            network.prefix
        )));
    }
    let rest = u32::MAX >> network.prefix;
    Ok((u32::from_be_bytes(network.address) | rest).to_be_bytes())
}

/// Appends the host's names to those of the image.
fn add_hosts(network: &Network) -> io::Result<()> {
    /// Separates the image's names from those of this guest.
    const MARK: &str = "# of this sandbox\n";
    const HOSTS: &str = "/etc/hosts";
    let present = fs::read_to_string(HOSTS).unwrap_or_default();
    let image = present.split(MARK).next().unwrap_or_default();
    let mut text = format!("{image}{MARK}");
    for (address, name) in &network.hosts {
        let name = String::from_utf8_lossy(name);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{address} {name}");
    }
    fs::write(HOSTS, text)
}

/// A message being built: header, fixed part, attributes.
struct NetlinkMessage(Vec<u8>);

impl NetlinkMessage {
    fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(fixed);
        Self(bytes)
    }

    /// Appends an attribute; all start at multiples of four bytes.
    fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend((4 + value.len() as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

/// Builds `struct ifinfomsg`: the link up, with MTU and address; or down.
fn link(index: u32, network: Option<&Network>) -> Vec<u8> {
    let mut fixed = vec![0; 4];
    fixed.extend(index.to_ne_bytes());
    fixed.extend(if network.is_some() { UP } else { 0 }.to_ne_bytes());
    fixed.extend(UP.to_ne_bytes());
    let mut message = NetlinkMessage::new(RTM_NEWLINK, REQUEST_ACK, &fixed);
    if let Some(network) = network {
        message = message.with(IFLA_MTU, &network.mtu.to_ne_bytes());
        if let Some(mac) = &network.mac {
            message = message.with(IFLA_ADDRESS, mac);
        }
    }
    message.finish()
}

/// Builds `struct ifaddrmsg`: the interface's address.
fn address(index: u32, network: &Network, broadcast: [u8; 4]) -> Vec<u8> {
    let mut fixed = vec![INET, network.prefix, 0, 0];
    fixed.extend(index.to_ne_bytes());
    NetlinkMessage::new(RTM_NEWADDR, REQUEST_ACK | CREATE_REPLACE, &fixed)
        .with(IFA_LOCAL, &network.address)
        .with(IFA_ADDRESS, &network.address)
        .with(IFA_BROADCAST, &broadcast)
        .finish()
}

/// Builds `struct ifaddrmsg`: the interface's IPv6 address, usable at once.
fn address_v6(index: u32, ipv6: &Ipv6) -> Vec<u8> {
    let mut fixed = vec![INET6, ipv6.prefix, NO_DETECTION, 0];
    fixed.extend(index.to_ne_bytes());
    NetlinkMessage::new(RTM_NEWADDR, REQUEST_ACK | CREATE_REPLACE, &fixed)
        .with(IFA_LOCAL, &ipv6.address)
        .finish()
}

/// Builds `struct rtmsg`: the default route of a family by the gateway.
fn route(index: u32, family: u8, gateway: &[u8]) -> Vec<u8> {
    let fixed = [
        family,
        0,
        0,
        0,
        TABLE_MAIN,
        PROTOCOL_STATIC,
        0,
        UNICAST,
        0,
        0,
        0,
        0,
    ];
    NetlinkMessage::new(RTM_NEWROUTE, REQUEST_ACK | CREATE_REPLACE, &fixed)
        .with(RTA_GATEWAY, gateway)
        .with(RTA_OIF, &index.to_ne_bytes())
        .finish()
}

/// Sends a request and reads the kernel's reply.
fn send(socket: &OwnedFd, message: &[u8]) -> Result<(), Errno> {
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(socket, message, SendFlags::empty(), &kernel)?;
    let mut answer = [0; 1024];
    let (count, _) = rustix::net::recv(socket, &mut answer, RecvFlags::empty())?;
    let number = answer[..count].get(HEADER_BYTES..HEADER_BYTES + 4);
    let number = number.and_then(|bytes| bytes.try_into().ok());
    match number.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(number) => Err(Errno::from_raw_os_error(number.saturating_neg())),
        None => Err(Errno::BADMSG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Network {
        Network {
            address: [192, 168, 127, 3],
            prefix: 24,
            gateway: [192, 168, 127, 1],
            dns: [192, 168, 127, 1],
            mtu: 1500,
            mac: Some([2, 0, 0, 0, 0, 9]),
            hosts: Vec::new(),
            ipv6: None,
        }
    }

    #[test]
    fn messages_are_laid_out_as_the_kernel_reads_them() {
        let network = network();
        let bytes = link(2, Some(&network));
        assert_eq!(bytes.len(), 16 + 16 + 8 + 12);
        assert_eq!(bytes[..4], 52u32.to_ne_bytes());
        // The address has 6 bytes, its attribute 10, padded to 12.
        assert_eq!(
            bytes[40..44],
            [10u16.to_ne_bytes(), 1u16.to_ne_bytes()].concat()
        );
        assert_eq!(bytes[44..52], [2, 0, 0, 0, 0, 9, 0, 0]);
        assert_eq!(broadcast(&network).unwrap(), [192, 168, 127, 255]);
        let ipv6 = Ipv6 {
            address: [3; 16],
            prefix: 64,
            gateway: [1; 16],
        };
        let bytes = address_v6(2, &ipv6);
        assert_eq!(bytes.len(), 16 + 8 + 20);
        assert_eq!(bytes[16..20], [INET6, 64, NO_DETECTION, 0]);
        assert_eq!(bytes[28..], [3; 16]);
        let bytes = route(2, INET6, &ipv6.gateway);
        assert_eq!(bytes.len(), 16 + 12 + 20 + 8);
        assert_eq!((bytes[16], &bytes[32..48]), (INET6, &[1; 16][..]));
    }

    #[test]
    fn a_prefix_that_leaves_no_room_for_hosts_is_refused() {
        for prefix in [0, 31, 32, 255] {
            let network = Network {
                prefix,
                ..network()
            };
            assert!(broadcast(&network).is_err(), "{prefix}");
        }
    }
}
