//! Rules for parts: items of lists and members of objects, where an input takes texts.
//!
//! Codes: `lint.dropped_result`, `lint.wrong_kind`.

use super::Rules;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomInput, JsonKinds};

/// Parts of an input that are checked.
const MOST: usize = 64;

impl Rules<'_, '_> {
    /// Reports header fields, words of a command or member names that are not texts.
    pub(super) fn lint_parts(&mut self, op: &str, input: &AtomInput, node: NodeId) {
        // `join` converts other kinds to text.
        if input.parts != JsonKinds::STRING || op == "join" {
            return;
        }
        let doc = self.doc;
        let items = doc.elements(node).map(|part| (None, part));
        let members = doc.members(node).map(|(name, part)| (Some(name), part));
        for (name, part) in items.chain(members).take(MOST) {
            let (found, help) = match doc.kind(part) {
                Kind::String(_) | Kind::Null => continue,
                Kind::Number(n) => (
                    format!("the number {n}"),
                    format!("write it in quotes: `\"{n}\"`"),
                ),
                Kind::Bool(b) => (b.to_string(), format!("write it in quotes: `\"{b}\"`")),
                Kind::Object
                    if self.is_expr(part) || self.is_arg(part) || self.is_context(part) =>
                {
                    continue;
                }
                Kind::Object => (
                    "an object".to_owned(),
                    "write a text; `jsonStringify {value, result}` makes one of an object"
                        .to_owned(),
                ),
                Kind::Array => {
                    let mut inner = doc.elements(part);
                    let only = inner.next().and_then(|n| super::text_of(doc, n));
                    let help = match (only, inner.next()) {
                        (Some(text), None) => {
                            format!("write the text itself: `\"{}\"`", excerpt(&text))
                        }
                        _ if name.is_none() => "put its items into the list around it".to_owned(),
                        _ => "write one text; several values stand in it with commas between"
                            .to_owned(),
                    };
                    ("a list".to_owned(), help)
                }
            };
            let what = match name {
                Some(name) => format!("`{}`", excerpt(&Self::shown(name))),
                None => "an item".to_owned(),
            };
            let message = format!(
                "{what} in `{}` of `{op}` is a text, and this is {found}",
                input.name
            );
            self.found(codes::WRONG_KIND, part, message, "", help);
        }
    }

    /// Reports a variable that is set to itself.
    pub(super) fn lint_itself(&mut self, step: NodeId) {
        let doc = self.doc;
        let text = |key: &str| doc.get(step, key).and_then(|n| doc.str(n));
        let (Some(key), Some(value)) = (text("key"), text("value")) else {
            return;
        };
        let own = || self.own_variable(key);
        if key != value || self.is_source() || !own().is_some_and(|id| self.vars.is_bound(id)) {
            return;
        }
        let shown = Self::shown(key);
        let message = format!(
            "this sets `{}` to itself, which changes nothing",
            excerpt(&shown)
        );
        let help = "write the other name, or remove the step";
        self.found(codes::DROPPED_RESULT, step, message, &shown, help);
    }
}
