//! Floating point: the registers, and the F and D extensions.
//!
//! Single precision numbers are NaN-boxed: the upper half of the register is all ones, and
//! any other register reads as the canonical NaN. Results are computed with integers
//! ([`soft`], [`convert`]), unless `fast` can prove that the host's arithmetic gives the
//! same bits and flags.

pub(crate) mod convert;
mod fast;
pub(crate) mod format;
pub(crate) mod soft;
#[cfg(test)]
mod tests;

use self::convert::Int;
use self::format::{F32, F64, Float, Rounding};
use super::inst::{Inst, Op};
use crate::hart::Registers;

/// `sstatus.FS`: floating point is off, and its instructions are illegal.
pub(crate) const FS_OFF: u8 = 0;

/// `sstatus.FS`: registers have changed since they were saved.
const FS_DIRTY: u8 = 3;

/// Upper half of a register that holds a single precision number.
const BOX: u64 = 0xffff_ffff << 32;

/// Code of the dynamic rounding mode, which selects `frm`.
const DYNAMIC: u8 = 7;

/// Floating-point registers and their control.
#[derive(Clone, Debug, Default)]
pub struct Fp {
    f: [u64; 32],
    /// Accrued exceptions, `fflags`.
    pub flags: u8,
    /// Rounding mode, `frm`.
    pub rounding: u8,
    /// `sstatus.FS`.
    pub state: u8,
}

impl Fp {
    /// Whether floating-point instructions may run.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.state != FS_OFF
    }

    /// Whether registers have changed since they were saved.
    pub fn is_dirty(&self) -> bool {
        self.state == FS_DIRTY
    }

    /// The bits of a register.
    #[inline(always)]
    pub fn bits(&self, number: u8) -> u64 {
        self.f[usize::from(number & 31)]
    }

    /// Sets a register to a double precision number.
    #[inline(always)]
    pub fn set_f64(&mut self, number: u8, bits: u64) {
        self.f[usize::from(number & 31)] = bits;
        self.state = FS_DIRTY;
    }

    /// Sets a register to a single precision number.
    #[inline(always)]
    pub fn set_f32(&mut self, number: u8, bits: u32) {
        self.set_f64(number, BOX | u64::from(bits));
    }

    /// Sets `fflags`.
    pub fn set_flags(&mut self, flags: u8) {
        self.flags = flags & 31;
        self.state = FS_DIRTY;
    }

    /// Sets `frm`.
    pub fn set_rounding(&mut self, rounding: u8) {
        self.rounding = rounding & 7;
        self.state = FS_DIRTY;
    }

    /// The registers and the state, for translated code, which accesses them in place.
    pub(crate) fn parts(&self) -> (&[u64; 32], &u8, &u8, &u8) {
        (&self.f, &self.state, &self.flags, &self.rounding)
    }

    fn single(&self, number: u8) -> u64 {
        let bits = self.bits(number);
        if bits & BOX == BOX {
            bits & !BOX
        } else {
            format::quiet_nan::<F32>()
        }
    }

    fn raise(&mut self, flags: u8) {
        if self.flags & flags != flags {
            self.set_flags(self.flags | flags);
        }
    }
}

/// Runs a computing instruction; the interpreter handles loads and stores. `false` if it is
/// illegal now: floating point is off, or the rounding mode is reserved.
pub(crate) fn execute(fp: &mut Fp, x: &mut Registers, inst: &Inst) -> bool {
    fp.is_on()
        && match inst.op as u8 {
            op if op < Op::FaddS as u8 => fused(fp, inst),
            op if op < Op::FaddD as u8 => single(fp, x, inst),
            _ => double(fp, x, inst),
        }
}

fn rounding(fp: &Fp, inst: &Inst) -> Option<Rounding> {
    let code = inst.imm as u8 & 7;
    Rounding::from_code(if code == DYNAMIC { fp.rounding } else { code })
}

fn fused(fp: &mut Fp, inst: &Inst) -> bool {
    use Op::*;
    let Some(mode) = rounding(fp, inst) else {
        return false;
    };
    let rs3 = (inst.imm >> 8) as u8;
    let is_double = matches!(inst.op, FmaddD | FmsubD | FnmsubD | FnmaddD);
    let negate_product = matches!(inst.op, FnmsubS | FnmaddS | FnmsubD | FnmaddD);
    let negate_addend = matches!(inst.op, FmsubS | FnmaddS | FmsubD | FnmaddD);
    let mut flags = 0;
    let flip = |negate: bool, sign: u64| if negate { sign } else { 0 };
    if is_double {
        let a = fp.bits(inst.rs1) ^ flip(negate_product, F64::SIGN);
        let c = fp.bits(rs3) ^ flip(negate_addend, F64::SIGN);
        let result = soft::fma::<F64>(a, fp.bits(inst.rs2), c, mode, &mut flags);
        fp.set_f64(inst.rd, result);
    } else {
        let a = fp.single(inst.rs1) ^ flip(negate_product, F32::SIGN);
        let c = fp.single(rs3) ^ flip(negate_addend, F32::SIGN);
        let result = soft::fma::<F32>(a, fp.single(inst.rs2), c, mode, &mut flags);
        fp.set_f32(inst.rd, result as u32);
    }
    fp.raise(flags);
    true
}

/// Result of an instruction.
enum Output {
    /// Value for a floating-point register.
    Float(u64),
    /// Value for an integer register.
    Int(u64),
}

fn single(fp: &mut Fp, x: &mut Registers, inst: &Inst) -> bool {
    use Op::*;
    let (a, b) = (fp.single(inst.rs1), fp.single(inst.rs2));
    let source = x[usize::from(inst.rs1)];
    let mut flags = 0;
    let output = match inst.op {
        FsgnjS => Output::Float(a & !F32::SIGN | b & F32::SIGN),
        FsgnjnS => Output::Float(a & !F32::SIGN | !b & F32::SIGN),
        FsgnjxS => Output::Float(a ^ b & F32::SIGN),
        FmvXW => Output::Int(fp.bits(inst.rs1) as i32 as u64),
        FmvWX => Output::Float(source & !BOX),
        FminS | FmaxS | FeqS | FltS | FleS | FclassS => unrounded::<F32>(inst.op, a, b, &mut flags),
        _ => {
            let Some(mode) = rounding(fp, inst) else {
                return false;
            };
            match inst.op {
                FaddS => Output::Float(fast::add_32(a, b, mode, fp.flags, &mut flags)),
                FsubS => Output::Float(fast::add_32(a, b ^ F32::SIGN, mode, fp.flags, &mut flags)),
                FmulS => Output::Float(fast::mul_32(a, b, mode, fp.flags, &mut flags)),
                FdivS => Output::Float(fast::div_32(a, b, mode, fp.flags, &mut flags)),
                FsqrtS => Output::Float(soft::sqrt::<F32>(a, mode, &mut flags)),
                _ => converted::<F32>(inst.op, a, source, mode, &mut flags),
            }
        }
    };
    match output {
        Output::Float(bits) => fp.set_f32(inst.rd, bits as u32),
        Output::Int(value) => x[usize::from(inst.rd)] = value,
    }
    fp.raise(flags);
    true
}

fn double(fp: &mut Fp, x: &mut Registers, inst: &Inst) -> bool {
    use Op::*;
    let (a, b) = (fp.bits(inst.rs1), fp.bits(inst.rs2));
    let source = x[usize::from(inst.rs1)];
    let mut flags = 0;
    let output = match inst.op {
        FsgnjD => Output::Float(a & !F64::SIGN | b & F64::SIGN),
        FsgnjnD => Output::Float(a & !F64::SIGN | !b & F64::SIGN),
        FsgnjxD => Output::Float(a ^ b & F64::SIGN),
        FmvXD => Output::Int(a),
        FmvDX => Output::Float(source),
        FminD | FmaxD | FeqD | FltD | FleD | FclassD => unrounded::<F64>(inst.op, a, b, &mut flags),
        _ => {
            let Some(mode) = rounding(fp, inst) else {
                return false;
            };
            match inst.op {
                FaddD => Output::Float(fast::add_64(a, b, mode, fp.flags, &mut flags)),
                FsubD => Output::Float(fast::add_64(a, b ^ F64::SIGN, mode, fp.flags, &mut flags)),
                FmulD => Output::Float(fast::mul_64(a, b, mode, fp.flags, &mut flags)),
                FdivD => Output::Float(fast::div_64(a, b, mode, fp.flags, &mut flags)),
                FsqrtD => Output::Float(fast::sqrt_64(a, mode, fp.flags, &mut flags)),
                FcvtSD => {
                    let bits = convert::to_format::<F64, F32>(a, mode, &mut flags);
                    Output::Float(BOX | bits)
                }
                FcvtDS => {
                    let a = fp.single(inst.rs1);
                    Output::Float(convert::to_format::<F32, F64>(a, mode, &mut flags))
                }
                _ => converted::<F64>(inst.op, a, source, mode, &mut flags),
            }
        }
    };
    match output {
        Output::Float(bits) => fp.set_f64(inst.rd, bits),
        Output::Int(value) => x[usize::from(inst.rd)] = value,
    }
    fp.raise(flags);
    true
}

/// Operations that never round.
fn unrounded<F: Float>(op: Op, a: u64, b: u64, flags: &mut u8) -> Output {
    use Op::*;
    match op {
        FminS | FminD => Output::Float(convert::extremum::<F>(a, b, false, flags)),
        FmaxS | FmaxD => Output::Float(convert::extremum::<F>(a, b, true, flags)),
        FeqS | FeqD => Output::Int(convert::equal::<F>(a, b, flags).into()),
        FltS | FltD => Output::Int(convert::less::<F>(a, b, false, flags).into()),
        FleS | FleD => Output::Int(convert::less::<F>(a, b, true, flags).into()),
        _ => Output::Int(convert::classify::<F>(a)),
    }
}

/// Conversions from and to integers.
fn converted<F: Float>(op: Op, a: u64, source: u64, mode: Rounding, flags: &mut u8) -> Output {
    use Op::*;
    match op {
        FcvtWS | FcvtWD => Output::Int(convert::to_int::<F>(a, Int::I32, mode, flags)),
        FcvtWuS | FcvtWuD => Output::Int(convert::to_int::<F>(a, Int::U32, mode, flags)),
        FcvtLS | FcvtLD => Output::Int(convert::to_int::<F>(a, Int::I64, mode, flags)),
        FcvtLuS | FcvtLuD => Output::Int(convert::to_int::<F>(a, Int::U64, mode, flags)),
        FcvtSW | FcvtDW => Output::Float(convert::from_int::<F>(source, Int::I32, mode, flags)),
        FcvtSWu | FcvtDWu => Output::Float(convert::from_int::<F>(source, Int::U32, mode, flags)),
        FcvtSL | FcvtDL => Output::Float(convert::from_int::<F>(source, Int::I64, mode, flags)),
        _ => Output::Float(convert::from_int::<F>(source, Int::U64, mode, flags)),
    }
}
