//! What an atom takes, for people, models and checks of programs: one row for
//! each input, from which tools, pages and findings follow.
//!
//! The rows stand beside [`AtomSig::input_schema`], which artifacts are bound
//! to by its text: a sentence that is worded better changes no fingerprint.

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

    /// The kinds of this set that the other has, too.
    #[must_use]
    pub const fn and(self, other: JsonKinds) -> JsonKinds {
        JsonKinds(self.0 & other.0)
    }

    /// Whether all kinds of the other are in this set.
    #[must_use]
    pub const fn contains(self, other: JsonKinds) -> bool {
        self.0 & other.0 == other.0
    }

    /// The kinds of this set but for `null`.
    #[must_use]
    pub const fn without_null(self) -> JsonKinds {
        JsonKinds(self.0 & !JsonKinds::NULL.0)
    }

    /// The kind of a node of a document.
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

    /// The kinds that a JSON Schema admits, as far as its types, allowed values
    /// and alternatives say; a reference or nothing at all admits every kind.
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

    /// The names of JSON Schema's types, `null` last.
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

/// One input of an atom, described.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomInput {
    /// The step's key.
    pub name: Cow<'static, str>,
    /// A sentence or two for people and models; empty for none.
    pub docs: Cow<'static, str>,
    /// Whether a step must give it.
    pub required: bool,
    /// How it is resolved. This is what happens to it, where [`Params`] has the
    /// rule that artifacts are bound to: a form may resolve more by itself.
    pub binding: Binding,
    /// JSON Schema of its values without what the other fields say, as JSON text.
    pub schema: Cow<'static, str>,
    /// The kinds of its values, once they are resolved; `null` is among them where
    /// it may be missing.
    pub kinds: JsonKinds,
    /// The kinds of an array's elements, or of an object's members.
    pub parts: JsonKinds,
    /// The texts that it may be, where they are few; empty for any.
    pub values: Vec<Cow<'static, str>>,
    /// Whether those texts may be written in upper or lower case.
    pub any_case: bool,
    /// What stands in for a missing one, as JSON text; empty where the sentence
    /// says what happens then.
    pub default: Cow<'static, str>,
    /// Whether the atom works on it: a text that is written there is hardly meant, if it could
    /// be a name.
    pub subject: bool,
    /// The numbers that it may be, where there are bounds.
    pub range: Option<NumberRange>,
}

/// Bounds of a number.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct NumberRange {
    /// The least.
    pub least: f64,
    /// The most, infinity for no bound.
    pub most: f64,
    /// Whether it is a whole number.
    pub whole: bool,
}

impl AtomInput {
    /// An input by the JSON Schema of its values: `description`, `enum` and
    /// `default` are taken from there.
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

    /// Whether something in it is resolved when the step runs: names of
    /// variables, paths and nodes. Else it is taken as written.
    #[must_use]
    pub fn takes_references(&self) -> bool {
        self.binding != Binding::Literal
    }

    /// Whether it may be this text, by [`AtomInput::values`] alone.
    #[must_use]
    pub fn allows(&self, text: &str) -> bool {
        let same = |value: &Cow<'static, str>| match self.any_case {
            true => value.eq_ignore_ascii_case(text),
            false => *value == text,
        };
        self.values.is_empty() || self.values.iter().any(same)
    }

    /// The JSON Schema of its values with all that is known of it. Every one has
    /// a type, a list of all types if it may be anything.
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

    /// Its type in words, as in `list of texts`; `null` is not named.
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

/// The described inputs of an atom: a slice that is made when somebody first
/// asks for it, since most engines never do. Clones share it.
#[derive(Clone, Default)]
pub struct AtomInputs(Option<Arc<LazyLock<Vec<AtomInput>, MakeRows>>>);

impl AtomInputs {
    /// No rows; sets of atoms make them of the schema ([`AtomSig::describe`]).
    pub const NONE: AtomInputs = AtomInputs(None);

    /// The rows that this makes, which is called once at most.
    #[must_use]
    pub fn new(make: impl FnOnce() -> Vec<AtomInput> + Send + 'static) -> AtomInputs {
        AtomInputs(Some(Arc::new(LazyLock::new(Box::new(make)))))
    }

    /// Whether there are rows, made or still to be made.
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

/// The inputs that a signature's own schema tells of, for atoms without rows.
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
    /// A described input by its key.
    #[must_use]
    pub fn input(&self, name: &str) -> Option<&AtomInput> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// Whether a step may have inputs besides [`AtomSig::inputs`].
    #[must_use]
    pub fn takes_others(&self) -> bool {
        !matches!(self.params, Params::Named(_))
    }

    /// Describes the inputs by the schema where there are no rows. Sets of atoms
    /// do this for each atom that they take.
    pub fn describe(&mut self) {
        if !self.inputs.are_given() {
            let (params, schema) = (self.params.clone(), self.input_schema.clone());
            self.inputs = AtomInputs::new(move || of_schema_text(&params, &schema));
        }
    }

    /// The JSON Schema of the input object with all that is known of the inputs:
    /// [`AtomSig::input_schema`], made to say that it is one of an object and
    /// completed with sentences, types, allowed values and defaults.
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
