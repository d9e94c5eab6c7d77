//! Configuration of a guest's network.

use super::resolver::{HostResolver, Resolver};
use a99_egress::Policy;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Which side computes TCP checksums.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// Neither side: the link loses no bits. For our own guest, whose interface reports
    /// that checksums need no check. The few other protocols carry checksums, because
    /// programs such as DHCP clients verify them.
    Offloaded,
    /// Both sides, as on a physical wire.
    Verified,
}

/// Rate limits in bytes of Ethernet frames a second; `None` is unlimited.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Limit of traffic to the guest.
    pub to_guest: Option<u64>,
    /// Limit of traffic from the guest.
    pub from_guest: Option<u64>,
}

/// A port of the host, forwarded to a port of the guest.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Address on which the host listens; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Port of the guest.
    pub guest_port: u16,
}

impl Forward {
    /// Forwards `host_port` of the host's loopback to `guest_port`.
    pub fn local(host_port: u16, guest_port: u16) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, host_port)),
            guest_port,
        }
    }
}

/// Sizes of the tables, and timeouts of their entries.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum TCP connections, a descriptor each.
    pub tcp: usize,
    /// Maximum TCP connections that the host has not connected yet. Beyond it, a new SYN of
    /// the guest evicts the oldest half-open connection.
    pub connecting: usize,
    /// Maximum UDP sessions, a descriptor each. A new session evicts the one that was idle
    /// longest.
    pub udp: usize,
    /// Maximum echo sessions (one for each running `ping`), a descriptor each.
    pub ping: usize,
    /// Time limit for the host to connect.
    pub connect: Duration,
    /// Idle timeout of a TCP connection: two hours and four minutes (RFC 5382 requirement
    /// 5).
    pub tcp_idle: Duration,
    /// Time limit for the guest's open handshake or closing connection: four minutes (RFC
    /// 5382 requirement 5).
    pub tcp_transitory: Duration,
    /// Idle timeout of a UDP session: two minutes (RFC 4787 requirement 5).
    pub udp_idle: Duration,
    /// Idle timeout of an echo session.
    pub ping_idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tcp: 512,
            connecting: 128,
            udp: 256,
            ping: 32,
            connect: Duration::from_secs(30),
            tcp_idle: Duration::from_secs(2 * 3600 + 4 * 60),
            tcp_transitory: Duration::from_secs(4 * 60),
            udp_idle: Duration::from_secs(120),
            ping_idle: Duration::from_secs(30),
        }
    }
}

/// Configuration of a guest's network.
#[derive(Clone)]
pub struct Config {
    /// Policy of allowed destinations.
    pub policy: Policy,
    /// Maximum IP packet on the link in bytes, [`super::MIN_MTU`] to [`super::MAX_MTU`].
    /// The guest learns it by DHCP.
    pub mtu: u16,
    /// Which side computes TCP checksums.
    pub checksums: Checksums,
    /// MAC address of the guest, if known in advance; the guest's frames reveal it in any
    /// case.
    pub mac: Option<[u8; 6]>,
    /// Ports of the host forwarded into the guest.
    pub forwards: Vec<Forward>,
    /// Rate limits.
    pub rate: Rate,
    /// Table sizes and timeouts.
    pub limits: Limits,
    /// Resolver of host names.
    pub resolver: Arc<dyn Resolver>,
}

impl Config {
    /// Configures the network of our own guest: the largest MTU, checksums offloaded.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            mtu: super::MAX_MTU,
            checksums: Checksums::Offloaded,
            mac: None,
            forwards: Vec::new(),
            rate: Rate::default(),
            limits: Limits::default(),
            resolver: Arc::new(HostResolver),
        }
    }

    /// Configures the network of a foreign guest, such as a container2wasm image:
    /// Ethernet's MTU, checksums as on a physical wire.
    pub fn ethernet(policy: Policy) -> Self {
        Self {
            mtu: 1500,
            checksums: Checksums::Verified,
            ..Self::new(policy)
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("policy", &self.policy)
            .field("mtu", &self.mtu)
            .field("checksums", &self.checksums)
            .field("mac", &self.mac)
            .field("forwards", &self.forwards)
            .field("rate", &self.rate)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
