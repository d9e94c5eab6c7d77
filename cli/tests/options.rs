//! Options of `a99 run` that set limits, and their errors; answers of models; missing features.

mod harness;

use harness::{a99, program};

/// Returns its argument `n`.
const TYPED: &str = r#"{"op":"seq",
    "inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":9},
        "of":{"enum":["a","b"]}},"required":["n"]},
    "steps":[{"op":"varsImport","keys":["n"]},
    {"op":"return","schema":{"type":"object","properties":{"n":{}}}}]}"#;

/// Never ends by itself.
const FOREVER: &str = r#"{"op":"seq","steps":[{"op":"while",
    "condition":{"$expr":"literal","value":true},
    "body":[{"op":"varSet","key":"i","value":1}]}]}"#;

#[test]
fn arguments_are_checked_against_the_schema() {
    for (args, told) in [
        (
            r#"{"n": "five"}"#,
            r#"`/n`: expected number, found the string "five""#,
        ),
        (
            r#"{"n": 10}"#,
            "`/n`: expected a number of at most 9, found the number 10",
        ),
        ("{}", "the arguments: expected the member `n`, found none"),
        (
            r#"{"n": 1, "of": "c"}"#,
            r#"`/of`: expected one of "a", "b", found the string "c""#,
        ),
    ] {
        let done = program(TYPED, &["run", "--json", "--args", args]);
        assert_eq!((done.code, done.err.as_str()), (2, ""), "{done:?}");
        let error = &done.json()["error"];
        assert_eq!(error["code"], "args.invalid");
        let pinned = "Input validation failed: args do not match expected schema";
        assert_eq!(error["message"], pinned);
        assert_eq!(error["help"], told);
        let done = program(TYPED, &["run", "--args", args]);
        assert!(done.code == 2 && done.err.contains(told), "{done:?}");
    }
    assert_eq!(program(TYPED, &["run", "--args", r#"{"n": 1}"#]).code, 0);
}

#[test]
fn an_argument_that_is_not_declared_is_told() {
    let done = program(TYPED, &["run", "--args", r#"{"n": 1, "off": "a"}"#]);
    assert_eq!(done.code, 0, "{done:?}");
    let told = "warning[cli.undeclared_argument]: --args: the program's inputSchema declares no \
                argument `off`\n  = help: did you mean `of`?";
    assert!(done.err.contains(told), "{done:?}");
    // An argument that is given is not suggested.
    let done = program(TYPED, &["run", "--args", r#"{"n": 1, "m": 2}"#]);
    assert!(done.err.contains("help: it declares `"), "{done:?}");
    let open = TYPED.replace("\"required\"", "\"additionalProperties\":{},\"required\"");
    for (text, args) in [
        (TYPED, r#"{"n": 1, "of": "a"}"#),
        (&open, r#"{"n": 1, "off": "a"}"#),
    ] {
        let done = program(text, &["run", "--json", "--args", args]);
        assert_eq!(
            done.json()["diagnostics"].as_array().map(Vec::len),
            Some(0),
            "{done:?}"
        );
    }
}

#[test]
fn arguments_are_an_object() {
    for args in ["5", "[1]", "null", "\"x\"", "true"] {
        let done = program(TYPED, &["run", "--args", args]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
        assert!(
            done.err
                .contains("error[args.invalid]: --args: expected a JSON object")
        );
        let done = program(TYPED, &["run", "--json", "--args", args]);
        assert_eq!(done.json()["error"]["code"], "args.invalid");
    }
}

#[test]
fn an_option_for_an_op_that_is_not_there_is_refused() {
    for (option, value) in [
        ("--quota", "htpFetch=1"),
        ("--cost", "httpFech=1"),
        ("--atom-timeout", "httpfetch=5s"),
        ("--atom-timeout", "htttpFetch=none"),
    ] {
        let done = program(TYPED, &["run", option, value]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
        let told = [
            &format!("error[options.unknown_op]: {option}: "),
            "did you mean `httpFetch`?",
        ];
        assert!(told.iter().all(|text| done.err.contains(*text)), "{done:?}");
        let done = program(TYPED, &["run", "--json", option, value]);
        assert_eq!(done.json()["error"]["code"], "options.unknown_op");
        assert_eq!(done.json()["error"]["help"], "did you mean `httpFetch`?");
    }
    let done = program(TYPED, &["run", "--quota", "guard:split=1"]);
    assert_eq!(done.code, 2, "names of the engine's own are none: {done:?}");
}

#[test]
fn times_are_written_with_units() {
    for args in [
        &["--timeout", "50ms"][..],
        &["--timeout", "0.05"],
        &["--timeout=0.05s"],
        &["--timeout-ms", "50"],
    ] {
        let line = [&["run", "--fuel", "1e9", "--json"], args].concat();
        let done = program(FOREVER, &line);
        assert_eq!(done.code, 5, "{done:?}");
        assert_eq!(done.json()["error"]["code"], "time.run_timeout");
        assert!(
            done.json()["error"]["help"]
                .to_string()
                .contains("--timeout")
        );
    }
    for bad in ["0", "-1s", "5d", "soon", "nan"] {
        let joined = format!("--timeout={bad}");
        for line in [&["run", &joined][..], &["run", "--timeout", bad]] {
            let done = program(FOREVER, line);
            assert_eq!(done.code, 2, "{bad}");
            assert!(done.err.contains("expected a time above 0"), "{done:?}");
        }
    }
    let both = ["run", "--timeout", "1s", "--timeout-ms", "5"];
    assert_eq!(program(FOREVER, &both).code, 2);
    // The old form is accepted, but not in the help.
    assert!(!a99(&["run", "--help"], b"").out.contains("--timeout-ms"));
}

#[test]
fn the_time_of_an_atom_can_be_set() {
    for (given, code) in [
        ("varSet=5s", 0),
        ("varSet=none", 0),
        ("varSet=x", 2),
        ("varSet=0", 2),
        ("varSet", 2),
        ("=5s", 2),
    ] {
        let args = ["run", "--args", r#"{"n": 1}"#, "--atom-timeout", given];
        assert_eq!(program(TYPED, &args).code, code, "{given}");
    }
}

#[test]
fn limits_name_the_option_that_raises_them() {
    let hoard = r#"{"op":"seq","steps":[
        {"op":"varSet","key":"s","value":"0123456789abcdef"},
        {"op":"while","condition":{"$expr":"literal","value":true},
         "body":[{"op":"varSet","key":"s","value":{"$expr":"binary","op":"+",
            "left":{"$expr":"ident","name":"s"},"right":{"$expr":"ident","name":"s"}}}]}]}"#;
    let fetch = r#"{"op":"seq","steps":[{"op":"httpFetch","url":"https://a.test"}]}"#;
    for (text, args, code, option) in [
        (FOREVER, &["--fuel", "5"][..], 4, "--fuel N"),
        (
            hoard,
            &["--fuel", "1e9", "--heap-mib", "1"],
            6,
            "--heap-mib N",
        ),
        (FOREVER, &["--quota", "varSet=2"], 7, "--quota varSet=N"),
        (fetch, &[], 1, "--script FILE"),
    ] {
        let done = program(text, &[&["run"], args].concat());
        assert_eq!(done.code, code, "{done:?}");
        let help = done.err.lines().find(|line| line.starts_with("  = help: "));
        assert!(help.is_some_and(|help| help.contains(option)), "{done:?}");
        let done = program(text, &[&["run", "--json"], args].concat());
        let help = done.json()["error"]["help"].to_string();
        assert!(help.contains(option), "{done:?}");
    }
}

#[test]
fn a_run_without_a_store_is_told_so_at_vectors_too() {
    for op in ["storeVectorSearch", "storeQuery", "storeGet"] {
        let text = format!(r#"{{"op":"seq","steps":[{{"op":"{op}","vector":[1],"result":"r"}}]}}"#);
        let done = program(&text, &["run", "--json"]);
        let warnings = done.json()["warnings"].to_string();
        assert!(warnings.contains("No store was granted"), "{op}: {done:?}");
    }
}

#[test]
fn the_first_program_of_an_answer_is_taken() {
    let answer = "Sure! Here é is {it}:\n\n```json\n{\"op\": \"seq\", \"steps\": [\n\
        {\"op\": \"return\", \"value\": {\"a\": 1}}]}\n```\n\nAnother: {\"op\": \"seq\", \"steps\": []}";
    for args in [&["run", "--lenient"][..], &["check", "--lenient"]] {
        let done = program(answer, args);
        assert_eq!(done.code, 0, "{done:?}");
    }
    assert_eq!(
        program(answer, &["run", "--lenient"]).out,
        "{\n  \"a\": 1\n}\n"
    );
    let done = program(answer, &["run"]);
    assert!(
        done.code == 3 && done.err.contains("`--lenient` takes"),
        "{done:?}"
    );
    // Positions refer to the answer.
    let wrong = answer.replace("return", "retrun");
    let done = program(&wrong, &["check", "--lenient", "--json"]);
    assert_eq!(done.code, 3, "{done:?}");
    let found = &done.json()["diagnostics"][0];
    assert_eq!([&found["line"], &found["column"]], [5, 8], "{found}");
    let done = program(&wrong, &["check", "--lenient"]);
    assert!(done.err.contains("<stdin>:5:8 (/steps/0/op)"), "{done:?}");
    assert!(done.err.contains("5 | {\"op\": \"retrun\""), "{done:?}");
    let broken = answer.replace("}}]}", "}}]");
    let done = program(&broken, &["run", "--lenient", "--json"]);
    assert!(matches!(done.code, 0 | 3), "{done:?}");
    for nothing in ["", "I cannot do that.", "{}", "[1]"] {
        let done = program(nothing, &["run", "--lenient"]);
        assert_eq!(
            (done.code, done.out.as_str()),
            (3, ""),
            "{nothing}: {done:?}"
        );
    }
    let done = harness::endless(&["run", "--lenient", "-"]);
    assert_eq!(done.code, 3, "{done:?}");
}

#[test]
#[cfg(not(feature = "embed"))]
fn embeddings_that_are_not_in_this_binary_say_how_to_install_them() {
    let (path, program) = ("/no/such", r#"{"op": "seq", "steps": []}"#);
    for args in [
        &["model", "import", path, path][..],
        &["run", "--embed", path, "-"],
    ] {
        let done = a99(args, program.as_bytes());
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?} {done:?}");
        let install = "cargo install --path cli --features embed";
        assert!(done.err.contains(install), "{args:?} {done:?}");
        let done = a99(&[args, &["--json"]].concat(), program.as_bytes());
        let code = &done.json()["error"]["code"];
        assert_eq!(code, "cli.missing_feature", "{args:?}");
    }
}

#[test]
#[cfg(not(feature = "sqlite"))]
fn a_store_that_is_not_in_this_binary_says_how_to_install_it() {
    let program = br#"{"op": "seq", "steps": []}"#;
    let done = a99(&["run", "--store", "/no/such/a.db", "-"], program);
    assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
    let install = "cargo install --path cli --features sqlite";
    assert!(done.err.contains(install), "{done:?}");
    let done = a99(&["run", "--store", "/no/such/a.db", "-", "--json"], program);
    assert_eq!(done.json()["error"]["code"], "cli.missing_feature");
}

#[test]
#[cfg(not(feature = "postgres"))]
fn a_store_on_a_server_that_is_not_in_this_binary_says_how_to_install_it() {
    let program = br#"{"op": "seq", "steps": []}"#;
    let url = "postgres://ann:hunter2@db.example.com/agents";
    let done = a99(&["run", "--store", url, "-"], program);
    assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
    let install = "cargo install --path cli --features postgres";
    assert!(done.err.contains(install), "{done:?}");
    assert!(!done.err.contains("hunter2"), "{done:?}");
    let done = a99(&["run", "--store", url, "-", "--json"], program);
    assert_eq!(done.json()["error"]["code"], "cli.missing_feature");
}

#[test]
#[cfg(not(feature = "sandbox"))]
fn what_is_not_in_this_binary_says_how_to_install_it() {
    for args in [
        &["sandbox"][..],
        &["sandbox", "exec", "--", "ls"],
        &["sandbox", "--help"],
        &["run", "--sandbox", "/no/such.json"],
    ] {
        let done = a99(args, b"");
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?} {done:?}");
        let install = "cargo install --path cli --features sandbox";
        assert!(done.err.contains(install), "{args:?} {done:?}");
        let done = a99(&[args, &["--json"]].concat(), b"");
        assert_eq!(
            done.json()["error"]["code"],
            "cli.missing_feature",
            "{args:?}"
        );
    }
}

/// `--now` is also the time for expiry in a script's store.
#[test]
fn the_store_of_a_script_has_the_time_that_is_set() {
    const KEPT: &str = r#"{"op":"seq","steps":[
        {"op":"storeSet","key":"k","value":1,"ttlMs":1000},
        {"op":"storeGet","key":"k","result":"k"},
        {"op":"return","schema":{"type":"object","properties":{"k":{}}}}]}"#;
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script.json");
    let script = script.to_str().expect("a path");
    // The script's time counts as well; the option wins.
    for (text, now) in [
        (r#"{"store": {}}"#, "2020-01-01T00:00:00Z"),
        (r#"{"store": {}, "clock": 1e12}"#, "2020-01-01T00:00:00Z"),
        (r#"{"store": {}, "clock": 1e12}"#, ""),
    ] {
        std::fs::write(script, text).expect("written");
        let mut args = vec!["run", "--json", "--script", script];
        if !now.is_empty() {
            args.extend(["--now", now]);
        }
        let done = program(KEPT, &args);
        assert_eq!(done.json()["result"]["k"], 1, "{text} {now}: {done:?}");
    }
}
