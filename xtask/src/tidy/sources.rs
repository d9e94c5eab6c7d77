//! Rules for single files.

use std::path::Path;

/// Lines of a source file at most: what a reader can keep in mind.
const MAX_LINES: usize = 600;

/// Places that exist on one machine only. Written in two parts, so that this
/// file does not break its own rule.
const MACHINE: [(&str, &str); 7] = [
    ("/wo", "rk/"),
    ("/ho", "me/"),
    ("/ro", "ot/"),
    ("/tm", "p/"),
    ("/Us", "ers/"),
    ("sha", "red/spec"),
    ("sha", "red/conformance"),
];

/// Folders of the list that every guest has, and where they are a guest's.
const GUEST_FOLDERS: [&str; 3] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/t", "mp/"),
];
const GUEST_PATHS: [&str; 4] = [
    "sandbox/",
    "cli/src/named/",
    "cli/src/sandbox_args.rs",
    "cli/tests/named/",
];

/// Words that mark unfinished work.
const UNFINISHED: [(&str, &str); 2] = [("TO", "DO"), ("FIX", "ME")];

/// What is wrong with a file.
pub(crate) fn diagnostics(path: &str, text: &str) -> Vec<String> {
    let mut diagnostics = Vec::new();
    let mut found = |what: String| diagnostics.push(format!("{path}: {what}"));
    let extension = Path::new(path).extension().and_then(|e| e.to_str());
    let rust = extension == Some("rs");
    // Vectors and other data quote whatever they need.
    let prose = matches!(extension, Some("rs" | "md" | "toml" | "yml")) || path.starts_with(".ci/");
    if rust && text.lines().count() > MAX_LINES {
        found(format!("more than {MAX_LINES} lines"));
    }
    let in_machine = path.starts_with("vm/src/") && !path.starts_with("vm/src/driver");
    if in_machine && code_lines(text).any(|line| line.contains("tokio")) {
        found("tokio is named outside the driver".to_owned());
    }
    if path.ends_with("Cargo.toml") && !inherits_lints(path, text) {
        found("does not inherit the lints of the workspace".to_owned());
    }
    let in_guest = GUEST_PATHS.iter().any(|place| path.starts_with(place));
    for (a, b) in MACHINE.iter().filter(|_| prose) {
        let folder = format!("{a}{b}");
        let is_guests = in_guest && GUEST_FOLDERS.contains(&folder.as_str());
        if text.contains(&folder) && !is_guests {
            found(format!("names a place of one machine: {a}{b}"));
        }
    }
    for (a, b) in UNFINISHED.iter().filter(|_| rust) {
        if text.contains(&format!("{a}{b}")) {
            found(format!("unfinished work: {a}{b}"));
        }
    }
    diagnostics
}

/// Lines that are not comments.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
}

/// The root manifest defines the lints; the fuzz targets are a workspace of
/// their own, for another toolchain.
fn inherits_lints(path: &str, text: &str) -> bool {
    match path {
        "Cargo.toml" => text.contains("unsafe_code = \"deny\""),
        "fuzz/Cargo.toml" => true,
        _ => text.contains("[lints]\nworkspace = true"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files() {
        let long = "\n".repeat(MAX_LINES + 1);
        assert_eq!(diagnostics("core/src/x.rs", &long).len(), 1);
        assert!(diagnostics("tests/x.jsonl", &long).is_empty());
    }

    #[test]
    fn tokio_has_one_home() {
        let code = "use tokio::time;\n";
        assert_eq!(diagnostics("vm/src/exec/mod.rs", code).len(), 1);
        assert!(diagnostics("vm/src/driver.rs", code).is_empty());
        assert!(diagnostics("vm/src/exec/mod.rs", "// no tokio\n").is_empty());
    }

    #[test]
    fn manifests_inherit() {
        assert_eq!(diagnostics("x/Cargo.toml", "[package]\n").len(), 1);
        assert!(diagnostics("x/Cargo.toml", "[lints]\nworkspace = true\n").is_empty());
    }

    #[test]
    fn places_of_one_machine() {
        let text = format!("see {}{}me/x", "/ho", "me/");
        assert_eq!(diagnostics("README.md", &text).len(), 1);
        assert!(diagnostics("tests/x.jsonl", &text).is_empty());
    }
}
