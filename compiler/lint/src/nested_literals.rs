//! Rules for nested literals: data inside a literal, and nodes that are never evaluated.
//!
//! Codes: `lint.name_as_text`, `lint.unresolved_node`.

use super::Rules;
use super::comparisons::test_of_query;
use super::kinds::{Holds, Members};
use a99_core::builtins;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use smallvec::{SmallVec, smallvec};

/// Lists and objects within a literal that are checked.
const MOST: usize = 256;

/// Members whose texts may contain dots: the type of an event, a path of another system.
const WORDS: &[&[u8]] = &[
    b"type",
    b"event",
    b"kind",
    b"topic",
    b"name",
    b"key",
    b"id",
    b"code",
    b"action",
    b"status",
    b"channel",
    b"scope",
    b"permission",
    b"path",
    b"field",
    b"by",
    b"orderBy",
    b"sort",
    b"file",
    b"url",
    b"host",
];

impl Rules<'_, '_> {
    /// Checks a literal without nodes, and the lists and objects in it.
    pub(super) fn on_data(&mut self, node: NodeId) {
        let doc = self.doc;
        let mut work: SmallVec<[NodeId; 8]> = smallvec![node];
        let mut seen = 0;
        while let Some(node) = work.pop() {
            // A program within the program is checked when it is compiled.
            if doc.get(node, "op").is_some() && doc.get(node, "steps").is_some() {
                if seen == 0 {
                    self.on_literal(node);
                }
                seen += 1;
                continue;
            }
            self.on_literal(node);
            seen += 1;
            if seen > MOST || !self.spend_on(node) {
                return;
            }
            let is_part = |n: &NodeId| matches!(doc.kind(*n), Kind::Array | Kind::Object);
            work.extend(doc.elements(node).filter(is_part));
            work.extend(doc.members(node).map(|(_, n)| n).filter(is_part));
        }
    }

    /// Reports a path from a variable inside a list or an object, which stays a text.
    ///
    /// A text with dots may be plain data. It is a path if the member is known to exist, has its
    /// name as the key, or belongs to the item of a loop.
    pub(super) fn lint_inner_path(&mut self, key: Option<&[u8]>, node: NodeId, shown: &str) {
        let Some((root, rest)) = shown.split_once('.') else {
            return;
        };
        if self.is_source() || !super::inputs::is_path(shown) || super::names::is_file(rest) {
            return;
        }
        if !self.vars.knows(root.as_bytes()) {
            return;
        }
        let caught = self.caught.contains(&root.as_bytes());
        let mut sure = true;
        let mut holds = self.holds_of_name(root.as_bytes());
        for part in rest.split('.') {
            let is_open = match holds {
                Holds::Any | Holds::Answered | Holds::Object(Members::Unknown) => true,
                Holds::Object(Members::Written(node)) => self.doc.is_empty(node),
                _ => false,
            };
            sure &= !is_open;
            match self.member_held(holds, part) {
                Some(next) if !builtins::is_forbidden(part.as_bytes()) => holds = next,
                _ => return,
            }
        }
        let last = rest.rsplit('.').next().unwrap_or(rest);
        let is_item = self.lint.items.contains(&root.as_bytes())
            && key.is_some_and(|key| !WORDS.contains(&key));
        let is_message = caught && rest == "message";
        if !sure && !is_item && !is_message && key != Some(last.as_bytes()) {
            return;
        }
        let place = match key {
            Some(_) => "an object",
            None => "a list",
        };
        let message = format!("inside {place} `\"{}\"` is a text, no path", excerpt(shown));
        let path = if is_message { root } else { shown };
        let help = format!("write `{}`", self.node_for(path));
        self.found(codes::NAME_AS_TEXT, node, message, shown, help);
    }

    /// Help for a condition that is data: a step, a store query, a list.
    pub(super) fn help_for_data(&self, node: NodeId) -> String {
        let doc = self.doc;
        let side = |node: Option<NodeId>| -> Option<String> {
            match doc.kind(node?) {
                Kind::String(text) => Some(Self::shown(text)),
                Kind::Array | Kind::Object => None,
                _ => Some(self.written_at(node?, None)),
            }
        };
        // Conditions have operators only.
        let comparison =
            |word: &str| test_of_query(word).filter(|sign| !matches!(*sign, "in" | "not-in"));
        let of_step = || {
            let op = super::text_of(doc, doc.get(node, "op")?)?;
            let sign = match op.as_str() {
                "neq" => "!=",
                "ge" => ">=",
                "le" => "<=",
                "and" | "&&" => "&&",
                "or" | "||" => "||",
                op => comparison(op)?,
            };
            let of = |names: [&str; 2]| {
                let node = names.iter().find_map(|name| doc.get(node, name));
                side(node)
            };
            Some(format!(
                "{} {sign} {}",
                of(["a", "left"])?,
                of(["b", "right"])?
            ))
        };
        let of_query = || {
            let mut members = doc.members(node);
            let (name, test) = members.next().filter(|_| doc.members(node).len() == 1)?;
            let (sign, value) = doc.members(test).next()?;
            let sign = comparison(&Self::shown(sign))?;
            Some(format!(
                "{} {sign} {}",
                Self::shown(name),
                side(Some(value))?
            ))
        };
        let of_list = || {
            let parts: Option<Vec<String>> = doc.elements(node).map(|n| side(Some(n))).collect();
            let parts = parts.filter(|parts| parts.len() == 3)?;
            Some(parts.join(" "))
        };
        match of_step().or_else(of_query).or_else(of_list) {
            Some(text) => format!(
                "write the text `\"{}\"`, or an expression node",
                excerpt(&text)
            ),
            None => "write a text, as in `n > 3`, or an expression node".to_owned(),
        }
    }

    /// Reports nodes in a list or object that is not an expression node itself: they stay data.
    pub(super) fn lint_held_node(&mut self, node: NodeId) {
        let doc = self.doc;
        let help = match doc.kind(node) {
            Kind::Array => "write `{\"$expr\": \"array\", \"elements\": [...]}`",
            Kind::Object if !self.is_expr(node) && doc.get(node, "$kind").is_none() => {
                "write `{\"$expr\": \"object\", \"properties\": [{\"key\": \"name\", \"value\": ...}]}`"
            }
            _ => return,
        };
        if !self.facts.has_nested(node) {
            return;
        }
        let message = "in an expression a list or object is taken as written: the node in it stays \
                       data";
        self.found(codes::UNRESOLVED_NODE, node, message, "", help);
    }
}
