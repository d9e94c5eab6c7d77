//! Assembles tool calls that arrive in pieces.
//!
//! OpenAI's chunks number calls by `index` and name each once. Other services number all of
//! them 0 or none, send ids alone, repeat the name with every piece, send a whole call twice,
//! or write the arguments again at the end. [`Pieces`] finds the call of a piece by id, then by
//! index, then by order, and determines the arguments once the call is complete.

use super::json::parse;
use super::{AiError, Step, StreamEvent, malformed};
use a99_capabilities::ai::{
    MAX_ANSWER_BYTES, Opaque, Part, Place, StopReason, TextRequest, ToolUse,
};
use a99_core::value::{Map, Value};
use std::collections::BTreeSet;

/// Overhead of a call in bytes, in addition to its texts.
const CALL_BYTES: usize = 128;

/// Maximum calls of one answer.
const MAX_CALLS: usize = 4096;

/// Ids of a conversation's calls; generated ids avoid them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallIds {
    /// Ids of the conversation so far, and those that the service gave in the answer.
    used: BTreeSet<String>,
    /// Ids of the answer's complete calls.
    given: BTreeSet<String>,
    next: usize,
}

impl CallIds {
    /// The ids of a request's conversation.
    pub(crate) fn of(request: &TextRequest) -> CallIds {
        let parts = request.messages.iter().flat_map(|message| &message.content);
        let ids = parts.filter_map(|part| match part {
            Part::ToolUse(used) => Some(used.id.clone()),
            Part::ToolResult { id, .. } => Some(id.clone()),
            _ => None,
        });
        CallIds {
            used: ids.collect(),
            ..CallIds::default()
        }
    }

    /// The id of a call: the service's, or a generated one if that is missing or was used by an
    /// earlier call of the answer.
    fn take(&mut self, id: String) -> String {
        if !id.is_empty() && self.given.insert(id.clone()) {
            return id;
        }
        loop {
            self.next += 1;
            let id = format!("call_{}", self.next);
            if !self.used.contains(&id) && self.given.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// A piece of a call. Absent members are empty.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments, or a part of them, as text.
    pub(super) written: String,
    /// The arguments as a value.
    pub(super) given: Option<Value>,
    /// Members to send back unchanged with the call.
    pub(super) opaque: Map,
}

impl Piece {
    fn has_arguments(&self) -> bool {
        self.given.is_some() || !self.written.trim().is_empty()
    }
}

/// Finds the ends of JSON values in a text that is still arriving.
#[derive(Debug, Default)]
struct Scan {
    depth: u32,
    in_text: bool,
    escaped: bool,
    /// End positions of outermost objects and lists.
    ends: Vec<usize>,
}

impl Scan {
    fn take(&mut self, piece: &str, start: usize) {
        for (at, b) in piece.bytes().enumerate() {
            if self.in_text {
                match b {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match b {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.ends.push(start + at + 1);
                    }
                }
                _ => {}
            }
        }
    }
}

/// An incomplete call.
#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    written: String,
    scan: Scan,
    /// Start of the last piece of the arguments.
    last: usize,
    given: Option<Value>,
    opaque: Map,
}

impl Call {
    /// Whether the arguments may be complete.
    fn is_complete(&self) -> bool {
        let closed = || {
            let end = self.scan.ends.last().copied().unwrap_or(usize::MAX);
            self.scan.depth == 0 && self.written.get(end..).is_some_and(|s| s.trim().is_empty())
        };
        self.given.is_some() || closed()
    }

    /// Whether a piece repeats the arguments that came already.
    fn has_same_arguments(&self, piece: &Piece) -> bool {
        match &piece.given {
            Some(given) => self.given.as_ref() == Some(given),
            None => self.written.trim() == piece.written.trim(),
        }
    }

    fn take(&mut self, piece: Piece) {
        self.index = self.index.or(piece.index);
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if piece.name.starts_with(&self.name) {
            // The first piece of the name, the same name again, or all of it so far.
            self.name = piece.name;
        } else if !piece.name.is_empty() {
            self.name.push_str(&piece.name);
        }
        if !piece.written.trim().is_empty() {
            self.last = self.written.len();
        }
        self.scan.take(&piece.written, self.written.len());
        self.written.push_str(&piece.written);
        self.given = piece.given.or(self.given.take());
        for (key, value) in piece.opaque.iter() {
            self.opaque.insert(key.clone(), value.clone());
        }
    }

    /// The input. Text that is not JSON stays a text.
    fn input(&mut self) -> Value {
        let written = std::mem::take(&mut self.written);
        if written.trim().is_empty() {
            let given = self.given.take().filter(|given| !given.is_nullish());
            return given.unwrap_or_else(|| Value::Object(Map::new()));
        }
        match parse(&written).or_else(|| self.repeated(&written)) {
            Some(Value::Null) => Value::Object(Map::new()),
            // Arguments that were encoded as JSON twice.
            Some(Value::String(text)) => parse(&text.to_string_lossy())
                .filter(|inner| inner.as_object().is_some())
                .unwrap_or(Value::String(text)),
            Some(value) => value,
            None => written.into(),
        }
    }

    /// The arguments in a text that is not JSON because they were written more than once: one
    /// value several times, a value after an empty one, or the whole in the last piece.
    fn repeated(&self, written: &str) -> Option<Value> {
        if let [first, second, rest @ ..] = &self.scan.ends[..] {
            let head = parse(&written[..*first])?;
            let next = parse(&written[*first..*second])?;
            let is_empty = head.as_object().is_some_and(Map::is_empty);
            if next == head || (is_empty && rest.is_empty()) {
                return Some(next);
            }
        }
        parse(written.get(self.last..)?).filter(|value| value.as_object().is_some())
    }
}

/// The incomplete calls of an answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    open: Vec<Call>,
    ids: CallIds,
    /// Number of complete calls.
    given: usize,
    bytes: usize,
}

impl Pieces {
    pub(super) fn new(ids: CallIds) -> Pieces {
        Pieces {
            ids,
            ..Pieces::default()
        }
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, piece: Piece) -> Result<(), AiError> {
        if self.open.len() + self.given >= MAX_CALLS {
            let text = format!("it has more than {MAX_CALLS} tool calls");
            return Err(malformed(&text));
        }
        self.count(&piece, CALL_BYTES)?;
        if !piece.id.is_empty() {
            self.ids.used.insert(piece.id.clone());
        }
        let mut call = Call::default();
        call.take(piece);
        self.open.push(call);
        Ok(())
    }

    /// Takes a piece of the call that it belongs to, or begins one.
    pub(super) fn take(&mut self, piece: Piece) -> Result<(), AiError> {
        let Some(at) = self.place(&piece) else {
            return self.begin(piece);
        };
        self.count(&piece, 0)?;
        if !piece.id.is_empty() && self.open[at].id.is_empty() {
            self.ids.used.insert(piece.id.clone());
        }
        self.open[at].take(piece);
        Ok(())
    }

    /// Appends to the arguments of the call with this index, if one is open.
    pub(super) fn extend(&mut self, index: u64, written: String) -> Result<bool, AiError> {
        let at = self.open.iter().rposition(|call| call.index == Some(index));
        let Some(at) = at else { return Ok(false) };
        let piece = Piece {
            written,
            ..Piece::default()
        };
        self.count(&piece, 0)?;
        self.open[at].take(piece);
        Ok(true)
    }

    fn count(&mut self, piece: &Piece, more: usize) -> Result<(), AiError> {
        let values = piece
            .given
            .as_ref()
            .map_or(0, a99_capabilities::value_bytes);
        let opaque = piece.opaque.values().map(a99_capabilities::value_bytes);
        let texts = piece.id.len() + piece.name.len() + piece.written.len() + more;
        let sizes = opaque.chain([values, texts]);
        self.bytes = sizes.fold(self.bytes, usize::saturating_add);
        match self.bytes > MAX_ANSWER_BYTES {
            true => Err(AiError::too_large()),
            false => Ok(()),
        }
    }

    /// The open call that a piece belongs to.
    fn place(&self, piece: &Piece) -> Option<usize> {
        let named = !piece.name.is_empty();
        let by_id = |call: &Call| {
            let elsewhere = matches!((call.index, piece.index), (Some(a), Some(b)) if a != b);
            call.id == piece.id && !(elsewhere && named)
        };
        if !piece.id.is_empty()
            && let Some(at) = self.open.iter().rposition(by_id)
        {
            return Some(at);
        }
        let at = match piece.index {
            Some(_) => self.open.iter().rposition(|call| call.index == piece.index),
            None => self.open.len().checked_sub(1),
        }?;
        let call = &self.open[at];
        let another = named && {
            let renamed = !call.name.is_empty() && call.name != piece.name;
            let more = piece.has_arguments() && !call.has_same_arguments(piece);
            // All are numbered alike: a different id, a second complete call or another name
            // begins a new call.
            (!piece.id.is_empty() && !call.id.is_empty())
                || (call.is_complete() && (renamed || more))
                || (renamed && (piece.index.is_none() || piece.has_arguments()))
        };
        (!another).then_some(at)
    }

    /// Completes the call with this index.
    pub(super) fn close(&mut self, index: u64, out: &mut Vec<Step>) {
        let at = self.open.iter().rposition(|call| call.index == Some(index));
        if let Some(at) = at {
            let call = self.open.remove(at);
            self.give(call, out);
        }
    }

    /// Completes all calls at the end of the answer; a cut-off last call is dropped. If all
    /// have an index, they are ordered by it.
    pub(super) fn close_all(&mut self, stop: &StopReason, out: &mut Vec<Step>) {
        let mut open = std::mem::take(&mut self.open);
        let is_cut = matches!(
            stop,
            StopReason::MaxTokens | StopReason::ContentFilter | StopReason::Refusal
        );
        let has_all = |call: &Call| {
            let given = call.given.as_ref().and_then(Value::as_object);
            call.is_complete() && !given.is_some_and(Map::is_empty)
        };
        if is_cut && open.last().is_some_and(|last| !has_all(last)) {
            // Without its arguments the call would not do what the model intended.
            open.pop();
        }
        if open.iter().all(|call| call.index.is_some()) {
            open.sort_by_key(|call| call.index);
        }
        for call in open {
            self.give(call, out);
        }
    }

    fn give(&mut self, mut call: Call, out: &mut Vec<Step>) {
        self.given += 1;
        let id = self.ids.take(std::mem::take(&mut call.id));
        out.push(Step::Event(StreamEvent::ToolUse(ToolUse {
            id: id.clone(),
            input: call.input(),
            name: call.name,
        })));
        if !call.opaque.is_empty() {
            Step::opaque(out, Opaque::new(Place::Call(id), call.opaque));
        }
    }

    /// Whether the model asked for a tool.
    pub(super) fn any(&self) -> bool {
        self.given > 0 || !self.open.is_empty()
    }

    /// Number of calls so far, including open ones.
    pub(super) fn len(&self) -> usize {
        self.given + self.open.len()
    }
}
