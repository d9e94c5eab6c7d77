//! Client: requests under a policy. It follows redirects itself.

use crate::answer::{self, MAX_FIELDS, check_head, head_too_large};
use crate::bodies::Bodies;
use crate::builder::{Builder, FetchLimits};
use crate::connect::{self, Connector, MAX_LOOKUPS, Network};
use crate::credential::Credential;
use crate::decode::ACCEPTED;
use crate::error::{FetchCode, FetchError, causes};
use crate::frames::FLOOD;
use crate::options::{self, Request};
use crate::quota::Quota;
use crate::redirect::{self, MAX_REDIRECTS};
use crate::target::{Origin, Scheme, Target};
use crate::wire::{Active, Activity, Answering, Bounds, Wire, WireFull};
use a99_capabilities::{CapabilityError, Fetch, Reply};
use a99_core::value::Value;
use a99_egress::{Destination, Policy};
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue, USER_AGENT};
use http::{Response, Version};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// How long an idle connection stays open.
const IDLE: Duration = Duration::from_secs(30);
/// Maximum idle connections of an origin.
const MAX_IDLE: usize = 4;
/// The smallest buffer that hyper accepts.
const MIN_BUFFER: usize = 8192;

/// HTTP for one tenant under one policy; see the crate.
///
/// Each value has separate connections, quotas and policy. A host that serves several tenants
/// takes one for each, by [`HttpFetch::for_tenant`].
pub struct HttpFetch {
    network: Arc<Network>,
    schemes: Vec<Scheme>,
    pool: Mutex<Arc<Pool>>,
    quota: Quota,
    bodies: Bodies,
    lookups: Arc<Semaphore>,
    credentials: Vec<Credential>,
}

/// The connections of a policy.
pub(crate) struct Pool {
    policy: Policy,
    client: Client<Connector, Full<Bytes>>,
    activity: Arc<Activity>,
    pub(crate) revoked: watch::Sender<bool>,
}

/// A received head, with the guards of its request.
pub(crate) type Answered = (Response<Incoming>, UnderWay);

/// Guards of a request whose answer is still being read.
pub(crate) type UnderWay = (Option<Answering>, Active);

impl Pool {
    fn new(policy: Policy, network: &Arc<Network>, lookups: &Arc<Semaphore>) -> Pool {
        let limit = network.limits.max_header_bytes;
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .http1_max_headers(MAX_FIELDS)
            .http1_max_buf_size(limit.max(MIN_BUFFER))
            .http2_max_header_list_size(u32::try_from(limit).unwrap_or(u32::MAX));
        let activity: Arc<Activity> = Arc::default();
        let connector = Connector {
            policy: policy.clone(),
            network: Arc::clone(network),
            bounds: Bounds {
                max_header_bytes: limit,
                max_body_bytes: network.limits.max_body_bytes,
                activity: Arc::clone(&activity),
            },
            lookups: Arc::clone(lookups),
        };
        Pool {
            policy,
            client: builder.build(connector),
            activity,
            revoked: watch::Sender::new(false),
        }
    }
}

impl HttpFetch {
    pub(crate) fn new(policy: Policy, schemes: Vec<Scheme>, network: Arc<Network>) -> HttpFetch {
        let lookups = Arc::new(Semaphore::new(MAX_LOOKUPS));
        HttpFetch {
            pool: Mutex::new(Arc::new(Pool::new(policy, &network, &lookups))),
            lookups,
            schemes,
            quota: Quota::default(),
            bodies: Bodies::new(network.limits.max_held_bytes),
            network,
            credentials: Vec::new(),
        }
    }

    pub(crate) fn with_credentials(self, credentials: Vec<Credential>) -> HttpFetch {
        HttpFetch {
            credentials,
            ..self
        }
    }

    /// A builder; the default policy allows nothing.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A fetch for another tenant: it shares network, authorities and limits, has separate
    /// connections, quotas and policy, and lacks this tenant's credentials.
    #[must_use]
    pub fn for_tenant(&self, policy: Policy) -> HttpFetch {
        HttpFetch::new(policy, self.schemes.clone(), Arc::clone(&self.network))
    }

    /// The current policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.pool().policy.clone()
    }

    /// Replaces the policy. Connections under the previous one are closed and its requests end
    /// with [`FetchCode::Revoked`]; used quota stays used.
    pub fn set_policy(&self, policy: Policy) {
        let next = Arc::new(Pool::new(policy, &self.network, &self.lookups));
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.policy != next.policy {
            let before = std::mem::replace(&mut *pool, next);
            before.revoked.send_replace(true);
        }
    }

    pub(crate) fn limits(&self) -> &FetchLimits {
        &self.network.limits
    }

    pub(crate) fn pool(&self) -> Arc<Pool> {
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&pool)
    }

    /// Fetches like [`Fetch::fetch`], with a typed error.
    ///
    /// # Errors
    /// Each of [`FetchCode`].
    pub async fn request(&self, url: &Value, options: &Value) -> Result<Value, FetchError> {
        needs_runtime()?;
        let limits = &self.network.limits;
        let target = Target::parse(options::url(url)?)?;
        let request = Request::read(options, limits.max_body_bytes)?;
        let origin = target.origin.clone();
        let pool = self.pool();
        let limit = limits.timeout;
        let mut revoked = pool.revoked.subscribe();
        // The pool, which is held here, owns the sender.
        let mut revoked = pin!(revoked.wait_for(|revoked| *revoked));
        let mut late = pin!(tokio::time::sleep(limit));
        let mut answer = pin!(self.answer(&pool, target, request));
        poll_fn(|cx| {
            if revoked.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(revoked_by_policy(&origin)));
            }
            if late.as_mut().poll(cx).is_ready() {
                let text = format!("Fetch timeout: {origin} did not answer within {limit:?}");
                return Poll::Ready(Err(FetchError::new(FetchCode::Timeout, text)));
            }
            answer.as_mut().poll(cx)
        })
        .await
    }

    /// Sends a request, follows its redirects, and reads the answer.
    async fn answer(
        &self,
        pool: &Pool,
        mut target: Target,
        mut request: Request,
    ) -> Result<Value, FetchError> {
        let sent = self.follow(pool, &mut target, &mut request, true).await?;
        let (response, _under_way) = sent;
        let (wanted, most) = (request.response_type, self.network.limits.max_body_bytes);
        let method = &request.method;
        answer::read(response, &target, method, wanted, most, &self.bodies).await
    }

    /// Sends a request, and follows its redirects, which are an error unless it `follows`
    /// them. Target and request are then those that were answered.
    pub(crate) async fn follow(
        &self,
        pool: &Pool,
        target: &mut Target,
        request: &mut Request,
        follows: bool,
    ) -> Result<Answered, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            let (response, under_way) = self.send(pool, target, request).await?;
            let Some(location) = redirect::location(response.status(), response.headers())? else {
                return Ok((response, under_way));
            };
            if !follows {
                let text = format!("{} redirects, which is not followed here", target.origin);
                return Err(FetchError::new(FetchCode::Redirect, text));
            }
            let next = target.join(location)?;
            redirect::follow(request, response.status(), target, &next)?;
            *target = next;
        }
        let text = format!(
            "more than {MAX_REDIRECTS} redirects, the last one to {}",
            target.origin
        );
        Err(FetchError::new(FetchCode::Redirect, text))
    }

    pub(crate) async fn send(
        &self,
        pool: &Pool,
        target: &Target,
        request: &Request,
    ) -> Result<Answered, FetchError> {
        let (limits, origin) = (&self.network.limits, &target.origin);
        if !self.schemes.contains(&origin.scheme) {
            let text = format!("Fetch denied: {origin}: the grant has another scheme");
            return Err(FetchError::new(FetchCode::Scheme, text));
        }
        connect::check(&pool.policy, origin)?;
        self.quota
            .take(&origin.host, limits.max_requests, limits.max_hosts)?;
        let mut sent = http::Request::new(Full::new(request.body.clone().unwrap_or_default()));
        *sent.method_mut() = request.method.clone();
        *sent.uri_mut() = target.uri()?;
        let headers = sent.headers_mut();
        headers.clone_from(&request.headers);
        for (name, value) in [
            (ACCEPT, "*/*"),
            (ACCEPT_ENCODING, ACCEPTED),
            (USER_AGENT, concat!("agent99/", env!("CARGO_PKG_VERSION"))),
        ] {
            headers
                .entry(name)
                .or_insert(HeaderValue::from_static(value));
        }
        // The host does not vouch for a request that another origin's server directed here
        // (D58).
        for credential in self.credentials.iter().filter(|_| !request.is_cross_origin) {
            credential.put(origin, headers);
        }
        let active = pool.activity.begin();
        let response = pool.client.request(sent).await;
        let response =
            response.map_err(|error| failure(&error, origin, limits.max_header_bytes))?;
        check_head(&response, origin, limits.max_header_bytes)?;
        let wire = response.extensions().get::<Wire>();
        let answering = wire.map(|wire| wire.head_came(limits.max_body_bytes));
        Ok((response, (answering, active)))
    }
}

impl Fetch for HttpFetch {
    fn fetch(&self, url: Value, options: Value) -> Reply<'_> {
        Box::pin(async move {
            let answer = self.request(&url, &options).await;
            answer.map_err(|error| CapabilityError::new(error.to_string()))
        })
    }

    /// Names under a wildcard must look public: they are resolved elsewhere, by the party that
    /// fetches.
    fn allows(&self, url: &str) -> bool {
        /// Domains of private networks.
        const INNER: [&str; 5] = [".local", ".localhost", ".internal", ".lan", ".home.arpa"];
        let Ok(target) = Target::parse(url) else {
            return false;
        };
        let (origin, policy) = (&target.origin, self.policy());
        let to = origin.host.destination();
        if !self.schemes.contains(&origin.scheme)
            || policy.check_destination(to, origin.port).is_err()
        {
            return false;
        }
        let Destination::Name(name) = to else {
            return true;
        };
        let is_inner = !name.contains('.') || INNER.iter().any(|inner| name.ends_with(inner));
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        !is_inner
            || policy
                .check_connection(to, loopback, origin.port, false)
                .is_ok()
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetch")
            .field("policy", &self.policy().to_string())
            .field("limits", &self.network.limits)
            .finish_non_exhaustive()
    }
}

/// Fails without a tokio runtime.
pub(crate) fn needs_runtime() -> Result<(), FetchError> {
    match tokio::runtime::Handle::try_current() {
        Ok(_) => Ok(()),
        Err(_) => {
            let text = "a fetch runs within a tokio runtime, and there is none";
            Err(FetchError::new(FetchCode::Runtime, text))
        }
    }
}

pub(crate) fn revoked_by_policy(origin: &Origin) -> FetchError {
    let text = format!("Fetch denied: {origin}: the network policy was changed");
    FetchError::new(FetchCode::Revoked, text)
}

/// Maps an error before the answer's head.
fn failure(error: &(dyn Error + 'static), origin: &Origin, max_header_bytes: usize) -> FetchError {
    if let Some(own) = FetchError::within(error) {
        return own.clone();
    }
    if is_flood(error) {
        return flood(origin);
    }
    let too_large = causes(error).any(|cause| {
        let http = cause.downcast_ref::<hyper::Error>();
        // hyper reports this kind to servers only; a test pins the text.
        let head = |e: &hyper::Error| e.is_parse() && e.to_string().contains("too large");
        cause.is::<WireFull>() || http.is_some_and(head)
    });
    match too_large {
        true => head_too_large(max_header_bytes),
        false => lost(error, origin),
    }
}

/// Checks that a body is complete after its last frame.
///
/// Over HTTP/2 hyper reports a body that a server aborted with `NO_ERROR`, by a reset or a
/// GOAWAY, as ended: only the stream's `END_STREAM` flag proves the end.
pub(crate) fn check_end(
    body: &Incoming,
    version: Version,
    origin: &Origin,
) -> Result<(), FetchError> {
    let whole = match version {
        Version::HTTP_2 => body.is_end_stream(),
        _ => body.size_hint().lower() == 0,
    };
    match whole {
        true => Ok(()),
        false => Err(closed(origin)),
    }
}

fn closed(origin: &Origin) -> FetchError {
    let text = format!("the connection with {origin} ended before the answer did");
    FetchError::new(FetchCode::Closed, text)
}

/// Whether the server sent too many control frames. h2 keeps only the text of an I/O error; a
/// test pins it.
fn is_flood(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.to_string() == FLOOD)
}

fn flood(origin: &Origin) -> FetchError {
    let text = format!("{origin} sends {FLOOD}");
    FetchError::new(FetchCode::Protocol, text)
}

/// Maps an error of an incomplete answer.
pub(crate) fn lost(error: &(dyn Error + 'static), origin: &Origin) -> FetchError {
    if is_flood(error) {
        return flood(origin);
    }
    if causes(error).any(|cause| cause.is::<WireFull>()) {
        let text = format!("{origin} sends more than an answer may have");
        return FetchError::new(FetchCode::BodyTooLarge, text);
    }
    let ended = causes(error).any(|cause| {
        let http = cause.downcast_ref::<hyper::Error>();
        cause.is::<std::io::Error>()
            || http.is_some_and(|e| e.is_incomplete_message() || e.is_closed() || e.is_canceled())
    });
    let invalid = causes(error).any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|e| {
            use std::io::ErrorKind::{InvalidData, InvalidInput};
            matches!(e.kind(), InvalidData | InvalidInput)
        })
    });
    if ended && !invalid {
        return closed(origin);
    }
    let why = causes(error)
        .last()
        .map(ToString::to_string)
        .unwrap_or_default();
    let text = format!("what {origin} answered is not HTTP: {why}");
    FetchError::new(FetchCode::Protocol, text)
}
