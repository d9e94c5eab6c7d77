//! Errors of the gateway itself; those of a connection are passed to the guest.

use std::fmt;

/// Kind of a failure; the text of a code never changes.
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
    /// Returns the code as stable text, for machines.
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
    /// Kind of the failure.
    pub code: NetCode,
    /// Description of the failure, its subject and a remedy.
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
