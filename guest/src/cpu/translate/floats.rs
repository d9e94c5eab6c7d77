//! Floating-point instructions as WebAssembly: loads, stores, moves and signs, and
//! the double precision arithmetic in which the host's cannot differ. All else
//! is done by the interpreter's own arithmetic, as a call.

use super::code::op::*;
use super::emit::{Emitter, INTERPRET, local};
use super::region::Step;
use crate::cpu::fp::format::{F64, Float, flag};
use crate::cpu::inst::Op;
use crate::cpu::table::{Format, TABLE};

/// Upper half of a register that holds a single precision number.
const BOX: i64 = !0xffff_ffff;

/// Rounding modes of an instruction: that of `frm`, and to the nearest, ties to
/// even.
const DYNAMIC: i32 = 7;
const NEAREST_EVEN: i32 = 0;

/// `sstatus.FS`: registers have changed.
const FS_DIRTY: i32 = 3;

impl Emitter<'_> {
    /// Leaves to the interpreter if floating point is off; else registers count
    /// as changed if `writes`.
    fn float_begin(&mut self, step: &Step) {
        if !self.float_on {
            let state = self.places.float_state as i32;
            self.code.i32(state).memory(I32_LOAD8_U, 0, 0).op(I32_EQZ);
            self.exit_if(step.offset, INTERPRET, self.rest);
            self.float_on = true;
        }
    }

    fn float_dirty(&mut self) {
        let state = self.places.float_state as i32;
        self.code.i32(state).i32(FS_DIRTY).memory(I32_STORE8, 0, 0);
    }

    fn float_read(&mut self, number: u8) {
        let place = self.places.float_register(number);
        self.code.i32(place).memory(I64_LOAD, 3, 0);
    }

    /// Takes a floating-point register from the local.
    fn float_write(&mut self, number: u8, local: u32) {
        let place = self.places.float_register(number);
        self.code.i32(place).get(local).memory(I64_STORE, 3, 0);
        self.float_dirty();
    }

    pub fn float_memory(&mut self, step: &Step) {
        let inst = &step.inst;
        self.float_begin(step);
        let is_write = matches!(inst.op, Op::Fsw | Op::Fsd);
        let align = if matches!(inst.op, Op::Flw | Op::Fsw) {
            2
        } else {
            3
        };
        let offset = self.access(step, align, is_write);
        match inst.op {
            Op::Fld => self.code.memory(I64_LOAD, 3, offset),
            Op::Flw => {
                self.code.memory(I64_LOAD32_U, 2, offset);
                self.code.i64(BOX).op(I64_OR)
            }
            op => {
                self.float_read(inst.rs2);
                let store = if op == Op::Fsw {
                    I64_STORE32
                } else {
                    I64_STORE
                };
                self.code.memory(store, align, offset);
                return;
            }
        };
        self.code.set(local::A);
        self.float_write(inst.rd, local::A);
    }

    /// Moves and signs of double precision are done here; all else by the
    /// interpreter's own arithmetic.
    pub fn float(&mut self, step: &Step) {
        use Op::*;
        let inst = &step.inst;
        self.float_begin(step);
        match inst.op {
            FmvXD => {
                self.float_read(inst.rs1);
                self.write(inst.rd);
            }
            FmvDX => {
                self.read(inst.rs1);
                self.code.set(local::A);
                self.float_write(inst.rd, local::A);
            }
            FsgnjD | FsgnjnD | FsgnjxD => {
                let sign = F64::SIGN as i64;
                self.float_read(inst.rs1);
                if inst.op != FsgnjxD {
                    self.code.i64(!sign).op(I64_AND);
                }
                self.float_read(inst.rs2);
                if inst.op == FsgnjnD {
                    self.code.i64(-1).op(I64_XOR);
                }
                let combine = if inst.op == FsgnjxD { I64_XOR } else { I64_OR };
                self.code.i64(sign).ops(&[I64_AND, combine]).set(local::A);
                self.float_write(inst.rd, local::A);
            }
            FaddD => self.float_arithmetic(step, F64_ADD),
            FsubD => self.float_arithmetic(step, F64_SUB),
            FmulD => self.float_arithmetic(step, F64_MUL),
            FdivD => self.float_arithmetic(step, F64_DIV),
            _ => self.float_call(step),
        }
    }

    /// Double precision arithmetic as the host does it, where that cannot differ
    /// in the result or in flags: rounding to nearest, inexact noted before, and
    /// a normal result that is not the least, which no other flag comes with.
    fn float_arithmetic(&mut self, step: &Step, opcode: u8) {
        let inst = &step.inst;
        let mode = inst.imm & 7;
        if mode != DYNAMIC && mode != NEAREST_EVEN {
            return self.float_call(step);
        }
        let (one, other) = (inst.rs1, inst.rs2);
        for number in [one, other] {
            let place = self.places.float_register(number);
            self.code.i32(place).memory(F64_LOAD, 3, 0);
        }
        let flags = self.places.float_flags as i32;
        let code = &mut self.code;
        code.ops(&[opcode, I64_REINTERPRET_F64]).set(local::A);
        // Zero if the exponent is 2 to 2046.
        code.get(local::A).i64(52).op(I64_SHR_U);
        code.i64(0x7ff).op(I64_AND).i64(2).op(I64_SUB);
        code.i64(0x7fc).op(I64_GT_U);
        code.i32(flags).memory(I32_LOAD8_U, 0, 0);
        code.i32(flag::INEXACT.into()).ops(&[I32_AND, I32_EQZ]);
        code.op(I32_OR);
        if mode == DYNAMIC {
            let rounding = self.places.float_rounding as i32;
            code.i32(rounding).memory(I32_LOAD8_U, 0, 0).op(I32_OR);
        }
        self.begin_if();
        self.float_call(step);
        self.code.op(ELSE);
        self.float_write(inst.rd, local::A);
        self.end_if();
    }

    fn float_call(&mut self, step: &Step) {
        let inst = &step.inst;
        if !is_float_only(inst.op) {
            self.flush();
        }
        self.call(self.places.helpers.float, inst);
        self.code.op(I32_EQZ);
        self.exit_if(step.offset, INTERPRET, self.rest);
        let row = TABLE.iter().find(|row| row.op == inst.op);
        if row.is_some_and(|row| row.format == Format::FpToInt) {
            self.reload(inst.rd);
        }
    }
}

/// Whether an operation neither reads nor writes integer registers, of those
/// that are called only where the host's arithmetic will not do.
fn is_float_only(op: Op) -> bool {
    matches!(op, Op::FaddD | Op::FsubD | Op::FmulD | Op::FdivD)
}
