//! `memberSet` and `memberDelete` (decision D66).

use super::coerce::to_str;
use super::machine::{Machine, ScopeRef};
use super::meter::{owe_name, pay};
use super::steps::Node;
use super::value::{Fail, JsStr, OVal, Res, array_index, lossy};
use a99_core::costs::{READ, Sizes};

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
}

fn kind_of(value: &OVal) -> &'static str {
    match value {
        OVal::Null => "null",
        OVal::Arr(_) => "a list",
        OVal::Set(_) => "a set",
        OVal::Date(_) => "a date",
        other => other.type_of(),
    }
}

/// A key as text, which is paid.
fn paid_key(op: &str, key: &OVal) -> Res<JsStr> {
    match key {
        OVal::Str(_) | OVal::Num(_) | OVal::Bool(_) => {}
        OVal::Null | OVal::Undef => return Err(Fail::new(format!("{op}: there is no key"))),
        _ => return Err(Fail::new("Property key must be a string or number")),
    }
    let key = to_str(key)?;
    pay(READ, Sizes::units(key.len()))?;
    owe_name(&key);
    Ok(key)
}
