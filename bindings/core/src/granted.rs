//! Capabilities of the host's language: each method becomes a request to the host.

use crate::agent_turn;
use crate::asks::Asks;
use crate::failure::{Failure, codes};
use a99_core::diag::suggest;
use agent99::Value;
use agent99::capabilities::ai::{
    AiCode, AiError, AiProvider, StreamHandle, TextRequest, play_value, request_value,
};
use agent99::capabilities::{
    AgentCall, AgentReply, AgentRunner, BoxFuture, Capabilities, CapabilityError, Dom, Embedder,
    Fetch, Llm, LlmBattery, LocalStorage, Store, StoreMethod, Transpiler, Xml,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

/// Methods outside the store that a host may offer.
const METHODS: &[&str] = &[
    "fetch",
    "llm.predict",
    "llm.embed",
    "llmBattery.predict",
    "vector.embed",
    "agent.run",
    "xml.parse",
    "code.transpile",
    "dom.text",
    "dom.value",
    "dom.click",
    "dom.input",
    "storage.get",
    "storage.set",
    "shell.exec",
    "shell.readFile",
    "shell.writeFile",
    "ai.generate",
];

/// The store's methods with their names as requests.
static STORE: LazyLock<Vec<(StoreMethod, String)>> = LazyLock::new(|| {
    let all = StoreMethod::ALL.iter();
    all.map(|method| (*method, format!("store.{}", method.as_str())))
        .collect()
});

/// The methods that a host can offer.
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    let store = STORE.iter().map(|(_, name)| name.as_str());
    METHODS
        .iter()
        .copied()
        .chain(store)
        .chain(agent_turn::METHODS.iter().copied())
}

/// The capabilities that pass the offered methods on to the host.
pub(crate) fn granted(offered: &[String], asks: &Asks) -> Result<Capabilities, Failure> {
    let mut names = HashSet::new();
    for name in offered {
        match methods().find(|known| known == name) {
            Some(known) => names.insert(known),
            None => return Err(unknown(name)),
        };
    }
    let mut granted = Capabilities::none();
    if names.is_empty() {
        return Ok(granted);
    }
    let host = Arc::new(HostCapabilities {
        asks: asks.clone(),
        names,
    });
    let has = |prefix: &str| host.names.iter().any(|name| name.starts_with(prefix));
    macro_rules! grant {
        ($($prefix:literal: $field:ident;)*) => {
            $(if has($prefix) {
                granted.$field = Some(host.clone());
            })*
        };
    }
    grant! {
        "fetch": fetch;
        "store.": store;
        "llm.predict": llm;
        "llmBattery.": llm_battery;
        "vector.": embedder;
        "llm.embed": embedder;
        "agent.": agent;
        "xml.": xml;
        "code.": transpiler;
        "dom.": dom;
        "storage.": local_storage;
        "shell.": shell;
        "ai.": ai;
        "agentTurn.": agent_turn;
    }
    Ok(granted)
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::new(
        codes::BAD_OPTION,
        format!("no atom calls a capability `{name}`"),
    );
    match suggest(name, methods()) {
        Some(near) => failure.with_help(format!("offer `{near}`")),
        None => failure.with_help("offer methods such as `fetch`, `store.get` or `llm.predict`"),
    }
}

pub(crate) struct HostCapabilities {
    asks: Asks,
    names: HashSet<&'static str>,
}

pub(crate) type Reply<'a> = BoxFuture<'a, Result<Value, CapabilityError>>;
pub(crate) type Done<'a> = BoxFuture<'a, Result<(), CapabilityError>>;

impl HostCapabilities {
    pub(crate) fn ask(&self, method: &'static str, args: Vec<Value>) -> Reply<'_> {
        match self.offers(method) {
            true => Box::pin(self.asks.ask(method, args)),
            false => Box::pin(std::future::ready(Err(CapabilityError::new(format!(
                "Capability '{method}' missing"
            ))))),
        }
    }

    pub(crate) fn offers(&self, method: &str) -> bool {
        self.names.contains(method)
    }

    pub(crate) fn tell(&self, method: &'static str, args: Vec<Value>) -> Done<'_> {
        let answer = self.ask(method, args);
        Box::pin(async move { answer.await.map(drop) })
    }

    fn store(&self, method: StoreMethod, args: Vec<Value>) -> Reply<'_> {
        let row = STORE.iter().find(|(of, _)| *of == method);
        self.ask(row.map_or("store", |(_, name)| name), args)
    }
}

impl AiProvider for HostCapabilities {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(std::future::ready(Ok(BTreeMap::new())))
    }

    /// The host answers as a whole; its answer becomes the events of the stream.
    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        if let Err(error) = request.check() {
            return StreamHandle::failed("host", error);
        }
        let (sink, handle) = StreamHandle::new("host");
        let args = vec![request_value(&request)];
        self.asks
            .ask_then("ai.generate", args, move |answer| match answer {
                Ok(said) => play_value(&said, &sink),
                Err(error) => sink.fail(AiError::new(AiCode::Unavailable, error.to_string())),
            });
        handle
    }
}

impl Fetch for HostCapabilities {
    fn fetch(&self, url: Value, options: Value) -> Reply<'_> {
        self.ask("fetch", vec![url, options])
    }
}

impl Llm for HostCapabilities {
    fn predict(&self, prompt: Value, options: Value) -> Reply<'_> {
        self.ask("llm.predict", vec![prompt, options])
    }
}

impl LlmBattery for HostCapabilities {
    fn predict(&self, system: Value, user: Value, tools: Value, format: Value) -> Reply<'_> {
        self.ask("llmBattery.predict", vec![system, user, tools, format])
    }
}

impl Embedder for HostCapabilities {
    fn embed(&self, text: Value) -> Reply<'_> {
        let method = match self.offers("vector.embed") {
            true => "vector.embed",
            false => "llm.embed",
        };
        self.ask(method, vec![text])
    }
}

impl Xml for HostCapabilities {
    fn parse(&self, text: Value) -> Reply<'_> {
        self.ask("xml.parse", vec![text])
    }
}

impl Transpiler for HostCapabilities {
    fn transpile(&self, code: Value) -> Reply<'_> {
        self.ask("code.transpile", vec![code])
    }
}

impl Dom for HostCapabilities {
    fn text(&self, selector: Value) -> Reply<'_> {
        self.ask("dom.text", vec![selector])
    }

    fn value(&self, selector: Value) -> Reply<'_> {
        self.ask("dom.value", vec![selector])
    }

    fn click(&self, selector: Value) -> Done<'_> {
        self.tell("dom.click", vec![selector])
    }

    fn input(&self, selector: Value, value: Value) -> Done<'_> {
        self.tell("dom.input", vec![selector, value])
    }
}

impl LocalStorage for HostCapabilities {
    fn get(&self, key: Value) -> Reply<'_> {
        self.ask("storage.get", vec![key])
    }

    fn set(&self, key: Value, value: Value) -> Done<'_> {
        self.tell("storage.set", vec![key, value])
    }
}

impl AgentRunner for HostCapabilities {
    /// The host's answer may be the object of a run, whose fuel the caller pays.
    fn run(
        &self,
        id: Value,
        input: Value,
        _: AgentCall,
    ) -> BoxFuture<'_, Result<AgentReply, CapabilityError>> {
        let answer = self.ask("agent.run", vec![id, input]);
        Box::pin(async move { answer.await.map(AgentReply::from) })
    }
}

impl Store for HostCapabilities {
    fn supports(&self, method: StoreMethod) -> bool {
        let mut rows = STORE.iter();
        rows.any(|(of, name)| *of == method && self.offers(name))
    }

    fn get(&self, key: Value) -> Reply<'_> {
        self.store(StoreMethod::Get, vec![key])
    }

    fn set(&self, key: Value, value: Value) -> Reply<'_> {
        self.store(StoreMethod::Set, vec![key, value])
    }

    fn query(&self, query: Value) -> Reply<'_> {
        self.store(StoreMethod::Query, vec![query])
    }

    fn vector_search(&self, of: Value, vector: Value, k: Value, filter: Value) -> Reply<'_> {
        self.store(StoreMethod::VectorSearch, vec![of, vector, k, filter])
    }

    fn query_predicate(&self, query: Value) -> Reply<'_> {
        self.store(StoreMethod::QueryPredicate, vec![query])
    }

    fn create_collection(&self, of: Value, schema: Value, dimension: Value) -> Reply<'_> {
        self.store(StoreMethod::CreateCollection, vec![of, schema, dimension])
    }

    fn vector_add(&self, of: Value, document: Value) -> Reply<'_> {
        self.store(StoreMethod::VectorAdd, vec![of, document])
    }

    fn delete(&self, key: Value) -> Reply<'_> {
        self.store(StoreMethod::Delete, vec![key])
    }

    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Reply<'_> {
        self.store(StoreMethod::SetUntil, vec![key, value, expires_ms.into()])
    }

    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Reply<'_> {
        self.store(StoreMethod::List, vec![prefix, cursor, limit])
    }

    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Reply<'_> {
        let expires = expires_ms.map_or(Value::Undefined, Value::Number);
        self.store(
            StoreMethod::CompareAndSet,
            vec![key, expected, value, expires],
        )
    }

    fn vector_upsert(&self, of: Value, document: Value) -> Reply<'_> {
        self.store(StoreMethod::VectorUpsert, vec![of, document])
    }

    fn vector_delete(&self, of: Value, id: Value) -> Reply<'_> {
        self.store(StoreMethod::VectorDelete, vec![of, id])
    }
}
