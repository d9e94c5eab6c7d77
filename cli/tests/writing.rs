//! Commands for writing programs: `new`, `fmt`, `watch`, `repl`, `man`.

mod harness;

use harness::{Sandbox, a99, program};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// An unformatted program.
const MESSY: &str = "{\"op\":\"seq\",\"z\":1.50e2,\n\n\"steps\":[{\"op\":\"varSet\",\"key\":\"a\",\"value\":\"\\u0041\"}]}";

#[test]
fn a_new_program_runs_and_is_clean() {
    let folder = Sandbox::new("new");
    let forms = ["basic", "list", "model"].map(|template| [(template, "ts"), (template, "json")]);
    for (template, form) in forms.into_iter().flatten() {
        let dir = folder.path(&format!("{template}-{form}"));
        let words = [
            "new",
            &dir,
            "--template",
            template,
            "--form",
            form,
            "--json",
        ];
        let done = a99(&words, b"");
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
        let line = done.json()["run"].as_str().unwrap().to_owned();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[..2], ["a99", "run"], "{line}");
        let ran = a99(&words[1..], b"");
        assert_eq!(ran.code, 0, "{line} {ran:?}");
        assert!(
            ran.json().as_object().is_some_and(|o| !o.is_empty()),
            "{ran:?}"
        );
        let program = format!("{dir}/agent.{form}");
        let checked = a99(&["check", "--deny-warnings", &program], b"");
        assert_eq!(checked.code, 0, "{checked:?}");
        if form == "json" {
            let done = a99(&["fmt", "--check", &program], b"");
            assert_eq!(done.code, 0, "{done:?}");
        }
        let readme = std::fs::read_to_string(format!("{dir}/README.md")).unwrap();
        assert!(
            readme.contains(&format!("a99 run agent.{form} --args @args.json")),
            "{readme}"
        );
        // A second run overwrites nothing.
        let before = std::fs::read(&program).unwrap();
        let done = a99(&["new", &dir], b"");
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.err.contains("nothing is overwritten"), "{done:?}");
        assert_eq!(std::fs::read(&program).unwrap(), before);
    }
    let file = folder.file("file", "x");
    assert_eq!(a99(&["new", &file], b"").code, 2);
    let spaced = folder.path("it's here");
    let done = a99(&["new", &spaced], b"");
    assert!(
        done.code == 0 && done.err.contains(r"it'\''s here/agent.ts'"),
        "{done:?}"
    );
    assert_eq!(a99(&["new", "x", "--template", "none"], b"").code, 2);
}

#[test]
fn a_new_source_has_the_types_of_the_atoms() {
    let folder = Sandbox::new("new-source");
    let dir = folder.path("agent");
    assert_eq!(a99(&["new", &dir, "--template", "list"], b"").code, 0);
    let types = std::fs::read_to_string(format!("{dir}/agent99.d.ts")).unwrap();
    assert_eq!(a99(&["types", "-o", "-"], b"").out, types);
    let config = std::fs::read_to_string(format!("{dir}/tsconfig.json")).unwrap();
    assert!(config.contains("strict"));
}

#[test]
fn programs_are_laid_out_in_one_way() {
    let folder = Sandbox::new("fmt");
    let file = folder.file("a.json", MESSY);
    let done = a99(&["fmt", "--check", &file], b"");
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), MESSY);
    let done = a99(&["fmt", &file], b"");
    assert_eq!(done.code, 0, "{done:?}");
    let laid_out = std::fs::read_to_string(&file).unwrap();
    let expected = "{\n  \"op\": \"seq\",\n  \"z\": 1.50e2,\n  \"steps\": [{ \"op\": \"varSet\", \
                    \"key\": \"a\", \"value\": \"\\u0041\" }]\n}\n";
    assert_eq!(laid_out, expected);
    let done = a99(&["fmt", "--json", &file], b"");
    assert_eq!(done.json()["changed"], false, "{done:?}");
    assert_eq!(a99(&["fmt", "--check", &file], b"").code, 0);
    assert_eq!(program(MESSY, &["fmt"]).out, expected);
    // `fmt` formats programs that `check` refuses, but refuses other JSON.
    let unknown = "{\"op\":\"seq\",\"steps\":[{\"op\":\"nope\"}]}";
    assert_eq!(program(unknown, &["fmt"]).code, 0);
    for (text, told) in [
        ("{\"a\": 1}", "compile.bad_root"),
        ("[]", "compile.bad_root"),
        ("{\"op\": \"seq\",}", "json.syntax"),
        ("{\"op\": \"seq\", \"op\": \"seq\"}", "json.duplicate_key"),
    ] {
        let other = folder.file("other.json", text);
        let done = a99(&["fmt", &other], b"");
        assert_eq!(done.code, 3, "{done:?}");
        assert!(done.err.contains(told), "{done:?}");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), text);
    }
    // In a folder, `fmt` skips other JSON, and reports files that are not JSON.
    folder.file("other.json", "{\"a\": 1}");
    let done = a99(&["fmt", &folder.path("")], b"");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    folder.file("other.json", "{");
    assert_eq!(a99(&["fmt", &folder.path("")], b"").code, 3);
    assert_eq!(a99(&["fmt", "/no/such.json"], b"").code, 2);
    assert_eq!(a99(&["fmt", "-", "-"], b"").code, 2);
    assert_eq!(harness::endless(&["fmt", "-"]).code, 3);
}

/// Formatting keeps the bytecode, and is idempotent.
#[test]
fn examples_are_the_same_programs_when_laid_out() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let file = entry.unwrap().path().join("agent.json");
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        let laid_out = program(&text, &["fmt"]).out;
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&laid_out), read(&text), "{}", file.display());
        assert_eq!(program(&laid_out, &["fmt"]).out, laid_out);
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn a_change_is_looked_at_again() {
    let folder = Sandbox::new("watch");
    let file = folder.file(
        "agent.json",
        r#"{"op":"seq","steps":[{"op":"return","value":{"a":1}}]}"#,
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_a99"))
        .args(["watch", "--interval", "50ms", "run", &file, "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str::<serde_json::Value>(&line).expect("JSON")
    };
    assert_eq!(next()["result"]["a"], 1);
    folder.file(
        "agent.json",
        r#"{"op":"seq","steps":[{"op":"return","value":{"a":22}}]}"#,
    );
    assert_eq!(next()["result"]["a"], 22);
    // A file that is broken for a while does not end the watch.
    folder.file("agent.json", "{");
    assert_eq!(next()["error"]["code"], "program.rejected");
    folder.file(
        "agent.json",
        r#"{"op":"seq","steps":[{"op":"return","value":{"a":333}}]}"#,
    );
    assert_eq!(next()["result"]["a"], 333);
    child.kill().unwrap();
    child.wait().unwrap();
    let done = a99(&["watch", "run", "-"], b"");
    assert!(
        done.code == 2 && done.err.contains("cannot be watched"),
        "{done:?}"
    );
    assert_eq!(a99(&["watch"], b"").code, 2);
}

#[test]
fn lines_share_their_variables() {
    let lines = "n = 5\n1 + 2 * n\n_ > 3\n\
        function twice(x) {\n  return 2 * x\n}\nconst more = (x) => twice(x) + n\nmore(1)\n\
        let total = 0\nfor (const x of [1, 2]) total += x\n{ a: n }\n(await hash({ value: 'x' })).length\n\
        {\"op\":\"split\",\"str\":\"a,b\",\"sep\":\",\",\"result\":\"xs\"}\n\
        {\"op\":\"len\",\"list\":\"xs\"}\n\
        {\"op\":\"if\",\"condition\":\"n > 1\",\n \"then\":[\n{\"op\":\"varSet\",\"key\":\"y\",\"value\":\"n\"}]}\n\
        y + _\n{\"op\":\"return\",\"value\":{\"k\":{\"$expr\":\"ident\",\"name\":\"n\"}}}\n:clear\n:vars\n:quit\nignored\n";
    let done = a99(&["repl"], lines.as_bytes());
    let expected = "n = 5\n11\ntrue\n7\ntotal = 0\ntotal = 3\n{ \"a\": 5 }\n64\nxs = [ \"a\", \"b\" ]\n2\ny = 5\n7\n{ \"k\": 5 }\n";
    assert_eq!((done.code, done.out.as_str()), (0, expected), "{done:?}");
}

#[test]
fn a_line_that_fails_leaves_everything_as_it_was() {
    let lines = "n = 5\n1 +\n{\"op\":\"jsonParse\",\"str\":\"{\"}\n:nope\nn.x.y\n{\"op\":\"splt\"}\n[1,\n2]\n";
    let done = a99(&["repl"], lines.as_bytes());
    assert_eq!(done.code, 3, "the first failure counts: {done:?}");
    for told in [
        "source.syntax",
        "<repl>:1:",
        "program.error",
        "there is no command",
        "split",
    ] {
        assert!(done.err.contains(told), "{told}: {done:?}");
    }
    assert!(done.out.ends_with("[ 1, 2 ]\n"), "{done:?}");
    // An unknown name is refused at its place.
    let done = a99(&["repl"], b"n = 5\nn + foo\nn\n");
    assert_eq!(
        (done.code, done.out.as_str()),
        (3, "n = 5\n5\n"),
        "{done:?}"
    );
    assert!(
        done.err.contains("source.unknown_name") && done.err.contains("<repl>:1:5"),
        "{done:?}"
    );
    let forever = "{\"op\":\"while\",\"condition\":\"1 < 2\",\"body\":[{\"op\":\"varSet\",\"key\":\"i\",\"value\":1}]}\n7\n";
    let done = a99(&["repl", "--fuel", "5"], forever.as_bytes());
    assert_eq!((done.code, done.out.as_str()), (4, "7\n"), "{done:?}");
    let done = a99(
        &["repl", "--fuel", "1e12", "--timeout", "50ms"],
        forever.as_bytes(),
    );
    assert_eq!((done.code, done.out.as_str()), (5, "7\n"), "{done:?}");
}

#[test]
fn lines_of_json_for_programs() {
    let done = a99(&["repl", "--json"], b"n = 1\nn + 1\n\xC3\xA9\n1 +\n");
    let lines: Vec<serde_json::Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4, "{done:?}");
    assert_eq!(lines[0]["variables"]["n"], 1);
    assert_eq!(lines[1]["result"], 2);
    assert!(
        lines[1]["fuel_used"]
            .as_f64()
            .is_some_and(|fuel| fuel > 0.0)
    );
    assert_eq!(lines[3]["error"]["code"], "program.rejected");
    assert_eq!(a99(&["repl"], b"").code, 0);
    // Invalid UTF-8 and endless lines are errors.
    assert_eq!(a99(&["repl"], b"\xFF\n").code, 2);
    assert_eq!(harness::endless(&["repl"]).code, 2);
}

#[test]
fn scripts_answer_in_a_session() {
    let folder = Sandbox::new("repl-script");
    let script = folder.file("s.json", r#"{"llm": ["one", "two"], "store": {"k": 1}}"#);
    let lines = "{\"op\":\"llmPredict\",\"prompt\":\"a\"}\n{\"op\":\"llmPredict\",\"prompt\":\"a\"}\n\
        {\"op\":\"storeSet\",\"key\":\"k\",\"value\":2}\n{\"op\":\"storeGet\",\"key\":\"k\"}\n";
    let done = a99(&["repl", "--script", &script], lines.as_bytes());
    assert_eq!(
        (done.code, done.out.as_str()),
        (0, "\"one\"\n\"two\"\n2\n"),
        "{done:?}"
    );
}

#[test]
fn every_command_has_a_manual_page() {
    let done = a99(&["man"], b"");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(
        done.out.contains(".TH A99 1") && done.out.contains("watch"),
        "{done:?}"
    );
    let folder = Sandbox::new("man");
    let dir = folder.path("man1");
    assert_eq!(a99(&["man", &dir], b"").code, 0);
    for name in [
        "a99",
        "a99-run",
        "a99-check",
        "a99-keys-new",
        "a99-watch-run",
        "a99-repl",
    ] {
        let page = std::fs::read_to_string(format!("{dir}/{name}.1")).unwrap();
        assert!(
            page.contains(&format!(".TH {} 1", name.to_uppercase())),
            "{page}"
        );
    }
    let file = folder.file("file", "x");
    assert_eq!(a99(&["man", &file], b"").code, 2);
}
