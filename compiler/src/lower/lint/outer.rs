//! Variables of the program that a helper asks for, which does not see them.

use super::{Finding, Lower};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use hashbrown::HashSet;

impl<'a> Lower<'_, 'a> {
    /// The names that the steps of the program bind, for helpers, which do not see them.
    pub(super) fn is_of_program(&mut self, name: &str) -> bool {
        if !self.in_helper {
            return false;
        }
        let doc = self.s.doc;
        let known = self
            .s
            .lint
            .as_ref()
            .is_some_and(|lint| lint.outer.is_some());
        if !known {
            let steps = doc.get(doc.root(), "steps");
            let steps = steps.filter(|steps| doc.kind(*steps) == Kind::Array);
            let affords = steps.is_some_and(|steps| self.spend_on(steps));
            let names = match steps.filter(|_| affords) {
                Some(steps) => self.bound_in(steps),
                None => HashSet::new(),
            };
            if let Some(lint) = &mut self.s.lint {
                lint.outer = Some(names);
            }
        }
        let lint = self.s.lint.as_ref();
        lint.and_then(|lint| lint.outer.as_ref())
            .is_some_and(|names| names.contains(name))
    }

    /// A helper reads a variable of the program.
    pub(super) fn found_outer(
        &mut self,
        node: NodeId,
        inner: Option<(u32, u32)>,
        name: &str,
        what: &str,
    ) {
        let shown = excerpt(name);
        let message =
            format!("a helper does not see the program's variable `{shown}`: here it is {what}");
        let finding = Finding::new(codes::NOT_VISIBLE, node, message);
        let help = format!(
            "add `{shown}` to the helper's `paramNames`, and `\"{shown}\"` to the `args` of its \
             `callLocal`"
        );
        self.found(finding.inner(inner).offending(name).help(help));
    }
}
