//! The corpus of bad command lines and files: `tests/diagnostics/commands.jsonl`.
//!
//! Each line is a command line (`args`; `{dir}` is a folder with its `files`), standard input (by
//! default a program that returns its argument `n`), and the expected result: `exit`, the `code` of
//! `--json`, and texts in messages. A line with `needs` requires a binary with that feature.

mod harness;

use harness::{Sandbox, a99};
use serde_json::Value as Json;

const CORPUS: &str = include_str!("../../tests/diagnostics/commands.jsonl");

/// Default standard input.
const PROGRAM: &str = r#"{"op":"seq","inputSchema":{"type":"object","properties":{"n":{"type":"number"}}},"steps":[{"op":"varsImport","keys":["n"]},{"op":"return","schema":{"type":"object","properties":{"n":{}}}}]}"#;

/// Differences between the output and the expected result.
fn faults(line: &Json) -> Vec<String> {
    let text = |key: &str| line[key].as_str().unwrap_or_default();
    let list = |key: &str| -> Vec<String> {
        let items = line[key].as_array().into_iter().flatten();
        items
            .map(|item| item.as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let id = text("id");
    let folder = Sandbox::new(&format!("corpus-{id}"));
    for (name, text) in line["files"].as_object().into_iter().flatten() {
        folder.file(name, text.as_str().unwrap_or_default());
    }
    let dir = folder.path("").trim_end_matches('/').to_owned();
    let args: Vec<String> = list("args")
        .iter()
        .map(|arg| arg.replace("{dir}", &dir))
        .collect();
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    let stdin = line["stdin"].as_str().unwrap_or(PROGRAM).as_bytes();
    let mut faults = Vec::new();
    let done = a99(&args, stdin);
    let exit = line["exit"].as_i64();
    if Some(i64::from(done.code)) != exit {
        faults.push(format!(
            "{id}: exit {} instead of {exit:?}: {done:?}",
            done.code
        ));
    }
    let said = format!("{}{}", done.err, done.out);
    for told in list("told") {
        if !said.contains(&told) {
            faults.push(format!("{id}: `{told}` is not told: {said}"));
        }
    }
    // `--json` must stand before `--`: after it, it belongs to the guest's command.
    let at = args
        .iter()
        .position(|arg| *arg == "--")
        .unwrap_or(args.len());
    if !args.contains(&"--json") && !args.contains(&"--format") {
        args.insert(at, "--json");
        let done = a99(&args, stdin);
        let lines = done
            .out
            .lines()
            .filter_map(|line| serde_json::from_str::<Json>(line).ok());
        let codes: Vec<String> = lines
            .flat_map(|json| {
                let found = json["diagnostics"].as_array().cloned().unwrap_or_default();
                found.into_iter().chain([json["error"].clone()])
            })
            .filter_map(|found| found["code"].as_str().map(str::to_owned))
            .collect();
        if !codes.iter().any(|code| code == text("code")) {
            faults.push(format!("{id}: no code `{}`: {done:?}", text("code")));
        }
    }
    faults
}

#[test]
fn no_bad_command_line_passes_in_silence() {
    let lines: Vec<Json> = CORPUS
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert!(lines.len() >= 100, "{}", lines.len());
    let judged = lines.iter().filter(|line| {
        let is_there = match line["needs"].as_str() {
            None => true,
            Some("agent") => cfg!(feature = "agent"),
            Some(other) => panic!("{}: no feature `{other}` is known here", line["id"]),
        };
        // A binary with the sandbox has no missing feature.
        is_there && (cfg!(not(feature = "sandbox")) || line["code"] != "cli.missing_feature")
    });
    let faults: Vec<String> = judged.flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
