//! The strict form: every object is closed and requires all its members, as structured
//! outputs of OpenAI and grammars of decoders need it.

use super::definition;
use super::full::{functions, is_body, is_call, is_tools, methods};
use a99_core::grammar::{FieldHolds, NODES, NodeField, NodeForm};
use a99_core::sig::{AtomInput, AtomSig, Binding, Form, JsonKinds};
use serde_json::{Map, Value, json};

/// Kinds of literals that need no definition.
const SCALARS: JsonKinds = JsonKinds::ANY;

/// The schema of programs with these atoms.
pub(super) fn program<'a>(atoms: impl Iterator<Item = &'a AtomSig>) -> Value {
    let steps: Vec<Value> = atoms.flat_map(step).collect();
    let nodes: Vec<Value> = told_nodes().map(node).collect();
    let mut root = closed([
        ("op".to_owned(), text("seq")),
        (
            "steps".to_owned(),
            json!({"type": "array", "items": definition("step")}),
        ),
    ]);
    root["$defs"] = json!({
        "step": {"anyOf": steps},
        "node": {"anyOf": nodes},
        "argument": closed([
            ("$kind".to_owned(), text("arg")),
            ("path".to_owned(), json!({"type": "string"})),
        ]),
        "operand": {"anyOf": [scalars(SCALARS), definition("node")]},
        "value": {"anyOf": [
            scalars(SCALARS),
            {"type": "array", "items": definition("value")},
            definition("node"),
            definition("argument"),
        ]},
    });
    root
}

/// A text with a constant value.
fn text(constant: &str) -> Value {
    json!({"type": "string", "enum": [constant]})
}

/// The scalar kinds among these.
fn scalars(kinds: JsonKinds) -> Value {
    let names = kinds
        .names()
        .filter(|name| !matches!(*name, "array" | "object"));
    json!({"type": names.collect::<Vec<_>>()})
}

/// A closed object that requires all its members.
fn closed(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    let properties: Map<String, Value> = members.into_iter().collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn described(mut schema: Value, docs: &str) -> Value {
    if !docs.is_empty() {
        schema["description"] = json!(docs);
    }
    schema
}

/// The nodes that this form has: those of programs without a version.
fn told_nodes() -> impl Iterator<Item = &'static NodeForm> {
    NODES.iter().filter(|form| form.tag != "text")
}

fn node(form: &NodeForm) -> Value {
    let tag = ("$expr".to_owned(), text(form.tag));
    let fields = form
        .fields
        .iter()
        .map(|field| (field.name.to_owned(), held(field)));
    described(closed(std::iter::once(tag).chain(fields)), form.docs)
}

fn held(field: &NodeField) -> Value {
    match field.holds {
        FieldHolds::Operand => definition("operand"),
        FieldHolds::Operands => json!({"type": "array", "items": definition("operand")}),
        FieldHolds::Data => scalars(SCALARS),
        FieldHolds::Name | FieldHolds::Text => json!({"type": "string"}),
        FieldHolds::Function => json!({"type": "string", "enum": functions()}),
        FieldHolds::Method => json!({"type": "string", "enum": methods()}),
        FieldHolds::Member => json!({"anyOf": [{"type": "string"}, definition("node")]}),
        FieldHolds::Operator(all) => json!({"type": "string", "enum": all}),
        FieldHolds::Flag => json!({"type": ["boolean", "null"]}),
        FieldHolds::Properties => json!({
            "type": "array",
            "items": closed([
                (
                    "key".to_owned(),
                    json!({"anyOf": [{"type": "string"}, definition("node")]}),
                ),
                ("value".to_owned(), definition("operand")),
            ]),
        }),
    }
}

/// The forms of a step of an atom; empty if the strict form cannot express it.
fn step(sig: &AtomSig) -> Vec<Value> {
    // The strict form has no helpers, because their names belong to the program.
    let unnamed = sig.takes_others() && sig.inputs.is_empty();
    if unnamed || sig.form == Some(Form::CallLocal) {
        return Vec::new();
    }
    if sig.form == Some(Form::Return) {
        return returns(sig);
    }
    let mut members = vec![("op".to_owned(), text(&sig.name))];
    for input in sig.inputs.iter() {
        let schema = match input_schema(sig, input) {
            Some(schema) => described(schema, &input.docs),
            None if input.required => return Vec::new(),
            None => json!({"type": "null"}),
        };
        members.push((input.name.to_string(), schema));
    }
    members.push(("result".to_owned(), json!({"type": ["string", "null"]})));
    vec![described(closed(members), &sig.docs)]
}

/// The forms of a step `return` with `value`. `null` is a value there, so the step omits
/// `schema`, whose members are names of the program. One form names a variable, the other
/// computes a value, mostly an object.
fn returns(sig: &AtomSig) -> Vec<Value> {
    let docs = sig.input("value").map_or("", |input| &*input.docs);
    [
        json!({"type": "string"}),
        json!({"anyOf": [definition("node")]}),
    ]
    .map(|value| {
        let members = [
            ("op".to_owned(), text(&sig.name)),
            ("value".to_owned(), described(value, docs)),
        ];
        described(closed(members), &sig.docs)
    })
    .to_vec()
}

/// The schema of an input; `None` if the strict form must leave it out.
fn input_schema(sig: &AtomSig, input: &AtomInput) -> Option<Value> {
    let kinds = input.kinds;
    let has = |kind| kinds.contains(kind);
    if is_body(sig, input) {
        let names: Vec<&str> = kinds.names().collect();
        return Some(json!({"type": names, "items": definition("step")}));
    }
    if is_tools(sig, input) {
        let tool = |members: Vec<(&str, Value)>| {
            let members = members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value));
            closed(members.collect::<Vec<_>>())
        };
        let given = json!({"type": "string"});
        let maybe = json!({"type": ["string", "null"]});
        let forms = [
            tool(vec![
                ("name", given.clone()),
                ("description", given.clone()),
                ("as", maybe.clone()),
                ("call", definition("step")),
            ]),
            tool(vec![
                ("atom", given.clone()),
                ("name", maybe.clone()),
                ("description", maybe.clone()),
            ]),
            tool(vec![
                ("agent", given.clone()),
                ("name", maybe.clone()),
                ("description", given.clone()),
            ]),
        ];
        return Some(json!({"type": "array", "items": {"anyOf": forms}}));
    }
    if is_call(sig, input) {
        return Some(json!({"anyOf": [definition("step"), {"type": "null"}]}));
    }
    let values = || {
        let mut values: Vec<Value> = input.values.iter().map(|value| json!(value)).collect();
        if has(JsonKinds::NULL) {
            values.push(Value::Null);
        }
        values
    };
    let literal = match input.values.is_empty() {
        true => scalars(kinds),
        false => {
            let mut literal = scalars(kinds);
            literal["enum"] = Value::Array(values());
            literal
        }
    };
    if input.binding == Binding::Literal {
        return as_written(input, literal);
    }
    // The names that conditions and templates bind belong to the program.
    let tests = matches!(
        sig.form,
        Some(Form::If | Form::While | Form::Filter | Form::Find | Form::MathCalc)
    );
    if tests && input.binding == Binding::Vars {
        return None;
    }
    if has(JsonKinds::ANY) {
        return Some(json!({"anyOf": [definition("value")]}));
    }
    let literal = match input.values.is_empty() {
        true => scalars(kinds | JsonKinds::STRING),
        false => literal,
    };
    let mut forms = vec![literal];
    if has(JsonKinds::ARRAY) {
        forms.push(json!({"type": "array", "items": definition("value")}));
    }
    forms.extend([definition("node"), definition("argument")]);
    Some(json!({ "anyOf": forms }))
}

/// The schema of an input that is taken literally: scalars, and lists of them.
fn as_written(input: &AtomInput, literal: Value) -> Option<Value> {
    let has = |kind| input.kinds.contains(kind);
    let list = has(JsonKinds::ARRAY).then(|| {
        let parts = match input.parts.contains(JsonKinds::ANY) {
            true => JsonKinds::STRING,
            false => input.parts,
        };
        json!({"type": "array", "items": scalars(parts)})
    });
    let scalar = literal["type"].as_array().is_some_and(|kinds| {
        let null = json!("null");
        kinds.iter().any(|kind| *kind != null || list.is_some())
    });
    match (scalar, list) {
        (true, Some(list)) => Some(json!({"anyOf": [literal, list]})),
        (true, None) => Some(literal),
        (false, list) => list,
    }
}
