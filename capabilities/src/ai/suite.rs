//! Conformance suite of [`AiProvider`]: cases of a model script and the expected result.

use super::{
    AiCode, AiProvider, Format, Image, Message, ModelFault, ModelScript, ModelTurn, Part, Role,
    StopReason, StreamEvent, TextRequest, TextResult, Tool, ToolChoice, ToolUse, Usage,
};
use crate::error::{SuiteResult, ensure};
use a99_core::value::{Map, Value};
use std::time::Duration;

/// Expected result of a case.
#[derive(Clone, Debug)]
enum Expected {
    /// The whole turn.
    Whole,
    /// One of these codes; the received part of the turn is marked as partial.
    Fails(&'static [AiCode]),
    /// The request is refused before the model is asked.
    Refused(AiCode),
    /// The stream is open until it is cancelled after this many events.
    Cancelled(usize),
}

/// One case. The model of the provider under test plays [`Case::script`], makes no retries, and
/// has the roles `fast`, `smart`, `code` and `default`.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    turn: ModelTurn,
    request: TextRequest,
    expected: Expected,
}

fn map(members: &[(&str, Value)]) -> Value {
    let mut map = Map::new();
    for (key, value) in members {
        map.insert(*key, value.clone());
    }
    Value::Object(map)
}

fn schema() -> Value {
    map(&[
        ("type", "object".into()),
        (
            "properties",
            map(&[("n", map(&[("type", "number".into())]))]),
        ),
    ])
}

fn weather() -> Tool {
    Tool {
        name: "weather".to_owned(),
        description: Some("The weather of a town.".to_owned()),
        input_schema: schema(),
    }
}

fn case(name: &str, turn: ModelTurn, expected: Expected) -> Case {
    Case {
        name: name.to_owned(),
        turn,
        request: TextRequest::new("Say something"),
        expected,
    }
}

fn pieces(text: &[&str]) -> ModelTurn {
    ModelTurn {
        text: text.iter().map(|piece| (*piece).to_owned()).collect(),
        ..ModelTurn::default()
    }
}

/// Complete answers.
fn whole() -> Vec<Case> {
    let mut cases = Vec::new();
    let long = "lorem ipsum ".repeat(10_000);
    for (name, text) in [
        ("one piece", &["Hello"][..]),
        ("two pieces", &["Hel", "lo"]),
        ("no text at all", &[]),
        ("spaces at the ends", &["  a", " ", "b  "]),
        ("lines", &["a\nb", "\n\n", "\r\nc\rd"]),
        ("quotes and backslashes", &["\"a\" \\ \\n", "{\"x\": 1}"]),
        (
            "characters beyond ASCII",
            &["über", "日本語", "🦀", "e\u{301}"],
        ),
        (
            "control characters",
            &["\u{0}\u{1}\u{7f}\u{2028}\u{2029}\u{feff}"],
        ),
        (
            "what looks like an event",
            &["data: [DONE]\n\n", "event: message_stop\ndata: {}\n\n"],
        ),
        ("a long piece", &[long.as_str()]),
    ] {
        cases.push(case(name, pieces(text), Expected::Whole));
    }
    let many: Vec<String> = (0..2_000).map(|n| format!("{n} ")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    cases.push(case("many pieces", pieces(&many), Expected::Whole));
    let thinking = ModelTurn {
        thinking: vec!["hm, ".to_owned(), "well".to_owned()],
        ..pieces(&["so"])
    };
    cases.push(case("thinking before the text", thinking, Expected::Whole));
    for (name, input) in [
        ("a tool without input", map(&[])),
        (
            "a tool with numbers",
            map(&[("n", Value::Number(-1.5e-7)), ("m", Value::Number(9e15))]),
        ),
        (
            "a tool with texts",
            map(&[("town", "Tromsø \"N\"\n🦀".into())]),
        ),
        (
            "a tool with lists in objects",
            map(&[(
                "a",
                vec![map(&[("b", Value::Null)]), Value::Bool(true)].into(),
            )]),
        ),
    ] {
        let turn = ModelTurn::tool("call_1", "weather", input);
        cases.push(case(name, turn, Expected::Whole));
    }
    let two = ModelTurn {
        tools: (0..2)
            .map(|n| ToolUse {
                id: format!("call_{n}"),
                name: "weather".to_owned(),
                input: map(&[("n", Value::Number(f64::from(n)))]),
            })
            .collect(),
        ..ModelTurn::default()
    };
    cases.push(case("two tools at once", two.clone(), Expected::Whole));
    let spoken = ModelTurn {
        text: vec!["I shall look.".to_owned()],
        thinking: vec!["Where?".to_owned()],
        ..two
    };
    cases.push(case("text before tools", spoken, Expected::Whole));
    let invented = ModelTurn::tool("call_9", "no_such_tool", map(&[]));
    cases.push(case(
        "a tool that nobody offered",
        invented,
        Expected::Whole,
    ));
    for stop in [
        StopReason::EndTurn,
        StopReason::MaxTokens,
        StopReason::StopSequence,
        StopReason::Refusal,
        StopReason::ContentFilter,
    ] {
        let turn = ModelTurn {
            stop: Some(stop.clone()),
            ..pieces(&["a"])
        };
        cases.push(case(
            &format!("it ends by {}", stop.name()),
            turn,
            Expected::Whole,
        ));
    }
    for (name, usage) in [
        (
            "usage",
            Usage {
                prompt_tokens: 12,
                completion_tokens: 34,
                ..Usage::default()
            },
        ),
        ("usage of nothing", Usage::default()),
        (
            "usage with a cache",
            Usage {
                prompt_tokens: 1_000,
                completion_tokens: 2,
                cached_tokens: 900,
                ..Usage::default()
            },
        ),
        (
            "huge usage",
            Usage {
                prompt_tokens: 1 << 50,
                completion_tokens: 1 << 50,
                ..Usage::default()
            },
        ),
    ] {
        let turn = ModelTurn {
            usage: Some(usage),
            ..pieces(&["a", "b"])
        };
        cases.push(case(name, turn, Expected::Whole));
    }
    cases
}

/// Failing answers.
fn failing() -> Vec<Case> {
    let mut cases = Vec::new();
    for (status, code) in [
        (400, &[AiCode::Refused][..]),
        (401, &[AiCode::Unauthorized]),
        (403, &[AiCode::Unauthorized]),
        (404, &[AiCode::UnknownModel]),
        (408, &[AiCode::Unavailable]),
        (413, &[AiCode::Refused]),
        (422, &[AiCode::Refused]),
        (429, &[AiCode::RateLimited]),
        (500, &[AiCode::Unavailable]),
        (502, &[AiCode::Unavailable]),
        (503, &[AiCode::Unavailable]),
        (529, &[AiCode::Unavailable]),
    ] {
        let turn = ModelTurn {
            status: Some(status),
            message: Some("a reason of its own".to_owned()),
            ..ModelTurn::default()
        };
        cases.push(case(
            &format!("status {status}"),
            turn,
            Expected::Fails(code),
        ));
    }
    let later = ModelTurn {
        status: Some(429),
        retry_after: Some(Duration::from_secs(7)),
        ..ModelTurn::default()
    };
    cases.push(case(
        "a rate limit with a time",
        later,
        Expected::Fails(&[AiCode::RateLimited]),
    ));
    for (name, fault) in [
        ("cut before the first byte", ModelFault::Cut(0)),
        ("cut within the first event", ModelFault::Cut(9)),
        ("cut after some events", ModelFault::Cut(700)),
    ] {
        let turn = ModelTurn {
            fault: Some(fault),
            ..pieces(&[
                "one ", "two ", "three ", "four ", "five ", "six ", "seven ", "eight ",
            ])
        };
        let codes = &[AiCode::CutOff, AiCode::Unreachable, AiCode::Malformed];
        cases.push(case(name, turn, Expected::Fails(codes)));
    }
    for after in [0, 1, 2] {
        let turn = ModelTurn {
            fault: Some(ModelFault::Malformed(after)),
            ..pieces(&["one", "two"])
        };
        let name = format!("what is no event after {after} pieces");
        cases.push(case(&name, turn, Expected::Fails(&[AiCode::Malformed])));
    }
    for after in [0, 1, 2] {
        let turn = ModelTurn {
            fault: Some(ModelFault::Stall(after)),
            ..pieces(&["one", "two"])
        };
        let name = format!("cancelled while it stalls after {after} pieces");
        cases.push(case(&name, turn, Expected::Cancelled(after)));
    }
    cases
}

/// Requests with every option.
fn requests() -> Vec<Case> {
    let mut cases = Vec::new();
    let base = || TextRequest::new("Say something");
    let used = || ToolUse {
        id: "call_1".to_owned(),
        name: "weather".to_owned(),
        input: map(&[("n", Value::Number(1.0))]),
    };
    let talk = |result: Part| TextRequest {
        messages: vec![
            Message::user("How is the weather?"),
            Message {
                role: Role::Assistant,
                content: vec![
                    Part::Text("I shall look.".to_owned()),
                    Part::ToolUse(used()),
                ],
            },
            Message {
                role: Role::User,
                content: vec![result],
            },
        ],
        ..base().tool(weather())
    };
    let result = |is_error| Part::ToolResult {
        id: "call_1".to_owned(),
        content: "sunny".to_owned(),
        is_error,
    };
    let image = |image: Image| {
        let mut request = base();
        request.messages[0].content.push(Part::Image(image));
        request
    };
    let schema = Format::Schema {
        name: "answer".to_owned(),
        schema: schema(),
    };
    for (name, request) in [
        ("a role", base().role("fast")),
        ("the default role", base().role(super::DEFAULT_ROLE)),
        ("a system text", base().system("Be brief.")),
        ("a tool", base().tool(weather())),
        (
            "a tool that must be called",
            TextRequest {
                tool_choice: ToolChoice::Required,
                ..base().tool(weather())
            },
        ),
        (
            "tools that must not be called",
            TextRequest {
                tool_choice: ToolChoice::None,
                ..base().tool(weather())
            },
        ),
        (
            "one tool",
            TextRequest {
                tool_choice: ToolChoice::Tool("weather".to_owned()),
                ..base().tool(weather())
            },
        ),
        ("the result of a tool", talk(result(false))),
        ("the error of a tool", talk(result(true))),
        (
            "an image of an address",
            image(Image::of_url("https://example.com/a.png")),
        ),
        (
            "an image in the request",
            image(Image::of_url("data:image/png;base64,AAAA")),
        ),
        (
            "JSON",
            TextRequest {
                format: Format::Json,
                ..base()
            },
        ),
        (
            "a schema",
            TextRequest {
                format: schema,
                ..base()
            },
        ),
        (
            "limits",
            TextRequest {
                max_tokens: Some(5),
                temperature: Some(0.5),
                seed: Some(7),
                stop_sequences: vec!["END".to_owned()],
                ..base()
            },
        ),
    ] {
        let turn = pieces(&["good"]);
        cases.push(Case {
            request,
            ..case(&format!("asked with {name}"), turn, Expected::Whole)
        });
    }
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        ..weather()
    };
    for (name, request, code) in [
        ("no message", TextRequest::default(), AiCode::Invalid),
        (
            "a bad name of a tool",
            base().tool(tool("a b")),
            AiCode::Invalid,
        ),
        (
            "two tools of one name",
            base().tool(weather()).tool(weather()),
            AiCode::Invalid,
        ),
        (
            "a choice of no tool",
            TextRequest {
                tool_choice: ToolChoice::Tool("x".to_owned()),
                ..base()
            },
            AiCode::Invalid,
        ),
        (
            "a required tool and none",
            TextRequest {
                tool_choice: ToolChoice::Required,
                ..base()
            },
            AiCode::Invalid,
        ),
        (
            "a temperature that is no number",
            TextRequest {
                temperature: Some(f64::NAN),
                ..base()
            },
            AiCode::Invalid,
        ),
        (
            "no tokens",
            TextRequest {
                max_tokens: Some(0),
                ..base()
            },
            AiCode::Invalid,
        ),
        (
            "an unknown role",
            base().role("no-such-role"),
            AiCode::UnknownRole,
        ),
    ] {
        let turn = pieces(&["never"]);
        cases.push(Case {
            request,
            ..case(&format!("refused: {name}"), turn, Expected::Refused(code))
        });
    }
    cases
}

impl Case {
    /// All cases.
    #[must_use]
    pub fn all() -> Vec<Case> {
        let mut cases = whole();
        cases.extend(failing());
        cases.extend(requests());
        cases
    }

    /// Script of the mock model: the case's turn, once for each request.
    #[must_use]
    pub fn script(&self) -> ModelScript {
        ModelScript {
            turns: vec![self.turn.clone(); 2],
        }
    }

    /// Runs the case on a provider whose model plays [`Case::script`]: with events, and whole.
    ///
    /// # Errors
    /// The first violated law.
    pub async fn run(&self, provider: &dyn AiProvider) -> SuiteResult {
        let roles = provider.list_roles().await.map_err(|e| e.to_string())?;
        ensure(
            roles.contains_key(super::DEFAULT_ROLE),
            "there is a default role",
        )?;
        self.stream(provider).await?;
        if matches!(self.expected, Expected::Cancelled(_)) {
            return Ok(());
        }
        // Without a reader of the events the answer is still complete.
        let answer = provider.generate_text(self.request.clone()).await;
        match (&self.expected, answer) {
            (Expected::Whole, Ok(result)) => self.is_whole(&result),
            (Expected::Whole, Err(error)) => Err(format!("whole: {:?} {error}", error.code)),
            (Expected::Fails(codes), Err(error)) => {
                ensure(codes.contains(&error.code), "a code that fits, whole")
            }
            (Expected::Refused(code), Err(error)) => ensure(error.code == *code, "refused, whole"),
            (_, answer) => Err(format!("no error: {answer:?}")),
        }
    }

    async fn stream(&self, provider: &dyn AiProvider) -> SuiteResult {
        let mut stream = provider.stream_text(self.request.clone());
        ensure(!stream.stream_id().is_empty(), "a stream has a name")?;
        let mut joined = TextResult::default();
        let mut last = None;
        let mut count = 0;
        loop {
            if let Expected::Cancelled(after) = self.expected
                && count >= after
            {
                break;
            }
            let Some(event) = stream.next().await else {
                break;
            };
            ensure(last.is_none(), "nothing comes after the end")?;
            if let StreamEvent::Text(piece) | StreamEvent::Thinking(piece) = &event {
                ensure(!piece.is_empty(), "a piece is not empty")?;
            }
            joined.take(&event);
            match event {
                StreamEvent::Done(_) | StreamEvent::Cancelled | StreamEvent::Error(_) => {
                    last = Some(event);
                }
                _ => count += 1,
            }
        }
        if let Expected::Cancelled(_) = self.expected {
            let before = joined.text.clone();
            stream.cancel();
            stream.cancel();
            let result = stream.done().await.map_err(|e| e.to_string())?;
            ensure(result.cancelled, "what is cancelled says so")?;
            ensure(result.stop_reason.is_none(), "and did not end")?;
            ensure(result.text.starts_with(&before), "and keeps what came")?;
            let event = stream.next().await;
            ensure(
                event == Some(StreamEvent::Cancelled),
                "its last event says so",
            )?;
            return ensure(stream.next().await.is_none(), "and nothing comes after it");
        }
        ensure(stream.next().await.is_none(), "the end stays the end")?;
        let done = stream.done().await;
        ensure(stream.done().await == done, "the answer is the same twice")?;
        match (&self.expected, done, last) {
            (Expected::Whole, Ok(result), Some(StreamEvent::Done(_))) => {
                self.is_whole(&result)?;
                joined.model.clone_from(&result.model);
                ensure(joined == result, "the events make the answer")
            }
            (Expected::Fails(codes), Err(error), Some(StreamEvent::Error(told))) => {
                if !codes.contains(&error.code) {
                    return Err(format!("{:?} is not one of {codes:?}: {error}", error.code));
                }
                ensure(told.code == error.code, "the event has the code")?;
                ensure(!error.message.is_empty(), "an error has a text")?;
                if let Some(after) = self.turn.retry_after {
                    ensure(error.retry_after == Some(after), "the time to wait is told")?;
                }
                let said = self.turn.text.concat();
                let partial = error.partial.unwrap_or_default();
                ensure(
                    said.starts_with(&partial.text),
                    "what came is the beginning",
                )?;
                ensure(partial.stop_reason.is_none(), "what came is not whole")
            }
            (Expected::Refused(code), Err(error), Some(StreamEvent::Error(_))) => {
                if error.code != *code {
                    return Err(format!("{:?} is not {code:?}: {error}", error.code));
                }
                ensure(error.partial.is_none(), "nothing came")
            }
            (_, done, last) => Err(format!("ended by {last:?} with {done:?}")),
        }
    }

    fn is_whole(&self, result: &TextResult) -> SuiteResult {
        let turn = &self.turn;
        ensure(result.text == turn.text.concat(), "the text is whole")?;
        ensure(
            result.thinking == turn.thinking.concat(),
            "the thinking is whole",
        )?;
        if result.tool_uses != turn.tools {
            return Err(format!("tools: {:?}", result.tool_uses));
        }
        if result.stop_reason != Some(turn.stop_reason()) {
            return Err(format!("stop reason: {:?}", result.stop_reason));
        }
        if let Some(usage) = turn.usage
            && result.usage != usage
        {
            return Err(format!("usage: {:?}", result.usage));
        }
        ensure(!result.cancelled, "nobody cancelled it")
    }
}
