//! Server: channels of a [`Host`] for clients on the network.
//!
//! The host may have agents, or none: then it is the channel server of agents elsewhere.

mod encoded;
mod error;
mod hosts;
mod inspector;
mod members;
mod metrics;
mod outgoing;
mod requests;
mod rest;
mod session;
mod subscriptions;

pub use metrics::FAMILIES;

use a99_runtime::{Host, Uuid};
use a99_server::{Authority, Grant};
use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use encoded::EncodedEvents;
use error::Refusal;
use http::HeaderMap;
pub use inspector::{DeadLetters, Inspector, Operator};
use members::Members;
use metrics::Metrics;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Limits of a channel server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sockets at a time.
    pub connections: usize,
    /// Maximum bytes of a message, and of a request's body.
    pub max_message_bytes: usize,
    /// Bytes that wait for a slow client; its subscriptions pause beyond it.
    pub max_queued_bytes: usize,
    /// Subscriptions of one connection.
    pub subscriptions: usize,
    /// Participants that one connection joins.
    pub participants: usize,
    /// Calls of methods that one connection waits for.
    pub calls: usize,
    /// Events that one connection may publish before the first of them is answered; beyond it
    /// the server reads no further request.
    pub publishes: usize,
    /// Requests a second of one connection, on average; beyond it the server reads more slowly.
    pub requests_per_second: u32,
    /// How long a client may take to say hello.
    pub hello: Duration,
    /// How often the server pings.
    pub ping: Duration,
    /// How long a client may take none of the bytes for it, or send nothing, before it is
    /// disconnected.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 16_384,
            max_message_bytes: a99_frame::MAX_FRAME_BYTES,
            max_queued_bytes: 1 << 20,
            subscriptions: 1_024,
            participants: 10_000,
            calls: 64,
            publishes: 256,
            requests_per_second: 2_000,
            hello: Duration::from_secs(10),
            ping: Duration::from_secs(20),
            silence: Duration::from_secs(50),
        }
    }
}

/// Channels for clients on the network. Clones share it.
#[derive(Clone)]
pub struct ChannelServer(Arc<Inner>);

pub(crate) struct Inner {
    host: Host,
    authority: Authority,
    limits: Limits,
    members: Members,
    metrics: Arc<Metrics>,
    encoded: EncodedEvents,
    room: Arc<Semaphore>,
    inspector: Inspector,
    stopping: watch::Sender<bool>,
}

impl std::fmt::Debug for ChannelServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelServer").finish_non_exhaustive()
    }
}

impl ChannelServer {
    /// A server for the channels of a host.
    #[must_use]
    pub fn new(host: Host, authority: Authority, limits: Limits) -> ChannelServer {
        ChannelServer(Arc::new(Inner {
            members: Members::default(),
            metrics: Arc::default(),
            encoded: EncodedEvents::default(),
            room: Arc::new(Semaphore::new(limits.connections)),
            host,
            authority,
            limits,
            inspector: Inspector::default(),
            stopping: watch::Sender::new(false),
        }))
    }

    /// The routes: the socket, and those for clients without one.
    pub fn router(&self) -> Router {
        Router::new()
            .route(crate::wire::SOCKET_PATH, get(socket))
            .merge(rest::routes(self))
            .merge(hosts::routes())
            .merge(inspector::routes())
            .with_state(self.clone())
    }

    /// The page of the server, which is off at first.
    #[must_use]
    pub fn inspector(&self) -> &Inspector {
        &self.0.inspector
    }

    /// The route `/metrics`, in the text format of Prometheus, for tokens that may read all
    /// channels; open to all that reach the address if `is_open`.
    pub fn metrics_router(&self, is_open: bool) -> Router {
        let route = match is_open {
            true => get(metrics::open),
            false => get(metrics::guarded),
        };
        let router = Router::new().route("/metrics", route);
        router.with_state(self.clone())
    }

    /// Sockets that are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.limits.connections - self.0.room.available_permits()
    }

    /// Ends all connections; clients reconnect elsewhere, or later.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }
}

/// The identity of a token's holder that has not joined.
fn holder(grant: &Grant) -> Uuid {
    a99_runtime_engine::derived(&["token", &grant.id])
}

/// Opens a socket. The token is in the header, or in the first message.
async fn socket(
    State(server): State<ChannelServer>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let inner = &server.0;
    let token = a99_server::bearer(&headers);
    let grant = match token.map(|token| inner.authority.check(token)).transpose() {
        Ok(grant) => grant,
        Err(error) => return Refusal::from(error).into_response(),
    };
    let Ok(place) = Arc::clone(&inner.room).try_acquire_owned() else {
        return Refusal::busy("the server has as many connections as it takes").into_response();
    };
    upgrade
        // Small buffers: most connections are idle. That for writing has no bytes until then.
        .read_buffer_size(4 << 10)
        .write_buffer_size(8 << 10)
        .max_write_buffer_size(2 * inner.limits.max_message_bytes)
        .max_message_size(inner.limits.max_message_bytes)
        .max_frame_size(inner.limits.max_message_bytes)
        .on_upgrade(move |socket| async move {
            let _place = place;
            session::run(server.0, socket, grant).await;
        })
}
