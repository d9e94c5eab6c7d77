//! Steps that call an atom: load the inputs, call, bind the result.

use super::scopes::is_metadata;
use super::{Lower, MAX_CALL_ARGS};
use a99_core::json::{Kind, NodeId};
use a99_core::program::{Const, Count, Number, Op, Reg, Site, SiteIdx};
use a99_core::sig::{AtomSig, Binding, Param, Params};

/// A call of an atom whose inputs are in registers.
pub(super) struct Call {
    /// The called op, possibly an internal one.
    op: u32,
    /// The first of the `n` input registers.
    pub(super) base: Reg,
    pub(super) n: u8,
}

impl Call {
    pub(super) fn new(op: u32, base: Reg, n: u8) -> Call {
        Call { op, base, n }
    }
}

impl<'a> Lower<'_, 'a> {
    pub(super) fn atom_step(&mut self, step: NodeId, name: &str) {
        let Some(sig) = self.s.signature(name) else {
            return;
        };
        let op = self.s.op(name);
        let scope = self.step_scope();
        let mark = self.mark();
        let id = self.e.open_step(op, step, false, scope);
        let dst = self.temp();
        let inner = self.mark();
        let call = self.call_inputs(step, sig, op);
        let site = self.site(step, &call);
        self.e.emit(Op::CallAtom {
            dst,
            base: call.base,
            n: Count(call.n),
            site,
        });
        self.release(inner);
        self.bind_result(step, dst, true);
        self.e.close_step(id, Some(dst));
        self.release(mark);
    }

    /// The call site of a call with loaded inputs.
    pub(super) fn site(&mut self, step: NodeId, call: &Call) -> SiteIdx {
        self.e.at = Some((step, None));
        self.s.sites.push(Site {
            op: call.op,
            step: self.e.step,
            inputs: call.n,
        });
        SiteIdx(self.s.sites.len() as u32 - 1)
    }

    /// Loads the inputs of an atom call, in the open step.
    pub(super) fn call_inputs(&mut self, step: NodeId, sig: &AtomSig, op: u32) -> Call {
        let mut called = op;
        let (base, n) = match &sig.params {
            Params::Named(params) => {
                let n = params.len().min(MAX_CALL_ARGS);
                let base = self.temps(n);
                let params = &params[..n];
                let mut filled = false;
                if let Some((at, vars, holes)) = self.holes_of(step, params) {
                    self.input(step, params, 1 - at, base);
                    self.holes_to(vars, base + at as u8, &holes);
                    filled = true;
                } else if let Some(guard) = self.guard_of(step, sig, params) {
                    self.guarded_inputs(step, &guard, params, base);
                } else {
                    (0..n).for_each(|i| self.input(step, params, i, base));
                }
                if let Some(op) = self.template_op(params, filled) {
                    called = self.s.op(op);
                }
                (base, n as u8)
            }
            Params::Open => {
                let base = self.temp();
                self.open_inputs(step, base);
                (base, 1)
            }
            Params::Raw => {
                let base = self.temp();
                self.raw_inputs(step, base);
                (base, 1)
            }
        };
        Call {
            op: called,
            base,
            n,
        }
    }

    /// Loads input `i` into its register, counted from `base`.
    pub(super) fn input(&mut self, step: NodeId, params: &[Param], i: usize, base: Reg) {
        let doc = self.s.doc;
        let (param, dst) = (&params[i], base + i as u8);
        let Some(node) = doc.get(step, param.name) else {
            self.load_const(dst, Const::Undefined);
            return;
        };
        match param.binding {
            Binding::Value => self.value_to(node, dst),
            Binding::Literal => self.raw_to(node, dst),
            Binding::TextOrValue if doc.str(node).is_some() => self.raw_to(node, dst),
            Binding::TextOrValue => {
                self.value_to(node, dst);
                let mark = self.mark();
                let arr = self.temp();
                self.e.emit(Op::NewArr {
                    dst: arr,
                    cap: Number(1),
                });
                self.e.emit(Op::ArrPush { arr, src: dst });
                self.e.emit(Op::Mov { dst, src: arr });
                self.release(mark);
            }
            Binding::Vars => {
                if self.s.is_literal_object(node) {
                    self.charge_data(doc.len(node));
                }
                self.vars_object_to(node, dst, None);
            }
            Binding::TemplateVars { template } => {
                let text = (template, base + template);
                self.template_vars_to(step, params, (node, dst), text);
            }
        }
    }

    /// Loads every input as a value position, in one object.
    fn open_inputs(&mut self, step: NodeId, dst: Reg) {
        let mut inputs = self.inputs(step);
        inputs.retain(|(name, _)| !is_metadata(name));
        let mark = self.mark();
        let fields = self.fields(inputs.len());
        let mut keys = Vec::with_capacity(inputs.len());
        for (name, node) in inputs {
            keys.push(self.s.pool.key(name));
            let mark = self.mark();
            let src = self.value(node);
            self.field(fields, src, mark);
        }
        self.new_object(dst, &keys, fields);
        self.release(mark);
    }

    /// Loads the step unresolved, without `op` and `result`.
    fn raw_inputs(&mut self, step: NodeId, dst: Reg) {
        let doc = self.s.doc;
        debug_assert_eq!(doc.kind(step), Kind::Object);
        let mark = self.mark();
        let members: Vec<(&'a [u8], NodeId)> = doc
            .members(step)
            .filter(|(name, _)| !matches!(*name, b"op" | b"result"))
            .collect();
        let fields = self.fields(members.len());
        let mut keys = Vec::with_capacity(members.len());
        for (name, node) in members {
            keys.push(self.s.pool.key(name));
            let mark = self.mark();
            let src = self.temp();
            self.raw_to(node, src);
            self.field(fields, src, mark);
        }
        self.new_object(dst, &keys, fields);
        self.release(mark);
    }
}
