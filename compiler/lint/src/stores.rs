//! Rules for stores: unchecked locks, predicates without a condition, and vectors whose length
//! differs within a collection.
//!
//! Codes: `lint.dropped_result`, `lint.missing_input`, `lint.wrong_value`.

use super::Rules;
use a99_compiler::ir::truthy;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use hashbrown::HashMap;

/// Vector length of each collection.
pub(super) type Collections<'a> = HashMap<&'a [u8], usize>;

/// Words in a key that indicate a lock.
const LOCKS: &[&str] = &["lock", "lease", "mutex", "semaphore"];

impl<'a> Rules<'_, 'a> {
    /// Reports a lock whose result is ignored.
    pub(super) fn lint_lock(&mut self, step: NodeId) {
        let doc = self.doc;
        let key = self.text(step, "key");
        let key = key.unwrap_or_default().to_ascii_lowercase();
        let kept = doc.get(step, "result").is_some_and(|n| truthy(doc, n));
        if kept || !LOCKS.iter().any(|word| key.contains(word)) {
            return;
        }
        let text = "`storeCompareAndSet` tells whether it set the key, and nobody asks";
        let help = match self.is_source() {
            true => {
                "write `if (!(await storeCompareAndSet({ key, value })))`, and leave or try again"
            }
            false => {
                "add `\"result\": \"mine\"`, and leave in an `if` with `\"condition\": \"!mine\"`"
            }
        };
        self.found(
            codes::DROPPED_RESULT,
            step,
            text,
            "storeCompareAndSet",
            help,
        );
    }

    /// Reports a literal predicate that is not a condition.
    pub(super) fn lint_predicate(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(node) = doc.get(step, "predicate") else {
            return;
        };
        if !self.is_literal_object(node) || self.is_expr(node) || self.is_arg(node) {
            return;
        }
        let Some(text) = doc.get(node, "canonical") else {
            let first = doc.members(node).next().map(|(name, _)| Self::shown(name));
            let message = "a predicate has a text `canonical`, and this one has none";
            let name = first.filter(|name| !name.starts_with('$'));
            let name = name.unwrap_or_else(|| "age".to_owned());
            let help = format!("write `{{\"canonical\": \"{} > 3\"}}`", excerpt(&name));
            return self.found(codes::MISSING_INPUT, node, message, "predicate", help);
        };
        let Some(shown) = super::text_of(doc, text) else {
            return;
        };
        if self.parse_text(&shown).is_ok() {
            return;
        }
        let message = "this is no condition that a store of Agent99 reads";
        let help = "write a condition about the members of a document, with `==`, `&&` and `||`: \
                    `age > 3 && name.startsWith('A')`";
        self.found(codes::WRONG_VALUE, text, message, &shown, help);
    }

    /// Length of a literal vector in a step, with its node.
    fn vector_of(&self, step: NodeId, op: &str) -> Option<(NodeId, usize)> {
        let doc = self.doc;
        let list = match op {
            "storeVectorSearch" => doc.get(step, "vector")?,
            "storeSearch" => doc.get(step, "queryVector")?,
            "storeCreateCollection" => {
                let node = doc.get(step, "dimension")?;
                let Kind::Number(n) = doc.kind(node) else {
                    return None;
                };
                let is_length = (1.0..=65_536.0).contains(&n) && n.fract() == 0.0;
                return is_length.then_some((node, n as usize));
            }
            _ => doc.get(doc.get(step, "doc")?, "embedding")?,
        };
        (doc.kind(list) == Kind::Array).then(|| (list, doc.len(list)))
    }

    /// Reports a vector whose length differs from the others of its collection.
    pub(super) fn lint_vector_length(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let collection = doc.get(step, "collection").and_then(|n| doc.str(n));
        let Some(name) = collection.filter(|name| self.is_plain_text(name)) else {
            return;
        };
        let vector = self.vector_of(step, op);
        let lint = &mut *self.lint;
        let Some((node, length)) = vector else { return };
        let known = *lint.collections.entry(name).or_insert(length);
        if known == length {
            return;
        }
        let shown = excerpt(&Self::shown(name));
        let of = match op {
            "storeCreateCollection" => "a vector of this dimension",
            _ => "this vector",
        };
        let message = format!(
            "{of} has {length} numbers, and those of the collection `{shown}` have {known}"
        );
        let help = format!(
            "make all by one model (`storeVectorize`): give it {known} numbers, or say another \
             `dimension`"
        );
        self.found(codes::WRONG_VALUE, node, message, "", help);
    }
}
