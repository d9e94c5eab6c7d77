//! Code generation for floating-point instructions: loads, stores, moves and signs, and the
//! double precision arithmetic, comparisons and conversions in which the host cannot differ.
//! Calls of the interpreter's arithmetic do the rest.

use crate::interp::fp::format::{F64, Float, flag};
use crate::interp::inst::{Inst, Op};
use crate::interp::table::{Format, TABLE};
use crate::jit::code::Type;
use crate::jit::code::op::*;
use crate::jit::emit::{Emitter, INTERPRET, OptLevel, local};
use crate::jit::region::Step;

/// Upper half of a register that holds a single precision number.
const BOX: i64 = !0xffff_ffff;

/// Rounding modes of an instruction: dynamic (`frm`); to nearest, ties to even; to zero.
const DYNAMIC: i32 = 7;
const NEAREST_EVEN: i32 = 0;
const TO_ZERO: i32 = 1;

/// Integers up to this number are exact in double precision.
const EXACT: i64 = 1 << 53;

/// `sstatus.FS`: registers have changed.
const FS_DIRTY: i32 = 3;

impl Emitter<'_> {
    /// Leaves to the interpreter if floating point is off; otherwise marks registers as
    /// changed if `writes`.
    fn float_begin(&mut self, step: &Step) {
        if !self.float_on {
            let state = self.layout.float_state as i32;
            self.code.i32(state).memory(I32_LOAD8_U, 0, 0).op(I32_EQZ);
            self.exit_if(step.offset, INTERPRET, self.rest);
            self.float_on = true;
        }
    }

    fn float_dirty(&mut self) {
        let state = self.layout.float_state as i32;
        self.code.i32(state).i32(FS_DIRTY).memory(I32_STORE8, 0, 0);
    }

    fn float_read(&mut self, number: u8) {
        let place = self.layout.float_register(number);
        self.code.i32(place).memory(I64_LOAD, 3, 0);
    }

    /// Writes the local to a floating-point register.
    fn float_write(&mut self, number: u8, local: u32) {
        let place = self.layout.float_register(number);
        self.code.i32(place).get(local).memory(I64_STORE, 3, 0);
        self.float_dirty();
    }

    pub(crate) fn float_memory(&mut self, step: &Step) {
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

    /// Translates moves and signs of double precision; calls the interpreter's arithmetic
    /// for the rest.
    pub(crate) fn float(&mut self, step: &Step) {
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
            FmvXW => {
                self.float_read(inst.rs1);
                self.code.op(I64_EXTEND32_S);
                self.write(inst.rd);
            }
            FmvWX => {
                self.read(inst.rs1);
                self.code.i64(BOX).op(I64_OR).set(local::A);
                self.float_write(inst.rd, local::A);
            }
            FeqD => self.float_compare(step, F64_EQ),
            FltD => self.float_compare(step, F64_LT),
            FleD => self.float_compare(step, F64_LE),
            FcvtDW | FcvtDWu | FcvtDL => self.float_from_integer(step),
            FcvtWD | FcvtLD if inst.imm & 7 == TO_ZERO => self.float_to_integer(step),
            FaddD => self.float_arithmetic(step, F64_ADD),
            FsubD => self.float_arithmetic(step, F64_SUB),
            FmulD => self.float_arithmetic(step, F64_MUL),
            FdivD => self.float_arithmetic(step, F64_DIV),
            _ => self.float_call(step),
        }
    }

    /// Translates double precision arithmetic for the host, in cases that cannot differ in
    /// the result or in flags: rounding to nearest, a normal result above the least, and
    /// inexact either accrued already or not raised.
    fn float_arithmetic(&mut self, step: &Step, opcode: u8) {
        let inst = &step.inst;
        let mode = inst.imm & 7;
        if mode != DYNAMIC && mode != NEAREST_EVEN {
            return self.float_call(step);
        }
        self.float_read_value(inst.rs1);
        self.float_read_value(inst.rs2);
        self.code.ops(&[opcode, I64_REINTERPRET_F64]).set(local::A);
        let flags = self.layout.float_flags as i32;
        let code = &mut self.code;
        // Zero if the exponent is 2 to 2046.
        code.get(local::A).i64(52).op(I64_SHR_U);
        code.i64(0x7ff).op(I64_AND).i64(2).op(I64_SUB);
        code.i64(0x7fc).op(I64_GT_U);
        code.i32(flags).memory(I32_LOAD8_U, 0, 0);
        code.i32(flag::INEXACT.into()).ops(&[I32_AND, I32_EQZ]);
        if self.opt_level == OptLevel::Speed {
            self.unlikely().code.open(IF, Some(Type::I32));
            self.is_inexact(inst, opcode);
            self.code.op(ELSE).i32(0).op(END);
        }
        self.code.op(I32_OR);
        if mode == DYNAMIC {
            let rounding = self.layout.float_rounding as i32;
            self.code.i32(rounding).memory(I32_LOAD8_U, 0, 0).op(I32_OR);
        }
        self.unlikely().begin_if();
        self.float_call(step);
        self.code.op(ELSE);
        self.float_write(inst.rd, local::A);
        self.end_if();
    }

    /// Compares numbers; one that is not a number may raise a flag.
    fn float_compare(&mut self, step: &Step, opcode: u8) {
        let inst = &step.inst;
        for number in [inst.rs1, inst.rs2] {
            self.float_read_value(number);
            self.float_read_value(number);
            self.code.op(F64_NE);
        }
        self.code.op(I32_OR);
        self.unless_called(step);
        self.float_read_value(inst.rs1);
        self.float_read_value(inst.rs2);
        self.code.ops(&[opcode, I64_EXTEND_I32_U]);
        self.end_unless_called(inst);
    }

    /// Converts an integer if the result is exact, so that the rounding mode does not
    /// matter.
    fn float_from_integer(&mut self, step: &Step) {
        let inst = &step.inst;
        let mode = inst.imm & 7;
        if mode != DYNAMIC && mode != NEAREST_EVEN {
            return self.float_call(step);
        }
        self.read(inst.rs1);
        match inst.op {
            Op::FcvtDW => self.code.op(I64_EXTEND32_S),
            Op::FcvtDWu => self.code.i64(!BOX).op(I64_AND),
            _ => &mut self.code,
        };
        self.code.set(local::B);
        self.code.get(local::B).i64(EXACT).op(I64_ADD);
        self.code.i64(2 * EXACT).op(I64_GT_U);
        if mode == DYNAMIC {
            // It might be reserved.
            let rounding = self.layout.float_rounding as i32;
            self.code.i32(rounding).memory(I32_LOAD8_U, 0, 0).op(I32_OR);
        }
        self.unlikely().begin_if();
        self.float_call(step);
        self.code.op(ELSE).get(local::B);
        self.code.ops(&[F64_CONVERT_I64_S, I64_REINTERPRET_F64]);
        self.code.set(local::A);
        self.float_write(inst.rd, local::A);
        self.end_if();
    }

    /// Converts to an integer in range, towards zero, if inexact has accrued already or is
    /// not raised.
    fn float_to_integer(&mut self, step: &Step) {
        let inst = &step.inst;
        let limit: f64 = if inst.op == Op::FcvtWD {
            (1u32 << 31).into()
        } else {
            (1u64 << 62) as f64
        };
        self.float_read_value(inst.rs1);
        self.code.op(F64_ABS);
        self.code.op(F64_CONST).ops(&limit.to_le_bytes());
        self.code.ops(&[F64_LT, I32_EQZ]);
        self.float_read_value(inst.rs1);
        self.code.op(F64_TRUNC);
        self.float_read_value(inst.rs1);
        self.code.op(F64_NE);
        let flags = self.layout.float_flags as i32;
        self.code.i32(flags).memory(I32_LOAD8_U, 0, 0);
        self.code.i32(flag::INEXACT.into()).ops(&[I32_AND, I32_EQZ]);
        self.code.ops(&[I32_AND, I32_OR]);
        self.unless_called(step);
        self.float_read_value(inst.rs1);
        self.code.op(I64_TRUNC_F64_S);
        self.end_unless_called(inst);
    }

    /// Calls the helper if the number on the stack is not zero; otherwise the code up to
    /// [`Emitter::end_unless_called`] pushes the integer result.
    fn unless_called(&mut self, step: &Step) {
        self.unlikely().begin_if();
        self.float_call(step);
        // The hart's register, or the sink.
        let place = self.layout.register(step.inst.rd);
        self.code.i32(place).memory(I64_LOAD, 3, 0).set(local::A);
        self.code.op(ELSE);
    }

    fn end_unless_called(&mut self, inst: &Inst) {
        self.code.set(local::A);
        self.end_if();
        self.code.get(local::A);
        self.write(inst.rd);
    }

    /// Pushes a register as a double precision number.
    fn float_read_value(&mut self, number: u8) {
        let place = self.layout.float_register(number);
        self.code.i32(place).memory(F64_LOAD, 3, 0);
    }

    /// Pushes whether the result in the local, a normal number, may be rounded. Like
    /// `fp::fast`, it uses the error of the sum, or the widths of the significands, by
    /// counting trailing zeros. Subnormal numbers have no leading one, and are narrower
    /// than they seem.
    fn is_inexact(&mut self, inst: &Inst, opcode: u8) {
        let (one, other) = (inst.rs1, inst.rs2);
        match opcode {
            F64_ADD | F64_SUB => {
                // For a + b = s: the part of b in s is s - a; the error is (a - (s - part))
                // + (b - part). For a - b all of b is negated.
                let (lose, gain) = if opcode == F64_ADD {
                    (F64_SUB, F64_ADD)
                } else {
                    (F64_ADD, F64_SUB)
                };
                self.code.get(local::A).op(F64_REINTERPRET_I64);
                self.float_read_value(one);
                self.code.ops(&[F64_SUB, I64_REINTERPRET_F64]).set(local::B);
                self.float_read_value(one);
                self.code.get(local::A).op(F64_REINTERPRET_I64);
                self.code.get(local::B).op(F64_REINTERPRET_I64);
                self.code.ops(&[F64_SUB, F64_SUB]);
                self.float_read_value(other);
                self.code.get(local::B).op(F64_REINTERPRET_I64);
                self.code.ops(&[lose, gain]);
                self.code.op(F64_CONST).ops(&0f64.to_le_bytes());
                self.code.op(F64_NE);
            }
            F64_MUL => {
                self.trailing_zeros(|emitter| emitter.float_read(one));
                self.trailing_zeros(|emitter| emitter.float_read(other));
                self.is_wide();
            }
            // Exact if quotient times divisor is the dividend, and fits it.
            _ => {
                self.trailing_zeros(|emitter| {
                    emitter.code.get(local::A);
                });
                self.trailing_zeros(|emitter| emitter.float_read(other));
                self.is_wide();
                self.code.get(local::A).op(F64_REINTERPRET_I64);
                self.float_read_value(other);
                self.code.op(F64_MUL);
                self.float_read_value(one);
                self.code.ops(&[F64_NE, I32_OR]);
                // A product below the normal numbers might be rounded.
                self.float_read(one);
                self.code.i64(F64::INFINITY as i64);
                self.code.ops(&[I64_AND, I64_EQZ, I32_OR]);
            }
        }
    }

    /// Pushes the trailing zeros of a normal number's significand.
    fn trailing_zeros(&mut self, number: impl FnOnce(&mut Self)) {
        number(self);
        let leading = 1i64 << F64::FRACTION;
        self.code.i64(leading).ops(&[I64_OR, I64_CTZ]);
    }

    /// Pushes whether a product of numbers with these trailing zeros may need more bits
    /// than a significand has.
    fn is_wide(&mut self) {
        let bits = i64::from(F64::FRACTION) + 1;
        self.code.op(I64_ADD).i64(bits).op(I64_LT_U);
    }

    fn float_call(&mut self, step: &Step) {
        let inst = &step.inst;
        let row = TABLE.iter().find(|row| row.op == inst.op);
        let is_integer = row.is_some_and(|row| row.format == Format::FpToInt);
        if !is_integer {
            // Conversions read it; for others it is the number of another register.
            self.write_back(inst.rs1);
        }
        self.call(self.layout.helpers.float, inst);
        self.code.op(I32_EQZ);
        self.exit_if(step.offset, INTERPRET, self.rest);
        if is_integer {
            self.reload(inst.rd);
        }
    }
}
