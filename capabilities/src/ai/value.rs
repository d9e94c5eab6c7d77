//! Requests and answers of models as values, for hosts that answer in another language.

use super::{Format, Message, Part, Role, StopReason, StreamEvent, StreamSink, TextRequest};
use super::{ToolChoice, ToolUse, Usage};
use a99_core::value::{Map, Value};

fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let members = members.into_iter().filter_map(|(k, v)| Some((k, v?)));
    Value::Object(members.collect::<Map>())
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => object([("text", Some(text.as_str().into()))]),
        Part::Image(image) => object([("image", Some(image.to_url().into()))]),
        Part::ToolUse(used) => {
            let used = object([
                ("id", Some(used.id.as_str().into())),
                ("name", Some(used.name.as_str().into())),
                ("input", Some(used.input.clone())),
            ]);
            object([("toolUse", Some(used))])
        }
        Part::ToolResult {
            id,
            content,
            is_error,
        } => {
            let result = object([
                ("id", Some(id.as_str().into())),
                ("content", Some(content.as_str().into())),
                ("isError", Some((*is_error).into())),
            ]);
            object([("toolResult", Some(result))])
        }
        Part::Opaque { .. } => object([]),
    }
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let parts = message.content.iter().map(part).collect();
    object([
        ("role", Some(role.into())),
        ("content", Some(Value::Array(parts))),
    ])
}

/// A request as an object: `system`, `messages`, `tools`, `toolChoice`, `format`, `model`,
/// `role`, `maxTokens`, `temperature`, `topP`, `effort`, `seed` and `stop`, each if it is set.
/// Opaque parts, which only the service that sent them can read, are empty.
#[must_use]
pub fn request_value(request: &TextRequest) -> Value {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let tools = request.tools.iter().map(|tool| {
        object([
            ("name", Some(tool.name.as_str().into())),
            ("description", text(&tool.description)),
            ("inputSchema", Some(tool.input_schema.clone())),
        ])
    });
    let format = match &request.format {
        Format::Text => None,
        Format::Json => Some("json".into()),
        Format::Schema { name, schema } => Some(object([
            ("name", Some(name.as_str().into())),
            ("schema", Some(schema.clone())),
        ])),
    };
    let choice = match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(name.as_str().into()),
    };
    let stop = request.stop_sequences.iter().map(|t| t.as_str().into());
    let stop: Vec<Value> = stop.collect();
    object([
        ("system", text(&request.system)),
        (
            "messages",
            Some(Value::Array(request.messages.iter().map(message).collect())),
        ),
        ("tools", Some(Value::Array(tools.collect()))),
        ("toolChoice", choice),
        ("format", format),
        ("model", text(&request.model)),
        ("role", text(&request.role)),
        ("maxTokens", request.max_tokens.map(|n| f64::from(n).into())),
        ("temperature", request.temperature.map(Value::from)),
        ("topP", request.top_p.map(Value::from)),
        ("effort", request.effort.map(|effort| effort.name().into())),
        ("seed", request.seed.map(|n| (n as f64).into())),
        ("stop", (!stop.is_empty()).then_some(Value::Array(stop))),
    ])
}

/// Sends a whole answer to a stream and ends it: an object with `text`, `toolCalls` (each with
/// `id`, `name` and `input`), `usage` (`inputTokens`, `outputTokens`) and `stopReason`, each if it
/// is there.
pub fn play_value(said: &Value, sink: &StreamSink) {
    let part = |of: &Value, key: &str| of.get(key).cloned().unwrap_or(Value::Undefined);
    let text = |value: &Value| {
        let text = value.as_text();
        text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
    };
    let words = text(&part(said, "text"));
    if !words.is_empty() {
        sink.send(StreamEvent::Text(words));
    }
    let calls = part(said, "toolCalls");
    let calls = calls.as_array().unwrap_or_default();
    for call in calls {
        sink.send(StreamEvent::ToolUse(ToolUse {
            id: text(&part(call, "id")),
            name: text(&part(call, "name")),
            input: part(call, "input"),
        }));
    }
    let usage = part(said, "usage");
    let tokens = |key: &str| part(&usage, key).as_f64().unwrap_or(0.0) as u64;
    sink.send(StreamEvent::Usage(Usage {
        prompt_tokens: tokens("inputTokens"),
        completion_tokens: tokens("outputTokens"),
        ..Usage::default()
    }));
    let fits = match calls.is_empty() {
        true => StopReason::EndTurn,
        false => StopReason::ToolUse,
    };
    let reason = part(said, "stopReason");
    sink.finish(reason.as_str().map_or(fits, StopReason::named));
}
