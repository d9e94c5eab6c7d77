//! Capabilities of a host that answers each method as a request: a name, such as `store.get`, and
//! a list of arguments. Bindings to other languages and scripts of tests are such hosts.

mod agent_turn;
mod shell;

use crate::error::{BoxFuture, CapabilityError, Reply};
use crate::{
    AgentCall, AgentReply, AgentRunner, Capabilities, Dom, Embedder, Fetch, Llm, LlmBattery,
    LocalStorage, Store, StoreMethod, Transpiler, Xml,
};
use a99_core::value::Value;
use std::sync::{Arc, LazyLock};

type Done<'a> = BoxFuture<'a, Result<(), CapabilityError>>;

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
];

/// The store's methods with their names as requests.
static STORE: LazyLock<Vec<(StoreMethod, String)>> = LazyLock::new(|| {
    let all = StoreMethod::ALL.iter();
    all.map(|method| (*method, format!("store.{}", method.as_str())))
        .collect()
});

/// The methods that a host can offer.
pub fn request_methods() -> impl Iterator<Item = &'static str> {
    let store = STORE.iter().map(|(_, name)| name.as_str());
    METHODS
        .iter()
        .copied()
        .chain(store)
        .chain(agent_turn::METHODS.iter().copied())
}

/// A host that answers requests.
pub trait RequestHost: Send + Sync + 'static {
    /// Whether the host offers a method ([`request_methods`]).
    fn offers(&self, method: &str) -> bool;

    /// Answers a request. Arguments that the program did not give are `undefined`.
    fn request(&self, method: &'static str, args: Vec<Value>) -> Reply<'_>;
}

/// The capabilities of a [`RequestHost`].
#[derive(Debug)]
pub struct Requests<H>(pub H);

impl<H: RequestHost> Requests<H> {
    /// The capabilities of which the host offers a method.
    pub fn granted(self) -> Capabilities {
        let host = Arc::new(self);
        let has = |prefix: &str| {
            request_methods().any(|method| method.starts_with(prefix) && host.0.offers(method))
        };
        let mut granted = Capabilities::none();
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
            "agentTurn.": agent_turn;
        }
        granted
    }

    fn ask(&self, method: &'static str, args: Vec<Value>) -> Reply<'_> {
        self.0.request(method, args)
    }

    fn tell(&self, method: &'static str, args: Vec<Value>) -> Done<'_> {
        let answer = self.ask(method, args);
        Box::pin(async move { answer.await.map(drop) })
    }

    fn store(&self, method: StoreMethod, args: Vec<Value>) -> Reply<'_> {
        let row = STORE.iter().find(|(of, _)| *of == method);
        self.ask(row.map_or("store", |(_, name)| name), args)
    }
}

impl<H: RequestHost> Fetch for Requests<H> {
    fn fetch(&self, url: Value, options: Value) -> Reply<'_> {
        self.ask("fetch", vec![url, options])
    }
}

impl<H: RequestHost> Llm for Requests<H> {
    fn predict(&self, prompt: Value, options: Value) -> Reply<'_> {
        self.ask("llm.predict", vec![prompt, options])
    }
}

impl<H: RequestHost> LlmBattery for Requests<H> {
    fn predict(&self, system: Value, user: Value, tools: Value, format: Value) -> Reply<'_> {
        self.ask("llmBattery.predict", vec![system, user, tools, format])
    }
}

impl<H: RequestHost> Embedder for Requests<H> {
    fn embed(&self, text: Value) -> Reply<'_> {
        let method = match self.0.offers("vector.embed") {
            true => "vector.embed",
            false => "llm.embed",
        };
        self.ask(method, vec![text])
    }
}

impl<H: RequestHost> Xml for Requests<H> {
    fn parse(&self, text: Value) -> Reply<'_> {
        self.ask("xml.parse", vec![text])
    }
}

impl<H: RequestHost> Transpiler for Requests<H> {
    fn transpile(&self, code: Value) -> Reply<'_> {
        self.ask("code.transpile", vec![code])
    }
}

impl<H: RequestHost> Dom for Requests<H> {
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

impl<H: RequestHost> LocalStorage for Requests<H> {
    fn get(&self, key: Value) -> Reply<'_> {
        self.ask("storage.get", vec![key])
    }

    fn set(&self, key: Value, value: Value) -> Done<'_> {
        self.tell("storage.set", vec![key, value])
    }
}

impl<H: RequestHost> AgentRunner for Requests<H> {
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

impl<H: RequestHost> Store for Requests<H> {
    fn supports(&self, method: StoreMethod) -> bool {
        let mut rows = STORE.iter();
        rows.any(|(of, name)| *of == method && self.0.offers(name))
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
