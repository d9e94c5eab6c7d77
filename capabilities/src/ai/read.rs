//! Reader of programs' requests to models, shared by all atoms: messages and tools in the form
//! of OpenAI's chat completions, options, and formats of answers.

use super::{
    Effort, Format, Image, Message, Opaque, Part, Place, Role, TextRequest, Tool, ToolUse,
    is_opaque_member,
};
use crate::error::CapabilityError;
use a99_core::json::{Document, Limits};
use a99_core::value::{Map, Value};
use std::fmt;

/// Most messages, parts and tools of a request.
const MAX_ITEMS: usize = 10_000;

/// Largest token limit that a program may set.
const MAX_TOKENS: f64 = 4_294_967_295.0;

/// Largest seed: greater numbers are not exact in JSON.
const MAX_SEED: f64 = 9_007_199_254_740_991.0;

pub(super) type Read<T> = Result<T, CapabilityError>;

pub(super) fn wrong<T>(why: impl fmt::Display) -> Read<T> {
    Err(CapabilityError::new(format!("Model Error: {why}")))
}

pub(super) fn text(value: &Value, what: &str) -> Read<String> {
    match value.as_text() {
        Some(text) => Ok(text.to_string_lossy().into_owned()),
        None => wrong(format_args!("{what} must be a text")),
    }
}

pub(super) fn is_absent(value: &Value) -> bool {
    matches!(value, Value::Undefined | Value::Null)
}

/// A list within bounds.
pub(super) fn list<'v>(value: &'v Value, what: &str) -> Read<&'v [Value]> {
    match value.as_array() {
        Some(list) if list.len() <= MAX_ITEMS => Ok(list),
        Some(_) => wrong(format_args!("{what} has more than {MAX_ITEMS} items")),
        None => wrong(format_args!("{what} must be a list")),
    }
}

/// The options of `llmPredict`.
pub(super) fn options(request: &mut TextRequest, options: &Value) -> Read<()> {
    if is_absent(options) {
        return Ok(());
    }
    let Some(map) = options.as_object() else {
        return wrong("the options must be an object");
    };
    for (key, value) in map.iter().filter(|(_, value)| !is_absent(value)) {
        let key = key.to_string_lossy();
        let number = || match value.as_f64() {
            Some(n) if n.is_finite() && n >= 0.0 => Ok(n),
            _ => wrong(format_args!("`{key}` must be a number from 0 on")),
        };
        match &*key {
            "model" => request.model = Some(text(value, "`model`")?),
            "role" => request.role = Some(text(value, "`role`")?),
            "system" => request.system = Some(text(value, "`system`")?),
            "maxTokens" | "max_tokens" => {
                let n = number()?;
                if n.fract() != 0.0 || !(1.0..=MAX_TOKENS).contains(&n) {
                    return wrong(format_args!("`{key}` must be a whole number from 1 on"));
                }
                request.max_tokens = Some(n as u32);
            }
            "temperature" => request.temperature = Some(number()?),
            "topP" | "top_p" => {
                let n = number()?;
                if n > 1.0 {
                    return wrong(format_args!(
                        "`{key}` must be a number from 0 to 1, not {n}"
                    ));
                }
                request.top_p = Some(n);
            }
            "effort" | "reasoningEffort" | "reasoning_effort" => {
                let name = text(value, &format!("`{key}`"))?;
                let Some(effort) = Effort::named(&name) else {
                    return wrong(unknown_effort(&key, &name));
                };
                request.effort = Some(effort);
            }
            "seed" => {
                let n = number()?;
                if n.fract() != 0.0 || n > MAX_SEED {
                    return wrong("`seed` must be a whole number from 0 to 2^53 - 1");
                }
                request.seed = Some(n as u64);
            }
            "stop" | "stopSequences" => {
                request.stop_sequences = match value.as_array() {
                    Some(_) => {
                        let texts = list(value, "`stop`")?.iter();
                        texts
                            .map(|value| text(value, "`stop`"))
                            .collect::<Read<_>>()?
                    }
                    None => vec![text(value, "`stop`")?],
                };
            }
            _ => {
                let known = "model, role, system, maxTokens, temperature, topP, effort, seed, stop";
                let key = a99_core::diag::excerpt(&key);
                return wrong(format_args!(
                    "no option is called `{key}`; known are {known}"
                ));
            }
        }
    }
    Ok(())
}

/// The error of an unknown [`Effort`], with the known ones.
fn unknown_effort(key: &str, name: &str) -> String {
    let known = || Effort::ALL.iter().map(|effort| effort.name());
    let near = a99_core::diag::suggest(name, known());
    let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let (name, known) = (
        a99_core::diag::excerpt(name),
        known().collect::<Vec<_>>().join(", "),
    );
    format!("`{key}` is `{name}`; {near}known are {known}")
}

/// An image of `{text, images}`.
pub(super) fn image(value: &Value) -> Read<Part> {
    let url = match value.as_object() {
        Some(map) => map.get("url").cloned().unwrap_or(Value::Undefined),
        None => value.clone(),
    };
    Ok(Part::Image(Image::of_url(&text(&url, "an image")?)))
}

/// The parts of a message's content.
fn content(value: &Value) -> Read<Vec<Part>> {
    if is_absent(value) {
        return Ok(Vec::new());
    }
    let Some(parts) = value.as_array() else {
        let text = text(value, "the content of a message")?;
        return Ok(vec![Part::Text(text)]);
    };
    if parts.len() > MAX_ITEMS {
        return wrong(format_args!("a message has more than {MAX_ITEMS} parts"));
    }
    let part = |part: &Value| {
        let kind = part.get("type").and_then(Value::as_text);
        let kind = kind.map(|kind| kind.to_string_lossy().into_owned());
        match kind.as_deref() {
            Some("text") => {
                let value = part.get("text").unwrap_or(&Value::Undefined);
                Ok(Part::Text(text(value, "the text of a part")?))
            }
            Some("image_url") => image(part.get("image_url").unwrap_or(&Value::Undefined)),
            Some("file") => {
                let data = part.get("file").and_then(|file| file.get("file_data"));
                let data = text(
                    data.unwrap_or(&Value::Undefined),
                    "the `file_data` of a file",
                )?;
                Ok(Part::Image(Image::of_url(&data)))
            }
            Some("input_audio") => {
                let audio = part.get("input_audio").unwrap_or(&Value::Undefined);
                let member = |key: &str| audio.get(key).unwrap_or(&Value::Undefined);
                let format = text(member("format"), "the `format` of audio")?;
                Ok(Part::Image(Image::Base64 {
                    media_type: format!("audio/{format}"),
                    data: text(member("data"), "the `data` of audio")?,
                }))
            }
            _ => {
                let known = "`text`, `image_url`, `file` or `input_audio`";
                wrong(format_args!("a part of a message has the type {known}"))
            }
        }
    };
    parts.iter().map(part).collect()
}

/// The input of a tool: JSON, or the text if it is not JSON.
fn input(written: &str) -> Value {
    match Document::parse_data(written, &Limits::default()) {
        Ok(doc) => doc.to_value(doc.root()),
        Err(_) => written.into(),
    }
}

/// A tool call in a message of the model.
fn tool_use(call: &Value) -> Read<Part> {
    let function = call.get("function").unwrap_or(&Value::Undefined);
    let arguments = function.get("arguments").unwrap_or(&Value::Undefined);
    Ok(Part::ToolUse(ToolUse {
        id: text(
            call.get("id").unwrap_or(&Value::Undefined),
            "the `id` of a tool call",
        )?,
        name: text(
            function.get("name").unwrap_or(&Value::Undefined),
            "the `name` of a tool call",
        )?,
        input: match arguments.as_text() {
            Some(written) => input(&written.to_string_lossy()),
            None => arguments.clone(),
        },
    }))
}

/// The opaque members of an object in a wire format.
fn opaque_members(of: &Value) -> Map {
    let members = of.as_object().into_iter().flat_map(Map::iter);
    let opaque = |(key, value): &(&a99_core::text::Text, &Value)| {
        !is_absent(value) && is_opaque_member(&key.to_string_lossy())
    };
    let members = members.filter(opaque);
    members
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The opaque parts of a message of the model: those of an answer, and members that the program
/// wrote in a wire format.
fn opaque(message: &Value, parts: &mut Vec<Part>) -> Read<()> {
    let mut add = |from: Option<&String>, part: Opaque| {
        let from = from.cloned();
        parts.push(Part::Opaque { from, part });
    };
    if let Some(given) = message.get("opaque").filter(|given| !is_absent(given)) {
        let member = |key: &str| given.get(key).unwrap_or(&Value::Undefined);
        let from = text(member("from"), "`opaque.from` of a message")?;
        for part in list(member("parts"), "`opaque.parts` of a message")? {
            let Some(part) = Opaque::of_value(part) else {
                return wrong("a part of `opaque` of a message is not one of an answer");
            };
            add(Some(&from), part);
        }
    }
    let own = opaque_members(message);
    if !own.is_empty() {
        add(None, Opaque::new(Place::Message, own));
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for call in calls.unwrap_or_default() {
        let id = call.get("id").and_then(Value::as_text);
        let mut own = opaque_members(call);
        let of_function = call.get("function").map(opaque_members).unwrap_or_default();
        if !of_function.is_empty() {
            own.insert("function", of_function);
        }
        if let Some(id) = id.filter(|_| !own.is_empty()) {
            let id = id.to_string_lossy().into_owned();
            add(None, Opaque::new(Place::Call(id), own));
        }
    }
    Ok(())
}

/// Messages in the form of OpenAI's chat completions.
pub(super) fn messages(request: &mut TextRequest, value: &Value, what: &str) -> Read<()> {
    for message in list(value, what)? {
        let member = |key: &str| message.get(key).unwrap_or(&Value::Undefined);
        let mut parts = content(member("content"))?;
        let role = match &*text(member("role"), "the role of a message")? {
            "system" | "developer" => {
                let said = parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                let said: Vec<&str> = said.collect();
                let system = request.system.get_or_insert_default();
                if !system.is_empty() {
                    system.push('\n');
                }
                system.push_str(&said.join("\n"));
                continue;
            }
            "assistant" => {
                if !is_absent(member("tool_calls")) {
                    for call in list(member("tool_calls"), "`tool_calls`")? {
                        parts.push(tool_use(call)?);
                    }
                }
                opaque(message, &mut parts)?;
                Role::Assistant
            }
            "tool" => {
                let said = parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                parts = vec![Part::ToolResult {
                    id: text(member("tool_call_id"), "the `tool_call_id` of a message")?,
                    content: said.collect(),
                    is_error: member("isError").as_bool() == Some(true),
                }];
                Role::User
            }
            "user" => Role::User,
            other => {
                let other = a99_core::diag::excerpt(other);
                let known = "user, assistant, system, tool";
                return wrong(format_args!(
                    "no message has the role `{other}`; known are {known}"
                ));
            }
        };
        if !parts.is_empty() {
            request.messages.push(Message {
                role,
                content: parts,
            });
        }
    }
    Ok(())
}

/// A tool in the form of OpenAI or Anthropic.
pub(super) fn tool(value: &Value) -> Read<Tool> {
    let function = value.get("function").unwrap_or(value);
    let schema = ["parameters", "inputSchema", "input_schema"];
    let schema = schema.iter().find_map(|key| function.get(key));
    let mut schema = match schema.filter(|schema| !is_absent(schema)) {
        Some(Value::Object(schema)) => schema.clone(),
        Some(_) => return wrong("the schema of a tool must be an object"),
        None => Map::new(),
    };
    // Services require a schema of type object with members.
    if !schema.contains("type") {
        schema.insert("type", "object");
    }
    if !schema.contains("properties") {
        schema.insert("properties", Value::Object(Map::new()));
    }
    let description = function
        .get("description")
        .filter(|value| !is_absent(value));
    let description = description.map(|value| text(value, "the description of a tool"));
    Ok(Tool {
        name: text(
            function.get("name").unwrap_or(&Value::Undefined),
            "the name of a tool",
        )?,
        description: description.transpose()?,
        input_schema: Value::Object(schema),
    })
}

/// Types in JSON Schemas, which distinguish one from OpenAI's forms.
const SCHEMA_TYPES: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// True for a JSON Schema.
fn is_schema(value: &Value) -> bool {
    let kind = value.get("type");
    let named = kind.and_then(Value::as_str);
    let has = |key: &str| value.get(key).is_some();
    named.map_or_else(
        || kind.is_some_and(|kind| kind.as_array().is_some()) || has("anyOf") || has("properties"),
        |named| SCHEMA_TYPES.contains(&named),
    )
}

/// The requested form of an answer: OpenAI's `response_format`, or a JSON Schema.
pub(super) fn format(value: &Value) -> Read<Format> {
    if is_absent(value) {
        return Ok(Format::Text);
    }
    if is_schema(value) {
        return Ok(Format::Schema {
            name: "answer".to_owned(),
            schema: value.clone(),
        });
    }
    let kind = value.get("type").unwrap_or(&Value::Undefined);
    match &*text(kind, "the type of `responseFormat`")? {
        "text" => Ok(Format::Text),
        "json_object" => Ok(Format::Json),
        "json_schema" => {
            let inner = value.get("json_schema").unwrap_or(value);
            let Some(schema) = inner.get("schema").filter(|s| s.as_object().is_some()) else {
                return wrong("`responseFormat` needs `json_schema: {name, schema}`");
            };
            let name = inner
                .get("name")
                .map(|name| text(name, "the name of a schema"));
            Ok(Format::Schema {
                name: name.transpose()?.unwrap_or_else(|| "answer".to_owned()),
                schema: schema.clone(),
            })
        }
        other => {
            let other = a99_core::diag::excerpt(other);
            let known = "text, json_object, json_schema, and those of JSON Schema";
            wrong(format_args!(
                "no `responseFormat` has the type `{other}`; known are {known}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b5_of_repeated_keys_in_arguments_the_last_counts() {
        let read = input(r#"{"city":"Bonn","n":1,"city":"Ulm"}"#);
        assert_eq!(read.to_json_string(), r#"{"city":"Ulm","n":1}"#);
        assert_eq!(input("{\"a\":"), Value::from("{\"a\":"));
    }
}
