//! Network below HTTP: looking up names and dialing addresses, each replaceable,
//! and which addresses are the host's own.

use a99_capabilities::BoxFuture;
use a99_egress::HOST_NAME;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection, of whatever kind.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection that a dialer made.
pub type BoxStream = Box<dyn Stream>;

/// Looks up names. It is asked about names that the policy allows, and what it
/// answers is judged. A lookup goes on for up to a minute when its fetch has ended, and
/// is one of the sixteen that a tenant has at once.
pub trait Resolve: Send + Sync {
    /// The addresses of a name, best first.
    ///
    /// # Errors
    /// If there are none.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Makes connections. It is asked about addresses that the policy allows.
pub trait Dial: Send + Sync {
    /// A connection to just this address.
    ///
    /// # Errors
    /// If there is none.
    fn dial(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<BoxStream>>;
}

/// The system's resolver.
#[derive(Copy, Clone, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// TCP of the system.
#[derive(Copy, Clone, Debug, Default)]
pub struct SystemDialer;

impl Dial for SystemDialer {
    fn dial(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<BoxStream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxStream)
        })
    }
}

/// The addresses of names that mean the loopback of this host, which no resolver
/// is asked about (RFC 6761 section 6.3).
pub(crate) fn loopback(name: &str) -> Option<Vec<IpAddr>> {
    let own = name == "localhost" || name == HOST_NAME;
    own.then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
}

/// Whether an address is one of this host: the system lets a socket have it, or
/// takes it for its own side of what goes there. Nothing is sent.
pub(crate) fn is_own(address: IpAddr) -> bool {
    // Of documentation; where a socket may have it, it may have any.
    let (any, nobodys): (IpAddr, IpAddr) = match address {
        IpAddr::V4(_) => (
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        ),
        IpAddr::V6(_) => (
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    };
    let binds = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    let own_side = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        socket.local_addr()
    };
    own_side().is_ok_and(|own: SocketAddr| own.ip() == address)
        || (binds(address) && !binds(nobodys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_own_addresses_are_known() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(is_own(Ipv4Addr::new(127, 0, 0, 2).into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
        // The address that faces the network, if there is one.
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        if socket.connect("192.0.2.1:9").is_ok() {
            let own = socket.local_addr().expect("an address").ip();
            assert!(is_own(own), "{own}");
        }
    }
}
