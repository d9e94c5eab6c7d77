//! Worn-out phrases on pages and in the documentation of crates that users depend on.
//!
//! Help, error codes, atoms and builtins are checked through their generated pages.

use super::markdown::prose;
use std::borrow::Cow;

/// Phrases that hide a subject or replace a plain word.
const WORN: [&str; 9] = [
    "is none",
    "are none",
    "so many",
    "whoever",
    "nobody",
    "for want of",
    "what is there",
    "told",
    "tells",
];

const PUBLIC: [&str; 4] = [
    "agent99/src/",
    "runtime/driver/src/",
    "runtime/patterns/src/",
    "sandbox/api/src/",
];

/// Diagnostics about worn-out phrases of a file.
pub(crate) fn diagnostics(path: &str, text: &str) -> Vec<String> {
    let is_public = PUBLIC.iter().any(|folder| path.starts_with(folder));
    let text = if path.ends_with(".md") {
        Cow::Borrowed(text)
    } else if path.ends_with(".rs") && is_public {
        Cow::Owned(documentation(text))
    } else {
        return Vec::new();
    };
    let found = prose(&text).flat_map(|(line, text)| {
        let words = words(text);
        let worn = WORN
            .iter()
            .filter(move |phrase| words.contains(&format!(" {phrase} ")));
        worn.map(move |phrase| format!("{path}:{line}: say it plainly: `{phrase}`"))
    });
    found.collect()
}

/// The doc comments of a file as a page with the same line numbers.
fn documentation(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
        comment.unwrap_or_default()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The words of a line outside of code, in lower case, with a space around each.
fn words(line: &str) -> String {
    let outside: Vec<&str> = line.split('`').step_by(2).collect();
    let text = outside.join(" x ").to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worn_out_phrases_are_found() {
        let page = "# A\n\nThere Is  none.\n\n```\nnobody\n```\n\nThe `nobody` of a code span.\n";
        let found = ["docs/a.md:3: say it plainly: `is none`"];
        assert_eq!(diagnostics("docs/a.md", page), found);
        let code = "/// Tells the host.\n/// ```\n/// told();\n/// ```\nfn told() {} // told\n";
        let found = ["agent99/src/a.rs:1: say it plainly: `tells`"];
        assert_eq!(diagnostics("agent99/src/a.rs", code), found);
        assert_eq!(diagnostics("vm/src/a.rs", code), [""; 0]);
    }
}
