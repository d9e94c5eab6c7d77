//! The instruction loops.
//!
//! The precise one pays each charge before its instruction, counts quotas and writes the
//! trace; instructions are [`Machine::execute`]'s. The fast one pays whole blocks, and does
//! itself what is frequent and short: what it holds in machine registers is kept there only
//! as long as its arms call little. An arm that is done goes on with the next instruction;
//! one whose operands are not those that it is for falls out of the `match`, and the whole
//! instruction is executed behind it.

use super::operands::stored;
use super::prices::FORCE_PRECISE;
use super::{Exit, FrameKind, LoadedProgram, Machine, WINDOW};
use crate::coerce;
use crate::heap::{Heap, Val};
use crate::link::BlockPrice;
use crate::native::{Fault, Host, Meter};
use a99_core::program::{Op, Reg};
use std::sync::Arc;

/// Registers of a frame.
type Window = [Val; WINDOW];

impl Machine {
    /// Runs the current frame, charge by charge.
    pub(super) fn run_precise(&mut self, host: &dyn Host) -> Exit {
        let frame = self.frame();
        let LoadedProgram {
            exe, main, prices, ..
        } = &self.programs[frame.program as usize];
        let loaded = LoadedProgram {
            exe: Arc::clone(exe),
            main: *main,
            prices: Arc::clone(prices),
            args: Vec::new(),
        };
        let function = &loaded.exe.program().functions[frame.function as usize];
        let prices = &loaded.prices[frame.function as usize];
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
                        // In fast mode the block is paid when the run comes back.
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

    /// Runs the current frame and the helpers that it calls, block by block.
    pub(super) fn run_fast(&mut self, host: &dyn Host) -> Exit {
        // Nothing that this loop calls looks at the list of programs, and a program that is
        // borrowed costs no count of its owners.
        let programs = std::mem::take(&mut self.programs);
        let exit = self.run(&programs[self.frame().program as usize], host);
        self.programs = programs;
        exit
    }

    #[allow(
        clippy::too_many_lines,
        reason = "one arm an instruction; the table is the structure"
    )]
    fn run(&mut self, loaded: &LoadedProgram, host: &dyn Host) -> Exit {
        let LoadedProgram { exe, main, .. } = loaded;
        let (program, main) = (&**exe.program(), *main);
        let mut frame = self.frame();
        let mut code = program.functions[frame.function as usize].code.as_slice();
        let mut prices = &*loaded.prices[frame.function as usize];
        let mut pc = frame.pc as usize;
        let mut regs = split(&mut self.stack, frame.base as usize).0;

        // Goes on in the frame that is the top one now, of the same program.
        macro_rules! enter_top {
            () => {{
                frame = self.frame();
                code = program.functions[frame.function as usize].code.as_slice();
                prices = &*loaded.prices[frame.function as usize];
                pc = frame.pc as usize;
                regs = split(&mut self.stack, frame.base as usize).0;
                continue;
            }};
        }
        macro_rules! next {
            () => {{
                pc += 1;
                continue;
            }};
        }
        // Tags are looked at where they lie: copying a whole value only to see
        // its tag costs more than the arithmetic.
        macro_rules! numbers {
            ($l:ident, $r:ident, |$x:ident, $y:ident| $then:expr) => {
                if let (Val::Num($x), Val::Num($y)) = (&regs[$l.at()], &regs[$r.at()]) {
                    let ($x, $y) = (*$x, *$y);
                    $then
                }
            };
        }
        macro_rules! texts {
            ($l:ident, $r:ident, |$same:ident| $then:expr) => {
                let (a, b) = (regs[$l.at()], regs[$r.at()]);
                if let Some($same) = coerce::same_short_text(&self.heap, a, b) {
                    $then
                }
            };
        }
        macro_rules! arith {
            ($dst:ident, $l:ident, $r:ident, |$x:ident, $y:ident| $value:expr) => {
                numbers!($l, $r, |$x, $y| {
                    regs[$dst.at()] = Val::Num($value);
                    next!();
                })
            };
        }
        macro_rules! test {
            ($dst:ident, $l:ident, $r:ident, |$x:ident, $y:ident| $value:expr) => {
                numbers!($l, $r, |$x, $y| {
                    regs[$dst.at()] = Val::Bool($value);
                    next!();
                })
            };
        }
        macro_rules! jump {
            ($when:expr, $to:ident) => {{
                pc = if $when { $to.at() } else { pc + 1 };
                continue;
            }};
        }
        macro_rules! jump_if {
            ($l:ident, $r:ident, $to:ident, |$x:ident, $y:ident| $when:expr) => {
                numbers!($l, $r, |$x, $y| jump!($when, $to))
            };
        }
        loop {
            let op = &code[pc];
            match op {
                Op::Nop {} => next!(),
                Op::Fuel { block } => {
                    let price = &prices[block.at()];
                    if let Some(exit) = pay_block(&mut self.meter, price) {
                        self.set_pc(pc);
                        return exit;
                    }
                    next!();
                }
                Op::Mov { dst, src } => {
                    copy(regs, *dst, *src);
                    next!();
                }
                Op::MovBound { dst, src } => {
                    if !matches!(regs[src.at()], Val::Unbound) {
                        copy(regs, *dst, *src);
                    }
                    next!();
                }
                Op::MovDefined { dst, src } => {
                    if !regs[src.at()].is_undefined() {
                        copy(regs, *dst, *src);
                    }
                    next!();
                }
                Op::LoadK { dst, k } => match &exe.consts[k.at()] {
                    Val::Num(n) => {
                        regs[dst.at()] = Val::Num(*n);
                        next!();
                    }
                    val if main => {
                        regs[dst.at()] = *val;
                        next!();
                    }
                    _ => {}
                },
                Op::LoadArg { dst, arg } => {
                    regs[dst.at()] = loaded.args[arg.at()];
                    next!();
                }
                Op::LoadLit { dst, lit } if main => {
                    let before = self.meter.mark();
                    match super::start::literal(&mut self.heap, &exe.literals[lit.at()]) {
                        Ok(val) => regs[dst.at()] = val,
                        Err(fault) => {
                            self.set_pc(pc);
                            return Exit::Fault { fault, before };
                        }
                    }
                    next!();
                }
                Op::CheckReturn { src } => {
                    if let Val::Obj(_) = regs[src.at()] {
                        next!();
                    }
                }
                Op::Unbind { base, n } => {
                    let base = base.at();
                    regs[base..base + n.at()].fill(Val::Unbound);
                    next!();
                }
                Op::Add { dst, l, r } => arith!(dst, l, r, |x, y| x + y),
                Op::Sub { dst, l, r } => arith!(dst, l, r, |x, y| x - y),
                Op::Mul { dst, l, r } => arith!(dst, l, r, |x, y| x * y),
                Op::Div { dst, l, r } => arith!(dst, l, r, |x, y| x / y),
                Op::Rem { dst, l, r } => arith!(dst, l, r, |x, y| a99_ecma::arith::fmod(x, y)),
                Op::Not { dst, src } => {
                    if let Val::Bool(b) = regs[src.at()] {
                        regs[dst.at()] = Val::Bool(!b);
                        next!();
                    }
                }
                Op::SEq { dst, l, r } => test!(dst, l, r, |x, y| x == y),
                Op::SNe { dst, l, r } => test!(dst, l, r, |x, y| x != y),
                Op::Lt { dst, l, r } => test!(dst, l, r, |x, y| x < y),
                Op::Le { dst, l, r } => test!(dst, l, r, |x, y| x <= y),
                Op::Gt { dst, l, r } => test!(dst, l, r, |x, y| x > y),
                Op::Ge { dst, l, r } => test!(dst, l, r, |x, y| x >= y),
                Op::Jmp { to } => {
                    pc = to.at();
                    continue;
                }
                Op::JTrue { src, to } => jump!(coerce::truthy(&self.heap, regs[src.at()]), to),
                Op::JFalse { src, to } => jump!(!coerce::truthy(&self.heap, regs[src.at()]), to),
                Op::JNullish { src, to } => jump!(regs[src.at()].is_nullish(), to),
                Op::JPresent { src, to } => jump!(!regs[src.at()].is_nullish(), to),
                Op::JLt { l, r, to } => jump_if!(l, r, to, |x, y| x < y),
                Op::JNLt { l, r, to } => jump_if!(l, r, to, |x, y| !f64::lt(&x, &y)),
                Op::JLe { l, r, to } => jump_if!(l, r, to, |x, y| x <= y),
                Op::JNLe { l, r, to } => jump_if!(l, r, to, |x, y| !f64::le(&x, &y)),
                Op::JSEq { l, r, to } => {
                    jump_if!(l, r, to, |x, y| x == y);
                    texts!(l, r, |same| jump!(same, to));
                }
                Op::JSNe { l, r, to } => {
                    jump_if!(l, r, to, |x, y| x != y);
                    texts!(l, r, |same| jump!(!same, to));
                }
                // Two NaNs are equal by one of the two rules of equality.
                Op::JEq { l, r, to } => {
                    numbers!(l, r, |x, y| if !x.is_nan() {
                        jump!(x == y, to)
                    });
                    texts!(l, r, |same| jump!(same, to));
                }
                Op::JNe { l, r, to } => {
                    numbers!(l, r, |x, y| if !x.is_nan() {
                        jump!(x != y, to)
                    });
                    texts!(l, r, |same| jump!(!same, to));
                }
                Op::Member { dst, obj, key } if main => {
                    if let Val::Obj(r) = regs[obj.at()] {
                        let member = self.heap.get(r, exe.keys[key.at()]);
                        regs[dst.at()] = member.map_or(Val::Undefined, stored);
                        next!();
                    }
                }
                Op::IterNext { dst, it, to } => {
                    if let Ok(is_there) = next_item(&self.heap, regs, *dst, *it) {
                        jump!(!is_there, to);
                    }
                }
                Op::CallAtom { dst, base, n, site } => {
                    self.set_pc(pc);
                    let before = self.meter.mark();
                    match self.call_atom(exe, *site, *dst, (*base, *n), host) {
                        Ok(true) => {
                            regs = split(&mut self.stack, frame.base as usize).0;
                            next!();
                        }
                        Ok(false) => {
                            let (dst, base, n, site) = (*dst, *base, *n, *site);
                            return Exit::Host { dst, base, n, site };
                        }
                        Err(fault) => return Exit::Fault { fault, before },
                    }
                }
                Op::Ret { src } => {
                    // A block that goes on behind it is one that was prepaid too far.
                    let is_paid = matches!(code.get(pc + 1), None | Some(Op::Fuel { .. }));
                    let val = regs[src.at()];
                    if !is_paid || frame.kind != FrameKind::Helper {
                        self.set_pc(pc);
                        return Exit::Return(val);
                    }
                    self.retried = None;
                    if self.leave_helper(val) {
                        return Exit::Precise;
                    }
                    enter_top!();
                }
                Op::Call {
                    dst, base, callee, ..
                } => {
                    self.set_pc(pc);
                    let before = self.meter.mark();
                    if let Err(fault) = self.enter_helper(exe, *dst, *base, *callee) {
                        return Exit::Fault { fault, before };
                    }
                    enter_top!();
                }
                _ => {}
            }
            match self.execute(loaded, frame.base as usize, pc, *op, host) {
                Ok(next) => pc = next,
                Err(exit) => return exit,
            }
            regs = split(&mut self.stack, frame.base as usize).0;
        }
    }

    pub(super) fn set_pc(&mut self, pc: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.pc = pc as u32;
        }
    }
}

/// Copies a register. A number is written in two parts, and a read of the whole has to wait
/// until both are in memory.
#[inline(always)]
fn copy(regs: &mut Window, dst: Reg, src: Reg) {
    regs[dst.at()] = match &regs[src.at()] {
        Val::Num(n) => Val::Num(*n),
        val => *val,
    };
}

/// The registers of a frame, and its slots behind them.
#[inline(always)]
pub(super) fn split(stack: &mut [Val], base: usize) -> (&mut Window, &mut [Val]) {
    let (window, slots) = stack[base..].split_at_mut(WINDOW);
    (window.try_into().expect("a window of registers"), slots)
}

/// How many times the work of a block its precise mode is.
pub(super) const PRECISE_WORK: i64 = 4;

/// Pays for a block in fast mode, or says why the loop is left instead.
#[inline(always)]
fn pay_block(meter: &mut Meter, price: &BlockPrice) -> Option<Exit> {
    meter.slice -= price.work;
    if meter.fuel <= price.fuel {
        return Some(Exit::Precise);
    }
    if meter.slice <= 0 {
        return Some(Exit::Slice);
    }
    meter.fuel -= price.fuel;
    None
}

/// Enters a block in precise mode, where each charge is paid before its instruction, or says
/// why the loop is left instead.
fn enter_precisely(meter: &mut Meter, price: &BlockPrice, traced: bool) -> Option<Exit> {
    if !traced && price.fuel < FORCE_PRECISE && meter.fuel > price.fuel {
        return Some(Exit::Fast);
    }
    meter.slice -= PRECISE_WORK * price.work;
    (meter.slice <= 0).then_some(Exit::Slice)
}

/// Puts the next item of an iteration into a register; whether there is one.
#[inline(always)]
pub(super) fn next_item(
    heap: &Heap,
    regs: &mut [Val; WINDOW],
    dst: Reg,
    it: Reg,
) -> Result<bool, Fault> {
    // A position that adding one does not move would never end.
    let (r, at) = match (regs[it.at()], regs[it.at() + 1]) {
        (Val::Arr(r), Val::Num(at)) if at >= 0.0 => (r, at),
        _ => return Err(Fault::invalid("IterNext without an iterator")),
    };
    let Some(item) = heap.items(r).get(at as usize) else {
        return Ok(false);
    };
    regs[dst.at()] = *item;
    regs[it.at() + 1] = Val::Num(at + 1.0);
    Ok(true)
}
