//! Forms in which services send tool calls and events that are no chunks.

use super::{END, read};
use crate::wire::Wire;
use a99_capabilities::ai::{AiCode, StopReason, TextResult};

pub(super) fn chunk(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
}

fn calls_of(result: &TextResult) -> String {
    let calls = result.tool_uses.iter();
    let calls = calls.map(|used| format!("{}({})", used.name, used.input.to_json_string()));
    calls.collect::<Vec<_>>().join(" ")
}

#[test]
fn b3_pieces_of_tool_calls_are_joined_in_each_form() {
    const F: &str = r#"f({"x":1})"#;
    const FG: &str = r#"f({"x":1}) g({"y":2})"#;
    const FF: &str = r#"f({"x":1}) f({"x":2})"#;
    let forms: &[(&str, &str, &[&str])] = &[
        (
            "no index, no ids, each whole",
            FG,
            &[
                r#"[{"function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"function":{"name":"g","arguments":"{\"y\":2}"}}]"#,
            ],
        ),
        (
            "no index, no ids, one list",
            FF,
            &[
                r#"[{"function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
            ],
        ),
        (
            "ids only, in turns",
            FG,
            &[
                r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"id":"b","function":{"name":"g","arguments":"{\"y\""}}]"#,
                r#"[{"id":"a","function":{"arguments":":1}"}}]"#,
                r#"[{"id":"b","function":{"arguments":":2}"}}]"#,
            ],
        ),
        (
            "index 0 for all, ids differ",
            FG,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":2}"}}]"#,
            ],
        ),
        (
            "index 0 for all, no ids",
            FF,
            &[
                r#"[{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":2}"}}]"#,
            ],
        ),
        (
            "the name in each piece",
            F,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":":1"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]"#,
            ],
        ),
        (
            "the name in each piece, no ids",
            F,
            &[
                r#"[{"index":0,"function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"name":"f","arguments":":1}"}}]"#,
                r#"[{"index":0,"function":{"name":"f","arguments":""}}]"#,
            ],
        ),
        (
            "the name in pieces",
            r#"look_up({"x":1})"#,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"look_"}}]"#,
                r#"[{"index":0,"function":{"name":"up"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\":1}"}}]"#,
            ],
        ),
        (
            "the whole call twice",
            F,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\": 1}"}}]"#,
            ],
        ),
        (
            "the whole call twice, no ids",
            F,
            &[
                r#"[{"function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
            ],
        ),
        (
            "pieces, and the whole in the last",
            F,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
            ],
        ),
        (
            "a part, and the whole in the last",
            F,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x"}}]"#,
                r#"[{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}]"#,
            ],
        ),
        (
            "an empty object first",
            F,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
            ],
        ),
        (
            "arguments as an object",
            FG,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"g","arguments":{"y":2}}}]"#,
            ],
        ),
        (
            "arguments as an object, no marks",
            FF,
            &[
                r#"[{"function":{"name":"f","arguments":{"x":1}}}]"#,
                r#"[{"function":{"name":"f","arguments":{"x":2}}}]"#,
            ],
        ),
        (
            "arguments as JSON in JSON",
            F,
            &[r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"\"{\\\"x\\\":1}\""}}]"#],
        ),
        (
            "an index as a text",
            FG,
            &[
                r#"[{"index":"0","function":{"name":"f","arguments":"{\"x\""}},{"index":"1","function":{"name":"g","arguments":"{\"y\""}}]"#,
                r#"[{"index":"1","function":{"arguments":":2}"}},{"index":"0","function":{"arguments":":1}"}}]"#,
            ],
        ),
        (
            "null members",
            F,
            &[
                r#"[{"index":null,"id":"a","type":null,"function":{"name":"f","arguments":null}}]"#,
                r#"[{"index":null,"id":null,"type":null,"function":{"name":null,"arguments":"{\"x\":1}"}}]"#,
            ],
        ),
        (
            "another id with each piece",
            F,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]"#,
                r#"[{"index":0,"id":"b","function":{"arguments":":1}"}}]"#,
            ],
        ),
        (
            "the same id twice in an answer",
            FG,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#,
                r#"[{"index":1,"id":"a","function":{"name":"g","arguments":"{\"y\":2}"}}]"#,
            ],
        ),
        (
            "no arguments",
            "f({}) g({})",
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g","arguments":"null"}}]"#,
            ],
        ),
        (
            "braces in texts",
            r#"f({"x":"}{\"]"})"#,
            &[
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"}{"}}]"#,
                r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"\\\"]\"}"}}]"#,
            ],
        ),
    ];
    for (form, expected, deltas) in forms {
        let mut events: Vec<String> = deltas
            .iter()
            .map(|calls| chunk(&format!(r#"{{"tool_calls":{calls}}}"#)))
            .collect();
        events.push(END.to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let result = read(&events).unwrap();
        assert_eq!(calls_of(&result), *expected, "{form}");
        assert_eq!(result.stop_reason, Some(StopReason::ToolUse), "{form}");
        let mut ids: Vec<&str> = result.tool_uses.iter().map(|used| &*used.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), result.tool_uses.len(), "{form}: each has an id");
    }
    let legacy = [
        chunk(r#"{"function_call":{"name":"f","arguments":"{\"x\""}}"#),
        chunk(r#"{"function_call":{"arguments":":1}"}}"#),
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#.to_owned(),
    ];
    let legacy = read(&legacy.each_ref().map(String::as_str)).unwrap();
    assert_eq!(calls_of(&legacy), F, "the old form of a call");
    // The whole message after its parts, as MiniMax sends it.
    let text = [
        chunk(r#"{"content":"Hel"}"#),
        chunk(r#"{"content":"lo"}"#),
        r#"{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"Hello","role":"assistant"}}]}"#.to_owned(),
    ];
    assert_eq!(
        read(&text.each_ref().map(String::as_str)).unwrap().text,
        "Hello"
    );
}

#[test]
fn b4_what_is_no_chunk_is_passed_over() {
    for data in [
        "",
        " ",
        "null",
        "{}",
        "[]",
        "7",
        "\"ping\"",
        "ping",
        "keep-alive",
        r#"{"type":"ping"}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[]}"#,
        r#"{"id":"x","object":"chat.completion.chunk","created":1,"model":"m"}"#,
        r#"{"prompt_filter_results":[{"prompt_index":0}]}"#,
        r#"{"usage":null}"#,
        r#"{"error":null}"#,
        r#"{"error":{}}"#,
        r#"{"base_resp":{"status_code":0,"status_msg":""}}"#,
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":[{"index":0,"delta":null,"content_filter_results":{}}]}"#,
        r#"{"x_groq":{"id":"req_1"}}"#,
    ] {
        for kind in ["", "event: heartbeat\n", "event: ping\n", ": comment\n"] {
            let stream = format!(
                "{kind}data: {data}\n\ndata: {}\n\n{kind}data: {data}\n\ndata: {END}\n\n",
                chunk(r#"{"content":"a"}"#)
            );
            let result = crate::fuzz::answer(Wire::OpenAi, &[stream.as_bytes()]);
            assert_eq!(result.unwrap().text, "a", "{kind:?} {data:?}");
        }
    }
    // Two chunks in one event, where a service ends events by one line break.
    let two = format!("{}\ndata: {END}", chunk(r#"{"content":"a"}"#));
    assert_eq!(read(&[&two]).unwrap().text, "a");
    // Contradictions are errors.
    for (event, code) in [
        (
            r#"{"object":"error","message":"too long","code":400}"#,
            AiCode::Refused,
        ),
        (r#"{"type":"error","message":"busy"}"#, AiCode::Unavailable),
        (
            r#"{"choices":null,"base_resp":{"status_code":1008,"status_msg":"no money"}}"#,
            AiCode::Unavailable,
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}"#,
            AiCode::Unavailable,
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#,
            AiCode::Unavailable,
        ),
    ] {
        assert_eq!(read(&[event]), Err(code), "{event}");
    }
    let named = crate::fuzz::answer(Wire::OpenAi, &[b"event: error\ndata: overloaded\n\n"]);
    assert_eq!(named.unwrap_err().message, "overloaded");
}
