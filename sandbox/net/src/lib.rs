//! User-mode network of a guest: a gateway in user space between the guest's
//! interface and sockets of the host.
//!
//! The guest is alone on 192.168.127.0/24 and fda9:9a99:127::/64. Its traffic arrives here as Ethernet frames;
//! each of its connections becomes a connection of the host, if the
//! [`Policy`](a99_egress::Policy) allows it. The gateway needs no privileges, and two
//! guests never share a link.
//!
//! - [`Gateway`] starts and ends the one thread that does all of this; the guest's own
//!   thread exchanges frames with it through a [`Link`].
//! - `worker`: the thread's event loop. `link`: the queues between the two threads.
//! - `egress_filter`: maps guest destinations to host destinations that the policy allows.
//! - `stack`: smoltcp, which speaks TCP with the guest; `tcp`: those connections, each
//!   joined to a socket of the host; `forward`: connections from the host's side.
//! - `udp`, `ping`, `neighbor`, `dhcp`, `dns` with `names`: the other protocols, on
//!   smoltcp's wire formats. `reassembly` reassembles datagrams; `packet` is a complete one
//!   of either family.
//! - `outbox`: frames on their way to the guest; `wire`: builds them; `rate`: the optional
//!   limit.
//!
//! A guest's SYN waits while the host connects, so that "refused" and "unreachable" mean
//! the same to the guest as to the host. Every connection has a separate socket set,
//! created when the host's connect succeeded: frames find it by one look-up regardless of
//! the number of connections, and no connection can starve another. smoltcp's "any IP" mode
//! lets it answer for every address.
//!
//! Both families share the policy, the code and the tables. IPv6 addresses are static:
//! there are no router advertisements, and extension headers other than fragments are
//! dropped. The name server has an IPv4 address only. Forwards are TCP over IPv4. Every
//! table is bounded ([`Limits`]) and its entries expire.

#![warn(unreachable_pub)]

mod config;
mod dhcp;
mod dns;
mod egress_filter;
mod error;
mod forward;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod gateway;
mod link;
mod names;
mod neighbor;
mod outbox;
mod packet;
mod ping;
mod rate;
mod reassembly;
mod resolver;
mod sessions;
mod stack;
mod tcp;
mod udp;
mod wire;
mod worker;

pub use config::{Checksums, Config, Forward, Limits, Rate};
pub use error::{NetCode, NetError};
pub use gateway::{Gateway, Stats};
pub use link::{Frame, Link};
pub use ping::host_allows_ping;
pub use resolver::{HostResolver, ResolveError, Resolver};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address of the gateway: router, DHCP and DNS server, and, for named ports, the host's
/// loopback.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 168, 127, 1);
/// Address of the guest.
pub const GUEST: Ipv4Addr = Ipv4Addr::new(192, 168, 127, 3);
/// Address of the host's loopback, for ports that the policy names.
pub const HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 127, 254);
/// Broadcast address of the link.
pub const BROADCAST: Ipv4Addr = Ipv4Addr::new(192, 168, 127, 255);
/// Netmask of the link.
pub const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// The IPv6 addresses of the gateway, the guest and the host's loopback, in a unique local
/// network (RFC 4193) of 64 bits.
pub const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfda9, 0x9a99, 0x127, 0, 0, 0, 0, 1);
/// See [`GATEWAY_V6`].
pub const GUEST_V6: Ipv6Addr = Ipv6Addr::new(0xfda9, 0x9a99, 0x127, 0, 0, 0, 0, 3);
/// See [`GATEWAY_V6`].
pub const HOST_V6: Ipv6Addr = Ipv6Addr::new(0xfda9, 0x9a99, 0x127, 0, 0, 0, 0, 0x254);
/// MAC address of the gateway, the one that gvisor-tap-vsock uses.
pub const GATEWAY_MAC: [u8; 6] = [0x5a, 0x94, 0xef, 0xe4, 0x0c, 0xdd];
/// Maximum MTU: virtio's limit, rounded to a multiple of eight for fragments.
pub const MAX_MTU: u16 = 65_520;
/// Minimum MTU: the datagram size that every IPv4 host must accept (RFC 791). Linux has no
/// IPv6 on a link with less than 1280.
pub const MIN_MTU: u16 = 576;

/// The guest's address in the family of `peer`.
fn guest_for(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => GUEST.into(),
        IpAddr::V6(_) => GUEST_V6.into(),
    }
}

/// Whether an address on the link is the gateway's: its own, or that of the host's loopback.
fn is_gateway(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address == GATEWAY || address == HOST,
        IpAddr::V6(address) => address == GATEWAY_V6 || address == HOST_V6,
    }
}

/// Whether an address is on the guest's link.
fn is_on_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == GATEWAY.octets()[..3],
        IpAddr::V6(address) => address.octets()[..8] == GATEWAY_V6.octets()[..8],
    }
}
