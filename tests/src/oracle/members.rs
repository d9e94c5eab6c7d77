//! `memberSet` and `memberDelete` (decision D66), and object nodes (decision D67).

use super::coerce::to_str;
use super::expr::{Env, field, name_of, not_iterable, pay_nodes, refuse};
use super::machine::{Machine, ScopeRef};
use super::meter::{pay, pay_name};
use super::steps::Node;
use super::value::{Fail, JsStr, OVal, Obj, Res, array_index, fail, lossy};
use a99_core::costs::{self, READ, Sizes};
use a99_core::value::{Map, Value};

impl Machine<'_> {
    pub(super) fn member_atom(&mut self, op: &str, node: Node<'_>, scope: &ScopeRef) -> Res<OVal> {
        let target = self.input(node, "object", scope)?;
        let key = self.input(node, "key", scope)?;
        if op == "memberDelete" {
            let key = paid_key(op, &key)?;
            let OVal::Obj(obj) = &target else {
                let kind = kind_of(&target);
                return Err(Fail::new(format!("{op} wants an object, got {kind}")));
            };
            return Ok(OVal::Bool(obj.remove(&key)));
        }
        let value = self.input(node, "value", scope)?;
        let key = paid_key(op, &key)?;
        match &target {
            OVal::Obj(obj) => obj.insert(key, value),
            OVal::Arr(list) => {
                let len = list.borrow().len();
                match array_index(&key) {
                    Some(at) if at < len => list.borrow_mut()[at] = value,
                    Some(at) if at == len => list.borrow_mut().push(value),
                    Some(at) => {
                        let why = format!("{op}: index {at} is beyond the end of a list of {len}");
                        return Err(Fail::new(why));
                    }
                    None => {
                        let shown: String = lossy(&key).chars().take(40).collect();
                        return Err(Fail::new(format!("{op}: '{shown}' is no index of a list")));
                    }
                }
            }
            other => {
                let kind = kind_of(other);
                let why = format!("{op} wants an object or a list, got {kind}");
                return Err(Fail::new(why));
            }
        }
        Ok(target)
    }

    /// An object node, whose keys may be computed (decision D67).
    pub(super) fn object(&mut self, map: &Map, env: Env<'_>) -> Res<OVal> {
        let properties = field(map, "properties")
            .as_array()
            .ok_or_else(not_iterable)?;
        pay_nodes(costs::object_nodes(properties.len()))?;
        let out = Obj::new();
        let node = |property: &Value| Some(field(property.as_object()?, "key").clone());
        let is_computed = |m: &Self, property: &Value| {
            m.frame.version_4 && node(property).is_some_and(|key| m.evaluates(&key))
        };
        let keyed = properties.iter().any(|p| is_computed(self, p));
        for property in properties {
            let Some(members) = property.as_object() else {
                return fail("Cannot read properties of null (reading 'key')");
            };
            let key = match is_computed(self, property) {
                true => Err(self.eval(field(members, "key"), env)?),
                false => Ok(name_of(field(members, "key"))),
            };
            let value = self.eval(field(members, "value"), env)?;
            let key = match key {
                Ok(name) => {
                    refuse(&name)?;
                    name
                }
                Err(key) => name_of_key(&key)?,
            };
            if keyed {
                pay_key(&key)?;
            }
            out.insert(key, value);
        }
        Ok(OVal::object(out))
    }
}

fn kind_of(value: &OVal) -> &'static str {
    match value {
        OVal::Null => "null",
        OVal::Arr(_) => "a list",
        OVal::Set(_) => "a set",
        OVal::Map(_) => "a map",
        OVal::Date(_) => "a date",
        other => other.type_of(),
    }
}

/// A key as text; pays for it.
fn paid_key(op: &str, key: &OVal) -> Res<JsStr> {
    if key.is_nullish() {
        return Err(Fail::new(format!("{op}: there is no key")));
    }
    let key = name_of_key(key)?;
    pay_key(&key)?;
    Ok(key)
}

/// The text of a computed key.
pub(super) fn name_of_key(key: &OVal) -> Res<JsStr> {
    match key {
        OVal::Str(_) | OVal::Num(_) | OVal::Bool(_) => to_str(key),
        _ => Err(Fail::new("Property key must be a string or number")),
    }
}

pub(super) fn pay_key(key: &JsStr) -> Res<()> {
    pay(READ, Sizes::units(key.len()))?;
    pay_name(key)
}
