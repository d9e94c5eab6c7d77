//! Rule for arguments named within a longer text, where no atom resolves them.
//!
//! Codes: `lint.code_as_text`.

use super::Rules;
use a99_core::diag::{codes, excerpt};
use a99_core::json::NodeId;

/// The path of an argument within a text: `token` of `Bearer args.token`.
fn mentioned(text: &str) -> Option<(usize, &str)> {
    for (at, _) in text.match_indices("args.") {
        let begins = text[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '$' | '{'));
        if !begins {
            continue;
        }
        let rest = &text[at + "args.".len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.'));
        let path = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        let named = path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if named {
            return Some((at, path));
        }
    }
    None
}

impl Rules<'_, '_> {
    /// Reports a text that contains the path of an argument; returns whether it did.
    pub(super) fn lint_mention(&mut self, node: NodeId, text: &str) -> bool {
        if !text.contains("args.") || self.is_source() {
            return false;
        }
        let Some((at, path)) = mentioned(text) else {
            return false;
        };
        // The whole text is a path, or code that begins with one; or the argument is unknown.
        let behind = &text[at + "args.".len() + path.len()..];
        let whole = at == 0 && (behind.is_empty() || behind.starts_with(['(', '[', '.']));
        let root = path.split('.').next().unwrap_or(path);
        if whole || !self.is_argument(root) {
            return false;
        }
        let name = path.rsplit('.').next().unwrap_or(path);
        let tmpl = text.replacen(&format!("args.{path}"), &format!("{{{{{name}}}}}"), 1);
        let message = format!("`args.{path}` is not looked up within a longer text");
        let help = format!(
            "make the text in a step before: `{{\"op\": \"template\", \"tmpl\": \"{}\", \"vars\": {{\"{name}\": \
             \"args.{path}\"}}, \"result\": \"text\"}}`",
            excerpt(&tmpl)
        );
        self.found(codes::CODE_AS_TEXT, node, message, text, help);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::mentioned;

    #[test]
    fn paths_in_texts() {
        for (text, path) in [
            ("Bearer args.token", Some("token")),
            ("https://a.example/?q=args.q&x", Some("q")),
            ("Tell me about args.user.name.", Some("user.name")),
            ("kwargs.x", None),
            ("the args. And", None),
            ("{args.x}", None),
        ] {
            assert_eq!(mentioned(text).map(|found| found.1), path, "{text}");
        }
    }
}
