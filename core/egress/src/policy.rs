//! The policy: its text form and its checks.

use crate::address::{Class, classify};
use crate::error::{PolicyCode, PolicyError};
use crate::rule::{Host, Ports, Rule, is_name};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum rules of a policy: each packet that opens a connection is checked against all of
/// them.
const MAX_RULES: usize = 1000;

/// The default for addresses that no rule names.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Nothing is reachable, and there are no rules.
    #[default]
    Off,
    /// Only the named addresses are reachable.
    Allow,
    /// Every public address is reachable, and the named ones.
    Full,
}

/// The reachable part of the network; nothing by default.
///
/// Written as `off`, `allow:RULE,...`, `full` or `full:RULE,...`. A rule is
/// `HOST[:PORT[-PORT]]`. A host is a name, `*.name`, an IP address, a range in CIDR notation
/// (IPv6 in brackets), `*` for all public addresses, or `host.agent99.internal` (`localhost`)
/// for the loopback of the host, which needs a port. Serde uses the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    mode: Mode,
    rules: Vec<Rule>,
}

/// Why an address is refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The network is off.
    Off,
    /// No rule names it.
    NotNamed,
    /// The address is special, and no rule names it by IP or range.
    Special(Class),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Off => f.write_str("the network is off"),
            Refusal::NotNamed => f.write_str("no rule of the network policy names it"),
            Refusal::Special(class) => {
                let class = class.describe();
                write!(f, "{class} addresses must be named by IP address or range")
            }
        }
    }
}

impl Policy {
    /// The policy that allows nothing.
    pub const fn off() -> Self {
        Self {
            mode: Mode::Off,
            rules: Vec::new(),
        }
    }

    /// The policy that allows every public address.
    pub const fn full() -> Self {
        Self {
            mode: Mode::Full,
            rules: Vec::new(),
        }
    }

    /// The default for addresses that no rule names.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The rules, in the order they were written.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether `name` may be looked up, for any port. Invalid host names may not.
    pub fn allows_name(&self, name: &str) -> bool {
        let name = normal(name);
        let named = || self.rules.iter().any(|rule| rule.matches_name(&name));
        is_name(&name) && (self.mode == Mode::Full || named())
    }

    /// Checks whether `port` at `address` may be reached; `names` are those that resolved to
    /// the address.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn check<'n>(
        &self,
        address: IpAddr,
        port: u16,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), Refusal> {
        self.judge(address, |rule| rule.ports.contains(port), names)
    }

    /// Checks whether any port at `address` may be reached, for steps before a connection
    /// such as a DNS answer.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn check_host<'n>(
        &self,
        address: IpAddr,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), Refusal> {
        self.judge(address, |_| true, names)
    }

    /// Checks whether `address` may be reached at every port, for traffic without ports such
    /// as an echo request.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub fn check_all_ports<'n>(
        &self,
        address: IpAddr,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), Refusal> {
        self.judge(address, |rule| rule.ports == Ports::ALL, names)
    }

    /// Whether a rule names `port` at exactly this address, by IP, range or as the host's
    /// loopback. Callers with further knowledge of an address (for instance that it belongs
    /// to the host) use this instead of [`Policy::check`].
    pub fn names_address(&self, address: IpAddr, port: u16) -> bool {
        let named = |rule: &Rule| rule.ports.contains(port) && rule.names_address(address);
        self.rules.iter().any(named)
    }

    fn judge<'n>(
        &self,
        address: IpAddr,
        about: impl Fn(&Rule) -> bool,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), Refusal> {
        if self.mode == Mode::Off {
            return Err(Refusal::Off);
        }
        let mut rules = self.rules.iter().filter(|rule| about(rule));
        if rules.clone().any(|rule| rule.names_address(address)) {
            return Ok(());
        }
        match classify(address) {
            Class::Public if self.mode == Mode::Full => Ok(()),
            Class::Public if rules.clone().any(|rule| rule.host == Host::Any) => Ok(()),
            Class::Public => {
                let names: Vec<String> = names.into_iter().map(normal).collect();
                let named = |rule: &Rule| names.iter().any(|name| rule.matches_name(name));
                rules.any(named).then_some(()).ok_or(Refusal::NotNamed)
            }
            class => Err(Refusal::Special(class)),
        }
    }
}

/// The canonical form of a name in rules.
pub(crate) fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (mode, rules) = match text.split_once(':') {
            None if text == "off" => return Ok(Self::off()),
            None if text == "full" => return Ok(Self::full()),
            Some(("allow", rules)) => (Mode::Allow, rules),
            Some(("full", rules)) => (Mode::Full, rules),
            _ => {
                let help = "write off, full or allow:HOST[:PORT],...";
                return Err(PolicyError::new(PolicyCode::Mode, 0, text, help));
            }
        };
        let mut start = text.len() - rules.len();
        let mut parsed = Vec::new();
        for rule in rules.split(',') {
            if parsed.len() == MAX_RULES {
                let help = format!("at most {MAX_RULES}; use ranges or *.name");
                return Err(PolicyError::new(PolicyCode::TooMany, start, rule, help));
            }
            parsed.push(Rule::parse(rule, start)?);
            start += rule.len() + 1;
        }
        Ok(Self {
            mode,
            rules: parsed,
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            Mode::Off => "off",
            Mode::Allow => "allow",
            Mode::Full => "full",
        })?;
        for (index, rule) in self.rules.iter().enumerate() {
            write!(f, "{}{rule}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
