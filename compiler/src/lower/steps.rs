//! Lists of steps and the dispatch to forms and atoms.

use super::Lower;
use crate::ir::key_text;
use a99_core::diag::codes;
use a99_core::json::{Kind, NodeId};
use a99_core::program::Reg;
use a99_core::sig::Form;
use a99_core::text::wtf8_to_string_lossy;

/// The error message where the reference leaves the wording to the engine.
const NOT_STEPS: &str = "steps is not iterable";

impl<'a> Lower<'_, 'a> {
    /// Compiles an explicit `seq` step.
    pub(super) fn step_seq(&mut self, step: NodeId, steps: Option<NodeId>, binds: bool) {
        let op = self.s.op("seq");
        let scope = self.step_scope();
        let id = self.e.open_step(op, step, false, scope);
        self.list(step, steps);
        if binds {
            // `seq` has no value; the variable of `result` stays unchanged (D12).
            self.e.flush();
        }
        self.e.close_step(id, None);
    }

    /// Compiles the implicit `seq` around the steps of a form.
    pub(super) fn body(&mut self, owner: NodeId, steps: Option<NodeId>) {
        let op = self.s.op("seq");
        let scope = self.step_scope();
        let node = steps.unwrap_or(owner);
        let before = self.e.at;
        self.e.at = Some((node, None));
        let id = self.e.open_step(op, node, true, scope);
        self.list(owner, steps);
        self.e.close_step(id, None);
        self.e.at = before;
    }

    fn list(&mut self, owner: NodeId, steps: Option<NodeId>) {
        let doc = self.s.doc;
        let Some(list) = steps.filter(|n| doc.kind(*n) == Kind::Array) else {
            let at = steps.unwrap_or(owner);
            let diag = self
                .s
                .warn(
                    codes::MALFORMED_STEP,
                    at,
                    "a list of steps is missing or no array".into(),
                )
                .with_help("write the steps as an array: [{\"op\": ...}, ...]");
            let diag = match steps {
                None => self.steps_elsewhere(owner, diag),
                Some(_) => diag,
            };
            self.s.push(diag);
            // A text is iterated by characters, which have no op.
            let is_text = steps
                .and_then(|n| doc.str(n))
                .is_some_and(|s| !s.is_empty());
            self.throw(if is_text {
                "Unknown Atom: undefined"
            } else {
                NOT_STEPS
            });
            return;
        };
        let steps: Vec<NodeId> = doc.elements(list).collect();
        let mut after_return = false;
        self.on_open_body(&steps);
        self.steps(&steps, &mut after_return);
        self.on_close_body();
    }

    fn steps(&mut self, steps: &[NodeId], after_return: &mut bool) {
        let doc = self.s.doc;
        for step in steps.iter().copied() {
            if self.e.is_over() {
                return;
            }
            if *after_return {
                let diag = self.s.warn(
                    codes::UNREACHABLE_STEP,
                    step,
                    "this step is never reached".into(),
                );
                let op = doc.get(step, "op").and_then(|op| doc.str(op));
                let op = op.map(Self::shown).unwrap_or_default();
                self.s
                    .push(diag.with_offending(a99_core::diag::excerpt(&op)));
            }
            *after_return = self.step(step);
        }
    }

    /// Compiles one step; returns whether control never continues after it.
    fn step(&mut self, step: NodeId) -> bool {
        let doc = self.s.doc;
        self.e.at = Some((step, None));
        if doc.kind(step) != Kind::Object {
            let text = match doc.kind(step) {
                Kind::Null => "null is not an object (evaluating 'step.op')",
                _ => "Unknown Atom: undefined",
            };
            self.warn_no_step(step);
            self.throw(text);
            return false;
        }
        let op = wtf8_to_string_lossy(key_text(doc, doc.get(step, "op"), self.s.arena));
        // Internal atoms serve forms; no program can name them.
        let known = self.s.signature(&op).filter(|_| !op.contains(':'));
        let Some(sig) = known else {
            match doc.get(step, "op").is_some_and(|op| doc.str(op).is_some()) {
                true => self.s.warn_unknown_atom(&op, step),
                false => self.warn_without_op(step),
            }
            self.on_faulty_step(step);
            self.throw(&format!("Unknown Atom: {op}"));
            return false;
        };
        self.check_literals(step, &op, sig);
        self.on_step(step, &op, sig);
        let Some(form) = sig.form else {
            self.atom_step(step, &op);
            return op == "consoleError" && self.is_watched();
        };
        if form == Form::Seq {
            self.step_seq(step, doc.get(step, "steps"), true);
            return self.leaves(step);
        }
        let op = self.s.op(&op);
        let scope = self.step_scope();
        let mark = self.mark();
        let id = self.e.open_step(op, step, false, scope);
        let value = self.form(step, form);
        self.e.at = Some((step, None));
        self.e.close_step(id, value);
        self.release(mark);
        match form {
            Form::Return | Form::Break | Form::Continue => true,
            Form::Error => self.is_watched(),
            Form::If | Form::Try | Form::Scope => self.leaves(step),
            _ => false,
        }
    }

    /// Compiles a form; returns the register of its value, if it has one.
    fn form(&mut self, step: NodeId, form: Form) -> Option<Reg> {
        match form {
            Form::Seq => None,
            Form::If => self.form_if(step),
            Form::While => self.form_while(step),
            Form::ForEach => self.form_for_each(step),
            Form::Break => self.form_jump(step, form),
            Form::Continue => self.form_jump(step, form),
            Form::Try => self.form_try(step),
            Form::Return => self.form_return(step),
            Form::Scope => self.form_scope(step),
            Form::CallLocal => self.form_call_local(step),
            Form::Error => self.form_error(step),
            Form::Map => self.form_map(step),
            Form::Filter => self.form_filter(step, false),
            Form::Find => self.form_filter(step, true),
            Form::Reduce => self.form_reduce(step),
            Form::Memoize => self.form_memoize(step),
            Form::Cache => self.form_cache(step),
            Form::VarSet => self.form_var_set(step),
            Form::ConstSet => self.form_const_set(step),
            Form::VarGet => self.form_var_get(step),
            Form::VarsImport => self.form_vars_import(step),
            Form::VarsLet => self.form_vars_let(step),
            Form::VarsExport => self.form_vars_export(step),
            Form::MathCalc => self.form_math(step),
            Form::AgentRun => self.form_agent_run(step),
            Form::RunCode => self.form_run_code(step),
            Form::CallAll => self.form_call_all(step),
            Form::ToolLoop => self.form_tool_loop(step),
        }
    }

    /// The step's inputs that are variables (`varsLet`).
    pub(super) fn inputs(&self, step: NodeId) -> Vec<(&'a [u8], NodeId)> {
        self.s
            .doc
            .members(step)
            .filter(|(name, _)| !matches!(*name, b"op" | b"result"))
            .collect()
    }
}
