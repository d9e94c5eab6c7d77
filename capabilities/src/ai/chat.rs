//! One round of a talk: what `llmChat` asks.

use super::answer::ask;
use super::read::{Read, format, is_absent, list, messages, options, text, tool, wrong};
use super::{AiProvider, Message, StopReason, TextRequest, TextResult, ToolChoice, ToolUse};
use crate::Fetch;
use crate::error::CapabilityError;
use a99_core::value::{Map, Value};

/// What a program says of a round; what it leaves out is `undefined`.
#[derive(Clone, Debug)]
pub struct ChatRound {
    /// The talk so far, in the form of OpenAI's chat completions.
    pub messages: Value,
    /// A text of the user that follows it.
    pub prompt: Value,
    /// What the model is told first.
    pub system: Value,
    /// Tools that it may ask for, each `{name, description, inputSchema}` or in OpenAI's form.
    pub tools: Value,
    /// `auto`, `none`, `required`, or the name of the tool that it has to ask for.
    pub tool_choice: Value,
    /// The form of the answer: a JSON Schema, or OpenAI's `response_format`.
    pub response_format: Value,
    /// `model`, `role`, `maxTokens`, `temperature`, `seed` and `stop`.
    pub options: Map,
}

/// A choice among tools, as text or in OpenAI's form.
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
    /// The request that a provider gets.
    ///
    /// # Errors
    /// With `Model Error: ...` for what is no talk, tool, choice, format or option.
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
    /// As [`ChatRound::request`], and those of the provider; for an address that the run's
    /// network does not allow, and for a text that does not have its form. An answer that is
    /// not complete is none: its reason says so.
    pub async fn ask(
        &self,
        provider: &dyn AiProvider,
        network: Option<&dyn Fetch>,
    ) -> Result<Value, CapabilityError> {
        let request = self.request()?;
        request.check_addresses(network)?;
        if is_absent(&self.tools) {
            return Ok(answer(&ask(provider, request).await?));
        }
        // The next round of a conversation with tools may be another answer: this one is
        // neither judged nor repaired. `llmToolLoop` judges its last one.
        Ok(answer(&provider.generate_text(request).await?))
    }
}

/// A tool that the model asks for, as programs see it.
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
        ] {
            assert_eq!(
                round(json).request().unwrap_err().to_string(),
                error,
                "{json}"
            );
        }
    }
}
