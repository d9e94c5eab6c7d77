//! The store atoms: `storeGet`, `storeSet`, `storeQuery`, `storeVectorSearch`
//! and `storeQueryWhere`; and the store that a run owns when its host grants
//! none (D40).

use crate::def::{Adjust, Kind, host, opt, req};
use crate::grants::{Answer, failed, granted, inputs, present, reply};
use a99_capabilities::{MemoryStore, Store, StoreMethod};
use a99_core::costs::MICRO;
use a99_core::fuel::cost_from_f64;
use a99_core::sig::BaseCost;
use a99_core::sig::{Gives, JsonKinds};
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, AtomError, HostCall, HostReply, RunState};
use a99_vm::convert::BoundaryLimits;
use a99_vm::heap::Val;
use a99_vm::native::{Cx, Fault};
use std::any::Any;
use std::sync::Arc;

/// The price of a store call in micro-units.
const CALL: i64 = 5 * MICRO;

/// Documents that a vector search gives and is paid for unless the program
/// says otherwise.
const DEFAULT_K: f64 = 5.0;

/// The static price of a vector search: 5 for the call, 1 for each document.
const SEARCH: i64 = CALL + 5 * MICRO;

/// What a run is told once when it uses a store that its host did not grant.
pub(crate) const DEFAULT_STORE_WARNING: &str =
    "No store was granted: using an in-memory store that ends with this run";

pub(crate) fn atoms() -> Vec<AtomDef> {
    vec![
        host(
            "storeGet",
            "Reads a key.",
            CALL,
            &[req(
                "key",
                Kind::Text,
                "Key to read; one that was never set gives nothing.",
            )],
            get,
        ),
        host(
            "storeSet",
            "Sets a key.",
            CALL,
            &[
                req("key", Kind::Text, "Key to set."),
                req("value", Kind::Any, "What is kept under it, as a copy."),
            ],
            set,
        ),
        host(
            "storeQuery",
            "Queries the store.",
            CALL,
            &[req(
                "query",
                Kind::Any,
                "The query, in the form of the host's store.",
            )],
            query,
        )
        .gives(Gives::always(JsonKinds::ANY)),
        search_priced(
            host(
                "storeVectorSearch",
                "The k documents of a collection that are nearest to a vector.",
                SEARCH,
                &[
                    opt(
                        "collection",
                        Kind::Text,
                        "Name of the collection; whether it may be missing is up to the store.",
                    ),
                    req(
                        "vector",
                        Kind::Numbers,
                        "Embedding to compare with, as long as those of the collection.",
                    ),
                    opt(
                        "k",
                        Kind::Number,
                        "The most documents to give; each costs a unit of fuel.",
                    )
                    .default("5"),
                ],
                vector_search,
            )
            .gives(Gives::always(JsonKinds::ANY)),
        ),
        host(
            "storeQueryWhere",
            "The rows of a collection that satisfy a verified predicate.",
            CALL,
            &[
                req(
                    "predicate",
                    Kind::Record,
                    "A verified predicate: an object with a text `canonical`.",
                ),
                opt(
                    "collection",
                    Kind::Text,
                    "Name of the collection to read; whether it may be missing is up to the store.",
                ),
                opt(
                    "limit",
                    Kind::Number,
                    "The most rows; by default the store's choice.",
                ),
            ],
            query_where,
        )
        .gives(Gives::always(JsonKinds::ANY)),
    ]
}

/// Gives an atom whose third input is `k` the price of a vector search.
pub(crate) fn search_priced(mut def: AtomDef) -> AtomDef {
    def.sig.cost = BaseCost::Dynamic(SEARCH);
    def.dynamic_cost = Some(search_cost);
    def
}

/// `5 + (k ?? 5)` units of fuel, where `k` is a sane number; else the static
/// price (F01, D17).
fn search_cost(_: &mut Cx<'_>, args: &[Val], _: &BoundaryLimits) -> Result<f64, Fault> {
    let k = match args.get(2) {
        Some(Val::Num(k)) if cost_from_f64(*k).is_some() => *k,
        _ => DEFAULT_K,
    };
    Ok(5.0 + k)
}

/// The store of a run: the host's, or its own.
pub(crate) enum RunStore {
    Granted(Arc<dyn Store>),
    Own(Arc<MemoryStore>),
}

/// The store that a run owns.
struct OwnStore(Arc<MemoryStore>);

impl RunState for OwnStore {
    fn save(&self) -> Value {
        self.0.saved()
    }

    fn bytes(&self) -> usize {
        self.0.peak()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The store of a run that was suspended; nothing if the value is not of a store.
#[must_use]
pub fn restore_store(saved: &Value) -> Option<Arc<dyn RunState>> {
    let store = MemoryStore::restored(saved)?;
    Some(Arc::new(OwnStore(Arc::new(store))))
}

impl RunStore {
    pub(crate) fn of(call: &HostCall) -> Result<RunStore, AtomError> {
        if let Some(store) = granted(call, |c| &c.store) {
            return Ok(RunStore::Granted(store));
        }
        let own = call.locals.store_or_init(|| {
            call.locals.warn(DEFAULT_STORE_WARNING);
            Arc::new(OwnStore(Arc::new(MemoryStore::new())))
        });
        // Only this crate puts a store there.
        own.downcast::<OwnStore>()
            .map(|own| RunStore::Own(own.0.clone()))
            .map_err(|_| AtomError::missing("Capability 'store' missing"))
    }

    pub(crate) fn supports(&self, method: StoreMethod) -> bool {
        match self {
            RunStore::Granted(store) => store.supports(method),
            RunStore::Own(_) => matches!(method, StoreMethod::Get | StoreMethod::Set),
        }
    }

    pub(crate) async fn get(&self, key: Value) -> Result<Value, AtomError> {
        self.check(StoreMethod::Get)?;
        match self {
            RunStore::Granted(store) => store.get(key).await,
            RunStore::Own(store) => store.get(key).await,
        }
        .map_err(failed)
    }

    /// Sets a key; the growth of the run's own store counts against its heap
    /// ceiling (D20).
    pub(crate) async fn set(
        &self,
        call: &HostCall,
        key: Value,
        value: Value,
    ) -> Result<Value, AtomError> {
        self.check(StoreMethod::Set)?;
        match self {
            RunStore::Granted(store) => store.set(key, value).await.map_err(failed),
            RunStore::Own(store) => {
                let done = store.set(key, value).await.map_err(failed)?;
                call.locals.add_bytes(store.take_growth());
                Ok(done)
            }
        }
    }

    fn check(&self, method: StoreMethod) -> Result<(), AtomError> {
        if self.supports(method) {
            return Ok(());
        }
        Err(AtomError::missing(format!(
            "Capability 'store.{}' missing",
            method.as_str()
        )))
    }
}

/// The granted store, if it offers a method.
pub(crate) fn offering(call: &HostCall, method: StoreMethod) -> Option<Arc<dyn Store>> {
    granted(call, |c| &c.store).filter(|store| store.supports(method))
}

fn empty_list() -> HostReply {
    HostReply::from(Value::Array(Vec::new()))
}

fn get(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key] = inputs(&mut call);
        RunStore::of(&call)?.get(key).await.map(HostReply::from)
    })
}

fn set(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key, value] = inputs(&mut call);
        RunStore::of(&call)?
            .set(&call, key, value)
            .await
            .map(HostReply::from)
    })
}

/// The granted store, if it offers a method; a run without any is told so, as by
/// [`RunStore::of`].
fn offering_or_told(
    call: &HostCall,
    method: StoreMethod,
) -> Result<Option<Arc<dyn Store>>, AtomError> {
    match RunStore::of(call)? {
        RunStore::Granted(store) => Ok(Some(store).filter(|store| store.supports(method))),
        RunStore::Own(_) => Ok(None),
    }
}

/// A store without queries has no rows; a store's own `null` is given as is.
fn query(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [query] = inputs(&mut call);
        match offering_or_told(&call, StoreMethod::Query)? {
            Some(store) => reply(store.query(query).await),
            None => Ok(empty_list()),
        }
    })
}

fn vector_search(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [collection, vector, k] = inputs(&mut call);
        match offering_or_told(&call, StoreMethod::VectorSearch)? {
            Some(store) => reply(
                store
                    .vector_search(collection, vector, k, Value::Undefined)
                    .await,
            ),
            None => Ok(empty_list()),
        }
    })
}

/// Never degrades to an unfiltered read: no verified predicate, no rows.
fn query_where(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [predicate, collection, limit] = inputs(&mut call);
        if predicate
            .get("canonical")
            .and_then(Value::as_text)
            .is_none()
        {
            return Err(AtomError::new(
                "storeQueryWhere: `predicate` must be a canonical verified predicate \
                 (an object with a string `canonical`)",
            ));
        }
        let store = offering(&call, StoreMethod::QueryPredicate).ok_or_else(|| {
            AtomError::missing(
                "Capability 'store.queryPredicate' missing: the store cannot check predicates",
            )
        })?;
        let query = present([
            ("collection", collection),
            ("predicate", predicate),
            ("limit", limit),
        ]);
        let rows = store.query_predicate(query).await.map_err(failed)?;
        Ok(if rows.is_nullish() {
            empty_list()
        } else {
            rows.into()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use a99_capabilities::Capabilities;

    #[test]
    fn the_default_store_warns_once_and_counts() {
        let bench = Bench::new();
        assert_eq!(bench.call("storeGet", r#"["k"]"#).unwrap(), "undefined");
        bench.call("storeSet", r#"["k", {"a":[1]}]"#).unwrap();
        assert_eq!(bench.call("storeGet", r#"["k"]"#).unwrap(), r#"{"a":[1]}"#);
        assert_eq!(bench.locals.take_warnings(), [DEFAULT_STORE_WARNING]);
        let before = bench.locals.bytes();
        let big = format!(r#"["big", "{}"]"#, "x".repeat(10_000));
        bench.call("storeSet", &big).unwrap();
        assert!(bench.locals.bytes() >= before + 10_000);
        assert_eq!(bench.call("storeQuery", "[{}]").unwrap(), "[]");
        assert_eq!(
            bench.call("storeVectorSearch", r#"["c", [1], 3]"#).unwrap(),
            "[]"
        );
    }

    #[test]
    fn a_granted_store_is_used() {
        let bench = Bench::with(Capabilities::none().with_store(MemoryStore::new()));
        bench.call("storeSet", r#"["__proto__", 1]"#).unwrap();
        assert_eq!(bench.call("storeGet", r#"["__proto__"]"#).unwrap(), "1");
        assert!(bench.locals.take_warnings().is_empty());
        let error = bench
            .call("storeVectorSearch", r#"["c", [1], 3]"#)
            .unwrap_err();
        assert_eq!(error, "Collection 'c' not found. Create it first.");
    }

    #[test]
    fn predicates_are_never_ignored() {
        let bench = Bench::with(Capabilities::none().with_store(MemoryStore::new()));
        let error = bench
            .call("storeQueryWhere", r#"[{"canonical": 1}]"#)
            .unwrap_err();
        assert!(error.contains("must be a canonical verified predicate"));
        let error = bench
            .call("storeQueryWhere", r#"[{"canonical": "a"}]"#)
            .unwrap_err();
        assert!(error.starts_with("Capability 'store.queryPredicate' missing"));
    }

    #[test]
    fn prices_never_give_fuel() {
        let price = |args: &[Val]| {
            let cost = |cx: &mut Cx<'_>| search_cost(cx, args, &BoundaryLimits::default());
            crate::testing::with_cx(cost).expect("a price")
        };
        let of = |k| price(&[Val::Undefined, Val::Undefined, k]);
        assert_eq!(of(Val::Num(2.0)), 7.0);
        assert_eq!(of(Val::Undefined), 10.0);
        for k in [-1e9, f64::NAN, f64::INFINITY] {
            assert_eq!(of(Val::Num(k)), 10.0);
        }
        assert_eq!(price(&[]), 10.0);
    }
}
