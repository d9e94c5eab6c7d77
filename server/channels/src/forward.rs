//! What hosts of agents send to a channel server, and what they get: the same over a socket and
//! over HTTP.

use crate::codes::TOO_LARGE;
use crate::wire::{AgentEvent, Append, Placed, Publish, Published};
use a99_runtime::{AgentError, Body, codes};
use a99_runtime_engine::{Appended, Fence, NewEvent, StoreCode, StoreError};
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

/// The request that appends events of an agent, and the bytes of their attachments.
#[must_use]
pub fn append(fence: Fence, events: &[NewEvent], persist: bool) -> (Append, Vec<u8>) {
    let mut bytes = Vec::new();
    let events = events.iter();
    let events = events.map(|new| AgentEvent::of(new.clone(), persist, &mut bytes));
    let append = Append {
        events: events.collect(),
        agent: fence.key,
        epoch: fence.epoch,
    };
    (append, bytes)
}

/// Events as the server placed them; `None` if it answered for another number of events.
#[must_use]
pub fn appended(events: Vec<NewEvent>, placed: Vec<Placed>) -> Option<Vec<Appended>> {
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

/// The request that publishes an event as the holder of the token, without its attachments.
#[must_use]
pub fn publish(new: &NewEvent, persist: bool) -> Publish {
    Publish {
        channel: new.channel.clone(),
        body: new.event.body.clone(),
        participant: None,
        key: persist.then(|| new.event.id.to_string()),
        persist,
        attachments: Vec::new(),
    }
}

/// An event as the server published it.
#[must_use]
pub fn published(new: NewEvent, published: &Published) -> Appended {
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
