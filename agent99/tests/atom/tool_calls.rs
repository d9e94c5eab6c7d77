//! Tool calls: a valid call is a step that compiles, and steps match the described inputs.

use crate::tools::{FORMS, assert_valid, engine, rules_of};
use a99_core::grammar::{PROGRAM_KEYS, STEP_KEYS};
use agent99::{Engine, ToolCallError, ToolFilter, ToolForm, json};
use serde_json::{Map, Value};
use std::path::Path;

/// A value that is valid under a schema of the forms; it has every member of an object.
fn example(schema: &Value, root: &Value) -> Value {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return match root.pointer(reference.trim_start_matches('#')) {
            // One level of a recursive type.
            Some(inner) if inner.to_string().contains(reference) => {
                let mut inner = inner.clone();
                let members = inner["properties"].as_object_mut().expect("an object");
                for (_, member) in members.iter_mut() {
                    if member.to_string().contains(reference) {
                        *member = json!({"const": []});
                    }
                }
                example(&inner, root)
            }
            Some(inner) => example(inner, root),
            None => panic!("{reference} leads nowhere"),
        };
    }
    let first = |key: &str| schema.get(key).and_then(|list| list.get(0));
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(branch) = first("anyOf").or_else(|| first("oneOf")) {
        return example(branch, root);
    }
    let kind = schema.get("type").and_then(Value::as_str);
    match kind.or_else(|| first("type").and_then(Value::as_str)) {
        Some("string") => json!("x"),
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => match schema.get("prefixItems").and_then(Value::as_array) {
            Some(items) => items.iter().map(|item| example(item, root)).collect(),
            None => json!([]),
        },
        Some("object") => {
            let members = schema.get("properties").and_then(Value::as_object);
            let members = members.into_iter().flatten();
            let members = members.map(|(name, inner)| (name.clone(), example(inner, root)));
            Value::Object(members.collect())
        }
        _ => json!("x"),
    }
}

/// Converts to the call of a form with inputs as JSON texts.
fn as_called(schema: &Value, whole: &Map<String, Value>) -> Value {
    let is_text = |schema: &Value| {
        let docs = schema["description"].as_str().unwrap_or_default();
        docs.contains("JSON text.") || docs.contains("as the JSON text of")
    };
    let members = schema["properties"].as_object().expect("members");
    let called = members.iter().map(|(name, schema)| {
        let value = match whole.get(name) {
            Some(value) if is_text(schema) => json!(value.to_string()),
            Some(value) => value.clone(),
            None => json!(Value::Object(whole.clone()).to_string()),
        };
        (name.clone(), value)
    });
    Value::Object(called.collect())
}

#[test]
fn calls_of_every_tool_are_steps() {
    let engine = engine();
    let described = engine.tools_as(&ToolFilter::All, ToolForm::OpenAi);
    for form in FORMS {
        let place = rules_of(form).1;
        for (tool, whole) in engine
            .tools_as(&ToolFilter::All, form)
            .iter()
            .zip(&described)
        {
            let function = &whole["function"];
            let name = function["name"].as_str().expect("a name");
            let root = &function["parameters"];
            let inputs = match name {
                "varsLet" | "anyKeys" | "asWritten" => json!({"a": 1, "b": null}),
                // Their names are bound, or helpers.
                _ => example(root, root),
            };
            let inputs = inputs.as_object().expect("inputs");
            let schema = tool.pointer(place);
            let called = match (schema, form) {
                (None, _) => json!({}),
                (Some(schema), ToolForm::OpenAiStrict | ToolForm::Gemini) => {
                    as_called(schema, inputs)
                }
                (Some(schema), _) if schema["properties"].get("inputs").is_some() => {
                    as_called(schema, inputs)
                }
                _ => Value::Object(inputs.clone()),
            };
            if let (Some(schema), true) = (schema, form != ToolForm::Gemini) {
                let validator = jsonschema::draft202012::new(schema).expect("a schema");
                assert_valid(&validator, &called);
            }
            let step = engine.tool_step(form, name, called).expect(name);
            let mut expected = Map::new();
            expected.insert("op".to_owned(), json!(name));
            expected.extend(inputs.clone());
            assert_eq!(step, Value::Object(expected), "{form:?}");
            let steps = match name {
                // They leave a loop.
                "break" | "continue" => {
                    json!([{"op": "forEach", "items": [], "as": "x", "steps": [step]}])
                }
                _ => json!([step]),
            };
            let program = json!({"op": "seq", "steps": steps});
            if let Err(refused) = engine.compile(program.to_string()) {
                panic!("{form:?} {name}: {refused:?}");
            }
        }
    }
}

#[test]
fn calls_without_the_form_are_told() {
    let engine = Engine::new();
    let step = |form, name: &str, arguments| engine.tool_step(form, name, arguments);
    let unknown = step(ToolForm::Mcp, "cache:get", json!({}));
    assert_eq!(unknown, Err(ToolCallError::UnknownTool("cache:get".into())));
    let list = step(ToolForm::Mcp, "len", json!([]));
    assert_eq!(list, Err(ToolCallError::NoObject));
    for (value, told) in [
        (
            json!({"list": "[1"}),
            "`list` is not the JSON text that it must be: EOF",
        ),
        (
            json!({"list": 7}),
            "`list` is not the JSON text that it must be: it is no text",
        ),
    ] {
        let error = step(ToolForm::OpenAiStrict, "len", value).expect_err("no JSON");
        assert!(error.to_string().starts_with(told), "{error}");
    }
    let bare = step(ToolForm::Gemini, "varsLet", json!({"inputs": "[]"}));
    assert_eq!(bare, Err(ToolCallError::NoObject));
    // The strict form expresses missing inputs by null; in other forms null is a value.
    let given = json!({"schema": null, "filter": null, "value": "{}"});
    let expected = json!({"op": "return", "value": {}});
    let strict = step(ToolForm::OpenAiStrict, "return", given);
    assert_eq!(strict, Ok(expected));
    let plain = step(
        ToolForm::OpenAi,
        "varSet",
        json!({"key": "a", "value": null}),
    );
    assert_eq!(plain.expect("a step")["value"], Value::Null);
    // A call cannot name another op.
    let plain = step(ToolForm::OpenAi, "len", json!({"op": "uuid", "list": []}));
    assert_eq!(plain, Ok(json!({"op": "len", "list": []})));
}

/// The steps of a program, at every depth.
fn steps<'v>(value: &'v Value, out: &mut Vec<&'v Map<String, Value>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| steps(item, out)),
        Value::Object(map) => {
            if map.get("op").is_some_and(Value::is_string) && !map.contains_key("$expr") {
                out.push(map);
            }
            map.values().for_each(|inner| steps(inner, out));
        }
        _ => {}
    }
}

/// Inputs of the examples, except those that are resolved to other values.
#[test]
fn the_steps_of_the_examples_fit_their_descriptions() {
    let engine = Engine::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut checked = 0;
    for folder in std::fs::read_dir(root).expect("examples") {
        let Ok(text) = std::fs::read_to_string(folder.expect("a folder").path().join("agent.json"))
        else {
            continue;
        };
        let program: Value = serde_json::from_str(&text).expect("JSON");
        let mut found = Vec::new();
        steps(&program, &mut found);
        for step in found {
            let op = step["op"].as_str().expect("an op");
            let sig = &engine.atoms().get(op).expect(op).sig;
            let required = sig.inputs.iter().filter(|input| input.required);
            for input in required {
                assert!(step.contains_key(&*input.name), "{op}: {}", input.name);
            }
            for (key, value) in step {
                let of_step = STEP_KEYS.iter().any(|row| row.name == key);
                let of_root = PROGRAM_KEYS.iter().any(|row| row.name == key);
                let input = match sig.input(key) {
                    Some(input) => input,
                    None if of_step || of_root => continue,
                    None if sig.takes_others() => continue,
                    None => panic!("{op} has no input {key}"),
                };
                let resolved = value.is_string() || value.to_string().contains("\"$");
                if input.takes_references() && resolved {
                    continue;
                }
                let validator = jsonschema::draft202012::new(&input.described()).expect("a schema");
                assert_valid(&validator, value);
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked} inputs");
}
