//! Schemas of an atom's inputs in each tool format, and the inputs that are JSON texts
//! because the format cannot express them.

use super::ToolForm;
use super::gemini::gemini;
use a99_core::sig::AtomSig;
use a99_vm::strict_schema::strict;
use serde_json::{Map, Value, json};

/// Name of the single input that holds all inputs of an atom.
pub(super) const ALL: &str = "inputs";

/// How a tool passes the inputs of an atom.
pub(super) enum Given {
    /// Each under its name; the listed ones as JSON texts.
    Named(Vec<String>),
    /// All together as one JSON text, under [`ALL`].
    Together,
}

pub(super) fn schema(sig: &AtomSig, form: ToolForm) -> Value {
    plan(sig, form).0
}

/// How the tool passes the inputs.
pub(super) fn given(sig: &AtomSig, form: ToolForm) -> Given {
    plan(sig, form).1
}

fn plan(sig: &AtomSig, form: ToolForm) -> (Value, Given) {
    let whole = sig.described_schema();
    let names = whole["properties"].as_object().into_iter().flatten();
    let unfit = names.into_iter().any(|(name, _)| !fits(name, form));
    match form {
        ToolForm::OpenAiStrict => rewritten(sig, &whole, unfit, &strict_part, &strict_whole),
        ToolForm::Gemini => rewritten(sig, &whole, unfit, &gemini_part, &gemini_whole),
        _ if unfit => {
            let text = all_as_text(sig);
            (strict(&text).unwrap_or(text), Given::Together)
        }
        _ => (whole, Given::Named(Vec::new())),
    }
}

/// Whether the format accepts an input of this name.
fn fits(name: &str, form: ToolForm) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    let short = (1..=64).contains(&name.len());
    match form {
        ToolForm::Gemini => short && name.starts_with(starts) && name.chars().all(word),
        ToolForm::Anthropic => short && name.chars().all(|c| word(c) || c == '.' || c == '-'),
        ToolForm::OpenAi | ToolForm::OpenAiStrict | ToolForm::Mcp => !name.is_empty(),
    }
}

/// Rewrites the schema for a restricted format: an input that it cannot express is
/// simplified, or becomes a JSON text.
fn rewritten(
    sig: &AtomSig,
    whole: &Value,
    unfit: bool,
    part: &dyn Fn(&Value, Option<&Value>) -> bool,
    rewrite: &dyn Fn(Value) -> Option<Value>,
) -> (Value, Given) {
    let definitions = whole.get("$defs");
    let open = whole["additionalProperties"] != Value::Bool(false);
    let together = || {
        let text = all_as_text(sig);
        (rewrite(text.clone()).unwrap_or(text), Given::Together)
    };
    if open || unfit {
        return together();
    }
    let mut properties = Map::new();
    let mut texts = Vec::new();
    let mut refers = false;
    for (name, schema) in whole["properties"].as_object().into_iter().flatten() {
        let schema = told_default(schema);
        let simpler = [Some(schema.clone()), without_free(&schema)];
        let fit = simpler.into_iter().flatten();
        let fit = fit.into_iter().find(|schema| part(schema, definitions));
        refers |= fit.as_ref().is_some_and(has_reference);
        let fit = fit.unwrap_or_else(|| {
            texts.push(name.clone());
            let is_required = sig.input(name).is_some_and(|input| input.required);
            as_text(&schema, is_required)
        });
        properties.insert(name.clone(), fit);
    }
    let mut root = json!({
        "type": "object",
        "properties": properties,
        "required": whole["required"],
        "additionalProperties": false,
    });
    if let (true, Some(definitions)) = (refers, definitions) {
        root["$defs"] = definitions.clone();
    }
    match rewrite(root) {
        Some(schema) => (schema, Given::Named(texts)),
        None => together(),
    }
}

/// Whether the strict form can express an input.
fn strict_part(schema: &Value, definitions: Option<&Value>) -> bool {
    let mut root = json!({"type": "object", "properties": {"part": schema}, "required": ["part"]});
    if let (true, Some(definitions)) = (has_reference(schema), definitions) {
        root["$defs"] = definitions.clone();
    }
    strict(&root).is_some()
}

fn strict_whole(root: Value) -> Option<Value> {
    strict(&root)
}

fn gemini_part(schema: &Value, _: Option<&Value>) -> bool {
    gemini(schema).is_some()
}

/// Converts the root, which alone may be without members: it is left out then.
fn gemini_whole(root: Value) -> Option<Value> {
    match root["properties"].as_object()?.is_empty() {
        true => Some(root),
        false => gemini(&root),
    }
}

/// Whether a schema has a reference. The recursion is as deep as the schema, which the host
/// wrote.
fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_reference),
        Value::Array(list) => list.iter().any(has_reference),
        _ => false,
    }
}

/// Moves the default into the description: not every format has the keyword.
fn told_default(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let default = schema.as_object_mut().and_then(|map| map.remove("default"));
    if let Some(default) = default {
        add_sentence(&mut schema, &format!("Default: {default}."));
    }
    schema
}

fn add_sentence(schema: &mut Value, sentence: &str) {
    let before = schema.get("description").and_then(Value::as_str);
    let text = match before {
        Some(before) => format!("{before} {sentence}"),
        None => sentence.to_owned(),
    };
    schema["description"] = Value::String(text);
}

/// Reduces a schema of scalars and untyped objects or arrays to its scalars, if text is among
/// them.
fn without_free(schema: &Value) -> Option<Value> {
    let is_scalar = |kind: &Value| !matches!(kind.as_str(), Some("object" | "array"));
    let types = schema.get("type")?.as_array()?;
    let scalars: Vec<&Value> = types.iter().filter(|kind| is_scalar(kind)).collect();
    // All six types mean arbitrary data, which texts alone cannot represent.
    let any = types.len() >= 6;
    if any || !scalars.iter().any(|kind| **kind == "string") {
        return None;
    }
    let mut out = schema.clone();
    out["type"] = json!(scalars);
    let map = out.as_object_mut()?;
    for key in ["items", "properties", "additionalProperties", "required"] {
        map.remove(key);
    }
    Some(out)
}

/// An input as a JSON text.
fn as_text(schema: &Value, is_required: bool) -> Value {
    let mut out = match is_required {
        true => json!({"type": "string"}),
        false => json!({"type": ["string", "null"]}),
    };
    if let Some(docs) = schema.get("description") {
        out["description"] = docs.clone();
    }
    let types = schema.get("type");
    let kind = match types.and_then(|types| types.as_str().or_else(|| types[0].as_str())) {
        Some("array") => "Written as the JSON text of an array.",
        Some("object") => "Written as the JSON text of an object.",
        _ => "Written as JSON text.",
    };
    add_sentence(&mut out, kind);
    out
}

fn all_as_text(sig: &AtomSig) -> Value {
    let mut docs = "All inputs, as the JSON text of an object".to_owned();
    if sig.inputs.is_empty() {
        docs.push('.');
    } else {
        let rows = sig.inputs.iter().map(|input| {
            let (name, kind) = (&input.name, input.type_text());
            format!("`{name}` ({kind}): {}", input.docs)
        });
        docs.push_str(&format!(": {}", rows.collect::<Vec<_>>().join("; ")));
    }
    json!({
        "type": "object",
        "properties": {ALL: {"type": "string", "description": docs}},
        "required": [ALL],
        "additionalProperties": false,
    })
}
