//! A scripted model: requests in the notation of vectors, answers from the script.

use super::script::SharedScript;
use super::vm_engine::wait;
use a99_core::value::{Map, Value};
use agent99::capabilities::BoxFuture;
use agent99::capabilities::ai::{
    AiCode, AiError, AiProvider, Format, Message, Part, Role, StopReason, StreamEvent,
    StreamHandle, StreamSink, TextRequest, ToolChoice, ToolUse, Usage,
};
use std::collections::BTreeMap;

/// A model that answers with `ai.generate` of the script.
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

/// A request in the notation of vectors.
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
