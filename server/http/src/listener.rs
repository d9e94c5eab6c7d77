//! The listener: accepts connections and serves them until it is stopped.

use crate::body::LimitedBody;
use crate::connection::{Answer, Phase, Slot, Slots, Socket};
use crate::error::{ServerCode, ServerError};
use crate::guard::Guard;
use crate::options::{Limits, ListenOptions};
use crate::tls;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit};
use axum::response::IntoResponse as _;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

/// How long requests may take after the stop.
const STOP_TIME: Duration = Duration::from_secs(5);

/// How long a connection without a request stays after the stop, so that bytes on their way arrive.
const LAST_BYTES_TIME: Duration = Duration::from_millis(100);

/// Longer than any connection.
const NO_TIMEOUT: Duration = Duration::from_secs(30 * 86_400);

/// The pause after a failed accept: file descriptors may have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// hyper's smallest buffer.
const MIN_HEADER_BYTES: usize = 8 << 10;

/// Bounds of the number of connections.
const MAX_CONNECTIONS: usize = 1 << 20;

/// Connections beyond the limit that are refused with a response at once; more are closed.
const REFUSED_AT_ONCE: usize = 64;

/// Time of a connection that is refused.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// A listener that has its address.
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    guard: Guard,
    limits: Limits,
}

impl Listener {
    /// Takes an address.
    ///
    /// # Errors
    /// `server.unsafe_address` for one beyond the loopback without TLS, unless a proxy encrypts;
    /// `server.bad_option`, `server.bad_certificate`, `server.bind`.
    pub async fn bind(options: ListenOptions) -> Result<Listener, ServerError> {
        let wanted = options.address;
        let is_private = wanted.ip().to_canonical().is_loopback();
        if !is_private && options.tls.is_none() && !options.behind_proxy {
            return Err(ServerError::new(
                ServerCode::UnsafeAddress,
                format!("{wanted} is reachable from other machines, and tokens would be readable"),
                "name a certificate and its key (`tls`); or set `behind_proxy` if a proxy in \
                 front of it has TLS; or listen on 127.0.0.1",
            ));
        }
        let guard = Guard::new(&options)?;
        let tls = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let failed = |error: std::io::Error| {
            ServerError::new(
                ServerCode::Bind,
                format!("cannot listen on {wanted}: {error}"),
                "choose a free port and an address of this machine; port 0 is any free port",
            )
        };
        let tcp = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = tcp.local_addr().map_err(failed)?;
        let mut limits = options.limits;
        limits.connections = limits.connections.clamp(1, MAX_CONNECTIONS);
        limits.max_header_bytes = limits.max_header_bytes.max(MIN_HEADER_BYTES);
        // What is beyond would overflow a clock.
        limits.header_timeout = limits.header_timeout.min(NO_TIMEOUT);
        limits.body_timeout = limits.body_timeout.min(NO_TIMEOUT);
        limits.idle = limits.idle.min(NO_TIMEOUT);
        Ok(Listener {
            tcp,
            address,
            tls,
            guard,
            limits,
        })
    }

    /// The address, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves requests until `stop` ends; requests that are being served then have 5 s to end.
    /// Handlers of upgraded connections see to it themselves that these end; within the 5 s
    /// this waits for them.
    ///
    /// Requests have the address of the peer as [`ConnectInfo`].
    ///
    /// # Errors
    /// None yet; an accept that fails is tried again.
    pub async fn serve(
        self,
        app: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServerError> {
        let slots = Slots::new(self.limits.connections, self.limits.per_address);
        let refusals = Slots::new(REFUSED_AT_ONCE, None);
        let all = self.limits.connections;
        let server = Arc::new(Server {
            // The listener has its own limit.
            app: app.layer(DefaultBodyLimit::disable()),
            tls: self.tls,
            guard: self.guard,
            limits: self.limits,
        });
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.tcp.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Ok((stream, peer)) = accepted else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (slot, is_refused) = match slots.take(peer.ip()) {
                Some(slot) => (slot, false),
                None => match refusals.take(peer.ip()) {
                    Some(slot) => (slot, true),
                    None => continue,
                },
            };
            let connection = Connection {
                server: Arc::clone(&server),
                peer,
                is_refused,
                stopped: stopped.clone(),
            };
            connections.spawn(connection.serve(stream, slot));
        }
        drop(self.tcp);
        stopping.send_replace(true);
        let ended = async {
            while connections.join_next().await.is_some() {}
            slots.all_free(all).await;
        };
        // Dropping the rest ends them.
        let _ = timeout(STOP_TIME, ended).await;
        Ok(())
    }
}

/// What all connections share.
struct Server {
    app: Router,
    tls: Option<TlsAcceptor>,
    guard: Guard,
    limits: Limits,
}

impl Server {
    async fn respond(
        &self,
        request: Request<Incoming>,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Result<Response<Body>, ServerError> {
        let (mut parts, body) = request.into_parts();
        self.guard.check(local, &parts)?;
        let (body, fault) = LimitedBody::new(body, &self.limits)?;
        parts.extensions.insert(ConnectInfo(peer));
        let request = Request::from_parts(parts, Body::new(body));
        let Ok(response) = self.app.clone().call(request).await;
        // A handler sees only that the body ended early.
        match fault.get() {
            Some(error) => Err(error.clone()),
            None => Ok(response),
        }
    }
}

/// One connection, and the requests on it.
struct Connection {
    server: Arc<Server>,
    peer: SocketAddr,
    /// Whether the server has too many.
    is_refused: bool,
    stopped: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream, slot: Slot) {
        // Without an address the connection has ended already.
        let Ok(local) = stream.local_addr() else {
            return;
        };
        // Answers are small and whole; an error here only makes them slower.
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.server.tls.clone() else {
            return self.talk(stream, local, slot).await;
        };
        let handshake = timeout(self.times().0, tls.accept(stream));
        let accepted = tokio::select! {
            accepted = handshake => accepted,
            _ = self.stopped.wait_for(|stopped| *stopped) => return,
        };
        if let Ok(Ok(stream)) = accepted {
            self.talk(stream, local, slot).await;
        }
    }

    /// Time of a head, and of an idle connection.
    fn times(&self) -> (Duration, Duration) {
        let limits = &self.server.limits;
        match self.is_refused {
            true => (REFUSAL_TIME, REFUSAL_TIME),
            false => (limits.header_timeout, limits.idle),
        }
    }

    async fn talk<S>(&mut self, stream: S, local: SocketAddr, slot: Slot)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (head, idle) = self.times();
        let phase = Phase::default();
        let socket = Socket::new(stream, phase.clone(), (head, idle), slot);
        let service = service_fn(|request| self.answer(request, local, phase.clone()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // The socket has the times. hyper reads on when it is idle, so that they run, only if
            // it has one too.
            .header_read_timeout(NO_TIMEOUT)
            .max_buf_size(self.server.limits.max_header_bytes)
            .serve_connection(TokioIo::new(socket), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let mut stopped = self.stopped.clone();
        tokio::select! {
            // What ends a connection concerns its client alone.
            _ = connection.as_mut() => return,
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        connection.as_mut().graceful_shutdown();
        loop {
            tokio::select! {
                _ = connection.as_mut() => return,
                () = sleep(LAST_BYTES_TIME) => if phase.is_head() { return },
            }
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        local: SocketAddr,
        phase: Phase,
    ) -> Result<Response<Answer>, Infallible> {
        phase.begin();
        let answer = match self.is_refused {
            true => Err(busy()),
            false => self.server.respond(request, local, self.peer).await,
        };
        let (response, next) = match answer {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                (response, Phase::BUSY)
            }
            Ok(response) => (response, Phase::IDLE),
            Err(error) => {
                let mut response = error.into_response();
                // The rest of a refused body is not read.
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
                (response, Phase::CLOSING)
            }
        };
        Ok(response.map(|body| Answer::new(body, phase, next)))
    }
}

fn busy() -> ServerError {
    ServerError::new(
        ServerCode::Busy,
        "the server has too many connections",
        "close unused connections, or try again later",
    )
}
