//! User-mode network of a guest: a gateway in user space between the guest's
//! interface and sockets of the host.
//!
//! The guest is alone on 192.168.127.0/24. Its traffic arrives here as Ethernet frames;
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
//! - `udp`, `ping`, `dhcp`, `dns` with `names`: the other protocols, on smoltcp's wire
//!   formats. `reassembly` reassembles datagrams.
//! - `outbox`: frames on their way to the guest; `wire`: builds them; `rate`: the optional
//!   limit.
//!
//! A guest's SYN waits while the host connects, so that "refused" and "unreachable" mean
//! the same to the guest as to the host. Every connection has a separate socket set,
//! created when the host's connect succeeded: frames find it by one look-up regardless of
//! the number of connections, and no connection can starve another. smoltcp's "any IP" mode
//! lets it answer for every address.
//!
//! There is no IPv6: names have no AAAA records, and such frames are ignored. Forwards are
//! TCP only. Every table is bounded ([`Limits`]) and its entries expire.

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
mod outbox;
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

use std::net::Ipv4Addr;

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
/// MAC address of the gateway, the one that gvisor-tap-vsock uses.
pub const GATEWAY_MAC: [u8; 6] = [0x5a, 0x94, 0xef, 0xe4, 0x0c, 0xdd];
/// Maximum MTU: virtio's limit, rounded to a multiple of eight for fragments.
pub const MAX_MTU: u16 = 65_520;
/// Minimum MTU: the datagram size that every IPv4 host must accept (RFC 791).
pub const MIN_MTU: u16 = 576;
