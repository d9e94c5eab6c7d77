//! Pretty-printer: indents compact JSON for people.
//!
//! The result is JSON for the same value: hidden characters, which only strings can contain, become
//! `\u` escapes (security P05). It works on the text and without recursion, so any depth is safe.

use a99_core::text::is_hidden;
use std::fmt::Write as _;

/// Deepest indented level; otherwise the indentation of a hostile result would dwarf the result.
const MAX_INDENT: usize = 32;

/// Compact JSON with line breaks and two spaces a level.
pub(crate) fn pretty(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = compact.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            push_escaped(&mut out, c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '[' | '{' => {
                out.push(c);
                if let Some(close) = chars.next_if(|c| matches!(c, ']' | '}')) {
                    out.push(close);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            ']' | '}' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

fn break_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth.min(MAX_INDENT) {
        out.push_str("  ");
    }
}

/// A character of a JSON string, hidden ones as `\uXXXX`.
fn push_escaped(out: &mut String, c: char) {
    if !is_hidden(c) {
        out.push(c);
        return;
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn layout() {
        assert_eq!(
            pretty(r#"{"a":[1,{}],"b":[],"c:d":"x,\"{"}"#),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": [],\n  \"c:d\": \"x,\\\"{\"\n}"
        );
        assert_eq!(pretty("\"\\\\\""), "\"\\\\\"");
        assert_eq!(pretty("7"), "7");
    }

    #[test]
    fn hidden_characters_are_escaped_and_the_value_stays() {
        let compact = "[\"a\u{202e}b\u{9b}31m\u{e0041}\",\"\\u001b\"]";
        let shown = pretty(compact);
        assert!(!shown.contains(['\u{202e}', '\u{9b}', '\u{e0041}']));
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(compact));
    }

    #[test]
    fn depth_costs_no_more_than_its_share() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert!(pretty(&deep).len() < deep.len() * 80);
    }
}
