//! Requests of programs to a turn, read and checked.

use crate::error::CapabilityError;
use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// Most nested objects that are merged.
pub const MAX_STATE_DEPTH: usize = 128;

/// Longest timer name in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Latest due time of a timer, in milliseconds since the Unix epoch: the end of the year 9999.
const LAST_MS: f64 = 253_402_300_799_999.0;

fn wrong(op: &str, what: &str) -> CapabilityError {
    CapabilityError::new(format!("{op}: {what}"))
}

/// Reader of a request's members.
struct Request<'a> {
    op: &'static str,
    members: &'a Map,
}

impl<'a> Request<'a> {
    fn of(op: &'static str, value: &'a Value) -> Result<Request<'a>, CapabilityError> {
        match value.as_object() {
            Some(members) => Ok(Request { op, members }),
            None => Err(wrong(op, "an object is expected")),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_nullish())
    }

    fn text(&self, name: &str) -> Result<Option<Text>, CapabilityError> {
        match self.get(name).map(|value| (value, value.as_text())) {
            None => Ok(None),
            Some((_, Some(text))) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(self.op, &format!("{name} must be a text"))),
        }
    }

    fn needed(&self, name: &str) -> Result<Text, CapabilityError> {
        self.text(name)?
            .ok_or_else(|| wrong(self.op, &format!("{name} must be a text")))
    }

    fn named(&self, name: &str) -> Result<Text, CapabilityError> {
        let text = self.needed(name)?;
        match text.is_empty() {
            true => Err(wrong(self.op, &format!("{name} must not be empty"))),
            false => Ok(text),
        }
    }

    fn object(&self, name: &str) -> Result<Option<Value>, CapabilityError> {
        match self.get(name) {
            Some(value) if value.as_object().is_none() => {
                Err(wrong(self.op, &format!("{name} must be an object")))
            }
            value => Ok(value.cloned()),
        }
    }

    /// Payload of an event or a timer.
    fn payload(&self) -> Value {
        let payload = self.members.get("payload");
        payload.cloned().unwrap_or(Value::Undefined)
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, CapabilityError> {
        match self.get(name).map(Value::as_bool) {
            None => Ok(None),
            Some(Some(flag)) => Ok(Some(flag)),
            Some(None) => Err(wrong(self.op, &format!("{name} must be true or false"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<f64>, CapabilityError> {
        match self.get(name).map(Value::as_f64) {
            None => Ok(None),
            Some(Some(n)) if (0.0..=LAST_MS).contains(&n) => Ok(Some(n)),
            Some(_) => Err(wrong(
                self.op,
                &format!("{name} must be milliseconds, a number of at least 0"),
            )),
        }
    }
}

/// A message that a program sends.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnMessage {
    /// The text.
    pub content: Text,
    /// The identity of the message that it answers.
    pub reply_to: Option<Text>,
    /// Recipients: handles or identities of participants; empty for everybody.
    pub at: Vec<Text>,
    /// Type of the content.
    pub content_type: Option<Text>,
    /// An object of additional data.
    pub metadata: Option<Value>,
    /// True if more of the message follows, until it is completed.
    pub partial: bool,
}

impl TurnMessage {
    /// Reads a program's message.
    ///
    /// # Errors
    /// A member has the wrong type.
    pub fn read(value: &Value) -> Result<TurnMessage, CapabilityError> {
        let request = Request::of("agentSend", value)?;
        let at = match request.get("at") {
            None => Vec::new(),
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(list)) => {
                let texts = list.iter().map(|one| one.as_text().cloned());
                texts
                    .collect::<Option<Vec<Text>>>()
                    .ok_or_else(|| wrong(request.op, "at must be a text or a list of texts"))?
            }
            Some(_) => return Err(wrong(request.op, "at must be a text or a list of texts")),
        };
        let metadata = request.object("metadata")?;
        Ok(TurnMessage {
            content: request.needed("content")?,
            reply_to: request.text("replyTo")?,
            at,
            content_type: request.text("contentType")?,
            metadata,
            partial: request.flag("partial")?.unwrap_or(false),
        })
    }
}

/// An addition to a message, or its end.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageUpdate {
    /// The identity of the message.
    pub id: Text,
    /// Text to append.
    pub content: Option<Text>,
    /// Type of the content from here on.
    pub content_type: Option<Text>,
    /// True if the message is complete.
    pub complete: bool,
}

impl MessageUpdate {
    /// Reads a program's update.
    ///
    /// # Errors
    /// A member has the wrong type.
    pub fn read(value: &Value) -> Result<MessageUpdate, CapabilityError> {
        let request = Request::of("agentUpdate", value)?;
        Ok(MessageUpdate {
            id: request.named("id")?,
            content: request.text("content")?,
            content_type: request.text("contentType")?,
            complete: request.flag("complete")?.unwrap_or(false),
        })
    }
}

/// Failure of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageFailure {
    /// The identity of the message.
    pub id: Text,
    /// Text of the failure.
    pub error: Text,
    /// A stable code.
    pub code: Option<Text>,
}

impl MessageFailure {
    /// Reads a program's failure of a message.
    ///
    /// # Errors
    /// A member has the wrong type.
    pub fn read(value: &Value) -> Result<MessageFailure, CapabilityError> {
        let request = Request::of("agentFail", value)?;
        Ok(MessageFailure {
            id: request.named("id")?,
            error: request.needed("error")?,
            code: request.text("code")?,
        })
    }
}

/// An event that the agent publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEvent {
    /// Type of the event.
    pub kind: Text,
    /// Payload of the event.
    pub payload: Value,
    /// True to store the event in the channel's log; otherwise only present participants
    /// receive it.
    pub persist: bool,
}

impl TurnEvent {
    /// Reads a program's event.
    ///
    /// # Errors
    /// A member has the wrong type.
    pub fn read(value: &Value) -> Result<TurnEvent, CapabilityError> {
        let request = Request::of("agentPublish", value)?;
        Ok(TurnEvent {
            kind: request.named("type")?,
            payload: request.payload(),
            persist: request.flag("persist")?.unwrap_or(true),
        })
    }
}

/// A call of a participant's method.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnCall {
    /// Handle or identity of the participant.
    pub to: Text,
    /// Name of the method.
    pub method: Text,
    /// Its arguments, an object.
    pub args: Option<Value>,
    /// Milliseconds to wait for the answer.
    pub timeout_ms: Option<f64>,
}

impl TurnCall {
    /// Reads a program's call.
    ///
    /// # Errors
    /// A member has the wrong type.
    pub fn read(value: &Value) -> Result<TurnCall, CapabilityError> {
        let request = Request::of("agentCallMethod", value)?;
        Ok(TurnCall {
            to: request.named("to")?,
            method: request.named("method")?,
            args: request.object("args")?,
            timeout_ms: request.number("timeoutMs")?,
        })
    }
}

/// A part of a method's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnPart {
    /// Identity of the call.
    pub call_id: Text,
    /// The part.
    pub content: Option<Value>,
    /// Progress of the method, 0 to 100.
    pub progress: Option<f64>,
}

impl TurnPart {
    /// Reads a program's part of an answer.
    ///
    /// # Errors
    /// A member has the wrong type.
    pub fn read(value: &Value) -> Result<TurnPart, CapabilityError> {
        let request = Request::of("agentMethodResult", value)?;
        let progress = request.get("progress").map(Value::as_f64);
        let progress = progress.map(|n| n.filter(|n| (0.0..=100.0).contains(n)));
        if progress == Some(None) {
            return Err(wrong(request.op, "progress must be a number from 0 to 100"));
        }
        Ok(TurnPart {
            call_id: request.named("callId")?,
            content: request.get("content").cloned(),
            progress: progress.flatten(),
        })
    }
}

/// An agent to invite or remove.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnGuest {
    /// Name of the agent.
    pub agent: Text,
    /// Its handle on the channel; its name by default.
    pub handle: Text,
    /// Its configuration, an object.
    pub config: Option<Value>,
}

impl TurnGuest {
    /// Reads a program's request for an agent.
    ///
    /// # Errors
    /// A member has the wrong type.
    pub fn read(op: &'static str, value: &Value) -> Result<TurnGuest, CapabilityError> {
        let request = Request::of(op, value)?;
        let agent = request.named("agent")?;
        let handle = request.text("handle")?.filter(|handle| !handle.is_empty());
        Ok(TurnGuest {
            handle: handle.unwrap_or_else(|| agent.clone()),
            agent,
            config: request.object("config")?,
        })
    }
}

/// Due time of a timer.
#[derive(Clone, Debug, PartialEq)]
pub enum TimerDue {
    /// At this time, in milliseconds since the Unix epoch.
    At(f64),
    /// This many milliseconds after the start of the turn.
    After(f64),
    /// Recurring: a cron expression with its time zone, by default UTC.
    Cron(Text, Option<Text>),
}

/// A timer of an agent; names are unique.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnTimer {
    /// Unique name.
    pub name: Text,
    /// Due time.
    pub due: TimerDue,
    /// Payload that the agent receives with the timer.
    pub payload: Value,
}

impl TurnTimer {
    /// Reads a program's timer.
    ///
    /// # Errors
    /// A member has the wrong type, or the request has none or several of `at`, `after` and
    /// `cron`.
    pub fn read(value: &Value) -> Result<TurnTimer, CapabilityError> {
        let request = Request::of("agentSetTimer", value)?;
        let name = named_timer(request.op, request.named("name")?)?;
        let (at, after) = (request.number("at")?, request.number("after")?);
        let (cron, zone) = (request.text("cron")?, request.text("zone")?);
        let due = match (at, after, cron) {
            (Some(at), None, None) => TimerDue::At(at),
            (None, Some(after), None) => TimerDue::After(after),
            (None, None, Some(cron)) => TimerDue::Cron(cron, zone.clone()),
            _ => {
                return Err(wrong(request.op, "one of at, after and cron is needed"));
            }
        };
        if zone.is_some() && !matches!(due, TimerDue::Cron(..)) {
            return Err(wrong(request.op, "zone belongs to cron"));
        }
        Ok(TurnTimer {
            name,
            due,
            payload: request.payload(),
        })
    }
}

/// Reads the name of the timer to cancel.
///
/// # Errors
/// The name is no text, is empty, or is longer than 128 bytes.
pub fn timer_name(name: &Value) -> Result<Text, CapabilityError> {
    let op = "agentCancelTimer";
    let name = name.as_text().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| wrong(op, "name must be a text that is not empty"))?;
    named_timer(op, name.clone())
}

fn named_timer(op: &str, name: Text) -> Result<Text, CapabilityError> {
    if name.len_bytes() > MAX_NAME_BYTES {
        return Err(wrong(
            op,
            &format!("name must have at most {MAX_NAME_BYTES} bytes"),
        ));
    }
    Ok(name)
}

/// Merges `over` into `state`: members of objects are merged at every depth; any other value in
/// `over`, including `null` and lists, replaces the old one.
///
/// # Errors
/// `over` is no object, or both have more than [`MAX_STATE_DEPTH`] nested objects.
pub fn merge_state(op: &str, state: &mut Value, over: Value) -> Result<(), CapabilityError> {
    if over.as_object().is_none() {
        return Err(wrong(op, "an object is expected"));
    }
    // Checked first, so that a refused merge changes nothing. Nothing is copied: the time
    // depends on the size of `over`, not of the state.
    if !can_merge(state, &over, MAX_STATE_DEPTH) {
        return Err(wrong(op, "the objects are too deep to be merged"));
    }
    merge(state, over);
    Ok(())
}

fn member<'a>(under: &'a Map, key: &Text) -> Option<&'a Value> {
    under.get_bytes(key.as_bytes())
}

/// True if at most `depth` nested objects have to be merged. Recursion is as deep.
fn can_merge(under: &Value, over: &Value, depth: usize) -> bool {
    let (Value::Object(under), Value::Object(over)) = (under, over) else {
        return true;
    };
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    over.iter()
        .all(|(key, value)| member(under, key).is_none_or(|old| can_merge(old, value, depth)))
}

/// Merges objects that passed [`can_merge`]; recursion is as deep.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                match key.to_str().and_then(|key| under.get_mut(key)) {
                    Some(old) => merge(old, value),
                    None => drop(under.insert(key, value)),
                }
            }
        }
        (under, over) => *under = over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::value;

    #[test]
    fn states_are_merged_at_every_depth() {
        let mut state = value(r#"{"a": {"b": 1, "c": 2}, "d": [1, 2], "e": 1}"#);
        let over = value(r#"{"a": {"b": 3}, "d": [], "e": null}"#);
        merge_state("x", &mut state, over).unwrap();
        assert_eq!(
            state,
            value(r#"{"a": {"b": 3, "c": 2}, "d": [], "e": null}"#)
        );
        assert!(merge_state("x", &mut state, Value::Null).is_err());
        let deep = || {
            let mut deep = Value::Object(Map::new());
            for _ in 0..1_000 {
                deep = Value::Object([("k", deep)].into_iter().collect());
            }
            deep
        };
        let mut state = deep();
        assert!(merge_state("x", &mut state, deep()).is_err());
        state.dispose();
    }

    /// The time of a merge depends on the merged object, not on the state.
    #[test]
    fn e1_a_large_state_is_merged_in_place() {
        let least = |members: usize| {
            let names = (0..members).map(|n| (format!("m{n}"), Value::from(0.0)));
            let mut state = Value::Object(names.collect());
            let runs = (0..5).map(|_| {
                let start = std::time::Instant::now();
                for n in 0..100 {
                    let over = value(&format!(r#"{{"m1": {n}, "new": {{"n": {n}}}}}"#));
                    merge_state("x", &mut state, over).unwrap();
                }
                start.elapsed()
            });
            runs.min().unwrap_or_default()
        };
        let (small, large) = (least(60), least(60_000));
        assert!(
            large < small * 30,
            "{large:?}, a small state takes {small:?}"
        );
    }

    #[test]
    fn requests_are_checked() {
        let told = |error: CapabilityError| error.to_string();
        let send = |json: &str| TurnMessage::read(&value(json)).map_err(told);
        assert_eq!(
            send(r#"{"content": "x", "at": "ada"}"#).unwrap().at.len(),
            1
        );
        for json in [
            "1",
            "{}",
            r#"{"content": 1}"#,
            r#"{"content": "x", "at": [1]}"#,
            r#"{"content": "x", "metadata": []}"#,
        ] {
            assert!(send(json).unwrap_err().starts_with("agentSend: "), "{json}");
        }
        let timer = |json: &str| TurnTimer::read(&value(json)).map_err(told);
        let due = timer(r#"{"name": "t", "after": 5, "payload": 1}"#)
            .unwrap()
            .due;
        assert_eq!(due, TimerDue::After(5.0));
        for json in [
            r#"{"name": "t"}"#,
            r#"{"name": "", "at": 1}"#,
            r#"{"name": "t", "at": 1, "after": 1}"#,
            r#"{"name": "t", "at": -1}"#,
            r#"{"name": "t", "at": 1, "zone": "UTC"}"#,
        ] {
            assert!(timer(json).is_err(), "{json}");
        }
        assert!(timer_name(&"x".repeat(129).into()).is_err());
        let call = |json: &str| TurnCall::read(&value(json)).map_err(told);
        let made = call(r#"{"to": "b", "method": "m", "timeoutMs": 5}"#).unwrap();
        assert_eq!((made.timeout_ms, made.args), (Some(5.0), None));
        for json in [
            r#"{"to": "b"}"#,
            r#"{"to": "b", "method": "m", "args": [1]}"#,
            r#"{"to": "b", "method": "m", "timeoutMs": -1}"#,
        ] {
            assert!(call(json).unwrap_err().starts_with("agentCallMethod: "));
        }
        let guest = |json: &str| TurnGuest::read("agentInvite", &value(json)).map_err(told);
        assert_eq!(guest(r#"{"agent": "x"}"#).unwrap().handle, "x");
        assert!(guest(r#"{"agent": "x", "config": 1}"#).is_err());
        let part = |json: &str| TurnPart::read(&value(json)).map_err(told);
        assert!(part(r#"{"callId": "c", "progress": 101}"#).is_err());
    }
}
