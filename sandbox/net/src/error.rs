//! Errors of a gateway as such. Those of a connection are passed to the guest.

use std::fmt;

/// The kind of a failure. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NetCode {
    /// The MTU is out of range.
    Mtu,
    /// The gateway cannot listen on a forward's address of the host.
    Listen,
    /// A rule of the policy is about the guest's own link, which has no other hosts.
    Link,
    /// The system has no thread or descriptor for a gateway.
    Resources,
}

impl NetCode {
    /// The code as text, for machines.
    pub const fn name(self) -> &'static str {
        match self {
            NetCode::Mtu => "net.mtu",
            NetCode::Listen => "net.listen",
            NetCode::Link => "net.link",
            NetCode::Resources => "net.resources",
        }
    }
}

/// Why a gateway cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetError {
    /// The kind.
    pub code: NetCode,
    /// What happened to what, and what would help.
    pub text: String,
}

impl NetError {
    pub(super) fn new(code: NetCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.text)
    }
}

impl std::error::Error for NetError {}
