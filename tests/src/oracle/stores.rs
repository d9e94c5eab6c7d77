//! Store atoms, and the store that a run owns when its host grants none
//! (decision D40).

use super::machine::{Machine, ScopeRef};
use super::steps::Node;
use super::value::{JsStr, OVal, Obj, Res, deep_copy, fail, from_value, js};
use a99_core::value::Value;

/// The code points of a text, in whose order keys are listed.
fn points(text: &JsStr) -> Vec<u32> {
    let points = char::decode_utf16(text.iter().copied());
    let point = |unit: Result<char, std::char::DecodeUtf16Error>| match unit {
        Ok(c) => u32::from(c),
        Err(alone) => u32::from(alone.unpaired_surrogate()),
    };
    points.map(point).collect()
}

impl Machine<'_> {
    /// Whether the host grants a store of its own.
    pub(super) fn has_store(&self) -> bool {
        [
            "store.get",
            "store.set",
            "store.query",
            "store.vectorSearch",
            "store.setUntil",
            "store.delete",
            "store.list",
            "store.compareAndSet",
        ]
        .iter()
        .any(|m| self.host.provides(m))
    }

    /// Whether a store method exists; the default store has those of keys.
    pub(super) fn store_can(&self, method: &str) -> bool {
        const OWN: [&str; 6] = [
            "store.get",
            "store.set",
            "store.setUntil",
            "store.delete",
            "store.list",
            "store.compareAndSet",
        ];
        self.host.provides(method) || (!self.has_store() && OWN.contains(&method))
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
        let stored = self.stored(key);
        deep_copy(&stored, self.opts.max_depth)
    }

    /// What the default store has under a key at this time.
    fn stored(&self, key: &JsStr) -> OVal {
        match self.store.get(key) {
            Some((value, expires)) if self.now_ms() < *expires => value.clone(),
            _ => OVal::Undef,
        }
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
        self.keep(key, value, f64::INFINITY)
    }

    /// Puts a value into the default store until a time.
    fn keep(&mut self, key: &JsStr, value: &OVal, expires: f64) -> Res<OVal> {
        // What a store keeps is data: sets and dates become what JSON shows.
        let copy = from_value(&self.export(value)?);
        self.store.insert(key.clone(), (copy, expires));
        Ok(OVal::Undef)
    }

    /// Inputs on their way to the run's own store, in a call among others.
    fn held<const N: usize>(&mut self, inputs: [OVal; N]) -> Res<[OVal; N]> {
        if self.gathering.is_none() {
            return Ok(inputs);
        }
        let parts: Res<Vec<Value>> = inputs.iter().map(|input| self.export(input)).collect();
        let held = self.hold(parts?)?;
        Ok(std::array::from_fn(|at| {
            held.get(at).map_or(OVal::Undef, from_value)
        }))
    }

    /// The time at which something is gone that is kept for `ttlMs`.
    fn expiry(&self, op: &str, ttl: &OVal) -> Res<Option<f64>> {
        match ttl {
            OVal::Undef | OVal::Null => Ok(None),
            OVal::Num(ttl) if !ttl.is_nan() => Ok(Some(self.now_ms() + ttl)),
            _ => fail(format!("{op}: ttlMs must be a number")),
        }
    }

    fn warn_default_store(&mut self) {
        let text = "Using the default in-memory store; its data ends with the run";
        if !self.warnings.iter().any(|w| *w == text) {
            self.warnings.push(text.into());
        }
    }

    /// The inputs of a store atom.
    fn given<const N: usize>(
        &mut self,
        keys: &[&str; N],
        node: Node<'_>,
        scope: &ScopeRef,
    ) -> Res<[OVal; N]> {
        let mut inputs = self.inputs(keys, node, scope)?.into_iter();
        Ok(std::array::from_fn(|_| {
            inputs.next().unwrap_or(OVal::Undef)
        }))
    }

    /// Calls the host's store, or does the same with the run's own.
    fn granted_or_own(
        &mut self,
        op: &str,
        method: &str,
        args: &[&OVal],
        own: impl FnOnce(&mut Self) -> Res<OVal>,
    ) -> Res<OVal> {
        if !self.store_can(method) {
            return Err(self.missing(&format!("Capability '{method}' missing")));
        }
        if self.has_store() {
            let args: Vec<OVal> = args.iter().map(|arg| (*arg).clone()).collect();
            return self.call_host(op, method, &args);
        }
        self.warn_default_store();
        own(self)
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

    /// A page of the default store's text keys.
    fn list_keys(&self, prefix: &OVal, cursor: &OVal, limit: &OVal) -> Res<OVal> {
        let text = |value: &OVal, what: &str| match value {
            OVal::Undef | OVal::Null => Ok(None),
            OVal::Str(text) => Ok(Some(text.clone())),
            _ => fail(format!("The {what} must be a text.")),
        };
        let prefix = text(prefix, "prefix")?.unwrap_or_default();
        let after = text(cursor, "cursor")?.map(|after| points(&after));
        let limit = match limit {
            OVal::Undef | OVal::Null => 100,
            OVal::Num(n) if *n >= 1.0 => n.min(1000.0) as usize,
            _ => return fail("The limit must be a number from 1 on."),
        };
        let mut keys: Vec<&JsStr> = self.store.keys().collect();
        keys.retain(|key| {
            let is_text = key.first() != Some(&0);
            let live = self
                .store
                .get(*key)
                .is_some_and(|(_, expires)| self.now_ms() < *expires);
            let follows = after.as_ref().is_none_or(|after| points(key) > *after);
            is_text && live && follows && key.starts_with(&prefix)
        });
        keys.sort_by_key(|key| points(key));
        let more = keys.len() > limit;
        keys.truncate(limit);
        let page = Obj::default();
        let texts = keys.iter().map(|key| OVal::Str((*key).clone()));
        page.insert(js("keys"), OVal::array(texts.collect()));
        if let (true, Some(last)) = (more, keys.last()) {
            page.insert(js("cursor"), OVal::Str((*last).clone()));
        }
        Ok(OVal::object(page))
    }

    /// `storeGet` and the like.
    pub(super) fn store_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        match op {
            "storeGet" => {
                let [key] = self.given(&["key"], node, scope)?;
                self.granted_or_own(op, "store.get", &[&key], |own| {
                    let [key] = own.held([key.clone()])?;
                    let key = own.store_key(&key)?;
                    own.store_get(&key)
                })
            }
            "storeSet" => {
                let [key, value, ttl] = self.given(&["key", "value", "ttlMs"], node, scope)?;
                let expires = self.expiry(op, &ttl)?;
                let time = expires.map(OVal::Num);
                let method = match time {
                    Some(_) => "store.setUntil",
                    None => "store.set",
                };
                let args: Vec<&OVal> = [&key, &value].into_iter().chain(&time).collect();
                self.granted_or_own(op, method, &args, |own| {
                    let [key, value] = own.held([key.clone(), value.clone()])?;
                    let key = own.store_key(&key)?;
                    own.keep(&key, &value, expires.unwrap_or(f64::INFINITY))
                })
            }
            "storeDelete" => {
                let [key] = self.given(&["key"], node, scope)?;
                self.granted_or_own(op, "store.delete", &[&key], |own| {
                    let [key] = own.held([key.clone()])?;
                    let key = own.store_key(&key)?;
                    let now = own.now_ms();
                    let old = own.store.remove(&key);
                    Ok(OVal::Bool(old.is_some_and(|(_, expires)| now < expires)))
                })
            }
            "storeCompareAndSet" => {
                let keys = ["key", "expected", "value", "ttlMs"];
                let [key, expected, value, ttl] = self.given(&keys, node, scope)?;
                let expires = self.expiry(op, &ttl)?;
                let time = expires.map(OVal::Num);
                let args = [&key, &expected, &value].into_iter().chain(&time);
                let args: Vec<&OVal> = args.collect();
                self.granted_or_own(op, "store.compareAndSet", &args, |own| {
                    let inputs = [key.clone(), expected.clone(), value.clone()];
                    let [key, expected, value] = own.held(inputs)?;
                    let key = own.store_key(&key)?;
                    let stored = own.stored(&key);
                    let same = own.export(&stored)? == own.export(&expected)?;
                    if same {
                        own.keep(&key, &value, expires.unwrap_or(f64::INFINITY))?;
                    }
                    Ok(OVal::Bool(same))
                })
            }
            "storeList" => {
                let [prefix, cursor, limit] =
                    self.given(&["prefix", "cursor", "limit"], node, scope)?;
                let args = [&prefix, &cursor, &limit];
                self.granted_or_own(op, "store.list", &args, |own| {
                    let inputs = [prefix.clone(), cursor.clone(), limit.clone()];
                    let [prefix, cursor, limit] = own.held(inputs)?;
                    own.list_keys(&prefix, &cursor, &limit)
                })
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
