//! Turn of a program agent: maps the program's requests to the host's turn.

use super::lock;
use crate::bus::CallOptions;
use crate::error::{AgentError, codes};
use crate::event_bus::EventBus;
use crate::methods::MethodCall;
use crate::turn::{SendOptions, TurnClient};
use a99_capabilities::{
    AgentTurn, CapabilityError, Done, MessageFailure, MessageUpdate, Reply, ScanMeter, TimerDue,
    TurnCall, TurnEvent, TurnGuest, TurnMessage, TurnPart, TurnQuery, TurnTimer, timer_name,
};
use a99_core::diag::excerpt;
use a99_core::text::{Text, surrogate_at};
use a99_runtime_engine::{
    Body, Event, MAX_JSON_DEPTH, StepCount, Trigger, Uuid, deep_merge_into, json_depth,
};
use agent99::Value;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A host's turn, as its program may act on it.
pub(super) struct HostTurn {
    client: TurnClient,
    /// The time of the first attempt in milliseconds since the Unix epoch: "in ten minutes" is
    /// the same time at every retry.
    began: u64,
    changed: Mutex<Changed>,
    /// The participants that it found by their handles.
    handles: Mutex<BTreeMap<String, Uuid>>,
    /// How often it made each operation that acts at once.
    made: Mutex<BTreeMap<String, u32>>,
    /// Names of the agents that it may invite and remove.
    guests: Arc<[String]>,
}

/// A program's changes of its agent.
#[derive(Clone, Debug)]
pub(super) struct Changed {
    /// The state, an object.
    pub(super) state: Json,
    pub(super) settings: Json,
    /// The changes merged over the settings, an object.
    pub(super) laid: Option<Json>,
}

/// Converts a value to JSON that stores and other agents can read again.
pub(super) fn json_of(value: &Value) -> Result<Json, CapabilityError> {
    match unstorable(value, 0) {
        None => Ok(value.to_json()),
        Some(Unstorable::Depth) => Err(CapabilityError::new(format!(
            "the value is nested {} levels deep, and what an agent keeps or sends has at most \
             {MAX_JSON_DEPTH}",
            json_depth(&value.to_json_string())
        ))),
        Some(Unstorable::Surrogate(half, path)) => Err(CapabilityError::new(format!(
            "the text at `{path}` has the lone surrogate {half}, which UTF-8 has no form for: \
             replace it with `toWellFormed()`"
        ))),
    }
}

/// Why JSON text cannot carry a value.
enum Unstorable {
    /// More than [`MAX_JSON_DEPTH`] levels.
    Depth,
    /// An unpaired surrogate in a text or a key, escaped, and the JSON pointer to it.
    Surrogate(String, String),
}

/// Recursion is bounded by [`MAX_JSON_DEPTH`].
fn unstorable(value: &Value, depth: usize) -> Option<Unstorable> {
    let in_text = |text: &Text, path: String| {
        let bytes = text.as_bytes();
        let half = (0..bytes.len()).find_map(|at| surrogate_at(&bytes[at..]))?;
        Some(Unstorable::Surrogate(format!("\\u{half:04x}"), path))
    };
    let within = |name: &dyn std::fmt::Display, found| match found {
        Unstorable::Surrogate(half, path) => Unstorable::Surrogate(half, format!("/{name}{path}")),
        Unstorable::Depth => Unstorable::Depth,
    };
    match value {
        Value::String(text) => in_text(text, String::new()),
        Value::Array(_) | Value::Object(_) if depth == MAX_JSON_DEPTH => Some(Unstorable::Depth),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| unstorable(item, depth + 1).map(|found| within(&at, found))),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let found = in_text(key, String::new()).or_else(|| unstorable(member, depth + 1))?;
            let name = key.to_string_lossy().replace('~', "~0").replace('/', "~1");
            Some(within(&excerpt(&name), found))
        }),
        _ => None,
    }
}

fn refused(error: AgentError) -> CapabilityError {
    CapabilityError::new(format!("{}: {error}", error.code()))
}

/// Charge of one step of SQLite's machine, in bytes scanned by a store.
const STEP_BYTES: u64 = 4;

/// Adds the steps of statements to the scan meter, also after errors.
struct Counted {
    steps: Arc<StepCount>,
    scanned: Option<Arc<ScanMeter>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(scanned) = &self.scanned {
            scanned.add(self.steps.taken().saturating_mul(STEP_BYTES));
        }
    }
}

/// A parameter of a statement; undefined becomes null.
fn parameter(value: &Value) -> Result<Json, CapabilityError> {
    match value {
        Value::Undefined => Ok(Json::Null),
        value => json_of(value),
    }
}

/// A row as a program value. It refuses integers that a program would round.
fn row(found: &Json) -> Result<Value, CapabilityError> {
    /// Doubles represent larger integers inexactly.
    const EXACT: u64 = 1 << 53;
    for (name, value) in found.as_object().into_iter().flatten() {
        if value.as_i64().is_some_and(|n| n.unsigned_abs() > EXACT) {
            let text = format!(
                "store.input: the column {name:?} has {value}, which a program would round: write \
                 CAST({name} AS TEXT)"
            );
            return Err(CapabilityError::new(text));
        }
    }
    Ok(Value::from(found))
}

fn id_of(text: &str) -> Result<Uuid, CapabilityError> {
    text.parse().map_err(|_| {
        let shown = excerpt(text);
        CapabilityError::new(format!(
            "agentTurn: `{shown}` is the identity of no message"
        ))
    })
}

impl HostTurn {
    /// A turn with the time of its first attempt, and the agent's state and settings.
    pub(super) fn new(
        client: TurnClient,
        began: f64,
        state: Map<String, Json>,
        settings: Json,
        guests: Arc<[String]>,
    ) -> HostTurn {
        HostTurn {
            began: millis(began),
            client,
            changed: Mutex::new(Changed {
                state: Json::Object(state),
                settings,
                laid: None,
            }),
            handles: Mutex::default(),
            made: Mutex::default(),
            guests,
        }
    }

    /// The participants that the program found by their handles.
    pub(super) fn handles(&self) -> BTreeMap<String, Uuid> {
        lock(&self.handles).clone()
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        lock(&self.changed)
    }

    /// The program's changes.
    pub(super) fn end(&self) -> Changed {
        self.changed().clone()
    }

    /// The participants of these handles or identities.
    fn addressees(&self, written: &[Text]) -> Result<Vec<Uuid>, CapabilityError> {
        let found = written.iter().map(|one| {
            let text = one.to_string_lossy();
            match text.parse::<Uuid>() {
                Ok(id) => Ok(id),
                Err(_) => {
                    let ids = self.client.resolve_handles(&[&*text]).map_err(refused)?;
                    let none = || CapabilityError::new("agentSend: nobody is called so");
                    let id = ids.first().copied().ok_or_else(none)?;
                    lock(&self.handles).insert(text.into_owned(), id);
                    Ok(id)
                }
            }
        });
        found.collect()
    }

    async fn sent(&self, message: Value) -> Result<Value, CapabilityError> {
        let message = TurnMessage::read(&message)?;
        let text = |text: &Text| text.to_string_lossy().into_owned();
        let reply_to = message.reply_to.as_ref().map(|id| id_of(&text(id)));
        let options = SendOptions {
            reply_to: reply_to.transpose()?,
            at: self.addressees(&message.at)?,
            content_type: message.content_type.as_ref().map(text),
            metadata: message.metadata.as_ref().map(json_of).transpose()?,
            ..SendOptions::default()
        };
        let sent = self.client.send_with(text(&message.content), options);
        let id = sent.await.map_err(refused)?.message_id;
        Ok(Value::from(id.to_string()))
    }

    async fn updated(&self, update: Value) -> Result<(), CapabilityError> {
        let update = MessageUpdate::read(&update)?;
        let id = id_of(&update.id.to_string_lossy())?;
        if let Some(content) = &update.content {
            let content = content.to_string_lossy().into_owned();
            self.client.update(id, content).await.map_err(refused)?;
        }
        if update.complete {
            self.client.complete(id).await.map_err(refused)?;
        }
        Ok(())
    }

    async fn failed(&self, failure: Value) -> Result<(), CapabilityError> {
        let failure = MessageFailure::read(&failure)?;
        let id = id_of(&failure.id.to_string_lossy())?;
        let error = failure.error.to_string_lossy().into_owned();
        let code = failure.code.map(|code| code.to_string_lossy().into_owned());
        let failed = self.client.error(id, error, code).await;
        failed.map(drop).map_err(refused)
    }

    async fn published(&self, event: Value) -> Result<Value, CapabilityError> {
        let event = TurnEvent::read(&event)?;
        let payload = json_of(&event.payload)?;
        let kind = event.kind.to_string_lossy().into_owned();
        let published = self.client.published(kind, payload, event.persist);
        Ok(Value::from(published.await.map_err(refused)?.to_string()))
    }

    /// Runs a statement on the agent's tables, and charges its scan.
    async fn stored(
        &self,
        how: TurnQuery,
        sql: Value,
        params: Value,
        scanned: Option<Arc<ScanMeter>>,
    ) -> Result<Value, CapabilityError> {
        let Some(sql) = sql.as_text() else {
            return Err(CapabilityError::new("agentTurn: the SQL must be a text"));
        };
        let sql = sql.to_string_lossy().into_owned();
        let params = match &params {
            Value::Undefined | Value::Null => Vec::new(),
            Value::Array(values) => values.iter().map(parameter).collect::<Result<_, _>>()?,
            _ => return Err(CapabilityError::new("agentTurn: params must be a list")),
        };
        let most = scanned.as_ref().map_or(u64::MAX, |scanned| scanned.left());
        let counted = Counted {
            steps: Arc::new(StepCount::up_to(most / STEP_BYTES)),
            scanned,
        };
        let storage = self.client.storage().map_err(refused)?;
        let storage = storage.repeatable().counted(Arc::clone(&counted.steps));
        match how {
            TurnQuery::Exec => {
                storage.exec(&sql).await.map_err(refused)?;
                Ok(Value::Undefined)
            }
            TurnQuery::Run => {
                let done = storage.run(&sql, params).await.map_err(refused)?;
                let done = json!({
                    "changes": done.changes,
                    "lastInsertRowId": done.last_insert_rowid,
                });
                row(&done)
            }
            TurnQuery::Get => match storage.get(&sql, params).await.map_err(refused)? {
                Some(found) => row(&Json::Object(found)),
                None => Ok(Value::Undefined),
            },
            TurnQuery::All => {
                let found = storage.query(&sql, params).await.map_err(refused)?;
                let rows = found.into_iter().map(|found| row(&Json::Object(found)));
                Ok(Value::Array(rows.collect::<Result<_, _>>()?))
            }
        }
    }

    /// A name for an operation that acts at once: the same whenever the turn runs, in whatever
    /// order it makes several.
    fn once(&self, what: &Json) -> String {
        let text = what.to_string();
        let mut made = lock(&self.made);
        let n = made.entry(text.clone()).or_default();
        *n += 1;
        format!("{text} {n}")
    }

    /// The handle of a participant that is named by its handle or identity.
    fn handle_of(&self, written: &Text) -> Result<String, CapabilityError> {
        let written = written.to_string_lossy();
        let Ok(id) = written.parse::<Uuid>() else {
            return Ok(written.into_owned());
        };
        let found = self.client.roster().into_iter().find(|who| who.id == id);
        let none = || CapabilityError::new(format!("{}: nobody has this identity", codes::NOBODY));
        found.map(|who| who.handle).ok_or_else(none)
    }

    async fn called(&self, call: Value) -> Result<Value, CapabilityError> {
        let call = TurnCall::read(&call)?;
        let to = self.handle_of(&call.to)?;
        let method = call.method.to_string_lossy().into_owned();
        let args = call.args.as_ref().map(json_of).transpose()?;
        let args = args.unwrap_or_else(|| json!({}));
        let options = CallOptions {
            timeout: call.timeout_ms.map(|ms| Duration::from_millis(millis(ms))),
            name: Some(self.once(&json!([to, method, args]))),
            ..CallOptions::default()
        };
        let call = self.client.call_method(&to, &method, args, options);
        let answer = call.await.map_err(refused)?.result().await;
        Ok(Value::from(&answer.map_err(refused)?))
    }

    async fn answered(&self, part: Value) -> Result<(), CapabilityError> {
        let part = TurnPart::read(&part)?;
        let call_id = id_of(&part.call_id.to_string_lossy())?;
        let content = part.content.as_ref().map(json_of).transpose()?;
        let name = self.once(&json!([call_id, content, part.progress]));
        let inner = &self.client.0;
        let id = inner.operation("result", Some(&name)).map_err(refused)?;
        let body = Body::MethodResult {
            call_id,
            content,
            content_type: None,
            complete: false,
            is_error: false,
            progress: part.progress,
        };
        let sent = inner.immediate(inner.event(id, body, Vec::new()));
        sent.await.map(drop).map_err(refused)
    }

    /// An agent that the host lets the program invite and remove, with its handle.
    fn guest(&self, guest: &TurnGuest) -> Result<[String; 2], CapabilityError> {
        let [name, handle] = [&guest.agent, &guest.handle].map(|text| text.to_string_lossy());
        if !self.guests.iter().any(|guest| *guest == name) {
            let text = format!(
                "{}: the host does not let this agent invite `{}`",
                codes::NOT_ALLOWED,
                excerpt(&name)
            );
            return Err(CapabilityError::new(text));
        }
        Ok([name.into_owned(), handle.into_owned()])
    }

    async fn invited(&self, guest: Value) -> Result<Value, CapabilityError> {
        let guest = TurnGuest::read("agentInvite", &guest)?;
        let [name, handle] = self.guest(&guest)?;
        let config = guest.config.as_ref().map(json_of).transpose()?;
        let config = config.unwrap_or_else(|| json!({}));
        let key = self.client.invite_agent(&name, &handle, config).await;
        Ok(Value::from(key.map_err(refused)?.as_str()))
    }

    async fn removed(&self, guest: Value) -> Result<Value, CapabilityError> {
        let [name, handle] = self.guest(&TurnGuest::read("agentRemove", &guest)?)?;
        let was_there = self.client.remove_agent(&name, &handle).await;
        Ok(Value::from(was_there.map_err(refused)?))
    }

    fn timer(&self, timer: &Value) -> Result<(), CapabilityError> {
        let timer = TurnTimer::read(timer)?;
        let name = timer.name.to_string_lossy().into_owned();
        let payload = json_of(&timer.payload)?;
        let set = match timer.due {
            TimerDue::At(at) => self.client.set_timer(name, millis(at), payload),
            TimerDue::After(after) => {
                let after = millis(after);
                self.client
                    .set_timer_after(name, self.began, after, payload)
            }
            TimerDue::Cron(cron, zone) => {
                let zone = zone.map(|zone| zone.to_string_lossy().into_owned());
                let cron = cron.to_string_lossy();
                self.client.set_cron(name, &cron, zone.as_deref(), payload)
            }
        };
        set.map_err(refused)
    }
}

/// Converts a clock's time, or a program's time that was already checked.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate, and NaN is 0"
)]
fn millis(time: f64) -> u64 {
    time as u64
}

fn now<'a, T: Send + 'a>(
    result: Result<T, CapabilityError>,
) -> std::pin::Pin<Box<dyn Future<Output = Result<T, CapabilityError>> + Send + 'a>> {
    Box::pin(std::future::ready(result))
}

impl AgentTurn for HostTurn {
    fn state(&self) -> Reply<'_> {
        now(Ok(Value::from(&self.changed().state)))
    }

    fn set_state(&self, state: Value, replace: bool) -> Done<'_> {
        now(json_of(&state).and_then(|over| {
            if !over.is_object() {
                return Err(CapabilityError::new("agentSetState: an object is expected"));
            }
            // Merge in place: a call's charge follows the size of its input, not of the state.
            let mut changed = self.changed();
            match replace {
                true => changed.state = over,
                false => deep_merge_into(&mut changed.state, &over),
            }
            Ok(())
        }))
    }

    fn settings(&self) -> Reply<'_> {
        now(Ok(Value::from(&self.changed().settings)))
    }

    fn set_settings(&self, settings: Value) -> Done<'_> {
        now(json_of(&settings).and_then(|over| {
            if !over.is_object() {
                return Err(CapabilityError::new(
                    "agentSetSettings: an object is expected",
                ));
            }
            let mut changed = self.changed();
            deep_merge_into(&mut changed.settings, &over);
            deep_merge_into(changed.laid.get_or_insert_with(|| json!({})), &over);
            Ok(())
        }))
    }

    fn identity(&self) -> Reply<'_> {
        now(Ok(Value::from(&identity(&self.client))))
    }

    fn send(&self, message: Value) -> Reply<'_> {
        Box::pin(self.sent(message))
    }

    fn update(&self, update: Value) -> Done<'_> {
        Box::pin(self.updated(update))
    }

    fn fail(&self, failure: Value) -> Done<'_> {
        Box::pin(self.failed(failure))
    }

    fn publish(&self, event: Value) -> Reply<'_> {
        Box::pin(self.published(event))
    }

    fn set_timer(&self, timer: Value) -> Done<'_> {
        now(self.timer(&timer))
    }

    fn cancel_timer(&self, name: Value) -> Done<'_> {
        now(timer_name(&name).and_then(|name| {
            let name = name.to_string_lossy().into_owned();
            self.client.cancel_timer(name).map_err(refused)
        }))
    }

    fn roster(&self) -> Reply<'_> {
        let roster = serde_json::to_value(self.client.roster());
        let roster = roster.map_err(|error| CapabilityError::new(error.to_string()));
        now(roster.map(|roster| Value::from(&roster)))
    }

    fn call_method(&self, call: Value) -> Reply<'_> {
        Box::pin(self.called(call))
    }

    fn method_result(&self, part: Value) -> Done<'_> {
        Box::pin(self.answered(part))
    }

    fn invite(&self, guest: Value) -> Reply<'_> {
        Box::pin(self.invited(guest))
    }

    fn remove(&self, guest: Value) -> Reply<'_> {
        Box::pin(self.removed(guest))
    }

    fn has_storage(&self) -> bool {
        self.client.has_storage()
    }

    fn storage(&self, how: TurnQuery, sql: Value, params: Value) -> Reply<'_> {
        Box::pin(self.stored(how, sql, params, None))
    }

    fn storage_counted(
        &self,
        how: TurnQuery,
        sql: Value,
        params: Value,
        scanned: Arc<ScanMeter>,
    ) -> Reply<'_> {
        Box::pin(self.stored(how, sql, params, Some(scanned)))
    }
}

/// The agent's identity, as its program sees it.
pub(super) fn identity(client: &TurnClient) -> Json {
    let key = &client.identity().key;
    json!({
        "agent": key.agent(),
        "channel": key.channel(),
        "handle": key.handle(),
        "id": key.as_str(),
        "participant": key.participant(),
    })
}

/// An event as a program sees it.
pub(super) fn event(event: &Event) -> Json {
    let mut json = serde_json::to_value(event).unwrap_or_default();
    if let (Body::Message(message), Json::Object(members)) = (&event.body, &mut json)
        && message.id.is_nil()
    {
        members.insert("id".to_owned(), json!(event.id));
    }
    json
}

/// Interrupted turns that will not be retried, as a program sees them.
pub(super) fn lost(lost: &[Trigger]) -> Json {
    let lost = lost.iter().map(|trigger| match trigger {
        Trigger::Event(seq) => json!({"type": "event", "seq": seq}),
        Trigger::Timer(name, due) => json!({"type": "timer", "name": name, "due": due}),
        Trigger::Once(_) => json!({"type": "hook"}),
    });
    json!({"type": "lost", "lost": lost.collect::<Vec<_>>()})
}

/// A method call as a program sees it, in the form of its event.
pub(super) fn method_call(name: &str, call: &MethodCall) -> Json {
    json!({
        "type": "method-call",
        "callId": call.call_id,
        "methodName": name,
        "args": call.args,
        "sender": call.caller,
    })
}
