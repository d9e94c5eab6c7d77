//! Configuration of a guest's network.

use super::resolver::{HostResolver, Resolver};
use a99_egress::Policy;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Who computes the checksums of TCP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// Nobody: the link loses no bits. For our own guest, whose interface
    /// passes on that checksums need no check. The few other protocols have
    /// theirs, because programs such as DHCP clients check by themselves.
    Offloaded,
    /// Both sides, as on a wire.
    Verified,
}

/// Largest rates, in bytes of Ethernet frames a second; `None` is unlimited.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// To the guest.
    pub to_guest: Option<u64>,
    /// From the guest.
    pub from_guest: Option<u64>,
}

/// A port of the host that leads to a port of the guest.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Where the host listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// The guest's port.
    pub guest_port: u16,
}

impl Forward {
    /// From `host_port` of the host's loopback to `guest_port`.
    pub fn local(host_port: u16, guest_port: u16) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, host_port)),
            guest_port,
        }
    }
}

/// Bounds of the tables, and how long entries live.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// TCP connections, a descriptor each.
    pub tcp: usize,
    /// Of these, those that the host has not connected yet. For a guest's further
    /// SYNs the oldest connection goes that is not open yet.
    pub connecting: usize,
    /// UDP sessions, a descriptor each. When there are more, the one that was
    /// silent for longest ends.
    pub udp: usize,
    /// Echo sessions (one for each running `ping`), a descriptor each.
    pub ping: usize,
    /// How long the host may take to connect.
    pub connect: Duration,
    /// How long a TCP connection may be silent: two hours and four minutes
    /// (RFC 5382 requirement 5).
    pub tcp_idle: Duration,
    /// How long the guest may leave a handshake or a closing connection open:
    /// four minutes (RFC 5382 requirement 5).
    pub tcp_transitory: Duration,
    /// How long a UDP session may be silent: two minutes (RFC 4787 requirement
    /// 5).
    pub udp_idle: Duration,
    /// How long echo replies are waited for.
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

/// A guest's network.
#[derive(Clone)]
pub struct Config {
    /// What the guest may reach.
    pub policy: Policy,
    /// Largest IP packet on the link, [`super::MIN_MTU`] to
    /// [`super::MAX_MTU`] bytes. The guest gets it by DHCP.
    pub mtu: u16,
    /// Who computes TCP's checksums.
    pub checksums: Checksums,
    /// The guest's address on the link, where it is known; it is learned from
    /// the guest's frames in any case.
    pub mac: Option<[u8; 6]>,
    /// Ports of the host that lead into the guest.
    pub forwards: Vec<Forward>,
    /// Largest rates.
    pub rate: Rate,
    /// Bounds.
    pub limits: Limits,
    /// Who looks names up.
    pub resolver: Arc<dyn Resolver>,
}

impl Config {
    /// The network of our own guest: the largest MTU, checksums offloaded.
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

    /// The network of a guest that knows nothing of ours, such as a
    /// container2wasm image: Ethernet's MTU, checksums as on a wire.
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
