//! Requests over HTTP, for clients without a socket, and events as a stream (SSE).

use super::error::Refusal;
use super::metrics::observed;
use super::requests::{action_of, agents, allow, anonymous, answered, publish, read};
use super::subscriptions::checked_head;
use super::{ChannelServer, Inner};
use crate::wire::{Agents, Call, Publish, Published, Read, attach_all};
use a99_runtime::{Body, Event, Message, Participant, Sender, Seq, Uuid, find_participant};
use a99_server::{Action, Grant};
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Query, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::sse::{KeepAlive, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::Stream;
use http::HeaderMap;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

/// Name and place of the sequence number that an interrupted stream continues after.
const LAST_EVENT_ID: &str = "last-event-id";

/// The paths below `/v1/`.
pub(super) const PATHS: [&str; 9] = [
    "send", "update", "publish", "call", "events", "history", "roster", "agents", "config",
];

pub(super) fn routes(server: &ChannelServer) -> Router<ChannelServer> {
    Router::new()
        .route("/v1/send", post(send))
        .route("/v1/update", post(update))
        .route("/v1/publish", post(publish_event))
        .route("/v1/call", post(call))
        .route("/v1/events", get(events))
        .route("/v1/history", get(history))
        .route("/v1/roster", get(roster))
        .route("/v1/agents", get(agents_of))
        .route("/v1/config", get(config))
        // The listener limits bodies; axum's own limit of 2 MB would come before.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(server.clone(), observed))
}

/// The token of a request.
pub(super) struct Token(pub(super) Grant);

impl FromRequestParts<ChannelServer> for Token {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &ChannelServer,
    ) -> Result<Token, Refusal> {
        Ok(Token(server.0.authority.check_header(&parts.headers)?))
    }
}

/// A request's body: JSON, and bytes after it, with errors of the form of all others.
pub(super) struct JsonAndBytes<T>(pub(super) T, pub(super) Bytes);

impl<T: DeserializeOwned> FromRequest<ChannelServer> for JsonAndBytes<T> {
    type Rejection = Refusal;

    async fn from_request(
        request: Request,
        server: &ChannelServer,
    ) -> Result<JsonAndBytes<T>, Refusal> {
        let bad = |error: &dyn Display| Refusal::bad(format!("the body: {error}"));
        let most = server.0.limits.max_message_bytes;
        let bytes = axum::body::to_bytes(request.into_body(), most).await;
        let bytes = bytes.map_err(|error| bad(&error))?;
        let mut parsed = serde_json::Deserializer::from_slice(&bytes).into_iter();
        match parsed.next() {
            Some(Ok(json)) => Ok(JsonAndBytes(json, bytes.slice(parsed.byte_offset()..))),
            Some(Err(error)) => Err(bad(&error)),
            None => Err(bad(&"it is empty")),
        }
    }
}

/// A request's body: JSON.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<ChannelServer> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(
        request: Request,
        server: &ChannelServer,
    ) -> Result<JsonBody<T>, Refusal> {
        let JsonAndBytes(json, rest) = JsonAndBytes::from_request(request, server).await?;
        match rest.trim_ascii().is_empty() {
            true => Ok(JsonBody(json)),
            false => Err(Refusal::bad("the body: something follows its JSON")),
        }
    }
}

/// Parameters of `/send`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Send {
    channel: String,
    content: String,
    #[serde(default)]
    reply_to: Option<Uuid>,
    #[serde(default)]
    content_type: Option<String>,
    /// Addressees: handles or identities.
    #[serde(default)]
    at: Vec<String>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default = "persisted")]
    persist: bool,
}

fn persisted() -> bool {
    true
}

/// Parameters of `/update`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Update {
    channel: String,
    id: Uuid,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    complete: bool,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default = "persisted")]
    persist: bool,
}

/// The sender of a request: participants have a socket.
fn sender(grant: &Grant, channel: &str, participant: Option<Uuid>) -> Result<Sender, Refusal> {
    match participant {
        None => Ok(anonymous(grant)),
        Some(id) => Err(Refusal::not_joined(channel, id)),
    }
}

async fn published(
    server: &Inner,
    grant: &Grant,
    mut asked: Publish,
    bytes: &[u8],
) -> Result<Json<Published>, Refusal> {
    allow(grant, action_of(&asked.body)?, &asked.channel)?;
    let attachments = attach_all(std::mem::take(&mut asked.attachments), bytes)?;
    let sender = sender(grant, &asked.channel, asked.participant)?;
    Ok(Json(publish(server, sender, asked, attachments).await?))
}

async fn send(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonBody(asked): JsonBody<Send>,
) -> Result<Json<Published>, Refusal> {
    allow(&grant, Action::Write, &asked.channel)?;
    let at = match asked.at.is_empty() {
        true => Vec::new(),
        false => {
            // An unknown handle is an error: without it the message would go to everybody.
            let roster = server.0.host.roster(&asked.channel);
            let at = asked.at.iter();
            let at = at.map(|written| find_participant(&roster, written).map(|who| who.id));
            at.collect::<Result<_, _>>()?
        }
    };
    let message = Message {
        id: Uuid::nil(),
        content: asked.content,
        reply_to: asked.reply_to,
        content_type: asked.content_type,
        at,
        metadata: asked.metadata,
    };
    let publish = Publish {
        channel: asked.channel,
        body: Body::Message(message),
        participant: None,
        key: asked.key,
        persist: asked.persist,
        attachments: Vec::new(),
    };
    published(&server.0, &grant, publish, &[]).await
}

async fn update(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonBody(asked): JsonBody<Update>,
) -> Result<Json<Published>, Refusal> {
    let publish = Publish {
        channel: asked.channel,
        body: Body::UpdateMessage {
            id: asked.id,
            content: asked.content,
            complete: asked.complete,
            content_type: asked.content_type,
        },
        participant: None,
        key: asked.key,
        persist: asked.persist,
        attachments: Vec::new(),
    };
    published(&server.0, &grant, publish, &[]).await
}

/// Publishes any event. The bytes of attachments follow the JSON.
async fn publish_event(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonAndBytes(asked, bytes): JsonAndBytes<Publish>,
) -> Result<Json<Published>, Refusal> {
    published(&server.0, &grant, asked, &bytes).await
}

/// The result of `/call`.
#[derive(Serialize)]
struct Answer {
    answer: Value,
}

async fn call(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonBody(asked): JsonBody<Call>,
) -> Result<Json<Answer>, Refusal> {
    allow(&grant, Action::Call, &asked.channel)?;
    let sender = sender(&grant, &asked.channel, asked.participant)?;
    let answer = answered(Arc::clone(&server.0), sender, asked, Arc::default()).await?;
    Ok(Json(Answer { answer }))
}

/// Parameters of the routes that read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) channel: String,
    #[serde(default)]
    after: Option<Seq>,
    #[serde(default)]
    before: Option<Seq>,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    ephemeral: bool,
}

/// Parameters in the address, with errors of the form of all others.
pub(super) struct Parameters(pub(super) Asked);

impl FromRequestParts<ChannelServer> for Parameters {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &ChannelServer,
    ) -> Result<Parameters, Refusal> {
        let query = Query::<Asked>::from_request_parts(parts, server).await;
        let Query(asked) = query.map_err(|error| Refusal::bad(error.body_text()))?;
        Ok(Parameters(asked))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct History {
    events: Vec<Arc<Event>>,
    has_more: bool,
}

/// Events before a sequence number or after one, oldest first.
async fn history(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    Parameters(asked): Parameters,
) -> Result<Json<History>, Refusal> {
    allow(&grant, Action::Read, &asked.channel)?;
    let is_history = asked.after.is_none();
    let asked = Read {
        channel: asked.channel,
        at: asked.after.or(asked.before),
        limit: asked.limit.unwrap_or(100),
    };
    let (mut events, has_more) = read(&server.0, &asked, is_history).await?;
    if is_history {
        events.reverse();
    }
    Ok(Json(History { events, has_more }))
}

async fn roster(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    Parameters(asked): Parameters,
) -> Result<Json<Vec<Participant>>, Refusal> {
    allow(&grant, Action::Read, &asked.channel)?;
    Ok(Json(server.0.host.roster(&asked.channel)))
}

/// Parameters of `/agents`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfChannel {
    #[serde(default)]
    channel: Option<String>,
}

/// The agents of a channel; without one all that the token may inspect.
async fn agents_of(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    asked: Result<Query<OfChannel>, QueryRejection>,
) -> Result<Json<Agents>, Refusal> {
    let Query(asked) = asked.map_err(|error| Refusal::bad(error.body_text()))?;
    let Some(channel) = asked.channel else {
        let mut agents = server.0.host.agents();
        agents.retain(|key| grant.allows(Action::Inspect, key.channel()));
        if agents.is_empty() {
            // An empty list is no answer for a token without the scope.
            allow(&grant, Action::Inspect, "*")?;
        }
        let known = Vec::new();
        return Ok(Json(Agents { known, agents }));
    };
    allow(&grant, Action::Read, &channel)?;
    Ok(Json(agents(&server.0, &channel)))
}

async fn config(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    Parameters(asked): Parameters,
) -> Result<Json<Value>, Refusal> {
    allow(&grant, Action::Read, &asked.channel)?;
    let store = server.0.host.channel_store();
    Ok(Json(store.channel_config(&asked.channel).await?))
}

/// Events as a stream. Each has its sequence number as id, so that a browser continues after
/// the last one it got.
async fn events(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    headers: HeaderMap,
    Parameters(asked): Parameters,
) -> Result<Sse<impl Stream<Item = Result<axum::response::sse::Event, Infallible>>>, Refusal> {
    allow(&grant, Action::Read, &asked.channel)?;
    let last = headers.get(LAST_EVENT_ID).map(|last| {
        let last = last.to_str().ok().and_then(|last| last.parse().ok());
        last.ok_or_else(|| Refusal::bad(format!("{LAST_EVENT_ID} is a sequence number")))
    });
    let after = last.transpose()?.or(asked.after);
    checked_head(&server.0, &asked.channel, after).await?;
    let host = &server.0.host;
    let events = host
        .subscribe(&asked.channel, after, asked.ephemeral)
        .await?;
    let stopping = server.0.stopping.subscribe();
    let authority = server.0.authority.clone();
    let changed = authority.changed();
    let counted = server.0.metrics.subscribed();
    let state = (events, stopping, authority, changed, grant, counted);
    let metrics = Arc::clone(&server.0.metrics);
    let stream = futures_util::stream::unfold(state, move |mut state| {
        let metrics = Arc::clone(&metrics);
        async move {
            let (events, stopping, authority, changed, grant, _) = &mut state;
            loop {
                let event = tokio::select! {
                    event = events.next() => event.ok()?,
                    _ = stopping.wait_for(|is| *is) => return None,
                    Ok(()) = changed.changed() => match authority.is_valid(grant) {
                        true => continue,
                        false => return None,
                    },
                };
                let Ok(text) = serde_json::to_string(&event) else {
                    continue;
                };
                let mut sse = axum::response::sse::Event::default().data(text);
                if let Some(seq) = event.seq {
                    sse = sse.id(seq.to_string());
                }
                metrics.delivered.inc();
                return Some((Ok(sse), state));
            }
        }
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}
