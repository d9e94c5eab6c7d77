//! Rules for schema keywords: synonyms from other libraries, and values that a keyword does not
//! accept.
//!
//! Codes: `lint.bad_pattern`.

use super::Rules;
use super::schemas::type_for;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// Synonyms of keywords from other libraries.
const SYNONYMS: &[(&[&str], &str)] = &[
    (
        &["min", "gte", "ge", "minValue", "min_value", "from", "lower"],
        "write `minimum`; of a text's length `minLength`",
    ),
    (
        &["max", "lte", "le", "maxValue", "max_value", "upper"],
        "write `maximum`; of a text's length `maxLength`",
    ),
    (
        &["minlength", "min_length", "minLen", "min_len"],
        "write `minLength`",
    ),
    (
        &["maxlength", "max_length", "maxLen", "max_len"],
        "write `maxLength`",
    ),
    (
        &["length", "len", "size"],
        "write `minLength` and `maxLength`, of a list `minItems` and `maxItems`",
    ),
    (&["min_items", "minitems", "minSize"], "write `minItems`"),
    (&["max_items", "maxitems", "maxSize"], "write `maxItems`"),
    (
        &[
            "gt",
            "exclusiveMinimum",
            "exclusive_minimum",
            "exclusiveMin",
        ],
        "write `minimum`, and test for the bound itself in a step",
    ),
    (
        &[
            "lt",
            "exclusiveMaximum",
            "exclusive_maximum",
            "exclusiveMax",
        ],
        "write `maximum`, and test for the bound itself in a step",
    ),
    (&["step", "multiple_of"], "write `multipleOf`"),
    (
        &["regex", "regexp", "match", "matches", "validate"],
        "write `pattern`",
    ),
    (
        &["optional", "isOptional"],
        "leave the name out of `required` of the schema around this",
    ),
    (
        &["nullable", "allowNull", "null"],
        "write `\"type\": [\"string\", \"null\"]`",
    ),
    (
        &[
            "values",
            "choices",
            "options",
            "oneof",
            "one_of",
            "allowed",
            "in",
            "allowedValues",
        ],
        "write `\"enum\": [...]`",
    ),
    (&["value", "equals", "literal"], "write `const`"),
    (
        &[
            "of",
            "elements",
            "element",
            "itemType",
            "item_type",
            "itemsType",
            "subtype",
        ],
        "write `\"items\": {\"type\": \"string\"}`",
    ),
    (
        &[
            "props",
            "fields",
            "keys",
            "members",
            "attributes",
            "shape",
            "children",
            "columns",
            "parameters",
        ],
        "write `properties`",
    ),
    (
        &[
            "additional_properties",
            "additionalproperties",
            "strict",
            "extra",
        ],
        "write `additionalProperties`",
    ),
    (
        &["require", "mandatory", "requires"],
        "write `\"required\": [\"name\"]`",
    ),
    (
        &["data_type", "dataType", "datatype", "kind"],
        "write `type`",
    ),
    (
        &["$ref", "$dynamicRef"],
        "there is no `$ref`: write the schema itself here",
    ),
    (&["oneOf"], "write `anyOf`, a list of schemas"),
    (&["allOf"], "write one schema with all that they say"),
    (
        &[
            "not",
            "if",
            "then",
            "else",
            "dependentRequired",
            "dependentSchemas",
        ],
        "test it in a step, by `if`",
    ),
    (
        &["patternProperties", "propertyNames"],
        "write `additionalProperties` as a schema for all members",
    ),
    (
        &[
            "uniqueItems",
            "contains",
            "unevaluatedProperties",
            "unevaluatedItems",
        ],
        "test it in a step",
    ),
    (&["prefixItems"], "write `items` as a list of schemas"),
];

/// The supported schema keywords, with the values that each accepts.
const KEYWORDS: &[(&str, Takes)] = &[
    ("type", Takes::Type),
    ("properties", Takes::Other),
    ("required", Takes::Names),
    ("additionalProperties", Takes::Flag),
    ("minProperties", Takes::Number("object")),
    ("maxProperties", Takes::Number("object")),
    ("items", Takes::Schema),
    ("minItems", Takes::Number("array")),
    ("maxItems", Takes::Number("array")),
    ("minLength", Takes::Number("string")),
    ("maxLength", Takes::Number("string")),
    ("minimum", Takes::Number("number")),
    ("maximum", Takes::Number("number")),
    ("multipleOf", Takes::Number("number")),
    ("pattern", Takes::Pattern),
    ("format", Takes::Format),
    ("enum", Takes::Values),
    ("const", Takes::Other),
    ("anyOf", Takes::Schemas),
    ("default", Takes::Default),
];

/// Formats that are checked.
const FORMATS: &[&str] = &["email", "uuid", "uri", "ipv4", "date-time", "emoji"];

/// Formats of JSON Schema and OpenAPI that document values but are not checked.
const OTHER_FORMATS: &[&str] = &[
    "date",
    "time",
    "duration",
    "hostname",
    "idn-hostname",
    "ipv6",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "iri-reference",
    "byte",
    "binary",
    "int32",
    "int64",
    "float",
    "double",
    "password",
];

/// The format that a synonym means.
fn format_for(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "e-mail" | "mail" | "idn-email" | "email-address" => "email",
        "guid" => "uuid",
        "url" | "link" | "http" | "https" | "iri" | "uri-reference" => "uri",
        "ip" | "ip-address" | "ipv4-address" => "ipv4",
        "datetime" | "timestamp" | "iso8601" | "iso-8601" | "iso-date-time" => "date-time",
        _ => return None,
    })
}

/// Keywords that do not constrain values.
const REMARKS: &[&str] = &[
    "description",
    "title",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "comment",
];

#[derive(Copy, Clone)]
enum Takes {
    Type,
    Names,
    /// A number, for values of this type.
    Number(&'static str),
    Schema,
    Schemas,
    Pattern,
    Flag,
    Format,
    Values,
    Default,
    Other,
}

impl<'a> Rules<'_, 'a> {
    /// Checks each keyword of a schema.
    pub(super) fn lint_keywords(&mut self, schema: NodeId) {
        let doc = self.doc;
        let kind = self.text(schema, "type");
        let kind = kind.as_deref().and_then(type_for);
        for (key, value) in doc.members(schema) {
            let name = Self::shown(key);
            match KEYWORDS.iter().find(|row| row.0 == name) {
                Some((_, takes)) => self.lint_keyword(schema, kind, &name, *takes, value),
                None => self.lint_other_keyword(&name, value),
            }
        }
        self.lint_bounds(schema);
    }

    fn lint_other_keyword(&mut self, name: &str, value: NodeId) {
        if REMARKS.contains(&name) || name.starts_with("x-") || name.starts_with("//") {
            return;
        }
        let row = SYNONYMS.iter().find(|row| row.0.contains(&name));
        let known = KEYWORDS.iter().map(|row| row.0);
        let help = match row {
            Some(row) => row.1.to_owned(),
            None => match self.nearest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => return,
            },
        };
        let message = format!(
            "schemas have no keyword `{}`, so it is ignored",
            excerpt(name)
        );
        self.found_schema(value, message, name, help);
    }

    fn lint_keyword(
        &mut self,
        schema: NodeId,
        kind: Option<&'static str>,
        name: &str,
        takes: Takes,
        value: NodeId,
    ) {
        let doc = self.doc;
        let written = super::text_of(doc, value);
        let text = written.clone().unwrap_or_default();
        match (takes, doc.kind(value)) {
            (Takes::Number(of), given) => {
                let fits = match (kind, of) {
                    (Some("integer" | "number"), of) => of == "number",
                    (Some(kind @ ("string" | "array" | "object")), of) => kind == of,
                    _ => true,
                };
                if !fits {
                    let help = match (kind, name.starts_with("min")) {
                        (Some("string"), true) => "write `minLength`",
                        (Some("string"), false) => "write `maxLength`",
                        (Some("array"), true) => "write `minItems`",
                        (Some("array"), false) => "write `maxItems`",
                        (Some("number" | "integer"), true) => "write `minimum`",
                        (Some("number" | "integer"), false) => "write `maximum`",
                        _ => "remove it",
                    };
                    let message = format!("`{name}` is for values of type {of}, so it is ignored");
                    self.found_schema(value, message, name, help.to_owned());
                } else if let Kind::Number(n) = given
                    && (n < 0.0 || n.fract() != 0.0)
                    && of != "number"
                {
                    let message = format!("`{name}` is a whole number from 0 on");
                    let help = "write 0 or more, or remove it".to_owned();
                    self.found_schema(value, message, name, help);
                } else if let Kind::Number(n) = given
                    && name == "multipleOf"
                    && n <= 0.0
                {
                    let message = "`multipleOf` is above 0: no value fits".to_owned();
                    let help = "write a number above 0, as in `0.01`, or remove it".to_owned();
                    self.found_schema(value, message, name, help);
                } else if !matches!(given, Kind::Number(_)) {
                    let message = format!("`{name}` is a number");
                    let help = match text.trim().parse::<f64>().is_ok() {
                        true => format!("write the number without quotes: {}", text.trim()),
                        false => "write a number".to_owned(),
                    };
                    self.found_schema(value, message, &text, help);
                }
            }
            (Takes::Names, Kind::String(_)) => {
                let message = "`required` is a list of names".to_owned();
                self.found_schema(
                    value,
                    message,
                    &text,
                    format!("write `[\"{}\"]`", excerpt(&text)),
                );
            }
            // Reported at the property.
            (Takes::Names, Kind::Bool(_)) if doc.get(schema, "properties").is_none() => {}
            (Takes::Names, Kind::Bool(_) | Kind::Object | Kind::Number(_)) => {
                let message = "`required` is a list of names".to_owned();
                let names: Vec<String> = doc
                    .get(schema, "properties")
                    .into_iter()
                    .flat_map(|all| doc.members(all))
                    .take(8)
                    .map(|(name, _)| format!("\"{}\"", Self::shown(name)))
                    .collect();
                let help = format!("write `\"required\": [{}]`", names.join(", "));
                self.found_schema(value, message, "required", help);
            }
            (Takes::Schema, Kind::Array) => {
                let first = doc.elements(value).find(|n| doc.str(*n).is_some());
                let Some(first) = first else { return };
                let text = super::text_of(doc, first).unwrap_or_default();
                let kind = type_for(&text).unwrap_or("string");
                let message = format!("`{name}` is a schema");
                let help = format!("write `\"{name}\": {{\"type\": \"{kind}\"}}`");
                self.found_schema(first, message, &text, help);
            }
            (Takes::Flag, Kind::String(_) | Kind::Number(_) | Kind::Null) => {
                let message = format!("`{name}` is true, false or a schema");
                let help = match text.to_ascii_lowercase().as_str() {
                    "true" => "write it without quotes: true".to_owned(),
                    "false" | "no" => "write it without quotes: false".to_owned(),
                    _ => "write `false` to allow no other members".to_owned(),
                };
                self.found_schema(value, message, &text, help);
            }
            (Takes::Format, Kind::String(_))
                if !FORMATS.contains(&text.as_str()) && !OTHER_FORMATS.contains(&text.as_str()) =>
            {
                let help = match format_for(&text) {
                    Some(format) => format!("did you mean `{format}`?"),
                    None => match self.nearest(&text, FORMATS.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!(
                            "formats that are checked are {}; others need a `pattern`",
                            FORMATS.join(", ")
                        ),
                    },
                };
                let message = format!(
                    "there is no format `{}`, so nothing is checked",
                    excerpt(&text)
                );
                self.found_schema(value, message, &text, help);
            }
            (Takes::Schema, Kind::String(_)) => {
                let kind = type_for(&text).unwrap_or("string");
                let message = format!("`{name}` is a schema");
                let help = format!("write `\"{name}\": {{\"type\": \"{kind}\"}}`");
                self.found_schema(value, message, &text, help);
            }
            (Takes::Schema, _) if matches!(kind, Some(k) if k != "array") => {
                let message = "`items` is for values of type array, so it is ignored".to_owned();
                let help = "write `\"type\": \"array\"`".to_owned();
                self.found_schema(value, message, name, help);
            }
            (Takes::Schemas, Kind::Array) => {
                let first = doc.elements(value).find(|n| doc.kind(*n) != Kind::Object);
                let Some(first) = first else { return };
                let text = super::text_of(doc, first).unwrap_or_default();
                let kind = type_for(&text).unwrap_or("string");
                let message = format!("`{name}` is a list of schemas");
                self.found_schema(
                    first,
                    message,
                    &text,
                    format!("write `{{\"type\": \"{kind}\"}}`"),
                );
            }
            (Takes::Schemas, _) => {
                let message = format!("`{name}` is a list of schemas");
                let help = format!("write `\"{name}\": [{{\"type\": \"string\"}}, ...]`");
                self.found_schema(value, message, name, help);
            }
            (Takes::Values, Kind::Array) => self.lint_values(kind, value),
            (Takes::Values, _) => {
                let names: Vec<String> = text
                    .split([',', '|'])
                    .map(|word| format!("\"{}\"", word.trim()))
                    .collect();
                let message = "`enum` is a list of values".to_owned();
                let help = format!("write `\"enum\": [{}]`", excerpt(&names.join(", ")));
                self.found_schema(value, message, &text, help);
            }
            (Takes::Default, _) => self.lint_of_type(kind, value, "`default`"),
            (Takes::Pattern, Kind::String(_)) => {
                let slashes = text
                    .strip_prefix('/')
                    .and_then(|rest| rest.rsplit_once('/'));
                let flags = |flags: &str| flags.chars().all(|c| "dgimsuvy".contains(c));
                if let Some((message, help)) = super::patterns::pattern_fault(&text, true) {
                    self.found(codes::BAD_PATTERN, value, message, &text, help);
                } else if let Some((pattern, _)) =
                    slashes.filter(|(pattern, rest)| !pattern.is_empty() && flags(rest))
                {
                    let message = "the slashes around a pattern are searched for, too";
                    let help = format!("write `{}`", excerpt(pattern));
                    self.found(codes::BAD_PATTERN, value, message, &text, help);
                }
            }
            _ => {}
        }
    }

    /// Checks the values of an `enum`.
    fn lint_values(&mut self, kind: Option<&'static str>, values: NodeId) {
        let doc = self.doc;
        if doc.is_empty(values) {
            let message = "no value is one of an empty `enum`".to_owned();
            let help = "list the values that are allowed, or remove it".to_owned();
            return self.found_schema(values, message, "enum", help);
        }
        for value in doc.elements(values) {
            self.lint_of_type(kind, value, "a value of `enum`");
        }
    }

    /// Reports a value that does not match the `type` beside it.
    fn lint_of_type(&mut self, kind: Option<&'static str>, value: NodeId, what: &str) {
        let doc = self.doc;
        let fits = match (kind, doc.kind(value)) {
            (None, _) | (_, Kind::Null) => true,
            (Some("string"), given) => matches!(given, Kind::String(_)),
            (Some("number" | "integer"), given) => matches!(given, Kind::Number(_)),
            (Some("boolean"), given) => matches!(given, Kind::Bool(_)),
            (Some("array"), given) => given == Kind::Array,
            (Some("object"), given) => given == Kind::Object,
            _ => true,
        };
        if fits {
            return;
        }
        let kind = kind.unwrap_or_default();
        let text = super::text_of(doc, value).unwrap_or_default();
        let help = match (kind, text.trim().parse::<f64>().is_ok()) {
            ("number" | "integer", true) => {
                format!("write the number without quotes: {}", text.trim())
            }
            ("boolean", _) => "write `true` or `false`, without quotes".to_owned(),
            _ => format!("write a value of type {kind}, or another `type`"),
        };
        let message = format!("{what} is not of type {kind}");
        self.found_schema(value, message, &text, help);
    }

    /// Reports bounds that no value satisfies.
    fn lint_bounds(&mut self, schema: NodeId) {
        let doc = self.doc;
        let number = |key: &str| {
            let node = doc.get(schema, key)?;
            match doc.kind(node) {
                Kind::Number(n) => Some((node, n)),
                _ => None,
            }
        };
        for (low, high) in [
            ("minimum", "maximum"),
            ("minLength", "maxLength"),
            ("minItems", "maxItems"),
        ] {
            let (Some((_, min)), Some((node, max))) = (number(low), number(high)) else {
                continue;
            };
            if min > max {
                let message = format!("`{high}` is below `{low}`, {min}: no value fits");
                let help = format!("write `\"{low}\": {max}, \"{high}\": {min}`");
                self.found_schema(node, message, high, help);
            }
        }
    }
}
