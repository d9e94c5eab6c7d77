//! Suite of what every store of agents and channels does, whatever it is made of.
//!
//! [`checks`] lists what is checked; a test runs each with stores of its own and any
//! executor.

mod agents;
mod channels;
mod journal;

use a99_runtime_engine::{
    AgentKey, AgentStore, Attachment, Body, BoxFuture, ChannelStore, Fence, KeyError, Message,
    NewEvent, NewState, Progress, Sender, StoreCode, StoreError, Trigger, TurnCommit, derived,
};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Where stores come from.
pub trait Fixture: Send + Sync {
    /// A store.
    type Store: AgentStore + ChannelStore;

    /// Opens the one store of this fixture, past whoever has it open: another owner. It has
    /// [`StoreLimits::SMALL`](crate::StoreLimits::SMALL).
    ///
    /// # Errors
    /// Those of opening.
    fn open(&self) -> Result<Self::Store, StoreError>;
}

/// What a store did that it should not.
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

/// What a check found.
pub type Outcome = Result<(), Finding>;

/// A check: its name, and what it does with a store that nobody used.
pub type Check<F> = (&'static str, fn(&F) -> BoxFuture<'_, Outcome>);

/// All checks.
#[must_use]
pub fn checks<F: Fixture>() -> Vec<Check<F>> {
    let mut checks = agents::checks();
    checks.extend(journal::checks());
    checks.extend(channels::checks());
    checks
}

/// Fails with what was expected, where it does not hold.
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

/// Fails if something was done, or refused for another reason.
fn refused<T: fmt::Debug>(result: Result<T, StoreError>, code: StoreCode, what: &str) -> Outcome {
    match result {
        Err(error) if error.code() == code => Ok(()),
        other => Err(Finding(format!(
            "{what}: {other:?} where {} was expected",
            code.name()
        ))),
    }
}

/// Drives futures at the same time.
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

/// What an agent says on its channel, under the identity of some text.
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

/// The `n`th turn of an agent, from 1, which counts and says so. After it state, revision
/// and checkpoint are `n`.
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
