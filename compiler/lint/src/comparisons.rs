//! Rules for atoms that compare or test: comparisons with a constant result.
//!
//! Codes: `lint.constant_condition`, `lint.name_as_text`, `lint.unknown_member`, `lint.wrong_kind`,
//! `lint.wrong_value`.

use super::Rules;
use super::kinds::{Holds, Items, Members};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// The tests of `storeQuery`, with their names in other stores and formats.
const TESTS: &[(&str, &[&str])] = &[
    (">", &["$gt", "gt", ">"]),
    (">=", &["$gte", "gte", ">="]),
    ("<", &["$lt", "lt", "<"]),
    ("<=", &["$lte", "lte", "<="]),
    ("!=", &["$ne", "ne", "$neq", "!="]),
    ("==", &["$eq", "eq", "==", "="]),
    ("in", &["$in"]),
    ("not-in", &["$nin"]),
];

/// The test of `storeQuery` for a name of another store.
pub(super) fn test_of_query(word: &str) -> Option<&'static str> {
    let row = TESTS.iter().find(|row| row.1.contains(&word))?;
    Some(row.0)
}

impl<'a> Rules<'_, 'a> {
    /// Checks a step of `eq`, `neq`, `gt`, `lt`, `and`, `or` or `not`.
    pub(super) fn lint_logic(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let side = |key: &str| doc.get(step, key);
        match op {
            "eq" | "neq" | "gt" | "lt" => {
                let (Some(a), Some(b)) = (side("a"), side("b")) else {
                    return;
                };
                self.lint_sides(op, a, b);
            }
            "and" | "or" => {
                for node in [side("a"), side("b")].into_iter().flatten() {
                    self.lint_truth(op, node);
                }
            }
            _ => {
                if let Some(node) = side("value") {
                    self.lint_truth(op, node);
                }
            }
        }
    }

    /// Reports operands that are never equal or have no order.
    fn lint_sides(&mut self, op: &str, a: NodeId, b: NodeId) {
        let order = matches!(op, "gt" | "lt");
        let (left, right) = (self.holds_of_value(a), self.holds_of_value(b));
        for (node, holds, other_node, other) in [(a, left, b, right), (b, right, a, left)] {
            let written = matches!(self.doc.kind(node), Kind::Number(_) | Kind::Bool(_));
            if written || !order && self.lint_choice_value(holds, other_node) {
                continue;
            }
            let help = match (holds, other) {
                (Holds::List(_), Holds::Number) if order => {
                    "compare its length: `len {list, result}` before"
                }
                (Holds::List(_), Holds::Number | Holds::Text | Holds::Made) => {
                    "compare one item, or ask `xs.includes(x)` in a condition"
                }
                (Holds::Object(_), Holds::Number | Holds::Text | Holds::Made) => {
                    "compare one of its members"
                }
                (Holds::Bool, Holds::Text) => "write `true` or `false` without quotes",
                (Holds::Text | Holds::OneOf(_), Holds::Bool) => "compare it with a text",
                (Holds::Text | Holds::OneOf(_), Holds::Number) if order => {
                    "compare a number, or its length: `len {list, result}` before"
                }
                _ => continue,
            };
            let shown = super::text_of(self.doc, node).unwrap_or_default();
            // A literal text is not the subject of the finding: the other side is checked.
            if self
                .doc
                .str(node)
                .is_some_and(|text| self.holds_of_path(text).is_none())
            {
                continue;
            }
            let message = format!(
                "`{}` is {}, which is compared with {}",
                excerpt(&shown),
                holds.words(),
                other.words()
            );
            return self.found(codes::CONSTANT_CONDITION, node, message, &shown, help);
        }
    }

    /// Reports a text that the schema of the other side does not list; returns whether it did.
    fn lint_choice_value(&mut self, holds: Holds, other: NodeId) -> bool {
        let doc = self.doc;
        let (Holds::OneOf(schema), Some(text)) = (holds, doc.str(other)) else {
            return false;
        };
        if !self.is_plain_text(text) {
            return false;
        }
        let Some((help, shown)) = self.choice_help(schema, text) else {
            return false;
        };
        let message = format!(
            "this is never \"{}\": its schema lists other values",
            excerpt(&shown)
        );
        self.found(codes::CONSTANT_CONDITION, other, message, &shown, help);
        true
    }

    /// The message and help for a text that a schema does not list; `None` if it does.
    pub(super) fn choice_help(&mut self, schema: NodeId, text: &[u8]) -> Option<(String, String)> {
        let doc = self.doc;
        let values = doc.get(schema, "enum")?;
        if doc
            .elements(values)
            .any(|value| doc.str(value) == Some(text))
        {
            return None;
        }
        let names = doc
            .elements(values)
            .filter_map(|value| super::text_of(doc, value));
        let names: Vec<String> = names.collect();
        let shown = Self::shown(text);
        let help = match self.nearest(&shown, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `'{near}'`?"),
            None => format!("compare it with one of {}", excerpt(&names.join(", "))),
        };
        Some((help, shown))
    }

    /// Reports an operand whose truth is constant.
    fn lint_truth(&mut self, op: &str, node: NodeId) {
        let doc = self.doc;
        let Some(text) = doc.str(node) else { return };
        let shown = Self::shown(text);
        if matches!(text, b"true" | b"false" | b"True" | b"False") && !self.vars.knows(text) {
            let message = format!("\"{shown}\" is a text, which counts as true");
            let help = format!("write `{}` without quotes", shown.to_ascii_lowercase());
            return self.found(codes::CONSTANT_CONDITION, node, message, &shown, help);
        }
        // Testing an optional value is valid.
        let is_sure = self.vars.knows(text);
        let holds = self.holds_of_value(node);
        if !is_sure || !matches!(holds, Holds::List(_)) {
            return;
        }
        let message = format!(
            "`{}` is a list, which counts as true even if it is empty: `{op}` is always the same",
            excerpt(&shown)
        );
        let help = "count its items before: `len {list, result}`";
        self.found(codes::CONSTANT_CONDITION, node, message, &shown, help);
    }

    /// Reports unknown members that `pick` and `omit` name.
    pub(super) fn lint_picked(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let (Some(obj), Some(keys)) = (doc.get(step, "obj"), doc.get(step, "keys")) else {
            return;
        };
        let holds = self.holds_of_value(obj);
        let known = match holds {
            Holds::Object(Members::Unknown) => return,
            Holds::Object(_) => self.members_of(holds),
            _ => return,
        };
        if known.is_empty() {
            return;
        }
        let keys: Vec<NodeId> = doc.elements(keys).take(64).collect();
        for key in keys {
            let Some(name) = super::text_of(doc, key) else {
                continue;
            };
            if known.contains(&name) || self.vars.knows(name.as_bytes()) {
                continue;
            }
            let near = self.nearest(&name, known.iter().map(String::as_str));
            // `omit` may name a member as a precaution.
            if op == "omit" && near.is_none() {
                continue;
            }
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has `{}`", excerpt(&known.join("`, `"))),
            };
            let message = format!("the object has no member `{}`", excerpt(&name));
            self.found(codes::UNKNOWN_MEMBER, key, message, &name, help);
        }
    }

    /// Reports `by` on items without members, and sums of texts.
    pub(super) fn lint_plain_items(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let Some(items) = doc.get(step, "items") else {
            return;
        };
        let item = match self.holds_of_value(items) {
            Holds::List(Items::Schema(schema)) => super::inference::of_schema(doc, schema),
            Holds::List(Items::Texts) => Holds::Made,
            _ => return,
        };
        if let Some(by) = doc.get(step, "by") {
            let is_plain = matches!(item, Holds::Number | Holds::Bool) || item.is_text();
            let path = super::text_of(doc, by);
            let Some(path) = path.filter(|path| is_plain && path != "length") else {
                return;
            };
            let what = item.words();
            let message = format!(
                "an item is {what}, which has no member `{}`",
                excerpt(&path)
            );
            let help = match op {
                "groupBy" => "group objects, or make them by `map` first",
                _ => "leave `by` out: the items themselves are looked at",
            };
            return self.found(codes::UNKNOWN_MEMBER, by, message, &path, help);
        }
        if op == "sum" && matches!(item, Holds::Text | Holds::OneOf(_)) {
            let message = "the items are texts, which have no sum";
            let shown = super::text_of(doc, items).unwrap_or_default();
            let help = "give it numbers; texts are joined by `join {list, sep, result}`";
            self.found(codes::WRONG_KIND, items, message, &shown, help);
        }
    }

    /// Reports a pattern that names an argument, which is searched for as written.
    pub(super) fn lint_pattern_name(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(node) = doc.get(step, "pattern") else {
            return;
        };
        let Some(text) = super::text_of(doc, node).filter(|text| self.is_argument_path(text))
        else {
            return;
        };
        let message = "a pattern is taken as written: this names nothing";
        let help = "write the pattern itself; to look for a text that is known at run time ask \
                    `text.includes(part)` in a condition";
        self.found(codes::NAME_AS_TEXT, node, message, &text, help);
    }

    /// Reports a `storeQuery` condition in the syntax of other stores: `{"age": {"$gt": 3}}`.
    pub(super) fn lint_where(&mut self, query: NodeId) {
        let doc = self.doc;
        let Some(asked) = doc
            .get(query, "where")
            .filter(|n| doc.kind(*n) == Kind::Object)
        else {
            return;
        };
        let members: Vec<(&[u8], NodeId)> = doc.members(asked).take(32).collect();
        for (field, value) in members {
            let Some((key, inner)) = doc.members(value).next() else {
                continue;
            };
            let op = Self::shown(key);
            let Some(sign) = test_of_query(&op) else {
                continue;
            };
            let field = Self::shown(field);
            let written = self.written_at(inner, None);
            let message = format!(
                "this asks for a member `{}` that equals an object",
                excerpt(&field)
            );
            let help = format!(
                "write `\"where\": [[\"{}\", \"{sign}\", {}]]`",
                excerpt(&field),
                if written.is_empty() {
                    "VALUE"
                } else {
                    &written
                }
            );
            self.found(codes::WRONG_VALUE, value, message, &op, help);
        }
    }
}
