//! Rules for empty bodies, and for forms that have no effect.
//!
//! Codes: `lint.no_result`, `lint.repeated_branch`, `lint.unknown_input`.

use super::Rules;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::Form;

impl Rules<'_, '_> {
    /// Reports a form without effect, or with a `result` that it never binds.
    pub(super) fn lint_empty(&mut self, step: NodeId, op: &str, form: Form) {
        let doc = self.doc;
        self.lint_valueless(step, op, form);
        let empty = |key: &str| {
            doc.get(step, key)
                .filter(|n| doc.kind(*n) == Kind::Array && doc.is_empty(*n))
        };
        let body = match form {
            Form::ForEach | Form::Scope | Form::Seq => empty("steps"),
            _ => None,
        };
        if let Some(body) = body {
            let message = format!("this `{op}` does nothing: it has no steps");
            let help = "put steps into it, or remove it";
            self.found(codes::REPEATED_BRANCH, body, message, "", help);
        }
        let alone = form == Form::Try && doc.get(step, "catch").is_none();
        if alone && empty("try").is_none() && doc.get(step, "try").is_some() {
            let message = "without a `catch` the error stays: this `try` changes nothing";
            let help = "add `\"catch\": [...]`, or write the steps without `try`";
            self.found(codes::REPEATED_BRANCH, step, message, "try", help);
        }
    }

    /// Reports a `try` with an empty body.
    pub(super) fn lint_try_body(&mut self, step: NodeId) {
        let doc = self.doc;
        let body = doc.get(step, "try");
        let empty = |n: &NodeId| doc.kind(*n) == Kind::Array && doc.is_empty(*n);
        if let Some(body) = body.filter(empty) {
            let message = "this `try` does nothing, so its `catch` never runs";
            let help = "put the steps that may fail into `try`, or remove the step";
            self.found(codes::REPEATED_BRANCH, body, message, "", help);
        }
    }

    /// Reports a `result` on a form that has no value.
    fn lint_valueless(&mut self, step: NodeId, op: &str, form: Form) {
        let doc = self.doc;
        let valueless = matches!(
            form,
            Form::Seq
                | Form::If
                | Form::While
                | Form::ForEach
                | Form::Try
                | Form::Scope
                | Form::VarSet
                | Form::ConstSet
                | Form::VarsImport
                | Form::Break
                | Form::Continue
        );
        let Some(node) = valueless.then(|| doc.get(step, "result")).flatten() else {
            return;
        };
        let Some(name) = doc.str(node).filter(|name| !name.is_empty()) else {
            return;
        };
        let shown = Self::shown(name);
        let message = format!(
            "`{op}` has no value, so nothing is bound to `{}`",
            excerpt(&shown)
        );
        let help = match form {
            Form::ForEach => {
                "remove it; `map {items, as, steps, result}` makes a list of what its steps leave \
                 in `result`"
            }
            Form::VarSet | Form::ConstSet => "remove it: the name of the variable is its `key`",
            _ => "remove it, and give the step inside that makes the value a `result`",
        };
        self.found(codes::UNKNOWN_INPUT, node, message, &shown, help);
    }

    /// Reports a program without steps.
    pub(super) fn lint_no_steps(&mut self) {
        let doc = self.doc;
        let steps = doc.get(doc.root(), "steps");
        let empty = steps.filter(|n| doc.kind(*n) == Kind::Array && doc.is_empty(*n));
        if let Some(steps) = empty {
            let message = "this program has no steps, so it gives nothing";
            let help = "add steps, and end with `{\"op\": \"return\", \"value\": {...}}`";
            self.found(codes::NO_RESULT, steps, message, "", help);
        }
    }
}
