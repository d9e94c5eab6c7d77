//! Builder of fetches, and their limits.

use crate::client::HttpFetch;
use crate::connect::Network;
use crate::credential::Credential;
use crate::error::FetchError;
use crate::network::{Dial, Resolve, SystemDialer, SystemResolver};
use crate::target::Scheme;
use crate::tls::{self, Tls};
use a99_capabilities::Secret;
use a99_egress::Policy;
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Limits of requests and answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Maximum bytes of an answer's head, which may have at most 512 fields.
    pub max_header_bytes: usize,
    /// Maximum bytes of a body: as sent, as received, and decompressed.
    pub max_body_bytes: usize,
    /// Maximum bytes of all bodies in flight together, including decompression memory such as
    /// brotli windows (at most 16 MiB each). A body stops counting when its fetch is over.
    pub max_held_bytes: usize,
    /// Timeout of the whole fetch, including redirects and the body.
    pub timeout: Duration,
    /// Timeout of name lookup, connection and TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum requests of a grant, including redirects.
    pub max_requests: Option<u64>,
    /// Maximum distinct hosts of a grant.
    pub max_hosts: Option<usize>,
}

impl Default for FetchLimits {
    /// 64 KiB of head, 16 MiB of body, 128 MiB of bodies at once, 30 s of which 10 for a
    /// connection; 1,000 requests to 100 hosts.
    fn default() -> FetchLimits {
        FetchLimits {
            max_header_bytes: 64 << 10,
            max_body_bytes: 16 << 20,
            max_held_bytes: 128 << 20,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            max_requests: Some(1_000),
            max_hosts: Some(100),
        }
    }
}

/// Builds an [`HttpFetch`].
pub struct Builder {
    policy: Policy,
    schemes: Vec<Scheme>,
    limits: FetchLimits,
    authorities: Option<Vec<CertificateDer<'static>>>,
    credentials: Vec<Credential>,
    failed: Option<FetchError>,
    resolver: Arc<dyn Resolve>,
    dialer: Arc<dyn Dial>,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            policy: Policy::off(),
            schemes: vec![Scheme::Http, Scheme::Https],
            limits: FetchLimits::default(),
            authorities: None,
            credentials: Vec::new(),
            failed: None,
            resolver: Arc::new(SystemResolver),
            dialer: Arc::new(SystemDialer),
        }
    }

    /// The network policy; by default it allows nothing.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.policy = policy;
        self
    }

    /// The allowed schemes; both by default.
    #[must_use]
    pub fn schemes(mut self, schemes: &[Scheme]) -> Builder {
        self.schemes = schemes.to_vec();
        self
    }

    /// Limits of requests and answers.
    #[must_use]
    pub fn limits(mut self, limits: FetchLimits) -> Builder {
        self.limits = limits;
        self
    }

    /// Trusts the certificate authorities of this PEM file, and those of other calls, instead
    /// of the system's.
    #[must_use]
    pub fn ca_file(self, path: impl AsRef<Path>) -> Builder {
        let read = tls::read_file(path.as_ref());
        self.trust(read)
    }

    /// Trusts the certificate authorities of this PEM text, like [`ca_file`](Self::ca_file).
    #[must_use]
    pub fn ca_pem(self, text: &[u8]) -> Builder {
        self.trust(tls::read(text, "the text of authorities"))
    }

    /// Sends this header with each request to an origin, such as `https://api.example.com`: a
    /// credential that programs use and never see. It overrides a program's header of the same
    /// name. Redirects neither carry it to another origin nor add it when they come from
    /// another origin. An `http:` origin must be a loopback address. An origin may have one
    /// credential for each name.
    ///
    /// The server at the origin is trusted with the credential, and may send it back.
    #[must_use]
    pub fn credential(mut self, origin: &str, name: &str, value: &Secret) -> Builder {
        let credential = Credential::new(origin, name, value);
        match credential.and_then(|credential| credential.beside(&self.credentials)) {
            Ok(credential) => self.credentials.push(credential),
            Err(error) => self.failed = self.failed.or(Some(error)),
        }
        self
    }

    /// Replaces the system's resolver.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Builder {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Replaces the system's TCP connections.
    #[must_use]
    pub fn dialer(mut self, dialer: impl Dial + 'static) -> Builder {
        self.dialer = Arc::new(dialer);
        self
    }

    /// The first error so far, with which [`build`](Self::build) would fail: for hosts that
    /// report which of their settings caused it.
    #[must_use]
    pub fn failed(&self) -> Option<&FetchError> {
        self.failed.as_ref()
    }

    /// Builds the fetch.
    ///
    /// # Errors
    /// [`FetchCode::CaFile`](crate::FetchCode::CaFile) if a file of authorities cannot be read,
    /// or has none or an invalid one; [`FetchCode::Credentials`](crate::FetchCode::Credentials)
    /// if a credential cannot be sent. The system's authorities are read when TLS is first
    /// needed; without any, that request fails.
    pub fn build(self) -> Result<HttpFetch, FetchError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let network = Network {
            limits: self.limits,
            resolver: self.resolver,
            dialer: self.dialer,
            tls: Arc::new(Tls::new(self.authorities)),
        };
        let fetch = HttpFetch::new(self.policy, self.schemes, Arc::new(network));
        Ok(fetch.with_credentials(self.credentials))
    }

    fn trust(mut self, read: Result<Vec<CertificateDer<'static>>, FetchError>) -> Builder {
        match read {
            Ok(found) => self.authorities.get_or_insert_default().extend(found),
            Err(error) => self.failed = self.failed.or(Some(error)),
        }
        self
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("policy", &self.policy.to_string())
            .field("schemes", &self.schemes)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
