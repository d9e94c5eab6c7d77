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

/// What requests and answers may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of the head of an answer, which has 512 fields at most.
    pub max_header_bytes: usize,
    /// Bytes of a body: as it is sent, as it comes, and decompressed.
    pub max_body_bytes: usize,
    /// Bytes that the bodies of all answers under way take together, with what unpacking
    /// them takes, such as windows of brotli (16 MiB each at most); what is read counts
    /// no more when its fetch is over.
    pub max_held_bytes: usize,
    /// The whole fetch, redirects and body included.
    pub timeout: Duration,
    /// Looking up, connecting and TLS of one connection.
    pub connect_timeout: Duration,
    /// Requests of a grant, redirects included.
    pub max_requests: Option<u64>,
    /// Distinct hosts of a grant.
    pub max_hosts: Option<usize>,
}

impl Default for FetchLimits {
    /// 64 KiB of head, 16 MiB of body, 128 MiB of bodies at once, 30 s of which 10
    /// for a connection; 1,000 requests to 100 hosts.
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

    /// What may be reached; nothing by default.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Builder {
        self.policy = policy;
        self
    }

    /// The schemes that are spoken; both by default.
    #[must_use]
    pub fn schemes(mut self, schemes: &[Scheme]) -> Builder {
        self.schemes = schemes.to_vec();
        self
    }

    /// What requests and answers may be.
    #[must_use]
    pub fn limits(mut self, limits: FetchLimits) -> Builder {
        self.limits = limits;
        self
    }

    /// Trusts the certificate authorities of this PEM file, and those of other
    /// calls, instead of the system's.
    #[must_use]
    pub fn ca_file(self, path: impl AsRef<Path>) -> Builder {
        let read = tls::read_file(path.as_ref());
        self.trust(read)
    }

    /// The same of PEM text.
    #[must_use]
    pub fn ca_pem(self, text: &[u8]) -> Builder {
        self.trust(tls::read(text, "the text of authorities"))
    }

    /// Sends this header with each request to an origin, such as
    /// `https://api.example.com`: a credential that programs use and never see. What a
    /// program says under the same name does not count. A redirect to another origin
    /// does not take it along, nor does one from another origin get it. An origin of
    /// `http:` must be an address of the loopback; an origin gets one credential of a name.
    ///
    /// Whoever answers there is trusted with it, and may send it back.
    #[must_use]
    pub fn credential(mut self, origin: &str, name: &str, value: &Secret) -> Builder {
        let credential = Credential::new(origin, name, value);
        match credential.and_then(|credential| credential.beside(&self.credentials)) {
            Ok(credential) => self.credentials.push(credential),
            Err(error) => self.failed = self.failed.or(Some(error)),
        }
        self
    }

    /// Looks names up in another way than the system's.
    #[must_use]
    pub fn resolver(mut self, resolver: impl Resolve + 'static) -> Builder {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Connects in another way than by the system's TCP.
    #[must_use]
    pub fn dialer(mut self, dialer: impl Dial + 'static) -> Builder {
        self.dialer = Arc::new(dialer);
        self
    }

    /// What is wrong so far, which [`build`](Self::build) would fail with: for hosts
    /// that say which of their settings it was.
    #[must_use]
    pub fn failed(&self) -> Option<&FetchError> {
        self.failed.as_ref()
    }

    /// A fetch.
    ///
    /// # Errors
    /// [`FetchCode::CaFile`](crate::FetchCode::CaFile) if a file of authorities
    /// cannot be read, has none, or has a bad one;
    /// [`FetchCode::Credentials`](crate::FetchCode::Credentials) if a credential cannot
    /// be sent. The system's authorities are
    /// read when TLS is needed first, and an error of that request if there are
    /// none.
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
