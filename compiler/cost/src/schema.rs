//! Prices of checks by schemas.

use crate::build::Builder;
use crate::graph::{Key, NodeId, What, Why};
use a99_core::costs::{ELEMENT, SCHEMA_NODE, UNIT};
use a99_core::value::Value;

/// Keywords whose price is known. Others cost nothing or stand in `UNKNOWN`.
const UNKNOWN: &[&str] = &[
    "pattern",
    "format",
    "$ref",
    "allOf",
    "oneOf",
    "not",
    "if",
    "patternProperties",
    "prefixItems",
];

/// Keywords for which a text is read.
const READ: &[&str] = &["const", "enum", "minLength", "maxLength"];

impl Builder<'_> {
    /// Pays for checking a value, `times` over for each part.
    pub(crate) fn checked(
        &mut self,
        schema: &Value,
        value: NodeId,
        around: &[NodeId],
        projects: bool,
    ) {
        let (unit, element) = (UNIT as f64, ELEMENT as f64);
        let times = if projects { 2.0 } else { 1.0 };
        self.each(around, times * SCHEMA_NODE as f64, What::One);
        let Some(object) = schema.as_object() else {
            return;
        };
        const WHY: Why = "a schema with keywords without a model";
        if UNKNOWN.iter().any(|name| object.get(name).is_some()) {
            return self.pay(1.0, What::Fails(WHY));
        }
        if READ.iter().any(|name| object.get(name).is_some()) {
            self.each(around, 2.0 * unit, What::Units(value));
        }
        if let Some(Value::Array(list)) = object.get("anyOf") {
            for schema in list {
                self.checked(schema, value, around, projects);
            }
        }
        let names = |list: &mut dyn Iterator<Item = &[u8]>| {
            list.map(|name| element + unit * f64::from(crate::build::units(name)))
                .sum::<f64>()
        };
        if let Some(Value::Array(required)) = object.get("required") {
            let price = names(&mut required.iter().filter_map(|name| match name {
                Value::String(text) => Some(text.as_bytes()),
                _ => None,
            }));
            self.each(around, price, What::One);
        }
        if let Some(Value::Object(properties)) = object.get("properties") {
            let price = names(&mut properties.iter().map(|(name, _)| name.as_bytes()));
            self.each(
                around,
                times * price + element * properties.len() as f64,
                What::One,
            );
            for (name, schema) in properties.iter() {
                let member = self.load(value, Key::Name(name.as_bytes().to_vec()));
                self.checked(schema, member, around, projects);
            }
        }
        if let Some(schema @ Value::Object(_)) = object.get("additionalProperties") {
            self.each(around, 3.0 * element, What::Len(value));
            self.each(
                around,
                3.0 * unit,
                What::Deep(crate::graph::Deep::Units, value),
            );
            self.inside(schema, value, around, projects);
        }
        match object.get("items") {
            Some(Value::Array(_)) => self.pay(1.0, What::Fails(WHY)),
            Some(schema) => {
                self.each(around, element, What::Len(value));
                self.inside(schema, value, around, projects);
            }
            None => {}
        }
    }

    fn inside(&mut self, schema: &Value, value: NodeId, around: &[NodeId], projects: bool) {
        let item = self.load(value, Key::Any);
        let around = [around, &[value]].concat();
        self.checked(schema, item, &around, projects);
    }

    /// Pays a price for each element of lists in each other.
    fn each(&mut self, around: &[NodeId], times: f64, what: What) {
        let what = around.iter().fold(what, |what, list| {
            What::Times(Box::new(What::Len(*list)), Box::new(what))
        });
        self.pay(times, what);
    }
}
