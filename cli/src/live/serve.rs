//! Server of a host's socket. Requests of one connection are served one after the other.

use super::clients::{Clients, Seat};
use super::error::{BAD_REQUEST, BUSY};
use super::host::Live;
use super::logs::known_channel;
use super::socket::Listening;
use super::wire::{AGENT, Call, EVENT, LogsCall, MethodCall, Refusal, SendCall};
use super::{inspect, known};
use crate::local::invalid;
use a99_frame::{Envelope, Frame, Incoming, Step, answer, notice};
use a99_runtime::{AgentKey, DeadLetter, Event, Handling, HostOptions, Publish, Seq};
use a99_runtime_engine::AgentStore as _;
use serde_json::{Value as Json, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
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
                    let (input, output) = stream.into_split();
                    let input = BufReader::new(input);
                    let client = Connection {
                        live,
                        input,
                        output,
                        seat,
                    };
                    drop(client.serve().await);
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
    let id = match read(&mut stream).await?.map(|frame| frame.envelope) {
        Some(Envelope::Request(id, ..)) => id,
        _ => 0,
    };
    let text = "the host is busy with as many commands as it takes at a time";
    let help = "try again, or end some of them: those that wait, or follow logs";
    stream
        .write_all(&failed(id, Refusal::new(BUSY, text).helped(help)))
        .await
}

/// Reads a frame; `None` at the end of the stream.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Frame>> {
    let mut incoming = Incoming::default();
    loop {
        let count = stream.read(incoming.room()).await?;
        match incoming.advance(count).map_err(invalid)? {
            Step::More => {}
            Step::Frame(frame) => return Ok(Some(frame)),
            Step::End => return Ok(None),
        }
    }
}

/// Encodes a refusal; its texts are far below the size of a frame.
fn failed(id: u64, refusal: Refusal) -> Vec<u8> {
    a99_frame::failed(id, refusal).unwrap_or_default()
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
    async fn serve(mut self) -> io::Result<()> {
        while let Some(frame) = self.frame().await? {
            let (id, done) = match Call::of(&frame) {
                Ok((id, call)) => (id, self.answer(call).await),
                Err((id, refusal)) => (id, Err(Stop::Refused(refusal))),
            };
            drop(frame);
            let answer = done.and_then(|json| Ok(answer(id, &json)?));
            match answer {
                Ok(answer) => self.say(&answer).await?,
                Err(Stop::Refused(refusal)) => self.say(&failed(id, refusal)).await?,
                Err(Stop::Gone(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads a request of the client; `None` at the end.
    async fn frame(&mut self) -> io::Result<Option<Frame>> {
        self.seat.idle();
        let read = tokio::select! {
            biased;
            read = read(&mut self.input) => read,
            () = self.seat.leaves() => return Ok(None),
        };
        if !self.seat.busy() {
            return Ok(None);
        }
        match read {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                // The next request cannot be found in the rest.
                let text = format!("{error}; a command of another version of a99 sends none");
                self.say(&failed(0, Refusal::new(BAD_REQUEST, text)))
                    .await?;
                Ok(None)
            }
            read => read,
        }
    }

    async fn say(&mut self, frame: &[u8]) -> io::Result<()> {
        self.seat.answered();
        tokio::select! {
            biased;
            written = self.output.write_all(frame) => written?,
            () = self.seat.makes_room() => return Err(io::ErrorKind::TimedOut.into()),
        };
        match self.seat.busy() {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn answer(&mut self, call: Call) -> Result<Json, Stop> {
        let live = Arc::clone(&self.live);
        match call {
            Call::Send(call) => self.send(&call).await,
            Call::Method(call) => self.call(call).await,
            Call::Logs(call) => self.logs(&call).await,
            Call::Inspect(call) => self.inspect(call.agent.as_deref()).await,
            Call::Checkpoint(call) => {
                let key = known::resolve(&live.host.agents(), &call.agent)?;
                Ok(live.change(&key, call.change).await?)
            }
            Call::Reload => Ok(live.reload().await?),
        }
    }

    async fn send(&mut self, call: &SendCall) -> Result<Json, Stop> {
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
            let settled = self.settled(&call.channel, seq, until, &mut handling);
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
    /// bounds the waiting: a frame once begun is written to its end.
    async fn settled(
        &mut self,
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
                event = events.next() => self.event(&*event?).await?,
                () = closed(&mut self.input) => return Err(gone(io::ErrorKind::BrokenPipe.into())),
            }
        };
        // Forward the events of the last turn, too.
        let head = live.host.channel_store().head(channel).await?;
        while events.cursor() < head {
            let event = events.next().await?;
            self.event(&event).await?;
        }
        Ok(Some(never))
    }

    async fn logs(&mut self, call: &LogsCall) -> Result<Json, Stop> {
        let live = Arc::clone(&self.live);
        if call.follow && !self.seat.stay() {
            let text = "too many commands follow logs of this host";
            let help = "end some of them: `a99 agent logs CHANNEL` ends by itself";
            return Err(Refusal::new(BUSY, text).helped(help).into());
        }
        let channels = live.host.channel_store().channels().await?;
        let keys = live.host.agents();
        let names = channels.iter().map(|(name, _)| name.as_str());
        let names = names.chain(keys.iter().map(AgentKey::channel));
        known_channel(names, &call.channel)?;
        let head = live.host.channel_store().head(&call.channel).await?;
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
            self.event(&event).await?;
        }
        Ok(json!({"head": head}))
    }

    async fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let frame = notice(EVENT, event).or_else(|why| {
            // Without its content, which is too long for a frame.
            let mut short = serde_json::to_value(event).unwrap_or_default();
            if let Some(members) = short.as_object_mut() {
                let kept = ["eventId", "seq", "kind", "ts", "sender", "type"];
                members.retain(|name, _| kept.contains(&name.as_str()));
            }
            short["content"] = format!("({why})").into();
            notice(EVENT, &short)
        });
        self.say(&frame?).await.map_err(gone)
    }

    /// Status of one agent; for all agents, each is a notification.
    async fn inspect(&mut self, agent: Option<&str>) -> Result<Json, Stop> {
        let live = Arc::clone(&self.live);
        let keys = live.host.agents();
        let one = async |key: &AgentKey| match live.host.inspect(key).await {
            Ok(info) => inspect::told(&info),
            Err(error) => inspect::unread(key, &error.into()),
        };
        if let Some(agent) = agent {
            return Ok(one(&known::resolve(&keys, agent)?).await);
        }
        for key in &keys {
            let frame = notice(AGENT, &one(key).await);
            let frame = frame.or_else(|why| notice(AGENT, &inspect::unread(key, &why.into())));
            self.say(&frame?).await.map_err(gone)?;
        }
        Ok(json!({"host": {"pid": std::process::id()}}))
    }
}

/// Waits until a client disconnects; its further requests stay buffered.
async fn closed(input: &mut BufReader<OwnedReadHalf>) {
    match input.fill_buf().await {
        Ok([]) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
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
        let events = live.host.channel_store().read(channel, after, PAGE).await?;
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
