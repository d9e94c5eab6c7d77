//! Metrics of a channel server, and the route that gives them with those of its host.

use super::error::Refusal;
use super::{ChannelServer, rest};
use crate::wire::methods;
use a99_runtime::metrics::{CONTENT_TYPE, Counter, Exposition, Family, Histogram, Kind, OTHER};
use a99_server::Action;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The metrics of a channel server.
pub const FAMILIES: [Family; 9] = [
    CONNECTIONS,
    OPENED,
    SUBSCRIPTIONS,
    PUBLISHED,
    DELIVERED,
    BYTES,
    REFUSED,
    SLOW,
    REQUESTS,
];

const CONNECTIONS: Family = Family::new(
    "a99_connections",
    Kind::Gauge,
    &[],
    "Sockets that are open.",
);
const OPENED: Family = Family::new(
    "a99_connections_opened_total",
    Kind::Counter,
    &[],
    "Sockets that were opened.",
);
const SUBSCRIPTIONS: Family = Family::new(
    "a99_subscriptions",
    Kind::Gauge,
    &[],
    "Subscriptions of sockets and of event streams.",
);
const PUBLISHED: Family = Family::new(
    "a99_events_published_total",
    Kind::Counter,
    &[],
    "Events that clients published or appended.",
);
const DELIVERED: Family = Family::new(
    "a99_events_delivered_total",
    Kind::Counter,
    &[],
    "Events that were queued for subscriptions.",
);
const BYTES: Family = Family::new(
    "a99_socket_bytes_total",
    Kind::Counter,
    &["direction"],
    "Bytes of the messages of sockets.",
);
const REFUSED: Family = Family::new(
    "a99_requests_refused_total",
    Kind::Counter,
    &["code"],
    "Requests that were answered with an error.",
);
const SLOW: Family = Family::new(
    "a99_slow_readers_total",
    Kind::Counter,
    &[],
    "Connections that ended because the client took no bytes for too long.",
);
const REQUESTS: Family = Family::new(
    "a99_request_duration_seconds",
    Kind::Histogram,
    &["transport", "request"],
    "Requests until their answer is queued; of an event stream until its head.",
);

/// Requests of sockets.
const METHODS: [&str; 20] = [
    methods::HELLO,
    methods::JOIN,
    methods::UPDATE_METADATA,
    methods::LEAVE,
    methods::SUBSCRIBE,
    methods::UNSUBSCRIBE,
    methods::PUBLISH,
    methods::APPEND,
    methods::READ,
    methods::HISTORY,
    methods::FIND,
    methods::HEAD,
    methods::CHANNELS,
    methods::ROSTER,
    methods::CONFIG,
    methods::CONFIGURE,
    methods::CALL,
    methods::AGENTS,
    methods::INVITE,
    methods::REMOVE,
];

/// Codes that have a series. The methods of agents choose further ones.
const CODES: [&str; 22] = [
    "channels.bad_request",
    "channels.bad_frame",
    "channels.protocol",
    "channels.too_many",
    "channels.not_joined",
    "channels.event_too_large",
    "channels.beyond_head",
    "server.unauthorized",
    "server.token_expired",
    "server.forbidden",
    "server.tokens_file",
    "server.bad_tokens_file",
    "store.fenced",
    "store.changed_body",
    "store.too_large",
    "store.unavailable",
    "store.in_doubt",
    "handle-conflict",
    "provider-not-found",
    "method-not-found",
    "timeout",
    "cancelled",
];

/// A place for each known name, and one for all others.
struct Named<T> {
    names: &'static [&'static str],
    values: Vec<T>,
}

impl<T: Default> Named<T> {
    fn new(names: &'static [&'static str]) -> Named<T> {
        let values = (0..=names.len()).map(|_| T::default()).collect();
        Named { names, values }
    }

    fn of(&self, name: &str) -> Option<&T> {
        let at = self.names.iter().position(|known| *known == name);
        self.values.get(at.unwrap_or(self.names.len()))
    }

    fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
        let names = self.names.iter().copied().chain([OTHER]);
        names.zip(&self.values)
    }
}

/// The counters of a server.
pub(super) struct Metrics {
    pub(super) opened: Counter,
    pub(super) published: Counter,
    pub(super) delivered: Counter,
    pub(super) bytes_in: Counter,
    pub(super) bytes_out: Counter,
    pub(super) slow: Counter,
    subscriptions: AtomicU64,
    refused: Named<Counter>,
    of_sockets: Named<Histogram>,
    of_http: Named<Histogram>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            opened: Counter::default(),
            published: Counter::default(),
            delivered: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            slow: Counter::default(),
            subscriptions: AtomicU64::new(0),
            refused: Named::new(&CODES),
            of_sockets: Named::new(&METHODS),
            of_http: Named::new(&rest::PATHS),
        }
    }
}

/// A subscription that counts until it is dropped.
pub(super) struct Counted(Arc<Metrics>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(super) fn subscribed(self: &Arc<Metrics>) -> Counted {
        self.subscriptions.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(self))
    }

    /// Counts a request of a socket.
    pub(super) fn requested(&self, method: &str, took: Duration, refusal: Option<&Refusal>) {
        if let Some(histogram) = self.of_sockets.of(method) {
            histogram.observe(took);
        }
        if let Some(refusal) = refusal {
            self.refused(&refusal.0.code);
        }
    }

    fn refused(&self, code: &str) {
        if let Some(counter) = self.refused.of(code) {
            counter.inc();
        }
    }

    fn write(&self, connections: usize, to: &mut Exposition) {
        to.single(&CONNECTIONS, connections);
        to.single(&OPENED, self.opened.get());
        to.single(&SUBSCRIPTIONS, self.subscriptions.load(Ordering::Relaxed));
        to.single(&PUBLISHED, self.published.get());
        to.single(&DELIVERED, self.delivered.get());
        to.family(&BYTES);
        to.sample(&BYTES, &["in"], self.bytes_in.get());
        to.sample(&BYTES, &["out"], self.bytes_out.get());
        to.family(&REFUSED);
        for (code, counter) in self.refused.iter() {
            to.sample(&REFUSED, &[code], counter.get());
        }
        to.single(&SLOW, self.slow.get());
        to.family(&REQUESTS);
        for (transport, of) in [("socket", &self.of_sockets), ("http", &self.of_http)] {
            for (request, histogram) in of.iter() {
                to.histogram(&REQUESTS, &[transport, request], histogram);
            }
        }
    }
}

/// The code of a refusal, which its response carries to [`observed`].
#[derive(Clone)]
pub(super) struct RefusedCode(pub(super) String);

/// Counts a request over HTTP.
pub(super) async fn observed(
    State(server): State<ChannelServer>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let path = path.strip_prefix("/v1/").unwrap_or(OTHER).to_owned();
    let began = Instant::now();
    let response = next.run(request).await;
    let metrics = &server.0.metrics;
    if let Some(histogram) = metrics.of_http.of(&path) {
        histogram.observe(began.elapsed());
    }
    if let Some(RefusedCode(code)) = response.extensions().get() {
        metrics.refused(code);
    }
    response
}

/// The metrics for a token that may read all channels.
pub(super) async fn guarded(
    State(server): State<ChannelServer>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let grant = server.0.authority.check_header(&headers)?;
    if !grant.scopes.allow_on_all(Action::Read) {
        let message = format!(
            "the token {} does not allow to read all channels",
            grant.name
        );
        return Err(Refusal::new("server.forbidden", message)
            .help("make one that does: a99 token new --scope 'read:*'"));
    }
    open(State(server)).await
}

/// The metrics for all that reach the address.
pub(super) async fn open(State(server): State<ChannelServer>) -> Result<Response, Refusal> {
    let mut to = Exposition::default();
    server.0.host.metrics(&mut to).await?;
    server.0.metrics.write(server.connections(), &mut to);
    let kind = [(header::CONTENT_TYPE, CONTENT_TYPE)];
    Ok((kind, to.finish()).into_response())
}
