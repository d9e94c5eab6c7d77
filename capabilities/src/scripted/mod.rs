//! Scripted mock capabilities: one JSON object replaces networks, models and other agents.
//! `a99 run --script FILE` reads such a file.
//!
//! | member | content |
//! |---|---|
//! | `fetch` | replies by URL |
//! | `llm`, `llmBattery` | a list of replies, in order |
//! | `ai` | turns of a language model, in order: texts, or objects as [`ModelScript`](crate::ai::ModelScript) has them |
//! | `agents` | replies by the agent's id |
//! | `turn` | `{"state": {...}, "settings": {...}, "identity": {...}, "storage": {SQL: REPLY}}`, each of them optional |
//! | `xml`, `transpile` | replies by the text |
//! | `shell` | by command: `{"stdout": TEXT, "stderr": TEXT, "exitCode": 0 to 255, "elapsedMs": MS, "files": {PATH: TEXT}}`, each of them optional |
//! | `store` | keys with values |
//! | `vectors` | collections: lists of `{"embedding": [...], ...}` |
//! | `embed` | the dimension of an embedding, at most 65,536 |
//! | `clock` | the time, in milliseconds since 1970 |
//! | `seed` | the seed of the randomness |
//!
//! A reply is any value. `{"$fails": TEXT}` fails. `{"$replies": [REPLY, ...]}` gives successive
//! replies and repeats the last one; it can describe a service that fails twice and then recovers.

mod forms;
mod replies;

use crate::ai::{ModelScript, ScriptedAi};
use crate::script::unknown_member;
use crate::{
    Capabilities, CapabilityError, FixedClock, HashEmbedder, MemoryStore, SeededRandom, Store as _,
};
use a99_core::sig::Capability;
use a99_core::value::{Map, Value};
use replies::{ByKey, InOrder, shell};
use std::fmt;
use std::sync::Arc;

/// Maximum dimension of an embedding, which covers large embedding models.
const MAX_DIMENSION: f64 = 65_536.0;

/// Plausible current times in seconds since 1970. As milliseconds they are in January 1970.
const SECONDS: std::ops::Range<f64> = 1.5e9..2.5e9;

/// A parsed script; empty by default.
#[derive(Clone, Debug, Default)]
pub struct Script {
    members: Map,
}

/// The error of an invalid script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(String);

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScriptError {}

impl From<CapabilityError> for ScriptError {
    fn from(error: CapabilityError) -> ScriptError {
        ScriptError(error.to_string())
    }
}

impl Script {
    /// The members that a script may have.
    pub const MEMBERS: &'static [&'static str] = Capability::MEMBERS;

    /// Creates a script from its JSON value.
    ///
    /// # Errors
    /// The value is not an object, or has an unknown member.
    pub fn new(script: Value) -> Result<Script, ScriptError> {
        let Value::Object(members) = script else {
            return Err(ScriptError("expected a JSON object".to_owned()));
        };
        for key in members.keys() {
            if !Script::MEMBERS.iter().any(|known| *key == **known) {
                let text = unknown_member(key, Script::MEMBERS);
                return Err(ScriptError(text));
            }
        }
        Ok(Script { members })
    }

    /// The fixed clock for an engine.
    ///
    /// # Errors
    /// `clock` is not a whole number of at least 0.
    pub fn clock(&self) -> Result<Option<FixedClock>, ScriptError> {
        let clock = self.number("clock", f64::MAX)?;
        if let Some(seconds) = clock.filter(|n| SECONDS.contains(n)) {
            let text = format!(
                "`clock` must be milliseconds, and {seconds} are seconds of now; write {}",
                seconds * 1000.0
            );
            return Err(ScriptError(text));
        }
        Ok(clock.map(FixedClock::new))
    }

    /// The seeded randomness for an engine.
    ///
    /// # Errors
    /// `seed` is not a whole number of at least 0.
    pub fn random(&self) -> Result<Option<SeededRandom>, ScriptError> {
        // Every seed is valid; the cast saturates.
        let seed = self.number("seed", f64::MAX)?;
        Ok(seed.map(|seed| SeededRandom::new(seed as u64)))
    }

    /// The capabilities that the script mocks.
    ///
    /// # Errors
    /// A member is malformed.
    pub async fn granted(&self) -> Result<Capabilities, ScriptError> {
        self.granted_at(None).await
    }

    /// The capabilities that the script mocks, with the engine's clock in place of the script's.
    /// Values in the store expire by this clock.
    ///
    /// # Errors
    /// A member is malformed.
    pub async fn granted_at(&self, clock: Option<FixedClock>) -> Result<Capabilities, ScriptError> {
        let mut set = Capabilities::none();
        for member in ["fetch", "agents", "xml", "transpile"] {
            if let Some(table) = self.object(member)? {
                forms::keyed(member, table).map_err(ScriptError)?;
            }
        }
        for member in ["llm", "llmBattery"] {
            if let Some(list) = self.array(member)? {
                forms::ordered(member, list).map_err(ScriptError)?;
            }
        }
        if let Some(table) = self.object("fetch")? {
            set = set.with_fetch(ByKey::new(
                table,
                "Fetch refused: the URL is not in the script",
            ));
        }
        if let Some(table) = self.object("agents")? {
            set = set.with_agent(ByKey::new(table, "The agent is not in the script"));
        }
        if let Some(turn) = self.object("turn")? {
            set = set.with_agent_turn(forms::turn(turn).map_err(ScriptError)?);
        }
        if let Some(table) = self.object("xml")? {
            set = set.with_xml(ByKey::new(table, "The XML document is not in the script"));
        }
        if let Some(table) = self.object("transpile")? {
            set = set.with_transpiler(ByKey::new(table, "The code is not in the script"));
        }
        if let Some(table) = self.object("shell")? {
            set = set.with_shell(shell(table).map_err(ScriptError)?);
        }
        if let Some(list) = self.array("llm")? {
            set = set.with_llm(InOrder::new(list));
        }
        if let Some(list) = self.array("llmBattery")? {
            set = set.with_llm_battery(InOrder::new(list));
        }
        if let Some(turns) = self.members.get("ai") {
            let script = ModelScript::new(turns);
            let script =
                script.map_err(|e| ScriptError(format!("/ai{}: {}", e.pointer, e.message)))?;
            set = set.with_ai(ScriptedAi::new(script));
        }
        if self.number("embed", MAX_DIMENSION)? == Some(0.0) {
            let text = "`embed` must be a number of at least 1: an embedding has so many numbers";
            return Err(ScriptError(text.to_owned()));
        }
        if let Some(dimension) = self.number("embed", MAX_DIMENSION)? {
            set = set.with_embedder(HashEmbedder::new(dimension as usize));
        }
        if let Some(store) = self.store(clock).await? {
            set = set.with_store(store);
        }
        Ok(set)
    }

    /// A store with the script's keys, values and documents.
    async fn store(&self, clock: Option<FixedClock>) -> Result<Option<MemoryStore>, ScriptError> {
        let (values, vectors) = (self.object("store")?, self.object("vectors")?);
        if values.is_none() && vectors.is_none() {
            return Ok(None);
        }
        let store = match clock.or(self.clock()?) {
            Some(clock) => MemoryStore::new().with_clock(Arc::new(clock)),
            None => MemoryStore::new(),
        };
        for (key, value) in values.into_iter().flat_map(Map::iter) {
            store.set(key.clone().into(), value.clone()).await?;
        }
        for (name, documents) in vectors.into_iter().flat_map(Map::iter) {
            let collection = || Value::from(name.clone());
            let created = store.create_collection(collection(), Value::Undefined, Value::Undefined);
            created.await?;
            let Some(documents) = documents.as_array() else {
                let text = format!("`vectors` must hold an array for `{name}`");
                return Err(ScriptError(text));
            };
            for (at, document) in documents.iter().enumerate() {
                forms::document(document).map_err(|what| {
                    ScriptError(format!(
                        "`vectors` for `{name}`, document {}: {what}",
                        at + 1
                    ))
                })?;
                store.vector_add(collection(), document.clone()).await?;
            }
        }
        Ok(Some(store))
    }

    fn object(&self, key: &str) -> Result<Option<&Map>, ScriptError> {
        self.member(key, "an object", Value::as_object)
    }

    fn array(&self, key: &str) -> Result<Option<&[Value]>, ScriptError> {
        self.member(key, "an array", Value::as_array)
    }

    fn number(&self, key: &str, most: f64) -> Result<Option<f64>, ScriptError> {
        self.member(key, "a whole number of at least 0", |value| {
            let whole = value.as_f64().filter(|n| n.fract() == 0.0);
            whole.filter(|n| (0.0..=most).contains(n))
        })
    }

    fn member<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        get: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ScriptError> {
        match self.members.get(key) {
            None => Ok(None),
            Some(value) => get(value).map(Some).ok_or_else(|| {
                let text = format!("`{key}` must be {expected}");
                ScriptError(text)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block_on, value};

    fn script(json: &str) -> Result<Script, ScriptError> {
        Script::new(value(json))
    }

    fn granted(json: &str) -> Result<Vec<&'static str>, ScriptError> {
        let script = script(json)?;
        script.clock()?;
        script.random()?;
        Ok(block_on(script.granted())?.granted())
    }

    fn mistake(json: &str) -> String {
        granted(json).expect_err("a mistake").to_string()
    }

    const ALL: &str = r#"{"fetch": {"u": 1}, "llm": [], "llmBattery": [], "ai": [], "agents": {},
        "turn": {"state": {"n": 1}},        "xml": {}, "transpile": {}, "shell": {"ls": {}}, "store": {"k": [1]}, "embed": 8,
        "vectors": {"docs": [{"embedding": [1, 0], "id": 1}]}, "clock": 0, "seed": 7}"#;

    /// Capabilities without a script member, and the reasons.
    const LEFT_OUT: &[(&str, &str)] = &[
        ("dom", "belongs to a browser"),
        ("local_storage", "belongs to a browser"),
        ("procedures", "starts empty"),
        ("clock", "is the engine's: `clock`"),
        ("random", "is the engine's: `seed`"),
    ];

    #[test]
    fn every_capability_is_granted_or_left_out() {
        assert!(granted("{}").expect("a script").is_empty());
        let script = script(ALL).expect("a script");
        assert_eq!(script.members.len(), Script::MEMBERS.len());
        let granted = granted(ALL).expect("a script");
        let file = "capabilities/src/scripted/mod.rs";
        for name in Capabilities::NAMES {
            let left_out = LEFT_OUT.iter().any(|(other, _)| other == name);
            assert!(granted.contains(name) != left_out, "{name}: {file}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(mistake("[]").contains("expected a JSON object"));
        assert!(mistake(r#"{"fetsh": {}}"#).contains("unknown member `fetsh`"));
        assert!(mistake(r#"{"llm": {}}"#).contains("`llm` must be an array"));
        assert!(mistake(r#"{"embed": 1e9}"#).contains("`embed` must be"));
        assert!(mistake(r#"{"vectors": {"c": 1}}"#).contains("array for `c`"));
        assert!(mistake(r#"{"vectors": {"c": [1]}}"#).contains("embedding"));
        assert!(mistake(r#"{"clock": 1769860800}"#).contains("write 1769860800000"));
        assert!(mistake(r#"{"embed": 0}"#).contains("at least 1"));
        let vector = mistake(r#"{"vectors": {"c": [{"vector": [1]}]}}"#);
        assert!(vector.contains("for `c`, document 1") && vector.contains("`vector`"));
        assert!(mistake(r#"{"turn": {"stat": {}}}"#).contains("`turn`: unknown member `stat`"));
        assert!(mistake(r#"{"turn": {"state": 1}}"#).contains("`state` must be an object"));
        let shell = r#"{"shell": {"ls": {"exitCode": 300}}}"#;
        assert!(mistake(shell).contains("`shell` for `ls`: `exitCode` must be"));
    }
}
