//! Programs: compiling, and a bounded cache by content.

use crate::failure::Failure;
use agent99::artifact::EncodeOptions;
use agent99::{Agent, Diagnostics, Engine, Map, Refused, Text, Value};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// Programs that an engine keeps by content, and the most values of one of them.
const CACHED: usize = 256;
const CACHED_VALUES: usize = 20_000;

/// Compiled programs by a hash of their tree, with random keys: an author cannot make two
/// programs with one hash.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    keys: (RandomState, RandomState),
    agents: HashMap<(u64, u64), Agent>,
    /// In the order of their arrival.
    order: VecDeque<(u64, u64)>,
}

impl Cache {
    /// The hash of a program; `None` for one that is too large to keep.
    pub(crate) fn key(&self, program: &Value) -> Option<(u64, u64)> {
        let mut hashers = (self.keys.0.build_hasher(), self.keys.1.build_hasher());
        let mut left = CACHED_VALUES;
        let mut todo = vec![program];
        let mut feed = |bytes: &[u8]| {
            bytes.hash(&mut hashers.0);
            bytes.hash(&mut hashers.1);
        };
        while let Some(value) = todo.pop() {
            left = left.checked_sub(1)?;
            match value {
                Value::Undefined => feed(b"u"),
                Value::Null => feed(b"z"),
                Value::Bool(is) => feed(if *is { b"t" } else { b"f" }),
                Value::Number(n) => feed(&n.to_bits().to_le_bytes()),
                Value::String(text) => {
                    feed(b"s");
                    feed(text.as_bytes());
                }
                Value::Array(items) => {
                    feed(b"a");
                    feed(&items.len().to_le_bytes());
                    todo.extend(items);
                }
                Value::Object(map) => {
                    feed(b"o");
                    feed(&map.len().to_le_bytes());
                    for (name, value) in map {
                        feed(name.as_bytes());
                        todo.push(value);
                    }
                }
            }
        }
        Some((hashers.0.finish(), hashers.1.finish()))
    }

    pub(crate) fn get(&self, key: (u64, u64)) -> Option<Agent> {
        self.agents.get(&key).cloned()
    }

    pub(crate) fn insert(&mut self, key: (u64, u64), agent: Agent) {
        if self.agents.insert(key, agent).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > CACHED {
            if let Some(oldest) = self.order.pop_front() {
                self.agents.remove(&oldest);
            }
        }
    }
}

/// The form in which a program is given.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Value,
    Json,
    Source,
}

impl Form {
    /// The form of a name; `auto` is decided by the text.
    pub(crate) fn of(name: &str, program: &Value) -> Result<Form, Failure> {
        match (name, program) {
            ("value", _) => Ok(Form::Value),
            ("json", _) => Ok(Form::Json),
            ("source", _) => Ok(Form::Source),
            ("auto", Value::String(text)) => {
                let is_json = text.as_bytes().trim_ascii_start().starts_with(b"{");
                Ok(if is_json { Form::Json } else { Form::Source })
            }
            ("auto", _) => Ok(Form::Value),
            _ => {
                let message = format!("`{name}` is no form of a program");
                let help = "write `value`, `json`, `source` or `auto`";
                Err(Failure::argument(message).with_help(help))
            }
        }
    }
}

/// Compiles a program.
pub(crate) fn compile(engine: &Engine, program: &Value, form: Form) -> Result<Agent, Failure> {
    let compiled: Result<Agent, Refused> = match (form, program) {
        (Form::Value, program) => engine.compile_value(program),
        (Form::Json, Value::String(text)) => engine.compile(text.as_bytes()),
        #[cfg(feature = "source")]
        (Form::Source, Value::String(text)) => engine.compile_source(text.as_bytes()),
        #[cfg(not(feature = "source"))]
        (Form::Source, Value::String(_)) => {
            let message = "this build reads programs as JSON only";
            return Err(Failure::argument(message));
        }
        (_, other) => {
            let message = format!("the program must be a text, not {}", other.kind());
            return Err(Failure::argument(message));
        }
    };
    compiled.map_err(Failure::refused)
}

/// Warnings, or errors, as a list.
pub(crate) fn found(diagnostics: &Diagnostics) -> Value {
    diagnostics.to_json()
}

/// The bytes of an artifact.
pub(crate) fn save(agent: &Agent, strip: bool) -> Result<Vec<u8>, Failure> {
    let bytes = agent.to_bytes(&EncodeOptions { strip });
    bytes.map_err(|error| Failure::new(error.code, error.to_string()))
}

/// Loads an artifact.
pub(crate) fn load(engine: &Engine, bytes: &[u8]) -> Result<Agent, Failure> {
    engine.load(bytes).map_err(|error| {
        let failure = Failure::new(error.code(), error.message());
        match error.help() {
            "" => failure,
            help => failure.with_help(help),
        }
    })
}

/// What a program needs and is.
pub(crate) fn describe(agent: &Agent) -> Value {
    let program = agent.artifact().program();
    let mut map = Map::new();
    map.insert("hash", a99_core::text::hex(&program.identity()));
    if let Some(schema) = &program.input_schema {
        map.insert("inputSchema", schema.clone());
    }
    let ops = program.ops.iter();
    let ops = ops.map(|op| Value::String(Text::copy_wtf8(program.text(op.name))));
    map.insert("ops", Value::Array(ops.collect()));
    Value::Object(map)
}
