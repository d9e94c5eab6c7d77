mod forms;

use super::super::testing::{answer_of, plain, round, value};
use super::super::{Ask, Protocol, Step};
use super::OpenAi;
use crate::fuzz::whole;
use crate::wire::Wire;
use a99_capabilities::ai::{
    AiCode, Format, Image, Message, Part, Role, StopReason, TextRequest, TextResult, Tool,
    ToolChoice, ToolUse, Usage,
};
use a99_core::value::Value;
use forms::chunk;

/// The answer of these events.
fn read(events: &[&str]) -> Result<TextResult, AiCode> {
    answer_of(Wire::OpenAi, events)
}

fn ask(request: &TextRequest, stream: bool) -> String {
    let body = OpenAi.body(&Ask {
        stream,
        ..plain(request, "m", "s")
    });
    Value::Object(body).to_json_string()
}

const END: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn requests_have_all_that_was_asked() {
    let used = ToolUse {
        id: "c1".to_owned(),
        name: "add".to_owned(),
        input: value(r#"{"a":1}"#),
    };
    let tool = Tool {
        name: "add".to_owned(),
        description: Some("Adds.".to_owned()),
        input_schema: value(r#"{"type":"object"}"#),
    };
    let result = |is_error| Part::ToolResult {
        id: "c1".to_owned(),
        content: "2".to_owned(),
        is_error,
    };
    let request = TextRequest {
        system: Some("Be brief.".to_owned()),
        messages: vec![
            Message {
                role: Role::User,
                content: vec![
                    Part::Text("See".to_owned()),
                    Part::Image(Image::of_url("data:image/png;base64,AAAA")),
                ],
            },
            Message {
                role: Role::Assistant,
                content: vec![Part::ToolUse(used)],
            },
            Message {
                role: Role::User,
                content: vec![result(true), Part::Text("Well?".to_owned())],
            },
        ],
        max_tokens: Some(5),
        temperature: Some(0.5),
        seed: Some(7),
        stop_sequences: vec!["END".to_owned()],
        tool_choice: ToolChoice::Tool("add".to_owned()),
        ..TextRequest::default()
    }
    .tool(tool);
    assert_eq!(
        ask(&request, true),
        r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":"Error: 2"},{"role":"user","content":"Well?"}],"max_tokens":5,"temperature":0.5,"seed":7,"stop":["END"],"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"add"}},"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[test]
fn schemas_are_strict_where_they_can_be() {
    for (schema, strict) in [
        (
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
            false,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#,
            true,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}"#,
            false,
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"],"additionalProperties":false}"#,
            false,
        ),
        (r#"{"type":"object","additionalProperties":false}"#, true),
    ] {
        let request = TextRequest {
            format: Format::Schema {
                name: "n".to_owned(),
                schema: value(schema),
            },
            ..TextRequest::new("x")
        };
        let body = value(&ask(&request, false));
        let inner = body.pointer("/response_format/json_schema").unwrap();
        assert_eq!(inner.get("strict").is_some(), strict, "{schema}");
        assert_eq!(inner.get("schema"), Some(&value(schema)));
        assert!(body.get("stream").is_none());
    }
}

#[test]
fn tools_are_read_as_services_number_them() {
    let call = |call: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let end = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
    let tables: [&[&str]; 6] = [
        // As OpenAI has it.
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\""}}"#,
            r#"{"index":0,"function":{"arguments":":1}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
        ],
        // Pieces of both in turns.
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":":1}"}}"#,
            r#"{"index":1,"function":{"arguments":"}"}}"#,
        ],
        // All at place 0.
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"}"}}"#,
        ],
        // Without places.
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"id":"b","function":{"name":"g","arguments":"{}"}}"#,
        ],
        // Arguments that are no text.
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":null}}"#,
        ],
        // The id with every piece.
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#,
            r#"{"index":0,"id":"a","function":{"arguments":":1}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":" "}}"#,
        ],
    ];
    for calls in tables {
        let mut events: Vec<String> = calls.iter().map(|one| call(one)).collect();
        events.push(end.to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let result = read(&events).unwrap();
        let found: Vec<String> = result
            .tool_uses
            .iter()
            .map(|used| format!("{} {} {}", used.id, used.name, used.input.to_json_string()))
            .collect();
        assert_eq!(found, [r#"a f {"x":1}"#, "b g {}"], "{calls:?}");
        assert_eq!(result.stop_reason, Some(StopReason::ToolUse));
    }
    // Some services say `stop` anyway; arguments that are not JSON stay a text.
    let bad = call(r#"{"index":0,"function":{"name":"f","arguments":"{oops"}}"#);
    let result = read(&[&bad, END]).unwrap();
    assert_eq!(result.stop_reason, Some(StopReason::ToolUse));
    assert_eq!(result.tool_uses[0].input.as_str(), Some("{oops"));
    assert_eq!(result.tool_uses[0].id, "call_1");
}

#[test]
fn events_are_read_as_services_send_them() {
    let text = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    for (delta, said, thought) in [
        (r#"{"content":"a"}"#, "a", ""),
        (r#"{"content":null,"reasoning_content":"b"}"#, "", "b"),
        (r#"{"content":"","reasoning":"b"}"#, "", "b"),
        (
            r#"{"content":"a","reasoning_content":null,"reasoning":"b"}"#,
            "a",
            "b",
        ),
        (
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            "ab",
            "",
        ),
        (r#"{"role":"assistant"}"#, "", ""),
        ("null", "", ""),
        (r#"{"content":"\ud83d"}"#, "\u{fffd}", ""),
    ] {
        let result = read(&[&text(delta), END]).unwrap();
        assert_eq!(
            (&*result.text, &*result.thinking),
            (said, thought),
            "{delta}"
        );
    }
    // Other choices are ignored; content after an early end is not.
    let other = r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#;
    assert_eq!(
        read(&[
            other,
            &text(r#"{"content":"a"}"#),
            END,
            &text(r#"{"content":"c"}"#)
        ])
        .unwrap()
        .text,
        "ac"
    );
    for (reason, extra, expected) in [
        ("stop", "", StopReason::EndTurn),
        ("stop", r#","stop_reason":"END""#, StopReason::StopSequence),
        ("stop", r#","stop_reason":null"#, StopReason::EndTurn),
        ("stop", r#","stop_reason":151645"#, StopReason::EndTurn),
        ("length", "", StopReason::MaxTokens),
        ("content_filter", "", StopReason::ContentFilter),
        ("eos", "", StopReason::EndTurn),
        ("MAX_TOKENS", "", StopReason::MaxTokens),
        ("SAFETY", "", StopReason::ContentFilter),
        ("refusal", "", StopReason::Refusal),
        (
            "insufficient",
            "",
            StopReason::Other("insufficient".to_owned()),
        ),
    ] {
        let end = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"{extra}}}]}}"#);
        assert_eq!(read(&[&end]).unwrap().stop_reason, Some(expected), "{end}");
    }
    let refused = read(&[&text(r#"{"refusal":"No."}"#), END]).unwrap();
    assert_eq!(
        (&*refused.text, refused.stop_reason),
        ("No.", Some(StopReason::Refusal))
    );
}

#[test]
fn usage_is_taken_as_far_as_it_is_any() {
    for (usage, expected) in [
        (r#"{"prompt_tokens":3,"completion_tokens":4}"#, (3, 4, 0, 0)),
        (
            r#"{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}"#,
            (3, 4, 2, 1),
        ),
        (
            r#"{"prompt_tokens":-3,"completion_tokens":4.5}"#,
            (0, 0, 0, 0),
        ),
        (
            r#"{"prompt_tokens":"3","completion_tokens":4}"#,
            (0, 4, 0, 0),
        ),
        (
            r#"{"prompt_tokens":1e300,"prompt_tokens_details":7}"#,
            (0, 0, 0, 0),
        ),
        ("7", (0, 0, 0, 0)),
        ("null", (0, 0, 0, 0)),
    ] {
        let chunk = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        let (a, b, c, d) = expected;
        let expected = Usage {
            prompt_tokens: a,
            completion_tokens: b,
            cached_tokens: c,
            reasoning_tokens: d,
            ..Usage::default()
        };
        assert_eq!(
            read(&[END, &chunk, "[DONE]"]).unwrap().usage,
            expected,
            "{usage}"
        );
    }
}

#[test]
fn what_is_no_event_is_an_error() {
    for (event, code) in [
        ("{", AiCode::Malformed),
        (r#"{"choices":7}"#, AiCode::Malformed),
        (r#"{"choices":[{"delta":7}]}"#, AiCode::Malformed),
        (
            r#"{"choices":[{"delta":{"content":7}}]}"#,
            AiCode::Malformed,
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":7}}]}"#,
            AiCode::Malformed,
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":7}}]}}]}"#,
            AiCode::Malformed,
        ),
        (
            r#"{"error":{"message":"busy","code":503}}"#,
            AiCode::Unavailable,
        ),
        (
            r#"{"error":{"message":"x","type":"invalid_request_error"}}"#,
            AiCode::Refused,
        ),
        ("[DONE]", AiCode::CutOff),
    ] {
        assert_eq!(read(&[event]), Err(code), "{event}");
        // After the end it takes nothing away.
        assert!(read(&[END, event]).is_ok(), "{event}");
    }
    assert_eq!(read(&[]), Err(AiCode::CutOff));
    // Of deep JSON there is no stack to overflow.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(read(&[&deep]), Err(AiCode::CutOff));
    let deep = format!(r#"{{"choices":{deep}}}"#);
    assert_eq!(read(&[&deep]), Err(AiCode::Malformed));
}

#[test]
fn whole_answers_are_read() {
    let result = whole(
        Wire::OpenAi,
        br#"{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    )
    .unwrap();
    let names: Vec<&str> = result.tool_uses.iter().map(|used| &*used.name).collect();
    assert_eq!(names, ["f", "g"]);
    assert_eq!(result.usage.total(), 3);
    for (body, code) in [
        ("", AiCode::Malformed),
        ("{}", AiCode::Malformed),
        (r#"{"choices":null}"#, AiCode::Malformed),
        (r#"{"choices":[]}"#, AiCode::CutOff),
        (
            r#"{"choices":[{"message":{"content":"a"}}]}"#,
            AiCode::CutOff,
        ),
        (r#"{"error":"busy"}"#, AiCode::Unavailable),
    ] {
        let error = whole(Wire::OpenAi, body.as_bytes()).unwrap_err();
        assert_eq!(error.code, code, "{body}");
    }
}

#[test]
fn a_refused_step_is_none() {
    let mut out = Vec::new();
    Step::text(&mut out, String::new());
    Step::thinking(&mut out, String::new());
    assert!(out.is_empty(), "no piece is empty");
}

/// The request that sends an answer back with the results of its tools, as programs do.
fn next_round(result: &TextResult, from: &str) -> TextRequest {
    let result = TextResult {
        model: Some(from.to_owned()),
        ..result.clone()
    };
    let mut talk = vec![
        value(r#"{"role":"user","content":"Go"}"#),
        result.to_message(),
    ];
    for used in &result.tool_uses {
        let answer = format!(
            r#"{{"role":"tool","tool_call_id":"{}","content":"r"}}"#,
            used.id
        );
        talk.push(value(&answer));
    }
    round(Value::Array(talk))
}

#[test]
fn b1_opaque_members_go_back_unchanged() {
    let result = read(&[
        &chunk(r#"{"role":"assistant","reasoning_content":"First ","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Fi","format":"x"}]}"#),
        &chunk(r#"{"reasoning_content":"this","reasoning_details":[{"type":"reasoning.text","index":0,"text":"rst","signature":"S1"}]}"#),
        &chunk(r#"{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"ENC","id":"r1"}],"extra_content":{"google":{"thought_signature":"M"}}}"#),
        &chunk(r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"T"}}}]}"#),
        END,
    ])
    .unwrap();
    assert_eq!(result.thinking, "First this");
    let body = value(&ask(&next_round(&result, "s/m"), false));
    let said = body.pointer("/messages/1").unwrap();
    assert_eq!(
        said.to_json_string(),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"T"}}}],"reasoning_content":"First this","reasoning_details":[{"type":"reasoning.text","index":0,"text":"First","format":"x","signature":"S1"},{"type":"reasoning.encrypted","index":1,"data":"ENC","id":"r1"}],"extra_content":{"google":{"thought_signature":"M"}}}"#
    );
    // Another service does not get them.
    let body = ask(&next_round(&result, "other/m"), false);
    assert!(
        !body.contains("reasoning") && !body.contains("thought_signature"),
        "{body}"
    );
    // Those that a program wrote itself go as they are.
    let own = value(
        r#"[{"role":"user","content":"x"},{"role":"assistant","content":"a","reasoning_content":"b"}]"#,
    );
    let request = round(own);
    assert!(ask(&request, false).contains(r#""reasoning_content":"b""#));
    // The whole form is the same; thinking among the parts of a content too.
    let result = whole(Wire::OpenAi, br#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Yes"}],"reasoning":"r"},"finish_reason":"stop"}]}"#).unwrap();
    assert_eq!((&*result.text, &*result.thinking), ("Yes", "rhm"));
    let body = value(&ask(&next_round(&result, "s/m"), false));
    assert_eq!(
        body.pointer("/messages/1").unwrap().to_json_string(),
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Yes"}],"reasoning":"r"}"#
    );
}

#[test]
fn b6_stand_in_ids_are_new_in_the_conversation() {
    use crate::reader::{Read, Reader};
    use crate::wire::CallIds;
    use a99_capabilities::ai::StreamHandle;
    let call = chunk(
        r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"call_2","function":{"name":"g","arguments":"{}"}}]}"#,
    );
    let mut request = TextRequest::new("x");
    let mut seen = vec!["call_1".to_owned()];
    request.messages.push(Message {
        role: Role::Assistant,
        content: vec![Part::ToolUse(ToolUse {
            id: "call_1".to_owned(),
            name: "f".to_owned(),
            input: Value::Null,
        })],
    });
    for _ in 0..3 {
        let (sink, stream) = StreamHandle::new("t");
        let mut reader = Reader::new(Wire::OpenAi, CallIds::of(&request));
        let events = format!("data: {call}\n\ndata: {END}\n\n");
        reader.push(events.as_bytes(), &sink).unwrap();
        let Ok(Read::Whole(reason)) = reader.end(&sink) else {
            panic!("the answer is not whole")
        };
        sink.finish(reason);
        let result = a99_capabilities::block_on(stream.done()).unwrap();
        let own = &result.tool_uses[0].id;
        assert!(!seen.contains(own) && own != "call_2", "{own} in {seen:?}");
        assert_eq!(result.tool_uses[1].id, "call_2", "the service's own stays");
        seen.push(own.clone());
        let uses = result.tool_uses.iter().cloned().map(Part::ToolUse);
        request.messages.push(Message {
            role: Role::Assistant,
            content: uses.collect(),
        });
    }
}

#[test]
fn b2_results_come_before_what_the_user_says() {
    let talk = r#"[{"role":"user","content":"Go"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"a","content":"1"},
        {"role":"user","content":"And?"},
        {"role":"tool","tool_call_id":"b","content":"2"}]"#;
    let request = round(value(talk));
    let body = value(&ask(&request, false));
    let messages = body.get("messages").and_then(Value::as_array).unwrap();
    let roles = messages
        .iter()
        .map(|m| m.get("role").unwrap().as_str().unwrap());
    let roles: Vec<&str> = roles.collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
}
