//! Detects the format of non-JSON text that people and models write in place of JSON.

use crate::diag::{Diagnostic, codes, excerpt};

/// Characters of a text that detection examines.
const MOST: usize = 4096;

/// A detected format and advice for it.
struct Format {
    name: &'static str,
    help: &'static str,
}

const PROGRAM: &str = "a program is written in JSON: `{\"op\": \"seq\", \"steps\": [...]}`";

/// Detects the format of a text that does not start like JSON.
fn format_of(text: &str) -> Option<Format> {
    let head: String = text.chars().take(MOST).collect();
    let head = head.trim_start_matches('\u{feff}').trim_start();
    let first = head.lines().next().unwrap_or_default().trim_end();
    let words = [
        "const ",
        "let ",
        "var ",
        "function ",
        "async ",
        "import ",
        "export ",
        "class ",
        "return ",
        "await ",
        "if (",
        "for (",
        "while (",
        "console.",
        "module.exports",
        "\"use strict\"",
        "'use strict'",
    ];
    let python = [
        "def ", "from ", "import ", "print(", "for ", "while ", "with ", "lambda ", "#!",
    ];
    let ends_block = |line: &str| line.ends_with(':');
    let fence = head
        .lines()
        .any(|line| line.trim_start().starts_with("```"));
    let json_within = head.contains("{\"") || head.contains("{ \"") || head.contains("{\n");
    let format = if head.starts_with('<') {
        let html = head
            .get(..9)
            .is_some_and(|tag| tag.eq_ignore_ascii_case("<!doctype"))
            || head.starts_with("<html");
        Format {
            name: if html { "HTML" } else { "XML" },
            help: PROGRAM,
        }
    } else if fence
        || json_within
            && head.starts_with(|c: char| c.is_alphabetic() || c == '#')
            && !head.contains("=>")
            && !first.ends_with('{')
            && first.contains(' ')
    {
        Format {
            name: if fence {
                "Markdown"
            } else {
                "prose with JSON in it"
            },
            help: "give the JSON alone; `--lenient`, in Rust `Engine::compile_answer`, takes the \
                   program out of such a text",
        }
    } else if python.iter().any(|word| head.starts_with(word))
        && (ends_block(first)
            || head.starts_with("from ")
            || head.starts_with("print(")
            || head.starts_with("#!"))
    {
        Format {
            name: "Python",
            help: PROGRAM,
        }
    } else if words.iter().any(|word| head.starts_with(word))
        || first.contains("=>")
        || first.ends_with('{')
        || first.ends_with(';')
    {
        Format {
            name: "JavaScript",
            help: "a file that ends in `.ajs` is a program in a subset of JavaScript, \
                   `docs/source.md`; in JSON write `{\"op\": \"seq\", \"steps\": [...]}`",
        }
    } else if head.starts_with("---")
        || head.starts_with("- ")
        || head.starts_with("%YAML")
        || is_yaml_line(first)
    {
        Format {
            name: "YAML",
            help: "write the same as JSON: keys and texts in double quotes, lists in brackets",
        }
    } else if is_toml(head) {
        Format {
            name: "TOML",
            help: PROGRAM,
        }
    } else if is_csv(head) {
        Format {
            name: "a table (CSV)",
            help: "a program is written in JSON, `{\"op\": \"seq\", \"steps\": [...]}`; rows of \
                   data are arguments: make a list of objects of them",
        }
    } else if quotes_program(head) {
        Format {
            name: "a program in quotes",
            help: "leave the quotes around it out: a shell takes them off, a file keeps them",
        }
    } else if head.starts_with('(') {
        Format {
            name: "a list in parentheses",
            help: PROGRAM,
        }
    } else if head.starts_with(char::is_alphabetic) && first.split_whitespace().count() > 2 {
        Format {
            name: "prose",
            help: PROGRAM,
        }
    } else {
        return None;
    };
    Some(format)
}

/// Matches `name: value`, or `name:` alone.
fn is_yaml_line(line: &str) -> bool {
    let Some((key, rest)) = line.split_once(':') else {
        return false;
    };
    let word = |c: char| c.is_ascii_alphanumeric() || "_-$.".contains(c);
    !key.is_empty() && key.chars().all(word) && (rest.is_empty() || rest.starts_with(' '))
}

/// Matches a table's head, and keys with values below it.
fn is_toml(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default().trim();
    let name = first.trim_start_matches('[').trim_end_matches(']').trim();
    let word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(word);
    named && first.starts_with('[') && first.ends_with(']') && text.contains(" = ")
}

/// Matches rows of cells, each with as many commas or semicolons as the first.
fn is_csv(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    [',', ';', '\t'].into_iter().any(|sign| {
        let cells = first.matches(sign).count();
        let rows = lines.clone().take(3);
        cells > 0
            && !first.ends_with([sign, '{', '(', '['])
            && lines.clone().next().is_some()
            && rows.clone().all(|row| row.matches(sign).count() == cells)
    })
}

/// Matches `'{"op": ...}'`, a program in shell quotes.
fn quotes_program(text: &str) -> bool {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '`'));
    quote.is_some_and(|quote| {
        let inner = text[1..].trim_start();
        inner.starts_with('{') && text.trim_end().ends_with(quote)
    })
}

/// Reports a text that is in another format as a single finding.
pub(super) fn foreign(text: &[u8]) -> Option<Diagnostic> {
    let text = std::str::from_utf8(text).ok()?;
    let start = text.len() - text.trim_start_matches('\u{feff}').trim_start().len();
    let rest = &text[start..];
    let toml = is_toml(rest);
    // A text that starts like JSON is parsed as far as possible.
    if !toml
        && rest.starts_with(|c: char| "{[\"-0123456789".contains(c))
        && !rest.starts_with("---")
        && !rest.starts_with("- ")
    {
        return None;
    }
    let format = format_of(rest)?;
    let line = rest.lines().next().unwrap_or_default();
    let end = u32::try_from(start + line.len()).ok()?;
    let start = u32::try_from(start).ok()?;
    Some(
        Diagnostic::error(
            codes::JSON_SYNTAX,
            format!("this is {}, not JSON", format.name),
            "",
        )
        .with_span(start..end)
        .with_offending(excerpt(line))
        .with_help(format.help),
    )
}

#[cfg(test)]
mod tests {
    use super::foreign;

    #[test]
    fn other_formats_are_told() {
        for (text, name) in [
            ("# Plan\n\n```json\n{}\n```\n", "Markdown"),
            ("op: seq\nsteps:\n  - op: uuid\n", "YAML"),
            ("- op: uuid\n", "YAML"),
            ("id,name\n1,Ada\n", "a table (CSV)"),
            ("id;name\n1;Ada\n2;Bo\n", "a table (CSV)"),
            ("'{\"op\": \"seq\"}'\n", "a program in quotes"),
            ("---\nop: seq\n", "YAML"),
            ("const x = 1;", "JavaScript"),
            ("function agent({ a }) {\n  return { a };\n}", "JavaScript"),
            ("export default async ({ a }) => ({ a })", "JavaScript"),
            ("def f(x):\n    return x\n", "Python"),
            ("from x import y\n", "Python"),
            ("<!DOCTYPE html><p>", "HTML"),
            ("<program/>", "XML"),
            (
                "Here is the program: {\"op\": \"seq\"}",
                "prose with JSON in it",
            ),
            ("Sure, this is what you asked for.", "prose"),
            ("[[package]]\nname = \"x\"\n", "TOML"),
            ("[program]\nop = \"seq\"\n", "TOML"),
        ] {
            let found = foreign(text.as_bytes()).expect(text);
            assert_eq!(found.message, format!("this is {name}, not JSON"), "{text}");
        }
        for text in [
            "",
            "{op: 1}",
            "[1, 2",
            "\"a",
            "-1x",
            "tru",
            "NaN",
            "nope",
            "[[1], [2]",
        ] {
            assert!(foreign(text.as_bytes()).is_none(), "{text}");
        }
    }
}
