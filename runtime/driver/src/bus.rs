//! Bus: who is on a channel, and calls of their methods.

use crate::error::{AgentError, codes};
use crate::subscription::Subscription;
use a99_runtime_engine::{AgentKey, Body, Event, Uuid};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a call waits, if neither the caller nor the method says otherwise.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Somebody on a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Participant {
    /// Who.
    pub id: Uuid,
    /// By which it is addressed, without `@`.
    pub handle: String,
    /// Its name for people.
    pub name: String,
    /// `agent`, `panel` for people, others as a host likes.
    #[serde(rename = "type")]
    pub kind: String,
    /// The methods that it has: `name`, `description`, `parameters`, `returns`, `timeout`.
    pub methods: Value,
    /// The agent's key, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentKey>,
    /// What else it says about itself.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Participant {
    /// Whether it has a method; none is known of one that advertises nothing, and it may be
    /// asked.
    pub(crate) fn check_method(&self, name: &str) -> Result<Option<Duration>, AgentError> {
        let methods = self
            .methods
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if methods.is_empty() && (self.agent.is_none() || self.methods.is_null()) {
            return Ok(None);
        }
        let found = methods.iter().find(|method| method["name"] == name);
        let Some(found) = found else {
            let known: Vec<_> = methods.iter().filter_map(|m| m["name"].as_str()).collect();
            let known = match known.is_empty() {
                true => "it has none".to_owned(),
                false => format!("it has {}", known.join(", ")),
            };
            let message = format!("@{} has no method '{name}': {known}", self.handle);
            return Err(AgentError::new(codes::NO_METHOD, message).fatal());
        };
        Ok(found["timeout"].as_u64().map(Duration::from_millis))
    }
}

/// Whether a handle is meant by what somebody wrote: an `@` and the case of letters do not
/// count.
pub(crate) fn is_handle(handle: &str, written: &str) -> bool {
    let written = written.strip_prefix('@').unwrap_or(written);
    handle.eq_ignore_ascii_case(written)
}

/// A part of an answer, or the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// What it says.
    pub content: Option<Value>,
    /// Whether it is the last.
    pub complete: bool,
    /// How far the method is, 0 to 100.
    pub progress: Option<f64>,
}

/// A call of a method that is under way. Its answer stands in the channel's log: a turn that
/// runs again finds it there.
#[derive(Debug)]
pub struct MethodCallHandle {
    pub(crate) call_id: Uuid,
    provider: Uuid,
    pub(crate) results: Subscription,
    limit: Duration,
    is_complete: bool,
    /// Held while it is waited for.
    waiting: Option<Waiting>,
}

impl MethodCallHandle {
    /// Of a call that was published at a place of the channel, and waits for as long as its
    /// caller says, its method, or a minute.
    pub(crate) fn new(
        call_id: Uuid,
        provider: Uuid,
        results: Subscription,
        limits: [Option<Duration>; 2],
        waiting: Option<Waiting>,
    ) -> MethodCallHandle {
        let [caller, method] = limits;
        MethodCallHandle {
            call_id,
            provider,
            results,
            limit: caller.or(method).unwrap_or(CALL_TIMEOUT),
            is_complete: false,
            waiting,
        }
    }

    /// The call.
    #[must_use]
    pub fn call_id(&self) -> Uuid {
        self.call_id
    }

    /// Whether the last part of the answer was given.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The next part of the answer; none after the last.
    ///
    /// # Errors
    /// The provider's error, with its code, `execution-error` if it has none; `timeout`;
    /// those of the store.
    pub async fn next(&mut self) -> Result<Option<Chunk>, AgentError> {
        if self.is_complete {
            return Ok(None);
        }
        let waited = tokio::time::timeout(
            self.limit,
            next(&mut self.results, self.call_id, self.provider),
        );
        let found = waited.await.unwrap_or_else(|_| {
            let message = format!("no answer came within {:?}", self.limit);
            Err(AgentError::new(codes::CALL_TIMEOUT, message))
        });
        if !matches!(&found, Ok(chunk) if !chunk.complete) {
            self.is_complete = true;
            self.waiting = None;
        }
        found.map(Some)
    }

    /// The whole answer: what the last part says.
    ///
    /// # Errors
    /// Those of [`MethodCallHandle::next`]; `cancelled` if all parts were taken before.
    pub async fn result(mut self) -> Result<Value, AgentError> {
        while let Some(chunk) = self.next().await? {
            if chunk.complete {
                return Ok(chunk.content.unwrap_or(Value::Null));
            }
        }
        Err(AgentError::new(
            codes::CANCELLED,
            "the answer was taken before",
        ))
    }
}

async fn next(results: &mut Subscription, call: Uuid, provider: Uuid) -> Result<Chunk, AgentError> {
    loop {
        let event = results.next().await?;
        // Who answers is what the host knows of the sender; others cannot answer.
        if event.sender.id != provider {
            continue;
        }
        if let Some(chunk) = chunk(&event, call) {
            return chunk;
        }
    }
}

fn chunk(event: &Event, call: Uuid) -> Option<Result<Chunk, AgentError>> {
    let Body::MethodResult {
        call_id,
        content,
        complete,
        is_error,
        progress,
    } = &event.body
    else {
        return None;
    };
    if *call_id != call {
        return None;
    }
    if *is_error {
        let content = content.as_ref();
        let text = |name: &str| content.and_then(|content| content[name].as_str());
        let code = text("code").unwrap_or(codes::METHOD_FAILED);
        let message = text("error").map_or_else(
            || content.map_or_else(|| "the method failed".to_owned(), Value::to_string),
            str::to_owned,
        );
        return Some(Err(AgentError::new(code, message)));
    }
    Some(Ok(Chunk {
        content: content.clone(),
        complete: *complete,
        progress: *progress,
    }))
}

/// Who waits for whom: a call that would wait for itself is refused.
#[derive(Debug, Default)]
pub(crate) struct Waits(std::sync::Mutex<HashMap<AgentKey, Vec<AgentKey>>>);

/// That one agent waits for another, while it is held.
pub(crate) struct Waiting(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Waiting {
    /// One that is over by this.
    pub(crate) fn until(over: impl FnOnce() + Send + Sync + 'static) -> Waiting {
        Waiting(Some(Box::new(over)))
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

impl Waits {
    /// Notes that an agent waits for another.
    pub(crate) fn wait(
        self: &Arc<Waits>,
        from: &AgentKey,
        to: &AgentKey,
    ) -> Result<Waiting, AgentError> {
        let mut waits = crate::hub::locked(&self.0);
        let (mut look, mut seen) = (vec![to.clone()], Vec::new());
        while let Some(key) = look.pop() {
            if key == *from {
                let message = format!("{to} waits for {from} already: the call would never end");
                return Err(AgentError::new(codes::WOULD_DEADLOCK, message).fatal());
            }
            if !seen.contains(&key) {
                look.extend(waits.get(&key).into_iter().flatten().cloned());
                seen.push(key);
            }
        }
        waits.entry(from.clone()).or_default().push(to.clone());
        let (waits, from, to) = (Arc::clone(self), from.clone(), to.clone());
        Ok(Waiting::until(move || waits.over(&from, &to)))
    }

    fn over(&self, from: &AgentKey, to: &AgentKey) {
        let mut waits = crate::hub::locked(&self.0);
        if let Some(all) = waits.get_mut(from) {
            if let Some(at) = all.iter().position(|key| key == to) {
                all.swap_remove(at);
            }
            if all.is_empty() {
                waits.remove(from);
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(over) = self.0.take() {
            over();
        }
    }
}

/// What a call has beside its arguments.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// How long it waits; as long as the method says, or a minute.
    pub timeout: Option<Duration>,
    /// A name of the operation in its turn; its place among the turn's calls without one.
    pub name: Option<String>,
}
