//! Dropped values: steps that only compute or fetch something which nobody keeps.

use super::steps::{CHANGES, READS};
use super::{Finding, Lower};
use crate::ir::truthy;
use a99_core::diag::codes;
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomSig, Effect, Form};

impl Lower<'_, '_> {
    /// Whether a request does more than to fetch something.
    pub(super) fn has_method(&self, step: NodeId) -> bool {
        let doc = self.s.doc;
        let given = |key: &str| doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null);
        let is_get = |node| {
            doc.str(node)
                .is_some_and(|m| m.eq_ignore_ascii_case(b"get"))
        };
        given("method").is_some_and(|method| !is_get(method)) || given("body").is_some()
    }

    /// Whether `push` changes a list that anything else can see.
    fn changes_variable(&self, step: NodeId) -> bool {
        let doc = self.s.doc;
        let list = doc.get(step, "list");
        list.is_none_or(|list| doc.kind(list) != Kind::Array)
    }

    /// Whether all calls of a `callAll` only fetch something.
    fn only_reads(&self, step: NodeId) -> bool {
        let doc = self.s.doc;
        let calls = doc
            .get(step, "calls")
            .into_iter()
            .flat_map(|list| doc.elements(list));
        let mut calls = calls.chain(doc.get(step, "call")).peekable();
        calls.peek().is_some()
            && calls.all(|call| {
                let op = doc.get(call, "op").and_then(|op| super::text_of(doc, op));
                op.is_some_and(|op| READS.contains(&op.as_str())) && !self.has_method(call)
            })
    }

    /// The value of an atom that does nothing else, which nobody keeps.
    pub(super) fn lint_dropped(&mut self, step: NodeId, op: &str, sig: &AtomSig) {
        let doc = self.s.doc;
        let pure = match sig.form {
            None => sig.effect == Effect::Pure || READS.contains(&op) && !self.has_method(step),
            Some(Form::MathCalc | Form::VarGet | Form::VarsExport) => true,
            Some(Form::Filter | Form::Find) => true,
            Some(Form::CallAll) => self.only_reads(step),
            Some(Form::Memoize) => doc
                .get(step, "steps")
                .is_some_and(|steps| self.spend_on(steps) && self.is_pure(steps)),
            Some(Form::Map | Form::Reduce) => doc
                .get(step, "steps")
                .is_some_and(|steps| self.spend_on(steps) && self.is_pure(steps)),
            Some(_) => false,
        };
        // Who sets a key if it holds something asks whether it did.
        let given = |key: &str| {
            doc.get(step, key)
                .is_some_and(|n| doc.kind(n) != Kind::Null)
        };
        let asks = || given("expected") || given("ttlMs");
        if op == "storeCompareAndSet"
            && asks()
            && !doc.get(step, "result").is_some_and(|n| truthy(doc, n))
        {
            let text = "`storeCompareAndSet` tells whether it set the key, and nobody asks";
            let finding = Finding::new(codes::DROPPED_RESULT, step, text);
            let help = match self.is_source() {
                true => {
                    "write `if (!(await storeCompareAndSet({ key, expected, value })))`, and try again or leave"
                }
                false => {
                    "add `\"result\": \"done\"`, and try again or leave in an `if` with `\"condition\": \"!done\"`"
                }
            };
            self.found(finding.offending(op).help(help));
        }
        if pure
            && !(CHANGES.contains(&op) && self.changes_variable(step))
            && !doc.get(step, "result").is_some_and(|n| truthy(doc, n))
        {
            let text = format!("the value of `{op}` is dropped");
            let finding = Finding::new(codes::DROPPED_RESULT, step, text);
            let help = "add `\"result\": \"name\"`, or remove the step";
            self.found(finding.offending(op).help(help));
        }
    }
}
