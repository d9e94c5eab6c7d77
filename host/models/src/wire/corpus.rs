//! Known answers of public services: each case of `tests/corpus/answers.jsonl` is read
//! whole, byte by byte, and cut at each of its events.
//!
//! The cases are written here, by forms that services document or that public reports show
//! (read in November 2026):
//!
//! | group | source |
//! |---|---|
//! | openai | OpenAI's reference of chat completions and of their chunks |
//! | openai-responses | OpenAI's reference of responses and of their streaming events; for ignored events, its list of 2026 |
//! | azure | langchain#18977 and autogen#6465 (a chunk without `delta`), mentat#429 (no choices first), langchain4j#2385 |
//! | anthropic, cache and citations | Anthropic's reference of messages, types of its SDK; adk-python#5394 for reasons of the end |
//! | openrouter, openrouter-anthropic | OpenRouter's pages on streaming and errors; rig#2236 (the prompt counted at the end) |
//! | gemini | Google's reference of `generateContent`, `FinishReason` |
//! | mistral | spring-ai#5020, prism#862 and braintrust-sdk-javascript#1857 (thinking among the content) |
//! | groq | Groq's reference, vercel/ai#1651 (usage under `x_groq`), litellm#19849 (`reasoning`) |
//! | deepseek | DeepSeek's guide of its reasoning model and reference of finish reasons |
//! | xai | litellm#17136 and langchain(elixir)#626 (usage before the last chunk); reports of reasoning counted outside of the answer |
//! | ollama | ollama#7881 (no index) and #15457 (all calls with index 0) |
//! | vllm, sglang | litellm#24019 and #22573 (`reasoning`), vllm#40816 |
//!
//! The other groups (`lmstudio` to `bedrock-gateway`, `proxies`, and Anthropic's wire of other
//! services) have the forms of these with what their users reported; no reference was found
//! that lists them.

use super::{Value, Wire, parse};
use crate::fuzz::{answer, whole};
use a99_capabilities::ai::{AiError, Place, TextResult};

const CORPUS: &str = include_str!("../../tests/corpus/answers.jsonl");

struct Case {
    name: String,
    wire: Wire,
    value: Value,
}

fn cases() -> impl Iterator<Item = Case> {
    CORPUS.lines().map(|line| {
        let value = parse(line).unwrap();
        let text = |key: &str| value.get(key).unwrap().as_str().unwrap().to_owned();
        let wire = text("wire");
        Case {
            name: format!("{}: {}", text("service"), text("form")),
            wire: *Wire::ALL.iter().find(|own| own.name() == wire).unwrap(),
            value,
        }
    })
}

impl Case {
    fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key).and_then(Value::as_str)
    }

    /// Compares an answer with the expected one, and gives the difference.
    fn judge(&self, read: &Result<TextResult, AiError>) -> Result<(), String> {
        let result = match (read, self.text("error")) {
            (Err(error), Some(code)) if error.code.name() == code => return Ok(()),
            (Err(error), expected) => {
                return Err(format!("{:?} {error}, expected {expected:?}", error.code));
            }
            (Ok(result), Some(code)) => return Err(format!("{result:?}, expected {code}")),
            (Ok(result), None) => result,
        };
        let mut found = vec![
            ("text", result.text.as_str().into()),
            ("thinking", result.thinking.as_str().into()),
        ];
        let calls = result
            .tool_uses
            .iter()
            .map(|used| Value::Array(vec![used.name.as_str().into(), used.input.clone()]));
        found.push(("calls", Value::Array(calls.collect())));
        let stop = result
            .stop_reason
            .as_ref()
            .map_or("", |reason| reason.name());
        found.push(("stop", stop.into()));
        if self.value.get("usage").is_some() {
            let counts = [result.usage.prompt_tokens, result.usage.completion_tokens];
            let counts = counts.map(|n| Value::Number(n as f64));
            found.push(("usage", counts.to_vec().into()));
        }
        if self.value.get("back").is_some() {
            let back = result
                .opaque
                .iter()
                .find(|part| part.place == Place::Message);
            let back = back.map_or(Value::Undefined, |part| part.value.clone());
            found.push(("back", back));
        }
        for (key, found) in found {
            let (found, expected) = (found.to_json_string(), self.value.get(key).unwrap());
            if found != expected.to_json_string() {
                return Err(format!(
                    "{key}: {found}, expected {}",
                    expected.to_json_string()
                ));
            }
        }
        let mut ids: Vec<&str> = result.tool_uses.iter().map(|used| &*used.id).collect();
        ids.sort_unstable();
        ids.dedup();
        match ids.len() == result.tool_uses.len() {
            true => Ok(()),
            false => Err("two calls have one id".to_owned()),
        }
    }
}

impl Case {
    /// The part that a cut answer lacks although it was reported as complete.
    fn half(&self, cut: &TextResult) -> Option<String> {
        let expected = self.value.get("calls").and_then(Value::as_array);
        let is_whole = self.text("text") == Some(&*cut.text)
            && expected.map(<[Value]>::len) == Some(cut.tool_uses.len());
        (self.text("error").is_none() && !is_whole).then(|| format!("half an answer: {cut:?}"))
    }
}

#[test]
fn d14_answers_of_public_services_are_read() {
    let mut failed = Vec::new();
    let mut count = 0;
    for case in cases() {
        count += 1;
        let mut judge = |how: String, read: Result<TextResult, AiError>| {
            if let Err(why) = case.judge(&read) {
                failed.push(format!("{} ({how}): {why}", case.name));
            }
        };
        let Some(stream) = case.text("stream") else {
            let body = case.value.get("body").unwrap().to_json_string();
            judge("whole".to_owned(), whole(case.wire, body.as_bytes()));
            continue;
        };
        judge(
            "one piece".to_owned(),
            answer(case.wire, &[stream.as_bytes()]),
        );
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        judge("byte by byte".to_owned(), answer(case.wire, &bytes));
        // At the borders of events, an answer is the whole one, or none.
        let (mut at, mut halves) = (0, Vec::new());
        while let Some(end) = stream[at..].find("\n\n") {
            at += end + 2;
            let (a, b) = stream.as_bytes().split_at(at);
            judge(format!("cut at {at}"), answer(case.wire, &[a, b]));
            if let Ok(cut) = answer(case.wire, &[a]) {
                halves.extend(case.half(&cut).map(|why| format!("cut at {at}: {why}")));
            }
        }
        failed.extend(
            halves
                .into_iter()
                .map(|why| format!("{} ({why})", case.name)),
        );
    }
    assert!(count >= 200, "{count}");
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
