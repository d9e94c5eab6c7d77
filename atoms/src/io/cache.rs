//! Storage of `cache` (language section 4.9, D26): the machine calls these two atoms around the
//! body of the form.
//!
//! An entry is `{val, _exp}` under the key `cache:<key>`. The machine reports errors of these atoms
//! as errors of `cache`.

use super::store::RunStore;
use crate::def::{Adjust, Input, Kind, all_need, host, opt, req};
use crate::grants::{Answer, inputs, present, truthy};
use a99_capabilities::StoreMethod;
use a99_core::sig::{AtomTimeout, Capability, Effect};
use a99_core::text::Text;
use a99_core::value::Value;
use a99_vm::atom::{AtomDef, AtomError, HostCall, HostReply};

/// Reads an entry: input `key`, returns `{hit, val}`.
pub(crate) const GET: &str = "cache:get";

/// Writes an entry: inputs `key`, `value`, `ttlMs`; returns `undefined`.
pub(crate) const PUT: &str = "cache:put";

/// Default time to live of an entry: a day.
const DEFAULT_TTL_MS: f64 = 86_400_000.0;

/// Free and without a time limit, because `cache` has paid, and containers have no time limit
/// (D22).
pub(crate) fn atoms() -> Vec<AtomDef> {
    const KEY: Input = req("key", Kind::Any, "As of `cache`.");
    let get = host(GET, "Reads an entry of `cache`.", 0, &[KEY], get).effect(Effect::Read);
    let put = host(
        PUT,
        "Writes an entry of `cache`.",
        0,
        &[
            KEY,
            req("value", Kind::Any, "What is kept."),
            opt("ttlMs", Kind::Number, "As of `cache`."),
        ],
        put,
    )
    .effect(Effect::Idempotent);
    let mut both = vec![get, put];
    both.iter_mut()
        .for_each(|def| def.sig.timeout = AtomTimeout::None);
    all_need(Capability::Store, both)
}

fn get(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key] = inputs(&mut call);
        let found = store(&call)?.get(&call, entry_key(&key)).await?;
        let live = live_value(found, call.now_ms);
        let hit = Value::Bool(live.is_some());
        Ok(present([("hit", hit), ("val", live.unwrap_or(Value::Undefined))]).into())
    })
}

fn put(mut call: HostCall) -> Answer {
    Box::pin(async move {
        let [key, value, ttl] = inputs(&mut call);
        let ttl = match ttl {
            Value::Undefined | Value::Null => DEFAULT_TTL_MS,
            Value::Number(ttl) if !ttl.is_nan() => ttl,
            _ => return Err(AtomError::new("cache: ttlMs must be a number")),
        };
        let store = store(&call)?;
        let entry = present([("val", value), ("_exp", Value::Number(call.now_ms + ttl))]);
        store.set(&call, entry_key(&key), entry, None).await?;
        Ok(HostReply::default())
    })
}

fn store(call: &HostCall) -> Result<RunStore, AtomError> {
    let store = RunStore::of(call)?;
    if store.supports(StoreMethod::Get) && store.supports(StoreMethod::Set) {
        return Ok(store);
    }
    Err(AtomError::missing("Capability 'store' missing for caching"))
}

/// The usable value of a stored entry. An envelope yields its value until it expires. Other truthy
/// values were stored by the host and are returned directly. A falsy value is a miss.
fn live_value(found: Value, now_ms: f64) -> Option<Value> {
    if !truthy(&found) {
        return None;
    }
    match found {
        Value::Object(mut entry) if entry.get("_exp").is_some_and(truthy) => {
            let live = entry
                .get("_exp")
                .and_then(Value::as_f64)
                .is_some_and(|exp| now_ms < exp);
            live.then(|| entry.remove("val").unwrap_or(Value::Undefined))
        }
        other => Some(other),
    }
}

/// `cache:` and the text of the key. The machine passes text or a number; other values are
/// distinguished by their JSON text.
fn entry_key(key: &Value) -> Value {
    let mut out = b"cache:".to_vec();
    match key {
        Value::String(text) => out.extend_from_slice(text.as_bytes()),
        Value::Undefined => out.extend_from_slice(b"undefined"),
        Value::Number(n) if n.is_nan() => out.extend_from_slice(b"NaN"),
        Value::Number(n) if n.is_infinite() => {
            out.extend_from_slice(if *n > 0.0 { b"Infinity" } else { b"-Infinity" });
        }
        other => other.write_json(&mut out),
    }
    Value::String(Text::from_wtf8(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use a99_capabilities::{Capabilities, MemoryStore, Reply, Store};

    fn envelope(val: Value, exp: f64) -> Value {
        present([("val", val), ("_exp", Value::Number(exp))])
    }

    #[test]
    fn envelopes_live_until_their_time() {
        let live = |v: Value| live_value(v, 1_000.0);
        assert_eq!(live(envelope("v".into(), 1_001.0)), Some("v".into()));
        assert_eq!(live(envelope("v".into(), 1_000.0)), None);
        assert_eq!(live(envelope(Value::Null, 2_000.0)), Some(Value::Null));
        assert_eq!(live("stored text".into()), Some("stored text".into()));
        let no_expiry = envelope("inner".into(), 0.0);
        assert_eq!(live(no_expiry.clone()), Some(no_expiry));
        for falsy in [
            Value::Null,
            "".into(),
            Value::Bool(false),
            Value::Number(0.0),
        ] {
            assert_eq!(live(falsy), None);
        }
    }

    #[test]
    fn put_then_get() {
        let bench = Bench::new();
        assert_eq!(bench.call(GET, r#"["k"]"#).unwrap(), r#"{"hit":false}"#);
        bench.call(PUT, r#"["k", {"t":-3}]"#).unwrap();
        assert_eq!(
            bench.call(GET, r#"["k"]"#).unwrap(),
            r#"{"hit":true,"val":{"t":-3}}"#
        );
        let stored = bench.call("storeGet", r#"["cache:k"]"#).unwrap();
        assert_eq!(stored, r#"{"val":{"t":-3},"_exp":86401000}"#);
        bench.call(PUT, r#"["k", 1, 5]"#).unwrap();
        assert_eq!(
            bench.at(1_005.0).call(GET, r#"["k"]"#).unwrap(),
            r#"{"hit":false}"#
        );
        assert!(Bench::new().call(PUT, r#"["k", 1, "soon"]"#).is_err());
    }

    #[test]
    fn keys_are_text() {
        let text = |v: Value| entry_key(&v).as_str().map(str::to_owned);
        assert_eq!(text("Oslo".into()).as_deref(), Some("cache:Oslo"));
        assert_eq!(text(Value::Number(7.0)).as_deref(), Some("cache:7"));
        assert_eq!(text(Value::Number(f64::NAN)).as_deref(), Some("cache:NaN"));
    }

    struct QueriesOnly(MemoryStore);

    impl Store for QueriesOnly {
        fn supports(&self, method: StoreMethod) -> bool {
            method == StoreMethod::Query
        }

        fn query(&self, query: Value) -> Reply<'_> {
            self.0.query(query)
        }
    }

    #[test]
    fn a_store_without_keys_cannot_cache() {
        let bench = Bench::with(Capabilities::none().with_store(QueriesOnly(MemoryStore::new())));
        let error = bench.call(GET, r#"["k"]"#).unwrap_err();
        assert_eq!(error, "Capability 'store' missing for caching");
    }
}
