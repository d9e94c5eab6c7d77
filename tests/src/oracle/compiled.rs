//! Price of compiling a program at run time: its elements, members and texts, those of the
//! helpers that it needs, and the visible variables, in the metered model.

use super::machine::{Machine, ScopeRef};
use super::value::{Res, from_wtf8};
use a99_core::costs::{COMPILE_ELEMENT, COMPILE_UNIT, CostModel};
use a99_core::text::Text;
use a99_core::value::Value;
use std::collections::BTreeSet;

/// Counts of a part of a program.
#[derive(Default)]
struct Found {
    elements: i64,
    units: i64,
    /// Names of called helpers.
    called: BTreeSet<Vec<u8>>,
    /// True if it calls a helper whose name is no text.
    any: bool,
}

impl Found {
    fn look(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.units += from_wtf8(text.as_bytes()).len() as i64;
            }
            Value::Array(items) => {
                self.elements += items.len() as i64;
                items.iter().for_each(|item| self.look(item));
            }
            Value::Object(map) => {
                if map.get("op").and_then(Value::as_str) == Some("callLocal") {
                    match map.get("name").and_then(Value::as_text) {
                        Some(name) => drop(self.called.insert(bytes(name))),
                        None => self.any = true,
                    }
                }
                for (_, member) in map.iter().filter(|(_, v)| !v.is_undefined()) {
                    self.elements += 1;
                    self.look(member);
                }
            }
            _ => {}
        }
    }
}

impl Machine<'_> {
    /// Pays for compiling an inline program; a code program also sees the variables of a scope.
    pub(super) fn pay_compiling(&mut self, root: &Value, sees: Option<&ScopeRef>) -> Res<()> {
        if self.meter.model() == CostModel::Flat {
            return Ok(());
        }
        let mut found = Found::default();
        found.look(root);
        let helpers = self.frame.helpers.clone();
        let mut counted = BTreeSet::new();
        loop {
            let all = helpers.as_object().into_iter().flat_map(|map| map.iter());
            let new: Vec<_> = all
                .map(|(name, helper)| (bytes(name), helper))
                .filter(|(name, _)| found.any || found.called.contains(name))
                .filter(|(name, _)| !counted.contains(name))
                .collect();
            if new.is_empty() {
                break;
            }
            for (name, helper) in new {
                counted.insert(name);
                found.elements += 1;
                found.look(helper);
            }
        }
        if let Some(scope) = sees {
            found.elements += scope.visible().len() as i64;
        }
        let price = found.elements * COMPILE_ELEMENT + found.units * COMPILE_UNIT;
        self.meter.take(price)
    }
}

fn bytes(text: &Text) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found() {
        let mut found = Found::default();
        let step = a99_core::value::Map::from_iter([("op", "callLocal"), ("name", "h")]);
        found.look(&Value::Array(vec![Value::Object(step)]));
        assert_eq!((found.elements, found.units), (3, 10));
        assert_eq!(found.called, BTreeSet::from([b"h".to_vec()]));
    }
}
