//! Link of a client: the task that keeps the connection, and what it restores on a new one.

use super::socket::{Place, Socket};
use super::{CREDIT, ClientOptions, Item, Status, delivered, parsed};
use crate::codes::{BAD_SERVER, LOST};
use crate::message::{self, Encoded};
use crate::wire::{
    Ended, Hello, Join, OfSubscription, PROTOCOL, Roster, Subscribe, Subscribed, Welcome, methods,
    notices,
};
use a99_frame::{Body as Content, Envelope, decode};
use a99_runtime::{AgentError, Participant, Seq, Uuid};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The id of `hello`, and the first of the client's requests: the link's own lie between them,
/// numbered by connection.
const HELLO: u64 = 0;
pub(super) const FIRST_ID: u64 = 1 << 32;

/// Pings that a server may leave out before it counts as gone.
const MISSED: u32 = 3;

/// A connection that lasted so long starts the back-off anew.
const STEADY: Duration = Duration::from_secs(5);

type Answer = Result<Content, AgentError>;
type Started = oneshot::Sender<Result<Subscribed, AgentError>>;

/// What handles ask of the link.
pub(super) enum Command {
    Request {
        id: u64,
        message: Encoded,
        reply: oneshot::Sender<Answer>,
    },
    /// The asker waits no longer; a call is cancelled.
    Forget(u64, bool),
    Joined(Uuid, Box<Join>),
    Left(Uuid),
    Subscribe(Box<Subscriber>, Started),
    Unsubscribe(u64),
    Credit(u64, u32),
    Close,
}

/// What handles share.
pub(super) struct Shared {
    pub(super) commands: mpsc::UnboundedSender<Command>,
    pub(super) status: watch::Sender<Status>,
}

/// A subscription.
pub(super) struct Subscriber {
    asked: Subscribe,
    queue: mpsc::UnboundedSender<Item>,
    roster: watch::Sender<Vec<Participant>>,
    /// Events that were queued and are not read yet.
    unread: u32,
    /// Whether the server confirmed it once.
    is_started: bool,
}

impl Subscriber {
    pub(super) fn new(
        asked: Subscribe,
        queue: mpsc::UnboundedSender<Item>,
        roster: watch::Sender<Vec<Participant>>,
    ) -> Subscriber {
        Subscriber {
            asked,
            queue,
            roster,
            unread: 0,
            is_started: false,
        }
    }
}

struct Pending {
    message: Encoded,
    reply: oneshot::Sender<Answer>,
}

/// A request of the link itself.
enum Own {
    /// Joins again.
    Join(Uuid),
    Subscribe(u64),
    Unsubscribe,
}

pub(super) struct Link {
    place: Place,
    options: ClientOptions,
    commands: mpsc::UnboundedReceiver<Command>,
    shared: Arc<Shared>,
    pending: BTreeMap<u64, Pending>,
    joined: Vec<(Uuid, Join)>,
    subscribers: BTreeMap<u64, Subscriber>,
    starting: HashMap<u64, Started>,
    own: HashMap<u64, Own>,
    next_own: u64,
}

/// Why a connection, or the link, ended.
enum End {
    /// Connect again.
    Lost(AgentError),
    /// The server will refuse the next one too.
    Final(AgentError),
    /// All handles are gone.
    Closed,
}

/// A random identity.
pub(super) fn fresh() -> Result<Uuid, AgentError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| AgentError::new(LOST, error.to_string()))?;
    Ok(a99_runtime_engine::unique(bytes))
}

fn lost(error: impl std::fmt::Display) -> End {
    End::Lost(AgentError::new(LOST, error.to_string()))
}

impl Link {
    pub(super) fn new(place: Place, options: ClientOptions) -> (Link, Arc<Shared>) {
        let (sender, commands) = mpsc::unbounded_channel();
        let starting = AgentError::new(LOST, "the first connection is being opened");
        let shared = Arc::new(Shared {
            commands: sender,
            status: watch::Sender::new(Status::Reconnecting(starting)),
        });
        let link = Link {
            place,
            options,
            commands,
            shared: Arc::clone(&shared),
            pending: BTreeMap::new(),
            joined: Vec::new(),
            subscribers: BTreeMap::new(),
            starting: HashMap::new(),
            own: HashMap::new(),
            next_own: 1,
        };
        (link, shared)
    }

    /// Opens the first connection, and gives the work that keeps it.
    ///
    /// # Errors
    /// The connection's: a wrong address or token shows at once.
    pub(super) async fn start(self) -> Result<impl Future<Output = ()>, AgentError> {
        let (socket, welcome) = self.greet().await?;
        Ok(self.keep(socket, welcome))
    }

    /// Opens a connection and says hello.
    async fn greet(&self) -> Result<(Socket, Welcome), AgentError> {
        let mut socket = self.place.open().await?;
        let hello = Hello {
            protocol: PROTOCOL,
            token: None,
        };
        let hello = message::request(HELLO, methods::HELLO, &hello, &[])?;
        let lost =
            |error: tokio_tungstenite::tungstenite::Error| AgentError::new(LOST, error.to_string());
        socket.send(wire(hello)).await.map_err(lost)?;
        let answer = tokio::time::timeout(Duration::from_secs(10), async {
            while let Some(message) = socket.next().await {
                match message.map_err(lost)? {
                    Message::Text(text) => return Ok(text.as_bytes().to_vec()),
                    Message::Binary(bytes) => return Ok(bytes.into()),
                    Message::Close(frame) => {
                        let reason = frame.map(|frame| frame.reason.to_string());
                        return Err(AgentError::new(LOST, reason.unwrap_or_default()));
                    }
                    _ => {}
                }
            }
            Err(AgentError::new(LOST, "the server closed the connection"))
        });
        let answer: Vec<u8> = answer
            .await
            .map_err(|_| AgentError::new(LOST, "the server does not answer `hello`"))??;
        let frame = decode(answer)?;
        match frame.envelope {
            Envelope::Answer(HELLO) => {
                let welcome = parsed(&frame.body, methods::HELLO)?;
                Ok((socket, welcome))
            }
            Envelope::Failed(HELLO, error) => Err(error.into()),
            _ => Err(AgentError::new(BAD_SERVER, "no channel server answers there").fatal()),
        }
    }

    /// Keeps a connection until the client is closed.
    async fn keep(mut self, socket: Socket, welcome: Welcome) {
        let mut next = Some((socket, welcome));
        let mut pause = self.options.first_pause;
        let ended = loop {
            let began = Instant::now();
            let end = match next.take() {
                Some((socket, welcome)) => {
                    self.shared.status.send_replace(Status::Connected);
                    self.run(socket, &welcome).await
                }
                None => match self.greet().await {
                    Ok(connected) => {
                        next = Some(connected);
                        continue;
                    }
                    Err(error) if error.is_final() => End::Final(error),
                    Err(error) => End::Lost(error),
                },
            };
            match end {
                End::Lost(error) => {
                    self.shared.status.send_replace(Status::Reconnecting(error));
                }
                End::Final(error) => break error,
                End::Closed => break AgentError::new(LOST, "the client is closed"),
            }
            self.own.clear();
            if began.elapsed() > STEADY {
                pause = self.options.first_pause;
            }
            if self.wait(jittered(pause)).await {
                break AgentError::new(LOST, "the client is closed");
            }
            pause = pause.saturating_mul(2).min(self.options.max_pause);
        };
        self.shared
            .status
            .send_replace(Status::Closed(ended.clone()));
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Request { reply, .. } => drop(reply.send(Err(ended.clone()))),
                Command::Subscribe(_, started) => drop(started.send(Err(ended.clone()))),
                _ => {}
            }
        }
        for (_, pending) in self.pending {
            drop(pending.reply.send(Err(ended.clone())));
        }
        for (_, started) in self.starting {
            drop(started.send(Err(ended.clone())));
        }
        for (_, subscriber) in self.subscribers {
            drop(subscriber.queue.send(Err(ended.clone())));
        }
    }

    /// Pauses, and collects commands meanwhile. Gives whether the client was closed.
    async fn wait(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return false,
                command = self.commands.recv() => match command {
                    Some(Command::Close) | None => return true,
                    Some(command) => drop(self.note(command)),
                },
            }
        }
    }

    /// Records a command. Gives the messages to send if there is a connection.
    fn note(&mut self, command: Command) -> Result<Option<Encoded>, End> {
        Ok(match command {
            Command::Request { id, message, reply } => {
                let sent = message.clone();
                self.pending.insert(id, Pending { message, reply });
                Some(sent)
            }
            Command::Forget(id, is_call) => {
                let was_pending = self.pending.remove(&id).is_some();
                match is_call && was_pending {
                    true => Some(notice(notices::CANCEL, &id)?),
                    false => None,
                }
            }
            Command::Joined(id, join) => {
                self.joined.retain(|(other, _)| *other != id);
                self.joined.push((id, *join));
                None
            }
            Command::Left(id) => {
                self.joined.retain(|(other, _)| *other != id);
                None
            }
            Command::Subscribe(subscriber, started) => {
                let number = subscriber.asked.subscription;
                self.starting.insert(number, started);
                self.subscribers.insert(number, *subscriber);
                Some(self.subscribe(number)?)
            }
            Command::Unsubscribe(number) => {
                self.starting.remove(&number);
                match self.subscribers.remove(&number) {
                    Some(_) => Some(self.unsubscribe(number)?),
                    None => None,
                }
            }
            Command::Credit(number, events) => {
                let Some(subscriber) = self.subscribers.get_mut(&number) else {
                    return Ok(None);
                };
                subscriber.unread = subscriber.unread.saturating_sub(events);
                let credit = OfSubscription {
                    subscription: number,
                    events,
                };
                Some(notice(notices::CREDIT, &credit)?)
            }
            Command::Close => return Err(End::Closed),
        })
    }

    fn own(&mut self, method: &str, params: &impl Serialize, own: Own) -> Result<Encoded, End> {
        let id = self.next_own;
        self.next_own = self.next_own % (FIRST_ID - 1) + 1;
        self.own.insert(id, own);
        message::request(id, method, params, &[]).map_err(|error| End::Final(error.into()))
    }

    /// The request that starts or continues a subscription.
    fn subscribe(&mut self, number: u64) -> Result<Encoded, End> {
        let subscriber = self.subscribers.get(&number);
        let asked = subscriber.map(|subscriber| Subscribe {
            credit: Some(CREDIT.saturating_sub(subscriber.unread)),
            ..subscriber.asked.clone()
        });
        let asked = asked.ok_or_else(|| lost("a subscription is gone"))?;
        self.own(methods::SUBSCRIBE, &asked, Own::Subscribe(number))
    }

    fn unsubscribe(&mut self, number: u64) -> Result<Encoded, End> {
        let of = OfSubscription {
            subscription: number,
            events: 0,
        };
        self.own(methods::UNSUBSCRIBE, &of, Own::Unsubscribe)
    }

    /// Messages that restore what the last connection had.
    fn restore(&mut self) -> Result<Vec<Encoded>, End> {
        let mut messages = Vec::new();
        for (id, join) in self.joined.clone() {
            messages.push(self.own(methods::JOIN, &join, Own::Join(id))?);
        }
        for number in self.subscribers.keys().copied().collect::<Vec<_>>() {
            messages.push(self.subscribe(number)?);
        }
        messages.extend(self.pending.values().map(|pending| pending.message.clone()));
        Ok(messages)
    }

    /// Serves a connection until it ends.
    async fn run(&mut self, socket: Socket, welcome: &Welcome) -> End {
        let (mut sink, mut stream) = socket.split();
        let silence = Duration::from_millis(welcome.ping_ms).saturating_mul(MISSED);
        let silence = silence.max(Duration::from_secs(1));
        let restored = match self.restore() {
            Ok(messages) => messages,
            Err(end) => return end,
        };
        let (queue, mut messages) = mpsc::unbounded_channel();
        for message in restored {
            drop(queue.send(wire(message)));
        }
        // Writing must not wait for reading: the server may wait for this client to read.
        let writing = async move {
            while let Some(message) = messages.recv().await {
                let mut next = Some(message);
                // What waits goes out together.
                while let Some(message) = next {
                    if let Err(end) = within(silence, sink.feed(message)).await {
                        return end;
                    }
                    next = messages.try_recv().ok();
                }
                if let Err(end) = within(silence, sink.flush()).await {
                    return end;
                }
            }
            drop(sink.close().await);
            End::Closed
        };
        let mut writing = std::pin::pin!(writing);
        let mut heard = Instant::now();
        let mut quiet = std::pin::pin!(tokio::time::sleep_until(heard + silence));
        loop {
            tokio::select! {
                end = &mut writing => return end,
                message = stream.next() => {
                    heard = Instant::now();
                    match self.take(message) {
                        Ok(messages) => for message in messages {
                            drop(queue.send(wire(message)));
                        },
                        Err(end) => return end,
                    }
                }
                command = self.commands.recv() => match command.map(|command| self.note(command)) {
                    Some(Ok(Some(message))) => drop(queue.send(wire(message))),
                    Some(Ok(None)) => {}
                    Some(Err(End::Closed)) | None => {
                        drop(queue);
                        // Unsent messages are still written, and the close frame.
                        drop(tokio::time::timeout(Duration::from_secs(5), writing).await);
                        return End::Closed;
                    }
                    Some(Err(end)) => return end,
                },
                () = &mut quiet => {
                    if heard + silence > Instant::now() {
                        // A timer that each message set again would cost more.
                        quiet.as_mut().reset(heard + silence);
                        continue;
                    }
                    return lost(format!("the server was silent for {silence:?}"));
                }
            }
        }
    }

    /// Takes a message of the server.
    fn take(
        &mut self,
        message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
    ) -> Result<Vec<Encoded>, End> {
        let content = match message {
            Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
            Some(Ok(Message::Binary(bytes))) => bytes.into(),
            Some(Ok(Message::Close(frame))) => return Err(closed(frame)),
            Some(Ok(_)) => return Ok(Vec::new()),
            Some(Err(error)) => return Err(lost(error)),
            None => return Err(lost("the server closed the connection")),
        };
        let frame = decode(content).map_err(lost)?;
        match frame.envelope {
            Envelope::Answer(id) => self.answered(id, Ok(frame.body)),
            Envelope::Failed(id, error) => self.answered(id, Err(error.into())),
            Envelope::Notice(method) => self.noticed(&method, &frame.body),
            Envelope::Request(..) => Err(lost("the server sent a request")),
        }
    }

    fn answered(&mut self, id: u64, answer: Answer) -> Result<Vec<Encoded>, End> {
        let Some(own) = self.own.remove(&id) else {
            if let Some(pending) = self.pending.remove(&id) {
                // The asker may be gone.
                drop(pending.reply.send(answer));
            }
            return Ok(Vec::new());
        };
        match own {
            Own::Unsubscribe => {}
            // The participant is not present any more; its next request will say why.
            Own::Join(id) => {
                if answer.is_err_and(|error| error.is_final()) {
                    self.joined.retain(|(other, _)| *other != id);
                }
            }
            Own::Subscribe(number) => {
                let subscribed =
                    answer.and_then(|content| parsed::<Subscribed>(&content, methods::SUBSCRIBE));
                let Some(subscriber) = self.subscribers.get_mut(&number) else {
                    return Ok(Vec::new());
                };
                match &subscribed {
                    Ok(subscribed) => {
                        subscriber.is_started = true;
                        let after = subscriber.asked.after.unwrap_or(subscribed.after);
                        subscriber.asked.after = Some(after);
                    }
                    Err(error) => {
                        if subscriber.is_started {
                            drop(subscriber.queue.send(Err(error.clone())));
                        }
                        self.subscribers.remove(&number);
                    }
                }
                if let Some(started) = self.starting.remove(&number) {
                    drop(started.send(subscribed));
                }
            }
        }
        Ok(Vec::new())
    }

    fn noticed(&mut self, method: &str, content: &Content) -> Result<Vec<Encoded>, End> {
        let bad = |error: AgentError| lost(error);
        match method {
            notices::EVENT => {
                let (number, event) = delivered(content).map_err(bad)?;
                let Some(subscriber) = self.subscribers.get_mut(&number) else {
                    return Ok(Vec::new());
                };
                if let Some(seq) = event.seq {
                    let last: Seq = subscriber.asked.after.unwrap_or(seq - 1);
                    if seq <= last {
                        return Ok(Vec::new());
                    }
                    if seq > last + 1 {
                        return Err(lost(format!(
                            "the events {} to {seq} are missing",
                            last + 1
                        )));
                    }
                    subscriber.asked.after = Some(seq);
                }
                subscriber.unread += 1;
                // Its reader may be gone: `Unsubscribe` follows.
                drop(subscriber.queue.send(Ok(event)));
            }
            notices::ROSTER => {
                let roster: Roster = parsed(content, method).map_err(bad)?;
                if let Some(subscriber) = self.subscribers.get(&roster.subscription) {
                    subscriber.roster.send_replace(roster.participants);
                }
            }
            notices::ENDED => {
                let ended: Ended = parsed(content, method).map_err(bad)?;
                if let Some(subscriber) = self.subscribers.remove(&ended.subscription) {
                    drop(subscriber.queue.send(Err(ended.error.into())));
                }
            }
            // A later version of the server may say more.
            _ => {}
        }
        Ok(Vec::new())
    }
}

/// Waits until the server takes bytes.
async fn within(
    silence: Duration,
    write: impl Future<Output = Result<(), tokio_tungstenite::tungstenite::Error>>,
) -> Result<(), End> {
    match tokio::time::timeout(silence, write).await {
        Ok(written) => written.map_err(lost),
        Err(_) => Err(lost("the server takes nothing")),
    }
}

fn notice(method: &str, params: &impl Serialize) -> Result<Encoded, End> {
    message::notice(method, params, &[]).map_err(|error| End::Final(error.into()))
}

fn wire(message: Encoded) -> Message {
    match message {
        Encoded::Text(text) => Message::Text(text.into()),
        Encoded::Binary(bytes) => Message::Binary(bytes.into()),
    }
}

/// Why the server closed the connection. It would refuse the token and the version again.
fn closed(frame: Option<tokio_tungstenite::tungstenite::protocol::CloseFrame>) -> End {
    let Some(frame) = frame else {
        return lost("the server closed the connection");
    };
    let message = format!("the server closed the connection: {}", frame.reason);
    match frame.code {
        CloseCode::Library(4001) => {
            End::Final(AgentError::new("server.unauthorized", message).fatal())
        }
        CloseCode::Library(4005) => {
            End::Final(AgentError::new("channels.protocol", message).fatal())
        }
        _ => lost(message),
    }
}

/// A pause between half and all of `pause`, so that clients of one server do not come together.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0; 1];
    if getrandom::fill(&mut byte).is_err() {
        return pause;
    }
    pause.mul_f64(1.0 - f64::from(byte[0]) / 512.0)
}
