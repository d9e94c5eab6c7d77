//! Schemas: those of arguments and results that say less than they seem to.

use super::{Finding, Lower};
use a99_core::diag::{codes, excerpt, suggest};
use a99_core::json::{Kind, NodeId};

/// JSON Schema's types, and what else is written for them.
const TYPES: &[(&str, &[&str])] = &[
    ("string", &["str", "text", "String", "varchar", "char"]),
    (
        "number",
        &["float", "double", "Number", "numeric", "decimal", "num"],
    ),
    ("integer", &["int", "Integer", "long", "Int"]),
    ("boolean", &["bool", "Boolean"]),
    (
        "array",
        &[
            "list", "List", "Array", "tuple", "string[]", "number[]", "any[]", "object[]",
        ],
    ),
    (
        "object",
        &["dict", "map", "Object", "record", "json", "struct"],
    ),
    ("null", &["none", "None", "void", "nil"]),
];

impl<'a> Lower<'_, 'a> {
    fn found_schema(&mut self, node: NodeId, message: String, offending: &str, help: String) {
        let finding = Finding::new(codes::MALFORMED_SCHEMA, node, message);
        self.found(finding.offending(offending).help(help));
    }

    /// A schema of arguments or of a result.
    pub(super) fn lint_schema(&mut self, schema: NodeId, top: bool) {
        let doc = self.s.doc;
        if top && doc.kind(schema) != Kind::Object {
            let message = "a schema is an object".to_owned();
            let help = "write `{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \
                        \"string\"}}}`";
            return self.found_schema(schema, message, "", help.to_owned());
        }
        if top {
            self.lint_short_schema(schema);
        }
        let mut work = vec![schema];
        while let Some(node) = work.pop() {
            if let Some(kind) = doc.get(node, "type") {
                self.lint_type(kind);
            }
            for key in ["items", "additionalProperties"] {
                work.extend(doc.get(node, key).filter(|n| doc.kind(*n) == Kind::Object));
            }
            let Some(properties) = doc.get(node, "properties") else {
                continue;
            };
            if doc.kind(properties) != Kind::Object {
                let message = "`properties` is an object: a schema for each name".to_owned();
                let help = "write `\"properties\": {\"name\": {\"type\": \"string\"}}`".to_owned();
                self.found_schema(properties, message, "properties", help);
                continue;
            }
            for (name, property) in doc.members(properties) {
                let shown = Self::shown(name);
                match doc.kind(property) {
                    Kind::Object => {
                        let flag = doc.get(property, "required");
                        if let Some(flag) = flag.filter(|n| matches!(doc.kind(*n), Kind::Bool(_))) {
                            let message = "`required` is a list of names in the schema around this";
                            let help =
                                format!("write `\"required\": [\"{shown}\"]` beside `properties`");
                            self.found_schema(flag, message.to_owned(), "required", help);
                        }
                        work.push(property);
                    }
                    Kind::Bool(_) => {}
                    _ => {
                        let written = super::text_of(doc, property).unwrap_or_default();
                        let kind = type_for(&written).unwrap_or("string");
                        let message = format!("the schema of `{}` is no object", excerpt(&shown));
                        let help = format!("write `\"{shown}\": {{\"type\": \"{kind}\"}}`");
                        self.found_schema(property, message, &written, help);
                    }
                }
            }
            let required = doc.get(node, "required").into_iter();
            for name in required.flat_map(|list| doc.elements(list)) {
                let Some(shown) = super::text_of(doc, name) else {
                    continue;
                };
                if doc.get(properties, &shown).is_some() {
                    continue;
                }
                let names = doc.members(properties);
                let names: Vec<String> = match self.s.affords(names.len()) {
                    true => names.map(|(name, _)| Self::shown(name)).collect(),
                    false => Vec::new(),
                };
                let near = suggest(&shown, names.iter().map(String::as_str));
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "add it to `properties`".to_owned(),
                };
                let message = format!(
                    "`required` names `{}`, which is no property",
                    excerpt(&shown)
                );
                self.found_schema(name, message, &shown, help);
            }
        }
    }

    /// `{"n": "number"}` or `{"n": {"type": "number"}}`: properties without
    /// `properties`.
    fn lint_short_schema(&mut self, schema: NodeId) {
        let doc = self.s.doc;
        let of_schema = |key: &[u8]| {
            matches!(
                key,
                b"type"
                    | b"properties"
                    | b"items"
                    | b"enum"
                    | b"const"
                    | b"anyOf"
                    | b"oneOf"
                    | b"allOf"
                    | b"$ref"
                    | b"required"
                    | b"additionalProperties"
                    | b"minProperties"
                    | b"format"
                    | b"pattern"
            )
        };
        if doc.is_empty(schema) || doc.members(schema).any(|(key, _)| of_schema(key)) {
            return;
        }
        let short = doc.members(schema).find(|(_, node)| {
            let text = super::text_of(doc, *node);
            doc.get(*node, "type").is_some() || text.is_some_and(|text| type_for(&text).is_some())
        });
        let Some((name, node)) = short else { return };
        let shown = Self::shown(name);
        let written = super::text_of(doc, node).unwrap_or_default();
        let kind = type_for(&written).unwrap_or("string");
        let message = "this schema has no `properties`, so it says nothing".to_owned();
        let help = format!(
            "write `{{\"type\": \"object\", \"properties\": {{\"{shown}\": {{\"type\": \"{kind}\"}}}}}}`"
        );
        self.found_schema(schema, message, &shown, help);
    }

    fn lint_type(&mut self, kind: NodeId) {
        let doc = self.s.doc;
        let names: Vec<NodeId> = match doc.kind(kind) {
            Kind::Array => doc.elements(kind).collect(),
            _ => vec![kind],
        };
        for node in names {
            let Some(name) = super::text_of(doc, node) else {
                continue;
            };
            if TYPES.iter().any(|row| row.0 == name) || name == "any" {
                continue;
            }
            let known = TYPES.iter().map(|row| row.0);
            let near = type_for(&name).map(str::to_owned);
            let help = match near.or_else(|| self.s.nearest(&name, known)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use string, number, integer, boolean, array, object or null".to_owned(),
            };
            let message = format!("there is no type \"{}\"", excerpt(&name));
            self.found_schema(node, message, &name, help);
        }
    }

    /// A `return`: what does it give?
    pub(super) fn lint_return(&mut self, step: NodeId) {
        let doc = self.s.doc;
        if let Some(schema) = doc.get(step, "schema") {
            if doc.kind(schema) == Kind::Object {
                self.lint_schema(schema, true);
            }
            return;
        }
        if let Some(value) = doc.get(step, "value").filter(|_| !self.in_helper) {
            let found = match doc.kind(value) {
                Kind::Number(_) => "a number",
                Kind::Bool(_) => "true or false",
                Kind::Array => "a list",
                Kind::String(text) if self.is_plain_text(text) => "a text",
                _ => return,
            };
            let message = format!("a program returns an object, and this is {found}");
            let finding = Finding::new(codes::WRONG_KIND, value, message);
            let help = "write `\"value\": {\"name\": ...}`";
            return self.found(finding.help(help));
        }
        let named = doc.get(step, "result");
        if let Some(node) = named.filter(|_| doc.get(step, "value").is_none()) {
            let shown = super::text_of(doc, node).unwrap_or_default();
            let message = "`result` of `return` binds a name, it gives nothing";
            let finding = Finding::new(codes::NO_RESULT, node, message);
            let help = format!("write `\"value\": \"{}\"`", excerpt(&shown));
            self.found(finding.offending(&shown).help(help));
        }
    }
}

/// The type that is meant by a word.
fn type_for(word: &str) -> Option<&'static str> {
    let row = TYPES
        .iter()
        .find(|(name, others)| *name == word || others.contains(&word));
    row.map(|row| row.0)
}
