//! Gemini's wire format: `generateContent`, and `streamGenerateContent` for events.

use super::json::{count, index, items, map, objects, text, text_of};
use super::pieces::{CallIds, Piece, Pieces};
use super::sampling::Sampling;
use super::usage::Counters;
use super::{
    Ask, Decoder, Protocol, Step, Turn, Woven, error_in, malformed, merge, stop_reason, texts_of,
    told, turns,
};
use crate::sse::Event;
use a99_capabilities::ai::{
    AiError, Effort, Format, Image, Message, Opaque, Part, Place, Role, StopReason, StreamEvent,
    ToolChoice, ToolUse, Usage,
};
use a99_core::value::{Map, Value};

const SAMPLING: Sampling = Sampling {
    temperature: ("temperature", 2.0),
    top_p: "topP",
    seed: Some(("seed", i32::MAX as u64)),
    stop: Some("stopSequences"),
    efforts: &[
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
    ],
    audio: true,
};

pub(super) struct Gemini;

impl Protocol for Gemini {
    fn path(&self) -> &'static str {
        "/models"
    }

    fn version(&self) -> &'static str {
        "/v1beta"
    }

    fn address(&self, base: &str, model: &str, stream: bool) -> String {
        let named = ["models/", "tunedModels/"]
            .iter()
            .find(|kind| model.starts_with(**kind));
        let (kind, name) = model.split_at(named.map_or(0, |kind| kind.len()));
        let kind = if kind.is_empty() { "models/" } else { kind };
        let method = match stream {
            true => "streamGenerateContent?alt=sse",
            false => "generateContent",
        };
        format!("{base}/{kind}{}:{method}", super::path_segment(name))
    }

    fn key_header(&self) -> &'static str {
        "x-goog-api-key"
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn sampling(&self) -> &'static Sampling {
        &SAMPLING
    }

    fn body(&self, ask: &Ask<'_>) -> Map {
        let request = ask.request;
        let mut body = Map::new();
        let turns = turns(&request.messages);
        let contents = turns.iter().filter_map(|turn| content(ask, turn));
        body.insert("contents", contents.collect::<Vec<Value>>());
        if let Some(system) = &request.system {
            let part = map([("text", system.as_str().into())]);
            body.insert("systemInstruction", map([("parts", vec![part].into())]));
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                let mut entry = Map::new();
                entry.insert("name", tool.name.as_str());
                if let Some(description) = &tool.description {
                    entry.insert("description", description.as_str());
                }
                entry.insert("parametersJsonSchema", tool.input_schema.clone());
                entry.into()
            });
            let tools = tools.collect::<Vec<Value>>();
            let tools = map([("functionDeclarations", tools.into())]);
            body.insert("tools", vec![tools]);
            let mut choice = Map::new();
            match &request.tool_choice {
                ToolChoice::Auto => {}
                ToolChoice::None => drop(choice.insert("mode", "NONE")),
                ToolChoice::Required => drop(choice.insert("mode", "ANY")),
                ToolChoice::Tool(name) => {
                    choice.insert("mode", "ANY");
                    choice.insert("allowedFunctionNames", vec![Value::from(name.as_str())]);
                }
            }
            if !choice.is_empty() {
                body.insert(
                    "toolConfig",
                    map([("functionCallingConfig", choice.into())]),
                );
            }
        }
        let config = config(ask);
        if !config.is_empty() {
            body.insert("generationConfig", config);
        }
        body
    }

    fn decoder(&self, ids: CallIds) -> Box<dyn Decoder> {
        Box::new(Chunks::new(ids))
    }

    fn whole(&self, answer: &Value, ids: CallIds) -> Result<Vec<Step>, AiError> {
        let mut out = Vec::new();
        let mut chunks = Chunks::new(ids);
        // Without `alt=sse`, a stream is a list of its chunks.
        let parts = answer.as_array().unwrap_or(std::slice::from_ref(answer));
        for part in parts {
            chunks.chunk(part, &mut out)?;
        }
        let has = |key: &str| parts.iter().any(|part| part.get(key).is_some());
        if !has("candidates") && !has("promptFeedback") {
            return Err(malformed("it has no `candidates`"));
        }
        out.extend(chunks.end());
        out.push(Step::End);
        Ok(out)
    }
}

/// The thinking configuration for an effort. Models before Gemini 3 take a number of tokens;
/// these are the numbers of the service's OpenAI-compatible interface.
fn thinking(model: &str, effort: Effort) -> Value {
    let name = model.rsplit('/').next().unwrap_or(model);
    match name.starts_with("gemini-2") || effort == Effort::None {
        true => map([("thinkingBudget", f64::from(effort.tokens()).into())]),
        false => map([("thinkingLevel", effort.name().into())]),
    }
}

/// The generation configuration.
fn config(ask: &Ask<'_>) -> Map {
    let request = ask.request;
    let mut config = Map::new();
    if let Some(most) = request.max_tokens.or(ask.max_tokens) {
        config.insert("maxOutputTokens", f64::from(most));
    }
    SAMPLING.write(request, &mut config);
    if let Some(effort) = request.effort {
        config.insert("thinkingConfig", thinking(ask.model, effort));
    }
    if request.format != Format::Text {
        config.insert("responseMimeType", "application/json");
    }
    if let Format::Schema { schema, .. } = &request.format {
        config.insert("responseJsonSchema", schema.clone());
    }
    config
}

/// The content of a turn; `None` if it is empty.
fn content(ask: &Ask<'_>, turn: &Turn<'_>) -> Option<Value> {
    let mut parts = Vec::new();
    let role = match turn.role {
        Role::User => {
            parts.extend(turn.results.iter().filter_map(|part| result(ask, part)));
            let said = turn.messages.iter().flat_map(|message| &message.content);
            parts.extend(said.filter_map(part));
            "user"
        }
        Role::Assistant => {
            for message in &turn.messages {
                model_parts(ask, message, &mut parts);
            }
            "model"
        }
    };
    (!parts.is_empty()).then(|| map([("role", role.into()), ("parts", parts.into())]))
}

fn text_part(text: &str) -> Value {
    map([("text", text.into())])
}

fn part(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) if text.is_empty() => return None,
        Part::Text(text) => text_part(text),
        Part::Image(Image::Url(url)) => {
            map([("fileData", map([("fileUri", url.as_str().into())]))])
        }
        Part::Image(Image::Base64 { media_type, data }) => {
            let data = map([
                ("mimeType", media_type.as_str().into()),
                ("data", data.as_str().into()),
            ]);
            map([("inlineData", data)])
        }
        _ => return None,
    })
}

/// The result of a tool. The wire format requires the tool's name, which the call has.
fn result(ask: &Ask<'_>, part: &Part) -> Option<Value> {
    let Part::ToolResult {
        id,
        content,
        is_error,
    } = part
    else {
        return None;
    };
    let called = ask.request.messages.iter().rev().find_map(|message| {
        let used = message.content.iter().find_map(|part| match part {
            Part::ToolUse(used) if used.id == *id => Some(used),
            _ => None,
        })?;
        Some((message, used))
    });
    let key = match is_error {
        true => "error",
        false => "result",
    };
    let mut response = Map::new();
    if let Some((message, used)) = called {
        response.insert("name", used.name.as_str());
        if let Some(id) = own_id(ask, message, used) {
            response.insert("id", id);
        }
    }
    response.insert("response", map([(key, content.as_str().into())]));
    Some(map([("functionResponse", response.into())]))
}

/// The id that the service gave to a call.
fn own_id(ask: &Ask<'_>, message: &Message, used: &ToolUse) -> Option<Value> {
    let place = Place::Call(used.id.clone());
    let members = ask.opaque_members(message, &place);
    let call = members.iter().find(|(key, _)| **key == "functionCall");
    call.and_then(|(_, call)| call.get("id")).cloned()
}

/// The placeholder signature of a call without one: from another service, or written by the
/// program. Gemini 3 refuses a message whose first call has no signature
/// (`https://ai.google.dev/gemini-api/docs/thought-signatures`).
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Whether a model requires signatures, by its name: models from Gemini 3 on, and the aliases
/// of the newest.
fn wants_signatures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.strip_prefix("gemini-").is_some_and(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        match digits.and_then(|digits| digits.parse::<u32>().ok()) {
            Some(number) => number >= 3,
            None => rest.ends_with("-latest"),
        }
    })
}

/// The parts of an assistant message, with signatures.
fn model_parts(ask: &Ask<'_>, message: &Message, out: &mut Vec<Value>) {
    let mut unsigned = wants_signatures(ask.model).then_some(UNSIGNED);
    let texts = texts_of(message);
    for part in ask.woven(message, &texts) {
        out.push(match part {
            Woven::Text(text) => text_part(text),
            Woven::Opaque(part) => part.clone(),
            Woven::Call(used) => {
                let mut call = Map::new();
                call.insert("name", used.name.as_str());
                // The wire format accepts objects only.
                let args = match &used.input {
                    input @ Value::Object(_) => input.clone(),
                    other => map([("input", other.clone())]),
                };
                call.insert("args", args);
                let mut part = Map::new();
                part.insert("functionCall", call);
                let place = Place::Call(used.id.clone());
                merge(&mut part, ask.opaque_members(message, &place));
                // Of parallel calls, only the first is signed.
                if let Some(unsigned) = unsigned.take()
                    && !part.contains("thoughtSignature")
                {
                    part.insert("thoughtSignature", unsigned);
                }
                part.into()
            }
        });
    }
}

/// Reads the chunks of an answer, each of which has the form of a whole one.
#[derive(Debug, Default)]
struct Chunks {
    tools: Pieces,
    calls: u64,
    /// Bytes of text so far.
    said: usize,
    /// The last stop reason.
    stop: Option<StopReason>,
}

impl Decoder for Chunks {
    fn event(&mut self, event: &Event) -> Result<Vec<Step>, AiError> {
        let mut out = Vec::new();
        for chunk in objects(&event.data)? {
            self.chunk(&chunk, &mut out)?;
        }
        Ok(out)
    }

    /// Calls may follow a stop reason that did not mention them.
    fn end(&mut self) -> Vec<Step> {
        let mut out = Vec::new();
        if let Some(stop) = self.stop.take() {
            self.stop_for(stop, &mut out);
        }
        out
    }
}

impl Chunks {
    fn new(ids: CallIds) -> Chunks {
        Chunks {
            tools: Pieces::new(ids),
            ..Chunks::default()
        }
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        if error_in(chunk).is_some() {
            return Err(told(chunk, None));
        }
        let candidates = items(chunk, "candidates")?;
        let first = candidates.iter().find(|one| index(one).unwrap_or(0) == 0);
        if let Some(candidate) = first {
            self.candidate(candidate, out)?;
        }
        // A blocked prompt has no candidate.
        let blocked = chunk
            .get("promptFeedback")
            .and_then(|of| of.get("blockReason"));
        let is_blocked = blocked.and_then(Value::as_text).is_some();
        if self.stop.is_none() && first.is_none() && is_blocked {
            self.stop_for(StopReason::ContentFilter, out);
        }
        if let Some(usage) = chunk.get("usageMetadata").and_then(usage_of) {
            out.push(Step::Event(StreamEvent::Usage(usage)));
        }
        Ok(())
    }

    fn candidate(&mut self, candidate: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        let content = candidate.get("content").unwrap_or(&Value::Undefined);
        for part in items(content, "parts")? {
            self.part(part, out)?;
        }
        let reason = text(candidate, "finishReason")?;
        if reason.is_empty() {
            return Ok(());
        }
        self.stop_for(stop_reason(&reason), out);
        Ok(())
    }

    fn stop_for(&mut self, reason: StopReason, out: &mut Vec<Step>) {
        let reason = match reason {
            StopReason::EndTurn if self.tools.any() => StopReason::ToolUse,
            other => other,
        };
        self.stop = Some(reason.clone());
        out.push(Step::Stop(reason));
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Step>) -> Result<(), AiError> {
        let signature = part
            .get("thoughtSignature")
            .filter(|value| !value.is_nullish());
        let place = Place::Content {
            text: self.said,
            calls: self.tools.len(),
        };
        if let Some(call) = part.get("functionCall").filter(|call| !call.is_nullish()) {
            return self.call(call, signature, out);
        }
        let Some(words) = part.get("text").and_then(text_of) else {
            // Code that ran at the service, and its output.
            if part.as_object().is_some_and(|part| !part.is_empty()) {
                Step::opaque(out, Opaque::new(place, part.clone()));
            }
            return Ok(());
        };
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            Step::thinking(out, words);
            return Ok(());
        }
        self.said += words.len();
        Step::text(out, words);
        if let Some(signature) = signature {
            let place = Place::Content {
                text: self.said,
                calls: self.tools.len(),
            };
            let part = [("text", "".into()), ("thoughtSignature", signature.clone())];
            Step::opaque(out, Opaque::new(place, map(part)));
        }
        Ok(())
    }

    /// A call, which arrives whole.
    fn call(
        &mut self,
        call: &Value,
        signature: Option<&Value>,
        out: &mut Vec<Step>,
    ) -> Result<(), AiError> {
        let id = text(call, "id")?;
        let mut opaque = Map::new();
        if !id.is_empty() {
            opaque.insert("functionCall", map([("id", id.as_str().into())]));
        }
        if let Some(signature) = signature {
            opaque.insert("thoughtSignature", signature.clone());
        }
        let args = call.get("args").filter(|args| !args.is_nullish());
        self.tools.begin(Piece {
            index: Some(self.calls),
            id,
            name: text(call, "name")?,
            given: args.cloned(),
            opaque,
            ..Piece::default()
        })?;
        self.tools.close(self.calls, out);
        self.calls += 1;
        Ok(())
    }
}

/// Usage; `None` without any valid number.
fn usage_of(usage: &Value) -> Option<Usage> {
    let count = |key: &str| count(usage, key);
    let sum = |parts: [Option<u64>; 2]| {
        let known = parts.into_iter().flatten();
        known.reduce(u64::saturating_add)
    };
    let (prompt, said) = (count("promptTokenCount"), count("candidatesTokenCount"));
    prompt.or(said)?;
    let thought = count("thoughtsTokenCount");
    let counters = Counters {
        prompt: sum([prompt, count("toolUsePromptTokenCount")]),
        completion: sum([said, thought]),
        total: count("totalTokenCount"),
        cached: count("cachedContentTokenCount"),
        reasoning: thought,
    };
    counters.usage()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plain, round, value};
    use super::*;
    use crate::fuzz::whole;
    use crate::wire::Wire;

    fn sent(model: &str, service: &str, talk: Vec<Value>) -> Value {
        let request = round(Value::Array(talk));
        let body = Gemini.body(&plain(&request, model, service));
        body.get("contents").cloned().unwrap()
    }

    #[test]
    fn t6_calls_without_a_signature_have_the_one_that_is_not_checked() {
        let signatures = |contents: &Value| {
            let parts = contents.pointer("/1/parts").and_then(Value::as_array);
            let parts = parts.unwrap_or_default().iter();
            let signed = parts.map(|part| part.get("thoughtSignature").and_then(Value::as_str));
            signed
                .map(|text| text.unwrap_or("-").to_owned())
                .collect::<Vec<_>>()
        };
        let talk = |message: Value| {
            vec![
                value(r#"{"role":"user","content":"Go"}"#),
                message,
                value(r#"{"role":"tool","tool_call_id":"a","content":"1"}"#),
            ]
        };
        let own = r#"{"role":"assistant","content":"So","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
        for (model, first) in [
            ("gemini-3-pro-preview", UNSIGNED),
            ("models/gemini-3.1-flash-lite", UNSIGNED),
            ("gemini-10", UNSIGNED),
            ("gemini-flash-latest", UNSIGNED),
            ("gemini-2.5-flash", "-"),
            ("gemini-exp", "-"),
            ("gemma-3-27b-it", "-"),
        ] {
            let contents = sent(model, "s", talk(value(own)));
            assert_eq!(signatures(&contents), ["-", first, "-"], "{model}");
        }
        // A signature of the service itself stays, and is not another service's.
        let answer = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"EqQ="},{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}"#;
        let mut result = whole(Wire::Gemini, answer.as_bytes()).unwrap();
        result.model = Some("s/gemini-3-pro-preview".to_owned());
        for (service, first) in [("s", "EqQ="), ("t", UNSIGNED)] {
            let message = talk(result.to_message());
            let contents = sent("gemini-3-pro-preview", service, message);
            assert_eq!(signatures(&contents), [first, "-"], "{service}");
        }
    }
}
