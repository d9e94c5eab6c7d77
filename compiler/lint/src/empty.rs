//! Rules for empty bodies, and for forms that have no effect.

use super::{Finding, Rules};
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
            let finding = Finding::new(codes::REPEATED_BRANCH, body, message);
            self.found(finding.help("put steps into it, or remove it"));
        }
        let alone = form == Form::Try && doc.get(step, "catch").is_none();
        if alone && empty("try").is_none() && doc.get(step, "try").is_some() {
            let message = "without a `catch` the error stays: this `try` changes nothing";
            let finding = Finding::new(codes::REPEATED_BRANCH, step, message);
            let help = "add `\"catch\": [...]`, or write the steps without `try`";
            self.found(finding.offending("try").help(help));
        }
    }

    /// Reports a `try` with an empty body.
    pub(super) fn lint_try_body(&mut self, step: NodeId) {
        let doc = self.doc;
        let body = doc.get(step, "try");
        let empty = |n: &NodeId| doc.kind(*n) == Kind::Array && doc.is_empty(*n);
        if let Some(body) = body.filter(empty) {
            let message = "this `try` does nothing, so its `catch` never runs";
            let finding = Finding::new(codes::REPEATED_BRANCH, body, message);
            self.found(finding.help("put the steps that may fail into `try`, or remove the step"));
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
        let finding = Finding::new(codes::UNKNOWN_INPUT, node, message);
        let help = match form {
            Form::ForEach => {
                "remove it; `map {items, as, steps, result}` makes a list of what its steps leave \
                 in `result`"
            }
            Form::VarSet | Form::ConstSet => "remove it: the name of the variable is its `key`",
            _ => "remove it, and give the step inside that makes the value a `result`",
        };
        self.found(finding.offending(&shown).help(help));
    }

    /// Reports a program without steps.
    pub(super) fn lint_no_steps(&mut self) {
        let doc = self.doc;
        let steps = doc.get(doc.root(), "steps");
        let empty = steps.filter(|n| doc.kind(*n) == Kind::Array && doc.is_empty(*n));
        if let Some(steps) = empty {
            let message = "this program has no steps, so it gives nothing";
            let finding = Finding::new(codes::NO_RESULT, steps, message);
            let help = "add steps, and end with `{\"op\": \"return\", \"value\": {...}}`";
            self.found(finding.help(help));
        }
    }
}
