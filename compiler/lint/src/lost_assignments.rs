//! Rule for lost assignments: values that go out of scope with their body.
//!
//! Codes: `lint.lost_assignment`.

use super::Rules;
use a99_compiler::vars::VarId;
use a99_core::diag::{codes, excerpt};
use a99_core::json::NodeId;

impl<'a> Rules<'_, 'a> {
    /// Records an assignment that hides a bound outer variable, or reports it at once if it
    /// carries a value between iterations.
    pub(super) fn lint_lost_name(&mut self, id: VarId, name: &[u8], node: NodeId) {
        // In a loop, a later iteration may read it.
        let in_loop = self.lint.whiles > 0;
        if in_loop || name == b"result" {
            return;
        }
        if !self.vars.hides_bound(id, name) {
            return;
        }
        if self.carries(name, node) {
            return self.found_lost(node);
        }
        self.lint.lost.insert(id, node);
    }

    /// Reports, at the end of a function, assignments whose variables no step read.
    pub(super) fn on_function_end(&mut self) {
        let lint = &mut *self.lint;
        let mut lost: Vec<NodeId> = std::mem::take(&mut lint.lost)
            .iter()
            .map(|(_, node)| *node)
            .collect();
        lost.sort();
        for node in lost {
            self.found_lost(node);
        }
        self.lint_unused();
        self.forget_flow();
    }

    /// Whether a step in the body of a loop computes a variable from its own value, as `total + x`
    /// for the next `total`, which is the outer value in each iteration.
    fn carries(&mut self, name: &[u8], node: NodeId) -> bool {
        let doc = self.doc;
        let is_item = self.lint.items.is_empty();
        let Some(step) = doc.parent(node).filter(|_| !is_item && !self.is_source()) else {
            return false;
        };
        let op = doc.get(step, "op").and_then(|op| doc.str(op));
        let given: &[&str] = match op {
            Some(b"mathCalc") => &["vars"],
            Some(b"merge") => &["a", "b"],
            _ => return false,
        };
        let is_name = |node: NodeId| doc.str(node) == Some(name);
        given
            .iter()
            .filter_map(|key| doc.get(step, key))
            .any(|value| {
                let mut members = doc.members(value);
                is_name(value) || members.any(|(_, node)| is_name(node))
            })
    }

    fn found_lost(&mut self, node: NodeId) {
        let name = super::text_of(self.doc, node).unwrap_or_default();
        let text = format!(
            "this sets a variable `{}` of this body, which is lost at its end; the outer \
                 variable keeps its value",
            excerpt(&name)
        );
        let help = "use `reduce` to carry a value from item to item, or `forEach`, whose \
                         steps share the variables around them";
        self.found(codes::LOST_ASSIGNMENT, node, text, &name, help);
    }
}
