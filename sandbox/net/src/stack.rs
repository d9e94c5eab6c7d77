//! TCP stack on smoltcp: takes packets of the guest and emits packets for it.
//!
//! The interface has no link layer, since all addresses on the link are known. "Any IP"
//! makes every address an address of this interface. Sockets come from outside, a set for
//! each connection; a packet without a connection meets an empty set and is answered with
//! RST, as RFC 9293 requires.

use super::config::{Checksums, Config};
use super::outbox::Outbox;
use super::{GATEWAY, GATEWAY_V6, NetCode, NetError};
use smoltcp::iface::{self, Interface, PollResult, SocketSet};
use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant as Time;
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::time::{Duration, Instant};

/// TCP stack of the gateway.
pub(super) struct Stack {
    interface: Interface,
    start: Instant,
    mtu: usize,
    checksums: Checksums,
    nobody: SocketSet<'static>,
}

/// The device of one call into smoltcp: at most one packet, and the outbox.
struct Port<'a> {
    packet: Option<&'a [u8]>,
    out: &'a mut Outbox,
    mtu: usize,
    checksums: Checksums,
}

struct Received<'a>(&'a [u8]);

struct Sent<'a> {
    out: &'a mut Outbox,
    checksums_valid: bool,
}

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        self.out.raw_packet(len, self.checksums_valid, f)
    }
}

impl Device for Port<'_> {
    type RxToken<'a>
        = Received<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = Sent<'a>
    where
        Self: 'a;

    fn receive(&mut self, _: Time) -> Option<(Received<'_>, Sent<'_>)> {
        let packet = self.packet.take()?;
        let checksums_valid = self.checksums == Checksums::Offloaded;
        let sent = Sent {
            out: self.out,
            checksums_valid,
        };
        Some((Received(packet), sent))
    }

    fn transmit(&mut self, _: Time) -> Option<Sent<'_>> {
        let checksums_valid = self.checksums == Checksums::Offloaded;
        self.out.open().then_some(Sent {
            out: self.out,
            checksums_valid,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.checksum.tcp = match self.checksums {
            Checksums::Offloaded => Checksum::None,
            Checksums::Verified => Checksum::Both,
        };
        capabilities
    }
}

impl Stack {
    /// Creates the gateway's stack.
    pub(super) fn new(config: &Config, out: &mut Outbox, now: Instant) -> Result<Self, NetError> {
        let mtu = usize::from(config.mtu);
        let checksums = config.checksums;
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| {
            NetError::new(NetCode::Resources, format!("no random numbers: {error}"))
        })?;
        let mut settings = iface::Config::new(HardwareAddress::Ip);
        settings.random_seed = u64::from_ne_bytes(seed);
        let mut port = Port {
            packet: None,
            out,
            mtu,
            checksums,
        };
        let mut interface = Interface::new(settings, &mut port, Time::ZERO);
        interface.update_ip_addrs(|addresses| {
            // The list is empty and has room for both families, so this cannot fail.
            let _ = addresses.push(IpCidr::new(GATEWAY.into(), 24));
            let _ = addresses.push(IpCidr::new(GATEWAY_V6.into(), 64));
        });
        interface.set_any_ip(true);
        Ok(Self {
            interface,
            start: now,
            mtu,
            checksums,
            nobody: SocketSet::new(Vec::new()),
        })
    }

    fn time(&self, now: Instant) -> Time {
        let micros = now.saturating_duration_since(self.start).as_micros();
        Time::from_micros(micros as i64)
    }

    /// Delivers an IP packet to its connection.
    pub(super) fn ingress(
        &mut self,
        packet: &[u8],
        sockets: &mut SocketSet<'static>,
        out: &mut Outbox,
        now: Instant,
    ) {
        let time = self.time(now);
        let mut port = Port {
            packet: Some(packet),
            out,
            mtu: self.mtu,
            checksums: self.checksums,
        };
        self.interface.poll_ingress_single(time, &mut port, sockets);
    }

    /// Answers a packet without a connection.
    pub(super) fn refuse(&mut self, packet: &[u8], out: &mut Outbox, now: Instant) {
        let mut nobody = std::mem::replace(&mut self.nobody, SocketSet::new(Vec::new()));
        self.ingress(packet, &mut nobody, out, now);
        self.nobody = nobody;
    }

    /// Lets a connection send a packet; returns whether it did.
    pub(super) fn egress(
        &mut self,
        sockets: &mut SocketSet<'static>,
        out: &mut Outbox,
        now: Instant,
    ) -> bool {
        let time = self.time(now);
        let mut port = Port {
            packet: None,
            out,
            mtu: self.mtu,
            checksums: self.checksums,
        };
        self.interface.poll_egress(time, &mut port, sockets) == PollResult::SocketStateChanged
    }

    /// Time of a connection's next timer.
    pub(super) fn poll_at(
        &mut self,
        sockets: &SocketSet<'static>,
        now: Instant,
    ) -> Option<Instant> {
        let time = self.time(now);
        let at = self.interface.poll_at(time, sockets)?;
        let micros = u64::try_from(at.total_micros()).unwrap_or(0);
        Some(self.start + Duration::from_micros(micros))
    }

    /// The context that smoltcp's `connect` needs.
    pub(super) fn context(&mut self) -> &mut iface::Context {
        self.interface.context()
    }
}
