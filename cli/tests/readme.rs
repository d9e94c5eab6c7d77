//! README: its first command runs. `pages.rs` runs its code, the doctests of `agent99` its Rust.

mod harness;

use std::path::Path;

const README: &str = include_str!("../../README.md");

#[test]
fn the_first_command_runs() {
    let prefix = "cargo run -p a99-cli -- ";
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
