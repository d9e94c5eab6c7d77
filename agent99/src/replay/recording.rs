//! The format of recordings: lines of JSON.

use super::{Answered, decode, encode, hex_bytes};
use a99_core::text::hex;
use a99_core::value::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Read as _, Write};

/// Version of the format.
const VERSION: f64 = 1.0;

/// Bytes of a line at most: an answer with its inputs.
const MAX_LINE: u64 = 1 << 30;

/// A recorded run.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The arguments of the run.
    pub args: Value,
    /// Its start, in milliseconds since the Unix epoch.
    pub began: f64,
    /// The seed of its randomness.
    pub seed: [u8; 32],
    /// The names of the granted capabilities: some atoms look whether theirs is there before they
    /// read their inputs.
    pub granted: Vec<String>,
    /// Its calls, by id.
    pub calls: BTreeMap<String, RecordedCall>,
    /// The ids in the order of the answers.
    pub order: Vec<String>,
    /// Whether calls have digests for inputs, as in a journal: a program may put into its inputs
    /// what its host does not store.
    pub has_digests: bool,
}

/// A call of a recording.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// The atom's name.
    pub atom: String,
    /// The inputs by name, or their [digest](super::inputs_digest).
    pub inputs: Value,
    /// The answer.
    pub answered: Answered,
}

/// Why a text is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecording {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for BadRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for BadRecording {}

fn write_line(to: &mut dyn Write, value: &Value) -> io::Result<()> {
    let mut line = encode(value).map_err(io::Error::other)?;
    line.push('\n');
    to.write_all(line.as_bytes())
}

impl Recording {
    /// A recording without calls.
    #[must_use]
    pub fn begin(args: Value, began: f64, seed: [u8; 32], granted: Vec<String>) -> Recording {
        Recording {
            args,
            began,
            seed,
            granted,
            calls: BTreeMap::new(),
            order: Vec::new(),
            has_digests: false,
        }
    }

    /// Adds a call of a line ([`RecordedCall::line`]); false for another line.
    #[must_use]
    pub fn add(&mut self, line: &str) -> bool {
        let Some(Value::Object(map)) = decode(line) else {
            return false;
        };
        self.take(&map).is_some()
    }

    fn take(&mut self, map: &Map) -> Option<()> {
        let (id, call) = call(map)?;
        self.order.push(id.clone());
        self.calls.insert(id, call);
        Some(())
    }

    /// Writes the first line.
    pub(super) fn write_head(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut head = Map::new();
        head.insert("recording", VERSION);
        head.insert("began", self.began);
        head.insert("seed", hex(&self.seed));
        let granted = self.granted.iter().map(|name| Value::from(name.as_str()));
        head.insert("granted", Value::Array(granted.collect()));
        head.insert("args", self.args.clone());
        write_line(to, &Value::Object(head))
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// The line that is not of the format. A last line without its end is that of a killed process,
    /// and left out.
    pub fn read(mut from: impl BufRead) -> Result<Recording, BadRecording> {
        let mut recording: Option<Recording> = None;
        for number in 1.. {
            let bad = |message: &str| BadRecording {
                line: number,
                message: message.to_owned(),
            };
            let mut line = Vec::new();
            let read = (&mut from).take(MAX_LINE + 1).read_until(b'\n', &mut line);
            read.map_err(|error| bad(&error.to_string()))?;
            if line.pop() != Some(b'\n') {
                if line.len() as u64 >= MAX_LINE {
                    return Err(bad("it is too long"));
                }
                break;
            }
            let value = str::from_utf8(&line).ok().and_then(decode);
            let Some(Value::Object(map)) = value else {
                return Err(bad("expected a JSON object on one line"));
            };
            match &mut recording {
                None => recording = Some(head(&map).ok_or_else(|| bad(NO_HEAD))?),
                Some(recording) => {
                    recording.take(&map).ok_or_else(|| bad(NO_CALL))?;
                }
            }
        }
        recording.ok_or(BadRecording {
            line: 1,
            message: NO_HEAD.to_owned(),
        })
    }
}

const NO_HEAD: &str =
    "a recording of version 1 begins with its `args`, `began`, `seed` and `granted`";
const NO_CALL: &str = "expected `call`, `atom`, `inputs` and `answer`";

fn head(map: &Map) -> Option<Recording> {
    if map.get("recording").and_then(Value::as_f64) != Some(VERSION) {
        return None;
    }
    let seed = hex_bytes(map.get("seed")?.as_str()?)?;
    let Value::Array(granted) = map.get("granted")? else {
        return None;
    };
    let granted = granted.iter().map(|name| name.as_str().map(str::to_owned));
    let granted = granted.collect::<Option<_>>()?;
    let began = map.get("began").and_then(Value::as_f64)?;
    let args = map.get("args")?.clone();
    Some(Recording::begin(
        args,
        began,
        seed.try_into().ok()?,
        granted,
    ))
}

fn call(map: &Map) -> Option<(String, RecordedCall)> {
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    let call = RecordedCall {
        atom: text("atom")?.to_owned(),
        inputs: map.get("inputs")?.clone(),
        answered: Answered::decode(text("answer")?)?,
    };
    Some((text("call")?.to_owned(), call))
}

impl RecordedCall {
    /// Writes the line of a call.
    pub(super) fn write(&self, id: &str, to: &mut dyn Write) -> io::Result<()> {
        let line = self.line(id).map_err(io::Error::other)?;
        writeln!(to, "{line}")
    }

    /// The line of a call, without its end.
    ///
    /// # Errors
    /// The call is too large.
    pub fn line(&self, id: &str) -> Result<String, String> {
        let mut line = Map::new();
        line.insert("call", id);
        line.insert("atom", self.atom.as_str());
        line.insert("inputs", self.inputs.clone());
        line.insert("answer", self.answered.encode()?);
        encode(&Value::Object(line))
    }
}
