//! Rules for unused variables, parameters and helpers, and for helpers that return nothing or
//! recurse endlessly.
//!
//! Codes: `lint.dropped_result`, `lint.endless_loop`, `lint.missing_result`, `lint.odd_name`,
//! `lint.unused_name`, `lint.wrong_kind`.

use super::Rules;
use a99_compiler::ir::truthy;
use a99_compiler::vars::{VarId, VarMap};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::{Effect, Form};
use hashbrown::HashSet;

/// The variables of a function that were bound and read.
#[derive(Default)]
pub(super) struct Usage {
    /// The first step that binds each variable.
    written: VarMap<NodeId>,
    read: VarMap<()>,
    /// Whether every variable may have been read.
    all: bool,
}

impl Usage {
    pub(super) fn wrote(&mut self, id: VarId, node: NodeId) {
        self.written.slot(id).get_or_insert(node);
    }

    pub(super) fn reads(&mut self, chain: &[VarId]) {
        for id in chain {
            self.read.insert(*id, ());
        }
    }

    pub(super) fn reads_all(&mut self) {
        self.all = true;
    }
}

impl<'a> Rules<'_, 'a> {
    /// Records a parameter of a helper.
    pub(super) fn on_parameter(&mut self, name: &[u8], node: NodeId) {
        if let Some(id) = self.own_variable(name) {
            self.lint.flow.usage.wrote(id, node);
        }
    }

    /// Reports, at the end of a function, variables that no step reads.
    pub(super) fn lint_unused(&mut self) {
        let doc = self.doc;
        let lint = &mut *self.lint;
        let usage = std::mem::take(&mut lint.flow.usage);
        let misses = lint.misses;
        let steps = doc.get(doc.root(), "steps");
        let gives = steps.is_some_and(|steps| self.facts.has_return(steps));
        if usage.all || misses || !gives && !self.in_helper || self.has_errors() {
            return;
        }
        let unread = usage
            .written
            .iter()
            .filter(|(id, _)| usage.read.get(*id).is_none());
        let mut unread: Vec<NodeId> = unread.map(|(_, node)| *node).collect();
        unread.sort();
        // A parameter before one that is used holds its position.
        let holds_position = |node: NodeId| {
            let list = doc
                .parent(node)
                .filter(|list| doc.kind(*list) == Kind::Array);
            let later = list.map(|list| doc.elements(list).skip_while(move |one| *one != node));
            later.is_some_and(|mut later| later.any(|one| unread.binary_search(&one).is_err()))
        };
        for node in &unread {
            if !holds_position(*node) {
                self.found_unused(*node);
            }
        }
    }

    fn found_unused(&mut self, node: NodeId) {
        let doc = self.doc;
        let name = super::text_of(doc, node).unwrap_or_default();
        if name.starts_with('_') || name == "result" || name.is_empty() {
            return;
        }
        let step = doc.parent(node);
        let is_parameter = step.is_some_and(|step| doc.kind(step) == Kind::Array);
        if !is_parameter && !step.is_some_and(|step| self.only_computes(step)) {
            return;
        }
        let (what, help) = match is_parameter {
            true => (
                "parameter",
                "use it in the steps of the helper, or remove it",
            ),
            false => (
                "variable",
                "use it in a step or in what `return` gives, or remove this step",
            ),
        };
        let spoken = self.spoken_name(&name, node);
        let help = match spoken == name {
            true => help,
            false => {
                "it is a variable of this block: leave out `let` to set the one around it, else use \
                      it or remove it"
            }
        };
        let name = spoken;
        let message = format!("nothing asks for this {what}, `{}`", excerpt(&name));
        self.found(codes::UNUSED_NAME, node, message, &name, help);
    }

    /// Whether a step exists only for the value that it binds.
    fn only_computes(&self, step: NodeId) -> bool {
        let op = self.text(step, "op");
        let Some(op) = op else { return false };
        let Some(sig) = self.signature(&op) else {
            return false;
        };
        if self.only_reads(step, sig) {
            return true;
        }
        if !self.is_pure(step) {
            return false;
        }
        match sig.form {
            None => sig.effect == Effect::Pure,
            Some(Form::VarSet | Form::ConstSet | Form::MathCalc | Form::VarGet) => true,
            Some(Form::Filter | Form::Find | Form::VarsExport) => true,
            Some(_) => false,
        }
    }

    /// Checks the helpers of the root, and reports endless recursion.
    pub(super) fn lint_helpers(&mut self, helpers: NodeId) {
        let doc = self.doc;
        if doc.kind(helpers) != Kind::Object {
            let message = "`helpers` is an object: a helper for each name";
            let help = "write `\"helpers\": {\"name\": {\"paramNames\": [], \"steps\": []}}`";
            return self.found(codes::WRONG_KIND, helpers, message, "", help);
        }
        for (name, helper) in doc.members(helpers) {
            let shown = Self::shown(name);
            self.lint_parameters(helper);
            let mut seen: HashSet<String> = HashSet::from_iter([shown.clone()]);
            let mut at = self.first_call(helper);
            let place = at.as_ref().map(|call| call.1);
            while let Some((next, _)) = at {
                if next == shown {
                    let message = format!(
                        "`{}` calls itself before anything can end it",
                        excerpt(&shown)
                    );
                    let node = place.unwrap_or(helper);
                    let help = "test before whether it is done: `if {condition, then: [{\"op\": \
                                \"return\", ...}]}`";
                    self.found(codes::ENDLESS_LOOP, node, message, &shown, help);
                    break;
                }
                if !seen.insert(next.clone()) {
                    break;
                }
                at = doc
                    .get(helpers, &next)
                    .and_then(|helper| self.first_call(helper));
            }
        }
    }

    /// The helper that a helper surely calls before it can return or fail.
    fn first_call(&self, helper: NodeId) -> Option<(String, NodeId)> {
        self.first_call_in(self.doc.get(helper, "steps")?, 0)
    }

    fn first_call_in(&self, steps: NodeId, depth: u32) -> Option<(String, NodeId)> {
        const DEEPEST: u32 = 8;
        let doc = self.doc;
        for step in doc.elements(steps).take(1_000) {
            match self.form_of(step)? {
                Form::CallLocal => {
                    let name = doc.get(step, "name")?;
                    return Some((super::text_of(doc, name)?, step));
                }
                Form::Return | Form::Error | Form::Try | Form::RunCode => return None,
                Form::If | Form::While | Form::Seq | Form::Scope if self.facts.has_return(step) => {
                    return None;
                }
                // Both branches call it, so the step does.
                Form::If if depth < DEEPEST => {
                    let call = |key: &str| self.first_call_in(doc.get(step, key)?, depth + 1);
                    if let (Some((then, node)), Some((other, _))) = (call("then"), call("else"))
                        && then == other
                    {
                        return Some((then, node));
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn lint_parameters(&mut self, helper: NodeId) {
        let doc = self.doc;
        if let Some(node) = doc
            .get(helper, "paramNames")
            .filter(|n| doc.kind(*n) != Kind::Array)
        {
            let shown = super::text_of(doc, node).unwrap_or_default();
            let help = format!("write `\"paramNames\": [\"{}\"]`", excerpt(&shown));
            self.found(
                codes::WRONG_KIND,
                node,
                "`paramNames` is a list of names",
                &shown,
                help,
            );
        }
        let mut seen = HashSet::new();
        for node in doc
            .get(helper, "paramNames")
            .into_iter()
            .flat_map(|n| doc.elements(n))
        {
            let Some(name) = super::text_of(doc, node) else {
                continue;
            };
            self.lint_name(node, "key", name.as_bytes());
            if !seen.insert(name.clone()) {
                let message = format!("two parameters are called `{}`", excerpt(&name));
                let help = "give each its own name";
                self.found(codes::ODD_NAME, node, message, &name, help);
            }
        }
    }

    /// Records a call of a helper, and reports a kept result of a helper that returns nothing.
    pub(super) fn on_helper_call(&mut self, step: NodeId, name: &'a [u8]) {
        let doc = self.doc;
        let lint = &mut *self.lint;
        lint.called.insert(name);
        let shown = Self::shown(name);
        let helpers = doc.get(doc.root(), "helpers");
        let helper = helpers.and_then(|helpers| doc.get(helpers, &shown));
        let Some((helper, steps)) = helper.and_then(|h| Some((h, doc.get(h, "steps")?))) else {
            return;
        };
        let kept = doc.get(step, "result").is_some_and(|n| truthy(doc, n));
        if kept && !self.facts.has_return(steps) && doc.kind(steps) == Kind::Array {
            let message = format!(
                "`{}` returns nothing, and its value is kept",
                excerpt(&shown)
            );
            let help = "end its steps with `{\"op\": \"return\", \"value\": ...}`";
            return self.found(codes::MISSING_RESULT, helper, message, &shown, help);
        }
        if !kept && self.spend_on(steps) && self.is_pure(steps) && !self.may_fail(steps) {
            let message = format!("the value of the helper `{}` is dropped", excerpt(&shown));
            let help = "add `\"result\": \"name\"`, or remove the step";
            self.found(codes::DROPPED_RESULT, step, message, "callLocal", help);
        }
    }

    /// Whether steps may exist only to fail.
    fn may_fail(&self, steps: NodeId) -> bool {
        let doc = self.doc;
        let mut work = vec![steps];
        while let Some(node) = work.pop() {
            let op = doc.str(node).and_then(|op| str::from_utf8(op).ok());
            let sig = op.and_then(|op| self.signature(op));
            if sig.is_some_and(|sig| sig.always_fails() || sig.form == Some(Form::CallLocal)) {
                return true;
            }
            work.extend(doc.members(node).map(|(_, value)| value));
            work.extend(doc.elements(node));
        }
        false
    }

    /// Reports, after all functions are compiled, helpers that are never called.
    pub(super) fn on_end(&mut self) {
        if self.lint.runs_others {
            return;
        }
        let doc = self.doc;
        let helpers = doc.get(doc.root(), "helpers").into_iter();
        for (name, helper) in helpers.flat_map(|n| doc.members(n)) {
            if self.lint.called.contains(name) {
                continue;
            }
            let shown = Self::shown(name);
            let message = format!("nothing calls the helper `{}`", excerpt(&shown));
            let help = format!(
                "call it, `callLocal {{name: \"{}\", args, result}}`, or remove it",
                excerpt(&shown)
            );
            self.found(codes::UNUSED_NAME, helper, message, &shown, help);
        }
    }
}
