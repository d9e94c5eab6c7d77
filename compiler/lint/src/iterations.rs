//! Rules for iterations: constants that the second one cannot set, and skipped counters.
//!
//! Codes: `lint.constant_condition`, `lint.constant_reassigned`, `lint.endless_loop`,
//! `lint.missing_input`, `lint.used_before_set`.

use super::Rules;
use a99_compiler::ir::truthy;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{Effect, Form};
use a99_core::text::wtf8_to_string_lossy;
use std::borrow::Cow;

/// Length in bytes up to which a condition is searched.
const MAX_TEXT: usize = 2_000;

/// The words in the text of a condition, including members and methods.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    text.split(move |c| !is_part(c))
        .filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))
}

/// A comparison of a name with a number: name, operator, bound.
type Order<'t> = (&'t str, &'t str, f64);

/// The comparison, if a condition is no more than `n > 3`.
fn order_of(text: &str) -> Option<Order<'_>> {
    let at = text.find(['<', '>'])?;
    let name = text[..at].trim();
    let sign = &text[at..];
    let sign = &sign[..1 + usize::from(sign[1..].starts_with('='))];
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let bound = text[at + sign.len()..].trim().parse().ok()?;
    (!name.is_empty() && name.chars().all(is_part)).then_some((name, sign, bound))
}

/// Whether every value that meets the second comparison meets the first.
fn covers((name, sign, bound): Order<'_>, (other, sign_of, narrower): Order<'_>) -> bool {
    let same = name == other && sign[..1] == sign_of[..1];
    let strict = sign.len() == 1 && sign_of.len() == 2;
    same && match (sign.starts_with('>'), strict) {
        (true, true) => narrower > bound,
        (true, false) => narrower >= bound,
        (false, true) => narrower < bound,
        (false, false) => narrower <= bound,
    }
}

impl<'a> Rules<'_, 'a> {
    /// Checks the body of a loop that shares the outer scope.
    pub(super) fn lint_turns(&mut self, step: NodeId, form: Option<Form>) {
        if form == Some(Form::If) {
            return self.lint_covered(step);
        }
        let key = match form {
            Some(Form::ForEach) => "steps",
            Some(Form::While) => "body",
            _ => return,
        };
        let doc = self.doc;
        let Some(body) = doc.get(step, key).filter(|n| doc.kind(*n) == Kind::Array) else {
            return;
        };
        if !self.is_source() {
            self.lint_constants_of_turns(step, body);
        }
        if form == Some(Form::While) && self.spend_on(body) {
            self.lint_skipped_count(step, body);
            self.lint_same_page(body);
        }
    }

    /// Reports a constant that each iteration sets, which only the first one can.
    fn lint_constants_of_turns(&mut self, of: NodeId, body: NodeId) {
        let doc = self.doc;
        let items = doc.get(of, "items");
        if items.is_some_and(|n| doc.kind(n) == Kind::Array && doc.len(n) < 2) {
            return;
        }
        // The names of the loop itself are free in each iteration.
        let own = ["as", "index"].map(|key| doc.get(of, key).and_then(|n| doc.str(n)));
        for step in doc.elements(body) {
            let is_const = self.form_of(step) == Some(Form::ConstSet);
            let kept = doc.get(step, "resultConst").is_some_and(|n| truthy(doc, n));
            let name = match (is_const, kept) {
                (true, _) => doc.get(step, "key"),
                (_, true) => doc.get(step, "result"),
                _ => None,
            };
            let Some((node, name)) = name.and_then(|n| Some((n, super::text_of(doc, n)?))) else {
                continue;
            };
            if own.contains(&Some(name.as_bytes())) {
                continue;
            }
            let shown = excerpt(&name);
            let message = format!("the second turn cannot set the constant `{shown}` again");
            let help = match is_const {
                true => {
                    "write `varSet`, or put it into a `scope {steps}`, which ends with each turn"
                }
                false => "leave `resultConst` out",
            };
            self.found(codes::CONSTANT_REASSIGNED, node, message, &name, help);
        }
    }

    /// Reports `total + row.price` with the result `total`, which no step sets before the loop.
    pub(super) fn lint_begun(&mut self, step: NodeId) {
        let doc = self.doc;
        let in_loop = self.lint.whiles > 0;
        let text = |key: &str| self.text(step, key);
        let (Some(result), Some(expr)) = (text("result").filter(|_| in_loop), text("expr")) else {
            return;
        };
        let name = result.as_bytes();
        if !self.vars.is_only_later(name) || !words(&expr).any(|word| word == result) {
            return;
        }
        // Another step may bind it in the first iteration, or it may be an argument.
        let id = self.own_variable(name);
        let writes = id.and_then(|id| self.lint.flow.holding.writes(id));
        let given = doc
            .get(step, "vars")
            .is_some_and(|vars| doc.get(vars, &result).is_some());
        let may_be_argument =
            self.is_version_4() && (self.is_argument(&result) || self.lint.arguments.is_none());
        if writes != Some(1) || given || may_be_argument {
            return;
        }
        let node = doc.get(step, "expr").unwrap_or(step);
        let shown = excerpt(&result);
        let message = format!("in the first turn `{shown}` has no value, so this gives no number");
        let help = format!(
            "set it before the loop: `{{\"op\": \"varSet\", \"key\": \"{shown}\", \"value\": 0}}`"
        );
        self.found(codes::USED_BEFORE_SET, node, message, &result, help);
    }

    /// Reports a page query that each iteration repeats without the cursor of the previous one.
    fn lint_same_page(&mut self, body: NodeId) {
        let doc = self.doc;
        for step in doc.elements(body) {
            let op = doc.get(step, "op").and_then(|op| doc.str(op));
            if !matches!(op, Some(b"storeList" | b"storeQuery")) {
                continue;
            }
            let of_query = doc.get(step, "query").unwrap_or(step);
            let page = self.text(step, "result");
            let Some(page) = page.filter(|_| doc.get(of_query, "cursor").is_none()) else {
                continue;
            };
            // A body that reads the cursor means to continue.
            if !super::bodies::mentions(doc, body, "cursor") || doc.str(of_query).is_some() {
                continue;
            }
            let op = super::text_of(doc, doc.get(step, "op").unwrap_or(step)).unwrap_or_default();
            let message = "each turn asks for the first page: it has no `cursor`";
            let help = format!("add `\"cursor\": \"{page}.cursor\"`, that of the page before");
            self.found(codes::MISSING_INPUT, step, message, &op, help);
        }
    }

    /// Reports `n > 5` in a branch after `n > 3`, which already held.
    fn lint_covered(&mut self, step: NodeId) {
        const MOST: usize = 16;
        let doc = self.doc;
        let Some(first) = self.condition_text(step) else {
            return;
        };
        let Some(first_order) = order_of(&first) else {
            return;
        };
        let mut inner = step;
        for _ in 0..MOST {
            let other = doc
                .get(inner, "else")
                .filter(|n| doc.kind(*n) == Kind::Array);
            let Some(next) = other.and_then(|other| doc.element(other, 0)) else {
                return;
            };
            if self.form_of(next) != Some(Form::If) {
                return;
            }
            inner = next;
            let Some(text) = self.condition_text(next) else {
                return;
            };
            let Some(order) = order_of(&text) else { return };
            if covers(first_order, order) {
                let place = doc.get(next, "condition").unwrap_or(next);
                let message = format!("this never holds here: `{}` came before", excerpt(&first));
                let help = format!("ask for `{}` first", excerpt(&text));
                return self.found(codes::CONSTANT_CONDITION, place, message, &text, help);
            }
        }
    }

    /// The text of a condition.
    fn condition_text(&self, step: NodeId) -> Option<Cow<'a, str>> {
        let doc = self.doc;
        let node = doc.get(step, "condition")?;
        let node = match doc.kind(node) {
            Kind::Object => doc.get(node, "=")?,
            _ => node,
        };
        let text = doc.str(node).filter(|text| text.len() <= MAX_TEXT);
        text.map(wtf8_to_string_lossy)
    }

    /// Reports `if (...) continue` before the only step that lets the loop end.
    fn lint_skipped_count(&mut self, step: NodeId, body: NodeId) {
        let doc = self.doc;
        let Some(condition) = self.condition_text(step) else {
            return;
        };
        let has_calls = |text: &str| text.contains('(');
        if has_calls(&condition) {
            return;
        }
        let steps: Vec<NodeId> = doc.elements(body).take(1_000).collect();
        let Some((at, place)) = steps
            .iter()
            .enumerate()
            .find_map(|(at, step)| Some((at, self.skips(*step)?)))
        else {
            return;
        };
        let set = self.bound_in(body);
        let asked: Vec<&str> = words(&condition)
            .filter(|word| set.contains(*word))
            .collect();
        // The test of the `if` must not change between iterations.
        let Some(test) = self
            .condition_text(steps[at])
            .filter(|text| !has_calls(text))
        else {
            return;
        };
        let may_differ = |name: &str| {
            steps[..at]
                .iter()
                .any(|step| self.binds_in_step(*step, name))
        };
        let branch = doc.parent(place);
        let counted_there = |name: &str| {
            let steps = branch.into_iter().flat_map(|branch| doc.elements(branch));
            { steps }.any(|step| self.binds_in_step(step, name))
        };
        let Some(name) = asked.first().copied() else {
            return;
        };
        let differs = asked
            .iter()
            .any(|name| may_differ(name) || counted_there(name));
        if differs || words(&test).any(may_differ) || self.acts_before(&steps[..at]) {
            return;
        }
        let message = format!(
            "this skips the step that sets `{}`: the next turn finds all as it was, and the loop \
             never ends",
            excerpt(name)
        );
        let help = format!(
            "set `{}` before the `if`, or in it before `continue`",
            excerpt(name)
        );
        self.found(codes::ENDLESS_LOOP, place, message, "continue", help);
    }

    /// The `continue` that is a direct step of an `if`, if there is one.
    fn skips(&self, step: NodeId) -> Option<NodeId> {
        let doc = self.doc;
        if self.form_of(step) != Some(Form::If) {
            return None;
        }
        let bodies = ["then", "else"].into_iter();
        let mut steps = bodies
            .filter_map(|key| doc.get(step, key))
            .flat_map(|body| doc.elements(body));
        steps.find(|step| self.form_of(*step) == Some(Form::Continue))
    }

    /// Whether a step, or a step in it, binds a name.
    fn binds_in_step(&self, step: NodeId, name: &str) -> bool {
        let doc = self.doc;
        let mut work = vec![step];
        while let Some(node) = work.pop() {
            let is =
                |key: &str| doc.get(node, key).and_then(|n| doc.str(n)) == Some(name.as_bytes());
            if is("result") || is("key") || is("catchParam") || doc.get(node, name).is_some() {
                return true;
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        false
    }

    /// Whether steps may change the values of variables.
    fn acts_before(&self, steps: &[NodeId]) -> bool {
        let doc = self.doc;
        steps.iter().any(|step| {
            let op = doc.get(*step, "op").and_then(|op| super::text_of(doc, op));
            let op = op.unwrap_or_default();
            let sig = self.signature(&op).filter(|_| op != "consoleLog");
            sig.is_some_and(|sig| match sig.form {
                None => sig.effect != Effect::Pure,
                Some(form) => !matches!(form, Form::VarSet | Form::MathCalc),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{covers, order_of};

    #[test]
    fn comparisons_that_came_before() {
        for (first, second, covered) in [
            ("n > 3", "n > 5", true),
            ("n > 3", "n > 3", true),
            ("n > 3", "n >= 3", false),
            ("n >= 3", "n > 3", true),
            ("n < 3", "n < 1", true),
            ("n > 5", "n > 3", false),
            ("n > 3", "m > 5", false),
        ] {
            let orders = order_of(first).zip(order_of(second));
            assert_eq!(
                orders.map(|(a, b)| covers(a, b)),
                Some(covered),
                "{first}, {second}"
            );
        }
        assert_eq!(order_of("n > m"), None);
        assert_eq!(order_of("a && n > 3"), None);
    }
}
