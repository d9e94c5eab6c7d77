//! Inputs of atoms for people, models and checks of programs: one row per input, from which tools,
//! pages and findings derive.
//!
//! The rows are separate from [`AtomSig::input_schema`], to whose text artifacts are bound:
//! improving a sentence changes no fingerprint.

use super::{AtomSig, Binding, Params};
use crate::json::Kind;
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::fmt;
use std::ops::{BitOr, Deref};
use std::sync::{Arc, LazyLock};

/// A set of kinds of JSON values.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct JsonKinds(u8);

impl JsonKinds {
    /// No kind.
    pub const NONE: JsonKinds = JsonKinds(0);
    /// `null`.
    pub const NULL: JsonKinds = JsonKinds(1);
    /// `true` and `false`.
    pub const BOOLEAN: JsonKinds = JsonKinds(2);
    /// Numbers.
    pub const NUMBER: JsonKinds = JsonKinds(4);
    /// Strings.
    pub const STRING: JsonKinds = JsonKinds(8);
    /// Arrays.
    pub const ARRAY: JsonKinds = JsonKinds(16);
    /// Objects.
    pub const OBJECT: JsonKinds = JsonKinds(32);
    /// Every kind.
    pub const ANY: JsonKinds = JsonKinds(63);

    /// The intersection of two sets.
    #[must_use]
    pub const fn and(self, other: JsonKinds) -> JsonKinds {
        JsonKinds(self.0 & other.0)
    }

    /// True if this set contains all kinds of the other.
    #[must_use]
    pub const fn contains(self, other: JsonKinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set without `null`.
    #[must_use]
    pub const fn without_null(self) -> JsonKinds {
        JsonKinds(self.0 & !JsonKinds::NULL.0)
    }

    /// The kind of a document node.
    #[must_use]
    pub fn of(kind: Kind<'_>) -> JsonKinds {
        match kind {
            Kind::Null => JsonKinds::NULL,
            Kind::Bool(_) => JsonKinds::BOOLEAN,
            Kind::Number(_) => JsonKinds::NUMBER,
            Kind::String(_) => JsonKinds::STRING,
            Kind::Array => JsonKinds::ARRAY,
            Kind::Object => JsonKinds::OBJECT,
        }
    }

    fn of_json(value: &Json) -> JsonKinds {
        match value {
            Json::Null => JsonKinds::NULL,
            Json::Bool(_) => JsonKinds::BOOLEAN,
            Json::Number(_) => JsonKinds::NUMBER,
            Json::String(_) => JsonKinds::STRING,
            Json::Array(_) => JsonKinds::ARRAY,
            Json::Object(_) => JsonKinds::OBJECT,
        }
    }

    fn named(name: &Json) -> JsonKinds {
        match name.as_str() {
            Some("null") => JsonKinds::NULL,
            Some("boolean") => JsonKinds::BOOLEAN,
            Some("number" | "integer") => JsonKinds::NUMBER,
            Some("string") => JsonKinds::STRING,
            Some("array") => JsonKinds::ARRAY,
            Some("object") => JsonKinds::OBJECT,
            _ => JsonKinds::ANY,
        }
    }

    /// The kinds that a JSON Schema admits, by its types, allowed values and alternatives. A
    /// reference or an empty schema admits every kind.
    fn of_schema(schema: &Json) -> JsonKinds {
        let each = |list: &Vec<Json>, of: fn(&Json) -> JsonKinds| {
            list.iter().fold(JsonKinds::NONE, |all, one| all | of(one))
        };
        let types = match schema.get("type") {
            Some(Json::Array(types)) => each(types, JsonKinds::named),
            Some(name) => JsonKinds::named(name),
            None => JsonKinds::ANY,
        };
        let allowed = match (schema.get("const"), schema.get("enum")) {
            (Some(constant), _) => JsonKinds::of_json(constant),
            (None, Some(Json::Array(values))) => each(values, JsonKinds::of_json),
            _ => JsonKinds::ANY,
        };
        let branches = match schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            Some(Json::Array(branches)) => each(branches, JsonKinds::of_schema),
            _ => JsonKinds::ANY,
        };
        types.and(allowed).and(branches)
    }

    /// The type names of JSON Schema, `null` last.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(JsonKinds, &str); 6] = [
            (JsonKinds::STRING, "string"),
            (JsonKinds::NUMBER, "number"),
            (JsonKinds::BOOLEAN, "boolean"),
            (JsonKinds::OBJECT, "object"),
            (JsonKinds::ARRAY, "array"),
            (JsonKinds::NULL, "null"),
        ];
        NAMES
            .into_iter()
            .filter(move |(kind, _)| self.contains(*kind))
            .map(|(_, name)| name)
    }
}

impl BitOr for JsonKinds {
    type Output = JsonKinds;

    fn bitor(self, other: JsonKinds) -> JsonKinds {
        JsonKinds(self.0 | other.0)
    }
}

/// Description of an atom's input.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomInput {
    /// The step's key.
    pub name: Cow<'static, str>,
    /// Description in a sentence or two, for people and models; may be empty.
    pub docs: Cow<'static, str>,
    /// True if a step must have the input.
    pub required: bool,
    /// Actual resolution of the input. [`Params`] has the rule that artifacts are bound to; a form
    /// may resolve more by itself.
    pub binding: Binding,
    /// JSON Schema of the values as JSON text, without the facts of the other fields.
    pub schema: Cow<'static, str>,
    /// Kinds of the resolved values. An optional input includes `null`.
    pub kinds: JsonKinds,
    /// Kinds of an array's elements, or of an object's members.
    pub parts: JsonKinds,
    /// The allowed texts, if they are few; empty for any text.
    pub values: Vec<Cow<'static, str>>,
    /// True if the allowed texts ignore upper and lower case.
    pub any_case: bool,
    /// Default value as JSON text; empty if the description states the default.
    pub default: Cow<'static, str>,
    /// True if the input is the atom's subject. A literal text that could be a variable's name is
    /// probably a mistake there.
    pub subject: bool,
    /// Bounds of a number.
    pub range: Option<NumberRange>,
}

/// Bounds of a number.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct NumberRange {
    /// The lower bound.
    pub least: f64,
    /// The upper bound; infinity for no bound.
    pub most: f64,
    /// True for whole numbers only.
    pub whole: bool,
}

impl AtomInput {
    /// Creates an input from the JSON Schema of its values, which supplies `description`, `enum`
    /// and `default`.
    #[must_use]
    pub fn of_schema(
        name: impl Into<Cow<'static, str>>,
        binding: Binding,
        required: bool,
        schema: &Json,
    ) -> AtomInput {
        let mut rest = schema.clone();
        let mut take = |key: &str| rest.as_object_mut().and_then(|map| map.remove(key));
        let docs = take("description");
        let default = take("default");
        let texts = |values: &Vec<Json>| {
            let texts = values.iter().filter(|value| !value.is_null());
            let texts = texts.map(|value| Some(Cow::Owned(value.as_str()?.to_owned())));
            texts.collect::<Option<Vec<_>>>()
        };
        let values = schema.get("enum").and_then(Json::as_array).and_then(texts);
        if values.is_some() {
            take("enum");
        }
        let kinds = JsonKinds::of_schema(schema);
        let part = schema
            .get("items")
            .filter(|items| !items.is_array())
            .or_else(|| schema.get("additionalProperties"));
        AtomInput {
            name: name.into(),
            docs: docs
                .as_ref()
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned()
                .into(),
            required,
            binding,
            schema: rest.to_string().into(),
            kinds: match required {
                true => kinds,
                false => kinds | JsonKinds::NULL,
            },
            parts: part.map_or(JsonKinds::ANY, JsonKinds::of_schema),
            values: values.unwrap_or_default(),
            any_case: false,
            default: default.map_or(Cow::Borrowed(""), |value| value.to_string().into()),
            subject: false,
            range: None,
        }
    }

    /// True if the input resolves references at run time: variables, paths and nodes. Otherwise it
    /// is taken as written.
    #[must_use]
    pub fn takes_references(&self) -> bool {
        self.binding != Binding::Literal
    }

    /// True if [`AtomInput::values`] allows the text.
    #[must_use]
    pub fn allows(&self, text: &str) -> bool {
        let same = |value: &Cow<'static, str>| match self.any_case {
            true => value.eq_ignore_ascii_case(text),
            false => *value == text,
        };
        self.values.is_empty() || self.values.iter().any(same)
    }

    /// The complete JSON Schema of the values. It always has a type: a list of all types if any
    /// value is allowed.
    #[must_use]
    pub fn described(&self) -> Json {
        let mut out = Map::new();
        if !self.docs.is_empty() {
            let is_name = self.kinds.contains(JsonKinds::STRING) && !self.takes_references();
            let note = if is_name { " Taken literally." } else { "" };
            out.insert(
                "description".to_owned(),
                json!(format!("{}{note}", self.docs)),
            );
        }
        let schema: Json = serde_json::from_str(&self.schema).unwrap_or_default();
        let may_be_null = JsonKinds::of_schema(&schema).contains(JsonKinds::NULL);
        if let Json::Object(schema) = schema {
            out.extend(schema);
        }
        const TYPED: [&str; 6] = ["type", "anyOf", "oneOf", "allOf", "$ref", "enum"];
        if !TYPED.iter().any(|key| out.contains_key(*key)) && !out.contains_key("const") {
            out.insert("type".to_owned(), self.kinds.names().collect());
            if self.kinds.contains(JsonKinds::ARRAY) {
                out.entry("items").or_insert_with(|| json!({}));
            }
        }
        if !self.values.is_empty() {
            let mut values: Vec<Json> = self.values.iter().map(|v| json!(v)).collect();
            if may_be_null {
                values.push(Json::Null);
            }
            out.insert("enum".to_owned(), Json::Array(values));
        }
        if let Ok(default) = serde_json::from_str(&self.default) {
            out.insert("default".to_owned(), default);
        }
        Json::Object(out)
    }

    /// Type of the values in words, as in `list of texts`; `null` is not named.
    #[must_use]
    pub fn type_text(&self) -> String {
        const SCALARS: [(JsonKinds, &str, &str); 3] = [
            (JsonKinds::STRING, "text", "texts"),
            (JsonKinds::NUMBER, "number", "numbers"),
            (JsonKinds::BOOLEAN, "boolean", "booleans"),
        ];
        if self.kinds.contains(JsonKinds::ANY) {
            return "any".to_owned();
        }
        let objects = [(JsonKinds::OBJECT, "object", "objects")];
        let mut parts = SCALARS.iter().chain(&objects);
        let of = parts
            .find(|(kind, ..)| self.parts == *kind)
            .map(|(_, _, many)| format!(" of {many}"))
            .unwrap_or_default();
        let mut names: Vec<String> = SCALARS
            .iter()
            .filter(|(kind, ..)| self.kinds.contains(*kind))
            .map(|(_, one, _)| (*one).to_owned())
            .collect();
        for (kind, name) in [(JsonKinds::ARRAY, "list"), (JsonKinds::OBJECT, "object")] {
            if self.kinds.contains(kind) {
                names.push(format!("{name}{of}"));
            }
        }
        match names.is_empty() {
            true => "null".to_owned(),
            false => names.join(" or "),
        }
    }
}

type MakeRows = Box<dyn FnOnce() -> Vec<AtomInput> + Send>;

/// Descriptions of an atom's inputs: a slice built on first access, because most engines never
/// access it. Clones share it.
#[derive(Clone, Default)]
pub struct AtomInputs(Option<Arc<LazyLock<Vec<AtomInput>, MakeRows>>>);

impl AtomInputs {
    /// No rows; sets of atoms derive them from the schema ([`AtomSig::describe`]).
    pub const NONE: AtomInputs = AtomInputs(None);

    /// Rows that `make` builds. It is called at most once.
    #[must_use]
    pub fn new(make: impl FnOnce() -> Vec<AtomInput> + Send + 'static) -> AtomInputs {
        AtomInputs(Some(Arc::new(LazyLock::new(Box::new(make)))))
    }

    /// True if there are rows, built or not.
    #[must_use]
    pub const fn are_given(&self) -> bool {
        self.0.is_some()
    }
}

impl Deref for AtomInputs {
    type Target = [AtomInput];

    fn deref(&self) -> &[AtomInput] {
        match &self.0 {
            Some(rows) => rows,
            None => &[],
        }
    }
}

impl PartialEq for AtomInputs {
    fn eq(&self, other: &AtomInputs) -> bool {
        **self == **other
    }
}

impl fmt::Debug for AtomInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Inputs derived from a signature's schema, for atoms without rows.
fn of_schema_text(params: &Params, schema: &str) -> Vec<AtomInput> {
    let schema: Json = serde_json::from_str(schema).unwrap_or_default();
    let properties = schema.get("properties").and_then(Json::as_object);
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|n| n == name));
    match params {
        Params::Named(params) => params
            .iter()
            .map(|param| {
                let schema = properties.and_then(|map| map.get(param.name));
                let (name, binding) = (param.name, param.binding);
                let any = Json::Object(Map::new());
                AtomInput::of_schema(name, binding, is_required(name), schema.unwrap_or(&any))
            })
            .collect(),
        Params::Open | Params::Raw => {
            let binding = match params {
                Params::Raw => Binding::Literal,
                _ => Binding::Value,
            };
            let rows = properties.into_iter().flatten();
            rows.map(|(name, schema)| {
                AtomInput::of_schema(name.clone(), binding, is_required(name), schema)
            })
            .collect()
        }
    }
}

impl AtomSig {
    /// The described input with a key.
    #[must_use]
    pub fn input(&self, name: &str) -> Option<&AtomInput> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// True if a step may have inputs in addition to [`AtomSig::inputs`].
    #[must_use]
    pub fn takes_others(&self) -> bool {
        !matches!(self.params, Params::Named(_))
    }

    /// Derives missing rows from the schema. Sets of atoms call this for each atom they take.
    pub fn describe(&mut self) {
        if !self.inputs.are_given() {
            let (params, schema) = (self.params.clone(), self.input_schema.clone());
            self.inputs = AtomInputs::new(move || of_schema_text(&params, &schema));
        }
    }

    /// The complete JSON Schema of the input object: [`AtomSig::input_schema`] as the schema of an
    /// object, with descriptions, types, allowed values and defaults.
    #[must_use]
    pub fn described_schema(&self) -> Json {
        let written: Json = serde_json::from_str(&self.input_schema).unwrap_or_default();
        let mut written = match written {
            Json::Object(map) => map,
            _ => Map::new(),
        };
        let mut properties = match written.remove("properties") {
            Some(Json::Object(map)) => map,
            _ => Map::new(),
        };
        for input in self.inputs.iter() {
            properties.insert(input.name.to_string(), input.described());
        }
        let required = self.inputs.iter().filter(|input| input.required);
        let required: Vec<Json> = required.map(|input| json!(input.name)).collect();
        let mut out = Map::new();
        out.insert("type".to_owned(), json!("object"));
        out.insert("properties".to_owned(), Json::Object(properties));
        out.insert("required".to_owned(), Json::Array(required));
        let closed = written.remove("additionalProperties");
        let closed = closed.unwrap_or_else(|| match self.takes_others() {
            true => json!({}),
            false => Json::Bool(false),
        });
        out.insert("additionalProperties".to_owned(), closed);
        for (key, value) in written {
            out.entry(key).or_insert(value);
        }
        Json::Object(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sig::Param;

    fn sig(params: Params, schema: &Json) -> AtomSig {
        let mut sig = AtomSig {
            params,
            input_schema: schema.to_string().into(),
            ..AtomSig::new("a", "An atom.", 0)
        };
        sig.describe();
        sig
    }

    #[test]
    fn schemas_of_hosts_become_rows() {
        let schema = json!({
            "type": "object",
            "properties": {
                "mode": {"type": "string", "enum": ["a", "b"], "description": "How.", "default": "a"},
                "list": {"type": "array", "items": {"type": "integer"}},
                "any": {},
            },
            "required": ["list"],
        });
        let value = |name| Param {
            name,
            binding: Binding::Value,
        };
        let params = Params::Named(vec![value("mode"), value("list"), value("any")].into());
        let sig = sig(params, &schema);
        let mode = sig.input("mode").unwrap();
        assert_eq!((&*mode.docs, &*mode.default), ("How.", r#""a""#));
        assert!(mode.allows("b") && !mode.allows("B") && !mode.required);
        assert_eq!(mode.kinds, JsonKinds::STRING | JsonKinds::NULL);
        let list = sig.input("list").unwrap();
        assert_eq!(
            (list.kinds, list.parts),
            (JsonKinds::ARRAY, JsonKinds::NUMBER)
        );
        assert_eq!(list.type_text(), "list of numbers");
        let any = sig.input("any").unwrap();
        assert_eq!((any.type_text().as_str(), &*any.default), ("any", ""));
        assert!(!sig.takes_others() && sig.input("other").is_none());
        let described = sig.described_schema();
        let mode =
            json!({"description": "How.", "type": "string", "enum": ["a", "b"], "default": "a"});
        assert_eq!(described["properties"]["mode"], mode);
        assert_eq!(described["properties"]["any"]["type"][5], "null");
        assert_eq!(described["additionalProperties"], false);
    }

    #[test]
    fn what_says_nothing_is_an_object() {
        for params in [Params::Open, Params::Raw] {
            let sig = sig(params, &json!({}));
            assert!(sig.inputs.is_empty() && sig.takes_others());
            let expected = json!({"type": "object", "properties": {}, "required": [],
                "additionalProperties": {}});
            assert_eq!(sig.described_schema(), expected);
        }
    }

    #[test]
    fn kinds_of_schemas() {
        let kinds = |schema: Json| JsonKinds::of_schema(&schema).names().collect::<Vec<_>>();
        assert_eq!(
            kinds(json!({"type": ["integer", "null"]})),
            ["number", "null"]
        );
        assert_eq!(kinds(json!({"enum": ["a", 1]})), ["string", "number"]);
        assert_eq!(kinds(json!({"const": true})), ["boolean"]);
        let either = json!({"anyOf": [{"type": "object"}, {"type": "array"}]});
        assert_eq!(kinds(either), ["object", "array"]);
        assert_eq!(kinds(json!({"$ref": "#/$defs/a"})).len(), 6);
    }
}
