//! Rules for template holes: names between the delimiters of a template language.
//!
//! Codes: `lint.code_as_text`.

use super::Rules;
use super::code_text::{Looks, first_name, is_known_path};
use a99_core::diag::{codes, excerpt};
use a99_core::json::NodeId;

/// Classifies the content of a hole: a name or a path.
pub(super) fn reference(inner: &str, knows: &impl Fn(&str) -> bool) -> Option<Looks> {
    const ARGUMENTS: &[&str] = &[
        "args.",
        "$args.",
        "$json.",
        "$input.",
        "inputs.",
        "input.",
        "params.",
        "arguments.",
        "$json.body.",
        "event.",
        "body.",
        "trigger.",
    ];
    let start = ARGUMENTS.iter().find(|start| inner.starts_with(**start));
    if let Some(rest) = start.map(|start| &inner[start.len()..])
        && is_known_path(rest, &|_| true)
        && !knows(first_name(inner).0)
    {
        return Some(Looks::Argument(rest.to_owned()));
    }
    is_known_path(inner, knows).then(|| Looks::Reference(inner.to_owned()))
}

/// Classifies a text that consists of one hole.
pub(super) fn only_hole(text: &str, knows: &impl Fn(&str) -> bool) -> Option<Looks> {
    let text = text.trim().trim_start_matches('=').trim();
    let holes = [("{{", "}}"), ("${", "}"), ("{{{", "}}}")];
    let mut inner = holes
        .iter()
        .filter_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close));
    reference(inner.next()?.trim(), knows)
}

/// A known name or path between single braces within a longer text.
fn single_hole<'t>(text: &'t str, knows: &impl Fn(&str) -> bool) -> Option<&'t str> {
    text.match_indices('{').find_map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let (inner, behind) = after.split_once('}')?;
        let doubled = before.ends_with(['{', '$', '#', '@', '%', '\\']) || behind.starts_with('}');
        (!doubled && is_known_path(inner, knows)).then_some(inner)
    })
}

impl Rules<'_, '_> {
    /// Reports `Summarise: {text}`, Python's syntax for a hole; returns whether it did.
    pub(super) fn lint_single_hole(&mut self, node: NodeId, text: &str) -> bool {
        if !text.contains('{') || self.is_source() {
            return false;
        }
        let knows = |name: &str| self.knows_name(name);
        let Some(path) = single_hole(text, &knows) else {
            return false;
        };
        // A program that replaces the hole by a method writes it twice.
        let hole = format!("{{{path}}}");
        if self.is_written_twice(&hole) {
            return false;
        }
        let name = path.rsplit('.').next().unwrap_or(path);
        let value = match self.vars.knows(first_name(path).0.as_bytes()) {
            true => path.to_owned(),
            false => format!("args.{path}"),
        };
        let tmpl = text.replacen(&hole, &format!("{{{{{name}}}}}"), 1);
        let message = format!(
            "nothing fills in `{}`: the text stays as it is",
            excerpt(&hole)
        );
        let help = format!(
            "make the text in a step before: `{{\"op\": \"template\", \"tmpl\": \"{}\", \"vars\": {{\"{name}\": \
             \"{value}\"}}, \"result\": \"text\"}}`",
            excerpt(&tmpl)
        );
        self.found(codes::CODE_AS_TEXT, node, message, &hole, help);
        true
    }

    /// Whether some text of the program consists of exactly this text.
    fn is_written_twice(&mut self, text: &str) -> bool {
        let doc = self.doc;
        if !self.spend_on(doc.root()) {
            return true;
        }
        let mut work = vec![doc.root()];
        while let Some(node) = work.pop() {
            if doc.str(node) == Some(text.as_bytes()) {
                return true;
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::single_hole;

    #[test]
    fn single_holes() {
        let knows = |name: &str| name == "user";
        for (text, hole) in [
            ("Hi {user}", Some("user")),
            ("Hi {user.name}!", Some("user.name")),
            ("Hi {{user}}", None),
            ("Hi ${user}", None),
            ("Hi {other}", None),
            ("{\"user\": 1}", None),
            ("{ user }", None),
        ] {
            assert_eq!(single_hole(text, &knows), hole, "{text}");
        }
    }
}
