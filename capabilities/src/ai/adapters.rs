//! Adapters from an [`AiProvider`] to the atoms `llmPredict`, `llmPredictBattery` and
//! `llmVision`.

use super::answer::{ask, whole};
use super::read::{Read, format, image, is_absent, list, messages, options, text, tool};
use super::{AiProvider, Message, Part, Role, TextRequest, ToolChoice};
use crate::error::Reply;
use crate::{Fetch, Llm, LlmBattery};
use a99_core::value::Value;
use std::fmt;
use std::sync::Arc;

/// Text from the model of a role: `llmPredict`.
///
/// A program's `options` may have `model`, `role`, `system`, `maxTokens`, `temperature`, `seed`
/// and `stop` (a text or a list); OpenAI's spelling (`max_tokens`) is accepted too. Other
/// members are refused.
#[derive(Clone)]
pub struct ProviderLlm {
    provider: Arc<dyn AiProvider>,
    defaults: TextRequest,
}

/// Chat with tools, structured answers and images: `llmPredictBattery` and `llmVision`.
///
/// `user` is a text, `{text, images}`, or a list of messages in the form of OpenAI's chat
/// completions; `tools` have that form too, or are `{name, description, inputSchema}`. The
/// reply is the assistant's message, `{role, content, tool_calls}`. An incomplete answer, or
/// one without the requested form, is an error.
#[derive(Clone)]
pub struct ProviderBattery {
    provider: Arc<dyn AiProvider>,
    defaults: TextRequest,
    /// The network of the run, which limits image addresses for the model's service.
    network: Option<Arc<dyn Fetch>>,
}

impl ProviderLlm {
    /// Asks `provider`; `defaults` has everything except the messages.
    pub fn new(provider: Arc<dyn AiProvider>, defaults: TextRequest) -> ProviderLlm {
        ProviderLlm { provider, defaults }
    }
}

impl ProviderBattery {
    /// Asks `provider`; `defaults` has everything except the messages.
    pub fn new(provider: Arc<dyn AiProvider>, defaults: TextRequest) -> ProviderBattery {
        ProviderBattery {
            provider,
            defaults,
            network: None,
        }
    }

    /// Allows image addresses that this network allows. Without a network, only embedded images
    /// are sent.
    #[must_use]
    pub fn with_network(self, network: Option<Arc<dyn Fetch>>) -> ProviderBattery {
        ProviderBattery { network, ..self }
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
            let answer = whole(self.provider.generate_text(request).await?)?;
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
            request.check_addresses(self.network.as_deref())?;
            let answer = whole(ask(&*self.provider, request).await?)?;
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
        let network = Arc::new(crate::ScriptedFetch::new().on("https://a.example/b.png", "x"));
        let battery = ProviderBattery::new(model.clone(), TextRequest::default().role("smart"))
            .with_network(Some(network));
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
    fn d5_addresses_of_images_need_the_network_of_the_run() {
        let ask = |url: &str, network: Option<Arc<dyn Fetch>>| {
            let model = Arc::new(ScriptedAi::replies(["seen", "seen"]));
            let battery =
                ProviderBattery::new(model.clone(), TextRequest::default()).with_network(network);
            let images = format!(r#"{{"text": "What?", "images": ["{url}"]}}"#);
            let parts = format!(
                r#"[{{"role": "user", "content": [{{"type": "image_url", "image_url": {{"url": "{url}"}}}}]}}]"#
            );
            let asked = [images, parts].map(|user| {
                let reply = battery.predict(
                    Value::Undefined,
                    value(&user),
                    Value::Undefined,
                    Value::Undefined,
                );
                block_on(reply)
            });
            (asked, model.requests().len())
        };
        let allowed = "https://a.example/b.png";
        let network = || -> Option<Arc<dyn Fetch>> {
            Some(Arc::new(
                crate::ScriptedFetch::new()
                    .on(allowed, "x")
                    .on("file:///x", "y"),
            ))
        };
        for url in [
            "http://169.254.169.254/latest",
            "https://a.example/other.png",
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            " http://a.example/b.png",
            "file:///x",
            "gopher://a.example",
            "/etc/passwd",
            "",
        ] {
            for network in [None, network()] {
                let (replies, asked) = ask(url, network);
                assert_eq!(asked, 0, "{url}");
                for reply in replies {
                    let error = reply.unwrap_err();
                    assert_eq!(error.code.unwrap().as_str(), "ai.denied", "{url}: {error}");
                }
            }
        }
        assert_eq!(ask(allowed, None).1, 0);
        assert_eq!(ask(allowed, network()).1, 2);
        for data in ["data:image/png;base64,AA==", "DATA:image/png;base64,AA=="] {
            assert_eq!(ask(data, None).1, 2, "{data}");
        }
    }

    #[test]
    fn d6_an_answer_that_is_not_complete_is_an_error() {
        use crate::ai::StopReason;
        let other = StopReason::Other("of_tomorrow".to_owned());
        let paused = StopReason::Other("pause_turn".to_owned());
        for (stop, code) in [
            (StopReason::MaxTokens, "ai.length"),
            (StopReason::Refusal, "ai.refusal"),
            (StopReason::ContentFilter, "ai.content_filter"),
            (paused, "ai.paused"),
            (other, "ai.incomplete"),
        ] {
            let turn = || ModelTurn {
                stop: Some(stop.clone()),
                ..ModelTurn::text("half")
            };
            let model = Arc::new(ScriptedAi::new(ModelScript {
                turns: vec![turn()],
            }));
            let llm = ProviderLlm::new(model, TextRequest::default());
            let of_llm = block_on(llm.predict("x".into(), Value::Undefined));
            let (of_battery, _) = chat(turn(), r#""hi""#, "null", "null");
            let image = r#"{"text": "What?", "images": ["data:image/png;base64,AA=="]}"#;
            let (of_vision, _) = chat(turn(), image, "null", "null");
            for reply in [of_llm, of_battery, of_vision] {
                let error = reply.unwrap_err();
                assert_eq!(error.code.unwrap().as_str(), code);
                let details = error.details.unwrap();
                assert_eq!(details.get("partial"), Some(&"half".into()), "{code}");
                assert_eq!(details.get("stopReason"), Some(&stop.name().into()));
            }
        }
        for stop in [StopReason::EndTurn, StopReason::StopSequence] {
            let turn = ModelTurn {
                stop: Some(stop),
                ..ModelTurn::text("all")
            };
            assert!(chat(turn, r#""hi""#, "null", "null").0.is_ok());
        }
    }

    #[test]
    fn d6_answers_are_held_to_their_form_and_repaired() {
        let schema = r#"{"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"], "additionalProperties": false}"#;
        let ask = |format: &str, replies: &[&str]| {
            let model = Arc::new(ScriptedAi::replies(replies.iter().copied()));
            let battery = ProviderBattery::new(model.clone(), TextRequest::default());
            let user = "Count.".into();
            let reply = battery.predict(Value::Undefined, user, Value::Undefined, value(format));
            (block_on(reply), model.requests())
        };
        for (format, replies, asked) in [
            (schema, &[r#"{"n": 1}"#][..], 1),
            (schema, &["One.", r#"{"n": 1}"#], 2),
            (schema, &[r#"{"n": "1"}"#, "{}", r#"{"n": 1}"#], 3),
            (schema, &[r#"{"n": 1, "m": 2}"#, r#"{"n": 1}"#], 2),
            (r#"{"type": "json_object"}"#, &["[1]", r#"{"a": 1}"#], 2),
        ] {
            let (reply, requests) = ask(format, replies);
            let last = replies.last().copied().unwrap();
            assert_eq!(
                reply.unwrap().get("content"),
                Some(&last.into()),
                "{replies:?}"
            );
            assert_eq!(requests.len(), asked, "{replies:?}");
            assert_eq!(
                requests[asked - 1].messages.len(),
                2 * asked - 1,
                "{replies:?}"
            );
        }
        let (reply, requests) = ask(schema, &[r#"{"n": "x"}"#; 5]);
        let error = reply.unwrap_err();
        assert_eq!(requests.len(), 3, "two repairs at most");
        assert_eq!(error.code.unwrap().as_str(), "ai.form");
        assert!(
            error.to_string().contains(": n: "),
            "it names the place: {error}"
        );
        let details = error.details.unwrap();
        assert_eq!(details.get("partial"), Some(&r#"{"n": "x"}"#.into()));
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
