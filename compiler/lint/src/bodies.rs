//! Rules for bodies: endless loops, unused items, results that no step binds, and repeated
//! branches.
//!
//! Codes: `lint.endless_loop`, `lint.missing_result`, `lint.odd_name`, `lint.repeated_branch`,
//! `lint.unknown_member`, `lint.unused_item`.

use super::Rules;
use super::expressions::{asks_for, names_in};
use a99_compiler::ir::{Ir, truthy};
use a99_compiler::pass::View;
use a99_core::builtins;
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Document, Kind, NodeId};
use a99_core::sig::{AtomSig, Effect, Form};
use a99_core::text::wtf8_to_string_lossy;
use hashbrown::HashSet;
use smallvec::{SmallVec, smallvec};

/// The texts and keys in a part of the source.
#[derive(Default)]
struct Words<'d> {
    names: HashSet<&'d [u8]>,
    /// Whether a step may end the run or run steps from elsewhere.
    leaves: bool,
    /// Whether a step or method changes a value in place.
    mutates: bool,
}

/// Whether a step may end the run or run steps from elsewhere.
fn leaves(sig: &AtomSig) -> bool {
    sig.always_fails()
        || matches!(
            sig.form,
            Some(Form::CallLocal | Form::RunCode | Form::AgentRun)
        )
}

/// Whether a byte is part of a word in a text.
fn is_part(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80
}

impl<'d> Words<'d> {
    fn collect(&mut self, s: &View<'_, 'd>, node: NodeId) {
        let doc = s.doc;
        let mut work = vec![node];
        while let Some(node) = work.pop() {
            if let Some(text) = doc.str(node) {
                let op = str::from_utf8(text).unwrap_or_default();
                let sig = s.signature(op);
                self.leaves |= sig.is_some_and(leaves);
                self.mutates |=
                    sig.is_some_and(|sig| sig.effect == Effect::Mutates) || builtins::mutates(op);
                self.names.extend(text.split(|b| !is_part(b)));
            }
            for (key, value) in doc.members(node) {
                self.names.insert(key);
                work.push(value);
            }
            work.extend(doc.elements(node));
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name.as_bytes())
    }
}

/// Whether a name occurs among the texts and keys of a part of the source.
pub(super) fn mentions(doc: &Document, node: NodeId, name: &str) -> bool {
    let is_name = |word: &[u8]| word == name.as_bytes();
    let mut work: SmallVec<[NodeId; 16]> = smallvec![node];
    while let Some(node) = work.pop() {
        let mut words = doc.str(node).into_iter();
        if words.any(|text| text.split(|b| !is_part(b)).any(is_name)) {
            return true;
        }
        for (key, value) in doc.members(node) {
            if is_name(key) {
                return true;
            }
            work.push(value);
        }
        work.extend(doc.elements(node));
    }
    false
}

/// Whether two parts of the source are equal as written.
fn same(doc: &Document, a: NodeId, b: NodeId) -> bool {
    let mut work: SmallVec<[(NodeId, NodeId); 16]> = smallvec![(a, b)];
    while let Some((a, b)) = work.pop() {
        if doc.kind(a) != doc.kind(b) || doc.len(a) != doc.len(b) {
            return false;
        }
        for ((key, a), (other, b)) in doc.members(a).zip(doc.members(b)) {
            if key != other {
                return false;
            }
            work.push((a, b));
        }
        work.extend(doc.elements(a).zip(doc.elements(b)));
    }
    true
}

impl<'a> Rules<'_, 'a> {
    pub(super) fn form_of(&self, step: NodeId) -> Option<Form> {
        let doc = self.doc;
        let (last, form) = self.lint.last_form.get();
        if last == Some(step) {
            return form;
        }
        let op = doc.get(step, "op").and_then(|op| doc.str(op));
        let op = op.and_then(|op| str::from_utf8(op).ok());
        let form = op.and_then(|op| self.signature(op)?.form);
        self.lint.last_form.set((Some(step), form));
        form
    }

    /// Whether steps only compute, without side effects.
    pub(super) fn is_pure(&self, steps: NodeId) -> bool {
        let doc = self.doc;
        let mut work = vec![steps];
        while let Some(node) = work.pop() {
            if let Some(op) = self.text(node, "op") {
                let pure = match self.signature(&op) {
                    Some(sig) => match sig.form {
                        None => sig.effect == Effect::Pure,
                        Some(_) => !leaves(sig),
                    },
                    // An operator of an expression node, or a step that fails.
                    None => doc.get(node, "$expr").is_some(),
                };
                if !pure {
                    return false;
                }
            }
            let method = self.text(node, "method");
            if method.is_some_and(|method| builtins::mutates(&method)) {
                return false;
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        true
    }

    /// Whether control never continues after a step with branches, because all of them leave.
    pub(super) fn lint_leaves(&self, step: NodeId) -> bool {
        // Each level of nesting searches the bodies inside it.
        const DEPTH: u32 = 8;
        self.leaves(step, DEPTH)
    }

    fn leaves(&self, step: NodeId, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let doc = self.doc;
        let ends = |body: &str| {
            let list = doc.get(step, body).filter(|n| doc.kind(*n) == Kind::Array);
            let last = list.and_then(|list| doc.elements(list).last());
            last.is_some_and(|last| {
                let op = self.text(last, "op");
                let sig = op.and_then(|op| self.signature(&op));
                let leaves = sig.is_some_and(|sig| {
                    let form = sig.form;
                    sig.always_fails()
                        || matches!(form, Some(Form::Return | Form::Break | Form::Continue))
                });
                leaves || self.leaves(last, depth)
            })
        };
        match self.form_of(step) {
            Some(Form::If) => ends("then") && ends("else"),
            Some(Form::Try) => ends("try") && ends("catch"),
            Some(Form::Scope | Form::Seq) => ends("steps"),
            _ => false,
        }
    }

    /// The names that steps bind in their own scope.
    pub(super) fn bound_in(&self, steps: NodeId) -> HashSet<String> {
        let doc = self.doc;
        let mut names = HashSet::new();
        let mut work: Vec<NodeId> = doc.elements(steps).collect();
        while let Some(step) = work.pop() {
            let text = |key: &str| self.text(step, key);
            names.extend(text("result").filter(|name| !name.is_empty()));
            let form = self.form_of(step);
            match form {
                Some(Form::VarSet | Form::ConstSet) => names.extend(text("key")),
                Some(Form::VarsLet) => {
                    names.extend(doc.members(step).map(|(name, _)| Self::shown(name)));
                }
                Some(Form::VarsImport) => {
                    let keys = doc.get(step, "keys").into_iter();
                    for keys in keys {
                        names.extend(doc.elements(keys).filter_map(|n| super::text_of(doc, n)));
                        names.extend(doc.members(keys).map(|(name, _)| Self::shown(name)));
                    }
                }
                Some(Form::Try) => {
                    names.extend(text("catchParam"));
                    names.extend(["error".to_owned(), "errorOp".to_owned()]);
                }
                _ => {}
            }
            let bodies: &[&str] = match form {
                Some(Form::Seq) => &["steps"],
                Some(Form::If) => &["then", "else"],
                Some(Form::While) => &["body"],
                Some(Form::ForEach) => &["steps"],
                Some(Form::Try) => &["try", "catch"],
                _ => &[],
            };
            for body in bodies.iter().filter_map(|key| doc.get(step, key)) {
                work.extend(doc.elements(body));
            }
        }
        names
    }

    /// Reports a loop whose condition reads only variables that its body never sets.
    pub(super) fn on_loop(&mut self, step: NodeId, condition: &Ir<'a>) {
        let doc = self.doc;
        let (Some(place), Some(body)) = (doc.get(step, "condition"), doc.get(step, "body")) else {
            return;
        };
        if doc.kind(body) == Kind::Array {
            self.lint_one_too_many(place, body, condition);
        }
        if self.facts.has_return(body) || doc.kind(body) != Kind::Array {
            return;
        }
        if self.never_starts(condition) || self.lint_direction(step, condition) {
            return;
        }
        let (names, calls) = names_in(condition);
        if calls {
            return;
        }
        let names: Vec<String> = names.into_iter().map(Self::shown).collect();
        let vars = doc.get(step, "vars").into_iter();
        let texts = vars.flat_map(|vars| doc.members(vars));
        let roots: Vec<String> = texts
            .filter_map(|(_, node)| super::text_of(doc, node))
            .map(|text| text.split('.').next().unwrap_or(&text).to_owned())
            .collect();
        let asked: Vec<&String> = names.iter().chain(&roots).collect();
        let bound = self.bound_in(body);
        if asked.iter().any(|name| bound.contains(*name)) {
            return;
        }
        let mut words = Words::default();
        words.collect(self, body);
        if words.has("break") {
            return;
        }
        // The loop may end by an error, or change the value in a variable; only a step that binds
        // its name changes a number.
        let numbers = !asked.is_empty()
            && asked.iter().all(|name| {
                let holds = self.holds_of_name(name.as_bytes());
                holds == super::Holds::Number
            });
        let acts = words.leaves || (words.mutates && !numbers);
        let mentioned = asked.iter().any(|name| words.has(name));
        if acts && (mentioned || asked.is_empty() || words.has("Error")) {
            return;
        }
        let mut asked: Vec<&String> = asked;
        asked.sort();
        let message = match asked.first() {
            Some(name) => format!("no step of this loop sets `{}`", excerpt(name)),
            None => "this condition never changes".to_owned(),
        };
        let help = match asked.first() {
            Some(name) => format!(
                "bind it in the body, as with `{{\"op\": \"mathCalc\", \"expr\": \"{name} + 1\", \
                 \"result\": \"{name}\"}}`, or `return`"
            ),
            None => {
                "ask for a variable that the body sets, or leave the loop by `break` or `return`"
                    .to_owned()
            }
        };
        let text = super::text_of(doc, place).unwrap_or_default();
        self.found(codes::ENDLESS_LOOP, place, message, &text, help);
    }

    /// Reports `i <= xs.length` around `xs[i]`, which is undefined in the last iteration.
    fn lint_one_too_many(&mut self, place: NodeId, body: NodeId, condition: &Ir<'a>) {
        use a99_compiler::expr::BinOp;
        use a99_compiler::ir::IrKind;
        let IrKind::Binary(BinOp::Le, left, right) = condition.kind else {
            return;
        };
        let (
            IrKind::Ident(index),
            IrKind::Member {
                object, property, ..
            },
        ) = (left.kind, right.kind)
        else {
            return;
        };
        let IrKind::Ident(list) = object.kind else {
            return;
        };
        if property != b"length" || !self.spend_on(body) {
            return;
        }
        let doc = self.doc;
        let ident = |node: Option<NodeId>, name: &[u8]| {
            node.and_then(|n| doc.get(n, "name"))
                .and_then(|n| doc.str(n))
                == Some(name)
        };
        let (index_name, list_name) = (Self::shown(index), Self::shown(list));
        let written = format!("{list_name}[{index_name}]");
        let mut work = vec![body];
        while let Some(node) = work.pop() {
            let reads = match doc.kind(node) {
                Kind::String(text) => text
                    .windows(written.len())
                    .any(|part| part == written.as_bytes()),
                Kind::Object => {
                    ident(doc.get(node, "object"), list) && ident(doc.get(node, "property"), index)
                }
                _ => false,
            };
            if reads {
                let message = format!("in the last turn `{written}` is beyond the end");
                let help =
                    format!("items are numbered from 0: write `{index_name} < {list_name}.length`");
                let at = condition.at.inner;
                return self.found(codes::UNKNOWN_MEMBER, (place, at), message, "", help);
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
    }

    /// Reports a condition that is tested for each item but does not read the item.
    pub(super) fn on_item(&mut self, step: NodeId, condition: &Ir<'a>) {
        let doc = self.doc;
        let Some(item) = self.text(step, "as") else {
            return;
        };
        let Some(place) = doc.get(step, "condition") else {
            return;
        };
        if asks_for(condition, item.as_bytes()) {
            return;
        }
        let (names, calls) = names_in(condition);
        let mut words = Words::default();
        if let Some(vars) = doc.get(step, "vars") {
            words.collect(self, vars);
        }
        let index = self.index_of(step).unwrap_or_default();
        let looks = |name: &str| names.contains(name.as_bytes()) || words.has(name);
        if calls || looks(&item) || looks(&index) {
            return;
        }
        let text = format!(
            "this condition does not look at the item, which is called `{}`",
            excerpt(&item)
        );
        let shown = super::text_of(doc, place).unwrap_or_default();
        let help = format!("ask for it, as in `{item} > 3` or `{item}.name == 'x'`");
        self.found(codes::UNUSED_ITEM, place, text, &shown, help);
    }

    /// The name of the loop index, if there is one.
    fn index_of(&self, step: NodeId) -> Option<String> {
        let index = self.doc.get(step, "index")?;
        let counts = self.is_version_4() || self.form_of(step) == Some(Form::ForEach);
        super::text_of(self.doc, index).filter(|_| counts)
    }

    /// Reports a body that does not bind its `result`, or does not read its item.
    pub(super) fn lint_body(&mut self, step: NodeId, op: &str, form: Form) {
        let doc = self.doc;
        let text = |key: &str| {
            let text = doc.get(step, key).and_then(|n| doc.str(n));
            text.map(wtf8_to_string_lossy)
        };
        let Some(steps) = doc.get(step, "steps") else {
            return;
        };
        if doc.kind(steps) != Kind::Array {
            return;
        }
        let named = doc.get(step, "result").is_some_and(|n| truthy(doc, n));
        let taken = form != Form::ForEach && (named || form == Form::Reduce);
        let may_return =
            matches!(form, Form::Memoize | Form::Cache) && self.facts.has_return(steps);
        match form {
            Form::Memoize | Form::Cache => self.lint_same_key(step, steps, form),
            _ => self.lint_growing(step, steps),
        }
        if form == Form::ForEach {
            self.lint_first_turn(steps);
        }
        let wants = taken && !may_return && !self.vars.knows(b"result");
        if wants && !self.bound_in(steps).contains("result") {
            let what = match form {
                Form::Map => "so every item becomes `null`",
                Form::Reduce => "so the accumulator never changes",
                _ => "so it has no value",
            };
            let message = format!("no step of this body binds `result`, {what}");
            let last = doc.elements(steps).last();
            let named = last.and_then(|last| {
                let key = match self.form_of(last) {
                    Some(Form::VarSet | Form::ConstSet) => "key",
                    _ => "result",
                };
                super::text_of(doc, doc.get(last, key)?)
            });
            let help = match named {
                Some(named) => format!(
                    "bind the item's value to `result` instead of `{}`",
                    excerpt(&named)
                ),
                None => "give the step that makes the value `\"result\": \"result\"`".to_owned(),
            };
            self.found(codes::MISSING_RESULT, steps, message, "result", help);
        } else if wants && form == Form::Map {
            self.lint_gaps(steps);
        }
        let Some(item) =
            text("as").filter(|_| matches!(form, Form::Map | Form::Reduce | Form::ForEach))
        else {
            return;
        };
        let looks = |name: &str| mentions(doc, steps, name);
        let ignored = item.starts_with('_') || doc.is_empty(steps);
        if !ignored && !looks(&item) && !self.index_of(step).is_some_and(|index| looks(&index)) {
            let message = format!(
                "no step of this body looks at the item, which is called `{}`",
                excerpt(&item)
            );
            let help = format!("use `{item}` in the steps, or call it `_`");
            self.found(codes::UNUSED_ITEM, steps, message, op, help);
        }
        if form == Form::Reduce && text("accumulator").as_deref() == Some(&*item) {
            let message = format!(
                "the accumulator and the item are both called `{}`",
                excerpt(&item)
            );
            let place = doc.get(step, "accumulator").unwrap_or(step);
            let help = "give them two names, such as `\"as\": \"item\", \"accumulator\": \"sum\"`";
            self.found(codes::ODD_NAME, place, message, &item, help);
        }
    }

    /// Reports an `if` that repeats a condition of its chain, or does the same in both branches.
    pub(super) fn lint_branches(&mut self, step: NodeId) {
        let doc = self.doc;
        let Some(condition) = doc.get(step, "condition") else {
            return;
        };
        let (then, other) = (doc.get(step, "then"), doc.get(step, "else"));
        let no_steps = |node: Option<NodeId>| {
            node.is_none_or(|n| doc.kind(n) != Kind::Array || doc.is_empty(n))
        };
        if let Some(then) = then.filter(|n| doc.kind(*n) == Kind::Array && doc.is_empty(*n))
            && no_steps(other)
        {
            // A fault in the condition has a more precise finding.
            let text = super::text_of(doc, condition);
            if text.is_some_and(|text| self.parse_text(&text).is_err()) {
                return;
            }
            let message = "this `if` does nothing: both branches are empty";
            let help = "put steps into `then`, or remove the step";
            return self.found(codes::REPEATED_BRANCH, then, message, "", help);
        }
        if let Some(then) = then.filter(|n| doc.kind(*n) == Kind::Array && doc.is_empty(*n)) {
            let message = "nothing happens where the condition holds";
            let help = "turn the condition around, as in `!(n > 3)`, and put the steps into `then`";
            return self.found(codes::REPEATED_BRANCH, then, message, "", help);
        }
        let Some(other) = other.filter(|n| doc.kind(*n) == Kind::Array) else {
            return;
        };
        // Larger branches are not compared.
        const MAX_COMPARED: usize = 400;
        if let Some(then) = then.filter(|n| self.facts.size(*n) < MAX_COMPARED)
            && self.facts.size(then) == self.facts.size(other)
            && same(doc, then, other)
        {
            let message = "both branches are the same, whatever the condition says";
            let help = "correct one of them, or write the steps without `if`";
            return self.found(codes::REPEATED_BRANCH, other, message, "", help);
        }
        // A chain: `if ... else if ...`.
        let mut asked: SmallVec<[NodeId; 8]> = smallvec![condition];
        let mut at = other;
        while let Some(inner) = doc.elements(at).next().filter(|_| doc.len(at) == 1) {
            let next = doc.get(inner, "condition");
            let Some(next) = next.filter(|_| self.form_of(inner) == Some(Form::If)) else {
                return;
            };
            if self.facts.size(next) > MAX_COMPARED || asked.len() > 64 {
                return;
            }
            if asked.iter().any(|other| same(doc, *other, next)) {
                let message = "this was asked before: the branch is never taken";
                let shown = super::text_of(doc, next).unwrap_or_default();
                let help = "correct the condition, or remove the branch";
                return self.found(codes::REPEATED_BRANCH, next, message, &shown, help);
            }
            asked.push(next);
            match doc.get(inner, "else") {
                Some(more) if doc.kind(more) == Kind::Array => at = more,
                _ => return,
            }
        }
    }

    /// Reports two adjacent `if`s with the same condition, where the first changes no operand of
    /// it.
    pub(super) fn lint_neighbours(&mut self, steps: &[NodeId]) {
        let doc = self.doc;
        for pair in steps.windows(2) {
            let ask = |step: NodeId| {
                let node = doc.get(step, "condition")?;
                Some((node, doc.str(node)?))
            };
            let (Some((_, first)), Some((place, second))) = (ask(pair[0]), ask(pair[1])) else {
                continue;
            };
            let is_if = |step: NodeId| self.form_of(step) == Some(Form::If);
            if first != second || !is_if(pair[0]) || !is_if(pair[1]) {
                continue;
            }
            if doc.get(pair[0], "vars").is_some() {
                continue;
            }
            let (first, second) = (Self::shown(first), Self::shown(second));
            let Ok(parsed) = a99_compiler::expr::parse_condition(&first) else {
                continue;
            };
            let mut changed = HashSet::new();
            let mut words = Words::default();
            for body in ["then", "else"]
                .iter()
                .filter_map(|key| doc.get(pair[0], key))
            {
                changed.extend(self.bound_in(body));
                words.collect(self, body);
            }
            let moves = parsed.nodes.iter().any(|node| match &node.kind {
                a99_compiler::expr::ExprKind::Ident(name) => changed.contains(&**name),
                a99_compiler::expr::ExprKind::Call { .. }
                | a99_compiler::expr::ExprKind::MethodCall { .. } => true,
                _ => false,
            });
            if moves || words.leaves || words.mutates {
                continue;
            }
            let message = "this asks the same as the `if` before it";
            let help = "correct the condition, or join the two";
            self.found(codes::REPEATED_BRANCH, place, message, &second, help);
        }
    }
}
