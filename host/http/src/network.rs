//! Network below HTTP: replaceable name lookup and dialing, and detection of the host's
//! addresses.

use a99_capabilities::BoxFuture;
use a99_egress::HOST_NAME;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection of any kind.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection that a dialer made.
pub type BoxStream = Box<dyn Stream>;

/// Looks up names. It gets only names that the policy allows, and its answers are checked. A
/// lookup may continue for up to a minute after its fetch has ended, and counts as one of a
/// tenant's sixteen concurrent lookups.
pub trait Resolve: Send + Sync {
    /// The addresses of a name, best first.
    ///
    /// # Errors
    /// If there are none.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Makes connections. It gets only addresses that the policy allows.
pub trait Dial: Send + Sync {
    /// Connects to exactly this address.
    ///
    /// # Errors
    /// If the connection fails.
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

/// The system's TCP.
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

/// The addresses of names that mean the loopback of this host and bypass the resolver (RFC 6761
/// section 6.3).
pub(crate) fn loopback(name: &str) -> Option<Vec<IpAddr>> {
    let own = name == "localhost" || name == HOST_NAME;
    own.then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
}

/// Whether an address belongs to this host: the system lets a socket bind it, or uses it as the
/// source of traffic to it. No packet is sent.
pub(crate) fn is_own(address: IpAddr) -> bool {
    // An address reserved for documentation: a system that lets a socket bind it allows any.
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
