//! Rules for schemas of arguments and results that declare less than they seem to.
//!
//! Codes: `lint.malformed_schema`, `lint.no_result`, `lint.unused_name`, `lint.wrong_kind`,
//! `lint.wrong_value`.

use super::Rules;
use a99_core::diag::{codes, excerpt, suggest};
use a99_core::json::{Kind, NodeId};

/// JSON Schema's types, with their synonyms.
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

impl<'a> Rules<'_, 'a> {
    pub(super) fn found_schema(
        &mut self,
        node: NodeId,
        message: String,
        offending: &str,
        help: String,
    ) {
        self.found(codes::MALFORMED_SCHEMA, node, message, offending, help);
    }

    /// Checks a schema of arguments or of a result.
    pub(super) fn lint_schema(&mut self, schema: NodeId, top: bool) {
        let doc = self.doc;
        if top && doc.kind(schema) != Kind::Object {
            let message = "a schema is an object".to_owned();
            let help = "write `{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \
                        \"string\"}}}`";
            return self.found_schema(schema, message, "", help.to_owned());
        }
        if top {
            if self.lint_short_schema(schema) {
                return;
            }
            self.lint_top(schema);
        }
        if top && self.lint_bare_names(schema) {
            return;
        }
        let mut work = vec![schema];
        while let Some(node) = work.pop() {
            if let Some(kind) = doc.get(node, "type") {
                self.lint_type(kind);
            }
            self.lint_keywords(node);
            for key in ["items", "additionalProperties"] {
                work.extend(doc.get(node, key).filter(|n| doc.kind(*n) == Kind::Object));
            }
            for part in doc
                .get(node, "anyOf")
                .into_iter()
                .flat_map(|list| doc.elements(list))
            {
                work.extend(Some(part).filter(|n| doc.kind(*n) == Kind::Object));
            }
            let Some(properties) = doc.get(node, "properties") else {
                continue;
            };
            if doc.kind(properties) != Kind::Object {
                let message = "`properties` is an object: a schema for each name".to_owned();
                let names = doc.elements(properties).take(8).filter_map(|n| {
                    let name = doc.get(n, "name").unwrap_or(n);
                    Some(format!("\"{}\": {{}}", super::text_of(doc, name)?))
                });
                let names: Vec<String> = names.collect();
                let help = match names.is_empty() {
                    true => "write `\"properties\": {\"name\": {\"type\": \"string\"}}`".to_owned(),
                    false => format!("write `\"properties\": {{{}}}`", excerpt(&names.join(", "))),
                };
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
                let names: Vec<String> = match self.affords(names.len()) {
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

    /// Reports a schema whose keys are variable names; returns whether it did.
    fn lint_bare_names(&mut self, schema: NodeId) -> bool {
        let doc = self.doc;
        let says = [
            "type",
            "properties",
            "items",
            "enum",
            "anyOf",
            "required",
            "$schema",
        ];
        let named = doc.members(schema).all(|(name, _)| self.vars.knows(name));
        if doc.is_empty(schema) || !named || says.iter().any(|key| doc.get(schema, key).is_some()) {
            return false;
        }
        let names = doc.members(schema).take(8);
        let names: Vec<String> = names
            .map(|(name, _)| format!("\"{}\": {{}}", Self::shown(name)))
            .collect();
        let first = doc
            .members(schema)
            .next()
            .map(|(name, _)| Self::shown(name));
        let message = "this schema has no `properties`, so it says nothing".to_owned();
        let help = format!(
            "write `{{\"type\": \"object\", \"properties\": {{{}}}}}`",
            excerpt(&names.join(", "))
        );
        self.found_schema(schema, message, &first.unwrap_or_default(), help);
        true
    }

    /// Reports a `type` other than object at the top of arguments or results.
    fn lint_top(&mut self, schema: NodeId) {
        let doc = self.doc;
        let Some(node) = doc.get(schema, "type") else {
            return;
        };
        let kind = super::text_of(doc, node).unwrap_or_default();
        if matches!(type_for(&kind), None | Some("object")) {
            return;
        }
        let message = format!("arguments and results are objects, and no {kind}");
        let help = "write `\"type\": \"object\"`, with `properties`".to_owned();
        self.found_schema(node, message, &kind, help);
    }

    /// Reports properties without `properties`: `{"n": "number"}` or `{"n": {"type": "number"}}`;
    /// returns whether it did.
    fn lint_short_schema(&mut self, schema: NodeId) -> bool {
        const OF_SCHEMAS: &[&[u8]] = &[
            b"type",
            b"properties",
            b"items",
            b"enum",
            b"const",
            b"anyOf",
            b"oneOf",
            b"allOf",
            b"$ref",
            b"required",
            b"additionalProperties",
            b"minProperties",
            b"format",
            b"pattern",
        ];
        let doc = self.doc;
        if doc.is_empty(schema)
            || doc
                .members(schema)
                .any(|(key, _)| OF_SCHEMAS.contains(&key))
        {
            return false;
        }
        let short = doc.members(schema).find(|(_, node)| {
            let text = super::text_of(doc, *node);
            doc.get(*node, "type").is_some()
                || matches!(doc.kind(*node), Kind::Number(_) | Kind::Bool(_))
                || text.is_some_and(|text| {
                    type_for(&text).is_some() || text.starts_with("z.") || text.ends_with('?')
                })
        });
        let Some((name, node)) = short else {
            return false;
        };
        let shown = Self::shown(name);
        let written = super::text_of(doc, node).unwrap_or_default();
        let kind = match doc.kind(node) {
            Kind::Number(_) => "number",
            Kind::Bool(_) => "boolean",
            _ => type_for(written.trim_end_matches('?')).unwrap_or("string"),
        };
        let message = "this schema has no `properties`, so it says nothing".to_owned();
        let help = format!(
            "write `{{\"type\": \"object\", \"properties\": {{\"{shown}\": {{\"type\": \"{kind}\"}}}}}}`"
        );
        self.found_schema(schema, message, &shown, help);
        true
    }

    fn lint_type(&mut self, kind: NodeId) {
        let doc = self.doc;
        let names: Vec<NodeId> = match doc.kind(kind) {
            Kind::Array => doc.elements(kind).collect(),
            _ => vec![kind],
        };
        for node in names {
            let Some(name) = super::text_of(doc, node) else {
                continue;
            };
            if TYPES.iter().any(|row| row.0 == name) {
                continue;
            }
            if let Some(help) = no_type(&name) {
                let message = format!("there is no type \"{}\"", excerpt(&name));
                self.found_schema(node, message, &name, help);
                continue;
            }
            let known = TYPES.iter().map(|row| row.0);
            let near = type_for(&name).map(str::to_owned);
            let help = match near.or_else(|| self.nearest(&name, known)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use string, number, integer, boolean, array, object or null".to_owned(),
            };
            let message = format!("there is no type \"{}\"", excerpt(&name));
            self.found_schema(node, message, &name, help);
        }
    }

    /// Reports a schema of a result that names no variable.
    fn lint_empty_schema(&mut self, schema: NodeId) {
        let doc = self.doc;
        let says = doc
            .members(schema)
            .any(|(key, _)| !matches!(key, b"type" | b"required"));
        let named = doc
            .get(schema, "properties")
            .is_some_and(|all| !doc.is_empty(all));
        if says || named {
            return;
        }
        let message = "this schema names no variable, so nothing is returned";
        let help = "name variables: `{\"type\": \"object\", \"properties\": {\"name\": {}}}`";
        self.found(codes::NO_RESULT, schema, message, "schema", help);
    }

    /// Reports a returned variable whose kind contradicts the schema's type.
    pub(super) fn lint_returned_kind(&mut self, name: &[u8], property: NodeId) {
        let doc = self.doc;
        let said = super::inference::of_schema(doc, property);
        let holds = self.holds_of_name(name);
        let (Some(wanted), Some(kind)) = (said.kind(), holds.kind()) else {
            return;
        };
        if wanted == kind {
            return;
        }
        let shown = Self::shown(name);
        let message = format!(
            "`{}` is {}, and the schema says {}",
            excerpt(&shown),
            holds.words(),
            said.words()
        );
        let kind = kind.names().next().unwrap_or("string");
        let help = format!("write `\"type\": \"{kind}\"`, or return another variable");
        self.found(codes::WRONG_KIND, property, message, &shown, help);
    }

    /// Reports a returned value that is not an object.
    pub(super) fn on_returned_value(&mut self, value: NodeId) {
        let doc = self.doc;
        if self.in_helper || self.is_version_4() || self.in_loop {
            return;
        }
        let computed = match doc.kind(value) {
            Kind::String(text) => !self.is_plain_text(text),
            Kind::Object => true,
            _ => false,
        };
        let holds = self.holds_of_value(value);
        let object = matches!(holds, super::Holds::Any | super::Holds::Object(_));
        if !computed || object {
            return;
        }
        let shown = super::text_of(doc, value).unwrap_or_default();
        let message = format!("a program returns an object, and this is {}", holds.words());
        let help = match shown.is_empty() {
            true => "write `\"value\": {\"name\": ...}`".to_owned(),
            false => format!(
                "write `\"value\": {{\"{0}\": {1}}}`",
                shown.rsplit('.').next().unwrap_or("name"),
                self.node_for(&shown)
            ),
        };
        self.found(codes::WRONG_KIND, value, message, &shown, help);
    }

    /// Checks the schema or value of a `return`.
    pub(super) fn lint_return(&mut self, step: NodeId) {
        let doc = self.doc;
        if let Some(schema) = doc.get(step, "schema") {
            if doc.kind(schema) == Kind::Object {
                self.lint_schema(schema, true);
                self.lint_empty_schema(schema);
            }
            if let Some(node) = doc.get(step, "result").filter(|n| doc.str(*n).is_some()) {
                let shown = super::text_of(doc, node).unwrap_or_default();
                let message = "`return` ends the steps, so nothing can read this name";
                let help = "remove it: what is returned is the `schema`'s";
                self.found(codes::UNUSED_NAME, node, message, &shown, help);
            }
            if doc.get(step, "value").is_some() {
                let message = "`value` is what is returned: `schema` is not looked at";
                let help = "keep one of the two";
                self.found(codes::WRONG_VALUE, schema, message, "schema", help);
            }
            return;
        }
        let is_checked = !self.in_helper && !self.is_version_4();
        if let Some(value) = doc.get(step, "value").filter(|_| is_checked) {
            let found = match doc.kind(value) {
                Kind::Number(_) => "a number",
                Kind::Bool(_) => "true or false",
                Kind::Array => "a list",
                Kind::String(text) if self.is_plain_text(text) => "a text",
                _ => return,
            };
            let message = format!("a program returns an object, and this is {found}");
            let help = "write `\"value\": {\"name\": ...}`";
            return self.found(codes::WRONG_KIND, value, message, "", help);
        }
        let named = doc.get(step, "result");
        if let Some(node) = named.filter(|_| doc.get(step, "value").is_none()) {
            let shown = super::text_of(doc, node).unwrap_or_default();
            let message = "`result` of `return` binds a name, it gives nothing";
            let help = format!("write `\"value\": \"{}\"`", excerpt(&shown));
            self.found(codes::NO_RESULT, node, message, &shown, help);
        }
    }
}

/// Help for types that do not exist and correspond to several.
fn no_type(name: &str) -> Option<String> {
    let help = match name {
        "any" | "mixed" | "unknown" | "*" => "any value is `{}`, a schema without `type`",
        "date" | "datetime" | "date-time" | "timestamp" | "time" | "Date" => {
            "write `{\"type\": \"string\", \"format\": \"date-time\"}`"
        }
        "url" | "uri" | "URL" => "write `{\"type\": \"string\", \"format\": \"uri\"}`",
        "email" => "write `{\"type\": \"string\", \"format\": \"email\"}`",
        "uuid" => "write `{\"type\": \"string\", \"format\": \"uuid\"}`",
        "enum" => "write `{\"type\": \"string\", \"enum\": [...]}`",
        _ if name.ends_with('?') => {
            return Some(format!(
                "write `\"{}\"`, and leave the name out of `required`",
                name.trim_end_matches('?')
            ));
        }
        _ if name.contains('|') => {
            let parts: Vec<String> = name
                .split('|')
                .map(|part| format!("\"{}\"", part.trim()))
                .collect();
            return Some(format!("write a list: `\"type\": [{}]`", parts.join(", ")));
        }
        _ if name.contains(['<', '[']) => {
            "write `{\"type\": \"array\", \"items\": {\"type\": \"string\"}}`"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

/// The type that a synonym means.
pub(super) fn type_for(word: &str) -> Option<&'static str> {
    let row = TYPES
        .iter()
        .find(|(name, others)| *name == word || others.contains(&word));
    row.map(|row| row.0)
}
