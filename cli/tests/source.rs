//! Programs in JavaScript, run through the commands.

mod harness;

use harness::{Done, a99_in};
use std::path::PathBuf;

const ORDER: &str = "export default function agent({ price, count = 1 }) {\n  \
                     if (count < 0) throw new Error(`count is ${count}`)\n  \
                     return { total: price * count }\n}\n";

/// A folder with the program in it.
struct Folder(PathBuf);

impl Folder {
    fn run(&self, args: &[&str]) -> Done {
        a99_in(&self.0, args)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("read")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn folder(name: &str) -> Folder {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).expect("the folder is made");
    let folder = Folder(path);
    folder.write("order.ajs", ORDER);
    folder
}

#[test]
fn sources_run_and_errors_have_lines() {
    let folder = folder("source-run");
    let done = folder.run(&["run", "order.ajs", "--args", r#"{"price": 4, "count": 3}"#]);
    assert_eq!(
        (done.code, done.out.trim()),
        (0, "{\n  \"total\": 12\n}"),
        "{done:?}"
    );

    let late = ["run", "order.ajs", "--args", r#"{"price": 4, "count": -1}"#];
    let done = folder.run(&late);
    assert_eq!(done.code, 1, "{done:?}");
    let place = "error[program.error]: count is -1\n  --> order.ajs:2:18 (Error, /steps/2/then/0";
    assert!(done.err.contains(place), "{}", done.err);

    let done = folder.run(&[&late[..], &["--json", "--trace", "trace.jsonl"]].concat());
    let error = &done.json()["error"];
    assert_eq!(
        (error["line"].as_u64(), error["column"].as_u64()),
        (Some(2), Some(18))
    );
    let trace = folder.read("trace.jsonl");
    let event = trace
        .lines()
        .find(|line| line.contains("/steps/0\""))
        .expect("an event");
    assert!(event.contains(r#""line":1,"column":"#), "{event}");
}

#[test]
fn sources_are_checked_inspected_and_compiled() {
    let folder = folder("source-check");
    let done = folder.run(&["inspect", "order.ajs"]);
    assert!(done.out.contains("/steps/3 3:3"), "{}", done.out);

    let done = folder.run(&["compile", "--emit", "json", "order.ajs"]);
    assert!(done.out.contains("\"op\": \"seq\""), "{done:?}");
    folder.write("order.json", &done.out);
    let args = ["--json", "--args", r#"{"price": 4, "count": 3}"#];
    let [source, json] = ["order.ajs", "order.json"].map(|name| {
        let done = folder.run(&[&["run", name][..], &args].concat()).json();
        (done["result"].clone(), done["fuel_used"].clone())
    });
    assert_eq!(source, json);

    let done = folder.run(&["compile", "order.ajs"]);
    assert_eq!(done.code, 0, "{done:?}");
    let done = folder
        .run(&[&["run", "order.a99b"][..], &args].concat())
        .json();
    assert_eq!((done["result"].clone(), done["fuel_used"].clone()), source);

    folder.write("bad.ts", "function agent({ n }) {\n  return n +\n}");
    folder.write(
        "worse.mjs",
        "export default ({ n }) => {\n  class A extends n {}\n}",
    );
    let done = folder.run(&["check", "bad.ts", "worse.mjs"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.err.contains("error[source.syntax]"), "{}", done.err);
    assert!(done.err.contains("--> worse.mjs:2:19"), "{}", done.err);
    assert!(
        done.err.contains("both classes stand in one block"),
        "{}",
        done.err
    );
}

#[test]
fn options_of_artifacts_are_not_for_json() {
    let folder = folder("source-emit");
    let done = folder.run(&["compile", "--emit", "json", "--strip", "order.ajs"]);
    assert_eq!(done.code, 2, "{done:?}");
    let done = folder.run(&["compile", "--emit", "json", "-o", "out.json", "order.ajs"]);
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    assert!(folder.read("out.json").contains("\"varsImport\""));
    let done = folder.run(&["fmt", "order.ajs"]);
    assert_eq!(folder.read("order.ajs"), ORDER);
    assert!(done.err.contains("only programs in JSON"), "{done:?}");
}

#[test]
fn programs_in_json_are_printed_as_sources() {
    let folder = folder("source-printed");
    let program = r#"{"op": "seq", "steps": [
        {"op": "mathCalc", "expr": "n * 2", "vars": {"n": "args.n"}, "result": "twice"},
        {"op": "return", "schema": {"type": "object", "properties": {"twice": {}}}}]}"#;
    folder.write("twice.json", program);
    let done = folder.run(&["fmt", "--to", "ajs", "twice.json"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(done.out.contains("let twice = n * 2\n"), "{}", done.out);
    folder.write("twice.ajs", &done.out);
    for name in ["twice.json", "twice.ajs"] {
        let done = folder.run(&["run", name, "--json", "--args", r#"{"n": 4}"#]);
        assert_eq!(done.json()["result"]["twice"].as_u64(), Some(8), "{done:?}");
    }

    let again = r#"{"op": "seq", "steps": [{"op": "constSet", "key": "k", "value": 1},
        {"op": "constSet", "key": "k", "value": 2}]}"#;
    folder.write("again.json", again);
    let done = folder.run(&["fmt", "--to", "ajs", "again.json"]);
    assert_eq!((done.code, done.out.as_str()), (3, ""), "{done:?}");
    assert!(done.err.contains("error[source.unsayable]"), "{}", done.err);
    assert!(done.err.contains("--> again.json:2:9"), "{}", done.err);
    assert_eq!(
        folder
            .run(&["fmt", "--to", "ajs", "--check", "again.json"])
            .code,
        2
    );
}

#[test]
fn errors_of_an_artifact_name_lines_of_its_source() {
    let folder = folder("source-artifact");
    assert_eq!(folder.run(&["compile", "order.ajs"]).code, 0);
    let args = r#"{"price": 4, "count": -1}"#;
    let done = folder.run(&["run", "order.a99b", "--json", "--args", args]);
    let error = &done.json()["error"];
    let place = (error["line"].as_u64(), error["column"].as_u64());
    assert_eq!(place, (Some(2), Some(18)), "{done:?}");
    let done = folder.run(&["verify", "order.a99b"]);
    assert!(done.err.contains("source matches code"), "{done:?}");
}
