//! Machine with a real store: the script's answers fill a store, and the store answers the
//! program.

use super::script::SharedScript;
use super::vm_engine::{Route, run_granting, strict_condition};
use super::{Engine, EngineOutcome, RunSpec};
use a99_core::value::Value;
use agent99::Engine as Agents;
use agent99::capabilities::{BoxFuture, Capabilities, CapabilityError, Store, StoreMethod};
use std::sync::Arc;

/// The register machine, with a real, initially empty store for each vector that uses one. The
/// store answers only `get` and `set`; the script answers all else.
pub struct StoreEngine<F>(pub F);

/// A real store that is filled with the script's answers.
struct Fed {
    scripted: Arc<dyn Store>,
    real: Arc<dyn Store>,
}

type Answer<'a> = BoxFuture<'a, Result<Value, CapabilityError>>;

impl Store for Fed {
    fn supports(&self, method: StoreMethod) -> bool {
        self.scripted.supports(method)
    }

    fn get(&self, key: Value) -> Answer<'_> {
        Box::pin(async move {
            let wanted = self.scripted.get(key.clone()).await?;
            if self.real.get(key.clone()).await? != wanted {
                self.real.set(key.clone(), wanted.clone()).await?;
            }
            let given = self.real.get(key).await?;
            if given == wanted {
                return Ok(given);
            }
            let (given, wanted) = (given.to_json_string(), wanted.to_json_string());
            Err(CapabilityError::new(format!(
                "{given} was stored as {wanted}"
            )))
        })
    }

    fn set(&self, key: Value, value: Value) -> Answer<'_> {
        Box::pin(async move {
            let reply = self.scripted.set(key.clone(), value.clone()).await?;
            self.real.set(key, value).await?;
            Ok(reply)
        })
    }

    fn query(&self, query: Value) -> Answer<'_> {
        self.scripted.query(query)
    }

    fn vector_search(
        &self,
        collection: Value,
        vector: Value,
        k: Value,
        filter: Value,
    ) -> Answer<'_> {
        self.scripted.vector_search(collection, vector, k, filter)
    }

    fn query_predicate(&self, query: Value) -> Answer<'_> {
        self.scripted.query_predicate(query)
    }

    fn create_collection(&self, collection: Value, schema: Value, dimension: Value) -> Answer<'_> {
        self.scripted
            .create_collection(collection, schema, dimension)
    }

    fn vector_add(&self, collection: Value, document: Value) -> Answer<'_> {
        self.scripted.vector_add(collection, document)
    }

    fn delete(&self, key: Value) -> Answer<'_> {
        self.scripted.delete(key)
    }

    fn set_until(&self, key: Value, value: Value, expires_ms: f64) -> Answer<'_> {
        self.scripted.set_until(key, value, expires_ms)
    }

    fn list(&self, prefix: Value, cursor: Value, limit: Value) -> Answer<'_> {
        self.scripted.list(prefix, cursor, limit)
    }

    fn compare_and_set(
        &self,
        key: Value,
        expected: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Answer<'_> {
        self.scripted
            .compare_and_set(key, expected, value, expires_ms)
    }

    fn vector_upsert(&self, collection: Value, document: Value) -> Answer<'_> {
        self.scripted.vector_upsert(collection, document)
    }

    fn vector_delete(&self, collection: Value, id: Value) -> Answer<'_> {
        self.scripted.vector_delete(collection, id)
    }
}

impl<F: Fn() -> Arc<dyn Store>> Engine for StoreEngine<F> {
    fn name(&self) -> &str {
        "store"
    }

    fn run_program(&self, spec: RunSpec) -> EngineOutcome {
        let grant = |script: &SharedScript| -> Capabilities {
            let mut granted = super::vm_engine::capabilities(script);
            if let Some(scripted) = granted.store.take() {
                let real = (self.0)();
                granted.store = Some(Arc::new(Fed { scripted, real }));
            }
            granted
        };
        run_granting(Agents::builder(), Route::Json, spec, &grant)
    }

    fn parse_condition(&self, text: &str) -> Result<Value, String> {
        strict_condition(text)
    }
}
