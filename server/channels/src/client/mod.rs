//! Client of a channel server. It reconnects by itself: requests that were not answered are sent
//! again, which is safe because each names what it writes; participants join again, and
//! subscriptions continue after the last event.

mod link;
mod socket;
mod transport;

pub use transport::{ChannelTransport, WEBSOCKET};

use crate::codes::{BAD_SERVER, LATE, LOST};
use crate::forward::Requests;
use crate::message;
use crate::wire::{
    Call, Delivered, Events as Found, Join, Joined, OfParticipant, Publish, Published, Sent,
    Subscribe, Subscribed, methods, whole,
};
use a99_frame::Body as Content;
use a99_runtime::{AgentError, Attachment, Event, Participant, Seq, Uuid};
use link::{Command, Link, Shared, Subscriber};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// Events that a subscription takes before its reader has read them.
pub(crate) const CREDIT: u32 = 256;

/// Events that a client sends before the first of them is answered.
pub const UNDER_WAY: usize = 256;

/// Options of a client.
#[derive(Clone)]
pub struct ClientOptions {
    /// The token.
    pub token: String,
    /// The first pause before connecting again; each is twice as long as the one before.
    pub first_pause: Duration,
    /// The longest pause.
    pub max_pause: Duration,
    /// How long a request may take, reconnecting included. A call has its own time.
    pub timeout: Duration,
    /// Certificates of authorities in PEM, beside those of the system.
    pub authorities: Vec<u8>,
    /// Whether the token may go to another machine without TLS.
    pub allows_plaintext: bool,
}

impl ClientOptions {
    /// Options with a token.
    #[must_use]
    pub fn new(token: impl Into<String>) -> ClientOptions {
        ClientOptions {
            token: token.into(),
            first_pause: Duration::from_millis(100),
            max_pause: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            authorities: Vec::new(),
            allows_plaintext: false,
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The state of a client's connection.
#[derive(Clone, Debug)]
pub enum Status {
    /// It is connected.
    Connected,
    /// It reconnects: why the last connection ended.
    Reconnecting(AgentError),
    /// It has ended and does not reconnect.
    Closed(AgentError),
}

/// A client of a channel server. Clones share the connection, which ends with the last clone and
/// the last subscription.
#[derive(Clone)]
pub struct Client(Arc<Handle>);

pub(crate) struct Handle {
    shared: Arc<Shared>,
    next: AtomicU64,
    timeout: Duration,
    room: Arc<Semaphore>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Client");
        out.field("status", &*self.0.shared.status.borrow());
        out.finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The link may have ended.
        drop(self.shared.commands.send(Command::Close));
    }
}

/// A request that was sent. Dropping it before its answer forgets the request, and cancels a call.
struct Asked {
    client: Client,
    id: u64,
    method: &'static str,
    answer: oneshot::Receiver<Result<Content, AgentError>>,
    is_answered: bool,
}

impl Asked {
    async fn answered(mut self, until: Option<Instant>) -> Result<Content, AgentError> {
        let answered = match until {
            Some(until) => match timeout_at(until, &mut self.answer).await {
                Ok(answered) => answered,
                Err(_) => return Err(self.late()),
            },
            None => (&mut self.answer).await,
        };
        self.is_answered = true;
        answered.map_err(|_| self.client.closed())?
    }

    fn late(&self) -> AgentError {
        let why = match &*self.client.0.shared.status.borrow() {
            Status::Connected => String::new(),
            Status::Reconnecting(error) | Status::Closed(error) => format!(": {error}"),
        };
        let message = format!("`{}` was not answered in time{why}", self.method);
        AgentError::new(LATE, message)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_answered {
            let forget = Command::Forget(self.id, self.method == methods::CALL);
            drop(self.client.0.shared.commands.send(forget));
        }
    }
}

/// An event that [`Client::start_publish`] sent.
#[must_use = "without waiting for its answer, an event may be lost with the connection"]
pub struct Publishing {
    asked: Asked,
    until: Instant,
    _room: OwnedSemaphorePermit,
}

impl fmt::Debug for Publishing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publishing").finish_non_exhaustive()
    }
}

impl Publishing {
    /// Waits for the event's place in the log.
    ///
    /// # Errors
    /// Those of [`Client::publish`].
    pub async fn placed(self) -> Result<Published, AgentError> {
        let content = self.asked.answered(Some(self.until)).await?;
        parsed(&content, methods::PUBLISH)
    }
}

impl Requests for Client {
    async fn ask<T: DeserializeOwned + Send>(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
        bytes: &[u8],
    ) -> Result<T, AgentError> {
        let limit = Some(self.0.timeout);
        let content = self.send(method, params, bytes, limit).await?;
        parsed(&content, method)
    }
}

impl Client {
    /// Connects to a server: `ws://`, `wss://`, `http://` or `https://`, a host and a port.
    ///
    /// # Errors
    /// `channels.bad_server` for an address that is no server's; `channels.lost` if no connection
    /// comes about; `server.unauthorized`; `channels.protocol`.
    pub async fn connect(address: &str, options: ClientOptions) -> Result<Client, AgentError> {
        let place = socket::Place::parse(address, &options)?;
        let timeout = options.timeout;
        let (link, shared) = Link::new(place, options);
        let connected = link.start().await?;
        tokio::spawn(connected);
        Ok(Client(Arc::new(Handle {
            shared,
            next: AtomicU64::new(link::FIRST_ID),
            timeout,
            room: Arc::new(Semaphore::new(UNDER_WAY)),
        })))
    }

    /// The state of the connection.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.0.shared.status.subscribe()
    }

    /// Sends a request, and waits for its answer.
    ///
    /// # Errors
    /// Those of the server; `channels.late`; `channels.lost` once the client is closed.
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<T, AgentError> {
        let content = self.send(method, params, &[], Some(self.0.timeout)).await?;
        parsed(&content, method)
    }

    async fn send(
        &self,
        method: &'static str,
        params: &impl Serialize,
        bytes: &[u8],
        limit: Option<Duration>,
    ) -> Result<Content, AgentError> {
        let until = limit.map(|limit| Instant::now() + limit);
        self.begin(method, params, bytes)?.answered(until).await
    }

    fn begin(
        &self,
        method: &'static str,
        params: &impl Serialize,
        bytes: &[u8],
    ) -> Result<Asked, AgentError> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let message = message::request(id, method, params, bytes)?;
        let (reply, answer) = oneshot::channel();
        let command = Command::Request { id, message, reply };
        let commands = &self.0.shared.commands;
        commands.send(command).map_err(|_| self.closed())?;
        Ok(Asked {
            client: self.clone(),
            id,
            method,
            answer,
            is_answered: false,
        })
    }

    fn closed(&self) -> AgentError {
        match &*self.0.shared.status.borrow() {
            Status::Closed(error) => error.clone(),
            _ => AgentError::new(LOST, "the client is closed"),
        }
    }

    /// Joins a channel as a participant, until [`Client::leave`]; also on later connections.
    ///
    /// # Errors
    /// `handle-conflict`; `server.forbidden`; those of [`Client::request`].
    pub async fn join(&self, join: Join) -> Result<Joined, AgentError> {
        let joined: Joined = self.request(methods::JOIN, &join).await?;
        let command = Command::Joined(joined.participant, Box::new(join));
        self.0
            .shared
            .commands
            .send(command)
            .map_err(|_| self.closed())?;
        Ok(joined)
    }

    /// Leaves a channel.
    ///
    /// # Errors
    /// `channels.not_joined`; those of [`Client::request`].
    pub async fn leave(&self, channel: &str, participant: Uuid) -> Result<(), AgentError> {
        let left = Command::Left(participant);
        self.0
            .shared
            .commands
            .send(left)
            .map_err(|_| self.closed())?;
        let params = OfParticipant {
            channel: channel.to_owned(),
            participant,
            metadata: serde_json::Map::new(),
        };
        self.request::<Value>(methods::LEAVE, &params)
            .await
            .map(drop)
    }

    /// Subscribes to a channel: the events after `after` and then new ones, each once and in
    /// order, also across connections. Without `after` it gives new ones only.
    ///
    /// # Errors
    /// `server.forbidden`; `channels.beyond_head` if the channel ends before `after`; those of
    /// [`Client::request`].
    pub async fn subscribe(
        &self,
        channel: &str,
        after: Option<Seq>,
        ephemeral: bool,
    ) -> Result<Events, AgentError> {
        let asked = Subscribe {
            subscription: self.0.next.fetch_add(1, Ordering::Relaxed),
            channel: channel.to_owned(),
            after,
            ephemeral,
            roster: true,
            credit: Some(CREDIT),
        };
        let number = asked.subscription;
        let (queue, items) = mpsc::unbounded_channel();
        let roster = watch::Sender::new(Vec::new());
        let (watched, subscriber) = (roster.subscribe(), Subscriber::new(asked, queue, roster));
        let (reply, answer) = oneshot::channel();
        let subscribe = Command::Subscribe(Box::new(subscriber), reply);
        let commands = &self.0.shared.commands;
        commands.send(subscribe).map_err(|_| self.closed())?;
        let answered = tokio::time::timeout(self.0.timeout, answer).await;
        let answered = answered.map_err(|_| {
            drop(commands.send(Command::Unsubscribe(number)));
            AgentError::new(LATE, "`subscribe` was not answered in time")
        })?;
        let Subscribed { after, .. } = answered.map_err(|_| self.closed())??;
        Ok(Events {
            number,
            items,
            cursor: after,
            read: 0,
            roster: watched,
            client: self.clone(),
        })
    }

    /// Publishes an event. Without a key of its own it gets one, so that it is in the log once
    /// even if the connection breaks before the answer.
    ///
    /// # Errors
    /// `server.forbidden`; `store.changed_body`; those of [`Client::request`].
    pub async fn publish(
        &self,
        publish: Publish,
        attachments: Vec<Attachment>,
    ) -> Result<Published, AgentError> {
        self.start_publish(publish, attachments)
            .await?
            .placed()
            .await
    }

    /// Sends an event after those that were sent before, which need not be answered: up to
    /// [`UNDER_WAY`] of a client, then it waits for the answer of one.
    ///
    /// # Errors
    /// Those of [`Client::publish`].
    pub async fn start_publish(
        &self,
        mut publish: Publish,
        attachments: Vec<Attachment>,
    ) -> Result<Publishing, AgentError> {
        if publish.persist && publish.key.is_none() {
            publish.key = Some(link::fresh()?.to_string());
        }
        let mut bytes = Vec::new();
        publish.attachments = crate::wire::detached(attachments, &mut bytes);
        let until = Instant::now() + self.0.timeout;
        let room = Arc::clone(&self.0.room).acquire_owned();
        let room = timeout_at(until, room).await.ok().and_then(Result::ok);
        let late = || AgentError::new(LATE, "no earlier event was answered in time");
        Ok(Publishing {
            _room: room.ok_or_else(late)?,
            asked: self.begin(methods::PUBLISH, &publish, &bytes)?,
            until,
        })
    }

    /// Calls a method, and waits for its answer. Dropping the future cancels the call.
    ///
    /// # Errors
    /// The method's; `provider-not-found`; `method-not-found`; `timeout`; those of
    /// [`Client::request`]. A call during which the connection breaks is asked again, with the
    /// first answer if the method ran.
    pub async fn call(&self, mut call: Call) -> Result<Value, AgentError> {
        if call.call_id.is_none() {
            call.call_id = Some(link::fresh()?);
        }
        let content = self.send(methods::CALL, &call, &[], None).await?;
        parsed(&content, methods::CALL)
    }

    /// Reads events: the answer of `read`, `history` and `find`.
    pub(crate) async fn events(
        &self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<Vec<Arc<Event>>, AgentError> {
        let content = self.send(method, params, &[], Some(self.0.timeout)).await?;
        let found: Found = parsed(&content, method)?;
        let mut bytes = content.bytes();
        let events = found.events.into_iter().map(|sent| whole(sent, &mut bytes));
        Ok(events.collect::<Result<_, _>>()?)
    }
}

/// What arrives for a subscription.
pub(crate) type Item = Result<Arc<Event>, AgentError>;

/// Events of a channel, in order.
pub struct Events {
    number: u64,
    items: mpsc::UnboundedReceiver<Item>,
    cursor: Seq,
    /// Events that were read since the server was granted more.
    read: u32,
    roster: watch::Receiver<Vec<Participant>>,
    client: Client,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Events");
        out.field("cursor", &self.cursor);
        out.finish_non_exhaustive()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let commands = &self.client.0.shared.commands;
        drop(commands.send(Command::Unsubscribe(self.number)));
    }
}

impl Events {
    /// The sequence number of the last event that was read.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    /// The participants of the channel, as the server said last.
    #[must_use]
    pub fn roster(&self) -> watch::Receiver<Vec<Participant>> {
        self.roster.clone()
    }

    /// Waits for the next event. Cancel-safe: dropping the future loses no event.
    ///
    /// # Errors
    /// The subscription's; it has ended then.
    pub async fn next(&mut self) -> Result<Arc<Event>, AgentError> {
        let item = self.items.recv().await;
        let event = item.ok_or_else(|| self.client.closed())??;
        if let Some(seq) = event.seq {
            self.cursor = seq;
        }
        self.read += 1;
        if self.read >= CREDIT / 2 {
            let commands = &self.client.0.shared.commands;
            drop(commands.send(Command::Credit(self.number, self.read)));
            self.read = 0;
        }
        Ok(event)
    }
}

/// Parses the answer to a request.
pub(crate) fn parsed<T: DeserializeOwned>(
    content: &Content,
    method: &str,
) -> Result<T, AgentError> {
    content.json().map_err(|error| {
        let message = format!("the answer to `{method}`: {error}");
        AgentError::new(BAD_SERVER, message).fatal()
    })
}

/// Takes an event from a notification.
pub(crate) fn delivered(content: &Content) -> Result<(u64, Arc<Event>), AgentError> {
    let Delivered {
        subscription,
        event,
        attachments,
    } = parsed(content, "event")?;
    let event = whole(Sent { event, attachments }, &mut content.bytes())?;
    Ok((subscription, event))
}
