//! The schema of all programs in the recommended form.

use super::definition;
use a99_core::builtins::{FUNCTIONS, METHODS};
use a99_core::diag::codes;
use a99_core::grammar::{
    BODIES, FOREIGN_TYPES, FieldHolds, HELPER_KEYS, HELPER_REMARKS, NODE_REMARK, NODES, NodeField,
    NodeForm, PROGRAM_KEYS, ProgramKey, REMARK_PREFIXES, REMARKS, STEP_KEYS, VERSIONS,
};
use a99_core::sig::{AtomInput, AtomSig, Binding, Form, JsonKinds, Params};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The schema of programs with these atoms.
pub(super) fn program<'a>(atoms: impl Iterator<Item = &'a AtomSig>) -> Value {
    let mut definitions = Map::new();
    let mut define = |name: &str, schema: Value| definitions.insert(name.to_owned(), schema);
    define("steps", json!({"items": definition("step")}));
    define("value", value());
    define("reference", reference());
    define("argument", argument());
    define("schema", json_schema());
    define("operand", operand());
    define(
        "node",
        chosen("$expr", NODES.iter().map(|node| (node.tag, "node"))),
    );
    for form in NODES {
        define(&format!("node.{}", form.tag), node(form));
    }
    let mut names = Vec::new();
    for sig in atoms {
        define(&format!("step.{}", sig.name), step(sig));
        names.push(&*sig.name);
    }
    define("step", chosen("op", names.iter().map(|op| (*op, "step"))));
    define("helper", helper());
    let mut root = object(PROGRAM_KEYS.iter().map(|key| {
        let schema = match key.name {
            "$schema" => json!({"type": "string"}),
            "op" => json!({"const": "seq"}),
            "steps" => json!({"type": "array", "$ref": "#/$defs/steps"}),
            "helpers" => json!({"type": "object", "additionalProperties": definition("helper")}),
            "inputSchema" => definition("schema"),
            "a99" => json!({ "enum": VERSIONS }),
            "allow" => json!({"type": ["array", "null"], "items": {"enum": findings()}}),
            _ => json!({}),
        };
        (key.name, with_docs(schema, key.docs))
    }));
    root.insert("required".to_owned(), json!(["op", "steps"]));
    let mut out = Map::new();
    let head = [
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("title", "Agent99 program"),
    ];
    out.extend(head.map(|(key, text)| (key.to_owned(), json!(text))));
    out.append(&mut root);
    out.insert("$defs".to_owned(), Value::Object(definitions));
    Value::Object(out)
}

/// The finding codes that a program may suppress.
fn findings() -> Vec<&'static str> {
    let rows = codes::TABLE.iter().filter(|row| row.family() == "lint");
    rows.map(|row| row.name).collect()
}

/// A closed object with these members and remarks.
fn object<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    let properties: Map<String, Value> = members.map(|(k, v)| (k.to_owned(), v)).collect();
    let mut out = Map::new();
    out.insert("type".to_owned(), json!("object"));
    out.insert("properties".to_owned(), Value::Object(properties));
    out.insert("patternProperties".to_owned(), json!({ remark(): true }));
    out.insert("additionalProperties".to_owned(), Value::Bool(false));
    out
}

/// The key pattern of remarks.
fn remark() -> String {
    let prefixes = REMARK_PREFIXES.iter().map(|p| p.replace('$', "\\$"));
    let words = REMARKS.iter().map(|word| format!("{word}$"));
    let all: Vec<String> = prefixes.chain(words).collect();
    format!("^({})", all.join("|"))
}

/// An object whose member `key` selects its definition.
fn chosen<'a>(key: &str, kinds: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Value {
    let names: Vec<&str> = kinds.clone().map(|(name, _)| name).collect();
    let rules: Vec<Value> = kinds
        .map(|(name, family)| {
            json!({
                "if": {"properties": {key: {"const": name}}, "required": [key]},
                "then": definition(&format!("{family}.{name}")),
            })
        })
        .collect();
    json!({
        "type": "object",
        "properties": {key: {"enum": names}},
        "required": [key],
        "allOf": rules,
    })
}

fn with_docs(schema: Value, docs: &str) -> Value {
    match schema {
        Value::Object(map) if !docs.is_empty() => {
            let mut out = Map::new();
            out.insert("description".to_owned(), json!(docs));
            out.extend(map);
            Value::Object(out)
        }
        other => other,
    }
}

fn helper() -> Value {
    let docs = |key: &'static ProgramKey| {
        let schema = match key.name {
            "steps" => json!({"type": "array", "$ref": "#/$defs/steps"}),
            _ => json!({"type": "array", "items": {"type": "string"}}),
        };
        (key.name, with_docs(schema, key.docs))
    };
    let remarks = HELPER_REMARKS.iter().map(|name| (*name, json!({})));
    let mut out = object(HELPER_KEYS.iter().map(docs).chain(remarks));
    out.insert("required".to_owned(), json!(["steps"]));
    Value::Object(out)
}

/// A value position: nodes and arguments at any depth, and data around them.
fn value() -> Value {
    let tagged = |key: &str| json!({"type": "object", "required": [key]});
    json!({
        "description": "A value: a literal, a text that may name a variable or a path, an \
                        expression node or an argument; in objects and lists nodes are evaluated.",
        "if": tagged("$expr"),
        "then": definition("node"),
        "else": {
            "if": tagged("$kind"),
            "then": definition("argument"),
            "else": {
                "items": definition("value"),
                "properties": {"type": {
                    "$ref": "#/$defs/value",
                    "not": {"type": "string", "pattern": format!("({})$", FOREIGN_TYPES.join("|"))},
                }},
                "additionalProperties": definition("value"),
            },
        },
    })
}

/// A JSON Schema, checked for types and members only.
fn json_schema() -> Value {
    let mut kinds: Vec<&str> = JsonKinds::ANY.names().collect();
    kinds.push("integer");
    json!({
        "description": "A JSON Schema.",
        "type": ["object", "boolean", "null"],
        "properties": {
            "type": {"anyOf": [{"enum": kinds}, {"type": "array", "items": {"enum": kinds}}]},
            "properties": {"type": "object", "additionalProperties": definition("schema")},
            "items": {"type": ["object", "array", "boolean"]},
            "required": {"type": "array", "items": {"type": "string"}},
            "enum": {"type": "array"},
        },
    })
}

/// An expression text in the short spelling of version 4.
fn short_text() -> Value {
    json!({
        "type": "object",
        "required": ["="],
        "properties": {"=": {"type": "string"}},
        "maxProperties": 1,
    })
}

/// An evaluated position that is not an object.
fn reference() -> Value {
    json!({
        "type": "object",
        "anyOf": [{"required": ["$expr"]}, {"required": ["$kind"]}, short_text()],
        "$ref": "#/$defs/value",
    })
}

fn argument() -> Value {
    let mut out = object(
        [
            ("$kind", json!({"enum": ["arg", "context"]})),
            (
                "path",
                json!({"description": "Name of an argument, or a path from one.", "type": "string"}),
            ),
        ]
        .into_iter(),
    );
    out.insert("required".to_owned(), json!(["$kind", "path"]));
    Value::Object(out)
}

/// An operand of a node: a node, or a literal.
fn operand() -> Value {
    json!({
        "description": "A node, or a literal, which is itself: a text here names no variable.",
        "if": {"type": "object", "required": ["$expr"]},
        "then": definition("node"),
        "else": {"properties": {"$kind": false}},
    })
}

fn node(form: &NodeForm) -> Value {
    let tag = [("$expr", json!({"const": form.tag}))];
    let fields = form.fields.iter().map(|field| (field.name, held(field)));
    let mut out = object(tag.into_iter().chain(fields));
    let needed = form.fields.iter().filter(|field| field.required);
    let needed: Vec<&str> = needed.map(|field| field.name).collect();
    out.insert("required".to_owned(), json!(needed));
    out.insert(
        "patternProperties".to_owned(),
        json!({ format!("^{NODE_REMARK}"): true }),
    );
    with_docs(Value::Object(out), form.docs)
}

fn held(field: &NodeField) -> Value {
    match field.holds {
        FieldHolds::Operand => definition("operand"),
        FieldHolds::Operands => json!({"type": "array", "items": definition("operand")}),
        FieldHolds::Data => json!({}),
        FieldHolds::Name | FieldHolds::Text => json!({"type": "string"}),
        FieldHolds::Function => json!({ "enum": functions() }),
        FieldHolds::Method => json!({ "enum": methods() }),
        FieldHolds::Member => json!({
            "if": {"type": "object"},
            "then": {"anyOf": [definition("node"), short_text()]},
            "else": {"type": ["string", "number"]},
        }),
        FieldHolds::Operator(all) => json!({ "enum": all }),
        FieldHolds::Flag => json!({"type": ["boolean", "null"]}),
        FieldHolds::Properties => json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {
                        "if": {"type": "object"},
                        "then": {"anyOf": [definition("node"), short_text()]},
                        "else": {"type": ["string", "number", "boolean"]},
                    },
                    "value": definition("operand"),
                },
                "required": ["key", "value"],
            },
        }),
    }
}

/// The methods, and the functions of namespaces, that `methodCall` may name.
pub(super) fn methods() -> Vec<&'static str> {
    let functions = FUNCTIONS.iter().filter(|function| !function.ns.is_empty());
    let functions = functions.map(|function| function.name);
    let names: BTreeSet<&str> = METHODS.iter().map(|m| m.name).chain(functions).collect();
    names.into_iter().collect()
}

/// The functions that the node `call` may name.
pub(super) fn functions() -> Vec<&'static str> {
    let global = FUNCTIONS.iter().filter(|function| function.ns.is_empty());
    global.map(|function| function.name).collect()
}

fn step(sig: &AtomSig) -> Value {
    let common = STEP_KEYS.iter().map(|key| {
        let schema = match key.name {
            "op" => json!({"const": sig.name}),
            "result" => json!({"type": ["string", "null"]}),
            _ => json!({"type": ["boolean", "null"]}),
        };
        (key.name, with_docs(schema, key.docs))
    });
    let inputs = sig
        .inputs
        .iter()
        .map(|input| (&*input.name, input_schema(sig, input)));
    let mut out = object(common.chain(inputs));
    match sig.params {
        Params::Named(_) => {}
        Params::Open => {
            out.insert("additionalProperties".to_owned(), definition("value"));
        }
        Params::Raw => {
            out.insert("additionalProperties".to_owned(), Value::Bool(true));
        }
    }
    let needed = sig.inputs.iter().filter(|input| input.required);
    let mut required = vec!["op"];
    required.extend(needed.map(|input| &*input.name));
    out.insert("required".to_owned(), json!(required));
    let holes = sig.inputs.iter().find_map(|input| match input.binding {
        Binding::TemplateVars { template } => Some((input, sig.inputs.get(usize::from(template))?)),
        _ => None,
    });
    if let Some((vars, text)) = holes {
        let written = json!({&*text.name: {"type": "string", "pattern": r"\{\{\w+\}\}"}});
        out.insert(
            "if".to_owned(),
            json!({"required": [text.name], "properties": written}),
        );
        out.insert("then".to_owned(), json!({"required": [vars.name]}));
    }
    with_docs(Value::Object(out), &sig.docs)
}

/// Whether an input is a list of steps.
pub(super) fn is_body(sig: &AtomSig, input: &AtomInput) -> bool {
    let listed = BODIES.contains(&&*input.name) || is_call(sig, input);
    sig.form.is_some() && listed && input.kinds.contains(JsonKinds::ARRAY)
}

/// Whether an input of `callAll` is a call or a list of calls, which are written as steps.
pub(super) fn is_call(sig: &AtomSig, input: &AtomInput) -> bool {
    sig.form == Some(Form::CallAll) && matches!(&*input.name, "calls" | "call")
}

/// Whether an input is the tool list of `llmToolLoop`.
pub(super) fn is_tools(sig: &AtomSig, input: &AtomInput) -> bool {
    sig.form == Some(Form::ToolLoop) && input.name == "tools"
}

/// A tool of `llmToolLoop`.
fn tool() -> Value {
    let text = json!({"type": ["string", "null"]});
    let name = json!({"type": ["string", "null"], "pattern": "^[a-zA-Z0-9_-]{1,64}$"});
    json!({
        "type": "object",
        "properties": {
            "name": name,
            "description": text,
            "inputSchema": {"anyOf": [definition("schema"), {"type": "null"}]},
            "as": text,
            "call": {"anyOf": [definition("step"), {"type": "null"}]},
            "atom": text,
            "agent": text,
        },
        "additionalProperties": false,
    })
}

fn input_schema(sig: &AtomSig, input: &AtomInput) -> Value {
    let names = |kinds: JsonKinds| -> Vec<&str> { kinds.names().collect() };
    if is_body(sig, input) {
        let schema = json!({"type": names(input.kinds), "$ref": "#/$defs/steps"});
        return with_docs(schema, &input.docs);
    }
    if is_call(sig, input) {
        let schema = json!({"anyOf": [definition("step"), {"type": "null"}]});
        return with_docs(schema, &input.docs);
    }
    if is_tools(sig, input) {
        return with_docs(json!({"type": "array", "items": tool()}), &input.docs);
    }
    if sig.form == Some(Form::Return) && input.name == "schema" {
        return with_docs(definition("schema"), &input.docs);
    }
    if input.binding == Binding::Literal {
        return literal(input);
    }
    let any = input.kinds.contains(JsonKinds::ANY);
    let kinds = names(input.kinds | JsonKinds::STRING);
    let mut out = if any {
        json!({"$ref": "#/$defs/value"})
    } else if input.kinds.contains(JsonKinds::OBJECT) {
        json!({"type": kinds, "$ref": "#/$defs/value"})
    } else if input.kinds.contains(JsonKinds::ARRAY) {
        let literal = json!({"type": kinds, "$ref": "#/$defs/value"});
        json!({"anyOf": [literal, definition("reference")]})
    } else {
        json!({"anyOf": [{"type": kinds}, definition("reference")]})
    };
    if !input.values.is_empty() {
        out["examples"] = json!(input.values);
    }
    if let Ok(default) = serde_json::from_str::<Value>(&input.default) {
        out["default"] = default;
    }
    with_docs(out, &input.docs)
}

/// The schema of an input that is taken literally, from its row.
fn literal(input: &AtomInput) -> Value {
    let described = input.described();
    if input.schema.contains("\"$ref\"") {
        // It may refer to definitions in another place.
        return with_docs(json!({}), &input.docs);
    }
    let null = !input.required;
    match described {
        Value::Object(mut map) => {
            if let (true, Some(Value::Array(values))) = (null, map.get_mut("enum")) {
                values.push(Value::Null);
            }
            match map.get("type") {
                Some(_) => {
                    let kinds: Vec<&str> = input.kinds.names().collect();
                    map.insert("type".to_owned(), json!(kinds));
                    Value::Object(map)
                }
                None if null => json!({"anyOf": [map, {"type": "null"}]}),
                None => Value::Object(map),
            }
        }
        other => other,
    }
}
