//! Model script: scripted answers and faults. The scripted provider and the mock model server
//! use the same format.

use super::{StopReason, StreamEvent, ToolUse, Usage};
use crate::script::unknown_member;
use a99_core::value::{Map, Value};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The answers of a model, in order.
///
/// As JSON, a list of turns or `{"turns": [TURN, ...]}`. A turn is a text, or an object:
///
/// | member | meaning |
/// |---|---|
/// | `text` | text of the answer, or a list of its pieces |
/// | `thinking` | reasoning before the text, likewise |
/// | `tools` | tool calls: `{"name": NAME, "input": VALUE, "id": TEXT}` |
/// | `stop` | stop reason: `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `refusal`, `content_filter`; by default the fitting one |
/// | `usage` | `{"promptTokens": N, "completionTokens": N, "cachedTokens": N, "writtenTokens": N, "reasoningTokens": N}` |
/// | `when` | a text: the turn answers only requests that contain it in a text |
/// | `delayMs` | milliseconds before each piece |
/// | `status` | an HTTP error status, from 400 on |
/// | `message` | the text of that error |
/// | `retryAfter` | seconds of that error's requested delay |
/// | `fault` | a fault: `{"cut": BYTES}` closes the connection after this many bytes of the answer's body, `{"stall": PIECES}` stops sending after this many pieces, `{"malformed": PIECES}` sends an invalid event after this many pieces |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelScript {
    /// The turns.
    pub turns: Vec<ModelTurn>,
}

/// One scripted answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelTurn {
    /// Pieces of the text.
    pub text: Vec<String>,
    /// Pieces of the reasoning before the text.
    pub thinking: Vec<String>,
    /// Tool calls.
    pub tools: Vec<ToolUse>,
    /// Stop reason; by default the fitting one.
    pub stop: Option<StopReason>,
    /// Tokens; by default estimated from the bytes.
    pub usage: Option<Usage>,
    /// A text that a request must contain for this turn to answer it.
    pub when: Option<String>,
    /// Delay before each piece.
    pub delay: Duration,
    /// HTTP error status from 400 on, sent without an answer.
    pub status: Option<u16>,
    /// Message of that error.
    pub message: Option<String>,
    /// Delay that the error requests.
    pub retry_after: Option<Duration>,
    /// Fault of the answer.
    pub fault: Option<ModelFault>,
}

/// Fault of a turn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ModelFault {
    /// Closes the connection after this many bytes of the body.
    Cut(usize),
    /// Stops sending after this many pieces.
    Stall(usize),
    /// Sends an invalid event after this many pieces.
    Malformed(usize),
}

/// Error of reading a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelScriptError {
    /// JSON pointer to the error.
    pub pointer: String,
    /// Message.
    pub message: String,
}

impl fmt::Display for ModelScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.pointer, self.message),
        }
    }
}

impl std::error::Error for ModelScriptError {}

impl ModelTurn {
    /// A turn with this text.
    pub fn text(text: impl Into<String>) -> ModelTurn {
        ModelTurn {
            text: vec![text.into()],
            ..ModelTurn::default()
        }
    }

    /// A turn with a tool call.
    pub fn tool(id: &str, name: &str, input: Value) -> ModelTurn {
        let used = ToolUse {
            id: id.to_owned(),
            name: name.to_owned(),
            input,
        };
        ModelTurn {
            tools: vec![used],
            ..ModelTurn::default()
        }
    }

    /// Takes the first turn for a request; `says` searches the request's texts.
    pub fn next(turns: &mut VecDeque<ModelTurn>, says: impl Fn(&str) -> bool) -> Option<ModelTurn> {
        let fits = |turn: &ModelTurn| turn.when.as_deref().is_none_or(&says);
        let at = turns.iter().position(fits)?;
        turns.remove(at)
    }

    /// The stop reason.
    #[must_use]
    pub fn stop_reason(&self) -> StopReason {
        let fits = match self.tools.is_empty() {
            true => StopReason::EndTurn,
            false => StopReason::ToolUse,
        };
        self.stop.clone().unwrap_or(fits)
    }

    /// Tokens of the turn, by default one for four bytes.
    #[must_use]
    pub fn tokens(&self, prompt_bytes: usize) -> Usage {
        self.usage.unwrap_or_else(|| {
            let said = self.text.iter().chain(&self.thinking);
            let said: usize = said.map(String::len).sum();
            let text = (said / 4).max(usize::from(said > 0));
            Usage {
                prompt_tokens: (prompt_bytes / 4).max(1) as u64,
                completion_tokens: (text + self.tools.len()) as u64,
                ..Usage::default()
            }
        })
    }

    /// Events of the answer before its usage and end, in order.
    pub fn pieces(&self) -> impl Iterator<Item = StreamEvent> + '_ {
        let thinking = self.thinking.iter().cloned().map(StreamEvent::Thinking);
        let text = self.text.iter().cloned().map(StreamEvent::Text);
        let tools = self.tools.iter().cloned().map(StreamEvent::ToolUse);
        thinking.chain(text).chain(tools)
    }
}

/// Members of a turn.
const MEMBERS: &[&str] = &[
    "text",
    "thinking",
    "tools",
    "stop",
    "usage",
    "when",
    "delayMs",
    "status",
    "message",
    "retryAfter",
    "fault",
];

/// Members of a tool call in a turn.
const TOOL_MEMBERS: &[&str] = &["id", "name", "input"];

/// Members of a turn's usage.
const USAGE_MEMBERS: &[&str] = &[
    "promptTokens",
    "completionTokens",
    "cachedTokens",
    "writtenTokens",
    "reasoningTokens",
];

/// Kinds of faults.
const FAULTS: &[&str] = &["cut", "stall", "malformed"];

/// Longest delay in seconds: an hour.
const MAX_SECONDS: f64 = 3600.0;

type Parsed<T> = Result<T, ModelScriptError>;

fn wrong<T>(pointer: &str, message: impl Into<String>) -> Parsed<T> {
    Err(ModelScriptError {
        pointer: pointer.to_owned(),
        message: message.into(),
    })
}

/// An object that has only the known members.
fn object<'v>(at: &str, value: &'v Value, known: &[&str]) -> Parsed<&'v Map> {
    let Some(map) = value.as_object() else {
        return wrong(at, "expected an object");
    };
    for key in map.keys() {
        if !known.iter().any(|known| *key == **known) {
            return wrong(at, unknown_member(key, known));
        }
    }
    Ok(map)
}

fn text(at: &str, value: &Value) -> Parsed<String> {
    match value.as_text() {
        Some(text) => Ok(text.to_string_lossy().into_owned()),
        None => wrong(at, "expected a text"),
    }
}

/// A text, or a list of its pieces.
fn pieces(at: &str, value: &Value) -> Parsed<Vec<String>> {
    match value.as_array() {
        Some(list) => {
            let pieces = list.iter().enumerate();
            pieces
                .map(|(i, piece)| text(&format!("{at}/{i}"), piece))
                .collect()
        }
        None => Ok(vec![text(at, value)?]),
    }
}

/// A whole number from 0 to `most`.
fn number(at: &str, value: &Value, most: f64) -> Parsed<u64> {
    match value.as_f64() {
        Some(n) if n.fract() == 0.0 && (0.0..=most).contains(&n) => Ok(n as u64),
        _ => wrong(at, format!("expected a whole number from 0 to {most}")),
    }
}

/// A tool call; `place` numbers the calls of the script and gives the default id.
fn tool(at: &str, value: &Value, place: usize) -> Parsed<ToolUse> {
    let map = object(at, value, TOOL_MEMBERS)?;
    let Some(name) = map.get("name") else {
        return wrong(at, "a tool needs a `name`");
    };
    let id = map.get("id").map(|id| text(&format!("{at}/id"), id));
    Ok(ToolUse {
        id: id.transpose()?.unwrap_or_else(|| format!("call_{place}")),
        name: text(&format!("{at}/name"), name)?,
        input: map
            .get("input")
            .cloned()
            .unwrap_or_else(|| Value::Object(Map::new())),
    })
}

fn usage(at: &str, value: &Value) -> Parsed<Usage> {
    let map = object(at, value, USAGE_MEMBERS)?;
    let count = |key: &str| match map.get(key) {
        Some(n) => number(&format!("{at}/{key}"), n, 9e15),
        None => Ok(0),
    };
    Ok(Usage {
        prompt_tokens: count("promptTokens")?,
        completion_tokens: count("completionTokens")?,
        cached_tokens: count("cachedTokens")?,
        written_tokens: count("writtenTokens")?,
        reasoning_tokens: count("reasoningTokens")?,
    })
}

fn fault(at: &str, value: &Value) -> Parsed<ModelFault> {
    let map = object(at, value, FAULTS)?;
    let mut members = map.iter();
    let (Some((key, n)), None) = (members.next(), members.next()) else {
        return wrong(at, format!("expected one of {}", FAULTS.join(", ")));
    };
    let n = number(&format!("{at}/{key}"), n, 1e9)? as usize;
    Ok(match key.as_bytes() {
        b"cut" => ModelFault::Cut(n),
        b"stall" => ModelFault::Stall(n),
        _ => ModelFault::Malformed(n),
    })
}

/// A turn; `before` is the number of tool calls in earlier turns.
fn turn(at: &str, value: &Value, before: usize) -> Parsed<ModelTurn> {
    if value.as_text().is_some() {
        return Ok(ModelTurn::text(text(at, value)?));
    }
    let map = object(at, value, MEMBERS)?;
    let mut turn = ModelTurn::default();
    for (key, value) in map.iter() {
        let at = format!("{at}/{key}");
        match &*key.to_string_lossy() {
            "text" => turn.text = pieces(&at, value)?,
            "thinking" => turn.thinking = pieces(&at, value)?,
            "tools" => {
                let Some(list) = value.as_array() else {
                    return wrong(&at, "expected a list");
                };
                let tools = list.iter().enumerate();
                let tools = tools.map(|(i, used)| tool(&format!("{at}/{i}"), used, before + i));
                turn.tools = tools.collect::<Parsed<_>>()?;
            }
            "stop" => turn.stop = Some(StopReason::named(&text(&at, value)?)),
            "usage" => turn.usage = Some(usage(&at, value)?),
            "when" => turn.when = Some(text(&at, value)?),
            "delayMs" => {
                let ms = number(&at, value, MAX_SECONDS * 1000.0)?;
                turn.delay = Duration::from_millis(ms);
            }
            "status" => match number(&at, value, 599.0)? {
                status @ 400.. => turn.status = Some(status as u16),
                _ => return wrong(&at, "expected an HTTP status from 400 to 599"),
            },
            "message" => turn.message = Some(text(&at, value)?),
            "retryAfter" => {
                let seconds = number(&at, value, MAX_SECONDS)?;
                turn.retry_after = Some(Duration::from_secs(seconds));
            }
            _ => turn.fault = Some(fault(&at, value)?),
        }
    }
    Ok(turn)
}

impl ModelScript {
    /// Reads a script.
    ///
    /// # Errors
    /// The script has an unknown or invalid member, with its place.
    pub fn new(script: &Value) -> Result<ModelScript, ModelScriptError> {
        let (at, list) = match script.as_array() {
            Some(list) => ("", list),
            None => {
                let map = object("", script, &["turns"])?;
                match map.get("turns").map(|turns| turns.as_array()) {
                    Some(Some(list)) => ("/turns", list),
                    _ => return wrong("", "expected a list of turns, or `{\"turns\": [...]}`"),
                }
            }
        };
        let (mut turns, mut tools) = (Vec::new(), 0);
        for (i, value) in list.iter().enumerate() {
            let turn = turn(&format!("{at}/{i}"), value, tools)?;
            tools += turn.tools.len();
            turns.push(turn);
        }
        Ok(ModelScript { turns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_core::json::{Document, Limits};

    fn script(json: &str) -> Result<ModelScript, String> {
        let doc = Document::parse(json, &Limits::default()).unwrap();
        ModelScript::new(&doc.to_value(doc.root())).map_err(|error| error.to_string())
    }

    #[test]
    fn turns_are_read() {
        let read = script(
            r#"{"turns": ["Hi", {"text": ["a", "b"], "thinking": "hm",
                "tools": [{"name": "add", "input": {"a": 1}}, {"id": "x", "name": "sub"}],
                "usage": {"promptTokens": 3}, "delayMs": 5, "stop": "max_tokens"},
                {"status": 429, "retryAfter": 2, "message": "slow down"},
                {"text": "half", "fault": {"cut": 10}}]}"#,
        )
        .unwrap();
        assert_eq!(read.turns.len(), 4);
        assert_eq!(read.turns[0], ModelTurn::text("Hi"));
        let turn = &read.turns[1];
        assert_eq!((&*turn.tools[0].id, &*turn.tools[1].id), ("call_0", "x"));
        assert_eq!(turn.stop_reason(), StopReason::MaxTokens);
        assert_eq!(turn.tokens(0).prompt_tokens, 3);
        assert_eq!(turn.pieces().count(), 5);
        assert_eq!(read.turns[2].status, Some(429));
        assert_eq!(read.turns[3].fault, Some(ModelFault::Cut(10)));
        assert_eq!(script("[]").unwrap(), ModelScript::default());
    }

    #[test]
    fn b6_tools_without_an_id_have_one_that_no_other_turn_has() {
        let read =
            script(r#"[{"tools": [{"name": "a"}, {"name": "b"}]}, {"tools": [{"name": "a"}]}]"#);
        let turns = read.unwrap().turns;
        let ids = turns.iter().flat_map(|turn| &turn.tools);
        let ids: Vec<&str> = ids.map(|used| &*used.id).collect();
        assert_eq!(ids, ["call_0", "call_1", "call_2"]);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (json, error) in [
            ("1", "expected an object"),
            (
                r#"{"turn": []}"#,
                "unknown member `turn`; did you mean `turns`? known are turns",
            ),
            ("[1]", "/0: expected an object"),
            (
                r#"[{"txt": "a"}]"#,
                "/0: unknown member `txt`; did you mean `text`? ",
            ),
            (r#"[{"text": [1]}]"#, "/0/text/0: expected a text"),
            (
                r#"[{"tools": [{"input": 1}]}]"#,
                "/0/tools/0: a tool needs a `name`",
            ),
            (r#"[{"status": 200}]"#, "/0/status: expected an HTTP status"),
            (
                r#"[{"delayMs": -1}]"#,
                "/0/delayMs: expected a whole number",
            ),
            (
                r#"[{"fault": {"cut": 1, "stall": 1}}]"#,
                "/0/fault: expected one of cut",
            ),
            (r#"[{"usage": {"tokens": 1}}]"#, "/0/usage: unknown member"),
        ] {
            let found = script(json).unwrap_err();
            assert!(found.starts_with(error), "{json}: {found}");
        }
    }
}
