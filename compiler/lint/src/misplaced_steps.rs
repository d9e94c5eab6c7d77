//! Rules for shapes: names of faulty steps, and steps in the place of values.
//!
//! Codes: `lint.foreign_node`.

use super::Rules;
use a99_core::diag::codes;
use a99_core::json::NodeId;

impl<'a> Rules<'_, 'a> {
    /// Records the names that a failing step would have bound, so that other rules do not report
    /// them as unknown.
    pub(super) fn on_faulty_step(&mut self, step: NodeId) {
        let doc = self.doc;
        let mut todo = vec![(step, 0)];
        while let Some((node, depth)) = todo.pop() {
            for (key, value) in doc.members(node) {
                if let (
                    Some(name),
                    b"key" | b"name" | b"result" | b"as" | b"var" | b"variable" | b"to" | b"into"
                    | b"output" | b"target" | b"id",
                ) = (doc.str(value), key)
                {
                    self.expect_name(name);
                }
                if depth < 2 {
                    self.expect_name(key);
                    todo.push((value, depth + 1));
                }
            }
        }
    }

    /// Reports a step of the language in the place of a value.
    pub(super) fn lint_step_as_value(&mut self, node: NodeId) -> bool {
        let doc = self.doc;
        let Some(op) = self.text(node, "op") else {
            return false;
        };
        let sides = doc.get(node, "left").is_some() || doc.get(node, "argument").is_some();
        let operator = !op.is_empty() && op.chars().all(|c| "+-*/%<>=!&|?".contains(c));
        if operator && sides {
            let message = "this object is data, it is not evaluated: it has no `$expr`";
            let kind = match (op.as_str(), doc.get(node, "left")) {
                ("&&" | "||" | "??", _) => "logical",
                (_, None) => "unary",
                _ => "binary",
            };
            let help = format!("write `{{\"$expr\": \"{kind}\", \"op\": \"{op}\", ...}}`");
            self.found(codes::FOREIGN_NODE, node, message, &op, help);
            return true;
        }
        // A program may be data, for `agentRun`.
        if op == "seq" {
            return false;
        }
        let sig = self.signature(&op);
        let input = sig.is_some_and(|sig| {
            sig.inputs
                .iter()
                .any(|input| doc.get(node, &input.name).is_some())
        });
        if !input {
            return false;
        }
        let step = doc.parent(node);
        let is_program = ["agentId", "ast"]
            .iter()
            .any(|key| step.is_some_and(|step| doc.get(step, key) == Some(node)));
        if is_program {
            let message = "a program is a `seq`: this is one step";
            let help = "write `{\"op\": \"seq\", \"steps\": [...]}`, with the step in `steps`";
            self.found(codes::FOREIGN_NODE, node, message, &op, help);
            return true;
        }
        let message = "this object is data: a step in the place of a value does not run";
        let help = format!(
            "make it a step before, `{{\"op\": \"{op}\", ..., \"result\": \"name\"}}`, and write \
             `\"name\"` here"
        );
        self.found(codes::FOREIGN_NODE, node, message, &op, help);
        true
    }
}
