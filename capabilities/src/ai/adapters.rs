//! Adapters: what programs ask (`llmPredict`, `llmPredictBattery`, `llmVision`), by a
//! provider of models.

use super::read::{Read, format, image, is_absent, list, messages, options, text, tool};
use super::{AiProvider, Message, Part, Role, TextRequest, ToolChoice};
use crate::error::Reply;
use crate::{Llm, LlmBattery};
use a99_core::value::Value;
use std::fmt;
use std::sync::Arc;

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

impl LlmBattery for ProviderBattery {
    fn predict(&self, system: Value, user: Value, tools: Value, wanted: Value) -> Reply<'_> {
        Box::pin(async move {
            let mut request = self.defaults.clone();
            request.messages.clear();
            if !is_absent(&system) {
                request.system = Some(text(&system, "`system`")?);
            }
            match &user {
                Value::Array(_) => messages(&mut request, &user, "`user`")?,
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
    use crate::ai::{Format, ModelScript, ModelTurn, ScriptedAi};
    use crate::testing::block_on;
    use a99_core::json::{Document, Limits};

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
