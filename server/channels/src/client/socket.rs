//! Socket of a client: its address, TLS, and the opening of a WebSocket.

use super::ClientOptions;
use crate::codes::{BAD_SERVER, LOST};
use crate::wire::SOCKET_PATH;
use a99_runtime::AgentError;
use http::{HeaderValue, Uri, header};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// How long opening a connection may take.
const OPENING: Duration = Duration::from_secs(10);

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(super) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Where a server is.
pub(super) struct Place {
    uri: String,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
    authorization: HeaderValue,
}

fn bad(message: impl Into<String>) -> AgentError {
    AgentError::new(BAD_SERVER, message).fatal()
}

fn lost(error: impl std::fmt::Display) -> AgentError {
    AgentError::new(LOST, error.to_string())
}

impl Place {
    /// Parses an address.
    ///
    /// # Errors
    /// `channels.bad_server`.
    pub(super) fn parse(address: &str, options: &ClientOptions) -> Result<Place, AgentError> {
        let example = "write one as ws://127.0.0.1:7420 or wss://channels.example.com";
        let uri: Uri = address
            .parse()
            .map_err(|error| bad(format!("the address `{address}`: {error}; {example}")))?;
        let is_tls = match uri.scheme_str() {
            Some("ws" | "http") => false,
            Some("wss" | "https") => true,
            _ => {
                return Err(bad(format!(
                    "the address `{address}` has no scheme; {example}"
                )));
            }
        };
        let host = uri.host().unwrap_or_default().to_owned();
        if host.is_empty() {
            return Err(bad(format!(
                "the address `{address}` has no host; {example}"
            )));
        }
        if uri.query().is_some() {
            let message = "an address has no parameters: a token in it would be in logs";
            return Err(bad(message));
        }
        let bare = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let is_local = match bare.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback(),
            Err(_) => bare == "localhost",
        };
        if !is_tls && !is_local && !options.allows_plaintext {
            let message = format!(
                "the token would go to {host} without encryption; use wss://, or allow plaintext"
            );
            return Err(bad(message));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = match uri.path() {
            "" | "/" => SOCKET_PATH,
            path => path,
        };
        let scheme = if is_tls { "wss" } else { "ws" };
        let bearer = format!("Bearer {}", options.token);
        let mut authorization = HeaderValue::try_from(bearer)
            .map_err(|_| bad("the token has characters that no token has"))?;
        authorization.set_sensitive(true);
        Ok(Place {
            uri: format!("{scheme}://{host}:{port}{path}"),
            host: bare,
            port,
            tls: is_tls
                .then(|| connector(&options.authorities))
                .transpose()?,
            authorization,
        })
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// `channels.lost`; final ones if the server refuses the token or is no channel server.
    pub(super) async fn open(&self) -> Result<Socket, AgentError> {
        match tokio::time::timeout(OPENING, self.opened()).await {
            Ok(opened) => opened,
            Err(_) => Err(lost(format!("no connection came about within {OPENING:?}"))),
        }
    }

    async fn opened(&self) -> Result<Socket, AgentError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some(connector) => {
                let name = ServerName::try_from(self.host.clone()).map_err(bad_name)?;
                Box::new(connector.connect(name, stream).await.map_err(lost)?)
            }
        };
        let mut request = self.uri.as_str().into_client_request().map_err(refused)?;
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, self.authorization.clone());
        let most = a99_frame::MAX_FRAME_BYTES;
        let config = WebSocketConfig::default()
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        let opened = client_async_with_config(request, stream, Some(config)).await;
        Ok(opened.map_err(refused)?.0)
    }
}

fn bad_name(error: impl std::fmt::Display) -> AgentError {
    bad(error.to_string())
}

/// Why a server opens no socket: its own error, if it says one.
fn refused(error: tokio_tungstenite::tungstenite::Error) -> AgentError {
    use tokio_tungstenite::tungstenite::Error;
    match error {
        Error::Http(response) => {
            let status = response.status();
            let body = response.body().as_deref().unwrap_or_default();
            let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
            let text = |name: &str| body["error"][name].as_str().map(str::to_owned);
            let code = text("code").unwrap_or_else(|| match status.is_server_error() {
                true => LOST.to_owned(),
                false => BAD_SERVER.to_owned(),
            });
            let message = text("message").unwrap_or_else(|| format!("the server answers {status}"));
            let error = AgentError::new(code, message);
            match status.is_server_error() || status.as_u16() == 429 {
                true => error,
                false => error.fatal(),
            }
        }
        Error::Url(_) | Error::HttpFormat(_) => bad(error.to_string()),
        error => lost(error),
    }
}

/// TLS with the system's authorities, and further ones.
fn connector(further: &[u8]) -> Result<TlsConnector, AgentError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in CertificateDer::pem_slice_iter(further) {
        let certificate = certificate.map_err(|error| bad(format!("the authorities: {error}")))?;
        roots.add(certificate).map_err(bad_name)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(bad_name)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
