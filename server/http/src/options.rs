//! Options of a listener.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Where and how to listen. By default on a free port of the loopback, without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// The address; the system chooses a port for port 0.
    pub address: SocketAddr,
    /// The certificate and its key. An address beyond the loopback needs them, unless a proxy
    /// encrypts.
    pub tls: Option<TlsFiles>,
    /// Whether a proxy in front of this listener encrypts what leaves the machine or its network.
    pub behind_proxy: bool,
    /// Further names of this listener, with a port or, for any port, without.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this listener, as `https://app.example.com`.
    pub origins: Vec<String>,
    /// What a client may use.
    pub limits: Limits,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            behind_proxy: false,
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Files of TLS, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those between it and an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Limits of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum open connections, those of WebSockets included.
    pub connections: usize,
    /// Maximum open connections of one address. Behind a proxy all have that of the proxy.
    pub per_address: Option<usize>,
    /// Time for the handshake of TLS, and for the head of a request from its first byte; for the
    /// first head from the start of the connection.
    pub header_timeout: Duration,
    /// Time that a request's body may take altogether.
    pub body_timeout: Duration,
    /// Maximum bytes of a request's body.
    pub max_body_bytes: usize,
    /// Maximum bytes of a request's head; at least 8 KiB are allowed.
    pub max_header_bytes: usize,
    /// How long a connection may stay open between requests, and how long a client may take no
    /// byte of what is written to it. The first does not apply to upgraded connections
    /// (WebSockets).
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 20_000,
            per_address: None,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            max_body_bytes: 16 << 20,
            max_header_bytes: 32 << 10,
            idle: Duration::from_secs(75),
        }
    }
}
