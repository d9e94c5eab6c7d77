//! What the README promises: its first command, its example in Rust.

#![allow(clippy::print_stdout, reason = "the README prints")]

mod harness;

use agent99::Diagnostics;
use std::path::Path;

const README: &str = include_str!("../../README.md");

#[rustfmt::skip]
fn example() -> Result<(), Diagnostics> {
    // The README shows the lines between these marks.
    // <example>
    use agent99::{Engine, RunOptions, json};

    let engine = Engine::new();
    let agent = engine.compile(
        r#"{"op": "seq", "steps": [
            {"op": "varsImport", "keys": ["n"]},
            {"op": "mathCalc", "expr": "n * 2", "vars": {"n": "n"}, "result": "twice"},
            {"op": "return", "schema": {"type": "object", "properties": {"twice": {}}}}
        ]}"#,
    )?;
    let outcome = engine.run_sync(&agent, json!({"n": 21}), RunOptions::new());
    assert_eq!(outcome.result.to_json(), json!({"twice": 42}));
    println!("{} fuel", outcome.fuel_used);
    // </example>
    Ok(())
}

#[test]
fn the_example_is_this_code() {
    example().unwrap();
    let code = include_str!("readme.rs");
    let shown = code
        .lines()
        .skip_while(|line| line.trim() != "// <example>")
        .skip(1)
        .take_while(|line| line.trim() != "// </example>")
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(README.contains(&shown), "{shown}");
}

#[test]
fn the_first_command_runs() {
    let prefix = "cargo run -p a99-cli --release -- ";
    let line = README.lines().find_map(|line| line.strip_prefix(prefix));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let here = |arg: &str| match arg.strip_prefix('@') {
        Some(path) => format!("@{}", root.join(path).display()),
        None if arg.ends_with(".json") => root.join(arg).display().to_string(),
        None => arg.to_owned(),
    };
    let args: Vec<String> = line.unwrap().split(' ').map(here).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = harness::a99(&args, b"");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.json().get("total").is_some(), "{done:?}");
}
