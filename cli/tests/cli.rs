//! End-to-end tests of `a99`: every exit code, both output forms, every input and output.

mod harness;

use harness::{Sandbox, a99, program};

/// Returns `answer = 42`.
const ANSWER: &str = r#"{"op":"seq","steps":[
    {"op":"varSet","key":"answer","value":42},
    {"op":"return","schema":{"type":"object","properties":{"answer":{}}}}]}"#;

/// Returns its argument `x`.
const ECHO: &str = r#"{"op":"seq","steps":[
    {"op":"varSet","key":"x","value":{"$kind":"arg","path":"x"}},
    {"op":"return","schema":{"type":"object","properties":{"x":{}}}}]}"#;

/// Never ends by itself.
const FOREVER: &str = r#"{"op":"seq","steps":[{"op":"while",
    "condition":{"$expr":"literal","value":true},
    "body":[{"op":"varSet","key":"i","value":1}]}]}"#;

/// Accumulates text until memory runs out.
const HOARD: &str = r#"{"op":"seq","steps":[
    {"op":"varSet","key":"s","value":"0123456789abcdef"},
    {"op":"while","condition":{"$expr":"literal","value":true},
     "body":[{"op":"varSet","key":"s","value":{"$expr":"binary","op":"+",
        "left":{"$expr":"ident","name":"s"},"right":{"$expr":"ident","name":"s"}}}]}]}"#;

/// Fails with an error of its atom.
const FAILING: &str = r#"{"op":"seq","steps":[{"op":"jsonParse","str":"{oops"}]}"#;

/// Not a program.
const MALFORMED: &str = "{\"op\":\"seq\",\n \"steps\":[}";

/// A fetch and a model call, one after the other.
const ASK: &str = r#"{"op":"seq","steps":[
    {"op":"httpFetch","url":"https://a.test/x","result":"page"},
    {"op":"llmPredict","prompt":"Sum up","result":"text"},
    {"op":"return","schema":{"type":"object","properties":{"page":{},"text":{}}}}]}"#;

#[test]
fn a_result_goes_to_standard_output_and_the_rest_to_standard_error() {
    let done = program(ANSWER, &["run"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out, "{\n  \"answer\": 42\n}\n");
    assert_eq!(done.err, "fuel used: 0.015\n");
}

#[test]
fn json_is_one_line_with_everything() {
    let done = program(ANSWER, &["run", "--json"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(done.out.lines().count(), 1);
    assert_eq!(done.json()["result"]["answer"], 42);
    assert_eq!(done.json()["fuel_used"], 0.015);
}

#[test]
fn a_program_without_return_is_null_and_told_so() {
    let empty = r#"{"op":"seq","steps":[]}"#;
    let done = program(empty, &["run"]);
    assert_eq!((done.code, done.out.as_str()), (0, "null\n"), "{done:?}");
    assert!(
        done.err.contains("warning: The program returned no result"),
        "{done:?}"
    );
    let done = program(empty, &["run", "--json"]);
    assert_eq!(done.json()["result"], serde_json::Value::Null, "{done:?}");
    assert!(done.json().get("result").is_some(), "{done:?}");
    assert_eq!(done.json()["warnings"].as_array().map(Vec::len), Some(1));
    // A result of null is a result.
    let done = program(ECHO, &["run", "--json", "--args", r#"{"x": null}"#]);
    assert_eq!(
        done.json()["warnings"].as_array().map(Vec::len),
        Some(0),
        "{done:?}"
    );
}

#[test]
fn exit_1_is_an_error_of_the_program() {
    let done = program(FAILING, &["run"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""), "{done:?}");
    assert!(done.err.starts_with("error[program.error]: "), "{done:?}");
    assert!(done.err.contains("jsonParse"), "{done:?}");
    let done = program(FAILING, &["run", "--json"]);
    assert_eq!((done.code, done.err.as_str()), (1, ""));
    assert_eq!(done.json()["error"]["code"], "program.error");
    assert_eq!(done.json()["error"]["op"], "jsonParse");
}

#[test]
fn exit_2_is_usage() {
    for args in [
        &["run", "-", "--fuel", "-1"][..],
        &["run", "-", "--fuel", "NaN"],
        &["run", "-", "--cost", "map"],
        &["run", "-", "--quota", "map=1.5"],
        &["run", "-", "--args", "{"],
        &["run", "-", "--args", "@/no/such/file.json"],
        &["run", "-", "--args", "@-"],
        &["run", "/no/such/program.json"],
        &["run", "-", "--script", "/no/such/script.json"],
        &["run", "-", "--nonsense"],
        &["tools", "--filter", "mpa"],
        &["nonsense"],
        &[],
    ] {
        let done = a99(args, ANSWER.as_bytes());
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert!(done.out.is_empty() && !done.err.is_empty(), "{args:?}");
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let done = a99(&args, ANSWER.as_bytes());
        assert_eq!((done.code, done.err.as_str()), (2, ""), "{args:?}");
        let error = &done.json()["error"];
        assert_eq!(
            [&error["code"], &error["alias"]],
            ["cli.usage", "usage"],
            "{args:?}"
        );
    }
}

#[test]
fn malformed_arguments_are_told_with_their_place() {
    let done = program(ECHO, &["run", "--args", "{\n  \"x\": oops}"]);
    assert!(done.err.contains("--args: line 2, column 8"), "{done:?}");
}

#[test]
fn exit_3_is_a_rejected_program() {
    for command in ["run", "check", "inspect"] {
        let done = program(MALFORMED, &[command]);
        assert_eq!((done.code, done.out.as_str()), (3, ""), "{done:?}");
        assert!(done.err.contains("error[json.syntax]"), "{done:?}");
        assert!(done.err.contains("<stdin>:2:"), "{done:?}");
        assert!(done.err.contains('^'), "{done:?}");
        let done = program(MALFORMED, &[command, "--json"]);
        assert_eq!((done.code, done.err.as_str()), (3, ""));
        assert_eq!(done.json()["error"]["code"], "program.rejected");
        let finding = &done.json()["diagnostics"][0];
        assert_eq!(
            [&finding["code"], &finding["alias"]],
            ["json.syntax", "A99-E0001"]
        );
    }
    let condition = r#"{"op":"seq","steps":[{"op":"if","condition":"a > ","then":[]}]}"#;
    let done = program(condition, &["check"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(
        done.err.contains("error[compile.bad_condition]"),
        "{done:?}"
    );
}

#[test]
fn exit_4_is_fuel() {
    let done = program(FOREVER, &["run", "--fuel", "5"]);
    assert_eq!(done.code, 4, "{done:?}");
    let done = program(FOREVER, &["run", "--fuel", "5", "--json"]);
    assert_eq!(done.code, 4);
    assert_eq!(done.json()["error"]["code"], "fuel.exhausted");
}

#[test]
fn exit_5_is_timeout() {
    let args = ["run", "--fuel", "1e9", "--timeout-ms", "50", "--json"];
    let done = program(FOREVER, &args);
    assert_eq!(done.code, 5, "{done:?}");
    assert_eq!(done.json()["error"]["code"], "time.run_timeout");
}

#[test]
fn exit_6_is_memory() {
    let done = program(
        HOARD,
        &["run", "--fuel", "1e9", "--heap-mib", "1", "--json"],
    );
    assert_eq!(done.code, 6, "{done:?}");
    assert_eq!(done.json()["error"]["code"], "memory.heap_limit");
}

#[test]
fn exit_7_is_quota() {
    let done = program(FOREVER, &["run", "--quota", "varSet=3", "--json"]);
    assert_eq!(done.code, 7, "{done:?}");
    assert_eq!(done.json()["error"]["code"], "quota.exceeded");
}

#[test]
#[cfg(unix)]
fn exit_130_is_an_interrupt() {
    let started = std::time::Instant::now();
    let args = ["run", "--fuel", "1e12", "--timeout-ms", "600000"];
    let done = harness::interrupted(&args, FOREVER.as_bytes());
    assert_eq!(done.code, 130, "{done:?}");
    assert!(done.err.contains("error[run.aborted]"), "{done:?}");
    assert!(started.elapsed().as_secs() < 60);
}

/// Sorts equal texts of four million units, which takes a quarter of an hour.
#[cfg(unix)]
const SORT: &str = r#"{"op":"seq","steps":[
    {"op":"varSet","key":"text","value":{"$expr":"methodCall","object":{"$expr":"literal","value":"x"},
        "method":"repeat","arguments":[{"$expr":"literal","value":4000000}]}},
    {"op":"varSet","key":"list","value":{"$expr":"methodCall","object":{"$expr":"ident","name":"Array"},
        "method":"from","arguments":[{"$expr":"literal","value":{"length":200000}}]}},
    {"op":"varSet","key":"list","value":{"$expr":"methodCall","object":{"$expr":"ident","name":"list"},
        "method":"fill","arguments":[{"$expr":"ident","name":"text"}]}},
    {"op":"varSet","key":"list","value":{"$expr":"methodCall","object":{"$expr":"ident","name":"list"},
        "method":"toSorted","arguments":[]}}]}"#;

/// The program's thread is busy within a single instruction.
#[test]
#[cfg(unix)]
fn exit_130_is_an_interrupt_of_a_single_operation() {
    let started = std::time::Instant::now();
    let args = ["run", "--fuel", "1e12", "--timeout-ms", "600000"];
    let done = harness::interrupted(&args, SORT.as_bytes());
    assert_eq!(done.code, 130, "{done:?}");
    assert!(done.err.contains("error[run.aborted]"), "{done:?}");
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
fn prices_and_models() {
    let fuel = |args: &[&str]| program(ANSWER, args).json()["fuel_used"].clone();
    assert_eq!(fuel(&["run", "--json", "--cost", "varSet=2"]), 2.01);
    assert_eq!(fuel(&["run", "--json", "--cost-model", "flat"]), 0.3);
}

#[test]
fn arguments_from_text_file_and_standard_input() {
    let sandbox = Sandbox::new("args");
    let agent = sandbox.file("agent.json", ECHO);
    let args = sandbox.file("args.json", r#"{"x": "é"}"#);
    let done = a99(&["run", &agent, "--args", &format!("@{args}")], b"");
    assert_eq!(done.out, "{\n  \"x\": \"é\"\n}\n");
    let done = a99(&["run", &agent, "--args", "@-"], b"{\"x\": 1}");
    assert_eq!(done.out, "{\n  \"x\": 1\n}\n");
    let done = a99(&["run", &agent, "--args", r#"{"x": null}"#], b"");
    assert_eq!(done.out, "{\n  \"x\": null\n}\n");
}

#[test]
fn byte_order_marks_line_ends_and_other_encodings() {
    let bom = format!("\u{FEFF}{}", ANSWER.replace('\n', "\r\n"));
    assert_eq!(program(&bom, &["run"]).code, 0);
    let utf16: Vec<u8> = ANSWER.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let done = a99(&["check", "-"], &utf16);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("UTF-16"), "{done:?}");
    assert_eq!(a99(&["check", "-"], b"").code, 3);
    assert_eq!(a99(&["check", "-"], b"\xFF\x00\x80").code, 3);
}

#[test]
fn endless_input_is_refused() {
    let done = harness::endless(&["check", "-"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("json.too_large"), "{done:?}");
}

#[test]
fn hostile_text_does_not_steer_the_terminal() {
    let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}b";
    let args = serde_json::json!({ "x": hostile }).to_string();
    let done = program(ECHO, &["run", "--args", &args]);
    assert_eq!(done.code, 0);
    let shown: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(shown["x"], hostile);
    assert!(
        !done.out.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
        "{done:?}"
    );
    let failing = FAILING.replace("{oops", "\\u001b[2J\\u202e");
    let done = program(&failing, &["run"]);
    assert_eq!(done.code, 1);
    assert!(!done.err.contains(['\u{1b}', '\u{202e}']), "{done:?}");
    let done = a99(&["check", "\u{1b}[2J"], b"");
    assert!(!done.err.contains('\u{1b}'), "{done:?}");
}

#[test]
fn nothing_is_granted_without_a_script() {
    let done = program(ASK, &["run", "--json"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_eq!(done.json()["error"]["op"], "httpFetch");
}

#[test]
fn a_script_answers() {
    let sandbox = Sandbox::new("script");
    let script = sandbox.file(
        "script.json",
        r#"{"fetch": {"https://a.test/x": {"body": "hi"}}, "llm": ["short"]}"#,
    );
    let done = program(ASK, &["run", "--script", &script, "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["result"]["page"]["body"], "hi");
    assert_eq!(done.json()["result"]["text"], "short");
    let script = sandbox.file("bad.json", r#"{"fetsh": {}}"#);
    let done = program(ASK, &["run", "--script", &script]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("unknown member `fetsh`"), "{done:?}");
}

#[test]
fn a_script_stands_in_for_a_computer() {
    let text = r#"{"op": "seq", "steps": [
        {"op": "shellExec", "command": "uname -s", "result": "r"},
        {"op": "varSet", "key": "out", "value": "r.stdout"},
        {"op": "return", "schema": {"type": "object", "properties": {"out": {}}}}]}"#;
    let missing = program(text, &["run", "--json"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert_eq!(missing.json()["error"]["code"], "capability.missing");
    let help = missing.json()["error"]["help"].to_string();
    assert!(help.contains("sandbox"), "{help}");
    let folder = Sandbox::new("shell");
    let script = folder.file(
        "script.json",
        r#"{"shell": {"uname -s": {"stdout": "Plan 9\n", "elapsedMs": 100}}}"#,
    );
    let done = program(text, &["run", "--json", "--script", &script]);
    assert_eq!(done.json()["result"]["out"], "Plan 9\n", "{done:?}");
    // seq, call, 8 bytes in, 100 ms, 7 bytes out, varSet, return; copies of the command (0.0056),
    // of the answer and its texts (0.0528, 0.0055, 0.0048)
    assert_eq!(done.json()["fuel_used"], 6.0948);
}

/// Needs the image: `cargo test -p a99-cli --features sandbox -- --ignored`.
#[cfg(feature = "sandbox")]
#[test]
#[ignore = "needs the image"]
fn an_agent_has_a_computer() {
    let example = |file: &str| {
        let root = env!("CARGO_MANIFEST_DIR");
        format!("{root}/../examples/computer/{file}")
    };
    let args = format!("@{}", example("args.json"));
    let agent = example("agent.json");
    // Enough time on a machine that is busy with other tests.
    let limits = ["--timeout-ms", "120000", "--fuel", "10000"];
    let run = ["run", &agent, "--args", &args, "--sandbox", "--json"];
    let done = a99(&[&run[..], &limits[..]].concat(), b"");
    let expected = std::fs::read(example("expected.json")).expect("it is there");
    let expected: serde_json::Value = serde_json::from_slice(&expected).expect("JSON");
    assert_eq!(done.json()["result"], expected["result"], "{done:?}");
    let script = example("script.json");
    let both = a99(&["run", &agent, "--sandbox", "--script", &script], b"");
    assert_eq!(both.code, 2, "{both:?}");
}

#[test]
fn a_trace_is_written_as_lines() {
    let sandbox = Sandbox::new("trace");
    let agent = sandbox.file("agent.json", ANSWER);
    let trace = sandbox.path("trace.jsonl");
    let done = a99(&["run", &agent, "--trace", &trace], b"");
    assert_eq!(done.code, 0, "{done:?}");
    let lines = std::fs::read_to_string(&trace).unwrap();
    let ops: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["op"].clone())
        .collect();
    assert!(ops.contains(&"varSet".into()), "{lines}");
    // A trace must not overwrite an input of the run.
    let done = a99(&["run", &agent, "--trace", &agent], b"");
    assert_eq!(done.code, 2, "{done:?}");
    assert_eq!(std::fs::read_to_string(&agent).unwrap(), ANSWER);
}

#[test]
fn check_and_inspect() {
    let done = program(ANSWER, &["check"]);
    assert_eq!((done.code, done.err.as_str()), (0, "<stdin>: ok\n"));
    assert_eq!(program(ANSWER, &["check", "--json"]).json()["ok"], true);
    let unknown = r#"{"op":"seq","steps":[{"op":"varSte","key":"a","value":1}]}"#;
    let done = program(unknown, &["check"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("warning[lint.unknown_atom]"), "{done:?}");
    assert!(done.err.contains("names are unknown"), "{done:?}");
    let done = program(unknown, &["check", "--json"]);
    assert_eq!((done.code, &done.json()["ok"]), (3, &false.into()));
    let done = program(unknown, &["check", "--allow-unknown"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("ok, 1 warning"), "{done:?}");
    let done = program(ANSWER, &["inspect"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("block 0  price "), "{done:?}");
    let done = program(ANSWER, &["inspect", "--json"]);
    assert!(
        done.json()["disassembly"]
            .as_str()
            .unwrap()
            .contains("function 0")
    );
}

#[test]
fn check_finds_what_is_likely_wrong() {
    let dropped = r#"{"op":"seq","steps":[{"op":"split","str":"a","separator":","}]}"#;
    let done = program(dropped, &["check"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.contains("ok, 3 warnings"), "{done:?}");
    assert!(done.err.contains("did you mean `sep`?"), "{done:?}");
    let done = program(dropped, &["check", "--deny-warnings"]);
    assert_eq!(done.code, 3, "{done:?}");
    // `run` does not lint.
    let done = program(dropped, &["run"]);
    assert!(!done.err.contains("lint."), "{done:?}");
}

#[test]
fn check_takes_several_files_and_folders() {
    let folder = Sandbox::new("check-folder");
    std::fs::create_dir(folder.path("inner")).unwrap();
    folder.file("a.json", ANSWER);
    folder.file("inner/b.json", "{");
    folder.file("notes.txt", "{");
    let path = folder.path("");
    let done = a99(&["check", "--json", &path], b"");
    assert_eq!(done.code, 3, "{done:?}");
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert!(lines[0].contains("a.json") && lines[0].contains(r#""ok":true"#));
    assert!(lines[1].contains("json.syntax"), "{done:?}");
    let empty = folder.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let done = a99(&["check", &empty], b"");
    assert_eq!(done.code, 2, "{done:?}");
}

#[test]
fn tools_are_listed_and_filtered() {
    let done = a99(&["tools"], b"");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.out.lines().any(|line| line.starts_with("map ")),
        "{done:?}"
    );
    let count = |filter: &str| {
        let done = a99(&["tools", "--json", "--filter", filter], b"");
        done.json().as_array().map(Vec::len)
    };
    assert_eq!(count("map,filter"), Some(2));
    assert!(count("flow") < count("all"));
    for (format, name) in [
        ("openai", "/function/name"),
        ("openai-strict", "/function/name"),
        ("anthropic", "/name"),
        ("gemini", "/functionDeclarations/0/name"),
        ("mcp", "/name"),
    ] {
        let done = a99(&["tools", "--format", format, "--filter", "map"], b"");
        assert_eq!(done.json()[0].pointer(name).unwrap(), "map", "{format}");
    }
    let done = a99(&["tools", "--json", "--format", "mcp"], b"");
    assert_eq!(done.code, 2, "{done:?}");
    let done = a99(&["tools", "--filter", "filtre"], b"");
    assert!(done.err.contains("did you mean `filter`?"), "{done:?}");
}

#[test]
fn the_schema_of_programs_is_printed_and_written() {
    let folder = Sandbox::new("schema");
    let done = a99(&["schema"], b"");
    assert_eq!(done.code, 0, "{done:?}");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/program.schema.json");
    assert_eq!(done.out, std::fs::read_to_string(page).unwrap());
    let file = folder.path("strict.json");
    let done = a99(&["schema", "--strict", "-o", &file], b"");
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    let strict: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(strict["additionalProperties"], false);
    let done = a99(&["schema", "-o", &folder.path("none/a.json")], b"");
    assert_eq!(done.code, 2, "{done:?}");
}

#[test]
fn help_version_and_completions() {
    for args in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let done = a99(args, b"");
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{args:?}");
    }
    assert!(a99(&["run", "--help"], b"").out.contains("$replies"));
    let done = a99(&["completions", "bash"], b"");
    assert_eq!(done.code, 0);
    assert!(done.out.contains("_a99"));
}

#[test]
#[cfg(unix)]
fn a_reader_that_goes_away_is_no_panic() {
    let done = harness::unread(&["tools", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.err, "");
}

/// Runs a command on a program with a full device as standard output.
#[cfg(target_os = "linux")]
fn on_a_full_disk(args: &[&str]) -> std::process::Output {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    std::process::Command::new(env!("CARGO_BIN_EXE_a99"))
        .args(args)
        .stdin(std::process::Stdio::null())
        .stdout(full.expect("a device that is always full"))
        .output()
        .expect("the binary runs")
}

#[test]
#[cfg(target_os = "linux")]
fn a11_output_that_cannot_be_written_is_an_error() {
    let folder = Sandbox::new("full");
    let file = folder.file("answer.json", ANSWER);
    let artifact = folder.path("answer.a99b");
    assert_eq!(a99(&["compile", &file, "-o", &artifact], b"").code, 0);
    let laid_out = folder.file("laid_out.json", ANSWER);
    assert_eq!(a99(&["fmt", &laid_out], b"").code, 0);
    for args in [
        &["check", "--json", &file][..],
        &["run", &file],
        &["run", "--json", &file],
        &["tools"],
        &["tools", "--json"],
        &["schema"],
        &["inspect", &file],
        &["inspect", &artifact],
        &["verify", "--json", &artifact],
        &["completions", "bash"],
        &["check", "--format", "sarif", &file],
        &["explain"],
        &["explain", "--json", "json.syntax"],
        &["fmt", "--check", "--json", &laid_out],
        &["man"],
        &["docs"],
        &["--help"],
        &["--version"],
    ] {
        let done = on_a_full_disk(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains("cannot write the output"), "{args:?}: {said}");
        // A closed reader causes no message.
        let done = harness::unread(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        assert!(!done.err.contains("cannot write"), "{args:?}: {done:?}");
    }
    // Another failure still decides the exit code.
    let failing = folder.file("failing.json", FAILING);
    assert_eq!(
        on_a_full_disk(&["run", "--json", &failing]).status.code(),
        Some(1)
    );
}

#[test]
fn a11_findings_and_quotations_are_bounded() {
    let unknown: Vec<String> = (0..50_000)
        .map(|i| format!(r#"{{"op":"varSte{i}"}}"#))
        .collect();
    let program_of = |steps: &str| format!(r#"{{"op":"seq","steps":[{steps}]}}"#);
    let long = "x".repeat(1 << 20);
    let condition = "a + ".repeat(10 << 18);
    for steps in [
        unknown.join(","),
        format!(r#"{{"op":"{long}"}}"#),
        format!(r#"{{"op":"if","condition":"{condition} )","then":[]}}"#),
    ] {
        for args in [&["check"][..], &["check", "--json"], &["inspect", "--json"]] {
            let done = program(&program_of(&steps), args);
            let said = done.out.len() + done.err.len();
            // The listing is as long as the program's code.
            let most = if args[0] == "inspect" {
                16 << 20
            } else {
                128 << 10
            };
            assert!(said < most, "{args:?}: {said} bytes");
        }
    }
}
