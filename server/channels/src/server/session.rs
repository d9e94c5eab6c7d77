//! A connection: reads requests, answers them in order, and ends when the client, the token or
//! the server does.

use super::error::Refusal;
use super::members::{DISCONNECT, GRACEFUL};
use super::metrics::Metrics;
use super::outgoing::{Gone, Outgoing, close};
use super::requests::placed;
use super::subscriptions::Subscriptions;
use super::{Inner, holder};
use crate::codes::{BAD_FRAME, PROTOCOL as WRONG_PROTOCOL};
use crate::message::{Encoded, answer};
use crate::wire::{Hello, PROTOCOL, Welcome, methods, notices};
use a99_frame::{Envelope, Frame, decode};
use a99_runtime::{AgentError, Participant, Publishing, Sender, Uuid};
use a99_server::{Grant, ServerError};
use axum::extract::ws::{Message, WebSocket};
use futures_util::future::Either;
use futures_util::stream::SplitStream;
use futures_util::{FutureExt, StreamExt};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Error as SocketError;

/// How long the last messages may take.
const LAST: Duration = Duration::from_secs(5);

/// How long the client may take to close the connection, too.
const LINGER: Duration = Duration::from_secs(1);

/// Runs a connection to its end.
pub(super) async fn run(server: Arc<Inner>, socket: WebSocket, grant: Option<Grant>) {
    let (sink, mut stream) = socket.split();
    let limits = &server.limits;
    let (out, writing) = Outgoing::new(
        limits.max_queued_bytes,
        limits.silence,
        sink,
        Arc::clone(&server.metrics),
    );
    server.metrics.opened.inc();
    let writing = tokio::spawn(writing);
    let ended = match greet(&server, &out, &mut stream, grant).await {
        Ok(grant) => {
            let mut session = Session::new(Arc::clone(&server), out.clone(), grant);
            let ended = session.serve(&mut stream).await;
            session.end().await;
            ended
        }
        Err(ended) => ended,
    };
    if let End::Closed(code, reason) = ended {
        out.close(code, reason);
    }
    drop(out);
    let abort = writing.abort_handle();
    if timeout(LAST, writing).await.is_err() {
        abort.abort();
        return;
    }
    // The system resets a connection that is closed before all of it was read, and the client
    // might not learn the code.
    let rest = async {
        while let Some(more) = stream.next().await {
            if more.is_err() {
                // The rest cannot be read.
                std::future::pending::<()>().await;
            }
        }
    };
    drop(timeout(LINGER, rest).await);
}

/// Why a connection ended.
enum End {
    /// The client left, or its connection broke.
    Gone,
    /// The server ends it.
    Closed(u16, String),
}

impl From<Gone> for End {
    fn from(_: Gone) -> End {
        End::Gone
    }
}

/// The next frame. Any message shows that the client is alive.
async fn next(
    stream: &mut SplitStream<WebSocket>,
    metrics: &Metrics,
) -> Result<Option<Frame>, End> {
    let content = match stream.next().await {
        Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
        Some(Ok(Message::Binary(bytes))) => bytes.into(),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(None),
        Some(Ok(Message::Close(_))) | None => return Err(End::Gone),
        Some(Err(error)) => {
            let (reason, cause) = (error.to_string(), error.into_inner());
            let code = match cause.downcast_ref() {
                Some(SocketError::Capacity(_)) => close::TOO_LARGE,
                _ => close::BAD_FRAME,
            };
            return Err(End::Closed(code, reason));
        }
    };
    metrics.bytes_in.add(content.len() as u64);
    let frame = decode(content);
    let frame = frame.map_err(|error| End::Closed(close::BAD_FRAME, error.to_string()))?;
    Ok(Some(frame))
}

/// Waits for the first request, and checks the token.
async fn greet(
    server: &Inner,
    out: &Outgoing,
    stream: &mut SplitStream<WebSocket>,
    grant: Option<Grant>,
) -> Result<Grant, End> {
    let first = async {
        loop {
            if let Some(frame) = next(stream, &server.metrics).await? {
                return Ok::<Frame, End>(frame);
            }
        }
    };
    let mut stopping = server.stopping.subscribe();
    let frame = tokio::select! {
        frame = timeout(server.limits.hello, first) => match frame {
            Ok(frame) => frame?,
            Err(_) => return Err(End::Closed(close::SILENT, "no hello came in time".into())),
        },
        _ = stopping.wait_for(|is| *is) => return Err(stopped()),
    };
    let Envelope::Request(id, method, _) = frame.envelope else {
        let reason = "the first message is a request, `hello`".to_owned();
        return Err(End::Closed(close::BAD_FRAME, reason));
    };
    let began = Instant::now();
    let greeted = hello(server, &method, &frame.body, grant);
    let refusal = greeted.as_ref().err().map(|(_, refusal)| refusal);
    server
        .metrics
        .requested(methods::HELLO, began.elapsed(), refusal);
    let (code, refusal) = match greeted {
        Ok(grant) => {
            let welcome = Welcome {
                protocol: PROTOCOL,
                server: env!("CARGO_PKG_VERSION").to_owned(),
                participant: holder(&grant),
                scopes: grant.scopes.iter().map(ToString::to_string).collect(),
                ping_ms: u64::try_from(server.limits.ping.as_millis()).unwrap_or(u64::MAX),
                max_message_bytes: server.limits.max_message_bytes,
            };
            let welcome = answer(id, &welcome, &[]).map_err(Refusal::from);
            out.answer(id, welcome).await?;
            return Ok(grant);
        }
        Err(refused) => refused,
    };
    let reason = format!("{}: {}", refusal.0.code, refusal.0.message);
    out.answer(id, Err(refusal)).await?;
    Err(End::Closed(code, reason))
}

fn hello(
    server: &Inner,
    method: &str,
    body: &a99_frame::Body,
    grant: Option<Grant>,
) -> Result<Grant, (u16, Refusal)> {
    if method != methods::HELLO {
        let message = format!("the first request is `hello`, not `{method:.40}`");
        return Err((close::BAD_FRAME, Refusal::new(BAD_FRAME, message)));
    }
    let hello: Hello = body.json().map_err(|error| {
        let message = format!("the parameters of `hello`: {error}");
        (close::BAD_FRAME, Refusal::new(BAD_FRAME, message))
    })?;
    if hello.protocol != PROTOCOL {
        let message = format!(
            "the server speaks version {PROTOCOL} of the protocol, the client {}",
            hello.protocol
        );
        let refusal = Refusal::new(WRONG_PROTOCOL, message).help("use versions of one release");
        return Err((close::PROTOCOL, refusal));
    }
    let checked = match (hello.token, grant) {
        (Some(token), _) => server.authority.check(&token).map_err(Refusal::from),
        (None, Some(grant)) => Ok(grant),
        (None, None) => Err(ServerError::no_token().into()),
    };
    checked.map_err(|refusal| (close::UNAUTHORIZED, refusal))
}

fn stopped() -> End {
    End::Closed(close::GOING_AWAY, "the server stops".to_owned())
}

/// The state of a connection after its hello.
pub(super) struct Session {
    pub(super) server: Arc<Inner>,
    pub(super) out: Outgoing,
    pub(super) grant: Grant,
    pub(super) subscriptions: Subscriptions,
    /// Participants that this connection joined, by channel.
    pub(super) joined: HashMap<String, Vec<Participant>>,
    pub(super) joined_count: usize,
    /// Whether the connection has ended: calls with an identity of the client go on.
    pub(super) has_ended: Arc<AtomicBool>,
    /// Calls that this connection waits for.
    calls: JoinSet<u64>,
    calling: HashMap<u64, AbortHandle>,
    /// Events that are being published, oldest first.
    publishing: VecDeque<(u64, Instant, Publishing)>,
    /// Requests that may be read at once, refilled with time.
    tokens: f64,
    refilled: Instant,
}

impl Session {
    fn new(server: Arc<Inner>, out: Outgoing, grant: Grant) -> Session {
        let most = f64::from(server.limits.requests_per_second);
        Session {
            subscriptions: Subscriptions::default(),
            joined: HashMap::new(),
            joined_count: 0,
            has_ended: Arc::default(),
            calls: JoinSet::new(),
            calling: HashMap::new(),
            publishing: VecDeque::new(),
            tokens: most,
            refilled: Instant::now(),
            server,
            out,
            grant,
        }
    }

    async fn serve(&mut self, stream: &mut SplitStream<WebSocket>) -> End {
        let server = Arc::clone(&self.server);
        let mut stopping = server.stopping.subscribe();
        let mut authority = server.authority.changed();
        let expiry = self.grant.expires.map(|at| {
            let at = UNIX_EPOCH + Duration::from_millis(at);
            Instant::now() + at.duration_since(SystemTime::now()).unwrap_or_default()
        });
        let mut ping = tokio::time::interval(server.limits.ping);
        ping.reset();
        let mut heard = Instant::now();
        loop {
            let may_publish = self.publishing.len() < server.limits.publishes;
            let arrived = tokio::select! {
                frame = next(stream, &server.metrics), if may_publish => Either::Left(frame),
                published = first(&mut self.publishing) => Either::Right(published),
                _ = stopping.wait_for(|is| *is) => return stopped(),
                Ok(()) = authority.changed() => match server.authority.is_valid(&self.grant) {
                    true => continue,
                    false => return unauthorized("the token was revoked"),
                },
                () = sleep_until(expiry.unwrap_or_else(Instant::now)), if expiry.is_some() => {
                    return unauthorized("the token has expired");
                }
                _ = ping.tick() => {
                    if heard.elapsed() > server.limits.silence {
                        return End::Closed(close::SILENT, "no answer to pings".to_owned());
                    }
                    self.out.ping();
                    continue;
                }
                Some(ended) = self.calls.join_next(), if !self.calls.is_empty() => {
                    if let Ok(id) = ended {
                        self.calling.remove(&id);
                    }
                    continue;
                }
            };
            let frame = match arrived {
                Either::Left(frame) => frame,
                Either::Right(published) => match self.answer_published(published).await {
                    Ok(()) => continue,
                    Err(Gone) => return End::Gone,
                },
            };
            heard = Instant::now();
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(end) => return end,
            };
            self.slow_down().await;
            if let Err(end) = self.take(frame).await {
                return end;
            }
        }
    }

    /// Waits if the client sends more requests than it may.
    async fn slow_down(&mut self) {
        let rate = f64::from(self.server.limits.requests_per_second);
        let passed = self.refilled.elapsed().as_secs_f64();
        self.refilled = Instant::now();
        self.tokens = rate.min(self.tokens + passed * rate) - 1.0;
        if self.tokens < 0.0 {
            sleep(Duration::from_secs_f64(-self.tokens / rate)).await;
        }
    }

    async fn take(&mut self, frame: Frame) -> Result<(), End> {
        match frame.envelope {
            Envelope::Request(id, method, _) if method == methods::CALL => {
                match self.call(id, &frame.body) {
                    Ok(()) => Ok(()),
                    Err(refusal) => {
                        let metrics = &self.server.metrics;
                        metrics.requested(&method, Duration::ZERO, Some(&refusal));
                        Ok(self.out.answer(id, Err(refusal)).await?)
                    }
                }
            }
            Envelope::Request(id, method, _) => {
                let began = Instant::now();
                if method == methods::PUBLISH
                    && let Some(publishing) = self.start_publish(&frame.body)
                {
                    self.publishing.push_back((id, began, publishing));
                    return Ok(());
                }
                // Requests are answered in order.
                while !self.publishing.is_empty() {
                    let published = first(&mut self.publishing).await;
                    self.answer_published(published).await?;
                }
                let answer = self.request(id, &method, &frame.body).await;
                let refusal = answer.as_ref().err();
                let metrics = &self.server.metrics;
                metrics.requested(&method, began.elapsed(), refusal);
                self.out.answer(id, answer).await?;
                if method == methods::SUBSCRIBE {
                    self.subscriptions.start();
                }
                Ok(())
            }
            Envelope::Notice(method) => self.notice(&method, &frame.body),
            Envelope::Answer(_) | Envelope::Failed(..) => {
                let reason = "an answer to no request".to_owned();
                Err(End::Closed(close::BAD_FRAME, reason))
            }
        }
    }

    /// Answers the oldest publish, and those after it that have ended too.
    async fn answer_published(&mut self, first_one: Ended) -> Result<(), Gone> {
        let mut next = Some(first_one);
        while let Some(ended) = next
            && let Some((id, began, _)) = self.publishing.pop_front()
        {
            let metrics = &self.server.metrics;
            let placed = ended.map(|published| placed(metrics, &published));
            let answer = match placed {
                Ok(placed) => answer(id, &placed, &[]).map_err(Refusal::from),
                Err(error) => Err(error.into()),
            };
            metrics.requested(methods::PUBLISH, began.elapsed(), answer.as_ref().err());
            self.out.answer(id, answer).await?;
            next = first(&mut self.publishing).now_or_never();
        }
        Ok(())
    }

    fn notice(&mut self, method: &str, body: &a99_frame::Body) -> Result<(), End> {
        let bad = |error: serde_json::Error| {
            End::Closed(close::BAD_FRAME, format!("`{method:.20}`: {error}"))
        };
        match method {
            notices::CREDIT => {
                let of: crate::wire::OfSubscription = body.json().map_err(bad)?;
                self.subscriptions.credit(of.subscription, of.events);
                Ok(())
            }
            notices::CANCEL => {
                let id: u64 = body.json().map_err(bad)?;
                if let Some(call) = self.calling.remove(&id) {
                    call.abort();
                }
                Ok(())
            }
            _ => {
                let reason = format!("no notification is called `{method:.40}`");
                Err(End::Closed(close::BAD_FRAME, reason))
            }
        }
    }

    /// Calls a method while other requests are served.
    fn call(&mut self, id: u64, body: &a99_frame::Body) -> Result<(), Refusal> {
        if self.calls.len() >= self.server.limits.calls {
            let message = format!("the connection waits for {} calls", self.calls.len());
            return Err(Refusal::busy(message));
        }
        let calling = self.calling(body)?;
        let (out, began) = (self.out.clone(), Instant::now());
        let metrics = Arc::clone(&self.server.metrics);
        let task = self.calls.spawn(async move {
            let result = calling.await;
            let encoded = result.and_then(|value| Ok(answer(id, &value, &[])?));
            let refusal = encoded.as_ref().err();
            metrics.requested(methods::CALL, began.elapsed(), refusal);
            // The connection may have ended.
            drop(out.answer(id, encoded).await);
            id
        });
        self.calling.insert(id, task);
        Ok(())
    }

    /// The participant that sends an event or a call on a channel.
    pub(super) fn sender(
        &self,
        channel: &str,
        participant: Option<Uuid>,
    ) -> Result<Sender, Refusal> {
        let joined = self
            .joined
            .get(channel)
            .map(Vec::as_slice)
            .unwrap_or_default();
        match participant {
            Some(id) => {
                let found = joined.iter().find(|who| who.id == id);
                let found = found.ok_or_else(|| Refusal::not_joined(channel, id))?;
                Ok(found.sender())
            }
            None => match joined {
                // Agents send by `append`, under their epoch.
                [only] if only.agent.is_none() => Ok(only.sender()),
                _ => Ok(super::requests::anonymous(&self.grant)),
            },
        }
    }

    pub(super) async fn leave(&mut self, channel: &str, id: Uuid) -> Result<(), Refusal> {
        let joined = self.joined.get_mut(channel);
        let at = joined
            .as_ref()
            .and_then(|joined| joined.iter().position(|who| who.id == id));
        let (Some(joined), Some(at)) = (joined, at) else {
            return Err(Refusal::not_joined(channel, id));
        };
        joined.swap_remove(at);
        self.joined_count -= 1;
        let server = &self.server;
        server
            .members
            .leave(&server.host, channel, id, GRACEFUL)
            .await
    }

    /// Ends subscriptions and calls, and removes the participants of the connection.
    async fn end(&mut self) {
        self.subscriptions.end();
        self.has_ended.store(true, Ordering::Release);
        self.calls.abort_all();
        let server = &self.server;
        for (channel, joined) in self.joined.drain() {
            for who in joined {
                // The store may fail; the participant is gone all the same.
                let left = server
                    .members
                    .leave(&server.host, &channel, who.id, DISCONNECT);
                drop(left.await);
            }
        }
    }
}

type Ended = Result<a99_runtime::Published, AgentError>;

/// Waits until the oldest publish has ended, which is to be answered then.
async fn first(publishing: &mut VecDeque<(u64, Instant, Publishing)>) -> Ended {
    match publishing.front_mut() {
        Some((.., first)) => first.await,
        None => std::future::pending().await,
    }
}

fn unauthorized(reason: &str) -> End {
    End::Closed(close::UNAUTHORIZED, reason.to_owned())
}

/// An encoded answer of a request.
pub(super) type Answer = Result<Encoded, Refusal>;
