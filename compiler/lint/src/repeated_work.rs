//! Rules for repeated work: a list that grows while it is iterated, a key that is the same for
//! each item, a default that is never applied.
//!
//! Codes: `lint.endless_loop`, `lint.wrong_value`.

use super::Rules;
use super::bodies::mentions;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomSig, Form};

impl<'a> Rules<'_, 'a> {
    /// Reports a loop that appends to the list that it iterates over.
    pub(super) fn lint_growing(&mut self, step: NodeId, steps: NodeId) {
        let doc = self.doc;
        let Some(list) = doc.get(step, "items").and_then(|n| doc.str(n)) else {
            return;
        };
        if !self.vars.knows(list) {
            return;
        }
        let mut found = None;
        for inner in doc.elements(steps) {
            let text = |key: &str| self.text(inner, key);
            let op = text("op").unwrap_or_default();
            let ends = |sig: &AtomSig| {
                use Form::{Break, If, Return, Try, While};
                sig.always_fails() || matches!(sig.form, Some(Break | Return | If | Try | While))
            };
            if self.signature(&op).is_some_and(ends) {
                return;
            }
            let given = doc.get(inner, "list").and_then(|n| doc.str(n));
            let value = doc.get(inner, "value");
            if op == "push" && given == Some(list) || value.is_some_and(|n| self.is_push(n, list)) {
                found.get_or_insert(inner);
            }
        }
        let Some(place) = found else { return };
        let shown = Self::shown(list);
        let shown = excerpt(&shown);
        let message =
            format!("each turn appends to `{shown}`, which is gone through, so this never ends");
        let help = format!(
            "append to another list, and put the two together after the loop: `{shown}.concat(others)`"
        );
        self.found(codes::ENDLESS_LOOP, place, message, "push", help);
    }

    /// Whether a value is the result of the method `push` of this list.
    fn is_push(&self, value: NodeId, list: &[u8]) -> bool {
        let doc = self.doc;
        let text = |node: NodeId, key: &str| doc.get(node, key).and_then(|n| doc.str(n));
        if let Some(written) = a99_compiler::ir::expr_text(doc, value).and_then(|n| doc.str(n)) {
            let rest = written.strip_prefix(list);
            return rest.is_some_and(|rest| rest.starts_with(b".push("));
        }
        let object = doc.get(value, "object");
        text(value, "$expr") == Some(b"methodCall")
            && text(value, "method") == Some(b"push")
            && object.is_some_and(|object| text(object, "name") == Some(list))
    }

    /// Reports a literal cache key where the cached value depends on the item of a loop.
    pub(super) fn lint_same_key(&mut self, step: NodeId, steps: NodeId, form: Form) {
        let doc = self.doc;
        let Some(key) = doc.get(step, "key") else {
            return;
        };
        let is_written = match doc.kind(key) {
            Kind::String(text) => self.is_plain_text(text),
            Kind::Number(_) | Kind::Bool(_) => true,
            Kind::Object => {
                let tag = doc.get(key, "$expr").and_then(|n| doc.str(n));
                tag == Some(b"literal")
            }
            _ => false,
        };
        let items = match is_written {
            true => self.lint.items.clone(),
            false => Vec::new(),
        };
        // Only the nearest loops: each one costs a walk through the steps.
        const LOOPS: usize = 4;
        let asked = items.iter().rev().take(LOOPS).map(|item| Self::shown(item));
        let Some(item) = { asked }.find(|item| mentions(doc, steps, item)) else {
            return;
        };
        let item = excerpt(&item);
        let what = match form {
            Form::Cache => "kept",
            _ => "remembered",
        };
        let message = format!("this key is the same for each `{item}`, and so is what is {what}");
        let help = match self.is_source() {
            true => format!(
                "make it of the item, as in `` key: `square ${{{item}}}` ``, or leave `key` out"
            ),
            false => format!("make it of the item, `\"key\": \"{item}\"`, or leave `key` out"),
        };
        self.found(codes::WRONG_VALUE, key, message, "", help);
    }

    /// Reports defaults of optional arguments, which are never applied.
    pub(super) fn lint_defaults(&mut self, schema: NodeId) {
        let doc = self.doc;
        let Some(properties) = doc.get(schema, "properties") else {
            return;
        };
        let required = |name: &[u8]| {
            let names = doc.get(schema, "required").into_iter();
            let mut names = names.flat_map(|list| doc.elements(list));
            names.any(|one| doc.str(one) == Some(name))
        };
        let given: Vec<(NodeId, String)> = doc
            .members(properties)
            .filter(|(name, _)| !required(name))
            .filter_map(|(name, property)| Some((doc.get(property, "default")?, Self::shown(name))))
            .take(64)
            .collect();
        let steps = doc.get(doc.root(), "steps");
        let Some(steps) = steps.filter(|steps| !given.is_empty() && self.spend_on(*steps)) else {
            return;
        };
        if self.handles_missing(steps) {
            return;
        }
        for (node, name) in given {
            let mut value = Vec::new();
            doc.write_json(node, &mut value);
            let (name, value) = (excerpt(&name), excerpt(&Self::shown(&value)));
            let message = format!("`default` gives nothing: a missing `{name}` is undefined");
            let help = format!(
                "give it in a step: `{{\"op\": \"varSet\", \"key\": \"{name}\", \"value\": {{\"$expr\": \"logical\", \
                 \"op\": \"??\", \"left\": {{\"$expr\": \"ident\", \"name\": \"{name}\"}}, \"right\": {value}}}}}`"
            );
            self.found_schema(node, message, "default", help);
        }
    }

    /// Whether a part of the program tests for missing values.
    pub(super) fn handles_missing(&self, steps: NodeId) -> bool {
        const WORDS: [&[u8]; 5] = [b"??", b"||", b"null", b"undefined", b"!"];
        let doc = self.doc;
        let mut work = vec![steps];
        while let Some(node) = work.pop() {
            let has = |text: &[u8]| {
                let holds = |word: &&[u8]| text.windows(word.len()).any(|part| part == *word);
                WORDS.iter().any(holds)
            };
            if doc.str(node).is_some_and(has) {
                return true;
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        false
    }
}
