//! What is wrong with the text of a policy.

use std::fmt;
use std::ops::Range;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PolicyCode {
    /// The policy is not `off`, `full` or `allow:`.
    Mode,
    /// A rule has no host, or a list has no rule.
    Empty,
    /// The text is not a host name.
    Name,
    /// The text is not an address or range.
    Address,
    /// The text is not a port or range of ports.
    Port,
    /// A rule for the host itself needs a port.
    PortNeeded,
    /// The policy has too many rules.
    TooMany,
}

impl PolicyCode {
    /// The code as text, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyCode::Mode => "egress.mode",
            PolicyCode::Empty => "egress.empty",
            PolicyCode::Name => "egress.name",
            PolicyCode::Address => "egress.address",
            PolicyCode::Port => "egress.port",
            PolicyCode::PortNeeded => "egress.port_needed",
            PolicyCode::TooMany => "egress.too_many",
        }
    }
}

/// Why a text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The kind.
    pub code: PolicyCode,
    /// Where in the text, in bytes.
    pub at: Range<usize>,
    /// The text at that place.
    pub found: String,
    /// What would be right.
    pub help: String,
}

impl PolicyError {
    pub(crate) fn new(
        code: PolicyCode,
        start: usize,
        found: &str,
        help: impl Into<String>,
    ) -> Self {
        Self {
            code,
            at: start..start + found.len(),
            found: found.to_owned(),
            help: help.into(),
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.code {
            PolicyCode::Mode => "not a network policy",
            PolicyCode::Empty => "a rule is missing",
            PolicyCode::Name => "not a host name",
            PolicyCode::Address => "not an address or range",
            PolicyCode::Port => "not a port or range of ports",
            PolicyCode::PortNeeded => "the host itself is reachable by port only",
            PolicyCode::TooMany => "too many rules",
        };
        let Self {
            at, found, help, ..
        } = self;
        write!(f, "{what} at {}: {found:?}; {help}", at.start)
    }
}

impl std::error::Error for PolicyError {}
