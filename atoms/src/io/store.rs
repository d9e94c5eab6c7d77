//! The store atoms: `storeGet`, `storeSet`, `storeDelete`, `storeList`, `storeCompareAndSet`,
//! `storeQuery`, `storeVectorSearch` and `storeQueryWhere`; and the private store of a run without
//! a granted one (D40).

use super::search::{SEARCH, search_priced};
use crate::def::{Adjust, Input, Kind, all_need, host, opt, req};
use crate::grants::{Answer, failed, granted, inputs, present, reply};
use a99_capabilities::{MemoryStore, Page, ScanMeter, Store, StoreMethod};
use a99_core::costs::{MICRO, STORE_BYTE};
use a99_core::fuel::Fuel;
use a99_core::sig::{Capability, Effect, Gives, JsonKinds, ShortPrompts};
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, AtomError, HostCall, HostReply, Locals, RunState};
use std::any::Any;
use std::sync::Arc;

/// Price of a store call in micro-units.
const CALL: i64 = 5 * MICRO;

/// Time to live of a value that a step sets.
const TTL: Input = opt(
    "ttlMs",
    Kind::Number,
    "Milliseconds after which the key is gone; by default it stays.",
)
.whole(0.0, f64::INFINITY);

/// Warning that a run gets once if it uses a store that its host did not grant.
pub(crate) const DEFAULT_STORE_WARNING: &str =
    "No store was granted: using an in-memory store that ends with this run";

pub(crate) fn atoms() -> Vec<AtomDef> {
    let all = vec![
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
        )
        .effect(Effect::Read),
        host(
            "storeSet",
            "Sets a key.",
            CALL,
            &[
                req("key", Kind::Text, "Key to set."),
                req("value", Kind::Any, "What is kept under it, as a copy."),
                TTL,
            ],
            set,
        )
        .effect(Effect::Idempotent),
        host(
            "storeDelete",
            "Deletes a key; returns whether it existed.",
            CALL,
            &[req("key", Kind::Text, "Key to delete.")],
            delete,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::ANY)),
        host(
            "storeList",
            "A page of the keys that are texts: `{keys, cursor}`, in the order of their bytes.",
            CALL,
            &[
                opt(
                    "prefix",
                    Kind::Text,
                    "Prefix of the keys; by default all keys.",
                ),
                opt(
                    "cursor",
                    Kind::Text,
                    "The `cursor` of the previous page; the last page has no cursor.",
                ),
                opt("limit", Kind::Number, "Maximum number of keys, up to 1000.")
                    .whole(1.0, 1000.0)
                    .default("100"),
            ],
            list,
        )
        .listed(ShortPrompts::Neither)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY)),
        host(
            "storeCompareAndSet",
            "Sets a key if it still has the expected value; returns whether it did.",
            CALL,
            &[
                req("key", Kind::Text, "Key to set."),
                opt(
                    "expected",
                    Kind::Any,
                    "The value that the key must have; without it the key must not be set.",
                ),
                req("value", Kind::Any, "What is kept under it, as a copy."),
                TTL,
            ],
            compare_and_set,
        )
        .listed(ShortPrompts::Neither)
        .gives(Gives::always(JsonKinds::ANY)),
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
        .listed(ShortPrompts::Neither)
        .effect(Effect::Read)
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
                        "Name of the collection; the store decides whether it may be missing.",
                    ),
                    req(
                        "vector",
                        Kind::Numbers,
                        "Embedding to compare with, as long as those of the collection.",
                    ),
                    opt(
                        "k",
                        Kind::Number,
                        "Maximum number of documents; each costs a unit of fuel.",
                    )
                    .whole(1.0, f64::INFINITY)
                    .default("5"),
                ],
                vector_search,
            )
            .listed(ShortPrompts::Source)
            .needs(Capability::Vectors)
            .effect(Effect::Read)
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
                    "Name of the collection to read; the store decides whether it may be missing.",
                ),
                opt(
                    "limit",
                    Kind::Number,
                    "Maximum number of rows; by default the store's choice.",
                )
                .whole(0.0, f64::INFINITY),
            ],
            query_where,
        )
        .listed(ShortPrompts::Neither)
        .effect(Effect::Read)
        .gives(Gives::always(JsonKinds::ANY)),
    ];
    all_need(Capability::Store, all)
}

/// The store of a run: granted by the host, or private.
pub(crate) enum RunStore {
    Granted(Arc<dyn Store>),
    Own(Arc<MemoryStore>),
}

/// The private store of a run.
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

/// Restores the store of a suspended run; `None` if the value is not a saved store.
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
        // Only this crate stores a value there.
        own.downcast::<OwnStore>()
            .map(|own| RunStore::Own(own.0.clone()))
            .map_err(|_| AtomError::missing("Capability 'store' missing"))
    }

    pub(crate) fn supports(&self, method: StoreMethod) -> bool {
        use StoreMethod::{CompareAndSet, Delete, Get, List, Set, SetUntil};
        match self {
            RunStore::Granted(store) => store.supports(method),
            RunStore::Own(_) => {
                matches!(method, Get | Set | SetUntil | Delete | List | CompareAndSet)
            }
        }
    }

    pub(crate) async fn get(&self, call: &HostCall, key: Value) -> Result<Value, AtomError> {
        self.check(StoreMethod::Get)?;
        match self {
            RunStore::Granted(store) => store.get(key).await,
            RunStore::Own(store) => store.get_at(key, call.now_ms),
        }
        .map_err(failed)
    }

    /// Sets a key, permanently or until it expires.
    pub(crate) async fn set(
        &self,
        call: &HostCall,
        key: Value,
        value: Value,
        expires_ms: Option<f64>,
    ) -> Result<Value, AtomError> {
        self.check(match expires_ms {
            Some(_) => StoreMethod::SetUntil,
            None => StoreMethod::Set,
        })?;
        match (self, expires_ms) {
            (RunStore::Granted(store), None) => store.set(key, value).await,
            (RunStore::Granted(store), Some(time)) => store.set_until(key, value, time).await,
            (RunStore::Own(store), _) => {
                let done = store.set_at(key, value, expires_ms, call.now_ms);
                grown(call, store);
                done.map(|()| Value::Undefined)
            }
        }
        .map_err(failed)
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

/// Counts the growth of a run's private store against its heap ceiling (D20).
fn grown(call: &HostCall, store: &MemoryStore) {
    call.locals.add_bytes(store.take_growth());
}

/// The granted store, if it supports a method.
pub(crate) fn offering(call: &HostCall, method: StoreMethod) -> Option<Arc<dyn Store>> {
    granted(call, |c| &c.store).filter(|store| store.supports(method))
}

fn empty_list() -> HostReply {
    HostReply::from(Value::Array(Vec::new()))
}

fn get(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key] = inputs(&mut call);
        let value = RunStore::of(&call)?.get(&call, key).await?;
        Ok(value.into())
    })
}

fn set(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key, value, ttl] = inputs(&mut call);
        let expires = expiry("storeSet", &ttl, call.now_ms)?;
        let store = RunStore::of(&call)?;
        store
            .set(&call, key, value, expires)
            .await
            .map(HostReply::from)
    })
}

/// Expiry time of a value with a time to live of `ttlMs`.
fn expiry(op: &str, ttl: &Value, now_ms: f64) -> Result<Option<f64>, AtomError> {
    match ttl {
        Value::Undefined | Value::Null => Ok(None),
        Value::Number(ttl) if !ttl.is_nan() => Ok(Some(now_ms + ttl)),
        _ => Err(AtomError::new(format!("{op}: ttlMs must be a number"))),
    }
}

fn delete(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key] = inputs(&mut call);
        let store = RunStore::of(&call)?;
        store.check(StoreMethod::Delete)?;
        reply(match store {
            RunStore::Granted(store) => store.delete(key).await,
            RunStore::Own(store) => store.delete_at(key, call.now_ms).map(Value::Bool),
        })
    })
}

fn list(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [prefix, cursor, limit] = inputs(&mut call);
        let store = RunStore::of(&call)?;
        store.check(StoreMethod::List)?;
        reply(match store {
            RunStore::Granted(store) => store.list(prefix, cursor, limit).await,
            RunStore::Own(store) => {
                let page = Page::of(prefix, cursor, &limit);
                page.map(|page| store.list_at(&page, call.now_ms))
            }
        })
    })
}

fn compare_and_set(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key, expected, value, ttl] = inputs(&mut call);
        let now = call.now_ms;
        let expires = expiry("storeCompareAndSet", &ttl, now)?;
        let store = RunStore::of(&call)?;
        store.check(StoreMethod::CompareAndSet)?;
        reply(match store {
            RunStore::Granted(store) => store.compare_and_set(key, expected, value, expires).await,
            RunStore::Own(store) => {
                let done = store.compare_and_set_at(key, &expected, value, expires, now);
                grown(&call, &store);
                done.map(Value::Bool)
            }
        })
    })
}

/// The granted store, if it supports a method. A run without a store gets the warning of
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

/// Charges a run for the data that a store or an agent's tables scan; the drop charges for every
/// outcome of the call.
pub(super) struct LookedCharge {
    locals: Arc<Locals>,
    pub(super) scanned: Arc<ScanMeter>,
}

impl LookedCharge {
    pub(super) fn start(call: &HostCall) -> LookedCharge {
        let left = call.fuel_left.micro().max(0) / STORE_BYTE;
        LookedCharge {
            locals: call.locals.clone(),
            scanned: Arc::new(ScanMeter::up_to(left.unsigned_abs())),
        }
    }
}

impl Drop for LookedCharge {
    fn drop(&mut self) {
        let bytes = i64::try_from(self.scanned.bytes()).unwrap_or(i64::MAX);
        let price = bytes.saturating_mul(STORE_BYTE);
        self.locals.charge(Fuel::from_micro(price));
    }
}

/// A store without queries returns no rows. A `null` from the store is passed through.
fn query(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [query] = inputs(&mut call);
        match offering_or_told(&call, StoreMethod::Query)? {
            Some(store) => {
                let paid = LookedCharge::start(&call);
                reply(store.query_counted(query, paid.scanned.clone()).await)
            }
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

/// Never falls back to an unfiltered read: without a verified predicate it returns no rows.
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
        let paid = LookedCharge::start(&call);
        let rows = store.query_predicate_counted(query, paid.scanned.clone());
        let rows = rows.await.map_err(failed)?;
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
    fn keys_expire_and_are_compared_and_listed() {
        let bench = Bench::new();
        let call = |op, args| bench.call(op, args).unwrap();
        call("storeSet", r#"["a/1", 1, 500]"#);
        call("storeSet", r#"["a/2", 2]"#);
        assert_eq!(
            call("storeList", r#"["a/", null, 1]"#),
            r#"{"keys":["a/1"],"cursor":"a/1"}"#
        );
        assert_eq!(call("storeCompareAndSet", r#"["a/1", 2, 3]"#), "false");
        assert_eq!(call("storeCompareAndSet", r#"["a/1", 1, 3, 600]"#), "true");
        let later = bench.at(1_600.0);
        assert_eq!(later.call("storeGet", r#"["a/1"]"#).unwrap(), "undefined");
        assert_eq!(
            later.call("storeList", "[]").unwrap(),
            r#"{"keys":["a/2"]}"#
        );
        assert_eq!(later.call("storeDelete", r#"["a/1"]"#).unwrap(), "false");
        assert_eq!(later.call("storeDelete", r#"["a/2"]"#).unwrap(), "true");
        let error = later.call("storeSet", r#"["k", 1, "soon"]"#).unwrap_err();
        assert_eq!(error, "storeSet: ttlMs must be a number");
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
    fn d81_a_program_selects_by_a_predicate() {
        let bench = Bench::with(Capabilities::none().with_store(MemoryStore::new()));
        for (key, age) in [("p/a", 3), ("p/b", 7), ("q/c", 9)] {
            let set = format!(r#"["{key}", {{"age": {age}}}]"#);
            bench.call("storeSet", &set).unwrap();
        }
        let ask = |inputs: &str| bench.call("storeQueryWhere", inputs);
        assert_eq!(
            ask(r#"[{"canonical": "age > 3"}, "p"]"#).unwrap(),
            r#"[{"key":"p/b","value":{"age":7}}]"#
        );
        assert_eq!(
            ask(r#"[{"canonical": "age > 3"}, null, 1]"#).unwrap(),
            r#"[{"key":"p/b","value":{"age":7}}]"#
        );
        assert_eq!(ask(r#"[{"canonical": "age > 30"}]"#).unwrap(), "[]");
        let error = ask(r#"[{"canonical": "age + 1 > 3"}]"#).unwrap_err();
        assert!(error.contains("says `age + 1` at byte 0"), "{error}");
    }

    struct NoPredicates;

    impl Store for NoPredicates {
        fn supports(&self, method: StoreMethod) -> bool {
            method != StoreMethod::QueryPredicate
        }
    }

    #[test]
    fn predicates_are_never_ignored() {
        let bench = Bench::with(Capabilities::none().with_store(NoPredicates));
        let error = bench
            .call("storeQueryWhere", r#"[{"canonical": 1}]"#)
            .unwrap_err();
        assert!(error.contains("must be a canonical verified predicate"));
        let error = bench
            .call("storeQueryWhere", r#"[{"canonical": "a"}]"#)
            .unwrap_err();
        assert!(error.starts_with("Capability 'store.queryPredicate' missing"));
    }
}
