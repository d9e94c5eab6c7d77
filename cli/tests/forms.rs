//! Output formats of `a99`: findings as text, JSON and SARIF, colours, explanations.

mod harness;

use harness::{Sandbox, a99, program};
use serde_json::Value as Json;

/// A misspelt op on its third line.
const MISSPELT: &str = "{\"op\":\"seq\",\n \"steps\":[\n  {\"op\":\"varSte\"}]}";

/// A condition without an operand, after multi-byte characters.
const BAD_CONDITION: &str = "{\"op\":\"seq\",\"steps\":[\n\
    {\"op\":\"varSet\",\"key\":\"é\u{1F600}\",\"value\":1},{\"op\":\"if\",\"condition\":\"a > \",\"then\":[]}]}";

#[test]
fn findings_have_every_member() {
    for (text, code, line, column) in [
        (MISSPELT, "lint.unknown_atom", 3, 9),
        (BAD_CONDITION, "compile.bad_condition", 2, 64),
        ("{\"op\":\n [}", "json.syntax", 2, 3),
    ] {
        for args in [&["check", "--json"][..], &["check", "--format", "json"]] {
            let done = program(text, args);
            assert_eq!((done.code, done.err.as_str()), (3, ""), "{done:?}");
            let found = &done.json()["diagnostics"][0];
            assert_eq!(found["code"], code);
            assert_eq!(
                [&found["line"], &found["column"]],
                [line, column],
                "{found}"
            );
            let end = (found["end_line"].as_u64(), found["end_column"].as_u64());
            assert!(
                end >= (found["line"].as_u64(), found["column"].as_u64()),
                "{found}"
            );
            let span = found["span"].as_array().unwrap();
            assert_eq!(span.len(), 2, "{found}");
            for member in ["pointer", "severity", "message", "help"] {
                assert!(found[member].is_string(), "{member} {found}");
            }
        }
    }
    // The same holds for commands that need the program.
    for command in ["run", "inspect"] {
        let done = program(BAD_CONDITION, &[command, "--json"]);
        assert_eq!(done.json()["diagnostics"][0]["line"], 2, "{done:?}");
    }
}

/// Checks the written objects against SARIF 2.1.0, by sections of the standard.
fn assert_sarif(log: &Json) {
    // 3.13: sarifLog.
    assert_eq!(log["version"], "2.1.0");
    assert!(
        log["$schema"]
            .as_str()
            .is_some_and(|s| s.contains("sarif-2.1.0"))
    );
    for run in log["runs"].as_array().expect("3.13.4: runs") {
        // 3.14, 3.18, 3.19: run, tool, toolComponent.
        let driver = &run["tool"]["driver"];
        assert!(driver["name"].is_string(), "3.19.8: name");
        let rules: Vec<&str> = driver["rules"]
            .as_array()
            .expect("3.19.23: rules")
            .iter()
            .map(|rule| rule["id"].as_str().expect("3.49.3: id"))
            .collect();
        for invocation in run["invocations"].as_array().expect("3.14.11") {
            assert!(invocation["executionSuccessful"].is_boolean(), "3.20.14");
            for told in invocation["toolExecutionNotifications"]
                .as_array()
                .expect("3.20.21")
            {
                assert!(told["message"]["text"].is_string(), "3.58.5");
            }
        }
        assert_eq!(run["columnKind"], "unicodeCodePoints", "3.14.17");
        for result in run["results"].as_array().expect("3.14.23: results") {
            assert!(result["message"]["text"].is_string(), "3.27.11");
            assert!(rules.contains(&result["ruleId"].as_str().expect("3.27.5")));
            let levels = ["none", "note", "warning", "error"];
            assert!(levels.contains(&result["level"].as_str().expect("3.27.10")));
            let place = &result["locations"][0]["physicalLocation"];
            let uri = place["artifactLocation"]["uri"]
                .as_str()
                .expect("3.4.3: uri");
            assert!(uri.is_ascii() && !uri.contains(' '), "{uri}");
            if let Some(region) = place.get("region") {
                let at = |name: &str| region[name].as_u64();
                // 3.30: lines and columns count from 1, the end is not before the start.
                let is_text = at("startLine").is_some_and(|n| n > 0)
                    && at("startColumn").is_some_and(|n| n > 0)
                    && (at("endLine"), at("endColumn")) >= (at("startLine"), at("startColumn"));
                assert!(is_text || at("byteOffset").is_some(), "{region}");
            }
        }
    }
}

#[test]
fn sarif_has_what_the_standard_requires() {
    let folder = Sandbox::new("sarif");
    let good = folder.file("good.json", r#"{"op":"seq","steps":[]}"#);
    let warned = folder.file("a b.json", MISSPELT);
    let broken = folder.file("é.json", "{\"op\":");
    let damaged = folder.file("x.a99b", "\u{0}");
    let artifact = folder.path("y.a99b");
    assert_eq!(a99(&["compile", &good, "-o", &artifact], b"").code, 0);
    let mut bytes = std::fs::read(&artifact).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&artifact, bytes).unwrap();
    let args = [
        "check", "--format", "sarif", &good, &warned, &broken, &damaged, &artifact,
    ];
    let done = a99(&args, b"");
    assert_eq!((done.code, done.err.as_str()), (3, ""), "{done:?}");
    let log = done.json();
    assert_sarif(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.len() >= 4, "{results:?}");
    let text = log.to_string();
    for wanted in [
        "a%20b.json",
        "%C3%A9.json",
        "lint.unknown_atom",
        "artifact.",
        "did you mean",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let unknown = results.iter().find(|r| r["ruleId"] == "lint.unknown_atom");
    let region = &unknown.unwrap()["locations"][0]["physicalLocation"]["region"];
    assert_eq!(region["startLine"], 3, "{region}");
    // An unreadable file is reported, and the exit code is that of usage.
    let done = a99(&["check", "--format", "sarif", "/no/such.json", &good], b"");
    assert_eq!((done.code, done.err.as_str()), (2, ""), "{done:?}");
    assert_sarif(&done.json());
    let invocation = &done.json()["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert!(
        invocation["toolExecutionNotifications"]
            .to_string()
            .contains("no/such")
    );
    let done = a99(&["check", "--json", "--format", "sarif", &good], b"");
    assert_eq!(done.code, 2, "{done:?}");
}

#[test]
#[cfg(unix)]
fn names_that_are_no_text_are_shown_and_escaped() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Sandbox::new("names");
    let path = std::path::Path::new(&folder.path("")).join(OsStr::from_bytes(b"\xFFn\n.json"));
    std::fs::write(&path, MISSPELT).unwrap();
    let run = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_a99"))
            .args(args)
            .arg(&path)
            .output()
            .unwrap();
        (output.status.code(), output.stdout, output.stderr)
    };
    let (code, out, err) = run(&["check", "--format", "sarif"]);
    assert_eq!((code, err.as_slice()), (Some(3), &b""[..]));
    let log: Json = serde_json::from_slice(&out).unwrap();
    assert_sarif(&log);
    assert!(log.to_string().contains("%FFn%0A.json"), "{log}");
    let (code, _, err) = run(&["check"]);
    let err = String::from_utf8(err).expect("messages are UTF-8");
    assert_eq!(code, Some(3));
    assert!(err.contains("\u{FFFD}n"), "{err}");
    for command in [
        &["check", "--json"][..],
        &["run"],
        &["fmt"],
        &["inspect", "--json"],
    ] {
        let (code, ..) = run(command);
        assert!(matches!(code, Some(0 | 1 | 3)), "{command:?} {code:?}");
    }
}

#[test]
fn colours_are_for_terminals_or_on_demand() {
    let colored = |args: &[&str]| program(MISSPELT, args).err.contains('\u{1b}');
    assert!(!colored(&["check"]), "a pipe is no terminal");
    assert!(!colored(&["check", "--color", "never"]));
    assert!(colored(&["check", "--color", "always"]));
    assert!(colored(&["--color=always", "check"]));
    let done = program(MISSPELT, &["check", "--color", "always"]);
    assert!(
        done.err
            .contains("\u{1b}[1;33mwarning[lint.unknown_atom]\u{1b}[0m"),
        "{done:?}"
    );
    // JSON has no colours.
    let done = program(MISSPELT, &["check", "--json", "--color", "always"]);
    assert!(
        !done.out.contains('\u{1b}') && done.err.is_empty(),
        "{done:?}"
    );
    // Text of a program cannot set colours.
    let hostile = r#"{"op":"seq","steps":[{"op":"x\u001b[31m\nerror[a.b]: no"}]}"#;
    let done = program(hostile, &["check", "--color", "always"]);
    assert!(!done.err.contains("\u{1b}[31m"), "{done:?}");
    assert!(!done.err.contains("\u{1b}[1;31merror[a.b]"), "{done:?}");
    assert_eq!(program(MISSPELT, &["check", "--color", "often"]).code, 2);
}

#[test]
fn codes_are_explained() {
    let done = a99(&["explain", "lint.unknown_atom"], b"");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(done.out.contains("The atom is not known."), "{done:?}");
    assert!(done.out.contains("docs/errors.md"), "{done:?}");
    assert_eq!(a99(&["explain", "A99-W0201"], b"").out, done.out);
    assert_eq!(a99(&["explain", "LINT.unknown_atom"], b"").out, done.out);
    assert_eq!(
        a99(&["explain", "warning[lint.unknown_atom]:"], b"").out,
        done.out
    );
    let json = a99(&["explain", "a99-e0104", "--json"], b"").json();
    assert_eq!(json["code"], "compile.bad_condition");
    assert_eq!(json["alias"], "A99-E0104");
    for (wrong, near) in [
        ("lint.unknwon_atom", "lint.unknown_atom"),
        ("unknown_atom", "lint.unknown_atom"),
        ("fuel.exhasted", "fuel.exhausted"),
    ] {
        let done = a99(&["explain", wrong], b"");
        assert_eq!(done.code, 2, "{done:?}");
        assert!(
            done.err.contains(&format!("did you mean `{near}`?")),
            "{done:?}"
        );
    }
    let done = a99(&["explain", "no\u{1b}[2J"], b"");
    assert!(done.code == 2 && !done.err.contains('\u{1b}'), "{done:?}");
}

#[test]
fn every_code_of_the_page_is_explained() {
    let page = include_str!("../../docs/errors.md");
    let list = a99(&["explain", "--json"], b"").json();
    let list = list.as_array().unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let codes: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    assert!(codes.len() > 150, "{}", codes.len());
    let explained: Vec<&str> = list.iter().filter_map(|row| row["code"].as_str()).collect();
    assert_eq!(explained, codes);
    let text = a99(&["explain"], b"").out;
    assert!(codes.iter().all(|code| text.contains(code)));
}

#[test]
fn files_beside_programs_are_left_out_of_folders_only() {
    let folder = Sandbox::new("beside");
    folder.file("agent.json", r#"{"op":"seq","steps":[]}"#);
    let args = folder.file("args.json", r#"{"n": 1}"#);
    let done = a99(&["check", &folder.path("")], b"");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.err.contains("args.json: no program, left out"),
        "{done:?}"
    );
    let done = a99(&["check", "--json", &folder.path("")], b"");
    assert!(done.out.contains(r#""left_out":true"#), "{done:?}");
    let done = a99(&["check", "--format", "sarif", &folder.path("")], b"");
    assert_sarif(&done.json());
    // A named file must be a program, and a near miss gets a suggestion.
    assert_eq!(a99(&["check", &args], b"").code, 3);
    folder.file("nearly.json", r#"{"steps": []}"#);
    assert_eq!(a99(&["check", &folder.path("")], b"").code, 3);
    let only = Sandbox::new("beside-only");
    only.file("args.json", "{}");
    assert_eq!(a99(&["check", &only.path("")], b"").code, 2);
}
