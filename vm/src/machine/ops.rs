//! Execution of single instructions, for all operands.
//!
//! The precise loop uses only this code. The fast loop (`exec`) executes frequent cases
//! itself and uses this for the rest.

use super::exec::{next_item, split};
use super::operands::{caught_texts, equal, reassigned, redeclared, stored};
use super::{Exit, LoadedProgram, Machine, cx};
use crate::builtins;
use crate::coerce::{self, Arith, Cmp};
use crate::heap::Val;
use crate::member;
use crate::native::{Cx, Fault, Host};
use crate::options::Equality;
use a99_core::error::ErrorCode;
use a99_core::program::{Flag, Op};
use smallvec::SmallVec;

/// Names of a path, mostly few.
type Segments<'p> = SmallVec<[&'p [u8]; 8]>;

impl Machine {
    /// Executes an instruction of the top frame, whose first register is `base`. Returns the
    /// index of the next one, or the reason to leave the loop.
    ///
    /// The loops handle their differences themselves: blocks, program arguments, and helper
    /// frames.
    #[inline(never)]
    #[allow(
        clippy::too_many_lines,
        reason = "one arm an instruction; the table is the structure"
    )]
    pub(super) fn execute(
        &mut self,
        loaded: &LoadedProgram,
        base: usize,
        pc: usize,
        op: Op,
        host: &dyn Host,
    ) -> Result<usize, Exit> {
        let LoadedProgram { exe, main, .. } = loaded;
        let (program, main) = (&**exe.program(), *main);
        let exact = self.options.equality == Equality::Exact;
        self.set_pc(pc);
        let (regs, slots) = split(&mut self.stack, base);

        macro_rules! leave {
            ($exit:expr) => {
                return Err($exit)
            };
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
        macro_rules! arith {
            ($dst:ident, $l:ident, $r:ident, $op:expr) => {{
                let (a, b) = (regs[$l.at()], regs[$r.at()]);
                regs[$dst.at()] = attempt!(c => coerce::arith(c, $op, a, b));
            }};
        }
        macro_rules! test {
            ($l:ident, $r:ident, $op:expr) => {{
                let (a, b) = (regs[$l.at()], regs[$r.at()]);
                attempt!(c => coerce::compare(c, $op, a, b))
            }};
        }
        macro_rules! equal {
            ($l:ident, $r:ident) => {{
                let (a, b) = (regs[$l.at()], regs[$r.at()]);
                attempt!(c => equal(c, exact, a, b))
            }};
        }
        macro_rules! strict {
            ($l:ident, $r:ident) => {{
                let (a, b) = (regs[$l.at()], regs[$r.at()]);
                attempt!(c => coerce::strict_eq(c, a, b))
            }};
        }
        macro_rules! jump {
            ($when:expr, $to:ident) => {
                if $when {
                    return Ok($to.at());
                }
            };
        }
        match op {
            Op::Nop {} => {}
            // Handled by the loops.
            Op::Fuel { .. } | Op::LoadArg { .. } | Op::Ret { .. } | Op::Call { .. } => {
                raise!(Fault::invalid("an instruction of the loop"));
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
                attempt!(c => if main {
                    super::start::put_literal(c.heap, &exe.literals[lit.at()], &mut regs[dst.at()])
                } else {
                    super::start::foreign_literal(c.heap, program, lit)
                        .map(|val| regs[dst.at()] = val)
                });
            }
            Op::Unbind { base, n } => {
                let base = base.at();
                regs[base..base + n.at()].fill(Val::Unbound);
            }
            Op::SlotLoad { dst, slot } => regs[dst.at()] = slots[slot.at()],
            Op::SlotStore { src, slot } => slots[slot.at()] = regs[src.at()],
            Op::Add { dst, l, r } => {
                let (a, b) = (regs[l.at()], regs[r.at()]);
                regs[dst.at()] = attempt!(c => coerce::add(c, a, b));
            }
            Op::Sub { dst, l, r } => arith!(dst, l, r, Arith::Sub),
            Op::Mul { dst, l, r } => arith!(dst, l, r, Arith::Mul),
            Op::Div { dst, l, r } => arith!(dst, l, r, Arith::Div),
            Op::Rem { dst, l, r } => arith!(dst, l, r, Arith::Rem),
            Op::Pow { dst, l, r } => arith!(dst, l, r, Arith::Pow),
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
            Op::Lt { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, Cmp::Lt)),
            Op::Le { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, Cmp::Le)),
            Op::Gt { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, Cmp::Gt)),
            Op::Ge { dst, l, r } => regs[dst.at()] = Val::Bool(test!(l, r, Cmp::Ge)),
            Op::Jmp { to } => return Ok(to.at()),
            Op::JTrue { src, to } => jump!(coerce::truthy(&self.heap, regs[src.at()]), to),
            Op::JFalse { src, to } => {
                jump!(!coerce::truthy(&self.heap, regs[src.at()]), to)
            }
            Op::JNullish { src, to } => jump!(regs[src.at()].is_nullish(), to),
            Op::JPresent { src, to } => jump!(!regs[src.at()].is_nullish(), to),
            Op::JLt { l, r, to } => jump!(test!(l, r, Cmp::Lt), to),
            Op::JNLt { l, r, to } => jump!(!test!(l, r, Cmp::Lt), to),
            Op::JLe { l, r, to } => jump!(test!(l, r, Cmp::Le), to),
            Op::JNLe { l, r, to } => jump!(!test!(l, r, Cmp::Le), to),
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
                regs[dst.at()] = attempt!(c => member::index(c, object, index)).by_parts();
            }
            Op::Path { dst, root, path } => {
                let root = regs[root.at()];
                if !root.is_undefined() {
                    let path = &program.paths[path.at()];
                    let list: Segments<'_> = path.iter().map(|s| program.text(*s)).collect();
                    regs[dst.at()] = attempt!(c => member::walk(c, root, &list));
                }
            }
            Op::OwnMember { dst, obj, key } => {
                let (object, text) = (regs[obj.at()], program.text(program.keys[key.at()]));
                regs[dst.at()] = attempt!(c => member::own_text(c, object, text));
            }
            Op::OwnIndex { dst, obj, idx } => {
                let (object, index) = (regs[obj.at()], regs[idx.at()]);
                regs[dst.at()] = attempt!(c => member::own_index(c, object, index)).by_parts();
            }
            Op::OwnPath { dst, root, path } => {
                let (root, path) = (regs[root.at()], &program.paths[path.at()]);
                let list: Segments<'_> = path.iter().map(|s| program.text(*s)).collect();
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
                regs[dst.at()] = if main {
                    Val::Obj(attempt!(c => super::start::new_obj(c.heap, shape, vals)))
                } else {
                    vals.iter_mut().for_each(|v| *v = stored(*v));
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
                regs[dst.at()] = attempt!(c => builtins::call_function(c, function.0 as u16, args));
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
                    Ok(true) => {}
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
            Op::CheckReturn { src } => {
                let val = regs[src.at()];
                if !matches!(val, Val::Obj(_)) && !val.is_nullish() {
                    raise!(super::start::not_an_object(val));
                }
            }
            Op::Catch { msg, op } => {
                let caught = &self.caught;
                let (message, by) = attempt!(c => caught_texts(c, caught.as_deref()));
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
                    return Ok(to.at());
                }
            }
            Op::MemoPut { key, src } => {
                let (key, val) = (regs[key.at()], regs[src.at()]);
                attempt!(c => super::start::memo_put(c, &mut self.memo, key, val));
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
        Ok(pc + 1)
    }
}
