//! The fast instruction loop.
//!
//! It pays whole blocks and executes the fast code (`fast`) of functions, which has an opcode
//! for each frequent and short case. The loop's state stays in machine registers only as long
//! as its arms call little. An arm that is done continues with the next instruction. One
//! whose operands do not fit falls out of the `match`, and the program's instruction is
//! executed after it (`ops`).

use super::operands::stored_by_parts;
use super::{Exit, FrameKind, LoadedProgram, Machine, WINDOW};
use crate::coerce;
use crate::heap::{Heap, Val};
use crate::link::BlockPrice;
use crate::link::fast::FastOp;
use crate::pace::{Fault, Host, Meter};
use a99_core::program::{Count, Reg};
use a99_ecma::arith::fmod;

type Window = [Val; WINDOW];

impl Machine {
    /// Runs the current frame and the helpers it calls, block by block.
    pub(super) fn run_fast(&mut self, host: &dyn Host) -> Exit {
        // The loop uses the list of programs nowhere else, and borrowing a program avoids a
        // reference count.
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
        let all_prices = loaded.prices(self.options.cost_model);
        let mut frame = self.frame();
        let mut code = exe.fast_code(frame.function as usize);
        let mut prices = &*all_prices[frame.function as usize];
        let mut regs = split(&mut self.stack, frame.base as usize).0;
        // The instructions after the current one.
        let mut next = code[frame.pc as usize..].iter();

        // Index of the current instruction.
        macro_rules! pc {
            () => {
                code.len() - next.len() - 1
            };
        }
        macro_rules! go {
            ($to:expr) => {
                next = code[$to..].iter()
            };
        }
        // Continues in the top frame, of the same program.
        macro_rules! enter_top {
            () => {{
                frame = self.frame();
                code = exe.fast_code(frame.function as usize);
                prices = &*all_prices[frame.function as usize];
                regs = split(&mut self.stack, frame.base as usize).0;
                go!(frame.pc as usize);
                continue;
            }};
        }
        // Pays for a block whose head was consumed.
        macro_rules! pay {
            ($block:expr) => {{
                let price = &prices[$block.at()];
                if let Some(exit) = pay_block(&mut self.meter, price) {
                    self.set_pc(pc!());
                    return exit;
                }
            }};
        }
        // Tags are read in place: copying a whole value to read its tag costs more than the
        // arithmetic.
        macro_rules! number {
            ($l:expr, |$x:ident| $then:expr) => {
                if let Val::Num($x) = &regs[$l.at()] {
                    let $x = *$x;
                    $then
                }
            };
        }
        macro_rules! numbers {
            ($l:expr, $r:expr, |$x:ident, $y:ident| $then:expr) => {
                number!($l, |$x| number!($r, |$y| $then))
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
                    continue;
                })
            };
        }
        macro_rules! test {
            ($dst:ident, $l:ident, $r:ident, |$x:ident, $y:ident| $value:expr) => {
                numbers!($l, $r, |$x, $y| {
                    regs[$dst.at()] = Val::Bool($value);
                    continue;
                })
            };
        }
        // Every jump targets the head of a block, and so does the fall-through.
        macro_rules! jump {
            ($when:expr, $to:expr) => {{
                if $when {
                    go!($to);
                }
                if let Some(FastOp::Fuel { block }) = next.as_slice().first() {
                    next.next();
                    pay!(block);
                }
                continue;
            }};
        }
        macro_rules! jump_if {
            ($l:ident, $r:ident, $to:ident, |$x:ident, $y:ident| $when:expr) => {
                numbers!($l, $r, |$x, $y| jump!($when, $to.at()))
            };
        }
        // The second instruction of a pair is done, too.
        macro_rules! both {
            () => {{
                if next.next().is_none() {
                    return no_block(self);
                }
                continue;
            }};
        }
        macro_rules! constant {
            ($k:expr, |$n:ident| $then:expr) => {
                if let Val::Num($n) = &exe.consts[$k] {
                    let $n = *$n;
                    $then
                }
            };
        }
        macro_rules! arith_k {
            ($at:ident, $dst:ident, $l:ident, $k:ident, |$x:ident, $y:ident| $value:expr) => {
                constant!($k.at(), |$y| number!($l, |$x| {
                    regs[$at.at()] = Val::Num($y);
                    regs[$dst.at()] = Val::Num($value);
                    both!();
                }))
            };
        }
        macro_rules! jump_k {
            ($at:ident, $l:ident, $k:ident, $to:ident, |$x:ident, $y:ident| $when:expr) => {
                constant!(usize::from(*$k), |$y| number!($l, |$x| {
                    regs[$at.at()] = Val::Num($y);
                    next.next();
                    jump!($when, usize::from(*$to))
                }))
            };
        }
        macro_rules! arith_add {
            ($at:ident, $l:ident, $r:ident, $dst:ident, $to:ident, |$x:ident, $y:ident| $value:expr) => {
                numbers!($l, $r, |$x, $y| number!($to, |sum| {
                    let part = $value;
                    regs[$at.at()] = Val::Num(part);
                    regs[$dst.at()] = Val::Num(sum + part);
                    both!();
                }))
            };
        }
        macro_rules! add_jump {
            ($dst:ident, $l:ident, $r:ident, $a:ident, $b:ident, $to:ident, |$x:ident, $y:ident| $when:expr) => {
                numbers!($l, $r, |l, r| {
                    regs[$dst.at()] = Val::Num(l + r);
                    numbers!($a, $b, |$x, $y| {
                        next.next();
                        jump!($when, usize::from(*$to))
                    });
                    continue;
                })
            };
        }
        loop {
            let Some(op) = next.next() else {
                self.set_pc(code.len());
                return no_block(self);
            };
            match op {
                FastOp::Nop {} => continue,
                FastOp::Fuel { block } => {
                    pay!(block);
                    continue;
                }
                #[cfg(feature = "jit")]
                FastOp::LoopHead { number, block } => {
                    let of = (frame.function as usize, *number);
                    let is_default = loaded.own_prices.is_none();
                    if is_default && let Some(at) = exe.run_loop(of, regs, &mut self.meter) {
                        go!(at);
                    } else {
                        pay!(block);
                    }
                    continue;
                }
                FastOp::Enter { base, n, block } => {
                    pay!(block);
                    unbind(regs, *base, *n);
                    next.next();
                    both!();
                }
                FastOp::Mov { dst, src } => {
                    copy(regs, *dst, *src);
                    continue;
                }
                FastOp::MovMov {
                    dst,
                    src,
                    then,
                    from,
                } => {
                    copy(regs, *dst, *src);
                    copy(regs, *then, *from);
                    both!();
                }
                FastOp::MovBound { dst, src } => {
                    if !matches!(regs[src.at()], Val::Unbound) {
                        copy(regs, *dst, *src);
                    }
                    continue;
                }
                FastOp::BoundOrK { dst, src, .. } => {
                    if !matches!(regs[src.at()], Val::Unbound) {
                        copy(regs, *dst, *src);
                        both!();
                    }
                }
                FastOp::BoundOrArg { dst, src, arg } => {
                    if matches!(regs[src.at()], Val::Unbound) {
                        regs[dst.at()] = loaded.args[arg.at()].by_parts();
                    } else {
                        copy(regs, *dst, *src);
                    }
                    both!();
                }
                FastOp::MovDefined { dst, src } => {
                    if !regs[src.at()].is_undefined() {
                        copy(regs, *dst, *src);
                    }
                    continue;
                }
                FastOp::LoadK { dst, k } => match &exe.consts[k.at()] {
                    Val::Num(n) => {
                        regs[dst.at()] = Val::Num(*n);
                        continue;
                    }
                    val if main => {
                        regs[dst.at()] = *val;
                        continue;
                    }
                    _ => {}
                },
                FastOp::LoadArg { dst, arg } => {
                    regs[dst.at()] = loaded.args[arg.at()].by_parts();
                    continue;
                }
                FastOp::LoadLit { dst, lit } => {
                    if main {
                        let before = self.meter.mark();
                        let (code, register) = (&exe.literals[lit.at()], &mut regs[dst.at()]);
                        let made = super::start::put_literal(&mut self.heap, code, register);
                        if let Err(fault) = made {
                            self.set_pc(pc!());
                            return Exit::Fault { fault, before };
                        }
                        continue;
                    }
                }
                FastOp::CheckReturn { src } => {
                    if let Val::Obj(_) = regs[src.at()] {
                        continue;
                    }
                }
                FastOp::Unbind { base, n } => {
                    unbind(regs, *base, *n);
                    continue;
                }
                FastOp::NopUnbind { base, n } => {
                    unbind(regs, *base, *n);
                    both!();
                }
                FastOp::Add { dst, l, r } => arith!(dst, l, r, |x, y| x + y),
                FastOp::Sub { dst, l, r } => arith!(dst, l, r, |x, y| x - y),
                FastOp::Mul { dst, l, r } => arith!(dst, l, r, |x, y| x * y),
                FastOp::Div { dst, l, r } => arith!(dst, l, r, |x, y| x / y),
                FastOp::Rem { dst, l, r } => arith!(dst, l, r, |x, y| fmod(x, y)),
                FastOp::AddK { at, dst, l, k } => arith_k!(at, dst, l, k, |x, y| x + y),
                FastOp::SubK { at, dst, l, k } => arith_k!(at, dst, l, k, |x, y| x - y),
                FastOp::MulK { at, dst, l, k } => arith_k!(at, dst, l, k, |x, y| x * y),
                FastOp::MulAdd { at, l, r, dst, to } => {
                    arith_add!(at, l, r, dst, to, |x, y| x * y);
                }
                FastOp::MulRemAdd {
                    at,
                    l,
                    r,
                    m,
                    dst,
                    to,
                } => {
                    numbers!(l, r, |x, y| numbers!(m, to, |m, sum| {
                        let part = fmod(x * y, m);
                        regs[at.at()] = Val::Num(part);
                        regs[dst.at()] = Val::Num(sum + part);
                        next.next();
                        both!();
                    }));
                }
                FastOp::RemAdd { at, l, r, dst, to } => {
                    arith_add!(at, l, r, dst, to, |x, y| fmod(x, y));
                }
                FastOp::Not { dst, src } => {
                    if let Val::Bool(b) = regs[src.at()] {
                        regs[dst.at()] = Val::Bool(!b);
                        continue;
                    }
                }
                FastOp::SEq { dst, l, r } => test!(dst, l, r, |x, y| x == y),
                FastOp::SNe { dst, l, r } => test!(dst, l, r, |x, y| x != y),
                FastOp::Lt { dst, l, r } => test!(dst, l, r, |x, y| x < y),
                FastOp::Le { dst, l, r } => test!(dst, l, r, |x, y| x <= y),
                FastOp::Gt { dst, l, r } => test!(dst, l, r, |x, y| x > y),
                FastOp::Ge { dst, l, r } => test!(dst, l, r, |x, y| x >= y),
                FastOp::Jmp { to } => jump!(true, to.at()),
                FastOp::JTrue { src, to } => {
                    jump!(coerce::truthy(&self.heap, regs[src.at()]), to.at());
                }
                FastOp::JFalse { src, to } => {
                    jump!(!coerce::truthy(&self.heap, regs[src.at()]), to.at());
                }
                FastOp::JNullish { src, to } => jump!(regs[src.at()].is_nullish(), to.at()),
                FastOp::JPresent { src, to } => jump!(!regs[src.at()].is_nullish(), to.at()),
                FastOp::JLt { l, r, to } => jump_if!(l, r, to, |x, y| x < y),
                FastOp::JNLt { l, r, to } => jump_if!(l, r, to, |x, y| !f64::lt(&x, &y)),
                FastOp::JLe { l, r, to } => jump_if!(l, r, to, |x, y| x <= y),
                FastOp::JNLe { l, r, to } => jump_if!(l, r, to, |x, y| !f64::le(&x, &y)),
                FastOp::JLtK { at, l, k, to } => jump_k!(at, l, k, to, |x, y| x < y),
                FastOp::JNLtK { at, l, k, to } => {
                    jump_k!(at, l, k, to, |x, y| !f64::lt(&x, &y));
                }
                FastOp::JLeK { at, l, k, to } => jump_k!(at, l, k, to, |x, y| x <= y),
                FastOp::JNLeK { at, l, k, to } => {
                    jump_k!(at, l, k, to, |x, y| !f64::le(&x, &y));
                }
                FastOp::AddJLt {
                    dst,
                    l,
                    r,
                    x: a,
                    y: b,
                    to,
                } => {
                    add_jump!(dst, l, r, a, b, to, |x, y| x < y);
                }
                FastOp::AddJLe {
                    dst,
                    l,
                    r,
                    x: a,
                    y: b,
                    to,
                } => {
                    add_jump!(dst, l, r, a, b, to, |x, y| x <= y);
                }
                FastOp::JSEq { l, r, to } => {
                    jump_if!(l, r, to, |x, y| x == y);
                    texts!(l, r, |same| jump!(same, to.at()));
                }
                FastOp::JSNe { l, r, to } => {
                    jump_if!(l, r, to, |x, y| x != y);
                    texts!(l, r, |same| jump!(!same, to.at()));
                }
                // Whether two NaNs are equal depends on the equality rule.
                FastOp::JEq { l, r, to } => {
                    numbers!(l, r, |x, y| if !x.is_nan() {
                        jump!(x == y, to.at())
                    });
                    texts!(l, r, |same| jump!(same, to.at()));
                }
                FastOp::JNe { l, r, to } => {
                    numbers!(l, r, |x, y| if !x.is_nan() {
                        jump!(x != y, to.at())
                    });
                    texts!(l, r, |same| jump!(!same, to.at()));
                }
                FastOp::Member { dst, obj, key } => {
                    if main && let Val::Obj(r) = regs[obj.at()] {
                        match self.heap.member(r, *key) {
                            Some(member) => regs[dst.at()] = *member,
                            None => regs[dst.at()] = Val::Undefined,
                        }
                        continue;
                    }
                }
                FastOp::Index { dst, obj, idx } | FastOp::OwnIndex { dst, obj, idx } => {
                    if let (Val::Arr(r), Val::Num(n)) = (&regs[obj.at()], &regs[idx.at()]) {
                        let at = *n as u32;
                        if f64::from(at) == *n {
                            let item = self.heap.items(*r).get(at as usize);
                            regs[dst.at()] = item.copied().unwrap_or(Val::Undefined);
                            continue;
                        }
                    }
                }
                FastOp::NewObj {
                    dst,
                    base,
                    n,
                    shape,
                } => {
                    if main {
                        let before = self.meter.mark();
                        let vals = &regs[base.at()..base.at() + n.at()];
                        match super::start::new_obj(&mut self.heap, *shape, vals) {
                            Ok(r) => regs[dst.at()] = Val::Obj(r),
                            Err(oom) => {
                                self.set_pc(pc!());
                                let fault = oom.into();
                                return Exit::Fault { fault, before };
                            }
                        }
                        continue;
                    }
                }
                FastOp::ArrPush { arr, src } => {
                    if let Val::Arr(r) = regs[arr.at()]
                        && self.heap.push_in_place(r, stored_by_parts(&regs[src.at()]))
                    {
                        continue;
                    }
                }
                FastOp::UnbindIterNext {
                    base,
                    n,
                    dst,
                    it,
                    to,
                } => {
                    unbind(regs, *base, *n);
                    if let Ok(is_there) = next_item(&self.heap, regs, *dst, *it) {
                        next.next();
                        jump!(!is_there, usize::from(*to));
                    }
                    continue;
                }
                FastOp::MovJPresent { dst, src, to } => {
                    copy(regs, *dst, *src);
                    next.next();
                    jump!(!regs[src.at()].is_nullish(), usize::from(*to));
                }
                FastOp::IterNext { dst, it, to } => {
                    if let Ok(is_there) = next_item(&self.heap, regs, *dst, *it) {
                        jump!(!is_there, to.at());
                    }
                }
                FastOp::CallAtom { dst, base, n, site } => {
                    self.set_pc(pc!());
                    let before = self.meter.mark();
                    match self.call_atom(exe, *site, *dst, (*base, *n), host) {
                        Ok(true) => {
                            regs = split(&mut self.stack, frame.base as usize).0;
                            continue;
                        }
                        Ok(false) => {
                            let (dst, base, n, site) = (*dst, *base, *n, *site);
                            return Exit::Host { dst, base, n, site };
                        }
                        Err(fault) => return Exit::Fault { fault, before },
                    }
                }
                FastOp::Ret { src } => {
                    // If the block continues after `Ret`, it is prepaid too far.
                    let is_paid = next.as_slice().first().is_none_or(FastOp::is_head);
                    if !is_paid || frame.kind != FrameKind::Helper {
                        let val = regs[src.at()];
                        self.set_pc(pc!());
                        return Exit::Return(val);
                    }
                    self.retried = None;
                    if self.leave_helper(*src) {
                        return Exit::Precise;
                    }
                    enter_top!();
                }
                FastOp::Call { dst, base, callee } => {
                    self.set_pc(pc!());
                    let before = self.meter.mark();
                    if let Err(fault) = self.enter_helper(exe, *dst, *base, *callee) {
                        return Exit::Fault { fault, before };
                    }
                    enter_top!();
                }
                FastOp::Other => {}
            }
            let pc = pc!();
            let op = program.functions[frame.function as usize].code[pc];
            match self.execute(loaded, frame.base as usize, pc, op, host) {
                Ok(next_pc) => go!(next_pc),
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

#[inline(always)]
fn unbind(regs: &mut Window, base: Reg, n: Count) {
    regs[base.at()..base.at() + n.at()].fill(Val::Unbound);
}

/// The exit for code that leaves its blocks; the verifier rejects such code.
#[cold]
#[inline(never)]
fn no_block(machine: &Machine) -> Exit {
    let fault = Fault::invalid("a jump out of all blocks");
    let before = machine.meter.mark();
    Exit::Fault { fault, before }
}

#[inline(always)]
fn copy(regs: &mut Window, dst: Reg, src: Reg) {
    regs[dst.at()] = regs[src.at()].by_parts();
}

/// The registers of a frame, and the slots after them.
#[inline(always)]
pub(super) fn split(stack: &mut [Val], base: usize) -> (&mut Window, &mut [Val]) {
    let (window, slots) = stack[base..].split_at_mut(WINDOW);
    (window.try_into().expect("a window of registers"), slots)
}

/// Pays for a block in fast mode, or returns why the loop must exit.
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

/// Stores the next item of an iteration in a register; false at the end.
#[inline(always)]
pub(super) fn next_item(
    heap: &Heap,
    regs: &mut [Val; WINDOW],
    dst: Reg,
    it: Reg,
) -> Result<bool, Fault> {
    /// No list is this long. A position so large that adding one does not change it would
    /// never end.
    const END: f64 = 4_294_967_296.0;
    /// Added to a number below [`END`], it leaves that number in the low bits, which is
    /// faster than a conversion.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let (r, at) = match (regs[it.at()], regs[it.at() + 1]) {
        (Val::Arr(r), Val::Num(at)) if at >= 0.0 => (r, at),
        _ => return Err(Fault::invalid("IterNext without an iterator")),
    };
    let place = (at + WHOLE).to_bits() as u32 as usize;
    let Some(item) = heap.items(r).get(place).filter(|_| at < END) else {
        return Ok(false);
    };
    regs[dst.at()] = *item;
    regs[it.at() + 1] = Val::Num(at + 1.0);
    Ok(true)
}
