//! Rule for dropped values: steps that only compute or read a value that no step uses.
//!
//! Codes: `lint.dropped_result`.

use super::Rules;
use a99_compiler::ir::truthy;
use a99_core::diag::codes;
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{AtomSig, Effect, Form};

impl Rules<'_, '_> {
    /// Whether a request may have side effects.
    pub(super) fn has_method(&self, step: NodeId) -> bool {
        let doc = self.doc;
        let given = |key: &str| doc.get(step, key).filter(|n| doc.kind(*n) != Kind::Null);
        let is_get = |node| {
            doc.str(node)
                .is_some_and(|m| m.eq_ignore_ascii_case(b"get"))
        };
        given("method").is_some_and(|method| !is_get(method)) || given("body").is_some()
    }

    /// Whether an atom only reads.
    pub(super) fn only_reads(&self, step: NodeId, sig: &AtomSig) -> bool {
        sig.form.is_none() && sig.effect == Effect::Read && !self.has_method(step)
    }

    /// Whether `push` changes a list that other steps can see.
    fn changes_variable(&self, step: NodeId) -> bool {
        let doc = self.doc;
        let list = doc.get(step, "list");
        list.is_none_or(|list| doc.kind(list) != Kind::Array)
    }

    /// Whether all calls of a `callAll` only read.
    fn all_calls_read(&self, step: NodeId) -> bool {
        let doc = self.doc;
        let calls = doc
            .get(step, "calls")
            .into_iter()
            .flat_map(|list| doc.elements(list));
        let mut calls = calls.chain(doc.get(step, "call")).peekable();
        calls.peek().is_some()
            && calls.all(|call| {
                let op = self.text(call, "op");
                let sig = op.and_then(|op| self.signature(&op));
                sig.is_some_and(|sig| self.only_reads(call, sig))
            })
    }

    /// Reports a step without side effects whose value is dropped.
    pub(super) fn lint_dropped(&mut self, step: NodeId, op: &str, sig: &AtomSig) {
        let doc = self.doc;
        let pure = match sig.form {
            None if sig.effect == Effect::Mutates => !self.changes_variable(step),
            None => sig.effect == Effect::Pure || self.only_reads(step, sig),
            Some(Form::MathCalc | Form::VarGet | Form::VarsExport) => true,
            Some(Form::Filter | Form::Find) => true,
            Some(Form::CallAll) => self.all_calls_read(step),
            Some(Form::Memoize) => doc
                .get(step, "steps")
                .is_some_and(|steps| self.spend_on(steps) && self.is_pure(steps)),
            Some(Form::Map | Form::Reduce) => doc
                .get(step, "steps")
                .is_some_and(|steps| self.spend_on(steps) && self.is_pure(steps)),
            Some(_) => false,
        };
        // A conditional set needs a check whether it succeeded.
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
            let help = match self.is_source() {
                true => {
                    "write `if (!(await storeCompareAndSet({ key, expected, value })))`, and try again or leave"
                }
                false => {
                    "add `\"result\": \"done\"`, and try again or leave in an `if` with `\"condition\": \"!done\"`"
                }
            };
            self.found(codes::DROPPED_RESULT, step, text, op, help);
        }
        if pure && !doc.get(step, "result").is_some_and(|n| truthy(doc, n)) {
            let text = format!("the value of `{op}` is dropped");
            let help = "add `\"result\": \"name\"`, or remove the step";
            self.found(codes::DROPPED_RESULT, step, text, op, help);
        }
    }
}
