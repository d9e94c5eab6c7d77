//! Egress filter: maps guest destinations to host destinations that the policy allows.

use super::wire::Unreachable;
use super::{is_gateway, is_on_link};
use a99_egress::{Host, Net, Policy, Ports, Rule, embedded_v4};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
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
    answers: HashMap<IpAddr, Vec<(String, Instant)>>,
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
    pub(super) fn answer(&mut self, name: &str, addresses: &[IpAddr], now: Instant) -> Vec<IpAddr> {
        let allowed = |address: &&IpAddr| {
            !is_mapped(**address) && self.policy.check_host(**address, [name]).is_ok()
        };
        let allowed: Vec<IpAddr> = addresses.iter().filter(allowed).copied().collect();
        for address in &allowed {
            self.remember(name, *address, now);
        }
        allowed
    }

    fn remember(&mut self, name: &str, address: IpAddr, now: Instant) {
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

    fn names(&self, address: IpAddr, now: Instant) -> impl Iterator<Item = &str> {
        let names = self.answers.get(&address).into_iter().flatten();
        let fresh = move |at: &Instant| now.saturating_duration_since(*at) < ANSWER_LIFETIME;
        names
            .filter(move |(_, at)| fresh(at))
            .map(|(name, _)| name.as_str())
    }

    /// Whether an answer with `address` is of use: the host has a route to it, or a rule
    /// is about it. Guests would wait for connections to addresses of a family that the
    /// host does not have.
    pub(super) fn is_reachable(&self, address: IpAddr) -> bool {
        let about = |rule: &Rule| matches!(rule.host, Host::Net(net) if net.contains(address));
        self.policy.rules().iter().any(about) || local_side(address).is_ok()
    }

    /// Host destination of a connection to `port` at `address`.
    pub(super) fn target(
        &self,
        address: IpAddr,
        port: u16,
        now: Instant,
    ) -> Result<SocketAddr, Unreachable> {
        if port == 0 {
            return Err(Unreachable::Port);
        }
        let real = real_address(address)?;
        if self.is_named(address, real, port) {
            return Ok(SocketAddr::new(real, port));
        }
        // The host's addresses on its networks count as the host, even for a rule about a
        // range that contains them.
        let allowed = self
            .policy
            .check(real, port, self.names(address, now))
            .is_ok();
        match allowed && !is_own(real) {
            true => Ok(SocketAddr::new(real, port)),
            false => Err(Unreachable::Prohibited),
        }
    }

    /// Whether a rule names exactly this address and port: as the host sees it, or, for the
    /// host's loopback, as the guest does.
    fn is_named(&self, address: IpAddr, real: IpAddr, port: u16) -> bool {
        if real.is_loopback() && self.policy.names_address(real, port) {
            return true;
        }
        let hosts = [address, real].map(|address| Host::Net(Net::host(address)));
        let names = |rule: &Rule| {
            let whole_host = real.is_loopback() && rule.ports == Ports::ALL;
            hosts.contains(&rule.host) && rule.ports.contains(port) && !whole_host
        };
        self.policy.rules().iter().any(names)
    }

    /// Host destination of an echo request to `address`. Echo requests have no port, so a
    /// rule about some ports does not allow them.
    pub(super) fn target_host(&self, address: IpAddr, now: Instant) -> Result<IpAddr, Unreachable> {
        let real = real_address(address)?;
        let names = self.names(address, now);
        match self.policy.check_all_ports(real, names) {
            Ok(()) => Ok(real),
            Err(_) => Err(Unreachable::Prohibited),
        }
    }
}

/// Address family of the host's socket for an address.
pub(super) fn family_of(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    }
}

/// Whether an address is IPv4 in IPv6's notation (::a.b.c.d, ::ffff:a.b.c.d), which is on no
/// wire (RFC 4942 section 2.2): the host would connect by IPv4, past the checks of IPv4.
fn is_mapped(address: IpAddr) -> bool {
    let IpAddr::V6(v6) = address else {
        return false;
    };
    v6.to_ipv4().is_some() && !v6.is_loopback() && !v6.is_unspecified()
}

/// Translates a guest-visible address to the host's.
fn real_address(address: IpAddr) -> Result<IpAddr, Unreachable> {
    if is_gateway(address) {
        return Ok(match address {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    if is_mapped(address) {
        return Err(Unreachable::Prohibited);
    }
    // Only the guest is on its link, regardless of the host's networks.
    match is_on_link(address) || inner(address).is_some_and(is_on_link) {
        true => Err(Unreachable::Host),
        false => Ok(address),
    }
}

/// The IPv4 address that a translator or tunnel reads in an IPv6 address.
fn inner(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedded_v4(address).map(IpAddr::V4),
    }
}

/// Whether `address` belongs to the host, so that packets to it would come from it, directly
/// or through a translator. When in doubt, the answer is yes.
fn is_own(address: IpAddr) -> bool {
    let own = |address| match local_side(address) {
        Ok(local) => local == address,
        // No route: connecting will fail too, and report the reason.
        Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT) => {
            false
        }
        Err(_) => true,
    };
    own(address) || inner(address).is_some_and(own)
}

/// The host's address on the way to `address`. Connecting a UDP socket sends nothing.
fn local_side(address: IpAddr) -> Result<IpAddr, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family_of(address), SocketType::DGRAM, flags, None)?;
    // Any port works; this is the discard port (RFC 863).
    rustix::net::connect(&socket, &SocketAddr::new(address, 9))?;
    let local: SocketAddrAny = rustix::net::getsockname(&socket)?;
    Ok(SocketAddr::try_from(local)?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(policy: &str) -> EgressFilter {
        EgressFilter::new(policy.parse().expect("a policy"))
    }

    const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
    const HOST: IpAddr = IpAddr::V4(super::super::HOST);
    const GATEWAY: IpAddr = IpAddr::V4(super::super::GATEWAY);
    const HOST_V6: IpAddr = IpAddr::V6(super::super::HOST_V6);
    const GATEWAY_V6: IpAddr = IpAddr::V6(super::super::GATEWAY_V6);

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_hosts_loopback_is_reached_by_named_ports() {
        let filter = filter("full:localhost:8080");
        let now = Instant::now();
        let loopback = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 8080);
        assert_eq!(filter.target(HOST, 8080, now), Ok(loopback));
        assert_eq!(filter.target(GATEWAY, 8080, now), Ok(loopback));
        for port in [80, 8081] {
            assert_eq!(filter.target(HOST, port, now), Err(Unreachable::Prohibited));
        }
        assert_eq!(filter.target(HOST, 0, now), Err(Unreachable::Port));
        let neighbour = ip("192.168.127.77");
        assert_eq!(filter.target(neighbour, 8080, now), Err(Unreachable::Host));
    }

    #[test]
    fn s10_the_guests_names_of_the_host_are_rules_too() {
        let now = Instant::now();
        let loopback = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 8080);
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
    fn own_address() -> Option<IpAddr> {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("8.8.8.8:9").ok()?;
        let own = socket.local_addr().ok()?.ip();
        (!own.is_loopback()).then_some(own)
    }

    #[test]
    fn s10_a_range_does_not_open_the_hosts_own_addresses() {
        let now = Instant::now();
        let own = own_address().unwrap_or(Ipv4Addr::LOCALHOST.into());
        let text = own.to_string();
        let octets: Vec<&str> = text.split('.').collect();
        let around = format!("allow:{}.{}.0.0/16:80", octets[0], octets[1]);
        for policy in ["allow:0.0.0.0/0", "full", &around] {
            let target = filter(policy).target(own, 80, now);
            let named = own.is_loopback() && policy == around;
            assert!(target.is_err() || named, "{policy} {own}");
        }
        let literal = filter(&format!("allow:{own}:80"));
        assert_eq!(literal.target(own, 80, now), Ok(SocketAddr::new(own, 80)));
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
        let inner = ip("10.0.0.1");
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
            let address = Ipv4Addr::from_bits(0x0800_0000 + n).into();
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
        assert!(is_own(ip("127.0.0.1")) && is_own(ip("::1")));
        assert!(!is_own(ip("8.8.8.8")) && !is_own(ip("2606:4700::1111")));
        // Through a translator too.
        assert!(is_own(ip("64:ff9b::127.0.0.1")) && is_own(ip("2002:7f00:1::")));
    }

    #[test]
    fn ipv6_of_the_hosts_loopback_is_reached_by_named_ports() {
        let now = Instant::now();
        let loopback = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 8080);
        let link = "allow:[fda9:9a99:127::254]:8080,[fda9:9a99:127::1]:8080";
        for policy in ["full:localhost:8080", "allow:[::1]:8080", link] {
            let filter = filter(policy);
            assert_eq!(filter.target(HOST_V6, 8080, now), Ok(loopback), "{policy}");
            assert_eq!(filter.target(GATEWAY_V6, 8080, now), Ok(loopback));
            assert_eq!(
                filter.target(HOST_V6, 8081, now),
                Err(Unreachable::Prohibited)
            );
        }
        let neighbour = ip("fda9:9a99:127::77");
        let range = filter("full:[fc00::/7],[fda9:9a99::/32]");
        assert_eq!(range.target(neighbour, 80, now), Err(Unreachable::Host));
        assert!(range.target(HOST_V6, 80, now).is_err());
        // The other family is not named.
        assert!(filter("allow:[::1]:80").target(HOST, 80, now).is_err());
        assert!(
            filter("allow:127.0.0.1:80")
                .target(HOST_V6, 80, now)
                .is_err()
        );
    }

    #[test]
    fn s04_special_addresses_of_ipv6_are_closed_unless_named() {
        let now = Instant::now();
        for (address, rule) in [
            ("fc00::1", Some("[fc00::/7]")),
            ("fd12::1", Some("[fd12::1]")),
            ("2001:db8::1", Some("[2001:db8::/32]")),
            ("64:ff9b::10.0.0.1", Some("10.0.0.1")),
            ("2002:a00:1::1", Some("10.0.0.0/8")),
            ("2001:0:1::f5ff:fffe", Some("10.0.0.1")),
            ("ff02::1", None),
            ("fe80::1", None),
            ("fd00:ec2::254", None),
            ("::", None),
            ("::1", None),
            ("64:ff9b::127.0.0.1", None),
            ("64:ff9b::169.254.169.254", None),
            ("2002:7f00:1::", None),
        ] {
            let target = |policy: &str| filter(policy).target(ip(address), 80, now);
            for policy in ["full", "full:*,[::/0]", "allow:*", "allow:[2000::/3]"] {
                assert_eq!(
                    target(policy),
                    Err(Unreachable::Prohibited),
                    "{policy} {address}"
                );
            }
            if let Some(rule) = rule {
                let open = target(&format!("allow:{rule}"));
                assert_eq!(open, Ok(SocketAddr::new(ip(address), 80)), "{rule}");
            }
        }
        // Public addresses need a rule or `full`, in their own form and embedded.
        for address in ["2606:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::1"] {
            assert!(
                filter("full").target(ip(address), 443, now).is_ok(),
                "{address}"
            );
            let named = filter("allow:[2606:4700::/32]:443,8.8.8.8:443");
            assert!(named.target(ip(address), 443, now).is_ok(), "{address}");
            assert!(named.target(ip(address), 444, now).is_err(), "{address}");
            assert!(filter("off").target(ip(address), 443, now).is_err());
        }
    }

    #[test]
    fn s04_ipv4_in_the_notation_of_ipv6_is_refused() {
        let now = Instant::now();
        for inner in ["127.0.0.1", "8.8.8.8", "192.168.127.254", "10.0.0.1"] {
            for address in [format!("::ffff:{inner}"), format!("::{inner}")] {
                for policy in [format!("full:{inner}:80"), "full:10.0.0.0/8".to_owned()] {
                    let filter = filter(&policy);
                    assert_eq!(
                        filter.target(ip(&address), 80, now),
                        Err(Unreachable::Prohibited),
                        "{policy} {address}"
                    );
                    assert!(filter.target_host(ip(&address), now).is_err());
                }
            }
        }
        // No route through a translator leads to the guest's link or the host.
        let filter = filter("full:192.168.0.0/16,127.0.0.1:80");
        let translated = filter.target(ip("64:ff9b::192.168.127.9"), 80, now);
        assert_eq!(translated, Err(Unreachable::Host));
        assert!(filter.target(ip("64:ff9b::127.0.0.1"), 80, now).is_err());
    }

    #[test]
    fn names_lead_to_both_families() {
        let now = Instant::now();
        let mut filter = filter("allow:example.com:443,[fd12::/16]:443");
        let (public, inside) = (ip("2606:4700::1111"), ip("fd12::9"));
        let asked = [public, ip("::ffff:8.8.8.8"), ip("fd00::7"), inside, PUBLIC];
        let answer = filter.answer("example.com", &asked, now);
        assert_eq!(answer, [public, inside, PUBLIC]);
        for address in [public, PUBLIC] {
            assert!(filter.target(address, 443, now).is_ok());
            assert!(filter.target(address, 80, now).is_err());
        }
        assert!(filter.is_reachable(inside) && filter.is_reachable(ip("::1")));
    }
}
