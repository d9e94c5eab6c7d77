//! Credential of the host: a header for one origin that programs never see.

use crate::error::{FetchCode, FetchError};
use crate::options::is_connection_header;
use crate::target::{Host, Origin, Scheme, Target};
use a99_capabilities::Secret;
use a99_egress::{Class, classify};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// A header for the requests to an origin.
#[derive(Clone)]
pub(crate) struct Credential {
    origin: Origin,
    name: HeaderName,
    value: HeaderValue,
}

impl Credential {
    pub(crate) fn new(origin: &str, name: &str, value: &Secret) -> Result<Credential, FetchError> {
        let wrong = |text: String| FetchError::new(FetchCode::Credentials, text);
        let target = Target::parse(origin)
            .map_err(|error| wrong(format!("the credential's origin: {error}")))?;
        let origin = target.origin.clone();
        if !target.is_bare() {
            return Err(wrong(format!(
                "a credential belongs to a whole origin: write {origin}"
            )));
        }
        let loopback = match &origin.host {
            Host::Address(address) => classify(*address) == Class::Loopback,
            Host::Name(_) => false,
        };
        if origin.scheme == Scheme::Http && !loopback {
            return Err(wrong(format!(
                "a credential is not sent in the clear to {origin}: write https"
            )));
        }
        let name = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .filter(|name| !is_connection_header(name))
            .ok_or_else(|| wrong("the name is none of a header with a credential".to_owned()))?;
        if value.expose().is_empty() {
            return Err(wrong(format!("the credential for {origin} is empty")));
        }
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| {
            wrong(format!(
                "the credential for {origin} has a character that headers have not"
            ))
        })?;
        value.set_sensitive(true);
        Ok(Credential {
            origin,
            name,
            value,
        })
    }

    /// Refuses a credential whose name and origin another one already has: the choice would be
    /// arbitrary.
    pub(crate) fn beside(self, others: &[Credential]) -> Result<Credential, FetchError> {
        let same = |other: &Credential| other.origin == self.origin && other.name == self.name;
        match others.iter().any(same) {
            true => Err(FetchError::new(
                FetchCode::Credentials,
                format!("{} has two credentials named {}", self.origin, self.name),
            )),
            false => Ok(self),
        }
    }

    /// Adds it to the headers of a request to its origin.
    pub(crate) fn put(&self, origin: &Origin, headers: &mut HeaderMap) {
        if *origin == self.origin {
            headers.insert(self.name.clone(), self.value.clone());
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({}, {})", self.origin, self.name)
    }
}
