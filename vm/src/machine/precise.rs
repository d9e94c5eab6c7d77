//! The precise instruction loop.
//!
//! It pays each charge before its instruction, counts quotas and writes the trace;
//! [`Machine::execute`] executes the instructions.

use super::prices::FORCE_PRECISE;
use super::{Exit, LoadedProgram, Machine};
use crate::link::BlockPrice;
use crate::pace::{Host, Meter};
use a99_core::program::Op;
use std::sync::Arc;

/// Factor on a block's work in precise mode.
pub(super) const PRECISE_WORK: i64 = 4;

impl Machine {
    /// Runs the current frame, charge by charge.
    pub(super) fn run_precise(&mut self, host: &dyn Host) -> Exit {
        let frame = self.frame();
        let LoadedProgram {
            exe,
            main,
            own_prices,
            ..
        } = &self.programs[frame.program as usize];
        let loaded = LoadedProgram {
            exe: Arc::clone(exe),
            main: *main,
            own_prices: own_prices.clone(),
            args: Vec::new(),
        };
        let function = &loaded.exe.program().functions[frame.function as usize];
        let prices = &loaded.prices(self.options.cost_model)[frame.function as usize];
        let base = frame.base as usize;
        let mut pc = frame.pc as usize;
        loop {
            let op = function.code[pc];
            self.set_pc(pc);
            if let Err((fault, before)) = self.before(function, &loaded.exe, pc as u32, host) {
                return Exit::Fault { fault, before };
            }
            match op {
                Op::Fuel { block } => {
                    let traced = self.tracer.is_some();
                    let price = &prices[block.at()];
                    if let Some(exit) = enter_precisely(&mut self.meter, price, traced) {
                        // In fast mode the block is paid when the run resumes.
                        self.set_pc(pc + usize::from(matches!(exit, Exit::Slice)));
                        return exit;
                    }
                    pc += 1;
                }
                Op::LoadArg { dst, arg } => {
                    let program = &self.programs[frame.program as usize];
                    self.stack[base + dst.at()] = program.args[arg.at()];
                    pc += 1;
                }
                Op::Ret { src } => return Exit::Return(self.stack[base + src.at()]),
                Op::Call {
                    dst, base, callee, ..
                } => return Exit::Call { dst, base, callee },
                op => match self.execute(&loaded, base, pc, op, host) {
                    Ok(next) => pc = next,
                    Err(exit) => return exit,
                },
            }
        }
    }
}

/// Enters a block in precise mode, in which each charge is paid before its instruction, or
/// returns why the loop must exit.
fn enter_precisely(meter: &mut Meter, price: &BlockPrice, traced: bool) -> Option<Exit> {
    if !traced && price.fuel < FORCE_PRECISE && meter.fuel > price.fuel {
        return Some(Exit::Fast);
    }
    meter.slice -= PRECISE_WORK * price.work;
    (meter.slice <= 0).then_some(Exit::Slice)
}
