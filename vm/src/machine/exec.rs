//! The instruction loop.
//!
//! Two copies of one loop are compiled. The fast one pays whole blocks; the
//! precise one pays each charge before its instruction, counts quotas and
//! writes the trace. They share every instruction's code. What an arm does with
//! registers stands in it, because the loop holds them; what fails, coerces or
//! calls is a function.

use super::operands::{
    caught_texts, reassigned, redeclared, slow_add, slow_arith, slow_compare, slow_equal, stored,
};
use super::prices::FORCE_PRECISE;
use super::{Exit, FrameKind, LoadedProgram, Machine, WINDOW, cx};
use crate::builtins;
use crate::coerce::{self, Arith, Cmp};
use crate::heap::{Heap, ShapeId, Val};
use crate::link::BlockPrice;
use crate::member;
use crate::native::{Cx, Fault, Host, Meter};
use crate::options::Equality;
use a99_core::error::ErrorCode;
use a99_core::program::{Flag, Op, Reg};
use std::sync::Arc;

impl Machine {
    /// Runs the current frame, charge by charge.
    pub(super) fn run_precise(&mut self, host: &dyn Host) -> Exit {
        let LoadedProgram {
            exe, main, prices, ..
        } = &self.programs[self.frame().program as usize];
        let loaded = LoadedProgram {
            exe: Arc::clone(exe),
            main: *main,
            prices: Arc::clone(prices),
            args: Vec::new(),
        };
        self.run::<true>(&loaded, host)
    }

    /// Runs the current frame and the helpers that it calls, block by block.
    pub(super) fn run_fast(&mut self, host: &dyn Host) -> Exit {
        // Nothing that this loop calls looks at the list of programs, and a program that is
        // borrowed costs no count of its owners.
        let programs = std::mem::take(&mut self.programs);
        let exit = self.run::<false>(&programs[self.frame().program as usize], host);
        self.programs = programs;
        exit
    }

    #[allow(
        clippy::too_many_lines,
        reason = "one arm an instruction; the table is the structure"
    )]
    fn run<const PRECISE: bool>(&mut self, loaded: &LoadedProgram, host: &dyn Host) -> Exit {
        let mut frame = self.frame();
        let LoadedProgram { exe, main, .. } = loaded;
        let (program, main) = (&**exe.program(), *main);
        let mut function = &program.functions[frame.function as usize];
        let mut code = function.code.as_slice();
        let mut prices = &*loaded.prices[frame.function as usize];
        let exact = self.options.equality == Equality::Exact;
        let mut pc = frame.pc as usize;

        let (mut regs, mut slots) = split(&mut self.stack, frame.base as usize);

        // Goes on in the frame that is the top one now, of the same program.
        macro_rules! enter_top {
            () => {{
                frame = self.frame();
                function = &program.functions[frame.function as usize];
                code = function.code.as_slice();
                prices = &*loaded.prices[frame.function as usize];
                pc = frame.pc as usize;
                (regs, slots) = split(&mut self.stack, frame.base as usize);
                continue;
            }};
        }

        macro_rules! leave {
            ($exit:expr) => {{
                self.set_pc(pc);
                return $exit;
            }};
        }
        // Fails with a fault that nothing was charged for.
        macro_rules! raise {
            ($fault:expr) => {{
                let fault = $fault;
                let before = self.meter.mark();
                leave!(Exit::Fault { fault, before })
            }};
        }
        // Evaluates a fallible expression with `c` as the view of the run.
        macro_rules! attempt {
            ($c:ident => $e:expr) => {{
                let before = self.meter.mark();
                let mut c = cx(&mut self.heap, &mut self.meter, host);
                let $c: &mut Cx<'_> = &mut c;
                match $e {
                    Ok(value) => value,
                    Err(fault) => leave!(Exit::Fault {
                        fault: Fault::from(fault),
                        before
                    }),
                }
            }};
        }
        // Tags are looked at where they lie: copying a whole value only to see
        // its tag costs more than the arithmetic.
        macro_rules! arith {
            ($dst:ident, $l:ident, $r:ident, $fast:expr, $slow:expr) => {
                if let (Val::Num(x), Val::Num(y)) = (&regs[$l.at()], &regs[$r.at()]) {
                    let z = $fast(*x, *y);
                    regs[$dst.at()] = Val::Num(z);
                } else {
                    let (a, b) = (regs[$l.at()], regs[$r.at()]);
                    let val = attempt!(c => slow_arith(c, $slow, a, b));
                    regs[$dst.at()] = val;
                }
            };
        }
        macro_rules! test {
            ($l:ident, $r:ident, $fast:expr, $slow:expr) => {
                if let (Val::Num(x), Val::Num(y)) = (&regs[$l.at()], &regs[$r.at()]) {
                    $fast(x, y)
                } else {
                    let (a, b) = (regs[$l.at()], regs[$r.at()]);
                    attempt!(c => slow_compare(c, $slow, a, b))
                }
            };
        }
        macro_rules! equal {
            ($l:ident, $r:ident) => {
                if let (Val::Num(x), Val::Num(y)) = (&regs[$l.at()], &regs[$r.at()]) {
                    x == y || (exact && x.is_nan() && y.is_nan())
                } else {
                    let (a, b) = (regs[$l.at()], regs[$r.at()]);
                    attempt!(c => slow_equal(c, exact, a, b))
                }
            };
        }
        macro_rules! strict {
            ($l:ident, $r:ident) => {
                if let (Val::Num(x), Val::Num(y)) = (&regs[$l.at()], &regs[$r.at()]) {
                    x == y
                } else {
                    let (a, b) = (regs[$l.at()], regs[$r.at()]);
                    attempt!(c => coerce::strict_eq(c, a, b))
                }
            };
        }
        macro_rules! jump {
            ($when:expr, $to:ident) => {
                if $when {
                    pc = $to.at();
                    continue;
                }
            };
        }
        loop {
            let op = code[pc];
            if PRECISE {
                self.set_pc(pc);
                if let Err((fault, before)) = self.before(function, exe, pc as u32, host) {
                    return Exit::Fault { fault, before };
                }
                (regs, slots) = split(&mut self.stack, frame.base as usize);
            }
            match op {
                Op::Nop {} => {}
                Op::Fuel { block } => {
                    let traced = self.tracer.is_some();
                    let price = &prices[block.at()];
                    if let Some(exit) = enter_block::<PRECISE>(&mut self.meter, price, traced) {
                        // In fast mode the block is paid when the run comes back.
                        pc += usize::from(PRECISE && matches!(exit, Exit::Slice));
                        leave!(exit);
                    }
                }
                Op::Mov { dst, src } => regs[dst.at()] = regs[src.at()],
                Op::MovBound { dst, src } => {
                    let val = regs[src.at()];
                    if !matches!(val, Val::Unbound) {
                        regs[dst.at()] = val;
                    }
                }
                Op::MovDefined { dst, src } => {
                    let val = regs[src.at()];
                    if !val.is_undefined() {
                        regs[dst.at()] = val;
                    }
                }
                Op::LoadK { dst, k } => {
                    regs[dst.at()] = match exe.consts[k.at()] {
                        Val::Str(_) if !main => {
                            Val::Str(attempt!(c => c.heap.alloc_str(program.const_text(k))))
                        }
                        val => val,
                    }
                }
                Op::LoadLit { dst, lit } => {
                    regs[dst.at()] = attempt!(c => if main {
                        super::start::literal(c.heap, &exe.literals[lit.at()])
                    } else {
                        super::start::foreign_literal(c.heap, program, lit)
                    });
                }
                Op::LoadArg { dst, arg } => {
                    regs[dst.at()] = match PRECISE {
                        true => self.programs[frame.program as usize].args[arg.at()],
                        false => loaded.args[arg.at()],
                    };
                }
                Op::Unbind { base, n } => {
                    let base = base.at();
                    regs[base..base + n.at()].fill(Val::Unbound);
                }
                Op::SlotLoad { dst, slot } => regs[dst.at()] = slots[slot.at()],
                Op::SlotStore { src, slot } => slots[slot.at()] = regs[src.at()],
                Op::Add { dst, l, r } => {
                    if let (Val::Num(x), Val::Num(y)) = (&regs[l.at()], &regs[r.at()]) {
                        let z = x + y;
                        regs[dst.at()] = Val::Num(z);
                    } else {
                        let (a, b) = (regs[l.at()], regs[r.at()]);
                        let val = attempt!(c => slow_add(c, a, b));
                        regs[dst.at()] = val;
                    }
                }
                Op::Sub { dst, l, r } => arith!(dst, l, r, |x: f64, y: f64| x - y, Arith::Sub),
                Op::Mul { dst, l, r } => arith!(dst, l, r, |x: f64, y: f64| x * y, Arith::Mul),
                Op::Div { dst, l, r } => arith!(dst, l, r, |x: f64, y: f64| x / y, Arith::Div),
                Op::Rem { dst, l, r } => arith!(dst, l, r, a99_ecma::arith::fmod, Arith::Rem),
                Op::Pow { dst, l, r } => arith!(dst, l, r, a99_ecma::arith::pow, Arith::Pow),
                Op::Neg { dst, src } => {
                    let a = regs[src.at()];
                    regs[dst.at()] = attempt!(c => coerce::negate(c, a));
                }
                Op::Plus { dst, src } => {
                    let a = regs[src.at()];
                    regs[dst.at()] = attempt!(c => coerce::plus(c, a));
                }
                Op::Not { dst, src } => {
                    let truth = coerce::truthy(&self.heap, regs[src.at()]);
                    regs[dst.at()] = Val::Bool(!truth);
                }
                Op::Typeof { dst, src } => {
                    let name = coerce::type_of(regs[src.at()]);
                    regs[dst.at()] = attempt!(c => c.str(name.as_bytes()));
                }
                Op::Eq { dst, l, r } => regs[dst.at()] = Val::Bool(equal!(l, r)),
                Op::Ne { dst, l, r } => regs[dst.at()] = Val::Bool(!equal!(l, r)),
                Op::SEq { dst, l, r } => regs[dst.at()] = Val::Bool(strict!(l, r)),
                Op::SNe { dst, l, r } => regs[dst.at()] = Val::Bool(!strict!(l, r)),
                Op::Lt { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, f64::lt, Cmp::Lt)),
                Op::Le { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, f64::le, Cmp::Le)),
                Op::Gt { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, f64::gt, Cmp::Gt)),
                Op::Ge { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, f64::ge, Cmp::Ge)),
                Op::Jmp { to } => {
                    pc = to.at();
                    continue;
                }
                Op::JTrue { src, to } => jump!(coerce::truthy(&self.heap, regs[src.at()]), to),
                Op::JFalse { src, to } => {
                    jump!(!coerce::truthy(&self.heap, regs[src.at()]), to)
                }
                Op::JNullish { src, to } => jump!(regs[src.at()].is_nullish(), to),
                Op::JPresent { src, to } => jump!(!regs[src.at()].is_nullish(), to),
                Op::JLt { l, r, to } => jump!(test!(l, r, f64::lt, Cmp::Lt), to),
                Op::JNLt { l, r, to } => jump!(!test!(l, r, f64::lt, Cmp::Lt), to),
                Op::JLe { l, r, to } => jump!(test!(l, r, f64::le, Cmp::Le), to),
                Op::JNLe { l, r, to } => jump!(!test!(l, r, f64::le, Cmp::Le), to),
                Op::JEq { l, r, to } => jump!(equal!(l, r), to),
                Op::JNe { l, r, to } => jump!(!equal!(l, r), to),
                Op::JSEq { l, r, to } => jump!(strict!(l, r), to),
                Op::JSNe { l, r, to } => jump!(!strict!(l, r), to),
                Op::Member { dst, obj, key } => {
                    let object = regs[obj.at()];
                    regs[dst.at()] = if let (Val::Obj(r), true) = (object, main) {
                        let member = self.heap.get(r, exe.keys[key.at()]);
                        member.map_or(Val::Undefined, stored)
                    } else {
                        let text = program.text(program.keys[key.at()]);
                        attempt!(c => member::member_text(c, object, text))
                    };
                }
                Op::Index { dst, obj, idx } => {
                    let (object, index) = (regs[obj.at()], regs[idx.at()]);
                    regs[dst.at()] = attempt!(c => member::index(c, object, index));
                }
                Op::Path { dst, root, path } => {
                    let root = regs[root.at()];
                    if !root.is_undefined() {
                        let path = &program.paths[path.at()];
                        let list: Vec<&[u8]> = path.iter().map(|s| program.text(*s)).collect();
                        regs[dst.at()] = attempt!(c => member::walk(c, root, &list));
                    }
                }
                Op::OwnMember { dst, obj, key } => {
                    let (object, text) = (regs[obj.at()], program.text(program.keys[key.at()]));
                    regs[dst.at()] = attempt!(c => member::own_text(c, object, text));
                }
                Op::OwnIndex { dst, obj, idx } => {
                    let (object, index) = (regs[obj.at()], regs[idx.at()]);
                    regs[dst.at()] = attempt!(c => member::own_index(c, object, index));
                }
                Op::OwnPath { dst, root, path } => {
                    let (root, path) = (regs[root.at()], &program.paths[path.at()]);
                    let list: Vec<&[u8]> = path.iter().map(|s| program.text(*s)).collect();
                    regs[dst.at()] = attempt!(c => member::walk_own(c, root, &list));
                }
                Op::PutMember { obj, key, src } => {
                    let (object, key) = (regs[obj.at()], regs[key.at()]);
                    let val = stored(regs[src.at()]);
                    attempt!(c => builtins::members::put(c, object, key, val));
                }
                Op::NewArr { dst, cap } => {
                    regs[dst.at()] = Val::Arr(attempt!(c => c.heap.alloc_arr_cap(cap.at())));
                }
                Op::ArrPush { arr, src } => {
                    let (arr, val) = (regs[arr.at()], stored(regs[src.at()]));
                    attempt!(c => match arr {
                        Val::Arr(r) => c.push(r, val),
                        _ => Err(Fault::invalid("ArrPush without an array")),
                    });
                }
                Op::NewObj {
                    dst,
                    base,
                    n,
                    shape,
                } => {
                    let vals = &mut regs[base.at()..base.at() + n.at()];
                    vals.iter_mut().for_each(|v| *v = stored(*v));
                    let vals = &regs[base.at()..base.at() + n.at()];
                    regs[dst.at()] = if main {
                        Val::Obj(attempt!(c => c.heap.alloc_obj(ShapeId(shape.0), vals)))
                    } else {
                        attempt!(c => super::start::foreign_obj(c.heap, program, shape, vals))
                    };
                }
                Op::WideObj { dst, arr, shape } => {
                    let arr = regs[arr.at()];
                    regs[dst.at()] =
                        attempt!(c => super::start::wide_obj(c.heap, program, main, shape, arr));
                }
                Op::CheckMethod { obj, method } => {
                    let recv = regs[obj.at()];
                    attempt!(c => builtins::check_method(c, recv, method.0 as u16));
                }
                Op::CallMethod {
                    dst,
                    base,
                    n,
                    method,
                } => {
                    let recv = regs[base.at()];
                    let args = &regs[base.at() + 1..base.at() + n.at()];
                    regs[dst.at()] =
                        attempt!(c => builtins::call_method(c, recv, method.0 as u16, args));
                }
                Op::WideMethod {
                    dst,
                    obj,
                    arr,
                    method,
                } => {
                    let (recv, arr) = (regs[obj.at()], regs[arr.at()]);
                    regs[dst.at()] = attempt!(c => {
                        super::start::list(c.heap, arr)
                            .and_then(|args| builtins::call_method(c, recv, method.0 as u16, &args))
                    });
                }
                Op::BadMethod { obj, name } => {
                    let recv = regs[obj.at()];
                    let name = a99_core::text::wtf8_to_string_lossy(program.const_text(name));
                    attempt!(c => Err::<(), Fault>(builtins::unknown_method(c, recv, &name)));
                }
                Op::CallFn {
                    dst,
                    base,
                    n,
                    function,
                } => {
                    let args = &regs[base.at()..base.at() + n.at()];
                    regs[dst.at()] =
                        attempt!(c => builtins::call_function(c, function.0 as u16, args));
                }
                Op::WideFn { dst, arr, function } => {
                    let arr = regs[arr.at()];
                    regs[dst.at()] = attempt!(c => {
                        super::start::list(c.heap, arr)
                            .and_then(|args| builtins::call_function(c, function.0 as u16, &args))
                    });
                }
                Op::CallAtom { dst, base, n, site } => {
                    let before = self.meter.mark();
                    match self.call_atom(exe, site, dst, (base, n), host) {
                        Ok(true) => (regs, slots) = split(&mut self.stack, frame.base as usize),
                        Ok(false) => leave!(Exit::Host { dst, base, n, site }),
                        Err(fault) => leave!(Exit::Fault { fault, before }),
                    }
                }
                Op::Throw { flag, k } => {
                    let code = match flag {
                        Flag(1) => ErrorCode::Security,
                        _ => ErrorCode::Program,
                    };
                    raise!(super::thrown(code, program.const_text(k)));
                }
                Op::ThrowUnbound { src, k } => {
                    if matches!(regs[src.at()], Val::Unbound) {
                        raise!(super::thrown(ErrorCode::Program, program.const_text(k)));
                    }
                }
                Op::CheckConst { flag, name } => {
                    if matches!(regs[flag.at()], Val::Bool(true)) {
                        raise!(reassigned(program.const_text(name)));
                    }
                }
                Op::CheckFree { src, name } => {
                    if !matches!(regs[src.at()], Val::Unbound) {
                        raise!(redeclared(program.const_text(name)));
                    }
                }
                Op::IterInit { it, src, k } => {
                    let items = regs[src.at()];
                    if !matches!(items, Val::Arr(_)) {
                        raise!(super::thrown(ErrorCode::Program, program.const_text(k)));
                    }
                    regs[it.at()] = items;
                    regs[it.at() + 1] = Val::Num(0.0);
                }
                Op::IterNext { dst, it, to } => match next_item(&self.heap, regs, dst, it) {
                    Ok(true) => {}
                    Ok(false) => jump!(true, to),
                    Err(fault) => raise!(fault),
                },
                Op::Ret { src } => {
                    let val = regs[src.at()];
                    // A block that goes on behind it is one that was prepaid too far.
                    let is_paid = matches!(code.get(pc + 1), None | Some(Op::Fuel { .. }));
                    if PRECISE || !is_paid || frame.kind != FrameKind::Helper {
                        leave!(Exit::Return(val));
                    }
                    self.retried = None;
                    if self.leave_helper(val) {
                        return Exit::Precise;
                    }
                    enter_top!();
                }
                Op::CheckReturn { src } => {
                    let val = regs[src.at()];
                    if !matches!(val, Val::Obj(_)) && !val.is_nullish() {
                        raise!(super::start::not_an_object(val));
                    }
                }
                Op::Catch { msg, op } => {
                    let caught = &self.caught;
                    let (message, by) = attempt!(c => caught_texts(c, caught.as_ref()));
                    (regs[msg.at()], regs[op.at()]) = (message, by);
                    self.caught = None;
                }
                Op::MemoKey { dst, base, n, memo } => {
                    let vals = &regs[base.at()..base.at() + n.at()];
                    regs[dst.at()] = attempt!(c => super::start::memo_key(c, exe, memo, vals));
                }
                Op::MemoGet { dst, key, to } => {
                    let key = regs[key.at()];
                    let found = attempt!(c => super::start::memo_get(c, &self.memo, key));
                    if let Some(val) = found {
                        regs[dst.at()] = val;
                        pc = to.at();
                        continue;
                    }
                }
                Op::MemoPut { key, src } => {
                    let (key, val) = (regs[key.at()], regs[src.at()]);
                    attempt!(c => super::start::memo_put(c, &mut self.memo, key, val));
                }
                Op::Call {
                    dst,
                    base,
                    n: _,
                    callee,
                } => {
                    if PRECISE {
                        leave!(Exit::Call { dst, base, callee });
                    }
                    self.set_pc(pc);
                    let before = self.meter.mark();
                    if let Err(fault) = self.enter_helper(exe, dst, base, callee) {
                        return Exit::Fault { fault, before };
                    }
                    enter_top!();
                }
                Op::RunCode {
                    dst,
                    base,
                    n: _,
                    names,
                } => leave!(Exit::Code { dst, base, names }),
                Op::AgentRun {
                    dst,
                    base,
                    n: _,
                    site,
                } => leave!(Exit::Agent { dst, base, site }),
                Op::PrepareCall { dst, base, n, site } => {
                    leave!(Exit::Prepare { dst, base, n, site })
                }
                Op::CallAll { dst, arr, limit } => leave!(Exit::CallAll { dst, arr, limit }),
                Op::Project { dst, src, schema } => {
                    let val = regs[src.at()];
                    let schema = &exe.schemas[schema.at()];
                    regs[dst.at()] = attempt!(c => super::start::project(c, val, schema));
                }
            }
            pc += 1;
        }
    }

    fn set_pc(&mut self, pc: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.pc = pc as u32;
        }
    }
}

/// The registers of a frame, and its slots behind them.
fn split(stack: &mut [Val], base: usize) -> (&mut [Val; WINDOW], &mut [Val]) {
    let (window, slots) = stack[base..].split_at_mut(WINDOW);
    (window.try_into().expect("a window of registers"), slots)
}

/// How many times the work of a block its precise mode is.
pub(super) const PRECISE_WORK: i64 = 4;

/// Pays for a block in fast mode, and says why the loop is left instead. In
/// precise mode each charge is paid before its instruction.
#[inline(always)]
fn enter_block<const PRECISE: bool>(
    meter: &mut Meter,
    price: &BlockPrice,
    traced: bool,
) -> Option<Exit> {
    let fuel = meter.fuel.saturating_sub(price.fuel);
    if PRECISE {
        if !traced && price.fuel < FORCE_PRECISE && fuel > 0 {
            return Some(Exit::Fast);
        }
        meter.slice -= PRECISE_WORK * price.work;
        return (meter.slice <= 0).then_some(Exit::Slice);
    }
    meter.slice -= price.work;
    if fuel <= 0 {
        return Some(Exit::Precise);
    }
    if meter.slice <= 0 {
        return Some(Exit::Slice);
    }
    meter.fuel = fuel;
    None
}

/// Puts the next item of an iteration into a register; whether there is one.
#[inline(always)]
fn next_item(heap: &Heap, regs: &mut [Val; WINDOW], dst: Reg, it: Reg) -> Result<bool, Fault> {
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
