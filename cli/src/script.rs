//! Scripted answers: what `--script FILE` grants a run in place of networks,
//! models and other agents.
//!
//! The file is a JSON object whose members are listed in `a99 run --help`. A
//! reply is any value; `{"$fails": TEXT}` fails; `{"$replies": [REPLY, ...]}`
//! answers in turn and repeats its last reply, which is how a service that
//! fails twice and then recovers is written down.

use crate::failure::Failure;
use crate::input::{Source, parse_value};
use crate::replies::{ByKey, InOrder, scripted_shell};
use agent99::capabilities::{
    Capabilities, CapabilityError, FixedClock, HashEmbedder, MemoryStore, SeededRandom, Store as _,
};
use agent99::{Engine, Map, Value};
use std::sync::Arc;

/// Members that a script may have.
const KEYS: [&str; 12] = [
    "fetch",
    "llm",
    "llmBattery",
    "agents",
    "xml",
    "transpile",
    "shell",
    "store",
    "vectors",
    "embed",
    "clock",
    "seed",
];

/// Numbers in an embedding at most: what large embedding models give.
const MAX_DIMENSION: f64 = 65_536.0;

/// What a script file says; nothing by default.
#[derive(Debug, Default)]
pub(crate) struct Script {
    name: String,
    members: Map,
}

impl Script {
    /// Reads a script file.
    pub(crate) fn parse(source: &Source) -> Result<Script, Failure> {
        let name = format!("--script {}", source.name);
        let Value::Object(members) = parse_value(source)? else {
            return Err(Failure::about(&name, "expected a JSON object"));
        };
        for key in members.keys() {
            if !KEYS.iter().any(|known| *key == **known) {
                let text = format!("unknown member `{key}`; known are {}", KEYS.join(", "));
                return Err(Failure::about(&name, text));
            }
        }
        Ok(Script { name, members })
    }

    /// An engine with the script's time and randomness.
    pub(crate) fn engine(&self) -> Result<Engine, Failure> {
        let mut engine = Engine::builder();
        if let Some(ms) = self.number("clock", f64::MAX)? {
            engine = engine.clock(Arc::new(FixedClock::new(ms)));
        }
        if let Some(seed) = self.number("seed", f64::MAX)? {
            // Any seed will do; the cast saturates.
            engine = engine.random(Arc::new(SeededRandom::new(seed as u64)));
        }
        Ok(engine.build())
    }

    /// The capabilities that answer as the script says.
    pub(crate) async fn granted(&self) -> Result<Capabilities, Failure> {
        let mut set = Capabilities::none();
        if let Some(table) = self.object("fetch")? {
            set = set.with_fetch(ByKey::new(
                table,
                "Fetch refused: the URL is not in the script",
            ));
        }
        if let Some(table) = self.object("agents")? {
            set = set.with_agent(ByKey::new(table, "The agent is not in the script"));
        }
        if let Some(table) = self.object("xml")? {
            set = set.with_xml(ByKey::new(table, "The XML document is not in the script"));
        }
        if let Some(table) = self.object("transpile")? {
            set = set.with_transpiler(ByKey::new(table, "The code is not in the script"));
        }
        if let Some(table) = self.object("shell")? {
            let name = |text: String| Failure::about(&self.name, text);
            set = set.with_shell(scripted_shell(table).map_err(name)?);
        }
        if let Some(list) = self.array("llm")? {
            set = set.with_llm(InOrder::new(list));
        }
        if let Some(list) = self.array("llmBattery")? {
            set = set.with_llm_battery(InOrder::new(list));
        }
        if let Some(dimension) = self.number("embed", MAX_DIMENSION)? {
            set = set.with_embedder(HashEmbedder::new(dimension as usize));
        }
        if let Some(store) = self.store().await? {
            set = set.with_store(store);
        }
        Ok(set)
    }

    /// A store with the script's keys, values and documents.
    async fn store(&self) -> Result<Option<MemoryStore>, Failure> {
        let (values, vectors) = (self.object("store")?, self.object("vectors")?);
        if values.is_none() && vectors.is_none() {
            return Ok(None);
        }
        let fails = |error: CapabilityError| Failure::about(&self.name, error);
        let store = MemoryStore::new();
        for (key, value) in values.into_iter().flat_map(Map::iter) {
            let set = store.set(key.clone().into(), value.clone());
            set.await.map_err(fails)?;
        }
        for (name, documents) in vectors.into_iter().flat_map(Map::iter) {
            let collection = || Value::from(name.clone());
            let created = store.create_collection(collection(), Value::Undefined, Value::Undefined);
            created.await.map_err(fails)?;
            let Some(documents) = documents.as_array() else {
                let text = format!("`vectors` must hold an array for `{name}`");
                return Err(Failure::about(&self.name, text));
            };
            for document in documents {
                let added = store.vector_add(collection(), document.clone());
                added.await.map_err(fails)?;
            }
        }
        Ok(Some(store))
    }

    fn object(&self, key: &str) -> Result<Option<&Map>, Failure> {
        self.member(key, "an object", Value::as_object)
    }

    fn array(&self, key: &str) -> Result<Option<&[Value]>, Failure> {
        self.member(key, "an array", Value::as_array)
    }

    fn number(&self, key: &str, most: f64) -> Result<Option<f64>, Failure> {
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
    ) -> Result<Option<T>, Failure> {
        match self.members.get(key) {
            None => Ok(None),
            Some(value) => get(value).map(Some).ok_or_else(|| {
                let text = format!("`{key}` must be {expected}");
                Failure::about(&self.name, text)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(json: &str) -> Result<Script, Failure> {
        Script::parse(&Source {
            name: "s.json".to_owned(),
            bytes: json.as_bytes().to_vec(),
        })
    }

    /// The in-memory capabilities are always ready.
    fn granted(json: &str) -> Result<Vec<&'static str>, Failure> {
        let script = script(json)?;
        script.engine()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let set = runtime.block_on(script.granted())?;
        Ok(set.granted())
    }

    fn usage(json: &str) -> String {
        match granted(json) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn grants_what_it_names() {
        assert!(granted("{}").unwrap().is_empty());
        let all = r#"{"fetch": {"u": 1}, "llm": [], "llmBattery": [], "agents": {},
            "xml": {}, "transpile": {}, "shell": {"ls": {}}, "store": {"k": [1]}, "embed": 8,
            "vectors": {"docs": [{"embedding": [1, 0], "id": 1}]}, "clock": 0, "seed": 7}"#;
        let granted = granted(all).unwrap();
        assert_eq!(granted.len(), KEYS.len() - 3, "{granted:?}");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(usage("[]").contains("expected a JSON object"));
        assert!(usage(r#"{"fetsh": {}}"#).contains("unknown member `fetsh`"));
        assert!(usage(r#"{"llm": {}}"#).contains("`llm` must be an array"));
        assert!(usage(r#"{"embed": 1e9}"#).contains("`embed` must be"));
        assert!(usage(r#"{"vectors": {"c": 1}}"#).contains("array for `c`"));
        assert!(usage(r#"{"vectors": {"c": [1]}}"#).contains("embedding"));
        let shell = r#"{"shell": {"ls": {"exitCode": 300}}}"#;
        assert!(usage(shell).contains("`shell` for `ls`: `exitCode` must be"));
        assert!(usage("{").contains("line 1, column "));
    }
}
