//! The reference page of the command line is that of the command.
//!
//! `BLESS=1 cargo test -p a99-cli --test docs` writes it.

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
    // With other features there are other options.
    if cfg!(not(feature = "sandbox")) {
        let differing = page.lines().zip(done.out.lines()).find(|(a, b)| a != b);
        assert!(
            page == done.out,
            "write it again with BLESS=1: {differing:?}"
        );
    }
}

/// Each row of the page's tables of arguments says what the argument is for.
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
