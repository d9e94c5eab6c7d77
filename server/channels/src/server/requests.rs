//! Requests of a session.

use super::error::Refusal;
use super::metrics::Metrics;
use super::session::{Answer, Session};
use super::{Inner, holder};
use crate::codes::{BAD_REQUEST, NOT_JOINED, TOO_MANY};
use crate::message::answer;
use crate::wire::{
    Agents, Append, Call, Configure, Events, Find, Invite, Join, Joined, MAX_READ, OfChannel,
    OfParticipant, OfSubscription, Placed, Publish, Published, Read, Subscribe, attach, attach_all,
    detach, methods,
};
use a99_runtime::{
    Attachment, Body, CallOptions, Event, EventKind, MethodCallHandle, Participant, Publishing,
    Sender, Seq, Uuid,
};
use a99_runtime_engine::{NewEvent, check_part, derived};
use a99_server::{Action, Grant};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum bytes of what a participant says of itself, as JSON. Answers have whole rosters.
const MAX_PARTICIPANT_BYTES: usize = 256 << 10;

/// Bytes of text and attachments after which an answer has no further event.
const ANSWER_BYTES: usize = 4 << 20;

impl Refusal {
    pub(super) fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(BAD_REQUEST, message)
    }

    pub(super) fn not_joined(channel: &str, id: Uuid) -> Refusal {
        let message = format!("the connection has not joined {channel} as {id}");
        Refusal::new(NOT_JOINED, message).help("`join` first, or leave `participant` out")
    }

    fn forbidden(grant: &Grant, action: &str, channel: &str) -> Refusal {
        let message = format!(
            "the token {} does not allow `{action}` on the channel {channel}",
            grant.name
        );
        let help = format!("make one that does: a99 token new --scope '{action}:{channel}'");
        Refusal::new("server.forbidden", message).help(help)
    }
}

/// Refuses what a token does not allow.
pub(super) fn allow(grant: &Grant, action: Action, channel: &str) -> Result<(), Refusal> {
    check_part("channel", channel)?;
    match grant.allows(action, channel) {
        true => Ok(()),
        false => Err(Refusal::forbidden(grant, action.name(), channel)),
    }
}

/// Refuses a change of the configuration that a token does not allow. Hosts keep notes there.
pub(super) fn allow_configure(grant: &Grant, channel: &str) -> Result<(), Refusal> {
    match grant.allows(Action::Host, channel) {
        true => Ok(()),
        false => allow(grant, Action::Write, channel),
    }
}

/// The channels that a token may read, with their heads.
pub(super) async fn readable(server: &Inner, grant: &Grant) -> Result<Vec<(String, Seq)>, Refusal> {
    let mut all = server.host.channel_store().channels().await?;
    all.retain(|(name, _)| grant.allows(Action::Read, name));
    Ok(all)
}

/// The sender of a token's holder that has not joined.
pub(super) fn anonymous(grant: &Grant) -> Sender {
    Sender {
        id: holder(grant),
        name: Some(grant.name.clone()),
        kind: Some("client".to_owned()),
        handle: None,
    }
}

/// Checks that a client may publish a content, and gives what the token must allow.
pub(super) fn action_of(body: &Body) -> Result<Action, Refusal> {
    match body {
        Body::MethodCall { .. } | Body::MethodCancel { .. } => Ok(Action::Call),
        Body::Presence { .. } => Err(Refusal::bad(
            "the server publishes presence: use `join`, `leave` and `update-metadata`",
        )),
        Body::AgentDebug { .. } => Err(Refusal::bad("hosts of agents publish `agent-debug`")),
        _ => Ok(Action::Write),
    }
}

/// Refuses what is too large for rosters.
fn check_size(said: &impl Serialize) -> Result<(), Refusal> {
    let bytes = serde_json::to_vec(said).map_or(usize::MAX, |json| json.len());
    match bytes <= MAX_PARTICIPANT_BYTES {
        true => Ok(()),
        false => Err(Refusal::bad(format!(
            "what a participant says of itself has {bytes} bytes of at most {MAX_PARTICIPANT_BYTES}"
        ))),
    }
}

fn of<T: DeserializeOwned>(body: &a99_frame::Body, method: &str) -> Result<T, Refusal> {
    body.json()
        .map_err(|error| Refusal::bad(format!("the parameters of `{method}`: {error}")))
}

fn told(id: u64, result: &impl Serialize) -> Answer {
    Ok(answer(id, result, &[])?)
}

/// Begins to publish an event of a client for the log.
fn start_publish(
    server: &Inner,
    sender: Sender,
    asked: Publish,
    attachments: Vec<Attachment>,
) -> Result<Publishing, Refusal> {
    let publish = a99_runtime::Publish {
        body: asked.body,
        sender,
        key: asked.key,
        attachments,
    };
    Ok(server.host.start_publish(&asked.channel, publish)?)
}

/// Publishes an event of a client.
pub(super) async fn publish(
    server: &Inner,
    sender: Sender,
    asked: Publish,
    attachments: Vec<Attachment>,
) -> Result<Published, Refusal> {
    if asked.persist {
        let published = start_publish(server, sender, asked, attachments)?.await?;
        return Ok(placed(&server.metrics, &published));
    }
    if !attachments.is_empty() || asked.key.is_some() {
        let message = "an event that is in no log has neither attachments nor a key";
        return Err(Refusal::bad(message));
    }
    let passing = server
        .host
        .publish_ephemeral(&asked.channel, asked.body, sender);
    let published = a99_runtime::Published {
        event: passing.await?,
        is_new: true,
    };
    Ok(placed(&server.metrics, &published))
}

/// Counts an event that a client published, and gives the answer.
pub(super) fn placed(metrics: &Metrics, published: &a99_runtime::Published) -> Published {
    metrics.published.inc();
    let event = &published.event;
    Published {
        id: match &event.body {
            Body::Message(message) => message.id,
            _ => event.id,
        },
        seq: event.seq,
        is_new: published.is_new,
    }
}

/// Reads events of a channel, after or before a sequence number, as many as fit into an answer.
pub(super) async fn read(
    server: &Inner,
    asked: &Read,
    is_history: bool,
) -> Result<(Vec<Arc<Event>>, bool), Refusal> {
    let store = server.host.channel_store();
    let limit = asked.limit.clamp(1, MAX_READ);
    let mut events = match (is_history, asked.at) {
        (false, at) => {
            store
                .read(&asked.channel, at.unwrap_or(0), limit + 1)
                .await?
        }
        (true, at) => {
            // Stores count in signed 64-bit integers.
            let before = at.unwrap_or(Seq::MAX >> 1);
            store.read_before(&asked.channel, before, limit + 1).await?
        }
    };
    let mut bytes = 0;
    let fitting = events.iter().take(limit).take_while(|event| {
        let fits = bytes <= ANSWER_BYTES;
        bytes += size(event);
        fits
    });
    let count = fitting.count();
    let has_more = events.len() > count;
    events.truncate(count);
    Ok((events, has_more))
}

/// Approximate bytes of an event.
fn size(event: &Event) -> usize {
    let attached: usize = event.attachments.iter().map(|one| one.data.len()).sum();
    let text = match &event.body {
        Body::Message(message) => message.content.len(),
        Body::UpdateMessage { content, .. } => content.as_ref().map_or(0, String::len),
        body => serde_json::to_string(body).map_or(0, |text| text.len()),
    };
    attached + text + 256
}

fn events(id: u64, events: &[Arc<Event>], has_more: bool) -> Answer {
    let mut bytes = Vec::new();
    let events = events
        .iter()
        .map(|event| detach(event, &mut bytes))
        .collect();
    let found = Events { events, has_more };
    Ok(answer(id, &found, &bytes)?)
}

/// Calls a method for a client.
pub(super) async fn call(
    server: &Inner,
    sender: Sender,
    asked: Call,
) -> Result<(Sender, MethodCallHandle), Refusal> {
    let limit = asked.timeout_ms.map(Duration::from_millis);
    let provider = asked.provider.trim_start_matches('@');
    let handle = server.host.call_participant(
        &asked.channel,
        sender.clone(),
        provider,
        &asked.method,
        asked.args,
        CallOptions {
            timeout: limit,
            id: asked.call_id,
            ..CallOptions::default()
        },
    );
    Ok((sender, handle.await?))
}

impl Session {
    /// Answers a request.
    pub(super) async fn request(
        &mut self,
        id: u64,
        method: &str,
        body: &a99_frame::Body,
    ) -> Answer {
        let server = Arc::clone(&self.server);
        let host = &server.host;
        match method {
            methods::PUBLISH => {
                let (sender, asked, attachments) = self.publish(body)?;
                told(id, &publish(&server, sender, asked, attachments).await?)
            }
            methods::APPEND => {
                let asked = of(body, method)?;
                let placed = append(&server, &self.grant, asked, body.bytes());
                told(id, &placed.await?)
            }
            methods::SUBSCRIBE => {
                let asked: Subscribe = of(body, method)?;
                allow(&self.grant, Action::Read, &asked.channel)?;
                let opened = self.subscriptions.open(&server, &self.out, asked);
                told(id, &opened.await?)
            }
            methods::UNSUBSCRIBE => {
                let asked: OfSubscription = of(body, method)?;
                told(
                    id,
                    &json!({"ended": self.subscriptions.close(asked.subscription)}),
                )
            }
            methods::JOIN => {
                let asked: Join = of(body, method)?;
                let channel = asked.channel.clone();
                let joined = self.join(asked).await?;
                let answer = told(id, &joined);
                if answer.is_err() {
                    // A roster that fits into no message would be of no use to anybody.
                    self.leave(&channel, joined.participant).await?;
                }
                answer
            }
            methods::LEAVE => {
                let asked: OfParticipant = of(body, method)?;
                self.leave(&asked.channel, asked.participant).await?;
                told(id, &json!({}))
            }
            methods::UPDATE_METADATA => {
                let asked: OfParticipant = of(body, method)?;
                self.sender(&asked.channel, Some(asked.participant))?;
                check_size(&asked.metadata)?;
                let replaced =
                    host.replace_metadata(&asked.channel, asked.participant, asked.metadata);
                told(id, &json!({"present": replaced.await?}))
            }
            methods::READ | methods::HISTORY => {
                let asked: Read = of(body, method)?;
                allow(&self.grant, Action::Read, &asked.channel)?;
                let (found, has_more) = read(&server, &asked, method == methods::HISTORY).await?;
                events(id, &found, has_more)
            }
            methods::FIND => {
                let asked: Find = of(body, method)?;
                allow(&self.grant, Action::Read, &asked.channel)?;
                let found = host.channel_store().find(&asked.channel, asked.id).await?;
                events(id, found.as_slice(), false)
            }
            methods::CHANNELS => told(id, &readable(&server, &self.grant).await?),
            methods::CONFIGURE => {
                let asked: Configure = of(body, method)?;
                allow_configure(&self.grant, &asked.channel)?;
                if !asked.announce {
                    let changes = Value::Object(asked.changes);
                    let store = host.channel_store();
                    let done = store.update_channel_config(&asked.channel, changes);
                    return told(id, &done.await?);
                }
                let sender = self.sender(&asked.channel, None)?;
                let done = host.configure_channel(&asked.channel, asked.changes, sender);
                told(id, &done.await?)
            }
            methods::HEAD | methods::ROSTER | methods::CONFIG | methods::AGENTS => {
                let OfChannel { channel } = of(body, method)?;
                allow(&self.grant, Action::Read, &channel)?;
                let store = host.channel_store();
                match method {
                    methods::HEAD => told(id, &store.head(&channel).await?),
                    methods::ROSTER => told(id, &host.roster(&channel)),
                    methods::CONFIG => told(id, &store.channel_config(&channel).await?),
                    _ => told(id, &agents(&server, &channel)),
                }
            }
            methods::INVITE => {
                let asked: Invite = of(body, method)?;
                allow(&self.grant, Action::Invite, asked.agent.channel())?;
                let config = match asked.config {
                    Value::Null => json!({}),
                    config => config,
                };
                host.invite(&asked.agent, config).await?;
                told(id, &json!({}))
            }
            methods::REMOVE => {
                let asked: Invite = of(body, method)?;
                allow(&self.grant, Action::Invite, asked.agent.channel())?;
                told(id, &json!({"present": host.remove(&asked.agent).await?}))
            }
            _ => {
                let message = format!("no request is called `{method:.40}`");
                Err(Refusal::bad(message))
            }
        }
    }

    /// The event that a client wants to publish, with its sender.
    fn publish(
        &self,
        body: &a99_frame::Body,
    ) -> Result<(Sender, Publish, Vec<Attachment>), Refusal> {
        let mut asked: Publish = of(body, methods::PUBLISH)?;
        allow(&self.grant, action_of(&asked.body)?, &asked.channel)?;
        let metas = std::mem::take(&mut asked.attachments);
        let attachments = attach_all(metas, body.bytes())?;
        let sender = self.sender(&asked.channel, asked.participant)?;
        Ok((sender, asked, attachments))
    }

    /// Begins to publish an event for a log; `None` for what [`Session::request`] answers.
    pub(super) fn start_publish(&self, body: &a99_frame::Body) -> Option<Publishing> {
        let (sender, asked, attachments) = self.publish(body).ok()?;
        let started = |asked| start_publish(&self.server, sender, asked, attachments).ok();
        Some(asked).filter(|asked| asked.persist).and_then(started)
    }

    async fn join(&mut self, asked: Join) -> Result<Joined, Refusal> {
        let channel = asked.channel.clone();
        let most = self.server.limits.participants;
        if self.joined_count >= most {
            let message = format!("a connection joins as at most {most} participants");
            return Err(Refusal::new(TOO_MANY, message));
        }
        let handle = asked.handle.trim_start_matches('@').to_owned();
        check_part("handle", &handle)?;
        let kind = asked.kind.unwrap_or_else(|| "client".to_owned());
        let id = match &asked.agent {
            Some(key) => {
                allow(&self.grant, Action::Host, &channel)?;
                if key.channel() != channel || key.handle() != handle {
                    let message = format!("{key} is not @{handle} on the channel {channel}");
                    return Err(Refusal::bad(message));
                }
                key.participant()
            }
            None => {
                allow(&self.grant, Action::Write, &channel)?;
                if kind == "agent" {
                    let message = "a participant of the type `agent` has an agent's key";
                    return Err(Refusal::bad(message));
                }
                derived(&[
                    "member",
                    &self.grant.id,
                    &channel,
                    &handle.to_ascii_lowercase(),
                ])
            }
        };
        let who = Participant {
            id,
            name: asked.name.unwrap_or_else(|| match &asked.agent {
                Some(key) => key.agent().to_owned(),
                None => self.grant.name.clone(),
            }),
            handle,
            kind,
            methods: asked.methods,
            agent: asked.agent,
            metadata: asked.metadata,
        };
        check_size(&who)?;
        let joined = self.joined.entry(channel.clone()).or_default();
        let server = &self.server;
        match joined.iter_mut().find(|other| other.id == id) {
            Some(there) => {
                server
                    .host
                    .replace_participant(&channel, who.clone())
                    .await?;
                *there = who;
            }
            None => {
                server
                    .members
                    .join(&server.host, &channel, who.clone())
                    .await?;
                joined.push(who);
                self.joined_count += 1;
            }
        }
        Ok(Joined {
            participant: id,
            roster: server.host.roster(&channel),
        })
    }

    /// Begins a call; the future waits for its answer.
    pub(super) fn calling(
        &self,
        body: &a99_frame::Body,
    ) -> Result<impl Future<Output = Result<Value, Refusal>> + use<>, Refusal> {
        let asked: Call = of(body, methods::CALL)?;
        allow(&self.grant, Action::Call, &asked.channel)?;
        let sender = self.sender(&asked.channel, asked.participant)?;
        let server = Arc::clone(&self.server);
        let has_ended = Arc::clone(&self.has_ended);
        Ok(async move { answered(server, sender, asked, has_ended).await })
    }
}

/// Appends events of an agent whose host is the client.
pub(super) async fn append(
    server: &Inner,
    grant: &Grant,
    asked: Append,
    mut bytes: &[u8],
) -> Result<Vec<Placed>, Refusal> {
    // A token for one channel speaks for no agent of another.
    allow(grant, Action::Host, asked.agent.channel())?;
    let fence = asked.fence();
    let sender = Arc::new(Sender::agent(&asked.agent));
    let (mut logged, mut passing) = (Vec::new(), Vec::new());
    for one in asked.events {
        allow(grant, Action::Host, &one.channel)?;
        let attachments = attach(one.attachments, &mut bytes)?;
        let mut new = NewEvent::new(
            &one.channel,
            one.id,
            Arc::clone(&sender),
            one.hops,
            one.body,
        );
        new.event.attachments = attachments;
        if one.persist {
            logged.push(new);
        } else {
            new.event.kind = EventKind::Ephemeral;
            passing.push(new);
        }
    }
    let host = &server.host;
    let mut placed = Vec::with_capacity(logged.len() + passing.len());
    if !logged.is_empty() {
        let appended = host.append_of(fence, logged).await?;
        placed.extend(appended.into_iter().map(|one| Placed {
            seq: one.event.seq,
            ts: one.event.ts,
            is_new: one.is_new,
        }));
    }
    for new in passing {
        let event = host.pass_of(new).await?;
        placed.push(Placed {
            seq: None,
            ts: event.ts,
            is_new: true,
        });
    }
    server.metrics.published.add(placed.len() as u64);
    Ok(placed)
}

/// Calls a method and waits. Dropping the future cancels the call, unless the connection has
/// ended and the client may ask for the answer again.
pub(super) async fn answered(
    server: Arc<Inner>,
    sender: Sender,
    asked: Call,
    has_ended: Arc<AtomicBool>,
) -> Result<Value, Refusal> {
    let has_id = asked.call_id.is_some();
    let (sender, handle) = call(&server, sender, asked).await?;
    let cancel = Cancel {
        goes_on: has_id.then_some(has_ended),
        server,
        channel: handle.channel().to_owned(),
        call: handle.call_id(),
        sender: Some(sender),
    };
    let result = handle.result().await;
    cancel.over();
    Ok(result?)
}

/// Cancels a call unless it is over.
struct Cancel {
    goes_on: Option<Arc<AtomicBool>>,
    server: Arc<Inner>,
    channel: String,
    call: Uuid,
    sender: Option<Sender>,
}

impl Cancel {
    fn over(mut self) {
        self.sender = None;
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        if self
            .goes_on
            .as_ref()
            .is_some_and(|goes_on| goes_on.load(Ordering::Acquire))
        {
            return;
        }
        let (Some(sender), Ok(runtime)) =
            (self.sender.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let host = self.server.host.clone();
        let channel = std::mem::take(&mut self.channel);
        let publish = a99_runtime::Publish {
            body: Body::MethodCancel { call_id: self.call },
            sender,
            key: None,
            attachments: Vec::new(),
        };
        runtime.spawn(async move { host.publish(&channel, publish).await });
    }
}

/// The agents that can be invited to a channel, and those that are on it.
pub(super) fn agents(server: &Inner, channel: &str) -> Agents {
    let on_channel = server.host.agents().into_iter();
    Agents {
        known: server.host.known_agents(),
        agents: on_channel.filter(|key| key.channel() == channel).collect(),
    }
}
