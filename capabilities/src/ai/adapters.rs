//! Adapters: what programs ask (`llmPredict`, `llmPredictBattery`, `llmVision`), by a
//! provider of models.

use super::{
    AiProvider, Format, Image, Message, Part, Role, TextRequest, Tool, ToolChoice, ToolUse,
};
use crate::error::{CapabilityError, Reply};
use crate::{Llm, LlmBattery};
use a99_core::json::{Document, Limits};
use a99_core::value::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Messages, parts and tools of a request, at most.
const MAX_ITEMS: usize = 10_000;

/// Tokens that a program may ask for, at most.
const MAX_TOKENS: f64 = 4_294_967_295.0;

/// Text from the model of a role: `llmPredict`.
///
/// `options` of the program may have `model`, `role`, `system`, `maxTokens`, `temperature`,
/// `seed` and `stop` (a text or a list); the names of OpenAI (`max_tokens`) are read as well.
/// Other members are refused.
#[derive(Clone)]
pub struct ProviderLlm {
    provider: Arc<dyn AiProvider>,
    defaults: TextRequest,
}

/// Chat with tools, structured answers and images: `llmPredictBattery` and `llmVision`.
///
/// `user` is a text, `{text, images}`, or a list of messages as OpenAI's chat completions
/// have them; `tools` are in that form too, or `{name, description, inputSchema}`; the reply
/// is the assistant's message, `{role, content, tool_calls}`.
#[derive(Clone)]
pub struct ProviderBattery {
    provider: Arc<dyn AiProvider>,
    defaults: TextRequest,
}

impl ProviderLlm {
    /// Asks with what this request has beside its messages.
    pub fn new(provider: Arc<dyn AiProvider>, defaults: TextRequest) -> ProviderLlm {
        ProviderLlm { provider, defaults }
    }
}

impl ProviderBattery {
    /// Asks with what this request has beside its messages.
    pub fn new(provider: Arc<dyn AiProvider>, defaults: TextRequest) -> ProviderBattery {
        ProviderBattery { provider, defaults }
    }
}

impl fmt::Debug for ProviderLlm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderLlm")
    }
}

impl fmt::Debug for ProviderBattery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderBattery")
    }
}

type Read<T> = Result<T, CapabilityError>;

fn wrong<T>(why: impl fmt::Display) -> Read<T> {
    Err(CapabilityError::new(format!("Model Error: {why}")))
}

fn text(value: &Value, what: &str) -> Read<String> {
    match value.as_text() {
        Some(text) => Ok(text.to_string_lossy().into_owned()),
        None => wrong(format_args!("{what} must be a text")),
    }
}

fn is_absent(value: &Value) -> bool {
    matches!(value, Value::Undefined | Value::Null)
}

/// The list of a value, within bounds.
fn list<'v>(value: &'v Value, what: &str) -> Read<&'v [Value]> {
    match value.as_array() {
        Some(list) if list.len() <= MAX_ITEMS => Ok(list),
        Some(_) => wrong(format_args!("{what} has more than {MAX_ITEMS} items")),
        None => wrong(format_args!("{what} must be a list")),
    }
}

/// The options of `llmPredict`.
fn options(request: &mut TextRequest, options: &Value) -> Read<()> {
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
            "seed" => request.seed = Some(number()? as u64),
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
                let known = "model, role, system, maxTokens, temperature, seed, stop";
                let key = a99_core::diag::excerpt(&key);
                return wrong(format_args!(
                    "no option is called `{key}`; known are {known}"
                ));
            }
        }
    }
    Ok(())
}

impl Llm for ProviderLlm {
    fn predict(&self, prompt: Value, given: Value) -> Reply<'_> {
        Box::pin(async move {
            let mut request = self.defaults.clone();
            request.messages = vec![Message::user(text(&prompt, "the prompt")?)];
            options(&mut request, &given)?;
            let answer = self.provider.generate_text(request).await?;
            Ok(answer.text.into())
        })
    }
}

/// An image of `{text, images}`.
fn image(value: &Value) -> Read<Part> {
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
            _ => wrong("a part of a message has the type `text` or `image_url`"),
        }
    };
    parts.iter().map(part).collect()
}

/// The input of a tool: JSON, or the text itself.
fn input(written: &str) -> Value {
    match Document::parse(written, &Limits::default()) {
        Ok(doc) => doc.to_value(doc.root()),
        Err(_) => written.into(),
    }
}

/// A tool that a message of the model asked for.
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

/// Messages in the form of OpenAI's chat completions.
fn messages(request: &mut TextRequest, value: &Value) -> Read<()> {
    for message in list(value, "`user`")? {
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
                    is_error: false,
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

/// A tool in the form of OpenAI's or Anthropic's.
fn tool(value: &Value) -> Read<Tool> {
    let function = value.get("function").unwrap_or(value);
    let schema = ["parameters", "inputSchema", "input_schema"];
    let schema = schema.iter().find_map(|key| function.get(key));
    let mut schema = match schema.filter(|schema| !is_absent(schema)) {
        Some(Value::Object(schema)) => schema.clone(),
        Some(_) => return wrong("the schema of a tool must be an object"),
        None => Map::new(),
    };
    // Services want an object of each tool, and its members.
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

/// The form that an answer is to have: OpenAI's `response_format`.
fn format(value: &Value) -> Read<Format> {
    if is_absent(value) {
        return Ok(Format::Text);
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
            let known = "text, json_object, json_schema";
            wrong(format_args!(
                "no `responseFormat` has the type `{other}`; known are {known}"
            ))
        }
    }
}

impl LlmBattery for ProviderBattery {
    fn predict(&self, system: Value, user: Value, tools: Value, wanted: Value) -> Reply<'_> {
        Box::pin(async move {
            let mut request = self.defaults.clone();
            request.messages.clear();
            if !is_absent(&system) {
                request.system = Some(text(&system, "`system`")?);
            }
            match &user {
                Value::Array(_) => messages(&mut request, &user)?,
                Value::Object(map) => {
                    let said = map.get("text").unwrap_or(&Value::Undefined);
                    let mut parts = vec![Part::Text(text(said, "the text of `user`")?)];
                    if let Some(images) = map.get("images").filter(|value| !is_absent(value)) {
                        for shown in list(images, "`images`")? {
                            parts.push(image(shown)?);
                        }
                    }
                    request.messages.push(Message {
                        role: Role::User,
                        content: parts,
                    });
                }
                _ => request.messages.push(Message::user(text(&user, "`user`")?)),
            }
            if !is_absent(&tools) {
                let tools = list(&tools, "`tools`")?.iter();
                request.tools = tools.map(tool).collect::<Read<_>>()?;
            }
            if request.tools.is_empty() {
                request.tool_choice = ToolChoice::Auto;
            }
            request.format = format(&wanted)?;
            let answer = self.provider.generate_text(request).await?;
            Ok(answer.to_message())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::{ModelScript, ModelTurn, ScriptedAi};
    use crate::testing::block_on;

    fn value(json: &str) -> Value {
        let doc = Document::parse(json, &Limits::default()).unwrap();
        doc.to_value(doc.root())
    }

    fn chat(
        turn: ModelTurn,
        user: &str,
        tools: &str,
        wanted: &str,
    ) -> (Read<Value>, Vec<TextRequest>) {
        let model = Arc::new(ScriptedAi::new(ModelScript { turns: vec![turn] }));
        let battery = ProviderBattery::new(model.clone(), TextRequest::default().role("smart"));
        let reply = battery.predict("Be brief.".into(), value(user), value(tools), value(wanted));
        (block_on(reply), model.requests())
    }

    #[test]
    fn both_conform() {
        let model: Arc<dyn AiProvider> = Arc::new(ScriptedAi::replies(["a", "b"]));
        let llm = ProviderLlm::new(model.clone(), TextRequest::default());
        block_on(crate::llm::suite::conformance(&llm)).unwrap();
        let battery = ProviderBattery::new(model, TextRequest::default());
        block_on(crate::llm_battery::suite::conformance(&battery)).unwrap();
    }

    #[test]
    fn options_reach_the_model() {
        let model = Arc::new(ScriptedAi::replies(["hi"]));
        let llm = ProviderLlm::new(model.clone(), TextRequest::default().role("fast"));
        let given = value(
            r#"{"role": "code", "maxTokens": 9, "temperature": 0, "stop": ["x"], "seed": 1, "system": null}"#,
        );
        let answer = block_on(llm.predict("Say hi".into(), given)).unwrap();
        assert_eq!(answer, "hi".into());
        let asked = &model.requests()[0];
        assert_eq!(asked.role.as_deref(), Some("code"));
        assert_eq!((asked.max_tokens, asked.seed), (Some(9), Some(1)));
        assert_eq!(asked.stop_sequences, ["x"]);
        for (given, error) in [
            (r#"{"max": 1}"#, "no option is called `max`"),
            (
                r#"{"maxTokens": 0.5}"#,
                "`maxTokens` must be a whole number from 1 on",
            ),
            (
                r#"{"temperature": "hot"}"#,
                "`temperature` must be a number",
            ),
            ("[]", "the options must be an object"),
        ] {
            let refused = block_on(llm.predict("x".into(), value(given))).unwrap_err();
            assert!(refused.to_string().contains(error), "{refused}");
        }
        assert!(block_on(llm.predict(Value::Null, Value::Undefined)).is_err());
        assert_eq!(model.requests().len(), 1, "what is refused is not asked");
    }

    #[test]
    fn a_talk_with_tools_goes_both_ways() {
        let user = r#"[{"role": "system", "content": "You look things up."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
              "function": {"name": "weather", "arguments": "{\"town\": \"Oslo\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"}]"#;
        let tools =
            r#"[{"type": "function", "function": {"name": "weather", "description": "Weather."}}]"#;
        let turn = ModelTurn::tool("c2", "weather", value(r#"{"town": "Bergen"}"#));
        let (reply, asked) = chat(turn, user, tools, "null");
        assert_eq!(
            reply.unwrap().to_json_string(),
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"weather","arguments":"{\"town\":\"Bergen\"}"}}]}"#
        );
        let asked = &asked[0];
        assert_eq!(
            asked.system.as_deref(),
            Some("Be brief.\nYou look things up.")
        );
        assert_eq!(asked.messages.len(), 3);
        let Part::ToolUse(used) = &asked.messages[1].content[0] else {
            panic!("{asked:?}");
        };
        assert_eq!(used.input.to_json_string(), r#"{"town":"Oslo"}"#);
        assert!(matches!(&asked.messages[2].content[0],
            Part::ToolResult { id, content, .. } if id == "c1" && content == "rain"));
        assert_eq!(
            asked.tools[0].input_schema.to_json_string(),
            r#"{"type":"object","properties":{}}"#
        );
    }

    #[test]
    fn images_and_formats_are_read() {
        let user = r#"{"text": "What?", "images": ["data:image/png;base64,AA==", {"url": "https://a.example/b.png"}]}"#;
        let wanted = r#"{"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}"#;
        let (reply, asked) = chat(ModelTurn::text("{}"), user, "null", wanted);
        assert_eq!(
            reply.unwrap().to_json_string(),
            r#"{"role":"assistant","content":"{}"}"#
        );
        assert_eq!(asked[0].messages[0].content.len(), 3);
        assert!(matches!(&asked[0].format, Format::Schema { name, .. } if name == "n"));
    }

    #[test]
    fn what_is_no_talk_is_refused() {
        for (user, tools, wanted) in [
            ("1", "null", "null"),
            (r#"[{"role": "robot", "content": "x"}]"#, "null", "null"),
            (
                r#"[{"role": "user", "content": [{"type": "video"}]}]"#,
                "null",
                "null",
            ),
            (r#"{"images": []}"#, "null", "null"),
            (r#""hi""#, r#"[{"name": 1}]"#, "null"),
            (r#""hi""#, r#"{"a": 1}"#, "null"),
            (r#""hi""#, r#"[{"name": "a b"}]"#, "null"),
            (r#""hi""#, "null", r#"{"type": "yaml"}"#),
            (r#""hi""#, "null", r#"{"type": "json_schema"}"#),
            ("[]", "null", "null"),
        ] {
            let (reply, asked) = chat(ModelTurn::text("x"), user, tools, wanted);
            let error = reply.unwrap_err().to_string();
            assert!(error.starts_with("Model Error: "), "{error}");
            assert!(asked.is_empty(), "{user}");
        }
    }
}
