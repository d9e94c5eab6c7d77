//! Prices of one run: overrides, quotas, and single charges.

use super::{LoadedProgram, Machine};
use crate::atom::{AtomDef, CostFn};
use crate::convert::BoundaryLimits;
use crate::heap::Val;
use crate::link::{Executable, Prices};
use crate::native::{Cx, Fault, Host};
use crate::options::{CostOverride, RunOptions};
use crate::pace::Mark;
use a99_core::error::ErrorCode;
use a99_core::fuel::cost_from_f64;
use a99_core::program::{ChargeKind, Function, Op, Program};
use a99_core::text::wtf8_to_string_lossy;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Price of a block that is never paid whole: it has a step with a price function or a call
/// quota.
pub(super) const FORCE_PRECISE: i64 = i64::MAX / 2;

/// Work per call of a host's price function: it may be slow, so the deadline is polled soon
/// after (F03).
const PRICE_WORK: usize = 4_096;

/// Whether the run's options change any price.
fn has_rules(options: &RunOptions) -> bool {
    !options.costs.is_empty() || !options.quotas.is_empty()
}

/// Block prices of a program under a run's options, if these change any.
pub(super) fn own_prices(exe: &Executable, options: &RunOptions) -> Option<Arc<Prices>> {
    if !has_rules(options) {
        return None;
    }
    let program = exe.program();
    let ops: Vec<i64> = program
        .ops
        .iter()
        .zip(exe.op_prices(options.cost_model))
        .map(|(op, default)| {
            let name = wtf8_to_string_lossy(program.text(op.name));
            if options.quotas.contains_key(&*name) {
                return FORCE_PRECISE;
            }
            match options.costs.get(&*name) {
                Some(CostOverride::Fixed(n)) => *n,
                Some(CostOverride::Function(_)) => FORCE_PRECISE,
                None => *default,
            }
        })
        .collect();
    let prices = crate::link::block_prices(program, options.cost_model, &ops);
    Some(Arc::new(prices))
}

/// Charges the price that an atom computes from its inputs (F01).
pub(super) fn pay_dynamic(
    c: &mut Cx<'_>,
    atom: &AtomDef,
    cost: CostFn,
    args: &[Val],
    limits: &BoundaryLimits,
) -> Result<(), Fault> {
    let price = cost(c, args, limits)?;
    c.pay(cost_from_f64(price).unwrap_or(atom.sig.cost.fixed()))
}

impl Machine {
    /// Work before an instruction in precise mode: ends and begins steps of the trace,
    /// charges, counts quotas.
    pub(super) fn before(
        &mut self,
        f: &Function,
        exe: &Arc<Executable>,
        pc: u32,
        host: &dyn Host,
    ) -> Result<(), (Fault, Mark)> {
        if self.tracer.is_some() {
            self.trace_reached(f, exe, pc, host);
        }
        if std::mem::take(&mut self.skip_charges) {
            return Ok(());
        }
        // The retried instruction is done.
        self.retried = None;
        let from = f.charges.partition_point(|c| c.pc < pc);
        for charge in f.charges[from..].iter().take_while(|c| c.pc == pc) {
            self.charge(f, exe, charge, host)?;
        }
        Ok(())
    }

    fn charge(
        &mut self,
        f: &Function,
        exe: &Arc<Executable>,
        charge: &a99_core::program::Charge,
        host: &dyn Host,
    ) -> Result<(), (Fault, Mark)> {
        let program = exe.program();
        let before = self.meter.mark();
        if charge.kind == ChargeKind::Step {
            if self.tracer.is_some() {
                self.trace_begin(f, charge.step);
            }
            self.count_quota(f, program, charge.step).map_err(|fault| {
                self.faulting_step = Some(charge.step);
                (fault, before)
            })?;
        }
        // Nodes that share a charge are still paid one by one.
        let (times, one) = match charge.kind {
            ChargeKind::Nodes(n) | ChargeKind::TextNodes(n) => (
                i64::from(n),
                program.price(charge, self.options.cost_model, |_| 0) / i64::from(n.max(1)),
            ),
            _ => {
                let model = self.options.cost_model;
                let step_price = match charge.kind {
                    ChargeKind::Step => {
                        if has_rules(&self.options) {
                            self.meter.did(PRICE_WORK);
                        }
                        self.step_price(f, exe, charge.step, host)
                    }
                    _ => 0,
                };
                (1, program.price(charge, model, |_| step_price))
            }
        };
        if let Some(tracer) = &mut self.tracer {
            tracer.silent = false;
        }
        if one == 0 && charge.kind != ChargeKind::Step {
            return Ok(());
        }
        if self.meter.fuel <= one.saturating_mul(times) {
            // Prepaid fuel of callers belongs to the budget.
            self.settle_fuel();
        }
        for _ in 0..times {
            self.meter.fuel = self.meter.fuel.saturating_sub(one);
            if self.meter.fuel <= 0 {
                self.faulting_step = Some(charge.step);
                if let Some(tracer) = &mut self.tracer {
                    tracer.silent = charge.kind == ChargeKind::Step;
                }
                return Err((Fault::OutOfFuel, before));
            }
        }
        Ok(())
    }

    fn count_quota(&mut self, f: &Function, program: &Program, step: u32) -> Result<(), Fault> {
        if self.options.quotas.is_empty() {
            return Ok(());
        }
        let op = &program.ops[f.steps[step as usize].op as usize];
        let name = wtf8_to_string_lossy(program.text(op.name));
        match self.options.quotas.get(&*name) {
            Some(quota) if !quota.take() => Err(Fault::coded(
                ErrorCode::QuotaExceeded,
                format!(
                    "Quota exceeded for '{name}': {} call(s) allowed",
                    quota.limit()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The price to enter a step, with overrides.
    fn step_price(&self, f: &Function, exe: &Arc<Executable>, step: u32, _: &dyn Host) -> i64 {
        let program = exe.program();
        let s = &f.steps[step as usize];
        let default = exe.op_prices(self.options.cost_model)[s.op as usize];
        if self.options.costs.is_empty() {
            return default;
        }
        let name = wtf8_to_string_lossy(program.text(program.ops[s.op as usize].name));
        match self.options.costs.get(&*name) {
            None => default,
            Some(CostOverride::Fixed(n)) => *n,
            Some(CostOverride::Function(price)) => {
                let input = crate::trace::step_input(program, s, self.in_main_program());
                let context = self.options.context.clone();
                // A host function may panic; the run then pays the default.
                let computed = catch_unwind(AssertUnwindSafe(|| price(&input, &context)));
                let declared = exe.atoms[s.op as usize].as_ref().map(|a| a.sig.cost);
                let declared = declared.unwrap_or(program.ops[s.op as usize].cost);
                let static_default = declared.fixed_in(self.options.cost_model);
                computed
                    .ok()
                    .and_then(cost_from_f64)
                    .unwrap_or(static_default)
            }
        }
    }

    /// Fuel prepaid for the rest of the block after an instruction.
    #[inline(always)]
    pub(super) fn prepaid_after(&self, loaded: &LoadedProgram, f: &Function, pc: u32) -> i64 {
        // No instruction of the block follows its last one, and a block that was not entered
        // is not paid.
        if matches!(f.code.get(pc as usize + 1), None | Some(Op::Fuel { .. }))
            || matches!(f.code.get(pc as usize), Some(Op::Fuel { .. }))
        {
            return 0;
        }
        let program = loaded.exe.program();
        let block = f
            .blocks
            .partition_point(|b| b.start <= pc)
            .saturating_sub(1);
        f.charges_of(block)
            .iter()
            .filter(|c| c.pc > pc)
            .fold(0i64, |sum, c| {
                let price = program.price(c, self.options.cost_model, |step| {
                    self.fixed_price(&loaded.exe, f, step)
                });
                sum.saturating_add(price)
            })
    }

    /// The price of a step in a block that is paid whole.
    fn fixed_price(&self, exe: &Executable, f: &Function, step: u32) -> i64 {
        let op = f.steps[step as usize].op as usize;
        if self.options.costs.is_empty() {
            return exe.op_prices(self.options.cost_model)[op];
        }
        let program = exe.program();
        let name = wtf8_to_string_lossy(program.text(program.ops[op].name));
        match self.options.costs.get(&*name) {
            Some(CostOverride::Fixed(n)) => *n,
            _ => exe.op_prices(self.options.cost_model)[op],
        }
    }

    /// Refunds fuel that the top frame prepaid for instructions after its pc; it continues in
    /// precise mode, if at all.
    pub(super) fn refund(&mut self) {
        let frame = self.frame();
        if frame.precise {
            return;
        }
        let loaded = &self.programs[frame.program as usize];
        let f = &loaded.exe.program().functions[frame.function as usize];
        let prepaid = self.prepaid_after(loaded, f, frame.pc);
        self.meter.fuel = self.meter.fuel.saturating_add(prepaid);
        self.set_precise(true);
    }

    /// Refunds all prepaid fuel, so that the count is exact.
    pub(super) fn settle_fuel(&mut self) {
        for i in 0..self.frames.len() {
            let frame = self.frames[i];
            if frame.precise {
                continue;
            }
            let loaded = &self.programs[frame.program as usize];
            let f = &loaded.exe.program().functions[frame.function as usize];
            let prepaid = self.prepaid_after(loaded, f, frame.pc);
            self.meter.fuel = self.meter.fuel.saturating_add(prepaid);
            self.frames[i].precise = true;
        }
    }

    /// Charges fuel that was used elsewhere on the run's behalf.
    pub(super) fn charge_used(&mut self, micro: i64) {
        self.meter.fuel = self.meter.fuel.saturating_sub(micro.max(0));
    }
}
