//! Reception: runs the turns of agents whose events arrive by signed requests.
//!
//! The store of the agents is open while requests come, and is closed when none came for a while:
//! another process may then take the next request.

mod refusal;

use crate::codes::{BAD_REQUEST, NOT_OWNER, STOPPED, TOO_LARGE, UNKNOWN_AGENT};
use crate::function::Call;
use crate::signature::{self, Signed, Verifier};
use crate::transport::HttpTransport;
use crate::wire::{Answer, EVENTS, Events, INIT, Init, MAX_EVENTS, SHUTDOWN, Shutdown};
use a99_runtime::{AgentError, AgentKey, Host, HostBuilder, Seq};
use a99_runtime_engine::{AgentStore as _, BoxFuture, Progress, StoreCode, StoreError};
use a99_runtime_stores::{SqliteRuntime, StoreOptions};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use http::HeaderMap;
use refusal::Refusal;
pub use refusal::Reply;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

/// Intervals at which the progress of an agent is looked at.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const MAX_LOOK: Duration = Duration::from_millis(50);

/// How long a look whether turns run may take.
const SETTLING: Duration = Duration::from_millis(100);

/// How long an answer waits for what turns sent to reach the channel server.
const SENDING: Duration = Duration::from_secs(5);

/// The pause between attempts to open a store that another process has.
const TAKEN: Duration = Duration::from_millis(25);

/// After how long to ask again when work goes on, when the store has another owner, and when the
/// agent stopped.
const GOES_ON: Duration = Duration::from_secs(1);
const OWNED: Duration = Duration::from_secs(1);
const STOPPED_FOR: Duration = Duration::from_secs(60);

/// Options of a reception.
#[derive(Clone, Debug)]
pub struct ReceptionOptions {
    /// The file of the agents' states.
    pub store: PathBuf,
    /// Durability and limits of the file. It never has channels.
    pub store_options: StoreOptions,
    /// How long a request may take; then its answer says that the work goes on.
    pub request_time: Duration,
    /// Maximum bytes of a request's body.
    pub max_body_bytes: usize,
    /// How long the store stays open after a request. With zero it is closed before the answer,
    /// unless the work goes on.
    pub idle: Duration,
    /// How long turns may still run when the store is to be closed. Then they are cancelled, and
    /// run again with the next request.
    pub drain: Duration,
    /// How long a request waits for a store that another process has, before it is refused.
    pub patience: Duration,
    /// The agents that `init` may register; all of the host without it.
    pub agents: Option<BTreeSet<AgentKey>>,
}

impl ReceptionOptions {
    /// Requests of 25 seconds and 8 MiB; the store is closed after 30 quiet seconds, and turns
    /// then have five minutes, as long as a turn may take. No request waits for another process.
    pub fn new(store: impl Into<PathBuf>) -> ReceptionOptions {
        ReceptionOptions {
            store: store.into(),
            store_options: StoreOptions::default(),
            request_time: Duration::from_secs(25),
            max_body_bytes: 8 << 20,
            idle: Duration::from_secs(30),
            drain: Duration::from_secs(300),
            patience: Duration::ZERO,
            agents: None,
        }
    }
}

/// A host that is being made.
pub type Building = BoxFuture<'static, Result<HostBuilder, AgentError>>;

type Build = Box<dyn Fn(SqliteRuntime, HttpTransport) -> Building + Send + Sync>;

/// Takes requests of a pusher. Clones share it.
#[derive(Clone)]
pub struct Reception(Arc<Inner>);

struct Inner {
    options: ReceptionOptions,
    build: Build,
    transport: HttpTransport,
    verifier: Verifier,
    open: Mutex<Option<Arc<Open>>>,
}

/// The open store and the host on it. Requests hold a clone each.
struct Open {
    store: SqliteRuntime,
    host: Host,
    used: std::sync::Mutex<Instant>,
}

impl std::fmt::Debug for Reception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reception").finish_non_exhaustive()
    }
}

impl Reception {
    /// A reception. `build` gives the agents each time that the store is opened.
    pub fn new(
        options: ReceptionOptions,
        transport: HttpTransport,
        verifier: Verifier,
        build: impl Fn() -> HostBuilder + Send + Sync + 'static,
    ) -> Reception {
        Reception::preparing(options, transport, verifier, move |_, _| {
            Box::pin(std::future::ready(Ok(build())))
        })
    }

    /// A reception whose store is prepared each time that it is opened: `build` gets it and the
    /// transport before the host starts.
    pub fn preparing(
        options: ReceptionOptions,
        transport: HttpTransport,
        verifier: Verifier,
        build: impl Fn(SqliteRuntime, HttpTransport) -> Building + Send + Sync + 'static,
    ) -> Reception {
        Reception(Arc::new(Inner {
            options,
            build: Box::new(build),
            transport,
            verifier,
            open: Mutex::const_new(None),
        }))
    }

    /// The routes for a [`Listener`](a99_server::Listener).
    pub fn router(&self) -> Router {
        Router::new()
            .route(INIT, post(received))
            .route(EVENTS, post(received))
            .route(SHUTDOWN, post(received))
            .with_state(self.clone())
    }

    /// Answers one call of a function.
    pub async fn call(&self, call: Call) -> Reply {
        let signed = Signed {
            id: &call.id,
            timestamp: &call.timestamp,
            signature: &call.signature,
        };
        self.handle(&call.path, signed, call.body).await
    }

    /// Answers one request: for functions that get requests in another way than by a listener.
    /// It completes even if the future is dropped.
    pub async fn handle(&self, path: &str, signed: Signed<'_>, body: Vec<u8>) -> Reply {
        if let Err(refusal) = self.check(signed, &body) {
            return refusal.reply();
        }
        let (inner, path) = (Arc::clone(&self.0), path.to_owned());
        let work = tokio::spawn(async move {
            let until = Instant::now() + inner.options.request_time;
            let reply = match inner.answer(&path, &body, until).await {
                Ok(reply) => reply,
                Err(refusal) => refusal.reply(),
            };
            if inner.options.idle.is_zero() {
                let since = Instant::now();
                // A turn of another agent may go on, and wait for what this one answers next.
                if inner.close_unused(since).await {
                    tokio::spawn(async move {
                        while inner.close_unused(since).await {
                            sleep(MAX_LOOK).await;
                        }
                    });
                }
            }
            reply
        });
        let reply = work.await.unwrap_or_else(|fault| {
            let message = format!("the request failed: {fault}");
            Refusal::new(500, a99_runtime::codes::PANIC, message).reply()
        });
        if reply.status >= 300 {
            self.0.verifier.release(signed.id);
        }
        reply
    }

    fn check(&self, signed: Signed<'_>, body: &[u8]) -> Result<(), Refusal> {
        let most = self.0.options.max_body_bytes;
        if body.len() > most {
            return Err(too_large(most));
        }
        let now = now() / 1_000;
        Ok(self.0.verifier.check(signed, body, now)?)
    }

    /// Closes the store when its turns have ended, at the latest after
    /// [`ReceptionOptions::drain`]. A later request opens it again.
    pub async fn close(&self) {
        let mut lock = self.0.open.lock().await;
        if let Some(open) = lock.take() {
            open.close(self.0.options.drain).await;
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

fn too_large(most: usize) -> Refusal {
    let message = format!("the body has more than {most} bytes");
    Refusal::new(413, TOO_LARGE, message).help("send fewer events at once")
}

async fn received(State(reception): State<Reception>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let most = reception.0.options.max_body_bytes;
    let reply = match read(body, most).await {
        Ok(body) => {
            let signed = signed(&parts.headers);
            reception.handle(parts.uri.path(), signed, body).await
        }
        Err(refusal) => refusal.reply(),
    };
    reply.response()
}

async fn read(body: Body, most: usize) -> Result<Vec<u8>, Refusal> {
    match to_bytes(body, most).await {
        Ok(bytes) => Ok(bytes.into()),
        // The listener has its own limit and its own error, which replaces this answer.
        Err(_) => Err(too_large(most)),
    }
}

/// The signature of a request.
#[must_use]
pub fn signed(headers: &HeaderMap) -> Signed<'_> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    Signed {
        id: text(signature::ID).unwrap_or_default(),
        timestamp: text(signature::TIMESTAMP).unwrap_or_default(),
        signature: text(signature::SIGNATURE).unwrap_or_default(),
    }
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::new(400, BAD_REQUEST, format!("the body: {error}")))
}

impl Inner {
    async fn answer(
        self: &Arc<Inner>,
        path: &str,
        body: &[u8],
        until: Instant,
    ) -> Result<Reply, Refusal> {
        match path {
            INIT => self.init(parsed(body)?).await,
            EVENTS => self.events(parsed(body)?, until).await,
            SHUTDOWN => self.shutdown(parsed(body)?).await,
            _ => {
                let message = format!("no request has the path {path:.80}");
                Err(Refusal::new(404, BAD_REQUEST, message))
            }
        }
    }

    async fn init(self: &Arc<Inner>, asked: Init) -> Result<Reply, Refusal> {
        let known = self.options.agents.as_ref();
        if known.is_some_and(|known| !known.contains(&asked.agent)) {
            let message = format!("{} is no agent of this receiver", asked.agent);
            return Err(Refusal::new(
                404,
                a99_runtime::codes::UNKNOWN_AGENT,
                message,
            ));
        }
        let (open, _) = self.opened(None).await?;
        let config = match asked.config {
            Value::Null => json!({}),
            config => config,
        };
        let _admitted = self.transport.admit(&asked.agent);
        open.host.invite(&asked.agent, config).await?;
        let mut answer = open.answer(&asked.agent).await?;
        answer.participant = self.transport.participant(&asked.agent);
        Ok(Reply::ok(&answer))
    }

    async fn shutdown(self: &Arc<Inner>, asked: Shutdown) -> Result<Reply, Refusal> {
        let (open, _) = self.opened(None).await?;
        open.host.remove(&asked.agent).await?;
        let answer = Answer {
            wake_at: None,
            ..open.answer(&asked.agent).await?
        };
        Ok(Reply::ok(&answer))
    }

    async fn events(self: &Arc<Inner>, asked: Events, until: Instant) -> Result<Reply, Refusal> {
        let bad = |message: &str| Err(Refusal::new(400, BAD_REQUEST, message));
        if asked.events.len() + asked.ephemeral.len() > MAX_EVENTS {
            return bad("the request has too many events: it may have 500");
        }
        let is_logged = |seq: Option<Seq>| seq.is_some_and(|seq| seq > 0 && seq <= Seq::MAX >> 1);
        if asked.events.iter().any(|event| !is_logged(event.seq)) {
            return bad("an event of `events` has no sequence number of a log");
        }
        if asked.ephemeral.iter().any(|event| event.seq.is_some()) {
            return bad("an event of `ephemeral` has a sequence number");
        }
        let key = &asked.agent;
        let (open, before) = self.opened(Some(&asked)).await?;
        if !open.host.agents().contains(key) {
            let message = format!("{key} is not registered here");
            let help = "send the request `init` first";
            return Err(Refusal::new(404, UNKNOWN_AGENT, message).help(help));
        }
        let is_new = |seq: Seq| !before.has(seq);
        let all = asked.events.iter().filter_map(|event| event.seq);
        let accepted = all.filter(|seq| is_new(*seq)).count();
        // Others wake no agent.
        let me = key.participant();
        let wakes = asked
            .events
            .iter()
            .filter(|event| event.body.wakes() && event.sender.id != me);
        let wanted = wakes
            .filter_map(|event| event.seq)
            .filter(|seq| is_new(*seq));
        let is_done = open.wait(key, wanted.max().unwrap_or(0), until).await?;
        let mut answer = open.answer(key).await?;
        answer.accepted = accepted;
        answer.duplicate = asked.events.len() - accepted;
        if !is_done {
            answer.retry_after = Some(u64::try_from(GOES_ON.as_millis()).unwrap_or(u64::MAX));
        }
        Ok(Reply::ok(&answer))
    }

    /// The open store, and the progress of the agent before the host reads the events of `asked`.
    async fn opened(
        self: &Arc<Inner>,
        asked: Option<&Events>,
    ) -> Result<(Arc<Open>, Progress), Refusal> {
        // It may be about to close, while the last turns end.
        let lock = timeout(self.options.request_time, self.open.lock()).await;
        let Ok(mut lock) = lock else {
            let message = "the agents are about to sleep, and their turns go on";
            return Err(Refusal::new(503, NOT_OWNER, message).after(OWNED));
        };
        if let Some(open) = &*lock {
            let owned = open.store.check_owned().await;
            match owned {
                Ok(()) => {
                    let before = self.feed(&open.store, asked).await?;
                    open.touch();
                    return Ok((Arc::clone(open), before));
                }
                Err(error) => {
                    if matches!(error.code(), StoreCode::Fenced | StoreCode::NotFound)
                        && let Some(lost) = lock.take()
                    {
                        tokio::spawn(async move { lost.close(Duration::ZERO).await });
                    }
                    return Err(error.into());
                }
            }
        }
        self.transport.clear();
        let store = self.store().await?;
        let started = async {
            let before = self.feed(&store, asked).await?;
            let builder = (self.build)(store.clone(), self.transport.clone()).await?;
            let transport = Arc::new(self.transport.clone());
            let host = builder.start_over(Arc::new(store.clone()), transport);
            Ok((host.await?, before))
        };
        let (host, before) = match started.await {
            Ok(started) => started,
            Err(refusal) => {
                closed(store).await;
                return Err(refusal);
            }
        };
        self.transport.started();
        let open = Arc::new(Open {
            store,
            host,
            used: std::sync::Mutex::new(Instant::now()),
        });
        *lock = Some(Arc::clone(&open));
        if !self.options.idle.is_zero() {
            tokio::spawn(close_when_idle(Arc::downgrade(self), Arc::downgrade(&open)));
        }
        Ok((open, before))
    }

    /// Gives the events of a request to the transport; gives the progress of their agent before.
    async fn feed(
        &self,
        store: &SqliteRuntime,
        asked: Option<&Events>,
    ) -> Result<Progress, Refusal> {
        let Some(asked) = asked else {
            return Ok(Progress::default());
        };
        let before = progress(store, &asked.agent).await?;
        let channel = asked.agent.channel();
        self.transport
            .feed(channel, &asked.events, &asked.ephemeral);
        Ok(before)
    }

    /// Opens the store. Waits for a process that has it.
    async fn store(&self) -> Result<SqliteRuntime, Refusal> {
        let until = Instant::now() + self.options.patience;
        let options = StoreOptions {
            has_channels: false,
            ..self.options.store_options.clone()
        };
        loop {
            let (path, options) = (self.options.store.clone(), options.clone());
            let store = tokio::task::spawn_blocking(move || SqliteRuntime::open(path, options));
            let store = store.await.map_err(|fault| {
                let message = format!("the store: {fault}");
                Refusal::new(500, a99_runtime::codes::PANIC, message)
            })?;
            let is_taken = |error: &StoreError| error.code() == StoreCode::Locked;
            match store {
                Err(error) if is_taken(&error) && Instant::now() < until => sleep(TAKEN).await,
                store => return Ok(store?),
            }
        }
    }

    /// Closes the store unless a request uses it, or turns run. These have their time since then.
    /// Gives whether it stays open for turns.
    async fn close_unused(&self, since: Instant) -> bool {
        let mut lock = self.open.lock().await;
        // Others get a clone only under the lock.
        let Some(open) = lock.take_if(|open| Arc::strong_count(open) == 1) else {
            return false;
        };
        let limit = self.options.drain.saturating_sub(since.elapsed());
        let goes_on = !limit.is_zero() && !open.host.settled(SETTLING).await;
        match goes_on {
            true => *lock = Some(open),
            false => open.close(limit).await,
        }
        goes_on
    }
}

/// Closes a store that is open when no request used it for a while.
async fn close_when_idle(inner: Weak<Inner>, open: Weak<Open>) {
    loop {
        let (Some(inner), Some(open)) = (inner.upgrade(), open.upgrade()) else {
            return;
        };
        let used = *crate::fed::locked(&open.used);
        drop(open);
        let idle = inner.options.idle;
        if used.elapsed() >= idle {
            inner.close_unused(used + idle).await;
        }
        drop(inner);
        sleep(idle.saturating_sub(used.elapsed()).max(MAX_LOOK)).await;
    }
}

async fn progress(store: &SqliteRuntime, key: &AgentKey) -> Result<Progress, Refusal> {
    let row = store.load(key).await?;
    Ok(row.map(|row| row.progress).unwrap_or_default())
}

async fn closed(store: SqliteRuntime) {
    // A file that cannot be closed properly is as after a crash, which loses nothing.
    drop(tokio::task::spawn_blocking(move || store.close()).await);
}

impl Open {
    fn touch(&self) {
        *crate::fed::locked(&self.used) = Instant::now();
    }

    async fn close(&self, limit: Duration) {
        // What fails here is done at the next start.
        drop(self.host.drain(limit).await);
        closed(self.store.clone()).await;
    }

    /// Waits until an agent has handled its events up to one, its timers that are due, and until
    /// what it sent is in the log; gives false if the time ends before.
    async fn wait(&self, key: &AgentKey, seq: Seq, until: Instant) -> Result<bool, Refusal> {
        let mut pause = FIRST_LOOK;
        let mut next = async || {
            sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
            pause = (pause * 2).min(MAX_LOOK);
            self.touch();
            Instant::now() < until
        };
        loop {
            let info = self.host.inspect(key).await?;
            let now = now();
            if info.checkpoint >= seq && info.timers.iter().all(|timer| timer.due > now) {
                break;
            }
            if info.status == "stopped" {
                let why = info
                    .last_error
                    .map(|(code, text)| format!(": {code}: {text}"));
                let message = format!("{key} stopped{}", why.unwrap_or_default());
                return Err(Refusal::new(503, STOPPED, message).after(STOPPED_FOR));
            }
            if !next().await {
                return Ok(false);
            }
        }
        let sent = Instant::now() + SENDING;
        while !self.store.outbox(1).await?.is_empty() {
            if Instant::now() > sent || !next().await {
                break;
            }
        }
        Ok(true)
    }

    async fn answer(&self, key: &AgentKey) -> Result<Answer, Refusal> {
        let timers = self.store.timers(key).await?;
        let mut wake_at = timers.iter().map(|timer| timer.due).min();
        if !self.store.outbox(1).await?.is_empty() {
            let soon = now() + u64::try_from(SENDING.as_millis()).unwrap_or(u64::MAX);
            wake_at = Some(wake_at.map_or(soon, |at| at.min(soon)));
        }
        Ok(Answer {
            checkpoint: progress(&self.store, key).await?.checkpoint,
            wake_at,
            ..Answer::default()
        })
    }
}
