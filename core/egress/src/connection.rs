//! Connection checks for clients that know the intended destination and the name that
//! resolved to an address (D57).

use crate::address::{Class, Net, classify};
use crate::policy::{Mode, Policy, Refusal, normal};
use crate::rule::{HOST_NAME, Host, Ports, Rule, is_name};
use std::fmt;
use std::net::IpAddr;

/// Names of metadata services, which hand out credentials. A rule must name exactly them,
/// because a name without a service today may have one tomorrow.
const METADATA_NAMES: [&str; 6] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.tencentyun.com",
];

/// The destination that a client was asked to connect to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Destination<'a> {
    /// A host name; a final dot and letter case are ignored.
    Name(&'a str),
    /// A literal address.
    Address(IpAddr),
}

impl Destination<'_> {
    /// The narrowest rule for the destination and a port, in the policy's syntax.
    #[must_use]
    pub fn rule(&self, port: u16) -> String {
        match *self {
            Destination::Name(name) => format!("{}:{port}", normal(name)),
            Destination::Address(address) => format!("{}:{port}", Net::host(address)),
        }
    }
}

impl fmt::Display for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Name(name) => f.write_str(name),
            Destination::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Destination::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Why a connection is denied.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The network is off.
    Off,
    /// Not a host name.
    NotAName,
    /// No rule names the destination with this port.
    NotNamed {
        /// Whether there are rules for addresses, which do not apply to names.
        address_rules: bool,
    },
    /// The name of a metadata service, which needs a rule with exactly this name.
    MetadataName,
    /// The address is special, and no rule opens it.
    Special(Class),
    /// An address of this host, and no rule names exactly it.
    Own,
}

impl Denial {
    /// Whether [`Destination::rule`] would allow this destination.
    #[must_use]
    pub fn has_rule(&self, to: Destination<'_>) -> bool {
        match self {
            Denial::NotAName => false,
            Denial::Off | Denial::NotNamed { .. } | Denial::MetadataName | Denial::Own => true,
            Denial::Special(class) => {
                matches!(to, Destination::Address(_)) || opens_by_name(*class)
            }
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::Off => f.write_str("the network is off"),
            Denial::NotAName => f.write_str("it is not a host name"),
            Denial::NotNamed {
                address_rules: false,
            } => f.write_str("no rule of the network policy names it"),
            Denial::NotNamed {
                address_rules: true,
            } => f.write_str("no rule names it, and rules about addresses do not open names"),
            Denial::MetadataName => {
                f.write_str("it is a metadata service, which a rule must name alone")
            }
            Denial::Special(class) => write!(
                f,
                "it leads to a {} address, which no rule opens",
                class.describe()
            ),
            Denial::Own => f.write_str("it leads to this host itself, which no rule names"),
        }
    }
}

impl std::error::Error for Denial {}

/// Whether a rule with a name and a port opens the class: internal networks. Named services
/// have no addresses in the other classes.
fn opens_by_name(class: Class) -> bool {
    matches!(
        class,
        Class::Loopback | Class::Private | Class::SharedCarrier | Class::LinkLocal
    )
}

/// Whether the name refers to the host's own loopback.
fn is_loopback_name(name: &str) -> bool {
    name == "localhost" || name == HOST_NAME
}

impl Policy {
    /// Checks the destination before a client resolves the name or sends data.
    ///
    /// # Errors
    /// The reason for the denial.
    pub fn check_destination(&self, to: Destination<'_>, port: u16) -> Result<(), Denial> {
        match to {
            Destination::Name(name) => self.check_name(&normal(name), port),
            Destination::Address(address) => self.check_literal(address, port, false),
        }
    }

    /// Checks a connection intended for `to` to the concrete `address`, which its name
    /// resolved to or which it is. `own` marks an address of the asking host.
    ///
    /// A name opens the public addresses that it resolves to. A special address needs a rule
    /// with exactly this name and this port, or a rule with the name in addition to one with
    /// the address. `*`, `*.name`, and rules with addresses alone never open it.
    ///
    /// # Errors
    /// The reason for the denial.
    pub fn check_connection(
        &self,
        to: Destination<'_>,
        address: IpAddr,
        port: u16,
        own: bool,
    ) -> Result<(), Denial> {
        let name = match to {
            Destination::Name(name) => normal(name),
            Destination::Address(_) => return self.check_literal(address, port, own),
        };
        self.check_name(&name, port)?;
        let class = classify(address);
        let own = own && class != Class::Loopback;
        if class == Class::Public && !own {
            return Ok(());
        }
        let about = |rule: &&Rule| rule.ports.contains(port);
        let rules = || self.rules().iter().filter(about);
        let exact = || rules().filter(|rule| matches!(&rule.host, Host::Name(n) if *n == name));
        let by_port = (opens_by_name(class) || class == Class::Public)
            && exact().any(|rule| rule.ports != Ports::ALL);
        let by_address = exact().next().is_some() && self.names_host(address, port, own);
        let loopback = is_loopback_name(&name)
            && rules().any(|rule| rule.host == Host::Loopback && rule.names_address(address));
        match by_port || by_address || loopback {
            true => Ok(()),
            false if own => Err(Denial::Own),
            false => Err(Denial::Special(class)),
        }
    }

    fn check_name(&self, name: &str, port: u16) -> Result<(), Denial> {
        if self.mode() == Mode::Off {
            return Err(Denial::Off);
        }
        if !is_name(name) {
            return Err(Denial::NotAName);
        }
        let about = |rule: &&Rule| rule.ports.contains(port);
        let rules = || self.rules().iter().filter(about);
        let loopback = |rule: &Rule| rule.host == Host::Loopback && is_loopback_name(name);
        if METADATA_NAMES.contains(&name) {
            let exact = |rule: &Rule| matches!(&rule.host, Host::Name(own) if own == name);
            return match rules().any(exact) {
                true => Ok(()),
                false => Err(Denial::MetadataName),
            };
        }
        let named = |rule: &Rule| rule.matches_name(name) || loopback(rule);
        if self.mode() == Mode::Full || rules().any(named) {
            return Ok(());
        }
        let address_rules = rules().any(|rule| matches!(rule.host, Host::Net(_)));
        Err(Denial::NotNamed { address_rules })
    }

    fn check_literal(&self, address: IpAddr, port: u16, own: bool) -> Result<(), Denial> {
        let own = own && classify(address) != Class::Loopback;
        if own && self.mode() != Mode::Off && !self.names_host(address, port, true) {
            return Err(Denial::Own);
        }
        self.check(address, port, [])
            .map_err(|refusal| match refusal {
                Refusal::Off => Denial::Off,
                Refusal::NotNamed => Denial::NotNamed {
                    address_rules: false,
                },
                Refusal::Special(class) => Denial::Special(class),
            })
    }

    /// Whether a rule for addresses names this one; `alone` excludes rules with a range
    /// around it.
    fn names_host(&self, address: IpAddr, port: u16, alone: bool) -> bool {
        let named = |rule: &Rule| {
            let alone = !alone || matches!(&rule.host, Host::Net(net) if net.is_host());
            alone && rule.ports.contains(port) && rule.names_address(address)
        };
        self.rules().iter().any(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(text: &str) -> Policy {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn by_name(rules: &str, name: &str, address: &str, port: u16) -> Result<(), Denial> {
        policy(rules).check_connection(Destination::Name(name), ip(address), port, false)
    }

    #[test]
    fn special_addresses_open_by_name_and_port() {
        let public = "93.184.216.34";
        let table = [
            ("allow:a.test", "a.test", public, 443, true),
            ("allow:a.test:443", "A.Test.", public, 443, true),
            ("allow:a.test:443", "a.test", public, 80, false),
            ("allow:*", "a.test", public, 80, true),
            ("full", "a.test", public, 80, true),
            ("off", "a.test", public, 80, false),
            // A rule with name and port.
            ("allow:a.test:8080", "a.test", "127.0.0.1", 8080, true),
            ("allow:a.test:8080", "a.test", "10.0.0.1", 8080, true),
            ("allow:a.test:8080", "a.test", "fd00::1", 8080, true),
            ("allow:a.test", "a.test", "127.0.0.1", 8080, false),
            // Never classes without named services: metadata, groups, reserved ranges.
            ("allow:a.test:80", "a.test", "169.254.169.254", 80, false),
            ("allow:a.test:80", "a.test", "0.0.0.0", 80, false),
            ("allow:a.test:80", "a.test", "224.0.0.1", 80, false),
            (
                "allow:a.test:80",
                "a.test",
                "::ffff:169.254.169.254",
                80,
                false,
            ),
            // Other rules in addition to a wide one.
            (
                "allow:*,localhost:8080",
                "evil.test",
                "127.0.0.1",
                8080,
                false,
            ),
            (
                "allow:*,127.0.0.1:8080",
                "evil.test",
                "127.0.0.1",
                8080,
                false,
            ),
            (
                "allow:*.test,10.0.0.0/8",
                "evil.test",
                "10.0.0.1",
                80,
                false,
            ),
            ("allow:*.test:80", "evil.test", "10.0.0.1", 80, false),
            ("full:10.0.0.0/8", "evil.test", "10.0.0.1", 80, false),
            // The name in addition to its addresses.
            ("allow:in.test,10.0.0.0/8", "in.test", "10.0.0.1", 80, true),
            ("allow:in.test,10.0.0.0/8", "in.test", "11.0.0.1", 80, true),
            (
                "allow:in.test,10.0.0.0/8:81",
                "in.test",
                "10.0.0.1",
                80,
                false,
            ),
            (
                "allow:in.test:81,10.0.0.0/8",
                "in.test",
                "10.0.0.1",
                80,
                false,
            ),
            ("allow:10.0.0.0/8", "in.test", "10.0.0.1", 80, false),
            // The host's loopback.
            ("allow:localhost:8080", "localhost", "127.0.0.1", 8080, true),
            ("allow:localhost:8080", "localhost", "::1", 8080, true),
            ("allow:localhost:8080", "localhost", "10.0.0.1", 8080, false),
            ("allow:localhost:8080", "localhost", "127.0.0.1", 81, false),
            ("allow:*", "localhost", "127.0.0.1", 8080, false),
        ];
        for (rules, name, address, port, allowed) in table {
            let found = by_name(rules, name, address, port);
            assert_eq!(
                found.is_ok(),
                allowed,
                "{rules} {name} {address}: {found:?}"
            );
        }
        let denial = by_name("allow:10.0.0.0/8", "in.test", "10.0.0.1", 80).expect_err("denied");
        assert!(denial.to_string().contains("rules about addresses"));
    }

    #[test]
    fn metadata_services_are_named_alone() {
        for rules in ["full", "allow:*", "allow:*.google.internal"] {
            let to = Destination::Name("Metadata.Google.Internal.");
            let found = policy(rules).check_destination(to, 80);
            let alone = Err(Denial::MetadataName);
            assert!(found == alone, "{rules}: {found:?}");
        }
        let to = Destination::Name("metadata.google.internal");
        assert!(
            policy("full:metadata.google.internal:80")
                .check_destination(to, 80)
                .is_ok()
        );
    }

    #[test]
    fn the_hosts_own_addresses_are_named_alone() {
        let own = ip("203.0.114.7");
        let literal = Destination::Address(own);
        for (rules, allowed) in [
            ("full", false),
            ("allow:*", false),
            ("allow:203.0.114.0/24", false),
            ("allow:203.0.114.7:80", true),
            ("allow:203.0.114.7:81", false),
        ] {
            let policy = policy(rules);
            let found = policy.check_connection(literal, own, 80, true);
            assert_eq!(found.is_ok(), allowed, "{rules}: {found:?}");
            let found = policy.check_connection(Destination::Name("a.test"), own, 80, true);
            assert!(found.is_err(), "{rules}");
        }
        let named = policy("allow:a.test:80");
        let found = named.check_connection(Destination::Name("a.test"), own, 80, true);
        assert_eq!(found, Ok(()));
    }

    #[test]
    fn the_rule_that_is_told_opens() {
        let literals = [
            "93.184.216.34",
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "fd00::1",
        ];
        for text in literals {
            let to = Destination::Address(ip(text));
            let denial = Policy::off().check_destination(to, 80).expect_err("off");
            assert!(denial.has_rule(to));
            let rule = to.rule(80);
            let found = policy(&format!("allow:{rule}")).check_connection(to, ip(text), 80, true);
            assert_eq!(found, Ok(()), "{rule}");
        }
        for (name, address) in [("a.test", "93.184.216.34"), ("b.test", "10.0.0.1")] {
            let to = Destination::Name(name);
            let rule = to.rule(443);
            assert_eq!(
                by_name(&format!("allow:{rule}"), name, address, 443),
                Ok(())
            );
        }
        let to = Destination::Name("a.test");
        assert!(!Denial::Special(Class::Metadata).has_rule(to));
        assert!(
            Destination::Address(ip("::1"))
                .rule(80)
                .starts_with("[::1]:")
        );
    }

    proptest! {
        /// No wide rule lets a name lead to a special address.
        #[test]
        fn names_do_not_lead_inside(bits in any::<u32>(), port in 1u16..) {
            let address = IpAddr::V4(bits.into());
            let wide = policy("full:*,*.test,0.0.0.0/0,10.0.0.0/8,localhost:1-65535,127.0.0.0/8:1-65535,b.test:80");
            let to = Destination::Name("a.test");
            let allowed = wide.check_connection(to, address, port, false).is_ok();
            prop_assert_eq!(allowed, classify(address) == Class::Public);
        }
    }
}
