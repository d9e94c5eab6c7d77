//! Store atoms, and the store that a run owns when its host grants none
//! (decision D40).

use super::machine::{Machine, ScopeRef};
use super::meter::pay_crossing;
use super::steps::Node;
use super::value::{JsStr, OVal, Obj, Res, deep_copy, fail, from_value, js};

impl Machine<'_> {
    /// Whether the host grants a store of its own.
    pub(super) fn has_store(&self) -> bool {
        [
            "store.get",
            "store.set",
            "store.query",
            "store.vectorSearch",
        ]
        .iter()
        .any(|m| self.host.provides(m))
    }

    /// Whether a store method exists; the default store gets and sets.
    pub(super) fn store_can(&self, method: &str) -> bool {
        self.host.provides(method)
            || (!self.has_store() && matches!(method, "store.get" | "store.set"))
    }

    /// The key of the default store: texts are themselves, other values are
    /// told apart from them and from each other by their JSON text.
    fn store_key(&self, key: &OVal) -> Res<JsStr> {
        match key {
            OVal::Str(text) => Ok(text.clone()),
            OVal::Num(n) => Ok(js(&format!("\u{0}{}", n + 0.0))),
            other => Ok(js(&format!("\u{0}{:?}", self.export(other)?))),
        }
    }

    /// Reads from the store.
    pub(super) fn store_get(&mut self, key: &JsStr) -> Res<OVal> {
        if self.has_store() {
            return self.call_host("storeGet", "store.get", &[OVal::Str(key.clone())]);
        }
        self.warn_default_store();
        let stored = self.store.get(key).cloned().unwrap_or(OVal::Undef);
        deep_copy(&stored, self.opts.max_depth)
    }

    /// Writes to the store.
    pub(super) fn store_set(&mut self, key: &JsStr, value: &OVal) -> Res<OVal> {
        if self.has_store() {
            if !self.host.provides("store.set") {
                return Err(self.missing("Capability 'store.set' missing"));
            }
            return self.call_host(
                "storeSet",
                "store.set",
                &[OVal::Str(key.clone()), value.clone()],
            );
        }
        self.warn_default_store();
        // What a store keeps is data: sets and dates become what JSON shows.
        let copy = from_value(&self.export(value)?);
        self.store.insert(key.clone(), copy);
        Ok(OVal::Undef)
    }

    /// An entry on its way to the run's own store, in a call among others.
    fn held_entry(&mut self, key: OVal, value: OVal) -> Res<(OVal, OVal)> {
        if self.gathering.is_none() {
            return Ok((key, value));
        }
        let held = vec![self.export(&key)?, self.export(&value)?];
        let held = self.hold(held)?;
        let part = |at: usize| held.get(at).map_or(OVal::Undef, from_value);
        Ok((part(0), part(1)))
    }

    fn warn_default_store(&mut self) {
        let text = "Using the default in-memory store; its data ends with the run";
        if !self.warnings.iter().any(|w| *w == text) {
            self.warnings.push(text.into());
        }
    }

    /// `storeGet` and the like.
    pub(super) fn store_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "storeGet" | "storeSet" => {
                let key = self.input(node, "key", scope)?;
                let value = match op {
                    "storeSet" => self.input(node, "value", scope)?,
                    _ => OVal::Undef,
                };
                pay_crossing(&key).and_then(|()| pay_crossing(&value))?;
                let method = if op == "storeGet" {
                    "store.get"
                } else {
                    "store.set"
                };
                if !self.store_can(method) {
                    return Err(self.missing(&format!("Capability '{method}' missing")));
                }
                if self.has_store() {
                    let args = [key, value];
                    let count = if op == "storeGet" { 1 } else { 2 };
                    return self.call_host(op, method, &args[..count]);
                }
                let (key, value) = self.held_entry(key, value)?;
                let key = self.store_key(&key)?;
                if op == "storeGet" {
                    self.store_get(&key)
                } else {
                    self.store_set(&key, &value)
                }
            }
            "storeQueryWhere" => {
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
            _ => {
                let (method, keys): (_, &[&str]) = match op {
                    "storeQuery" => ("store.query", &["query"]),
                    _ => ("store.vectorSearch", &["collection", "vector", "k"]),
                };
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
        }
    }
}
