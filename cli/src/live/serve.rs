//! Server of a host's socket. Requests of one connection are served one after the other.

use super::clients::{Clients, Seat};
use super::error::{BAD_REQUEST, BUSY};
use super::host::Live;
use super::logs::known_channel;
use super::socket::Listening;
use super::wire::{
    Answer, Call, LogsCall, MAX_LINE, MethodCall, Refusal, Request, Said, SendCall, line,
};
use super::{inspect, known};
use a99_runtime::{AgentKey, DeadLetter, Event, Handling, HostOptions, Publish, Seq};
use a99_runtime_engine::{AgentStore as _, ChannelStore as _};
use serde_json::{Value as Json, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Pause after `accept` failed because no descriptors were left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Events per read.
const PAGE: usize = 500;

/// Most clients that wait for a place or are being refused.
const MAX_AT_THE_DOOR: usize = 64;

/// How long a refused client may take to send its request and read the answer.
const REFUSING: Duration = Duration::from_secs(1);

/// Accepts clients until dropped.
pub(super) async fn serve(live: Arc<Live>, listening: Listening) {
    let clients = Arc::new(Clients::default());
    let door = Arc::new(Semaphore::new(MAX_AT_THE_DOOR));
    loop {
        match listening.listener.accept().await {
            Ok((stream, _)) if listening.is_owner(&stream) => {
                let (live, clients) = (Arc::clone(&live), Arc::clone(&clients));
                let at_the_door = Arc::clone(&door).acquire_owned().await;
                tokio::spawn(async move {
                    let Some(seat) = clients.enter().await else {
                        drop(tokio::time::timeout(REFUSING, refuse(stream)).await);
                        return;
                    };
                    drop(at_the_door);
                    // A client that disconnected needs no answer.
                    drop(Connection::of(stream, live, seat).serve().await);
                });
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Refuses a client when all places are taken. It reads the request first: closing with unread data
/// would reset the connection and lose the answer.
async fn refuse(stream: UnixStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    let mut bounded = (&mut stream).take(MAX_LINE as u64);
    bounded.read_until(b'\n', &mut bytes).await?;
    let json: Json = serde_json::from_slice(&bytes).unwrap_or_default();
    let text = "the host is busy with as many commands as it takes at a time";
    let help = "try again, or end some of them: those that wait, or follow logs";
    let said = Said::Error(Refusal::new(BUSY, text).helped(help));
    let id = json["id"].as_u64().unwrap_or_default();
    let bytes = line(&Answer { id, said }).unwrap_or_default();
    stream.write_all(&bytes).await
}

/// A client.
struct Connection {
    live: Arc<Live>,
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
    seat: Seat,
}

/// Why a request has no result: it failed, or the client disconnected.
enum Stop {
    Refused(Refusal),
    Gone(io::Error),
}

impl<E: Into<Refusal>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Refused(error.into())
    }
}

fn gone(error: io::Error) -> Stop {
    Stop::Gone(error)
}

impl Connection {
    fn of(stream: UnixStream, live: Arc<Live>, seat: Seat) -> Connection {
        let (input, output) = stream.into_split();
        Connection {
            live,
            input: BufReader::new(input),
            output,
            seat,
        }
    }

    async fn serve(mut self) -> io::Result<()> {
        while let Some(bytes) = self.line().await? {
            let read: Result<Request, _> = serde_json::from_slice(&bytes);
            let (id, done) = match read {
                Ok(request) => (request.id, self.answer(request).await),
                Err(error) => {
                    let json: Json = serde_json::from_slice(&bytes).unwrap_or_default();
                    let text = format!("this is no request: {error}");
                    let refusal = Refusal::new(BAD_REQUEST, text);
                    (
                        json["id"].as_u64().unwrap_or_default(),
                        Err(Stop::Refused(refusal)),
                    )
                }
            };
            let said = match done {
                Ok(json) => Said::Result(json),
                Err(Stop::Refused(refusal)) => Said::Error(refusal),
                Err(Stop::Gone(error)) => return Err(error),
            };
            self.say(id, said).await?;
        }
        Ok(())
    }

    /// Reads a line of the client; `None` at the end.
    async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.input).take(MAX_LINE as u64);
        self.seat.idle();
        tokio::select! {
            biased;
            read = bounded.read_until(b'\n', &mut bytes) => read?,
            () = self.seat.leaves() => return Ok(None),
        };
        if !self.seat.busy() {
            return Ok(None);
        }
        match bytes.last() {
            None => Ok(None),
            Some(b'\n') => Ok(Some(bytes)),
            Some(_) => {
                // The next request cannot be found in the rest.
                let text = format!("a line has at most {MAX_LINE} bytes, and an end");
                let said = Said::Error(Refusal::new(BAD_REQUEST, text));
                self.say(0, said).await?;
                Ok(None)
            }
        }
    }

    async fn say(&mut self, id: u64, said: Said) -> io::Result<()> {
        let bytes = match line(&Answer {
            id,
            said: said.clone(),
        }) {
            Ok(bytes) => bytes,
            Err(why) => {
                let short = match said {
                    Said::Event(event) => Said::Event(shortened(&event, &why)),
                    _ => Said::Error(Refusal::new("store.too_large", why)),
                };
                line(&Answer { id, said: short }).unwrap_or_default()
            }
        };
        self.seat.answered();
        tokio::select! {
            biased;
            written = self.output.write_all(&bytes) => written?,
            () = self.seat.makes_room() => return Err(io::ErrorKind::TimedOut.into()),
        };
        match self.seat.busy() {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn answer(&mut self, request: Request) -> Result<Json, Stop> {
        let live = Arc::clone(&self.live);
        match request.call {
            Call::Send(call) => self.send(request.id, &call).await,
            Call::Method(call) => self.call(call).await,
            Call::Logs(call) => self.logs(request.id, &call).await,
            Call::Inspect(call) => Ok(inspected(&live, call.agent.as_deref()).await?),
            Call::Checkpoint(call) => {
                let key = known::resolve(&live.host.agents(), &call.agent)?;
                Ok(live.change(&key, call.change).await?)
            }
            Call::Reload => Ok(live.reload().await?),
        }
    }

    async fn send(&mut self, id: u64, call: &SendCall) -> Result<Json, Stop> {
        let live = Arc::clone(&self.live);
        let keys = live.host.agents();
        let publish = Publish {
            sender: known::sender(&keys, &call.channel, &call.sender)?,
            body: a99_runtime::Body::Message(known::message(&keys, call)?),
            key: call.key.clone(),
            attachments: Vec::new(),
        };
        let published = live.host.publish(&call.channel, publish).await?;
        // Acknowledge only what is in the right file.
        live.store.check_place()?;
        let event = &published.event;
        let seq = event.seq.unwrap_or_default();
        let mut result = json!({"seq": seq, "id": event.id, "isNew": published.is_new});
        known::subscribers(&keys, &call.channel, &mut result);
        if let Some(limit) = call.wait_ms {
            let until = Instant::now() + Duration::from_millis(limit);
            let mut handling = live.host.handling(&call.channel, seq);
            let settled = self.settled(id, &call.channel, seq, until, &mut handling);
            let settled = settled.await?;
            let is_done = settled.is_some();
            // A start that is retried may still fail.
            let failed = settled.unwrap_or_else(|| handling.failed());
            if !failed.is_empty() {
                result["failed"] = json!(why(&live, failed).await);
            }
            result["done"] = is_done.into();
            if let Some(text) = beyond_hops(&live, &call.channel, seq, &handling).await? {
                result["hopLimited"] = true.into();
                result["warning"] = text.into();
            }
            let given_up = given_up(&live, &keys, &call.channel, &handling).await?;
            if !given_up.is_empty() {
                result["givenUp"] = json!(given_up);
            }
        }
        Ok(result)
    }

    /// Calls a method, and waits for its answer until the client disconnects.
    async fn call(&mut self, call: MethodCall) -> Result<Json, Stop> {
        let live = Arc::clone(&self.live);
        let keys = live.host.agents();
        let key = known::resolve(&keys, &call.agent)?;
        let sender = known::sender(&keys, key.channel(), &call.sender)?;
        let limit = call.timeout_ms.map(Duration::from_millis);
        let asked = live
            .host
            .call_method(sender, &key, &call.name, call.args, limit);
        let handle = match asked.await {
            Ok(handle) => handle,
            Err(error) => return Ok(super::call::told(Err(error))),
        };
        tokio::select! {
            biased;
            answer = handle.result() => Ok(super::call::told(answer)),
            () = closed(&mut self.input) => Err(gone(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Forwards events of a channel until the concerned agents have handled an event and all that
    /// follows from it. Returns the agents that cannot handle it; `None` on timeout. The timeout
    /// bounds the waiting: a line once begun is written to its end.
    async fn settled(
        &mut self,
        id: u64,
        channel: &str,
        seq: Seq,
        until: Instant,
        handling: &mut Handling,
    ) -> Result<Option<Vec<AgentKey>>, Stop> {
        let live = Arc::clone(&self.live);
        let mut events = live.host.subscribe(channel, Some(seq), true).await?;
        // Wait once for all events: checking many events or agents takes long.
        let mut done = std::pin::pin!(handling.done());
        let never = loop {
            tokio::select! {
                biased;
                never = &mut done => break never?,
                () = tokio::time::sleep_until(until) => return Ok(None),
                event = events.next() => self.event(id, &*event?).await?,
                () = closed(&mut self.input) => return Err(gone(io::ErrorKind::BrokenPipe.into())),
            }
        };
        // Forward the events of the last turn, too.
        let head = live.store.head(channel).await?;
        while events.cursor() < head {
            let event = events.next().await?;
            self.event(id, &event).await?;
        }
        Ok(Some(never))
    }

    async fn logs(&mut self, id: u64, call: &LogsCall) -> Result<Json, Stop> {
        let live = Arc::clone(&self.live);
        if call.follow && !self.seat.stay() {
            let text = "too many commands follow logs of this host";
            let help = "end some of them: `a99 agent logs CHANNEL` ends by itself";
            return Err(Refusal::new(BUSY, text).helped(help).into());
        }
        let channels = live.store.channels().await?;
        let keys = live.host.agents();
        let names = channels.iter().map(|(name, _)| name.as_str());
        let names = names.chain(keys.iter().map(AgentKey::channel));
        known_channel(names, &call.channel)?;
        let head = live.store.head(&call.channel).await?;
        let subscribed = live
            .host
            .subscribe(&call.channel, Some(call.after), call.follow);
        let mut events = subscribed.await?;
        while call.follow || events.cursor() < head {
            let event = tokio::select! {
                biased;
                event = events.next() => event?,
                () = closed(&mut self.input) => return Err(gone(io::ErrorKind::BrokenPipe.into())),
            };
            self.event(id, &event).await?;
        }
        Ok(json!({"head": head}))
    }

    async fn event(&mut self, id: u64, event: &Event) -> Result<(), Stop> {
        let json = serde_json::to_value(event).unwrap_or_default();
        self.say(id, Said::Event(json)).await.map_err(gone)
    }
}

/// Waits until a client disconnects; its further requests stay buffered.
async fn closed(input: &mut BufReader<OwnedReadHalf>) {
    match input.fill_buf().await {
        Ok([]) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

/// An event without its content, because it is too long for a line.
fn shortened(event: &Json, why: &str) -> Json {
    json!({
        "eventId": event["eventId"],
        "seq": event["seq"],
        "kind": event["kind"],
        "ts": event["ts"],
        "sender": event["sender"],
        "type": event["type"],
        "content": format!("({why})"),
    })
}

/// A warning if agents answered each other up to the hop limit.
async fn beyond_hops(
    live: &Live,
    channel: &str,
    seq: Seq,
    handling: &Handling,
) -> Result<Option<String>, Refusal> {
    let max = HostOptions::default().max_hops;
    let (mut after, mut count) = (seq, 0_usize);
    loop {
        let events = live.store.read(channel, after, PAGE).await?;
        let Some(last) = events.last().and_then(|event| event.seq) else {
            break;
        };
        let beyond = events.iter().filter(|event| event.hops > max);
        let of_event = |event: &&Arc<Event>| event.seq.is_some_and(|seq| handling.includes(seq));
        count += beyond.filter(of_event).count();
        after = last;
    }
    Ok((count > 0).then(|| {
        format!(
            "agents on `{channel}` answered each other until the limit of {max} hops: {count} \
             events that came through more agents were not handled"
        )
    }))
}

/// Agents that failed or stopped, each with its error.
async fn why(live: &Live, failed: Vec<AgentKey>) -> Vec<Json> {
    let mut told = Vec::new();
    for key in failed {
        let (code, error) = match live.host.inspect(&key).await {
            Ok(info) => info.last_error.unwrap_or_default(),
            Err(error) => (error.code().to_owned(), error.to_string()),
        };
        told.push(json!({"key": key, "code": code, "error": error}));
    }
    told
}

/// Dead letters of these agents that come from an event or from the events that followed it.
async fn given_up(
    live: &Live,
    keys: &[AgentKey],
    channel: &str,
    handling: &Handling,
) -> Result<Vec<Json>, Refusal> {
    let mut found = Vec::new();
    for key in keys.iter().filter(|key| key.channel() == channel) {
        let Some(newest) = handling.newest_for(key) else {
            continue;
        };
        let letters: Vec<DeadLetter> = live.store.dead_letters(key).await?;
        let of_event = |one: &DeadLetter| {
            let dead = one.trigger.seq();
            dead.is_some_and(|dead| dead <= newest && handling.includes(dead))
        };
        for letter in letters.into_iter().filter(of_event) {
            let mut json = serde_json::to_value(letter).unwrap_or_default();
            json["key"] = json!(key);
            found.push(json);
        }
    }
    Ok(found)
}

/// Status of all agents, or of one.
async fn inspected(live: &Live, agent: Option<&str>) -> Result<Json, Refusal> {
    let host = &live.host;
    let keys = host.agents();
    let one = async |key: &AgentKey| match host.inspect(key).await {
        Ok(info) => inspect::told(&info),
        Err(error) => inspect::unread(key, &error.into()),
    };
    if let Some(agent) = agent {
        return Ok(one(&known::resolve(&keys, agent)?).await);
    }
    let mut agents = Vec::new();
    for key in &keys {
        agents.push(one(key).await);
    }
    Ok(json!({"agents": agents, "host": {"pid": std::process::id()}}))
}
