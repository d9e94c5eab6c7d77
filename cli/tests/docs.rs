//! The reference page of the command line matches the command.
//!
//! `BLESS=1 cargo test -p a99-cli --test docs` updates it.

mod harness;

use harness::a99;
use std::path::Path;

#[test]
fn the_page_is_up_to_date() {
    let done = a99(&["docs"], b"");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &done.out).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    // Other features give other options.
    if cfg!(not(feature = "sandbox")) {
        let differing = page.lines().zip(done.out.lines()).find(|(a, b)| a != b);
        assert!(
            page == done.out,
            "write it again with BLESS=1: {differing:?}"
        );
    }
}

/// Each row of the page's tables of arguments explains its argument.
#[test]
fn every_option_has_help() {
    let page = a99(&["docs"], b"").out;
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert!(rows.len() > 60, "{}", rows.len());
    for row in rows {
        let row = row.replace("\\|", " ");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(cells[2].len() > 8, "{row}");
    }
    for command in [
        "run", "check", "fmt", "new", "watch", "repl", "explain", "man", "tools",
    ] {
        assert!(page.contains(&format!("## `a99 {command}`")), "{command}");
        let help = a99(&["help", command], b"");
        assert!(help.code == 0 && help.out.contains("Usage:"), "{help:?}");
    }
}

/// Help fits a terminal of 80 columns, and explains the options.
#[test]
fn u7_help_fits_the_terminal() {
    for command in ["run", "check", "agent", "doctor"] {
        for flag in ["-h", "--help"] {
            let done = std::process::Command::new(env!("CARGO_BIN_EXE_a99"))
                .args([command, flag])
                .env("COLUMNS", "80")
                .output()
                .expect("the binary starts");
            let help = String::from_utf8(done.stdout).expect("UTF-8");
            let long = help.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "a99 {command} {flag}");
        }
    }
    let help = a99(&["run", "--help"], b"").out;
    for heading in ["Examples:", "Network and secrets:", "Limits:"] {
        assert!(help.contains(heading), "{heading}");
    }
}
