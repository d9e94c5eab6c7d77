//! Conformance suite for every store of agents and channels.
//!
//! [`checks`] lists the checks; a test runs each with its stores and any executor.

mod agents;
mod channels;
mod journal;
mod shards;

use a99_runtime_engine::{
    AgentKey, AgentStore, Attachment, Body, BoxFuture, ChannelStore, Fence, KeyError, Message,
    NewEvent, NewState, Progress, Sender, StoreCode, StoreError, Trigger, TurnCommit, derived,
};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Provides stores to the checks.
pub trait Fixture: Send + Sync {
    /// The store under test.
    type Store: AgentStore + ChannelStore;

    /// Opens the fixture's one store as a new owner of all shards, even if it is open already. It has
    /// [`StoreLimits::SMALL`](crate::StoreLimits::SMALL).
    ///
    /// # Errors
    /// Those of opening.
    fn open(&self) -> Result<Self::Store, StoreError>;

    /// Opens the same store without any shard, beside other owners.
    ///
    /// # Errors
    /// Those of opening.
    fn share(&self) -> Result<Self::Store, StoreError>;
}

/// A violation that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding(String);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Finding {}

impl From<StoreError> for Finding {
    fn from(error: StoreError) -> Finding {
        Finding(format!("{}: {error}", error.code().name()))
    }
}

impl From<KeyError> for Finding {
    fn from(error: KeyError) -> Finding {
        Finding(error.to_string())
    }
}

/// The result of a check.
pub type Outcome = Result<(), Finding>;

/// A check: its name, and a function that runs it on an unused store.
pub type Check<F> = (&'static str, fn(&F) -> BoxFuture<'_, Outcome>);

/// All checks.
#[must_use]
pub fn checks<F: Fixture>() -> Vec<Check<F>> {
    let mut checks = agents::checks();
    checks.extend(journal::checks());
    checks.extend(channels::checks());
    checks.extend(shards::checks());
    checks
}

/// Fails with the expectation if it does not hold.
fn holds(it_does: bool, what: &str) -> Outcome {
    match it_does {
        true => Ok(()),
        false => Err(Finding(format!("expected: {what}"))),
    }
}

fn same<T: PartialEq + fmt::Debug>(found: &T, expected: &T, what: &str) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(Finding(format!(
            "{what}: {found:?} where {expected:?} was expected"
        ))),
    }
}

/// Fails unless the operation was refused with this code.
fn refused<T: fmt::Debug>(result: Result<T, StoreError>, code: StoreCode, what: &str) -> Outcome {
    match result {
        Err(error) if error.code() == code => Ok(()),
        other => Err(Finding(format!(
            "{what}: {other:?} where {} was expected",
            code.name()
        ))),
    }
}

/// Drives futures concurrently.
async fn joined<T>(mut futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut ended: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(move |cx| {
        for (future, end) in futures.iter_mut().zip(&mut ended) {
            if end.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(cx)
            {
                *end = Some(output);
            }
        }
        match ended.iter().all(Option::is_some) {
            true => Poll::Ready(ended.drain(..).flatten().collect()),
            false => Poll::Pending,
        }
    })
    .await
}

fn key(handle: &str) -> Result<AgentKey, Finding> {
    Ok(AgentKey::new("echo", "general", handle)?)
}

fn fence(store: &impl AgentStore, key: &AgentKey) -> Fence {
    Fence {
        key: key.clone(),
        epoch: store.epoch(key),
    }
}

/// A message of an agent on its channel, with an identity derived from `id`.
fn said(key: &AgentKey, id: &str, text: &str) -> NewEvent {
    let (sender, body) = (
        Arc::new(Sender::agent(key)),
        Body::Message(Message::text(text)),
    );
    NewEvent::new(key.channel(), derived(&[id]), sender, 1, body)
}

fn attached(mut event: NewEvent, data: &[u8]) -> NewEvent {
    event.event.attachments.push(Attachment {
        id: "1".to_owned(),
        mime_type: "text/plain".to_owned(),
        name: None,
        data: data.to_vec(),
    });
    event
}

fn state(n: u64) -> String {
    format!("{{\"n\":{n}}}")
}

/// The `n`th turn of an agent, from 1, which counts and sends the count. After it state,
/// revision and checkpoint are `n`.
fn turn(fence: Fence, n: u64) -> TurnCommit {
    let id = format!("{} {n}", fence.key);
    let said = said(&fence.key, &id, &n.to_string());
    let mut commit = TurnCommit::new(fence, n);
    commit.trigger = Some(Trigger::Event(n));
    commit.progress = Some(Progress {
        checkpoint: n,
        ..Progress::default()
    });
    commit.state = Some(NewState {
        json: state(n),
        version: 1,
        base: n - 1,
    });
    commit.outbox.push(said);
    commit
}
