//! TLS: rustls with the provider of ring, and whom it trusts. Nothing is
//! installed for the whole process.

use crate::error::{FetchCode, FetchError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio_rustls::TlsConnector;

/// Whom connections trust, and how they are set up.
#[derive(Debug)]
pub(crate) struct Tls {
    /// These alone, instead of the system's.
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
            // Some hundred files.
            let tls = Arc::clone(self);
            let reading = tokio::task::spawn_blocking(move || {
                tls.config.get_or_init(|| tls.set_up());
            });
            // The runtime is ending.
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

/// The certificates of a PEM file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, FetchError> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| {
        FetchError::new(FetchCode::CaFile, format!("cannot read {shown}: {error}"))
    })?;
    read(&text, &shown.to_string())
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
