//! TLS: rustls with the provider of ring, and certificate verification. No process-wide
//! provider is installed.

use crate::error::{PostgresCode, PostgresError};
use crate::meter::Meter;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Config, Socket};
use tokio_rustls::TlsConnector;

/// Largest file of certificate authorities in bytes: some twenty times a system's file.
const MAX_CA_BYTES: u64 = 4 << 20;

/// Verification of the server's certificate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Disable,
    Prefer,
    Require,
    /// An authority signed it.
    Authority,
    /// An authority signed it, for the server's name.
    Full,
}

/// Source of trusted authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    System,
    File(PathBuf),
}

/// SSLRequest message: its length, and a code in the field of the protocol version.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// TLS settings of connections.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    config: Option<Arc<ClientConfig>>,
    /// Negotiation that runs here, before the client's own code, so that the meter sees all
    /// bytes.
    negotiation: Option<(SslMode, SslNegotiation)>,
}

impl Tls {
    pub(crate) fn new(verify: Verify, trust: &Trust) -> Result<Tls, PostgresError> {
        if verify == Verify::Disable {
            return Ok(Tls {
                config: None,
                negotiation: None,
            });
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match verify {
            Verify::Disable | Verify::Prefer | Verify::Require => {
                Arc::new(Anyone(Arc::clone(&provider)))
            }
            Verify::Authority => Arc::new(AnyName(web_pki(trust, &provider)?)),
            Verify::Full => web_pki(trust, &provider)?,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?;
        let mut config = config
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        // Servers with direct TLS require ALPN.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls {
            config: Some(Arc::new(config)),
            negotiation: None,
        })
    }

    /// Makes the client pass each connection to this connector, encrypted or not, so that its
    /// bytes are metered. The client does so only for direct TLS to a named host; Unix sockets
    /// are not metered.
    pub(crate) fn meter(mut self, config: &mut Config) -> Tls {
        let is_tcp = |host: &Host| matches!(host, Host::Tcp(_));
        if !config.get_hosts().iter().all(is_tcp) {
            return self;
        }
        if config.get_hosts().is_empty() {
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        self.negotiation = Some((config.get_ssl_mode(), config.get_ssl_negotiation()));
        config.ssl_mode(SslMode::Require);
        config.ssl_negotiation(SslNegotiation::Direct);
        self
    }
}

/// Error of making a connection.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The connection broke before TLS began.
    Broken(io::Error),
    /// TLS was refused or failed.
    Tls(io::Error),
}

impl std::fmt::Display for DialError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (DialError::Broken(error) | DialError::Tls(error)) = self;
        error.fmt(f)
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let (DialError::Broken(error) | DialError::Tls(error)) = self;
        Some(error)
    }
}

fn failed(error: impl std::fmt::Display) -> PostgresError {
    PostgresError::new(PostgresCode::Tls, format!("TLS: {error}"))
}

fn web_pki(
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, PostgresError> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::System => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Trust::File(path) => read_authorities(path, &mut roots).map_err(|why| {
            let message = format!("the file of authorities {}: {why}", path.display());
            PostgresError::new(PostgresCode::Config, message)
        })?,
    }
    if roots.is_empty() {
        return Err(failed(
            "there are no certificate authorities to trust on this system: install them \
             (ca-certificates)",
        ));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(failed)
}

/// Adds the certificates of a PEM file, all of which must be valid.
fn read_authorities(path: &Path, roots: &mut RootCertStore) -> Result<(), String> {
    let found = path.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > MAX_CA_BYTES {
        return Err("it is no file of certificates".to_owned());
    }
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_CA_BYTES).read_to_end(&mut text))
        .map_err(|error| error.to_string())?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| format!("it is not PEM: {error}"))?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("it has no certificate, such as -----BEGIN CERTIFICATE-----".to_owned()),
        false => Ok(()),
    }
}

/// Accepts any certificate, for `require` without `sslrootcert`.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts a certificate of an authority for any name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        match self
            .0
            .verify_server_cert(certificate, between, name, ocsp, now)
        {
            // The verifier checks the name last.
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Connector of one server.
pub(crate) struct Connector {
    config: Option<Arc<ClientConfig>>,
    name: Option<ServerName<'static>>,
    negotiation: Option<(SslMode, SslNegotiation)>,
}

impl Connector {
    /// Negotiates encryption with the server, if that is still open; true for TLS.
    async fn negotiate(&self, socket: &mut Socket) -> Result<bool, DialError> {
        let tls = |text: &str| Err(DialError::Tls(io::Error::other(text)));
        match self.negotiation {
            None | Some((SslMode::Require, SslNegotiation::Direct)) => return Ok(true),
            Some((SslMode::Disable, _)) => return Ok(false),
            Some((_, SslNegotiation::Direct)) => {
                return tls("sslnegotiation=direct needs sslmode=require or a stricter one");
            }
            Some(_) => {}
        }
        socket
            .write_all(&SSL_REQUEST)
            .await
            .map_err(DialError::Broken)?;
        let answer = socket.read_u8().await.map_err(DialError::Broken)?;
        match (answer, self.negotiation) {
            (b'S', _) => Ok(true),
            (_, Some((SslMode::Prefer, _))) => Ok(false),
            _ => tls("server does not support TLS"),
        }
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Metered;
    type TlsConnect = Connector;
    type Error = DialError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connector, DialError> {
        Ok(Connector {
            config: self.config.clone(),
            name: ServerName::try_from(host.to_owned()).ok(),
            negotiation: self.negotiation,
        })
    }
}

impl TlsConnect<Socket> for Connector {
    type Stream = Metered;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Metered, DialError>> + Send>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        Box::pin(async move {
            let way = match self.negotiate(&mut socket).await? {
                false => Way::Plain(socket),
                true => {
                    let (Some(config), Some(name)) = (self.config, self.name) else {
                        let text = "the server has no name that TLS knows";
                        return Err(DialError::Tls(io::Error::other(text)));
                    };
                    let stream = TlsConnector::from(config).connect(name, socket).await;
                    Way::Encrypted(Box::new(stream.map_err(DialError::Tls)?))
                }
            };
            Ok(Metered {
                way,
                meter: Meter::default(),
            })
        })
    }
}

/// A connection whose incoming messages are limited.
pub(crate) struct Metered {
    way: Way,
    meter: Meter,
}

enum Way {
    Plain(Socket),
    Encrypted(Box<tokio_rustls::client::TlsStream<Socket>>),
}

impl TlsStream for Metered {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = match &mut self.way {
            Way::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Way::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        match read {
            Poll::Ready(Ok(())) => Poll::Ready(self.meter.take(&buffer.filled()[before..])),
            other => other,
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.way {
            Way::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Way::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Way::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Way::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Way::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Way::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
