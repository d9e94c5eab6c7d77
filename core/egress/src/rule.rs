//! A rule of a policy, written `HOST[:PORT[-PORT]]`.

use crate::address::{Class, Net, effective, special};
use crate::error::{PolicyCode, PolicyError};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The name under which guests reach the loopback of their host.
pub const HOST_NAME: &str = "host.agent99.internal";

/// Longest host name in its textual form (RFC 1035 section 2.3.4).
const MAX_NAME_BYTES: usize = 253;
/// Longest label of a name.
const MAX_LABEL_BYTES: usize = 63;

/// The hosts that a rule applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// `*`: any name and any public address.
    Any,
    /// A name, in lower case: the public addresses that it resolves to.
    Name(String),
    /// `*.example.com`: the subdomains of the name, without the name itself.
    Below(String),
    /// An address or range. It opens a special range only if that contains it entirely:
    /// `0.0.0.0/0` does not open the private networks.
    Net(Net),
    /// The host's own loopback: `host.agent99.internal` or `localhost`.
    Loopback,
}

/// The ports of a rule, inclusive.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl Ports {
    /// All ports.
    pub const ALL: Self = Self {
        first: 0,
        last: u16::MAX,
    };

    /// Whether the range contains `port`.
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// A host and its ports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The hosts.
    pub host: Host,
    /// The ports.
    pub ports: Ports,
}

impl Rule {
    /// Parses a rule; `start` is its offset in the policy's text.
    pub(crate) fn parse(text: &str, start: usize) -> Result<Self, PolicyError> {
        let (host, ports) = split(text, start)?;
        if host.is_empty() {
            let help = "write HOST or HOST:PORT, such as example.com:443";
            return Err(PolicyError::new(PolicyCode::Empty, start, text, help));
        }
        let parsed = parse_host(host, start)?;
        let loopback = match &parsed {
            Host::Loopback => true,
            // For Linux 0.0.0.0 is the host itself.
            Host::Net(net) => special(net.address()).is_some_and(|(around, class)| {
                matches!(class, Class::Loopback | Class::Unspecified) && around.covers(*net)
            }),
            _ => false,
        };
        let ports = match ports {
            Some(ports) => parse_ports(ports, start + text.len() - ports.len())?,
            None if loopback => {
                let help = format!("name the port, such as {host}:8080");
                return Err(PolicyError::new(PolicyCode::PortNeeded, start, text, help));
            }
            None => Ports::ALL,
        };
        Ok(Self {
            host: parsed,
            ports,
        })
    }

    /// Whether it applies to the name, in lower case and without a final dot.
    pub(crate) fn matches_name(&self, name: &str) -> bool {
        match &self.host {
            Host::Any => true,
            Host::Name(own) => own == name,
            Host::Below(own) => name
                .strip_suffix(own.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            Host::Net(_) | Host::Loopback => false,
        }
    }

    /// Whether it names the address itself, in any embedding.
    pub(crate) fn names_address(&self, address: IpAddr) -> bool {
        let address = effective(address);
        match &self.host {
            Host::Net(net) => {
                let open = special(address).is_none_or(|(around, _)| around.covers(*net));
                net.contains(address) && open
            }
            Host::Loopback => {
                address == IpAddr::V4(Ipv4Addr::LOCALHOST)
                    || address == IpAddr::V6(Ipv6Addr::LOCALHOST)
            }
            Host::Any | Host::Name(_) | Host::Below(_) => false,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Any => f.write_str("*")?,
            Host::Name(name) => f.write_str(name)?,
            Host::Below(name) => write!(f, "*.{name}")?,
            Host::Net(net) => write!(f, "{net}")?,
            Host::Loopback => f.write_str(HOST_NAME)?,
        }
        match self.ports {
            Ports::ALL => Ok(()),
            Ports { first, last } if first == last => write!(f, ":{first}"),
            Ports { first, last } => write!(f, ":{first}-{last}"),
        }
    }
}

/// Splits host and ports. IPv6 addresses need brackets before a port.
fn split(text: &str, start: usize) -> Result<(&str, Option<&str>), PolicyError> {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((host, ports)) = rest.split_once(']') else {
            let help = "close the bracket, such as [2001:db8::1]:443";
            return Err(PolicyError::new(PolicyCode::Address, start, text, help));
        };
        return match (ports.is_empty(), ports.strip_prefix(':')) {
            (true, _) => Ok((&text[..host.len() + 2], None)),
            (_, Some(ports)) => Ok((&text[..host.len() + 2], Some(ports))),
            _ => {
                let at = start + text.len() - ports.len();
                let help = "a port follows a colon, such as [fd00::/8]:443";
                Err(PolicyError::new(PolicyCode::Port, at, ports, help))
            }
        };
    }
    // More than one colon: an IPv6 address without a port.
    match text.split_once(':') {
        Some((host, ports)) if !ports.contains(':') => Ok((host, Some(ports))),
        _ => Ok((text, None)),
    }
}

fn parse_ports(text: &str, start: usize) -> Result<Ports, PolicyError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|&port: &u16| digits && port > 0)
    };
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Ports { first, last }),
        _ => {
            let help = "ports are 1 to 65535, such as 443 or 8000-8100";
            Err(PolicyError::new(PolicyCode::Port, start, text, help))
        }
    }
}

fn parse_host(text: &str, start: usize) -> Result<Host, PolicyError> {
    if text == "*" {
        return Ok(Host::Any);
    }
    let bare = text
        .strip_prefix('[')
        .map(|rest| rest.trim_end_matches(']'));
    if bare.is_some() || text.contains([':', '/']) || looks_numeric(text) {
        return parse_net(bare.unwrap_or(text), text, start);
    }
    let lower = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if lower == HOST_NAME || lower == "localhost" {
        return Ok(Host::Loopback);
    }
    let below = lower.strip_prefix("*.");
    let name = below.unwrap_or(&lower);
    if !is_name(name) {
        let help = if text.is_ascii() {
            "names are labels of letters, digits and hyphens, such as example.com or *.example.com"
        } else {
            "write international names in their ASCII form, xn--..."
        };
        return Err(PolicyError::new(PolicyCode::Name, start, text, help));
    }
    let name = name.to_owned();
    Ok(match below {
        Some(_) => Host::Below(name),
        None => Host::Name(name),
    })
}

/// Whether URL parsers would read the text as an IPv4 address: its last label is a number.
/// Such a text must be a valid address and is never a name.
fn looks_numeric(text: &str) -> bool {
    let last = text.trim_end_matches('.').rsplit('.').next().unwrap_or("");
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    match hex {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn parse_net(text: &str, whole: &str, start: usize) -> Result<Host, PolicyError> {
    let error = |help: String| PolicyError::new(PolicyCode::Address, start, whole, help);
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(error(
            "write it as 10.1.2.3, 10.0.0.0/8 or [fd00::/8]".to_owned(),
        ));
    };
    // Rules are compared with effective addresses.
    let inner = effective(address);
    let Some(prefix) = prefix else {
        return Ok(Host::Net(Net::host(inner)));
    };
    let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
    let Some(prefix) = prefix.parse::<u8>().ok().filter(|_| digits) else {
        return Err(error(
            "the prefix is a number of bits, such as /24".to_owned(),
        ));
    };
    match Net::new(address, prefix) {
        // A range of embedded addresses would never match.
        Some(_) if inner != address && prefix < 128 => {
            Err(error("write the range as IPv4".to_owned()))
        }
        Some(net) if inner == address => Ok(Host::Net(net)),
        Some(_) => Ok(Host::Net(Net::host(inner))),
        None => Err(error(match address {
            IpAddr::V4(_) if prefix > 32 => "the prefix is at most 32 bits".to_owned(),
            _ => format!("bits behind the prefix of {prefix} are set"),
        })),
    }
}

/// Whether a lower-case text is a host name (RFC 1123 section 2.1, plus the underscore of
/// service names).
pub(crate) fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        let inside = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_NAME_BYTES && text.split('.').all(label)
}
