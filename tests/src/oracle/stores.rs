//! Store atoms. A run uses the host's store, or an in-memory one if the host grants none
//! (decision D40). The oracle judges the requests, not the store.

use super::machine::{Machine, ScopeRef};
use super::steps::Node;
use super::value::{Fail, JsStr, OVal, Obj, Res, fail, from_value, js};
use a99_core::value::Value;
use agent99::capabilities::{CapabilityError, Page};

/// The methods of the store in memory.
const OWN: [&str; 6] = [
    "store.get",
    "store.set",
    "store.setUntil",
    "store.delete",
    "store.list",
    "store.compareAndSet",
];

impl Machine<'_> {
    /// True if the host grants a store.
    pub(super) fn has_store(&self) -> bool {
        let others = ["store.query", "store.vectorSearch"];
        OWN.iter().chain(&others).any(|m| self.host.provides(m))
    }

    /// True if a store method exists; the in-memory store has those of keys.
    pub(super) fn store_can(&self, method: &str) -> bool {
        self.host.provides(method) || (!self.has_store() && OWN.contains(&method))
    }

    /// Reads from the store.
    pub(super) fn store_get(&mut self, key: &JsStr) -> Res<OVal> {
        self.store_call("storeGet", "store.get", vec![OVal::Str(key.clone())])
    }

    /// Writes to the store.
    pub(super) fn store_set(&mut self, key: &JsStr, value: &OVal) -> Res<OVal> {
        let args = vec![OVal::Str(key.clone()), value.clone()];
        self.store_call("storeSet", "store.set", args)
    }

    /// Expiry time for `ttlMs`.
    fn expiry(&self, op: &str, ttl: &OVal) -> Res<Option<OVal>> {
        match ttl {
            OVal::Undef | OVal::Null => Ok(None),
            OVal::Num(ttl) if !ttl.is_nan() => Ok(Some(OVal::Num(self.now_ms() + ttl))),
            _ => fail(format!("{op}: ttlMs must be a number")),
        }
    }

    fn warn_default_store(&mut self) {
        let text = "Using the default in-memory store; its data ends with the run";
        if !self.warnings.iter().any(|w| *w == text) {
            self.warnings.push(text.into());
        }
    }

    /// Calls the run's store.
    fn store_call(&mut self, op: &str, method: &str, args: Vec<OVal>) -> Res<OVal> {
        if !self.store_can(method) {
            return Err(self.missing(&format!("Capability '{method}' missing")));
        }
        if self.has_store() {
            return self.call_host(op, method, &args);
        }
        self.warn_default_store();
        let args: Res<Vec<Value>> = args.iter().map(|arg| self.export(arg)).collect();
        let args = self.hold(args?)?;
        match self.in_memory(method, args) {
            Ok(answer) => Ok(from_value(&answer)),
            Err(error) => Err(Fail::new(error.message.to_string_lossy())),
        }
    }

    /// Answers of the in-memory store.
    fn in_memory(&self, method: &str, args: Vec<Value>) -> Result<Value, CapabilityError> {
        let (store, now) = (&self.store, self.now_ms());
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or(Value::Undefined);
        let first = next();
        match method {
            "store.get" => store.get_at(first, now),
            "store.delete" => store.delete_at(first, now).map(Value::Bool),
            "store.list" => {
                let page = Page::of(first, next(), &next())?;
                Ok(store.list_at(&page, now))
            }
            "store.compareAndSet" => {
                let (expected, value, expires) = (next(), next(), next().as_f64());
                let done = store.compare_and_set_at(first, &expected, value, expires, now);
                done.map(Value::Bool)
            }
            _ => {
                let (value, expires) = (next(), next().as_f64());
                store.set_at(first, value, expires, now)?;
                Ok(Value::Undefined)
            }
        }
    }

    /// Replaces or deletes a document of the host's store.
    pub(super) fn vector_change(
        &mut self,
        op: &str,
        method: &str,
        what: &str,
        node: Node<'_>,
        scope: &ScopeRef,
    ) -> Res<OVal> {
        let args = self.inputs(&["collection", what], node, scope)?;
        let full = format!("store.{method}");
        if !self.host.provides(&full) {
            let text = format!("Capability 'store' missing or does not support {method}.");
            return Err(self.missing(&text));
        }
        self.call_host(op, &full, &args)
    }

    /// An atom of keys: its inputs, the last of which may be a time to live.
    fn key_atom(
        &mut self,
        op: &str,
        method: &str,
        keys: &[&str],
        node: Node<'_>,
        scope: &ScopeRef,
    ) -> Res<OVal> {
        let mut args = self.inputs(keys, node, scope)?;
        let mut method = method;
        if keys.last() == Some(&"ttlMs") {
            let ttl = args.pop().unwrap_or(OVal::Undef);
            let expires = match self.expiry(op, &ttl) {
                Ok(expires) => expires,
                // A call among others fails when it is made.
                Err(wrong) => return self.hold(Vec::new()).and(Err(wrong)),
            };
            if let Some(expires) = expires {
                args.push(expires);
                if method == "store.set" {
                    method = "store.setUntil";
                }
            }
        }
        self.store_call(op, method, args)
    }

    /// `storeGet` and the like.
    pub(super) fn store_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let (method, keys): (_, &[&str]) = match op {
            "storeGet" => ("store.get", &["key"]),
            "storeSet" => ("store.set", &["key", "value", "ttlMs"]),
            "storeDelete" => ("store.delete", &["key"]),
            "storeCompareAndSet" => (
                "store.compareAndSet",
                &["key", "expected", "value", "ttlMs"],
            ),
            "storeList" => ("store.list", &["prefix", "cursor", "limit"]),
            "storeQueryWhere" => return self.query_where(op, node, scope),
            "storeQuery" => ("store.query", &["query"]),
            _ => ("store.vectorSearch", &["collection", "vector", "k"]),
        };
        if OWN.contains(&method) {
            return self.key_atom(op, method, keys, node, scope);
        }
        let search = op == "storeVectorSearch";
        if !self.host.provides(method) {
            if !self.has_store() {
                self.warn_default_store();
            }
            if search {
                self.pay_search(op, None)?;
            }
            return Ok(OVal::array(Vec::new()));
        }
        let args = self.inputs(keys, node, scope)?;
        if search {
            self.pay_search(op, args.get(2))?;
        }
        match self.call_host(op, method, &args)? {
            OVal::Undef => Ok(OVal::array(Vec::new())),
            rows => Ok(rows),
        }
    }

    fn query_where(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let args = self.inputs(&["predicate", "collection", "limit"], node, scope)?;
        let canonical = match args.first() {
            Some(OVal::Obj(p)) => p.get(&js("canonical")),
            _ => None,
        };
        if !matches!(canonical, Some(OVal::Str(_))) {
            return fail(
                "storeQueryWhere: `predicate` must be a canonical verified predicate \
                 (an object with a string `canonical`)",
            );
        }
        if !self.host.provides("store.queryPredicate") {
            return Err(self.missing("Capability 'store.queryPredicate' missing"));
        }
        let parts = ["predicate", "collection", "limit"].iter().zip(args);
        let query: Obj = parts.map(|(k, v)| (js(k), v)).collect();
        match self.call_host(op, "store.queryPredicate", &[OVal::object(query)])? {
            OVal::Undef | OVal::Null => Ok(OVal::array(Vec::new())),
            rows => Ok(rows),
        }
    }
}
