//! `memoize`, `cache` and digests (decisions D25 to D27, language section 4.9).
//!
//! # The key of a body without a `key`
//!
//! It is the lower-case hexadecimal SHA-256 of the canonical JSON (members
//! sorted by UTF-16 units, no spaces, `undefined` members left out) of
//!
//! ```json
//! {"body": [steps], "free": {name: value, ...}}
//! ```
//!
//! * `body` is the step's `steps` with the `result` of its last step removed.
//! * A *name of the body* is every text that stands as a value anywhere in it
//!   (array elements and members, at any depth), the part of such a text
//!   before its first `.`, every identifier-like word of such a text when it
//!   is a `condition` or an `expr`, and `args` for a `{"$kind": "arg"}` node.
//! * `free` has those names of the body that are bound in the scopes around
//!   it, with the variable's value as `JSON.stringify` shows it; else those
//!   that are members of the run's arguments, with that value; and `args`,
//!   when it is a name of the body and no variable, with all the arguments.
//!
//! For `cache` the object has a third member, `program`: the canonical JSON of
//! the whole program. A body with a `key` uses its text; `memoize` distinguishes
//! texts from other kinds of key.

use super::coerce::to_str;
use super::json::{self, Style};
use super::machine::{Flow, Machine, Scope, ScopeRef};
use super::meter::pay_crossing;
use super::options::TraceEvent;
use super::steps::Node;
use super::value::{
    Fail, JsStr, OVal, Obj, Res, deep_copy, fail, from_value, from_wtf8, js, lossy,
};
use a99_core::costs::{CACHE_STORE, DIGEST, READ, Sizes, WRITTEN, copied, crossing_object};
use a99_core::value::{Map, Value};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

/// Default time to live of a cached value, in milliseconds.
const DEFAULT_TTL_MS: f64 = 86_400_000.0;

/// The digest of bytes as lower-case hexadecimal; `None` for an unknown
/// algorithm.
pub(super) fn digest(algorithm: &str, bytes: &[u8]) -> Option<String> {
    let raw: Vec<u8> = match algorithm.to_ascii_uppercase().as_str() {
        "SHA-1" => Sha1::digest(bytes).to_vec(),
        "SHA-256" => Sha256::digest(bytes).to_vec(),
        "SHA-384" => Sha384::digest(bytes).to_vec(),
        "SHA-512" => Sha512::digest(bytes).to_vec(),
        _ => return None,
    };
    Some(raw.iter().map(|b| format!("{b:02x}")).collect())
}

/// Style of the canonical text, which is free.
const SORTED: Style = Style {
    indent: Vec::new(),
    keys: None,
    sorted: true,
    paid: false,
    listed: 0,
};

fn canonical(value: &OVal) -> Res<Option<Vec<u16>>> {
    json::stringify(
        value,
        &Style {
            sorted: true,
            paid: true,
            ..Style::default()
        },
    )
}

/// The body without the `result` of its last step.
fn anonymous(steps: &Value) -> Value {
    let Value::Array(steps) = steps else {
        return steps.clone();
    };
    let mut steps = steps.clone();
    if let Some(Value::Object(last)) = steps.last_mut() {
        last.remove("result");
    }
    Value::Array(steps)
}

/// Collects the names of a body; see the module.
fn names(value: &Value, key: &str, texts: bool, out: &mut BTreeSet<JsStr>) {
    match value {
        Value::String(text) => {
            let units = from_wtf8(text.as_bytes());
            if let Some(dot) = units.iter().position(|u| *u == 46) {
                out.insert(units[..dot].into());
            }
            if matches!(key, "condition" | "expr" | "stopWhen") || texts && key == "=" {
                let lossy = text.to_string_lossy();
                let words = lossy.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
                out.extend(words.filter(|w| !w.is_empty()).map(js));
            }
            out.insert(units);
        }
        Value::Array(items) => items.iter().for_each(|v| names(v, "", texts, out)),
        Value::Object(map) => {
            if value.get("$kind").is_some() {
                out.insert(js("args"));
            }
            let text = texts.then(|| super::expr::expr_text(value)).flatten();
            for (k, v) in map {
                let key = match text.is_some() && v.as_text().is_some() {
                    true => "=".into(),
                    // With other keys beside it, it is data.
                    false if k == "=" => "".into(),
                    false => k.to_string_lossy(),
                };
                names(v, &key, texts, out);
            }
        }
        _ => {}
    }
}

/// Pays for a copy within the run: each container once.
pub(super) fn pay_copied(value: &OVal, seen: &mut HashSet<usize>) -> Res<()> {
    let (at, len) = match value {
        OVal::Arr(r) | OVal::Set(r) => (Rc::as_ptr(r) as usize, r.borrow().len()),
        OVal::Obj(r) => (Rc::as_ptr(r) as usize, r.len()),
        OVal::Date(r) => (Rc::as_ptr(r) as usize, 0),
        OVal::Map(r) => (Rc::as_ptr(r) as usize, 0),
        _ => return Ok(()),
    };
    if !seen.insert(at) {
        return Ok(());
    }
    super::meter::pay_metered(READ.price(Sizes::elements(copied(len))))?;
    match value {
        OVal::Arr(r) | OVal::Set(r) => {
            let items = r.borrow().clone();
            items.iter().try_for_each(|v| pay_copied(v, seen))
        }
        OVal::Obj(r) => r.values().try_for_each(|v| pay_copied(&v, seen)),
        OVal::Map(r) => {
            // The object and the list in it, and what each entry by identity is kept in.
            let entries = r.borrow().clone();
            let is_kept = |key: &OVal| {
                use OVal::{Arr, Date, Map, Obj, Set};
                matches!(key, Arr(_) | Obj(_) | Set(_) | Date(_) | Map(_))
            };
            let kept = entries.iter().filter(|(k, _)| is_kept(k)).count();
            let mut sizes = vec![entries.len(), kept];
            sizes.extend(std::iter::repeat_n(3, kept));
            for len in sizes {
                super::meter::pay_metered(READ.price(Sizes::elements(copied(len))))?;
            }
            entries.iter().try_for_each(|(k, v)| {
                pay_copied(k, seen)?;
                pay_copied(v, seen)
            })
        }
        _ => Ok(()),
    }
}

impl Machine<'_> {
    /// The key of a body, hashed like the value of a `hash` step.
    fn keyless(&mut self, node: Node<'_>, scope: &ScopeRef, with_program: bool) -> Res<String> {
        let before = self.fuel();
        let made = self.hashed(node, scope, with_program);
        if self.opts.trace {
            self.trace.push(TraceEvent {
                op: "hash".to_owned(),
                input: super::machine::record([("value", node.get("steps").clone())]),
                state_diff: Value::Object(Map::new()),
                result: made
                    .as_ref()
                    .map_or(Value::Undefined, |key| key.as_str().into()),
                error: None,
                fuel_before: before,
                fuel_after: self.fuel(),
            });
        }
        made.map_err(|e| {
            self.traced = true;
            e.at("hash")
        })
    }

    fn hashed(&mut self, node: Node<'_>, scope: &ScopeRef, with_program: bool) -> Res<String> {
        let price = match self.opts.cost_overrides.get("hash") {
            Some(super::CostOverride::Number(n)) => a99_core::fuel::cost_from_f64(*n),
            _ => None,
        };
        let own = super::prices::price("hash", self.meter.model());
        self.meter.take(price.unwrap_or(own))?;
        let program = lossy(self.frame.program.as_slice());
        let reads = self.frame.version_4 && super::context::reads(&program);
        if with_program && reads {
            let why = "cache needs a key: the program reads the context";
            return Err(Fail::new(why).at("hash"));
        }
        let body = anonymous(node.get("steps"));
        let mut found = BTreeSet::new();
        names(&body, "", self.frame.version_4, &mut found);
        let free = Obj::new();
        for name in found {
            let value = scope.lookup(&name).or_else(|| match &self.frame.args {
                OVal::Obj(args) if args.contains_key(&name) => args.get(&name),
                args if *name == *js("args") => Some(args.clone()),
                _ => None,
            });
            free.extend(value.map(|v| (name, v)));
        }
        let whole = Obj::from([
            (js("body"), from_value(&body)),
            (js("free"), OVal::object(free)),
        ]);
        if with_program {
            whole.insert(
                js("program"),
                OVal::Str(self.frame.program.as_slice().into()),
            );
        }
        let text = json::stringify(&OVal::object(whole), &SORTED)?.unwrap_or_default();
        let bytes = super::value::to_wtf8(&text);
        Ok(digest("SHA-256", &bytes).unwrap_or_default())
    }

    fn value_of(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let child = Scope::new(Some(scope));
        Ok(match self.list(node.get("steps"), &child)? {
            Flow::Return(value) => value,
            _ => child.lookup(&js("result")).unwrap_or(OVal::Undef),
        })
    }

    /// The `memoize` atom.
    pub(super) fn memoize(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let given = self.resolve(node.get("key"), scope)?;
        let key = match &given {
            OVal::Undef | OVal::Null => {
                js(&format!("body:{}", self.keyless(node, scope, false)?)).to_vec()
            }
            OVal::Str(s) => [js("text:").to_vec(), s.to_vec()].concat(),
            OVal::Bool(_) | OVal::Num(_) => {
                [js("plain:").to_vec(), to_str(&given)?.to_vec()].concat()
            }
            other => {
                let text = canonical(other)?.unwrap_or_default();
                self.meter
                    .charge(WRITTEN, Sizes::default().out_units(text.len()))?;
                [js("value:").to_vec(), text].concat()
            }
        };
        let digested = match &given {
            OVal::Str(_) => key.len() - 5,
            OVal::Arr(_) | OVal::Obj(_) | OVal::Set(_) | OVal::Date(_) | OVal::Map(_) => {
                key.len() - 6
            }
            _ => 0,
        };
        let digested = match super::value::to_wtf8(&key[key.len() - digested..]).len() {
            ..=256 => 0,
            _ => digested,
        };
        self.meter.charge(DIGEST, Sizes::units(digested))?;
        if let Some(value) = self.memo.get(&key) {
            pay_copied(value, &mut HashSet::new())?;
            return deep_copy(value, self.opts.max_depth);
        }
        let value = self.value_of(node, scope)?;
        let copy = deep_copy(&value, self.opts.max_depth)?;
        pay_copied(&value, &mut HashSet::new())?;
        // A compound key is converted to text once more.
        if key.starts_with(&js("value:")) {
            let text = canonical(&given)?.unwrap_or_default();
            self.meter
                .charge(WRITTEN, Sizes::default().out_units(text.len()))?;
        }
        self.meter.charge(DIGEST, Sizes::units(digested))?;
        self.memo.insert(key, copy);
        Ok(value)
    }

    /// The `cache` atom.
    pub(super) fn cache(&mut self, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let given = self.resolve(node.get("key"), scope)?;
        let (key, given) = match given.is_nullish() {
            true => {
                let key = js(&self.keyless(node, scope, true)?);
                (key.clone(), OVal::Str(key))
            }
            false => (to_str(&given)?, given),
        };
        let key = [js("cache:").to_vec(), key.to_vec()].concat();
        let ttl = self.resolve(node.get("ttlMs"), scope)?;
        if self.has_store() && !self.store_can("store.get") {
            return fail("Capability 'store' missing for caching");
        }
        pay_crossing(&given)?;
        let key: JsStr = key.into();
        let stored = self.store_get(&key)?;
        let now = self.now_ms();
        if stored.truthy() {
            let part = |name: &str| match &stored {
                OVal::Obj(obj) => obj.member(&js(name)),
                _ => OVal::Undef,
            };
            let expires = part("_exp");
            let live = match expires.truthy() {
                false => Some(stored.clone()),
                true => match super::coerce::less(&OVal::Num(now), &expires)? {
                    Some(true) => Some(part("val")),
                    _ => None,
                },
            };
            if let Some(live) = live {
                // It crosses in an object with a flag that a value exists.
                let parts = 1 + usize::from(!live.is_undef());
                super::meter::pay_metered(crossing_object(parts))?;
                pay_crossing(&live)?;
                return Ok(live);
            }
        }
        super::meter::pay_metered(crossing_object(1))?;
        let value = self.value_of(node, scope)?;
        self.meter.take(CACHE_STORE)?;
        let ttl = if ttl.is_nullish() {
            DEFAULT_TTL_MS
        } else {
            super::coerce::to_num(&ttl)?
        };
        pay_crossing(&given)?;
        pay_crossing(&value)?;
        let expires = OVal::Num(self.now_ms() + ttl);
        let envelope = Obj::from([(js("val"), value.clone()), (js("_exp"), expires)]);
        self.store_set(&key, &OVal::object(envelope))?;
        Ok(value)
    }

    /// The failure of a capability that is not granted.
    pub(super) fn missing(&mut self, text: &str) -> Fail {
        if let Err(later) = self.hold(Vec::new()) {
            return later;
        }
        Fail::coded(a99_core::error::ErrorCode::Capability, text)
    }
}
