//! Rule for variables of the program that a helper reads but cannot see.
//!
//! Codes: `lint.missing_input`, `lint.not_visible`.

use super::Rules;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::Form;
use hashbrown::HashSet;

impl<'a> Rules<'_, 'a> {
    /// Whether the program's steps bind a name that a helper does not see.
    pub(super) fn is_of_program(&mut self, name: &str) -> bool {
        if !self.in_helper {
            return false;
        }
        let doc = self.doc;
        let known = self.lint.outer.is_some();
        if !known {
            let steps = doc.get(doc.root(), "steps");
            let steps = steps.filter(|steps| doc.kind(*steps) == Kind::Array);
            let affords = steps.is_some_and(|steps| self.spend_on(steps));
            let names = match steps.filter(|_| affords) {
                Some(steps) => self.bound_in(steps),
                None => HashSet::new(),
            };
            self.lint.outer = Some(names);
        }
        self.lint
            .outer
            .as_ref()
            .is_some_and(|names| names.contains(name))
    }

    /// Reports names in an inline program of `agentRun`, which sees no variables of this program.
    pub(super) fn lint_inline(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(program) = doc
            .get(step, "agentId")
            .filter(|n| doc.kind(*n) == Kind::Object)
        else {
            return;
        };
        let Some(steps) = doc
            .get(program, "steps")
            .filter(|steps| self.spend_on(*steps))
        else {
            return;
        };
        self.lint_inline_input(step, steps);
        let mut own = self.bound_in(steps);
        let input = doc.get(step, "input").into_iter();
        own.extend(
            input
                .flat_map(|input| doc.members(input))
                .map(|(name, _)| Self::shown(name)),
        );
        let mut work: Vec<NodeId> = vec![steps];
        while let Some(node) = work.pop() {
            // Names that bodies and helpers bind themselves.
            for key in ["as", "accumulator", "index", "catchParam", "result", "key"] {
                own.extend(self.text(node, key));
            }
            let vars = doc.get(node, "vars").into_iter();
            own.extend(
                vars.flat_map(|vars| doc.members(vars))
                    .map(|(name, _)| Self::shown(name)),
            );
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        let mut work: Vec<NodeId> = vec![steps];
        while let Some(node) = work.pop() {
            for key in ["expr", "condition"] {
                let Some(place) = doc.get(node, key).filter(|n| doc.str(*n).is_some()) else {
                    continue;
                };
                let text = super::text_of(doc, place).unwrap_or_default();
                if let Some(name) = self.outer_word(&text, &own) {
                    return self.found_inline(place, &name);
                }
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
    }

    /// Reports arguments that the inline program reads and `input` lacks.
    fn lint_inline_input(&mut self, step: NodeId, steps: NodeId) {
        let doc = self.doc;
        let Some(input) = doc.get(step, "input") else {
            return;
        };
        let written = self.is_literal_object(input) && !self.is_expr(input) && !self.is_arg(input);
        if !written || self.handles_missing(steps) {
            return;
        }
        let imports = doc.elements(steps).take(8);
        let imports = imports.filter(|step| self.form_of(*step) == Some(Form::VarsImport));
        let keys: Vec<NodeId> = imports
            .filter_map(|step| doc.get(step, "keys"))
            .flat_map(|keys| doc.elements(keys).chain(doc.members(keys).map(|(_, n)| n)))
            .collect();
        for key in keys {
            let Some(name) = super::text_of(doc, key).filter(|name| doc.get(input, name).is_none())
            else {
                continue;
            };
            let shown = excerpt(&name);
            let message = format!("the program asks for `{shown}`, and `input` does not give it");
            let help = format!("add `\"{shown}\": ...` to `input`, or do not import it");
            self.found(codes::MISSING_INPUT, input, message, &name, help);
        }
    }

    /// The first word of an expression text that only the enclosing program binds.
    fn outer_word(&self, text: &str, own: &HashSet<String>) -> Option<String> {
        const MAX_TEXT: usize = 2_000;
        if text.len() > MAX_TEXT || text.contains(['\'', '"', '`']) {
            return None;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        let mut words = text.split(|c: char| !is_part(c));
        let root = |word: &str| word.split('.').next().unwrap_or_default().to_owned();
        words
            .by_ref()
            .map(root)
            .find(|word| self.vars.knows(word.as_bytes()) && !own.contains(word))
    }

    fn found_inline(&mut self, node: NodeId, name: &str) {
        let shown = excerpt(name);
        let message = format!("a program that `agentRun` runs does not see the variable `{shown}`");
        let help = format!(
            "hand it over: `\"input\": {{\"{shown}\": \"{shown}\"}}`, and begin the program with `varsImport \
             {{keys: [\"{shown}\"]}}`"
        );
        self.found(codes::NOT_VISIBLE, node, message, name, help);
    }

    /// Reports a variable of the program that a helper reads.
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
        let help = format!(
            "add `{shown}` to the helper's `paramNames`, and `\"{shown}\"` to the `args` of its \
             `callLocal`"
        );
        self.found(codes::NOT_VISIBLE, (node, inner), message, name, help);
    }
}
