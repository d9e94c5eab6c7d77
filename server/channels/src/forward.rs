//! What hosts of agents send to a channel server, and what they get: the same over a socket and
//! over HTTP.

use crate::codes::{BAD_SERVER, TOO_LARGE};
use crate::wire::{AgentEvent, Append, Placed, Publish, Published, detached, methods};
use a99_runtime::{AgentError, Body, codes};
use a99_runtime_engine::{Appended, Fence, NewEvent, StoreCode, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The error of a store for an error of a channel server or of the connection to it.
#[must_use]
pub fn store_error(error: &AgentError) -> StoreError {
    let code = match error.code() {
        codes::MESSAGE_TOO_LARGE | TOO_LARGE => StoreCode::TooLarge,
        code => StoreCode::of(code).unwrap_or(match error.is_final() {
            true => StoreCode::Input,
            false => StoreCode::Unavailable,
        }),
    };
    StoreError::new(code, error.to_string())
}

/// Requests of a host of agents to a channel server: over a socket, or over HTTP.
pub trait Requests: Sync {
    /// Sends a request, with bytes after its parameters.
    fn ask<T: DeserializeOwned + Send>(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
        bytes: &[u8],
    ) -> impl Future<Output = Result<T, AgentError>> + Send;

    /// Sends events: those of an agent, under its fence, all or none; others each as the holder
    /// of the token.
    ///
    /// Errors are those of the requests, and `channels.bad_server` for an answer that does not
    /// fit.
    fn forward(
        &self,
        fence: Option<Fence>,
        events: Vec<NewEvent>,
        persist: bool,
    ) -> impl Future<Output = Result<Vec<Appended>, AgentError>> + Send {
        async move {
            let Some(fence) = fence else {
                let mut all = Vec::with_capacity(events.len());
                for new in events {
                    let (publish, bytes) = publish(&new, persist);
                    let answer: Published = self.ask(methods::PUBLISH, &publish, &bytes).await?;
                    all.push(published(new, &answer));
                }
                return Ok(all);
            };
            let mut bytes = Vec::new();
            let append = Append {
                events: events
                    .iter()
                    .map(|new| AgentEvent::of(new.clone(), persist, &mut bytes))
                    .collect(),
                agent: fence.key,
                epoch: fence.epoch,
            };
            let placed: Vec<Placed> = self.ask(methods::APPEND, &append, &bytes).await?;
            appended(events, placed).ok_or_else(|| {
                let message = "the server answers with another number of events";
                AgentError::new(BAD_SERVER, message)
            })
        }
    }
}

/// Events as the server placed them; `None` if it answered for another number of events.
fn appended(events: Vec<NewEvent>, placed: Vec<Placed>) -> Option<Vec<Appended>> {
    if placed.len() != events.len() {
        return None;
    }
    let appended = events.into_iter().zip(placed).map(|(new, placed)| {
        let mut event = new.event;
        (event.seq, event.ts) = (placed.seq, placed.ts);
        Appended {
            channel: new.channel,
            event: Arc::new(event),
            is_new: placed.is_new,
        }
    });
    Some(appended.collect())
}

/// The request that publishes an event as the holder of the token, and the bytes of its
/// attachments.
fn publish(new: &NewEvent, persist: bool) -> (Publish, Vec<u8>) {
    let mut bytes = Vec::new();
    let publish = Publish {
        channel: new.channel.clone(),
        body: new.event.body.clone(),
        participant: None,
        key: persist.then(|| new.event.id.to_string()),
        persist,
        attachments: detached(new.event.attachments.clone(), &mut bytes),
    };
    (publish, bytes)
}

/// An event as the server published it.
fn published(new: NewEvent, published: &Published) -> Appended {
    let mut event = new.event;
    event.seq = published.seq;
    if !matches!(event.body, Body::Message(_)) {
        event.id = published.id;
    }
    Appended {
        channel: new.channel,
        event: Arc::new(event),
        is_new: published.is_new,
    }
}
