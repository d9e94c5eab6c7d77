//! Connecting: only to addresses that the policy allows (security N02 to N04).

use crate::builder::FetchLimits;
use crate::error::{FetchCode, FetchError};
use crate::network::{self, BoxStream, Dial, Resolve};
use crate::target::{Host, Origin, Scheme};
use crate::tls::{self, Tls};
use crate::wire::{Bounds, Link};
use a99_egress::{Denial, Destination, Policy};
use http::Uri;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower_service::Service;

/// Maximum addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;
/// Maximum addresses of a name that are checked: a DNS answer has room for thousands, and each
/// check takes some system calls.
const MAX_JUDGED: usize = 64;
/// Maximum concurrent lookups of a tenant: each takes a thread, which continues after its
/// caller has given up.
pub(crate) const MAX_LOOKUPS: usize = 16;
/// How long a lookup that does not end counts.
const LOOKUP: Duration = Duration::from_secs(60);

/// The parts of connections that all tenants of a host share.
pub(crate) struct Network {
    pub(crate) limits: FetchLimits,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) dialer: Arc<dyn Dial>,
    pub(crate) tls: Arc<Tls>,
}

/// Connects under one policy.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) policy: Policy,
    pub(crate) network: Arc<Network>,
    pub(crate) bounds: Bounds,
    pub(crate) lookups: Arc<Semaphore>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Link>;
    type Error = FetchError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Link>, FetchError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let origin = Origin::of(&uri)?;
            let limit = this.network.limits.connect_timeout;
            match timeout(limit, this.connect(&origin)).await {
                Ok(connected) => connected.map(TokioIo::new),
                Err(_) => Err(FetchError::new(
                    FetchCode::Timeout,
                    format!("Fetch timeout: no connection to {origin} within {limit:?}"),
                )),
            }
        })
    }
}

impl Connector {
    async fn connect(&self, origin: &Origin) -> Result<Link, FetchError> {
        let stream = self.dial(origin).await?;
        if origin.scheme == Scheme::Http {
            return Ok(Link::plain(stream, &self.bounds));
        }
        let failed = |error: String| {
            let text = format!("TLS with {origin} failed: {error}");
            FetchError::new(FetchCode::Tls, text)
        };
        let connector = self.network.tls.connector().await?;
        let name = tls::server_name(&origin.host).map_err(|error| failed(error.to_string()))?;
        let stream = connector.connect(name, stream).await;
        let stream = stream.map_err(|error| failed(tls::reason(&error)))?;
        Ok(Link::tls(stream, &self.bounds))
    }

    /// Connects to the first allowed address that answers.
    async fn dial(&self, origin: &Origin) -> Result<BoxStream, FetchError> {
        let allowed = self.addresses(origin).await?;
        // An unresponsive address leaves time for the others.
        let share = self.network.limits.connect_timeout / allowed.len().max(1) as u32;
        let mut last = "no address answers".to_owned();
        for address in allowed {
            let to = SocketAddr::new(address, origin.port);
            match timeout(share, self.network.dialer.dial(to)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = "no answer in time".to_owned(),
            }
        }
        let text = format!("no connection to {origin}: {last}");
        Err(FetchError::new(FetchCode::Connect, text))
    }

    /// The allowed addresses of a host, at least one.
    async fn addresses(&self, origin: &Origin) -> Result<Vec<IpAddr>, FetchError> {
        let to = origin.host.destination();
        check(&self.policy, origin)?;
        let found = match &origin.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.look_up(name, origin).await?,
        };
        let judge = |address: &IpAddr| {
            let own = network::is_own(*address);
            let judged = self.policy.check_connection(to, *address, origin.port, own);
            judged.map_err(|denial| denied(origin, to, denial))
        };
        let mut denial = None;
        let mut allowed = Vec::new();
        for address in found.into_iter().take(MAX_JUDGED) {
            if allowed.len() == MAX_ADDRESSES {
                break;
            }
            match judge(&address) {
                Ok(()) => allowed.push(address),
                Err(error) => denial = denial.or(Some(error)),
            }
        }
        match (allowed.is_empty(), denial) {
            (false, _) => Ok(allowed),
            (true, Some(error)) => Err(error),
            (true, None) => Err(no_address(origin)),
        }
    }

    async fn look_up(&self, name: &str, origin: &Origin) -> Result<Vec<IpAddr>, FetchError> {
        if let Some(found) = network::loopback(name) {
            return Ok(found);
        }
        // The semaphore is never closed, the only cause of an error.
        let turn = Arc::clone(&self.lookups).acquire_owned().await.ok();
        let (resolver, name) = (Arc::clone(&self.network.resolver), name.to_owned());
        let asking = tokio::spawn(async move {
            // The next one waits even if the fetch is dropped meanwhile.
            let _turn = turn;
            timeout(LOOKUP, resolver.resolve(&name)).await
        });
        match asking.await {
            Ok(Ok(Ok(found))) => Ok(found),
            _ => Err(no_address(origin)),
        }
    }
}

/// Checks an origin against the policy before anything is sent.
pub(crate) fn check(policy: &Policy, origin: &Origin) -> Result<(), FetchError> {
    let to = origin.host.destination();
    let checked = policy.check_destination(to, origin.port);
    checked.map_err(|denial| denied(origin, to, denial))
}

fn denied(origin: &Origin, to: Destination<'_>, denial: Denial) -> FetchError {
    let rule = denial.has_rule(to).then(|| to.rule(origin.port));
    let text = format!("Fetch denied: {origin}: {denial}");
    FetchError::new(FetchCode::Denied, text).allowed_by(rule)
}

fn no_address(origin: &Origin) -> FetchError {
    let text = format!("the name of {origin} has no address");
    FetchError::new(FetchCode::Resolve, text)
}
