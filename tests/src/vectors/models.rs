//! A scripted model: requests as vectors write them down, answers as the script gives them.

use super::script::SharedScript;
use super::vm_engine::wait;
use a99_core::value::{Map, Value};
use agent99::capabilities::BoxFuture;
use agent99::capabilities::ai::{
    AiCode, AiError, AiProvider, Effort, Format, Image, Message, Part, Role, StopReason,
    StreamEvent, StreamHandle, StreamSink, TextRequest, Tool, ToolChoice, ToolUse, Usage,
};
use std::collections::BTreeMap;

/// Answers what `ai.generate` of the script says.
pub(super) struct ScriptedModel(pub(super) SharedScript);

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
        other => panic!("a part that no vector has: {other:?}"),
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

/// A request as vectors have it.
fn request_value(request: &TextRequest) -> Value {
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

fn member(value: &Value, key: &str) -> Value {
    value.get(key).cloned().unwrap_or(Value::Undefined)
}

fn text_of(value: &Value, key: &str) -> Option<String> {
    match member(value, key) {
        Value::String(text) => Some(text.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// The part that a vector has in this form.
fn part_of(value: &Value) -> Part {
    if let Some(text) = text_of(value, "text") {
        return Part::Text(text);
    }
    if let Some(url) = text_of(value, "image") {
        return Part::Image(Image::of_url(&url));
    }
    let text = |of: &Value, key| text_of(of, key).unwrap_or_default();
    let used = member(value, "toolUse");
    if !used.is_undefined() {
        return Part::ToolUse(ToolUse {
            id: text(&used, "id"),
            name: text(&used, "name"),
            input: member(&used, "input"),
        });
    }
    let result = member(value, "toolResult");
    Part::ToolResult {
        id: text(&result, "id"),
        content: text(&result, "content"),
        is_error: member(&result, "isError").as_bool() == Some(true),
    }
}

/// The request that a vector has in this form.
fn request_of(value: &Value) -> TextRequest {
    let list = |key: &str| match member(value, key) {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let messages = list("messages").into_iter().map(|message| Message {
        role: match member(&message, "role").as_str() {
            Some("assistant") => Role::Assistant,
            _ => Role::User,
        },
        content: match member(&message, "content") {
            Value::Array(parts) => parts.iter().map(part_of).collect(),
            _ => Vec::new(),
        },
    });
    let tools = list("tools").into_iter().map(|tool| Tool {
        name: text_of(&tool, "name").unwrap_or_default(),
        description: text_of(&tool, "description"),
        input_schema: member(&tool, "inputSchema"),
    });
    let format = member(value, "format");
    let stop = list("stop").into_iter();
    let stop = stop.filter_map(|text| Some(text.as_text()?.to_string_lossy().into_owned()));
    TextRequest {
        system: text_of(value, "system"),
        messages: messages.collect(),
        tools: tools.collect(),
        tool_choice: match text_of(value, "toolChoice").as_deref() {
            None => ToolChoice::Auto,
            Some("none") => ToolChoice::None,
            Some("required") => ToolChoice::Required,
            Some(name) => ToolChoice::Tool(name.to_owned()),
        },
        format: match (&format, text_of(&format, "name")) {
            (_, Some(name)) => Format::Schema {
                name,
                schema: member(&format, "schema"),
            },
            (Value::String(_), _) => Format::Json,
            _ => Format::Text,
        },
        model: text_of(value, "model"),
        role: text_of(value, "role"),
        max_tokens: member(value, "maxTokens").as_f64().map(|n| n as u32),
        temperature: member(value, "temperature").as_f64(),
        top_p: member(value, "topP").as_f64(),
        effort: text_of(value, "effort").and_then(|name| Effort::named(&name)),
        seed: member(value, "seed").as_f64().map(|n| n as u64),
        stop_sequences: stop.collect(),
    }
}

/// Asks a model what a vector's request says; its answer as scripts of vectors have it.
///
/// # Errors
/// Those of the model.
pub async fn ask(model: &dyn AiProvider, request: &Value) -> Result<Value, AiError> {
    let answer = model.generate_text(request_of(request)).await?;
    let calls = answer.tool_uses.iter().map(|used| {
        object([
            ("id", Some(used.id.as_str().into())),
            ("name", Some(used.name.as_str().into())),
            ("input", Some(used.input.clone())),
        ])
    });
    let tokens = |n: u64| Some(Value::from(n as f64));
    Ok(object([
        ("text", Some(answer.text.as_str().into())),
        ("toolCalls", Some(Value::Array(calls.collect()))),
        (
            "stopReason",
            answer
                .stop_reason
                .as_ref()
                .map(|reason| reason.name().into()),
        ),
        (
            "usage",
            Some(object([
                ("inputTokens", tokens(answer.usage.prompt_tokens)),
                ("outputTokens", tokens(answer.usage.completion_tokens)),
            ])),
        ),
    ]))
}

/// Plays an answer of the script.
fn play(said: &Value, sink: &StreamSink) {
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

impl AiProvider for ScriptedModel {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        Box::pin(async { Ok(BTreeMap::new()) })
    }

    fn stream_text(&self, request: TextRequest) -> StreamHandle {
        if let Err(error) = request.check() {
            return StreamHandle::failed("scripted", error);
        }
        let reply = {
            let mut script = self.0.lock().unwrap_or_else(|e| e.into_inner());
            script.call("ai.generate", &[request_value(&request)])
        };
        let (sink, handle) = StreamHandle::new("scripted");
        let answer = move || match &reply.result {
            Ok(said) => play(said, &sink),
            Err(message) => {
                let message = message.to_string_lossy();
                sink.fail(AiError::new(AiCode::Unavailable, message));
            }
        };
        if reply.delay_ms > 0.0 {
            tokio::spawn(async move {
                wait(reply.delay_ms).await;
                answer();
            });
        } else {
            answer();
        }
        handle
    }
}
