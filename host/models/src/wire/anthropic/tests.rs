use super::super::testing::{answer_of, plain, round, value};
use super::super::{Ask, Protocol};
use super::Anthropic;
use crate::fuzz::whole;
use crate::wire::Wire;
use a99_capabilities::ai::{
    AiCode, Format, Image, Message, Part, Role, StopReason, TextRequest, TextResult, Tool,
    ToolChoice, ToolUse, Usage,
};
use a99_core::value::Value;

/// The answer of these events.
fn read(events: &[&str]) -> Result<TextResult, AiCode> {
    answer_of(Wire::Anthropic, events)
}

fn ask(request: &TextRequest) -> Value {
    Value::Object(Anthropic.body(&Ask {
        stream: true,
        ..plain(request, "m", "s")
    }))
}

const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;

#[test]
fn requests_have_all_that_was_asked() {
    let used = |input: &str| {
        Part::ToolUse(ToolUse {
            id: "c1".to_owned(),
            name: "add".to_owned(),
            input: value(input),
        })
    };
    let request = TextRequest {
        system: Some("Be brief.".to_owned()),
        messages: vec![
            Message {
                role: Role::User,
                content: vec![
                    Part::Image(Image::of_url("data:image/png;base64,AAAA")),
                    Part::Image(Image::of_url("https://example.com/a.png")),
                    Part::Text("See".to_owned()),
                ],
            },
            Message {
                role: Role::Assistant,
                content: vec![Part::Text(String::new()), used(r#"{"a":1}"#), used("7")],
            },
            Message {
                role: Role::User,
                content: vec![Part::ToolResult {
                    id: "c1".to_owned(),
                    content: "2".to_owned(),
                    is_error: true,
                }],
            },
            Message::user(""),
        ],
        stop_sequences: vec!["END".to_owned()],
        tool_choice: ToolChoice::Required,
        ..TextRequest::default()
    }
    .tool(Tool {
        name: "add".to_owned(),
        description: None,
        input_schema: value(r#"{"type":"object"}"#),
    });
    assert_eq!(
        ask(&request).to_json_string(),
        r#"{"model":"m","max_tokens":4096,"system":"Be brief.","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"text","text":"See"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"add","input":{"a":1}},{"type":"tool_use","id":"c1","name":"add","input":{"input":7}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"2","is_error":true}]}],"stop_sequences":["END"],"tools":[{"name":"add","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"},"stream":true}"#
    );
    let schema = TextRequest {
        format: Format::Schema {
            name: "n".to_owned(),
            schema: value(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#),
        },
        ..TextRequest::new("x")
    };
    let format = ask(&schema);
    assert_eq!(
        format.get("output_config").unwrap().to_json_string(),
        r#"{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}}}"#
    );
    let open = TextRequest {
        format: Format::Schema {
            name: "n".to_owned(),
            schema: value(r#"{"type":"object"}"#),
        },
        ..TextRequest::new("x").system("Be brief.")
    };
    let open = ask(&open);
    assert!(open.get("output_config").is_none());
    assert_eq!(
        open.get("system").unwrap().as_str().unwrap(),
        "Be brief.\n\nAnswer with one JSON value and nothing else. Its JSON Schema: {\"type\":\"object\"}"
    );
    let json = TextRequest {
        format: Format::Json,
        ..TextRequest::new("x").system("Be brief.")
    };
    let system = ask(&json);
    let system = system.get("system").unwrap().as_str().unwrap();
    assert!(
        system.starts_with("Be brief.\n\nAnswer with one JSON object"),
        "{system}"
    );
}

#[test]
fn blocks_become_text_thinking_and_tools() {
    let result = read(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQ="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"a"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"b"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{}}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":":1}"}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"a_kind_of_tomorrow"}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}"#,
        r#"{"type":"message_stop"}"#,
    ])
    .unwrap();
    assert_eq!((&*result.thinking, &*result.text), ("hm", "ab"));
    assert_eq!(result.tool_uses.len(), 1);
    assert_eq!(result.tool_uses[0].input.to_json_string(), r#"{"x":1}"#);
    assert_eq!(result.stop_reason, Some(StopReason::ToolUse));
    let usage = Usage {
        prompt_tokens: 16,
        completion_tokens: 15,
        cached_tokens: 4,
        written_tokens: 2,
        reasoning_tokens: 0,
    };
    assert_eq!(result.usage, usage);
}

#[test]
fn reasons_and_usage_are_read_as_far_as_they_are_any() {
    for (reason, expected) in [
        ("end_turn", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::Other("pause_turn".to_owned())),
    ] {
        let end = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":-1,"input_tokens":"x"}}}}"#
        );
        let result = read(&[&end]).unwrap();
        assert_eq!(result.stop_reason, Some(expected));
        assert_eq!(result.usage, Usage::default());
    }
}

#[test]
fn what_is_no_event_is_an_error() {
    let error =
        |kind: &str| format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"m"}}}}"#);
    for (event, code) in [
        ("{".to_owned(), AiCode::Malformed),
        (r#"{"type":7}"#.to_owned(), AiCode::Malformed),
        (
            r#"{"type":"content_block_start","index":0}"#.to_owned(),
            AiCode::Malformed,
        ),
        (
            r#"{"type":"content_block_delta","delta":7}"#.to_owned(),
            AiCode::Malformed,
        ),
        (
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":7}}"#.to_owned(),
            AiCode::Malformed,
        ),
        (error("overloaded_error"), AiCode::Unavailable),
        (error("rate_limit_error"), AiCode::RateLimited),
        (error("authentication_error"), AiCode::Unauthorized),
        (error("not_found_error"), AiCode::UnknownModel),
        (error("invalid_request_error"), AiCode::Refused),
        (error("of_tomorrow"), AiCode::Unavailable),
        (r#"{"type":"message_stop"}"#.to_owned(), AiCode::CutOff),
    ] {
        assert_eq!(read(&[&event]), Err(code), "{event}");
        assert!(read(&[END, &event]).is_ok(), "{event}");
    }
    assert_eq!(read(&[r#"{"type":"ping"}"#]), Err(AiCode::CutOff));
}

#[test]
fn whole_answers_are_read() {
    let result = whole(
        Wire::Anthropic,
        br#"{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#,
    )
    .unwrap();
    assert_eq!((&*result.text, &*result.thinking), ("a", "hm"));
    assert_eq!(result.tool_uses[0].input.to_json_string(), r#"{"x":1}"#);
    assert_eq!(result.usage.total(), 3);
    for (body, code) in [
        ("{}", AiCode::Malformed),
        (r#"{"content":7}"#, AiCode::Malformed),
        (r#"{"content":[]}"#, AiCode::CutOff),
        (
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            AiCode::Unavailable,
        ),
    ] {
        let error = whole(Wire::Anthropic, body.as_bytes()).unwrap_err();
        assert_eq!(error.code, code, "{body}");
    }
}

/// A program's next request with these messages.
fn asked(talk: Vec<Value>, service: &str) -> Value {
    let request = round(Value::Array(talk));
    Value::Object(Anthropic.body(&plain(&request, "m", service)))
}

const THINKING: &str = r#"{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"EqQ="},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"Let me look."},{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"So:"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}},{"type":"tool_use","id":"u","name":"f","input":{"x":2}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;

#[test]
fn b1_blocks_go_back_unchanged_and_in_order() {
    let whole = whole(Wire::Anthropic, THINKING.as_bytes()).unwrap();
    let streamed = read(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQ="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me look."}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"q\"}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[]}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        r#"{"type":"content_block_start","index":5,"content_block":{"type":"text","text":"So:"}}"#,
        r#"{"type":"content_block_stop","index":5}"#,
        r#"{"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}"#,
        r#"{"type":"content_block_stop","index":6}"#,
        r#"{"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"u","name":"f","input":{"x":2}}}"#,
        r#"{"type":"content_block_stop","index":7}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ])
    .unwrap();
    for mut result in [whole, streamed] {
        result.model = Some("claude/opus".to_owned());
        let talk = || {
            vec![
                value(r#"{"role":"user","content":"Go"}"#),
                result.to_message(),
                value(r#"{"role":"tool","tool_call_id":"t","content":"1"}"#),
                value(r#"{"role":"tool","tool_call_id":"u","content":"2","isError":true}"#),
            ]
        };
        let body = asked(talk(), "claude");
        let content = value(THINKING).get("content").unwrap().to_json_string();
        let sent = body.pointer("/messages/1/content").unwrap();
        assert_eq!(sent.to_json_string(), content);
        let body = asked(talk(), "another");
        let sent = body.pointer("/messages/1/content").unwrap();
        let kinds = sent
            .as_array()
            .unwrap()
            .iter()
            .map(|b| b.get("type").unwrap().as_str().unwrap());
        assert_eq!(kinds.collect::<Vec<_>>(), ["text", "tool_use", "tool_use"]);
    }
    // A block that was cut has no signature, and does not go back.
    let cut = read(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"h"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
    ])
    .unwrap();
    assert!(cut.opaque.is_empty());
}

#[test]
fn b2_a_round_of_results_is_one_message() {
    let talk = r#"[{"role":"user","content":"Go"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"user","content":"And?"},
        {"role":"tool","tool_call_id":"a","content":"1"},
        {"role":"tool","tool_call_id":"b","content":"2"},
        {"role":"user","content":""},
        {"role":"assistant","content":"Done."},
        {"role":"user","content":"Thanks"}]"#;
    let body = asked(value(talk).as_array().unwrap().to_vec(), "s");
    assert_eq!(
        body.get("messages").unwrap().to_json_string(),
        r#"[{"role":"user","content":"Go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"},{"type":"text","text":"And?"}]},{"role":"assistant","content":"Done."},{"role":"user","content":"Thanks"}]"#
    );
}

#[test]
fn b4_what_is_no_event_is_passed_over() {
    for data in [
        "",
        "null",
        "{}",
        "[]",
        "ping",
        r#"{"type":"ping"}"#,
        r#"{"type":"new"}"#,
    ] {
        for kind in ["", "event: heartbeat\n", "event: ping\n"] {
            let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
            let stream = format!("{kind}data: {data}\n\ndata: {text}\n\ndata: {END}\n\n");
            let result = crate::fuzz::answer(Wire::Anthropic, &[stream.as_bytes()]);
            assert_eq!(result.unwrap().text, "a", "{kind:?} {data:?}");
        }
    }
    let named = crate::fuzz::answer(Wire::Anthropic, &[b"event: error\ndata: overloaded\n\n"]);
    assert_eq!(named.unwrap_err().message, "overloaded");
}

#[test]
fn t6_texts_of_white_space_are_left_out() {
    let talk = r#"[{"role":"user","content":"Go"},
        {"role":"assistant","content":" \n","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"a","content":"1"},
        {"role":"user","content":"\t"},
        {"role":"assistant","content":"\n"},
        {"role":"user","content":[{"type":"text","text":" "},{"type":"text","text":"On"}]},
        {"role":"assistant","content":"So: \n"}]"#;
    let body = asked(value(talk).as_array().unwrap().to_vec(), "s");
    assert_eq!(
        body.get("messages").unwrap().to_json_string(),
        r#"[{"role":"user","content":"Go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"user","content":[{"type":"text","text":"On"}]},{"role":"assistant","content":"So:"}]"#
    );
    let blank = ask(&TextRequest::new(" ").system(" \n"));
    assert!(blank.get("system").is_none());
    assert_eq!(blank.get("messages").unwrap().to_json_string(), "[]");
}
