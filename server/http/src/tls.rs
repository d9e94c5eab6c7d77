//! TLS of a listener: rustls with the ring provider. No process-wide provider is installed.

use crate::error::{ServerCode, ServerError};
use crate::options::TlsFiles;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Maximum bytes of a PEM file: far more than a chain of certificates takes.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Reads certificate and key.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServerError> {
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(&read(&files.certificate)?).collect();
    let chain =
        chain.map_err(|error| refused(&files.certificate, format!("is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(refused(&files.certificate, "has no certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| refused(&files.key, format!("has no private key in PEM: {error}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|error| {
        refused(
            &files.certificate,
            format!("cannot be used with its key: {error}"),
        )
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Reads a regular file of limited size: a pipe could block its reader.
fn read(path: &Path) -> Result<Vec<u8>, ServerError> {
    let cannot = |error| refused(path, format!("cannot be read: {error}"));
    if !path.metadata().map_err(cannot)?.is_file() {
        return Err(refused(path, "is no regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    let read = file.take(MAX_PEM_BYTES + 1).read_to_end(&mut bytes);
    match read.map_err(cannot)? as u64 > MAX_PEM_BYTES {
        true => Err(refused(path, "has more than 1 MiB")),
        false => Ok(bytes),
    }
}

fn refused(path: &Path, why: impl std::fmt::Display) -> ServerError {
    ServerError::new(
        ServerCode::BadCertificate,
        format!("{} {why}", path.display()),
        "name a chain of certificates and the private key of its first one, both as PEM",
    )
}
