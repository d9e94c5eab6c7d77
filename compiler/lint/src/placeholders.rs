//! Rules for placeholders of other systems: for templates, environments and secrets.
//!
//! Codes: `lint.code_as_text`.

use super::Rules;
use super::names::is_identifier;
use a99_core::diag::{codes, excerpt};
use a99_core::json::NodeId;

/// Words in the names of environment variables.
const SECRETS: &[&str] = &[
    "KEY", "TOKEN", "SECRET", "PASSWORD", "HOST", "URL", "USER", "ENV",
];

/// Objects that hold the environment in other systems.
const ENVIRONMENTS: &[&str] = &[
    "process.env",
    "os.environ",
    "os.getenv",
    "Deno.env",
    "import.meta.env",
    "env.",
    "secrets.",
    "ENV[",
    "$env:",
    "getenv(",
];

/// Opening delimiters of template languages, each with its closing one.
const SYNTAXES: &[(&str, &str)] = &[
    ("<%=", "%>"),
    ("<%", "%>"),
    ("{%", "%}"),
    ("[[", "]]"),
    ("%(", ")s"),
    ("#{", "}"),
    ("@{", "}"),
    ("\\(", ")"),
];

fn is_upper(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
}

fn names_a_secret(name: &str) -> bool {
    name.len() > 3
        && name.chars().all(is_upper)
        && SECRETS
            .iter()
            .any(|word| name.split('_').any(|part| part == *word))
}

/// The part of a text that the author was to fill in.
fn placeholder(text: &str) -> Option<&str> {
    // Every placeholder has one of these bytes; most texts have none.
    let marks = |b: u8| matches!(b, b'$' | b'<' | b'Y' | b'%' | b'.' | b'[' | b':' | b'(');
    if !text.bytes().any(marks) {
        return None;
    }
    if let Some(start) = ENVIRONMENTS.iter().find(|start| text.starts_with(**start)) {
        let rest = &text[start.len()..];
        return (!rest.contains(char::is_whitespace) && !rest.is_empty()).then_some(text);
    }
    for (at, _) in text.match_indices(['$', '<', 'Y', '%']) {
        let rest = &text[at..];
        let (open, close) = match rest.as_bytes() {
            [b'$', b'{', ..] => (2, "}"),
            [b'$', ..] => (1, ""),
            [b'%', ..] => (1, "%"),
            [b'<', ..] => (1, ">"),
            _ => (0, ""),
        };
        let name = &rest[open..];
        if open == 1 && rest.starts_with('<') {
            let Some((inner, _)) = name.split_once('>') else {
                continue;
            };
            let lower = inner.to_ascii_lowercase();
            let begins = [
                "your-", "your_", "your ", "insert ", "api-key", "api_key", "token",
            ];
            if begins.iter().any(|begin| lower.starts_with(begin)) {
                return Some(&rest[..inner.len() + 2]);
            }
            continue;
        }
        let end = name.find(|c| !is_upper(c)).unwrap_or(name.len());
        let after = &name[end..];
        let word = &name[..end];
        let is_yours = open == 0 && word.starts_with("YOUR_") && word.len() > 5;
        if is_yours || open > 0 && names_a_secret(word) && after.starts_with(close) {
            return Some(&rest[..open + end + close.len()]);
        }
    }
    None
}

/// A template hole of an address: `/:id`, `%s`, `{id}`.
pub(super) fn hole_of_address(text: &str) -> Option<&str> {
    let (_, path) = text.split_once("://")?;
    let word = |rest: &str| {
        rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len())
    };
    if let Some(at) = path.find("/:") {
        let end = word(&path[at + 2..]);
        let begins = path[at + 2..].starts_with(|c: char| c.is_ascii_alphabetic());
        return begins.then(|| &path[at + 1..at + 2 + end]);
    }
    if let Some(at) = path.find(['{', '}']) {
        let end = path[at..].find('}').map_or(path.len(), |end| at + end + 1);
        return Some(&path[at..end]);
    }
    let sign = ["%s", "%d"].iter().find_map(|sign| path.find(sign))?;
    Some(&path[sign..sign + 2])
}

impl<'a> Rules<'_, 'a> {
    /// Reports a placeholder for a secret or a setting; returns whether it did.
    pub(super) fn lint_placeholder(&mut self, node: NodeId, text: &str) -> bool {
        const MAX: usize = 200;
        if text.len() > MAX {
            return false;
        }
        let Some(part) = placeholder(text) else {
            return false;
        };
        let message = "nothing fills this in: it stays as it is written";
        let help = "there is no environment: let the caller hand it in as an argument, `args.apiKey`, \
                    or the host add it";
        self.found(codes::CODE_AS_TEXT, node, message, part, help);
        true
    }

    /// Reports holes of another template language, given the names of the variables; returns
    /// whether it did.
    pub(super) fn lint_syntax(&mut self, node: NodeId, text: &str, names: &[String]) -> bool {
        let Some((part, name)) = other_syntax(text, names) else {
            return false;
        };
        let message = "this is a hole of another template language: it stays as it is";
        let help = match name {
            Some(name) if is_identifier(&name) => format!("write `{{{{{name}}}}}`"),
            Some(name) => format!(
                "a hole is of letters, digits and `_`: write `{{{{{}}}}}`",
                name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
            ),
            None if part.starts_with("{%") || part.starts_with("<%") => {
                "there are no blocks: decide with `if` in a step before, and give the text in `vars`"
                    .to_owned()
            }
            None => match names.first() {
                Some(name) => format!("write `{{{{{name}}}}}`"),
                None => "write `{{name}}`, and `\"vars\": {\"name\": ...}`".to_owned(),
            },
        };
        self.found(codes::CODE_AS_TEXT, node, message, &excerpt(&part), help);
        true
    }
}

/// A hole of another template language, and the name in it if it is one of `names`.
fn other_syntax(text: &str, names: &[String]) -> Option<(String, Option<String>)> {
    let named = |inner: &str| {
        let word = inner
            .trim()
            .trim_start_matches(['.', '@', '$', '-', '=', ' '])
            .trim();
        names.iter().find(|name| *name == word).cloned()
    };
    // Most texts have none of these bytes.
    let marks = |b: &u8| matches!(b, b'<' | b'{' | b'[' | b'%' | b'#' | b'@' | b'$' | b'\\');
    if !text.bytes().any(|b| marks(&b)) {
        return None;
    }
    let opens =
        |pair: &[u8]| matches!(pair, b"<%" | b"{%" | b"[[" | b"%(" | b"#{" | b"@{" | b"\\(");
    let others = text.as_bytes().windows(2).any(opens);
    for (open, close) in SYNTAXES.iter().filter(|_| others) {
        let Some((_, rest)) = text.split_once(open) else {
            continue;
        };
        let Some((inner, _)) = rest.split_once(close) else {
            continue;
        };
        let block = open.contains('%') && !open.contains('(');
        let name = named(inner);
        if block || name.is_some() {
            return Some((format!("{open}{inner}{close}"), name));
        }
    }
    // Double braces with more than a name between them.
    for (at, _) in text.match_indices("{{") {
        let rest = &text[at + 2..];
        let (inner, close) = match rest.split_once("}}") {
            Some((inner, _)) => (inner, "}}"),
            None => match rest.split_once('}') {
                Some((inner, _)) => (inner, "}"),
                None => continue,
            },
        };
        let is_hole = !inner.is_empty()
            && inner
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if is_hole && close == "}}" {
            continue;
        }
        if let Some(name) = named(inner) {
            return Some((format!("{{{{{inner}{close}"), Some(name)));
        }
    }
    let signed = text.bytes().any(|b| matches!(b, b'$' | b'@' | b'#'));
    for name in names.iter().filter(|_| signed) {
        for (at, _) in text.match_indices(name.as_str()) {
            let mut before = text[..at].chars().rev();
            let (sign, word) = (before.next(), before.next());
            let starts = word.is_none_or(|c| !c.is_ascii_alphanumeric());
            let after = text[at + name.len()..].chars().next();
            let ends = after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
            if let Some(sign @ ('$' | '@' | '#')) = sign.filter(|_| ends && starts) {
                return Some((format!("{sign}{name}"), Some(name.clone())));
            }
        }
    }
    if !text.contains("{{") && !names.is_empty() {
        for part in ["%s", "%d", "%f", "{}", "{0}", "{1}", "$1", "$0"] {
            if text.contains(part) {
                return Some((part.to_owned(), None));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{hole_of_address, other_syntax, placeholder};

    #[test]
    fn placeholders_are_told_from_texts() {
        for (text, part) in [
            ("Bearer $API_KEY", "$API_KEY"),
            ("Bearer ${API_TOKEN}", "${API_TOKEN}"),
            ("process.env.HOME", "process.env.HOME"),
            ("YOUR_API_KEY", "YOUR_API_KEY"),
            ("token <your-token>", "<your-token>"),
            ("%API_KEY%", "%API_KEY%"),
        ] {
            assert_eq!(placeholder(text), Some(part), "{text}");
        }
        for text in [
            "$5",
            "US$100",
            "<b>",
            "YOU",
            "100% SURE",
            "env. of the town",
            "$name",
            "A < B",
        ] {
            assert_eq!(placeholder(text), None, "{text}");
        }
    }

    #[test]
    fn holes_of_addresses() {
        for (text, hole) in [
            ("https://a.example/users/:id", Some(":id")),
            ("https://a.example/users/{id}/x", Some("{id}")),
            ("https://a.example/?q=%s", Some("%s")),
            ("https://a.example:8080/a%20b?t=12:30", None),
            ("https://a.example/users", None),
        ] {
            assert_eq!(hole_of_address(text), hole, "{text}");
        }
    }

    #[test]
    fn other_template_languages_are_known() {
        let names = ["name".to_owned(), "user-name".to_owned()];
        for text in [
            "<%= name %>",
            "{% if x %}",
            "[[name]]",
            "%(name)s",
            "#{name}",
            "$name",
            "%s",
            "{{@name}}",
            "{{.name}}",
            "{{user-name}}",
            "{{name}",
            "{0}",
        ] {
            assert!(other_syntax(text, &names).is_some(), "{text}");
        }
        for text in [
            "{{name}}",
            "the name",
            "100 %",
            "{name: 1}",
            "a@b",
            "$names",
            "me@name.org",
        ] {
            assert_eq!(other_syntax(text, &names), None, "{text}");
        }
    }
}
