//! `agentRun` and `runCode`: programs that arrive at run time.

use super::Lower;
use a99_core::json::NodeId;
use a99_core::program::{CONST_FLAG, Const, Count, NamesIdx, Op, Reg, Site, SiteIdx};
use a99_core::sig::Params;

/// Code budget that one name of a table costs.
const NAME_ROOM: usize = 8;

impl<'a> Lower<'_, 'a> {
    pub(super) fn form_agent_run(&mut self, step: NodeId) -> Option<Reg> {
        let dst = self.temp();
        let mark = self.mark();
        let base = self.temps(2);
        if let Some(sig) = self.s.signature("agentRun")
            && let Params::Named(params) = &sig.params
            && params.len() == 2
        {
            match self.guard_of(step, sig, params) {
                Some(guard) => self.guarded_inputs(step, &guard, params, base),
                None => (0..2).for_each(|i| self.input(step, params, i, base)),
            }
        }
        self.e.at = Some((step, None));
        let op = self.s.op("agentRun");
        self.s.sites.push(Site {
            op,
            step: self.e.step,
            inputs: 2,
        });
        let site = self.s.sites.len() as u32 - 1;
        self.e.emit(Op::AgentRun {
            dst,
            base,
            n: Count(2),
            site: SiteIdx(site),
        });
        self.release(mark);
        self.bind_result(step, dst, true);
        Some(dst)
    }

    pub(super) fn form_run_code(&mut self, step: NodeId) -> Option<Reg> {
        let doc = self.s.doc;
        let dst = self.temp();
        let mark = self.mark();
        let base = self.temps(2);
        match doc.get(step, "code") {
            Some(code) => self.value_to(code, base),
            None => self.load_const(base, Const::Undefined),
        }
        match doc.get(step, "args") {
            Some(args) => self.value_to(args, base + 1),
            None => self.load_const(base + 1, Const::Undefined),
        }
        self.e.at = Some((step, None));
        self.internal_call(base, base, 1, "transpileCode");
        let names = self.visible_names();
        self.e.emit(Op::RunCode {
            dst,
            base,
            n: Count(2),
            names,
        });
        self.release(mark);
        self.bind_result(step, dst, true);
        Some(dst)
    }

    /// The table of all names visible in the innermost scope.
    fn visible_names(&mut self) -> NamesIdx {
        self.on_read_all();
        let scope = self.scope();
        if let Some((of, names)) = self.s.names_of
            && of == scope
        {
            return NamesIdx(names);
        }
        // Finding and sorting a name costs as much as several instructions.
        if !self.e.spend(NAME_ROOM * self.vars.visible_count()) {
            return NamesIdx(0);
        }
        let visible = self.vars.visible();
        let mut table = Vec::with_capacity(visible.len());
        for (name, id) in &visible {
            let var = self.vars.var(*id);
            table.push((self.s.pool.text_const(name).0, var.location));
            if let Some(flag) = var.const_flag {
                table.push((self.s.pool.text_const(CONST_FLAG).0, flag));
            }
        }
        self.s.names.push(table);
        let names = self.s.names.len() as u32 - 1;
        self.s.names_of = Some((scope, names));
        NamesIdx(names)
    }
}
