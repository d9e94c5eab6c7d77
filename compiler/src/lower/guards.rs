//! Guards: inputs that are resolved only after a check succeeds.
//!
//! Some atoms check a precondition before they resolve all of their inputs: that a capability
//! was granted, that a text can be split. If the check fails, the other inputs have no side
//! effects and no cost. An atom whose set has a `guard:` atom of its name is compiled so: the
//! inputs that the guard takes come first, and the others only if the guard accepts them. The
//! atom itself is called either way and words the failure. A guard without an observable effect
//! is omitted.

use super::Lower;
use a99_core::builtins::is_forbidden;
use a99_core::json::{Kind, NodeId};
use a99_core::program::{Const, Op, Reg, Target};
use a99_core::sig::{AtomSig, BaseCost, Binding, Param, Params};

/// The check before the other inputs.
pub(super) struct Guard {
    op: String,
    /// Positions of its inputs among the atom's.
    first: Vec<usize>,
    /// Whether its inputs are resolved again for the call: a price that depends on an input
    /// resolves it separately.
    again: bool,
}

impl Lower<'_, '_> {
    /// The guard of a step, if resolving its inputs early would be observable.
    pub(super) fn guard_of(&self, step: NodeId, sig: &AtomSig, params: &[Param]) -> Option<Guard> {
        let op = ["guard:", &*sig.name].concat();
        let Params::Named(asked) = &self.s.signature(&op)?.params else {
            return None;
        };
        let place = |p: &Param| params.iter().position(|q| q.name == p.name);
        let first: Vec<usize> = asked.iter().filter_map(place).collect();
        let again = matches!(sig.cost, BaseCost::Dynamic(_));
        let acts = params.iter().enumerate().any(|(i, param)| {
            let node = self.s.doc.get(step, param.name);
            // A copy for the host is paid for, resolved or not.
            let paid = |n| !sig.effect.is_local() && self.crosses(n);
            let acts = |n| paid(n) || self.acts(n, param.binding);
            (again || !first.contains(&i)) && node.is_some_and(acts)
        });
        (acts && first.len() == asked.len()).then_some(Guard { op, first, again })
    }

    /// Loads the inputs of a guarded step into the registers from `base`.
    pub(super) fn guarded_inputs(
        &mut self,
        step: NodeId,
        guard: &Guard,
        params: &[Param],
        base: Reg,
    ) {
        let load = |l: &mut Self, i: usize| l.input(step, params, i, base);
        self.guarded(step, guard, params.len(), base, load);
    }

    /// Loads the inputs of a call one by one into the registers from `base`; a guard of the atom
    /// always runs.
    pub(super) fn guarded_with(
        &mut self,
        node: NodeId,
        sig: &AtomSig,
        params: &[Param],
        base: Reg,
        mut load: impl FnMut(&mut Self, usize),
    ) {
        let op = format!("guard:{}", sig.name);
        let asked = self.s.signature(&op).map(|sig| &sig.params);
        let Some(Params::Named(asked)) = asked else {
            return (0..params.len()).for_each(|i| load(self, i));
        };
        let place = |p: &Param| params.iter().position(|q| q.name == p.name);
        let guard = Guard {
            op,
            first: asked.iter().filter_map(place).collect(),
            again: false,
        };
        self.guarded(node, &guard, params.len(), base, load);
    }

    fn guarded(
        &mut self,
        step: NodeId,
        guard: &Guard,
        inputs: usize,
        base: Reg,
        mut load: impl FnMut(&mut Self, usize),
    ) {
        for i in &guard.first {
            load(self, *i);
        }
        let (open, ready) = (self.e.label(), self.e.label());
        let mark = self.mark();
        let n = guard.first.len();
        let asked = self.temps(n.max(1));
        for (to, i) in guard.first.iter().enumerate() {
            self.mov(asked + to as u8, base + *i as u8);
        }
        self.e.at = Some((step, None));
        self.internal_call(asked, asked, n as u8, &guard.op);
        self.e.jump(
            Op::JTrue {
                src: asked,
                to: Target(0),
            },
            open,
        );
        self.release(mark);
        for i in 0..inputs {
            if !guard.first.contains(&i) {
                self.load_const(base + i as u8, Const::Undefined);
            }
        }
        self.e.jump(Op::Jmp { to: Target(0) }, ready);
        self.e.bind(open);
        for i in 0..inputs {
            if guard.again || !guard.first.contains(&i) {
                load(self, i);
            }
        }
        self.e.bind(ready);
    }

    /// Whether copying an input for the host costs fuel: strings, arrays and objects.
    fn crosses(&self, node: NodeId) -> bool {
        let kind = self.s.doc.kind(node);
        matches!(kind, Kind::String(_) | Kind::Array | Kind::Object)
    }

    /// Whether resolving an input can cost fuel, fail or have side effects.
    fn acts(&self, node: NodeId, binding: Binding) -> bool {
        let doc = self.s.doc;
        match binding {
            Binding::Literal => false,
            Binding::TextOrValue if doc.str(node).is_some() => false,
            Binding::Vars | Binding::TemplateVars { .. } if self.s.is_literal_object(node) => doc
                .members(node)
                .any(|(_, value)| self.acts_as_value(value)),
            _ => self.acts_as_value(node),
        }
    }

    /// Whether resolving a node in a value position can cost fuel, fail or have side effects.
    pub(super) fn acts_as_value(&self, node: NodeId) -> bool {
        let doc = self.s.doc;
        let forbidden = |text: &[u8]| text.split(|b| *b == b'.').any(is_forbidden);
        match doc.kind(node) {
            Kind::String(text) => forbidden(text),
            Kind::Object if self.s.is_arg(node) => doc
                .get(node, "path")
                .and_then(|path| doc.str(path))
                .is_some_and(forbidden),
            Kind::Object if self.s.is_expr(node) => true,
            // The metered model charges for literals.
            Kind::Object | Kind::Array => true,
            _ => false,
        }
    }
}
