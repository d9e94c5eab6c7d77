//! One round of a conversation, for `llmChat`.

use super::answer::ask;
use super::read::{Read, format, is_absent, list, messages, options, text, tool, wrong};
use super::{AiProvider, Message, StopReason, TextRequest, TextResult, ToolChoice, ToolUse};
use crate::Fetch;
use crate::error::CapabilityError;
use a99_core::value::{Map, Value};

/// Inputs of a round; absent ones are `undefined`.
#[derive(Clone, Debug)]
pub struct ChatRound {
    /// The conversation so far, in the form of OpenAI's chat completions.
    pub messages: Value,
    /// A text of the user that follows the messages.
    pub prompt: Value,
    /// System message.
    pub system: Value,
    /// Tools offered to the model, each `{name, description, inputSchema}` or in OpenAI's form.
    pub tools: Value,
    /// `auto`, `none`, `required`, or the name of the required tool.
    pub tool_choice: Value,
    /// The form of the answer: a JSON Schema, or OpenAI's `response_format`.
    pub response_format: Value,
    /// `model`, `role`, `maxTokens`, `temperature`, `seed`, `stop`, `topP` and `effort`.
    pub options: Map,
    /// `false` to accept an answer without the requested form.
    pub repair: Value,
}

/// The choice of a tool, as text or in OpenAI's form.
fn tool_choice(value: &Value) -> Read<ToolChoice> {
    if is_absent(value) {
        return Ok(ToolChoice::Auto);
    }
    let named = value.get("function").unwrap_or(value);
    let name = named.get("name").unwrap_or(named);
    Ok(match &*text(name, "`toolChoice`")? {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" | "any" => ToolChoice::Required,
        name => ToolChoice::Tool(name.to_owned()),
    })
}

impl ChatRound {
    /// Builds the provider's request.
    ///
    /// # Errors
    /// `Model Error: ...` for an invalid message, tool, choice, format or option.
    pub fn request(&self) -> Result<TextRequest, CapabilityError> {
        let mut request = TextRequest::default();
        if !is_absent(&self.system) {
            request.system = Some(text(&self.system, "`system`")?);
        }
        if !is_absent(&self.messages) {
            messages(&mut request, &self.messages, "`messages`")?;
        }
        if !is_absent(&self.prompt) {
            let prompt = text(&self.prompt, "`prompt`")?;
            request.messages.push(Message::user(prompt));
        }
        if is_absent(&self.messages) && is_absent(&self.prompt) {
            return wrong("`prompt` or `messages` is needed");
        }
        if !is_absent(&self.tools) {
            let tools = list(&self.tools, "`tools`")?.iter();
            request.tools = tools.map(tool).collect::<Read<_>>()?;
        }
        request.tool_choice = tool_choice(&self.tool_choice)?;
        request.format = format(&self.response_format)?;
        options(&mut request, &Value::Object(self.options.clone()))?;
        Ok(request)
    }

    /// The model's answer: `{text, toolCalls, stopReason, message, usage}`.
    ///
    /// # Errors
    /// Errors of [`ChatRound::request`] and of the provider; an address that the run's network
    /// does not allow; a text without the requested form. An incomplete answer is an error with
    /// its reason.
    pub async fn ask(
        &self,
        provider: &dyn AiProvider,
        network: Option<&dyn Fetch>,
    ) -> Result<Value, CapabilityError> {
        let repair = match &self.repair {
            Value::Bool(repair) => *repair,
            absent if is_absent(absent) => true,
            _ => return wrong("`repair` must be true or false"),
        };
        let request = self.request()?;
        request.check_addresses(network)?;
        let result = match repair {
            true => ask(provider, request).await?,
            false => provider.generate_text(request).await?,
        };
        Ok(answer(&result))
    }
}

/// A tool call as programs see it.
fn tool_call(used: &ToolUse) -> Value {
    let mut call = Map::new();
    call.insert("id", used.id.as_str());
    call.insert("name", used.name.as_str());
    call.insert("input", used.input.clone());
    Value::Object(call)
}

fn answer(result: &TextResult) -> Value {
    let mut usage = Map::new();
    usage.insert("inputTokens", result.usage.prompt_tokens as f64);
    usage.insert("outputTokens", result.usage.completion_tokens as f64);
    let calls = result.tool_uses.iter().map(tool_call);
    let reason = result.stop_reason.as_ref().map_or("", StopReason::name);
    let mut answer = Map::new();
    answer.insert("text", result.text.as_str());
    answer.insert("toolCalls", calls.collect::<Vec<Value>>());
    answer.insert("stopReason", reason);
    answer.insert("message", result.to_message());
    answer.insert("usage", Value::Object(usage));
    Value::Object(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::{Format, ModelScript, ModelTurn, Part, ScriptedAi, Usage};
    use crate::testing::block_on;
    use a99_core::json::{Document, Limits};

    fn value(json: &str) -> Value {
        let doc = Document::parse(json, &Limits::default()).unwrap();
        doc.to_value(doc.root())
    }

    fn round(json: &str) -> ChatRound {
        let given = value(json);
        let part = |key: &str| given.get(key).cloned().unwrap_or(Value::Undefined);
        let options = part("options").as_object().cloned().unwrap_or_default();
        ChatRound {
            messages: part("messages"),
            prompt: part("prompt"),
            system: part("system"),
            tools: part("tools"),
            tool_choice: part("toolChoice"),
            response_format: part("responseFormat"),
            options,
            repair: part("repair"),
        }
    }

    #[test]
    fn an_answer_goes_back_into_the_talk() {
        let used = ModelTurn {
            usage: Some(Usage {
                prompt_tokens: 11,
                completion_tokens: 1,
                ..Usage::default()
            }),
            ..ModelTurn::tool("c1", "weather", value(r#"{"town":"Oslo"}"#))
        };
        let turns = vec![used, ModelTurn::text("Rain.")];
        let model = ScriptedAi::new(ModelScript { turns });
        let asked = round(
            r#"{"prompt":"Weather?","tools":[{"name":"weather","description":"Weather.","inputSchema":{"type":"object"}}],"toolChoice":"required","options":{"maxTokens":50,"role":"fast"}}"#,
        );
        let first = block_on(asked.ask(&model, None)).unwrap();
        assert_eq!(
            first.to_json_string(),
            r#"{"text":"","toolCalls":[{"id":"c1","name":"weather","input":{"town":"Oslo"}}],"stopReason":"tool_use","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"town\":\"Oslo\"}"}}]},"usage":{"inputTokens":11,"outputTokens":1}}"#
        );
        let message = first.get("message").unwrap().to_json_string();
        let again = round(&format!(
            r#"{{"messages":[{{"role":"user","content":"Weather?"}},{message},{{"role":"tool","tool_call_id":"c1","content":"gone","isError":true}}]}}"#
        ));
        let second = block_on(again.ask(&model, None)).unwrap();
        assert_eq!(second.get("text").and_then(Value::as_str), Some("Rain."));
        let asked = model.requests();
        assert_eq!(asked[0].tool_choice, ToolChoice::Required);
        assert_eq!(
            (asked[0].max_tokens, asked[0].role.as_deref()),
            (Some(50), Some("fast"))
        );
        assert!(matches!(&asked[1].messages[2].content[0],
            Part::ToolResult { id, is_error: true, .. } if id == "c1"));
    }

    #[test]
    fn d6_answers_beside_tools_are_held_to_their_form() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}"#;
        let tools = r#"[{"name":"weather","inputSchema":{"type":"object"}}]"#;
        let ask = |repair: &str, turns: Vec<ModelTurn>| {
            let model = ScriptedAi::new(ModelScript { turns });
            let asked = round(&format!(
                r#"{{"prompt":"Count.","tools":{tools},"responseFormat":{schema}{repair}}}"#
            ));
            (block_on(asked.ask(&model, None)), model.requests())
        };
        let text = |texts: &[&str]| texts.iter().map(|text| ModelTurn::text(*text)).collect();
        let said = |answer: Result<Value, CapabilityError>| {
            answer.unwrap().get("text").unwrap().to_json_string()
        };
        // The text is repaired; the repair request offers the tools again.
        let (answer, requests) = ask("", text(&["One.", r#"{"n":1}"#]));
        assert_eq!((said(answer), requests.len()), (r#""{\"n\":1}""#.into(), 2));
        assert_eq!(requests[1].tools, requests[0].tools);
        let (answer, requests) = ask("", text(&["One."; 5]));
        assert_eq!(answer.unwrap_err().code.unwrap().as_str(), "ai.form");
        assert_eq!(requests.len(), 3);
        let cut = ModelTurn {
            stop: Some(StopReason::MaxTokens),
            ..ModelTurn::text(r#"{"n":"#)
        };
        let (answer, _) = ask("", vec![cut]);
        assert_eq!(answer.unwrap_err().code.unwrap().as_str(), "ai.length");
        // Answers with tool calls are not checked, even in reply to a repair request.
        let used = || ModelTurn::tool("c1", "weather", value("{}"));
        for turns in [vec![used()], vec![ModelTurn::text("One."), used()]] {
            let (answer, _) = ask("", turns);
            let calls = answer.unwrap().get("toolCalls").cloned().unwrap();
            assert_eq!(calls.as_array().map(<[Value]>::len), Some(1));
        }
        let (answer, requests) = ask(r#","repair":false"#, text(&["One."]));
        assert_eq!((said(answer), requests.len()), (r#""One.""#.into(), 1));
        let (answer, requests) = ask(r#","repair":"no""#, text(&["One."]));
        assert!(answer.is_err() && requests.is_empty());
    }

    #[test]
    fn choices_and_formats_are_read() {
        let choice = |json: &str| round(json).request().unwrap().tool_choice;
        for (given, wanted) in [
            (r#""auto""#, ToolChoice::Auto),
            (r#""none""#, ToolChoice::None),
            (r#""any""#, ToolChoice::Required),
            (r#""weather""#, ToolChoice::Tool("weather".into())),
            (
                r#"{"type":"function","function":{"name":"weather"}}"#,
                ToolChoice::Tool("weather".into()),
            ),
        ] {
            let json = format!(r#"{{"prompt":"x","toolChoice":{given}}}"#);
            assert_eq!(choice(&json), wanted, "{given}");
        }
        let schema = r#"{"type":"object","properties":{"n":{"type":"number"}}}"#;
        let asked = round(&format!(r#"{{"prompt":"x","responseFormat":{schema}}}"#));
        let Format::Schema { name, schema: read } = asked.request().unwrap().format else {
            panic!("{asked:?}");
        };
        assert_eq!(
            (name.as_str(), read.to_json_string()),
            ("answer", schema.to_owned())
        );
    }

    #[test]
    fn what_is_no_round_is_refused() {
        for (json, error) in [
            ("{}", "Model Error: `prompt` or `messages` is needed"),
            (r#"{"prompt":1}"#, "Model Error: `prompt` must be a text"),
            (
                r#"{"messages":"hi"}"#,
                "Model Error: `messages` must be a list",
            ),
            (
                r#"{"prompt":"x","tools":{}}"#,
                "Model Error: `tools` must be a list",
            ),
            (
                r#"{"prompt":"x","toolChoice":1}"#,
                "Model Error: `toolChoice` must be a text",
            ),
            (
                r#"{"prompt":"x","options":{"maxTokens":0}}"#,
                "Model Error: `maxTokens` must be a whole number from 1 on",
            ),
            (
                r#"{"prompt":"x","options":{"topP":1.5}}"#,
                "Model Error: `topP` must be a number from 0 to 1, not 1.5",
            ),
            (
                r#"{"prompt":"x","options":{"topP":"0.5"}}"#,
                "Model Error: `topP` must be a number from 0 on",
            ),
            (
                r#"{"prompt":"x","options":{"seed":1.5}}"#,
                "Model Error: `seed` must be a whole number from 0 to 2^53 - 1",
            ),
            (
                r#"{"prompt":"x","options":{"effort":"hight"}}"#,
                "Model Error: `effort` is `hight`; did you mean `high`? known are none, minimal, low, medium, high, xhigh, max",
            ),
            (
                r#"{"prompt":"x","options":{"effort":1}}"#,
                "Model Error: `effort` must be a text",
            ),
        ] {
            assert_eq!(
                round(json).request().unwrap_err().to_string(),
                error,
                "{json}"
            );
        }
    }
}
