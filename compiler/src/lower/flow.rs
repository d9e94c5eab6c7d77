//! `if`, `while`, `try`, `return`, `scope`, `callLocal` and `Error`.

use super::loops::Jumps;
use super::scopes::catch_param;
use super::{Lower, ReturnTo};
use crate::emit::Label;
use crate::ir::{key_text, truthy};
use a99_core::diag::{Diagnostic, codes};
use a99_core::json::{Kind, NodeId};
use a99_core::program::{
    ChargeKind, Const, Count, FunctionIdx, KeyIdx, Op, Reg, SchemaIdx, Target,
};
use a99_core::sig::Form;
use a99_core::value::Value;
use hashbrown::HashSet;

impl<'a> Lower<'_, 'a> {
    pub(super) fn form_if(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let condition = self.condition(step);
        let (other, end) = (self.e.label(), self.e.label());
        self.with_condition(condition, |l, ir| l.jump_unless(ir, other));
        let mark = self.vars.mark();
        self.body(step, doc.get(step, "then"));
        let then_bound = self.vars.undo(mark);
        if let Some(steps) = doc.get(step, "else").filter(|n| truthy(doc, *n)) {
            self.e.jump(Op::Jmp { to: Target(0) }, end);
            self.e.bind(other);
            self.body(step, Some(steps));
            let else_bound = self.vars.undo(mark);
            self.e.bind(end);
            // After the `if`, the names that both branches bind are bound.
            let in_else: HashSet<_> = else_bound.into_iter().collect();
            for id in then_bound.into_iter().filter(|id| in_else.contains(id)) {
                self.vars.set_bound(id);
            }
        } else {
            self.e.bind(other);
            self.e.bind(end);
        }
        self.end_valueless(step)
    }

    /// `result` on a form without a value leaves its variable unchanged (D12), also if it is a
    /// constant; the name must be one that may be bound.
    pub(super) fn end_valueless(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        if let Some(node) = doc.get(step, "result").filter(|n| truthy(doc, *n)) {
            let name = key_text(doc, Some(node), self.s.arena);
            self.s.check_name(name, node);
        }
        None
    }

    pub(super) fn form_while(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let condition = self.condition(step);
        self.loops += 1;
        let (body, end) = (self.e.label(), self.e.label());
        let test_charge = |l: &mut Self| {
            if condition.is_text {
                l.e.charge(ChargeKind::TextTest);
            }
        };
        let mark = self.vars.mark();
        test_charge(self);
        self.on_start(step, condition.ir);
        self.with_condition(condition, |l, ir| l.jump_unless(ir, end));
        self.e.bind(body);
        self.e.charge(if condition.is_text {
            ChargeKind::TextTurn
        } else {
            ChargeKind::Turn
        });
        self.on_loop(step, condition.ir);
        self.on_enter_loop();
        let next = self.e.label();
        if self.loop_body(step, doc.get(step, "body"), end, next) {
            self.e.bind(next);
        }
        self.on_leave_loop();
        // Names that the body binds may be unbound at the next test, whose code also serves the
        // first iteration.
        self.vars.undo(mark);
        self.e.at = doc
            .get(step, "condition")
            .map(|n| (n, None))
            .or(Some((step, None)));
        test_charge(self);
        self.with_condition(condition, |l, ir| l.jump_if(ir, body));
        self.e.bind(end);
        self.loops -= 1;
        self.end_valueless(step)
    }

    /// Compiles the body of a loop that `break` and `continue` may leave; returns whether a
    /// `continue` does.
    pub(super) fn loop_body(
        &mut self,
        step: NodeId,
        steps: Option<NodeId>,
        end: Label,
        next: Label,
    ) -> bool {
        let jumps = Jumps::Loop {
            end,
            next,
            continued: false,
        };
        let around = std::mem::replace(&mut self.jumps, jumps);
        self.body(step, steps);
        let jumps = std::mem::replace(&mut self.jumps, around);
        matches!(
            jumps,
            Jumps::Loop {
                continued: true,
                ..
            }
        )
    }

    /// `break`, or `continue` (D64).
    pub(super) fn form_jump(&mut self, step: NodeId, form: Form) -> Option<Reg> {
        let doc = self.s.doc;
        self.end_valueless(step);
        let help = match &mut self.jumps {
            Jumps::Loop {
                end,
                next,
                continued,
            } => {
                *continued |= form == Form::Continue;
                let to = if form == Form::Break { *end } else { *next };
                self.e.jump(Op::Jmp { to: Target(0) }, to);
                return None;
            }
            Jumps::Barred(around) => {
                let around = key_text(doc, doc.get(*around, "op"), self.s.arena);
                let around = Self::shown(around);
                match form {
                    Form::Continue => format!(
                        "it cannot leave the steps of `{around}`: use `return`, which ends them, \
                         or `forEach`"
                    ),
                    _ => format!(
                        "it cannot leave the steps of `{around}`: use `forEach`, whose steps \
                         share the variables around it"
                    ),
                }
            }
            Jumps::Outside => {
                "put it into the steps of a `forEach` or the body of a `while`".to_owned()
            }
        };
        let name = form.name();
        let diag = Diagnostic::error(
            codes::NO_LOOP,
            format!("no loop is around this `{name}`"),
            self.s.error_pointer(step),
        );
        let diag = diag.with_span(doc.span(step)).with_offending(name);
        self.s.push(diag.with_help(help));
        self.throw(name);
        None
    }

    pub(super) fn form_try(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let catch = doc.get(step, "catch").filter(|n| truthy(doc, *n));
        let mark = self.vars.mark();
        let start = self.e.pc();
        self.on_try(1);
        self.body(step, doc.get(step, "try"));
        self.on_try(-1);
        let Some(catch) = catch else {
            self.vars.undo(mark);
            return self.end_valueless(step);
        };
        self.vars.undo(mark);
        let (handler, end) = (self.e.label(), self.e.label());
        self.e.protect(start, handler);
        self.e.jump(Op::Jmp { to: Target(0) }, end);
        self.e.bind(handler);
        let regs = self.mark();
        let (msg, op) = (self.temp(), self.temp());
        self.e.emit(Op::Catch { msg, op });
        let param = catch_param(doc, step, self.s.arena);
        let node = doc.get(step, "catchParam").unwrap_or(step);
        self.bind(param, node, msg);
        self.bind(b"errorOp", step, op);
        self.on_caught(param);
        self.release(regs);
        self.caught.push(param);
        self.body(step, Some(catch));
        self.caught.pop();
        self.vars.undo(mark);
        self.e.bind(end);
        self.end_valueless(step)
    }

    pub(super) fn form_return(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let dst = self.temp();
        if let Some(value) = doc.get(step, "value") {
            self.value_to(value, dst);
            self.on_returned_value(value);
            if !self.in_helper && !self.s.version_4 {
                self.e.emit(Op::CheckReturn { src: dst });
            }
        } else {
            self.return_schema(step, dst);
        }
        self.bind_result(step, dst, true);
        match self.returns {
            ReturnTo::Function => self.e.emit(Op::Ret { src: dst }),
            ReturnTo::Region { end, value } => {
                match value {
                    Some(value) => self.store(value, dst),
                    None => self.on_return_in_body(step),
                }
                self.e.jump(Op::Jmp { to: Target(0) }, end);
            }
        }
        Some(dst)
    }

    /// Builds an object with exactly the properties of the schema: each is read as a variable, then
    /// projected through the schema.
    fn return_schema(&mut self, step: NodeId, dst: Reg) {
        let doc = self.s.doc;
        let schema = doc.get(step, "schema");
        let properties = schema
            .and_then(|s| doc.get(s, "properties"))
            .filter(|p| doc.kind(*p) == Kind::Object);
        let names: Vec<&'a [u8]> = properties
            .into_iter()
            .flat_map(|p| doc.members(p))
            .map(|m| m.0)
            .collect();
        if let Some(schema) = schema {
            names.iter().for_each(|name| self.on_returned(schema, name));
        }
        let mark = self.mark();
        let keys: Vec<KeyIdx> = names.iter().map(|n| self.s.pool.key(n)).collect();
        let fields = self.fields(names.len());
        for name in &names {
            let mark = self.mark();
            let src = self.name_or_undefined(name);
            self.field(fields, src, mark);
        }
        self.new_object(dst, &keys, fields);
        self.release(mark);
        let filter = doc
            .get(step, "filter")
            .is_some_and(|f| doc.kind(f) == Kind::Bool(false));
        if !filter
            && let (Some(schema), Some(properties)) = (schema, properties)
            && self.projects(schema, properties)
        {
            let value: Value = doc.to_value(schema);
            self.s.schemas.push(value);
            let schema = self.s.schemas.len() as u32 - 1;
            self.e.emit(Op::Project {
                dst,
                src: dst,
                schema: SchemaIdx(schema),
            });
        }
    }

    /// Whether projection could change anything: some property's schema is not `{}`.
    fn projects(&self, schema: NodeId, properties: NodeId) -> bool {
        let doc = self.s.doc;
        let other_keys = doc
            .members(schema)
            .any(|(k, _)| !matches!(k, b"type" | b"properties"));
        other_keys
            || doc
                .members(properties)
                .any(|(_, p)| !(doc.kind(p) == Kind::Object && doc.is_empty(p)))
    }

    pub(super) fn form_scope(&mut self, step: NodeId) -> Option<Reg> {
        let steps = self.s.doc.get(step, "steps");
        let opened = self.open_scope(&[steps], &[], false);
        self.body(step, steps);
        self.close_scope(opened);
        self.end_valueless(step)
    }

    pub(super) fn form_call_local(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let name = key_text(doc, doc.get(step, "name"), self.s.arena);
        let dst = self.temp();
        let Some((callee, params)) = self.s.helpers.get(name).copied() else {
            let shown = Self::shown(name);
            let mut diag = self.s.warn(
                codes::UNKNOWN_FUNCTION,
                doc.get(step, "name").unwrap_or(step),
                format!("Unknown helper: {}", a99_core::diag::excerpt(&shown)),
            );
            let helpers = doc.get(doc.root(), "helpers");
            let names = helpers.into_iter().flat_map(|h| doc.members(h));
            let names = names.filter_map(|(name, _)| str::from_utf8(name).ok());
            if let Some(near) = self.s.nearest(&shown, names) {
                diag = diag.with_help(format!("did you mean '{near}'?"));
            } else {
                diag = diag.with_help(self.help_for_helper());
            }
            self.s.push(diag);
            self.on_faulty_step(step);
            self.throw(&format!("Unknown helper: {shown}"));
            return None;
        };
        let args: Vec<NodeId> = doc
            .get(step, "args")
            .into_iter()
            .flat_map(|a| doc.elements(a))
            .collect();
        self.on_arity(step, &Self::shown(name), args.len(), params);
        self.on_helper_call(step, name);
        self.charge_data(args.len());
        let mark = self.mark();
        let base = self.temps(params);
        for (i, arg) in args.iter().enumerate() {
            if i < params {
                self.value_to(*arg, base + i as u8);
            } else {
                let mark = self.mark();
                self.value(*arg);
                self.release(mark);
            }
        }
        for i in args.len()..params {
            self.load_const(base + i as u8, Const::Undefined);
        }
        self.e.emit(Op::Call {
            dst,
            base,
            n: Count(params as u8),
            callee: FunctionIdx(callee),
        });
        self.release(mark);
        self.bind_result(step, dst, true);
        Some(dst)
    }

    pub(super) fn form_error(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let first = doc
            .get(step, "args")
            .and_then(|a| doc.element(a, 0))
            .filter(|n| doc.kind(*n) != Kind::Null);
        let text = match first {
            Some(node) => Self::shown(key_text(doc, Some(node), self.s.arena)),
            None => "Error".to_owned(),
        };
        self.throw(&text);
        self.end_valueless(step)
    }
}
