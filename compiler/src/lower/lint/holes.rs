//! Holes: names between the signs of a template language, alone in a text.

use super::code_text::{Looks, first_name, is_known_path};

/// What a name or a path between the signs of a hole names.
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

/// A text that is a hole with one name, and nothing beside it.
pub(super) fn only_hole(text: &str, knows: &impl Fn(&str) -> bool) -> Option<Looks> {
    let text = text.trim().trim_start_matches('=').trim();
    let holes = [("{{", "}}"), ("${", "}"), ("{{{", "}}}")];
    let mut inner = holes
        .iter()
        .filter_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close));
    reference(inner.next()?.trim(), knows)
}
