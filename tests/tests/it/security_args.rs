//! Hostile arguments as JSON text: what is no JSON, and what is too much of it.

use crate::attack::{ENGINE, seq};
use crate::json_args::{AGENTS, run};
use agent99::{AbortSignal, Agent, ErrorCode, JsonText, Outcome, RunOptions, json};
use std::sync::LazyLock;

/// A text that is no JSON, where, and what is said of it.
const MALFORMED: &[(&[u8], &str, &str)] = &[
    (
        b"",
        "1, column 1: expected a value, found the end of the text",
        "cut off",
    ),
    (
        b" \n ",
        "2, column 2: expected a value, found the end of the text",
        "cut off",
    ),
    (
        b"\xEF\xBB\xBF{}",
        "1, column 1: expected no byte order mark, found U+FEFF",
        "leave the mark",
    ),
    (
        b"{\"a\":\"\xFF\"}",
        "1, column 7: expected UTF-8, found the byte 0xFF",
        "as UTF-8",
    ),
    (
        b"\xFE\xFF\0{",
        "1, column 1: expected UTF-8, found the byte 0xFE",
        "as UTF-8",
    ),
    (
        b"{\0}\0",
        "1, column 2: expected a key in double quotes or `}`, found U+0000",
        "key",
    ),
    (
        b"{\"a\":\"\xED\xA0\x80\"}",
        "1, column 7: expected UTF-8, found the byte 0xED",
        "as UTF-8",
    ),
    (
        b"{\"a\":1",
        "1, column 7: expected `,` or `}`, found the end of the text",
        "cut off",
    ),
    (
        b"{\"a\"",
        "1, column 5: expected `:` after the key, found the end",
        "cut off",
    ),
    (
        b"{\"a\":",
        "1, column 6: expected a value, found the end",
        "cut off",
    ),
    (
        b"{\"a\":[1",
        "1, column 8: expected `,` or `]`, found the end",
        "cut off",
    ),
    (
        b"{\"a\":\"x",
        "1, column 8: expected `\"` at the end of a string, found the end",
        "cut off",
    ),
    (
        b"{\"a\":\"x\\",
        "1, column 9: expected `\"` at the end of a string, found the end",
        "cut off",
    ),
    (
        b"{\"a\":tru",
        "1, column 6: expected a value, found `tru`",
        "write a string",
    ),
    (
        b"{\"a\":1}}",
        "1, column 8: expected the end of the text, found `}`",
        "remove the rest",
    ),
    (
        b"{} {}",
        "1, column 4: expected the end of the text, found `{`",
        "remove the rest",
    ),
    (
        b"{\"a\":1,}",
        "1, column 8: expected a key in double quotes, found `}`",
        "remove the comma",
    ),
    (
        b"{\"a\":[1,]}",
        "1, column 9: expected a value, found `]`",
        "remove the comma",
    ),
    (
        b"{\"a\":[1}",
        "1, column 8: expected `,` or `]`, found `}`",
        "write a comma",
    ),
    (
        b"{\"a\":1 \"b\":2}",
        "1, column 8: expected `,` or `}`, found `\"`",
        "write a comma",
    ),
    (
        b"{a:1}",
        "1, column 2: expected a key in double quotes or `}`, found `a`",
        "in double quotes",
    ),
    (
        b"{'a':1}",
        "1, column 2: expected a key in double quotes or `}`, found `'`",
        "in double quotes",
    ),
    (
        b"{\"a\" 1}",
        "1, column 6: expected `:` after the key, found `1`",
        "a colon",
    ),
    (
        b"{\"a\":01}",
        "1, column 7: expected `,` or `}`, found `1`",
        "write a comma",
    ),
    (
        b"{\"a\":-}",
        "1, column 7: expected a digit, found `}`",
        "digits",
    ),
    (
        b"{\"a\":1.}",
        "1, column 8: expected a digit, found `}`",
        "digits",
    ),
    (
        b"{\"a\":1e+}",
        "1, column 9: expected a digit, found `}`",
        "digits",
    ),
    (
        b"{\"a\":.5}",
        "1, column 6: expected a value, found `.`",
        "write a string",
    ),
    (
        b"{\"a\":NaN}",
        "1, column 6: expected a value, found `NaN`",
        "no other such words",
    ),
    (
        b"{\"a\":True}",
        "1, column 6: expected a value, found `True`",
        "no other such words",
    ),
    (
        b"{\"a\":nullx}",
        "1, column 6: expected a value, found `nullx`",
        "write a string",
    ),
    (
        b"{\n  \"\xC3\xA9\": // x\n1}",
        "2, column 8: expected a value, found `/`",
        "the comment",
    ),
    (
        b"{\"a\":\"\n\"}",
        "1, column 7: expected no control character in a string, found U+000A",
        "escape",
    ),
    (
        b"{\"a\":\"\\x41\"}",
        "1, column 7: expected an escape of JSON, found `\\x41`",
        "backslash",
    ),
    (
        b"{\"a\":\"\\u12G4\"}",
        "1, column 7: expected four hexadecimal digits",
        "backslash",
    ),
    (
        b"[1,[2,{\"x\":[}]]",
        "1, column 13: expected a value, found `}`",
        "write a string",
    ),
    (
        b"{\"a\":\xE2\x80\xAE1}",
        "1, column 6: expected a value, found `\\u{202e}`",
        "write a string",
    ),
    (
        b"<html>",
        "1, column 1: expected a value, found `<`",
        "write a string",
    ),
];

#[test]
fn what_is_wrong_with_a_text_is_told_by_place() {
    for (text, place, help) in MALFORMED {
        let shown = String::from_utf8_lossy(text);
        let mut outcomes = vec![run(&AGENTS[0], JsonText::from(*text), RunOptions::new()).0];
        if let Ok(text) = std::str::from_utf8(text) {
            outcomes.push(run(&AGENTS[3], JsonText::from(text), RunOptions::new()).0);
        }
        for outcome in outcomes {
            let error = outcome.error.expect("refused");
            assert_eq!(error.code, ErrorCode::ArgsNotJson, "{shown}");
            let message = error.message.to_string();
            let expected = format!("The arguments are not JSON: line {place}");
            assert!(message.starts_with(&expected), "{shown}: {message}");
            let told = error.help.expect("help");
            assert!(told.contains(help), "{shown}: {told}");
            assert_eq!(outcome.fuel_used.micro(), 0);
        }
    }
}

/// Asks for an argument and returns another value.
static ASKS: LazyLock<Agent> = LazyLock::new(|| {
    let steps = json!([
        {"op": "varsImport", "keys": ["a"]},
        {"op": "return", "value": {"none": 1}},
    ]);
    ENGINE.compile(seq(steps)).expect("a program")
});

fn code(outcome: &Outcome) -> Option<ErrorCode> {
    outcome.error.as_ref().map(|error| error.code)
}

#[test]
fn nesting_is_no_recursion() {
    let nested = |name: &str, depth: usize, end: &str| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        JsonText::from(format!("{{\"{name}\": {open}{close}{end}}}"))
    };
    let agent = &*ASKS;
    let text = |name, depth| run(agent, nested(name, depth, ""), RunOptions::new()).0;
    // With the object around them 8,192 levels.
    assert_eq!(text("other", 8191).error, None);
    let error = text("other", 8192).error.expect("refused");
    assert_eq!(error.code, ErrorCode::ArgsNotJson);
    assert!(
        error.message.to_string().contains("at most 8192"),
        "{error}"
    );
    assert_eq!(
        code(&text("other", 10_000_000)),
        Some(ErrorCode::ArgsNotJson)
    );
    assert_eq!(text("a", 512).error, None);
    assert_eq!(code(&text("a", 513)), Some(ErrorCode::Boundary));
    // That it is no JSON is found first.
    let both = run(agent, nested("a", 513, ","), RunOptions::new()).0;
    assert_eq!(code(&both), Some(ErrorCode::ArgsNotJson));
    let objects = format!("{{\"other\": {}", "{\"a\":".repeat(5_000_000));
    let outcome = run(agent, JsonText::from(objects), RunOptions::new()).0;
    assert_eq!(code(&outcome), Some(ErrorCode::ArgsNotJson));
}

#[test]
fn a_stop_ends_the_reading() {
    const HUGE: usize = 100 << 20;
    let texts = [
        (" ".repeat(HUGE), "}"),
        (format!("{{\"a\": \"{}", "x".repeat(HUGE)), "\"}"),
        (format!("{{\"{}", "x".repeat(HUGE)), "\": 1}"),
        (format!("{{\"other\": {}", "1".repeat(HUGE)), "}"),
        (format!("{{\"other\": [{}", "[],".repeat(HUGE / 3)), "1]}"),
    ];
    for (mut text, end) in texts {
        text.push_str(end);
        for body in [
            JsonText::from(text.clone()),
            JsonText::from(text.into_bytes()),
        ] {
            let signal = AbortSignal::new();
            signal.abort();
            let options = RunOptions::new().signal(signal);
            let outcome = ENGINE.run_sync(&AGENTS[2], body.clone(), options);
            assert_eq!(code(&outcome), Some(ErrorCode::Aborted));
            let late = ENGINE.run_sync(&AGENTS[2], body, RunOptions::new().timeout_ms(1));
            assert_eq!(code(&late), Some(ErrorCode::RunTimeout));
        }
    }
}

#[test]
fn what_is_not_asked_for_takes_no_heap() {
    let agent = &*ASKS;
    let (_, none) = run(agent, JsonText::from("{}"), RunOptions::new());
    let mut text = String::from("{");
    for at in 0..100_000 {
        text.push_str(&format!(
            "\"unasked {at}\": [{{\"key {at}\": \"a text\"}}, 1e5], "
        ));
    }
    text.push_str(&format!("\"{}\": \"{0}\"}}", "k\\u0041".repeat(1 << 20)));
    let (outcome, held) = run(
        agent,
        JsonText::from(text),
        RunOptions::new().heap_bytes(64 << 10),
    );
    assert_eq!(outcome.error, None);
    assert_eq!(held, none);
}

#[test]
fn what_is_asked_for_has_limits() {
    let agent = &*ASKS;
    let run = |text: String, heap: usize| {
        code(
            &run(
                agent,
                JsonText::from(text),
                RunOptions::new().heap_bytes(heap),
            )
            .0,
        )
    };
    let texts = |n: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(n));
    let lists = |n: usize| format!("{{\"a\": [{}0]}}", "[],".repeat(n));
    let blanks = |n: usize| format!("{{\"a\": [{}0]}}", " ".repeat(n));
    let numbers = |n: usize| format!("{{\"a\": [{}0]}}", "1e20,".repeat(n));
    const MANY: usize = 64 << 20;
    assert_eq!(run(texts((4 << 20) - 2), MANY), None);
    assert_eq!(run(texts((4 << 20) - 1), MANY), Some(ErrorCode::Boundary));
    assert_eq!(run(texts(64 << 20), 1 << 20), Some(ErrorCode::Boundary));
    assert_eq!(run(texts(2 << 20), 1 << 20), Some(ErrorCode::HeapLimit));
    assert_eq!(run(lists(1 << 20), 8 << 20), Some(ErrorCode::HeapLimit));
    assert_eq!(run(lists(8 << 20), MANY), Some(ErrorCode::Boundary));
    assert_eq!(run(blanks(8 << 20), 1 << 20), None);
    assert_eq!(run(numbers(190_000), MANY), None);
    assert_eq!(run(numbers(191_000), MANY), Some(ErrorCode::Boundary));
}
