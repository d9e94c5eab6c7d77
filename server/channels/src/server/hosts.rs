//! Requests over HTTP of hosts of agents that keep no socket: the contents are those of the
//! socket's messages.

use super::ChannelServer;
use super::error::Refusal;
use super::requests::{allow, allow_configure, append, readable};
use super::rest::{JsonAndBytes, JsonBody, Parameters, Token};
use crate::wire::{Append, Configure, Find, Placed};
use a99_runtime::{Event, Seq};
use a99_server::Action;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;
use std::sync::Arc;

pub(super) fn routes() -> Router<ChannelServer> {
    Router::new()
        .route("/v1/append", post(appended))
        .route("/v1/find", post(find))
        .route("/v1/head", get(head))
        .route("/v1/channels", get(channels))
        .route("/v1/configure", post(configure))
        .layer(DefaultBodyLimit::disable())
}

/// Appends events of an agent. The bytes of attachments follow the JSON.
async fn appended(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonAndBytes(asked, bytes): JsonAndBytes<Append>,
) -> Result<Json<Vec<Placed>>, Refusal> {
    Ok(Json(append(&server.0, &grant, asked, &bytes).await?))
}

async fn find(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonBody(asked): JsonBody<Find>,
) -> Result<Json<Option<Arc<Event>>>, Refusal> {
    allow(&grant, Action::Read, &asked.channel)?;
    let store = server.0.host.channel_store();
    Ok(Json(store.find(&asked.channel, asked.id).await?))
}

async fn head(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    Parameters(asked): Parameters,
) -> Result<Json<Seq>, Refusal> {
    allow(&grant, Action::Read, &asked.channel)?;
    Ok(Json(
        server.0.host.channel_store().head(&asked.channel).await?,
    ))
}

async fn channels(
    State(server): State<ChannelServer>,
    Token(grant): Token,
) -> Result<Json<Vec<(String, Seq)>>, Refusal> {
    Ok(Json(readable(&server.0, &grant).await?))
}

/// Changes a configuration; no event announces it.
async fn configure(
    State(server): State<ChannelServer>,
    Token(grant): Token,
    JsonBody(asked): JsonBody<Configure>,
) -> Result<Json<Value>, Refusal> {
    allow_configure(&grant, &asked.channel)?;
    if asked.announce {
        return Err(Refusal::bad("`announce` needs a socket: send it as false"));
    }
    let store = server.0.host.channel_store();
    let changes = Value::Object(asked.changes);
    Ok(Json(
        store.update_channel_config(&asked.channel, changes).await?,
    ))
}
