//! Prints `inputSchema` as the type of the agent's parameter.

use super::{Printed, Printer, Reason};
use crate::spell::property_key;
use a99_core::json::{Kind, NodeId};

const SCHEMA: Reason = (
    "an input schema that no type says",
    "describe the arguments by type, properties, required, items, enum, const, anyOf",
);

/// Maximum nesting of types.
const MAX_TYPES: usize = 32;

impl<'d> Printer<'d> {
    /// Prints the type of the agent's parameter if the program has a schema.
    pub(super) fn input_type(&self) -> Printed<Option<String>> {
        let Some(schema) = self.doc.get(self.doc.root(), "inputSchema") else {
            return Ok(None);
        };
        let is_plain = |key: &[u8]| matches!(key, b"type" | b"description");
        if self.doc.members(schema).all(|(key, _)| is_plain(key)) && self.is_object(schema) {
            // A description alone already becomes such a schema.
            let text = self.doc.get(schema, "description");
            return Ok((text.is_none() && !self.doc.is_empty(schema)).then(|| "object".to_owned()));
        }
        self.ty(schema, 0).map(Some)
    }

    fn is_object(&self, schema: NodeId) -> bool {
        self.doc.kind(schema) == Kind::Object
            && self
                .str(schema, "type")
                .is_none_or(|name| name == b"object")
    }

    fn ty(&self, schema: NodeId, level: usize) -> Printed<String> {
        let doc = self.doc;
        let mut keys: Vec<&[u8]> = doc.members(schema).map(|(key, _)| key).collect();
        keys.retain(|key| *key != b"description");
        keys.sort_unstable();
        let wrong = Err((schema, SCHEMA));
        if doc.kind(schema) != Kind::Object || level > MAX_TYPES {
            return wrong;
        }
        let name = self.str(schema, "type");
        match (&keys[..], name) {
            ([], _) => Ok("unknown".to_owned()),
            ([b"const"], _) => self.literal_type(schema, doc.get(schema, "const")),
            ([b"enum"], _) => {
                let values = doc.get(schema, "enum");
                let values: Vec<NodeId> =
                    values.into_iter().flat_map(|v| doc.elements(v)).collect();
                if values.len() < 2 {
                    return wrong;
                }
                let each = values
                    .iter()
                    .map(|value| self.literal_type(schema, Some(*value)));
                Ok(each.collect::<Printed<Vec<_>>>()?.join(" | "))
            }
            ([b"anyOf"], _) => self.union(schema, level),
            ([b"type"], Some(b"string" | b"number" | b"boolean" | b"null" | b"object")) => {
                Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
            }
            ([b"items", b"type"], Some(b"array")) => {
                let item = self.ty(doc.get(schema, "items").unwrap_or(schema), level + 1)?;
                let is_plain = item.bytes().all(|byte| byte.is_ascii_alphanumeric());
                Ok(if is_plain {
                    format!("{item}[]")
                } else {
                    format!("({item})[]")
                })
            }
            ([b"additionalProperties", b"type"], Some(b"object")) => {
                let others = doc.get(schema, "additionalProperties").unwrap_or(schema);
                Ok(format!("Record<string, {}>", self.ty(others, level + 1)?))
            }
            ([b"properties", b"type"] | [b"properties", b"required", b"type"], Some(b"object")) => {
                self.members_type(schema, level)
            }
            _ => wrong,
        }
    }

    fn members_type(&self, schema: NodeId, level: usize) -> Printed<String> {
        let doc = self.doc;
        let required = doc.get(schema, "required");
        let required: Vec<&[u8]> = required
            .into_iter()
            .flat_map(|list| doc.elements(list))
            .filter_map(|name| doc.str(name))
            .collect();
        let properties = doc.get(schema, "properties").unwrap_or(schema);
        if required
            .iter()
            .any(|name| doc.members(properties).all(|(key, _)| key != *name))
        {
            return Err((schema, SCHEMA));
        }
        let mut items = Vec::new();
        for (key, value) in doc.members(properties) {
            let mut text = Vec::new();
            property_key(key, &mut text);
            let mark = if required.contains(&key) { "" } else { "?" };
            let docs = self
                .str(value, "description")
                .and_then(|text| str::from_utf8(text).ok());
            let docs = docs.filter(|text| !text.contains("*/") && !text.contains('\n'));
            let docs = docs.map_or(String::new(), |text| format!("/** {text} */ "));
            let ty = self.ty(value, level + 1)?;
            items.push(format!(
                "{docs}{}{mark}: {ty}",
                String::from_utf8_lossy(&text)
            ));
        }
        Ok(super::values::braces(&items))
    }

    fn union(&self, schema: NodeId, level: usize) -> Printed<String> {
        let doc = self.doc;
        let list = doc.get(schema, "anyOf");
        let types: Vec<NodeId> = list
            .into_iter()
            .flat_map(|list| doc.elements(list))
            .collect();
        let is_literal = |node: &NodeId| {
            doc.get(*node, "const").is_some() || self.str(*node, "type") == Some(b"null")
        };
        if types.len() < 2 || types.iter().all(is_literal) {
            return Err((schema, SCHEMA));
        }
        let mut each = Vec::new();
        for ty in types {
            let text = self.ty(ty, level + 1)?;
            let is_union = doc.get(ty, "anyOf").is_some() || doc.get(ty, "enum").is_some();
            each.push(if is_union { format!("({text})") } else { text });
        }
        Ok(each.join(" | "))
    }

    fn literal_type(&self, schema: NodeId, value: Option<NodeId>) -> Printed<String> {
        match value.map(|value| (value, self.doc.kind(value))) {
            Some((value, Kind::Null | Kind::Bool(_) | Kind::String(_) | Kind::Number(_))) => {
                Ok(self.data(value))
            }
            _ => Err((schema, SCHEMA)),
        }
    }
}
