//! TLS: rustls with the ring provider, and its trusted authorities. No process-wide provider is
//! installed.

use crate::error::{FetchCode, FetchError, causes};
use a99_core::diag::excerpt;
use a99_core::text::escape_for_terminal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::error::Error;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio_rustls::TlsConnector;

/// Maximum bytes of a file of authorities: some twenty times those of a system.
const MAX_CA_BYTES: u64 = 4 << 20;

/// Maximum names of a certificate in an error, and maximum bytes of each.
const MAX_NAMES: usize = 3;
const MAX_NAME_BYTES: usize = 64;

/// Trusted authorities, and the configuration of connections.
#[derive(Debug)]
pub(crate) struct Tls {
    /// Authorities that replace the system's.
    authorities: Option<Vec<CertificateDer<'static>>>,
    config: OnceLock<Result<Arc<ClientConfig>, FetchError>>,
}

impl Tls {
    pub(crate) fn new(authorities: Option<Vec<CertificateDer<'static>>>) -> Tls {
        Tls {
            authorities,
            config: OnceLock::new(),
        }
    }

    /// A connector; the first call reads the system's authorities.
    pub(crate) async fn connector(self: &Arc<Self>) -> Result<TlsConnector, FetchError> {
        if self.config.get().is_none() {
            // The authorities may be some hundred files.
            let tls = Arc::clone(self);
            let reading = tokio::task::spawn_blocking(move || {
                tls.config.get_or_init(|| tls.set_up());
            });
            // The runtime is shutting down.
            reading
                .await
                .map_err(|_| FetchError::new(FetchCode::Runtime, "the tokio runtime has ended"))?;
        }
        let config = self.config.get_or_init(|| self.set_up()).clone()?;
        Ok(TlsConnector::from(config))
    }

    fn set_up(&self) -> Result<Arc<ClientConfig>, FetchError> {
        let mut roots = RootCertStore::empty();
        let found = match &self.authorities {
            Some(authorities) => authorities.clone(),
            None => rustls_native_certs::load_native_certs().certs,
        };
        roots.add_parsable_certificates(found);
        if roots.is_empty() {
            let text = "there are no certificate authorities to trust on this system; install \
                        them (ca-certificates), or name a file of them with --ca FILE";
            return Err(FetchError::new(FetchCode::NoRoots, text));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| FetchError::new(FetchCode::Tls, format!("TLS: {error}")))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The name that a certificate must have.
pub(crate) fn server_name(
    host: &crate::target::Host,
) -> Result<ServerName<'static>, rustls::pki_types::InvalidDnsNameError> {
    match host {
        crate::target::Host::Name(name) => ServerName::try_from(name.clone()),
        crate::target::Host::Address(address) => Ok(ServerName::from(*address)),
    }
}

/// Describes a TLS error. Text that a server chose is truncated and escaped: programs, models
/// and terminals read it.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    let why = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
        expected,
        presented,
    })) = why
    else {
        return excerpt(&escape_for_terminal(&error.to_string()));
    };
    let of = |name: &String| {
        let name = escape_for_terminal(name);
        match name.len() > MAX_NAME_BYTES {
            true => format!("{}...", &name[..name.floor_char_boundary(MAX_NAME_BYTES)]),
            false => name,
        }
    };
    let shown: Vec<String> = presented.iter().take(MAX_NAMES).map(of).collect();
    let has = match (shown.is_empty(), presented.len().saturating_sub(MAX_NAMES)) {
        (true, _) => "no name".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{}, and {more} more", shown.join(", ")),
    };
    let expected = expected.to_str();
    format!("the certificate is not for {expected:?}; it has {has}")
}

/// The certificates of a PEM file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, FetchError> {
    let shown = path.display();
    let text = read_bounded(path)
        .map_err(|why| FetchError::new(FetchCode::CaFile, format!("cannot read {shown}: {why}")))?;
    read(&text, &shown.to_string())
}

/// Reads a regular file of limited size: a pipe could block its reader.
fn read_bounded(path: &Path) -> Result<Vec<u8>, String> {
    let regular = |of: std::io::Result<std::fs::Metadata>| match of {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err("it is no regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    regular(path.metadata())?;
    let file = File::open(path).map_err(|error| error.to_string())?;
    // The file may have been replaced meanwhile.
    regular(file.metadata())?;
    let mut text = Vec::new();
    let read = file.take(MAX_CA_BYTES + 1).read_to_end(&mut text);
    match read.map_err(|error| error.to_string())? as u64 > MAX_CA_BYTES {
        true => Err(format!(
            "it has more than {} MiB, which authorities do not take",
            MAX_CA_BYTES >> 20
        )),
        false => Ok(text),
    }
}

/// The certificates of PEM text.
pub(crate) fn read(text: &[u8], source: &str) -> Result<Vec<CertificateDer<'static>>, FetchError> {
    let wrong = |what: String| FetchError::new(FetchCode::CaFile, format!("{source} {what}"));
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| wrong(format!("is not PEM: {error}")))?;
    let mut roots = RootCertStore::empty();
    for (index, certificate) in found.iter().enumerate() {
        let added = roots.add(certificate.clone());
        let place = index + 1;
        added.map_err(|error| wrong(format!("has a bad certificate, number {place}: {error}")))?;
    }
    match found.is_empty() {
        true => Err(wrong(
            "has no certificate, such as -----BEGIN CERTIFICATE-----".into(),
        )),
        false => Ok(found),
    }
}
