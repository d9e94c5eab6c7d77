//! Egress filter: maps guest destinations to host destinations that the policy allows.

use super::wire::Unreachable;
use super::{GATEWAY, HOST};
use a99_egress::{Host, Net, Policy, Ports, Rule};
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Maximum remembered addresses of answers; beyond it the oldest are evicted.
const MAX_ADDRESSES: usize = 4096;
/// Maximum remembered names of one address.
const MAX_NAMES: usize = 8;
/// How long an answer opens its address: the minute for which the guest may cache it
/// (`names::TTL`), and another one for programs that connect afterwards. An address that
/// has several names is open to all of them: the gateway cannot see which one a program
/// means.
const ANSWER_LIFETIME: Duration = Duration::from_secs(120);

/// The policy, and the names behind addresses that this guest was given.
#[derive(Debug)]
pub(super) struct EgressFilter {
    policy: Policy,
    answers: HashMap<Ipv4Addr, Vec<(String, Instant)>>,
}

impl EgressFilter {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            answers: HashMap::new(),
        }
    }

    /// Whether the guest may look up a name.
    pub(super) fn allows_name(&self, name: &str) -> bool {
        self.policy.allows_name(name)
    }

    /// Records the answer to `name`, restricted to those of `addresses` that the policy
    /// allows for it; returns these.
    pub(super) fn answer(
        &mut self,
        name: &str,
        addresses: &[Ipv4Addr],
        now: Instant,
    ) -> Vec<Ipv4Addr> {
        let allowed = |address: &&Ipv4Addr| {
            self.policy
                .check_host(IpAddr::V4(**address), [name])
                .is_ok()
        };
        let allowed: Vec<Ipv4Addr> = addresses.iter().filter(allowed).copied().collect();
        for address in &allowed {
            self.remember(name, *address, now);
        }
        allowed
    }

    fn remember(&mut self, name: &str, address: Ipv4Addr, now: Instant) {
        if self.answers.len() >= MAX_ADDRESSES && !self.answers.contains_key(&address) {
            let newest = |names: &[(String, Instant)]| names.iter().map(|(_, at)| *at).max();
            let oldest = self.answers.iter().min_by_key(|(_, names)| newest(names));
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.answers.remove(&oldest);
            }
        }
        let names = self.answers.entry(address).or_default();
        names.retain(|(known, _)| known != name);
        if names.len() == MAX_NAMES {
            names.remove(0);
        }
        names.push((name.to_owned(), now));
    }

    /// Drops expired answers.
    pub(super) fn expire(&mut self, now: Instant) {
        self.answers.retain(|_, names| {
            names.retain(|(_, at)| now.saturating_duration_since(*at) < ANSWER_LIFETIME);
            !names.is_empty()
        });
    }

    fn names(&self, address: Ipv4Addr, now: Instant) -> impl Iterator<Item = &str> {
        let names = self.answers.get(&address).into_iter().flatten();
        let fresh = move |at: &Instant| now.saturating_duration_since(*at) < ANSWER_LIFETIME;
        names
            .filter(move |(_, at)| fresh(at))
            .map(|(name, _)| name.as_str())
    }

    /// Host destination of a connection to `port` at `address`.
    pub(super) fn target(
        &self,
        address: Ipv4Addr,
        port: u16,
        now: Instant,
    ) -> Result<SocketAddrV4, Unreachable> {
        if port == 0 {
            return Err(Unreachable::Port);
        }
        let real = real_address(address)?;
        let ip = IpAddr::V4(real);
        if self.is_named(address, real, port) {
            return Ok(SocketAddrV4::new(real, port));
        }
        // The host's addresses on its networks count as the host, even for a rule about a
        // range that contains them.
        let allowed = self
            .policy
            .check(ip, port, self.names(address, now))
            .is_ok();
        match allowed && !is_own(real) {
            true => Ok(SocketAddrV4::new(real, port)),
            false => Err(Unreachable::Prohibited),
        }
    }

    /// Whether a rule names exactly this address and port: as the host sees it, or, for the
    /// host's loopback, as the guest does.
    fn is_named(&self, address: Ipv4Addr, real: Ipv4Addr, port: u16) -> bool {
        if real.is_loopback() && self.policy.names_address(IpAddr::V4(real), port) {
            return true;
        }
        let hosts = [address, real].map(|address| Host::Net(Net::host(IpAddr::V4(address))));
        let names = |rule: &Rule| {
            let whole_host = real.is_loopback() && rule.ports == Ports::ALL;
            hosts.contains(&rule.host) && rule.ports.contains(port) && !whole_host
        };
        self.policy.rules().iter().any(names)
    }

    /// Host destination of an echo request to `address`. Echo requests have no port, so a
    /// rule about some ports does not allow them.
    pub(super) fn target_host(
        &self,
        address: Ipv4Addr,
        now: Instant,
    ) -> Result<Ipv4Addr, Unreachable> {
        let real = real_address(address)?;
        let names = self.names(address, now);
        match self.policy.check_all_ports(IpAddr::V4(real), names) {
            Ok(()) => Ok(real),
            Err(_) => Err(Unreachable::Prohibited),
        }
    }
}

/// Translates a guest-visible address to the host's.
fn real_address(address: Ipv4Addr) -> Result<Ipv4Addr, Unreachable> {
    if address == GATEWAY || address == HOST {
        return Ok(Ipv4Addr::LOCALHOST);
    }
    // Only the guest is on its link, regardless of the host's networks.
    match address.octets()[..3] == GATEWAY.octets()[..3] {
        true => Err(Unreachable::Host),
        false => Ok(address),
    }
}

/// Whether `address` belongs to the host, so that packets to it would come from it.
/// Connecting a UDP socket sends nothing. When in doubt, the answer is yes.
fn is_own(address: Ipv4Addr) -> bool {
    let local = || {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        // Any port works; this is the discard port (RFC 863).
        rustix::net::connect(&socket, &SocketAddrV4::new(address, 9))?;
        rustix::net::getsockname(&socket)
    };
    match local() {
        Ok(local) => own_side(&local) == Some(address),
        // No route: connecting will fail too, and report the reason.
        Err(rustix::io::Errno::NETUNREACH | rustix::io::Errno::HOSTUNREACH) => false,
        Err(_) => true,
    }
}

fn own_side(address: &SocketAddrAny) -> Option<Ipv4Addr> {
    let address = SocketAddrV4::try_from(address.clone()).ok()?;
    Some(*address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(policy: &str) -> EgressFilter {
        EgressFilter::new(policy.parse().expect("a policy"))
    }

    const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);

    #[test]
    fn the_hosts_loopback_is_reached_by_named_ports() {
        let filter = filter("full:localhost:8080");
        let now = Instant::now();
        let loopback = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080);
        assert_eq!(filter.target(HOST, 8080, now), Ok(loopback));
        assert_eq!(filter.target(GATEWAY, 8080, now), Ok(loopback));
        for port in [80, 8081] {
            assert_eq!(filter.target(HOST, port, now), Err(Unreachable::Prohibited));
        }
        assert_eq!(filter.target(HOST, 0, now), Err(Unreachable::Port));
        let neighbour = Ipv4Addr::new(192, 168, 127, 77);
        assert_eq!(filter.target(neighbour, 8080, now), Err(Unreachable::Host));
    }

    #[test]
    fn s10_the_guests_names_of_the_host_are_rules_too() {
        let now = Instant::now();
        let loopback = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080);
        let named = filter("allow:192.168.127.1:8080");
        assert_eq!(named.target(GATEWAY, 8080, now), Ok(loopback));
        assert!(named.target(GATEWAY, 8081, now).is_err());
        let named = filter("allow:192.168.127.254:8000-9000");
        assert_eq!(named.target(HOST, 8080, now), Ok(loopback));
        // Ranges that contain the host's addresses do not open the host.
        for policy in [
            "allow:192.168.0.0/16",
            "allow:0.0.0.0/0",
            "allow:192.168.127.1",
        ] {
            assert!(
                filter(policy).target(GATEWAY, 8080, now).is_err(),
                "{policy}"
            );
        }
    }

    /// A non-loopback address of this host, if it has one.
    fn own_address() -> Option<Ipv4Addr> {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("8.8.8.8:9").ok()?;
        match socket.local_addr().ok()?.ip() {
            IpAddr::V4(own) if !own.is_loopback() => Some(own),
            _ => None,
        }
    }

    #[test]
    fn s10_a_range_does_not_open_the_hosts_own_addresses() {
        let now = Instant::now();
        let own = own_address().unwrap_or(Ipv4Addr::LOCALHOST);
        let octets = own.octets();
        let around = format!("allow:{}.{}.0.0/16:80", octets[0], octets[1]);
        for policy in ["allow:0.0.0.0/0", "full", &around] {
            let target = filter(policy).target(own, 80, now);
            let named = own.is_loopback() && policy == around;
            assert!(target.is_err() || named, "{policy} {own}");
        }
        let literal = filter(&format!("allow:{own}:80"));
        assert_eq!(literal.target(own, 80, now), Ok(SocketAddrV4::new(own, 80)));
        assert!(literal.target(own, 81, now).is_err());
    }

    #[test]
    fn s10_echo_requests_need_a_rule_about_all_ports() {
        let now = Instant::now();
        for (policy, allowed) in [
            ("full", true),
            ("allow:93.184.216.34", true),
            ("allow:93.184.216.0/24", true),
            ("allow:*", true),
            ("allow:93.184.216.34:443", false),
            ("allow:*:443", false),
            ("off", false),
        ] {
            let target = filter(policy).target_host(PUBLIC, now);
            assert_eq!(target.is_ok(), allowed, "{policy}");
        }
    }

    #[test]
    fn an_address_is_open_while_a_name_answered_it() {
        let mut filter = filter("allow:example.com:443");
        let now = Instant::now();
        assert_eq!(
            filter.target(PUBLIC, 443, now),
            Err(Unreachable::Prohibited)
        );
        let inner = Ipv4Addr::new(10, 0, 0, 1);
        assert_eq!(
            filter.answer("example.com", &[PUBLIC, inner], now),
            [PUBLIC]
        );
        assert!(filter.target(PUBLIC, 443, now).is_ok());
        assert_eq!(filter.target(PUBLIC, 80, now), Err(Unreachable::Prohibited));
        assert_eq!(filter.target(inner, 443, now), Err(Unreachable::Prohibited));
        // A rule about a port does not cover echo requests.
        assert_eq!(
            filter.target_host(PUBLIC, now),
            Err(Unreachable::Prohibited)
        );
        let later = now + ANSWER_LIFETIME;
        assert_eq!(
            filter.target(PUBLIC, 443, later),
            Err(Unreachable::Prohibited)
        );
        filter.expire(later);
        assert!(filter.answers.is_empty());
    }

    #[test]
    fn answers_are_bounded() {
        let mut filter = filter("full");
        let now = Instant::now();
        for n in 0..3 * MAX_ADDRESSES as u32 {
            let address = Ipv4Addr::from_bits(0x0800_0000 + n);
            filter.answer("a.test", &[address], now + Duration::from_micros(n.into()));
        }
        assert_eq!(filter.answers.len(), MAX_ADDRESSES);
        for n in 0..100 {
            filter.answer(&format!("n{n}.test"), &[PUBLIC], now);
        }
        assert_eq!(filter.answers[&PUBLIC].len(), MAX_NAMES);
    }

    #[test]
    fn the_hosts_own_addresses_are_known() {
        assert!(is_own(Ipv4Addr::LOCALHOST));
        assert!(!is_own(Ipv4Addr::new(8, 8, 8, 8)));
    }
}
