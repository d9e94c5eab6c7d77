//! Opaque parts of answers, such as signed reasoning: the service expects them back unchanged
//! with the next request.

use a99_core::value::{Map, Value};

/// An opaque part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Opaque {
    /// Position in the message.
    pub place: Place,
    /// The part, in the service's wire format.
    pub value: Value,
}

/// Position of an opaque part in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The value's members are members of the message.
    Message,
    /// The value is a part of the content, after this many bytes of text and this many tool
    /// calls.
    Content {
        /// Bytes of text before it.
        text: usize,
        /// Tool calls before it.
        calls: usize,
    },
    /// The value's members are members of the tool call with this id.
    Call(String),
}

impl Opaque {
    /// A part at a position.
    pub fn new(place: Place, value: impl Into<Value>) -> Opaque {
        let value = value.into();
        Opaque { place, value }
    }

    /// The part as programs see it in a message: `{at: [text, calls], value}`, `{call, value}`
    /// or `{value}`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut part = Map::new();
        match &self.place {
            Place::Message => {}
            Place::Content { text, calls } => {
                let at = [*text, *calls].map(|n| Value::Number(n as f64));
                part.insert("at", at.to_vec());
            }
            Place::Call(id) => {
                part.insert("call", id.as_str());
            }
        }
        part.insert("value", self.value.clone());
        Value::Object(part)
    }

    /// Reads a part that a program has in this form.
    #[must_use]
    pub fn of_value(part: &Value) -> Option<Opaque> {
        let value = part.get("value")?.clone();
        let count = |n: &Value| {
            let n = n.as_f64()?;
            (n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&n)).then_some(n as usize)
        };
        let place = match (part.get("at"), part.get("call")) {
            (None, None) => Place::Message,
            (None, Some(id)) => Place::Call(id.as_text()?.to_string_lossy().into_owned()),
            (Some(at), _) => {
                let [text, calls] = at.as_array()? else {
                    return None;
                };
                let (text, calls) = (count(text)?, count(calls)?);
                Place::Content { text, calls }
            }
        };
        Some(Opaque { place, value })
    }
}

/// True if a member of an answer's message, or of its tool call, is opaque by its name:
/// reasoning and signatures of services with OpenAI's wire format.
#[must_use]
pub fn is_opaque_member(name: &str) -> bool {
    const WORDS: [&str; 5] = ["reasoning", "thinking", "thought", "signature", "encrypted"];
    const NAMES: [&str; 2] = ["extra_content", "provider_specific_fields"];
    NAMES.contains(&name) || WORDS.iter().any(|word| name.contains(word))
}
