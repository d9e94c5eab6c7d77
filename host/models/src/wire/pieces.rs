//! Tools in pieces: inputs that come as fragments of JSON text.

use super::json::parse;
use super::{AiError, Step, StreamEvent};
use a99_capabilities::ai::{MAX_ANSWER_BYTES, ToolUse};
use a99_core::value::{Map, Value};
use std::collections::BTreeMap;

/// What a tool counts beside its texts.
const TOOL_BYTES: usize = 128;

/// A tool that is not whole.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) id: String,
    pub(super) name: String,
    /// The input, as text.
    pub(super) written: String,
    /// The input, if it came as a value.
    pub(super) given: Option<Value>,
}

/// The tools of an answer that are not whole, by their places.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    open: BTreeMap<u64, Open>,
    /// Tools that were given.
    given: usize,
    bytes: usize,
}

impl Pieces {
    /// The tool at a place, if one is open there.
    pub(super) fn get(&self, at: u64) -> Option<&Open> {
        self.open.get(&at)
    }

    /// The last place of a tool that is open.
    pub(super) fn last(&self) -> Option<u64> {
        self.open.keys().next_back().copied()
    }

    /// Takes a piece of the tool at a place, which is opened if none is there.
    pub(super) fn add(&mut self, at: u64, piece: Open) -> Result<(), AiError> {
        if !self.open.contains_key(&at) {
            self.bytes = self.bytes.saturating_add(TOOL_BYTES);
        }
        let given = piece
            .given
            .as_ref()
            .map_or(0, a99_capabilities::value_bytes);
        let more = piece.id.len() + piece.name.len() + piece.written.len();
        self.bytes = self.bytes.saturating_add(more).saturating_add(given);
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(AiError::too_large());
        }
        let open = self.open.entry(at).or_default();
        if !piece.id.is_empty() {
            open.id = piece.id;
        }
        open.name.push_str(&piece.name);
        open.written.push_str(&piece.written);
        open.given = piece.given.or(open.given.take());
        Ok(())
    }

    /// The tool at a place is whole.
    pub(super) fn close(&mut self, at: u64, out: &mut Vec<Step>) {
        let Some(open) = self.open.remove(&at) else {
            return;
        };
        self.given += 1;
        let number = self.given;
        let input = match open.written.trim().is_empty() {
            true => open.given.unwrap_or_else(|| Value::Object(Map::new())),
            // What is no JSON stays what the model wrote.
            false => parse(&open.written).unwrap_or_else(|| open.written.into()),
        };
        out.push(Step::Event(StreamEvent::ToolUse(ToolUse {
            id: match open.id.is_empty() {
                true => format!("call_{number}"),
                false => open.id,
            },
            name: open.name,
            input,
        })));
    }

    /// All tools are whole.
    pub(super) fn close_all(&mut self, out: &mut Vec<Step>) {
        while let Some(at) = self.open.keys().next().copied() {
            self.close(at, out);
        }
    }

    /// Whether the model asked for a tool.
    pub(super) fn any(&self) -> bool {
        self.given > 0 || !self.open.is_empty()
    }
}
