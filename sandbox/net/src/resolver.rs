//! Name resolver: the host's, or a custom one from the embedder.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};

/// Why a lookup returned no addresses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// The name does not exist.
    NotFound,
    /// The lookup failed for now.
    Failed,
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResolveError::NotFound => "there is no such name",
            ResolveError::Failed => "the name cannot be looked up now",
        })
    }
}

impl std::error::Error for ResolveError {}

/// Resolves host names. Calls come from several threads and may block; a gateway makes few
/// at a time, and does not wait for them when it ends.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a host name in lower case, of both families.
    ///
    /// # Errors
    /// If the name does not exist, or the lookup fails.
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError>;
}

/// Resolver of the host's C library, with its hosts file, search list and servers.
#[derive(Copy, Clone, Debug, Default)]
pub struct HostResolver;

impl Resolver for HostResolver {
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        match (name, 0).to_socket_addrs() {
            Ok(addresses) => Ok(addresses.map(|address| address.ip()).collect()),
            // The standard library reports the error of `getaddrinfo` only as text, in
            // English since no locale is set: glibc's and musl's.
            Err(error) => {
                let text = error.to_string();
                let absent = [
                    "not known",
                    "does not resolve",
                    "No address",
                    "has no usable",
                ];
                Err(match absent.iter().any(|part| text.contains(part)) {
                    true => ResolveError::NotFound,
                    false => ResolveError::Failed,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_hosts_resolver_knows_the_host() {
        let addresses = HostResolver.resolve("localhost");
        let addresses = addresses.expect("addresses");
        assert!(addresses.contains(&Ipv4Addr::LOCALHOST.into()));
        assert!(addresses.iter().all(IpAddr::is_loopback));
    }

    #[test]
    fn a_name_that_cannot_be_is_an_error() {
        assert!(HostResolver.resolve("no-such-name.invalid").is_err());
    }
}
