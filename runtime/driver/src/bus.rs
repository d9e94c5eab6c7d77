//! Bus: the participants of a channel, and calls of their methods.

use crate::error::{AgentError, codes};
use crate::subscription::Subscription;
use a99_runtime_engine::{AgentKey, Attachment, Body, Event, Uuid};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The timeout of a call when neither the caller nor the method sets one.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A participant of a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Participant {
    /// The participant's identity.
    pub id: Uuid,
    /// The handle by which others address it, without `@`.
    pub handle: String,
    /// The display name.
    pub name: String,
    /// `agent`, `panel` for people, or a kind that the host defines.
    #[serde(rename = "type")]
    pub kind: String,
    /// The advertised methods: `name`, `description`, `parameters`, `returns`, `timeout`.
    pub methods: Value,
    /// The agent's key, if the participant is an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentKey>,
    /// Further published metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Participant {
    /// Checks that the participant has a method, and gives the method's timeout. A participant
    /// whose methods are unknown may still be called.
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

/// Whether `written` names this handle: a leading `@` and letter case are ignored.
pub(crate) fn is_handle(handle: &str, written: &str) -> bool {
    let written = written.strip_prefix('@').unwrap_or(written);
    handle.eq_ignore_ascii_case(written)
}

/// The participant of a roster that `written` names: by its handle, of which a leading `@` and
/// letter case are ignored, or by its identity.
///
/// # Errors
/// `provider-not-found` with the handles of the roster.
pub fn find_participant<'a>(
    roster: &'a [Participant],
    written: &str,
) -> Result<&'a Participant, AgentError> {
    let by_handle = roster.iter().find(|who| is_handle(&who.handle, written));
    let by_id = || {
        let id = Uuid::parse_str(written).ok()?;
        roster.iter().find(|who| who.id == id)
    };
    by_handle.or_else(by_id).ok_or_else(|| {
        let handles = roster.iter().map(|who| format!("@{}", who.handle));
        let there = match roster.is_empty() {
            true => "nobody is there".to_owned(),
            false => format!("there are {}", handles.collect::<Vec<_>>().join(", ")),
        };
        let shown: String = written.chars().take(60).collect();
        let message = format!("nobody on the channel is called {shown:?}: {there}");
        AgentError::new(codes::NOBODY, message)
    })
}

/// One part of a method's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The part's content.
    pub content: Option<Value>,
    /// The content type, if the method gives one.
    pub content_type: Option<String>,
    /// Whether this is the last part.
    pub complete: bool,
    /// Progress of the method, 0 to 100.
    pub progress: Option<f64>,
    /// Attached bytes.
    pub attachments: Vec<Attachment>,
}

/// The whole answer of a method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodAnswer {
    /// The content of the last part.
    pub content: Value,
    /// Its content type, if the method gives one.
    pub content_type: Option<String>,
    /// The bytes attached to the last part.
    pub attachments: Vec<Attachment>,
}

/// A pending call of a method. The answer is in the channel's log: when the turn is retried, it
/// finds the answer there.
#[derive(Debug)]
pub struct MethodCallHandle {
    pub(crate) call_id: Uuid,
    provider: Uuid,
    pub(crate) results: Subscription,
    limit: Duration,
    is_complete: bool,
    is_error: bool,
    /// Registers the wait for deadlock detection while it is held.
    waiting: Option<Waiting>,
}

impl MethodCallHandle {
    /// A call published at a sequence number of the channel. The timeout is the caller's, then
    /// the method's, then one minute.
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
            is_error: false,
            waiting,
        }
    }

    /// The call's identity.
    #[must_use]
    pub fn call_id(&self) -> Uuid {
        self.call_id
    }

    /// The channel's name.
    #[must_use]
    pub fn channel(&self) -> &str {
        self.results.channel()
    }

    /// Whether the last part of the answer has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the call failed: by the method's error, a timeout or a fault of the store.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The next part of the answer; `None` after the last.
    ///
    /// # Errors
    /// The provider's error with its code, by default `execution-error`; `timeout`; errors of
    /// the store.
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
        self.is_error = found.is_err();
        if !matches!(&found, Ok(chunk) if !chunk.complete) {
            self.is_complete = true;
            self.waiting = None;
        }
        found.map(Some)
    }

    /// The whole answer: the content of the last part.
    ///
    /// # Errors
    /// Those of [`MethodCallHandle::next`]; `cancelled` if all parts were already taken.
    pub async fn result(self) -> Result<Value, AgentError> {
        Ok(self.answer().await?.content)
    }

    /// The whole answer with its attachments.
    ///
    /// # Errors
    /// Those of [`MethodCallHandle::result`].
    pub async fn answer(mut self) -> Result<MethodAnswer, AgentError> {
        while let Some(chunk) = self.next().await? {
            if chunk.complete {
                return Ok(MethodAnswer {
                    content: chunk.content.unwrap_or(Value::Null),
                    content_type: chunk.content_type,
                    attachments: chunk.attachments,
                });
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
        // The host authenticates senders: only the provider can answer.
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
        content_type,
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
        content_type: content_type.clone(),
        complete: *complete,
        progress: *progress,
        attachments: event.attachments.clone(),
    }))
}

/// The wait-for graph of agents: a call that would deadlock is refused.
#[derive(Debug, Default)]
pub(crate) struct Waits(std::sync::Mutex<HashMap<AgentKey, Vec<AgentKey>>>);

/// An edge of the wait-for graph; dropping it removes the edge.
pub(crate) struct Waiting(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Waiting {
    /// A wait that calls `over` when it ends.
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
    /// Registers that one agent waits for another.
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

/// Options of a call.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The timeout; defaults to the method's, then one minute.
    pub timeout: Option<Duration>,
    /// A name that identifies the operation in its turn; by default its position among the
    /// turn's calls.
    pub name: Option<String>,
    /// The call's identity, of callers that are not agents: calling again under it gives the
    /// answer of the first call. By default a new one.
    pub id: Option<Uuid>,
}
