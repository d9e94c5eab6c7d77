//! From bits to typed instructions.

use super::compressed;
use super::inst::{Inst, Op, SINK};
use super::table::{self, Format, Row};

/// A decoded instruction and its length in bytes (2 or 4).
pub type Decoded = (Inst, u8);

/// Length in bytes of the instruction that begins with `low`; longer encodings
/// than 32 bits are reserved and read as illegal 32-bit ones.
pub fn length(low: u16) -> u8 {
    if low & 3 == 3 { 4 } else { 2 }
}

/// Decodes the instruction in `bits`; only the low half counts when it is a
/// compressed one.
pub fn decode(bits: u32) -> Decoded {
    if length(bits as u16) == 4 {
        return (decode_32(bits).unwrap_or_else(|| illegal(bits)), 4);
    }
    let low = bits as u16;
    let expanded = compressed::expand(low).and_then(decode_32);
    (expanded.unwrap_or_else(|| illegal(u32::from(low))), 2)
}

fn illegal(bits: u32) -> Inst {
    Inst {
        op: Op::Illegal,
        rd: SINK,
        rs1: 0,
        rs2: 0,
        imm: bits as i32,
    }
}

fn decode_32(bits: u32) -> Option<Inst> {
    let row = table::find(bits)?;
    let inst = Inst {
        op: row.op,
        rd: register(bits, 7),
        rs1: register(bits, 15),
        rs2: register(bits, 20),
        imm: immediate(row.format, bits),
    };
    Some(without_x0(inst, row))
}

fn register(bits: u32, at: u32) -> u8 {
    ((bits >> at) & 31) as u8
}

/// The immediate of a format (unprivileged manual, "Immediate Encoding
/// Variants").
fn immediate(format: Format, bits: u32) -> i32 {
    let signed = bits as i32;
    match format {
        Format::None | Format::R => 0,
        Format::I | Format::FpLoad => signed >> 20,
        Format::Shift => ((bits >> 20) & 63) as i32,
        Format::S => (signed >> 25 << 5) | ((bits >> 7) & 31) as i32,
        Format::B => {
            (signed >> 31 << 12)
                | ((bits >> 7 & 1) << 11) as i32
                | ((bits >> 25 & 0x3f) << 5) as i32
                | ((bits >> 8 & 0xf) << 1) as i32
        }
        Format::U => (bits & 0xffff_f000) as i32,
        Format::J => {
            (signed >> 31 << 20)
                | (bits & 0xf_f000) as i32
                | ((bits >> 20 & 1) << 11) as i32
                | ((bits >> 21 & 0x3ff) << 1) as i32
        }
        Format::Csr => (bits >> 20) as i32,
        Format::Fp | Format::FpToInt | Format::Fp4 => {
            ((bits >> 12 & 7) | (bits >> 27) << 8) as i32
        }
    }
}

/// Makes writes to `x0` vanish: where nothing else happens the instruction
/// becomes a no-operation, else its destination is [`SINK`].
fn without_x0(mut inst: Inst, row: &Row) -> Inst {
    use Op::*;
    if matches!(row.format, Format::Fp | Format::Fp4 | Format::FpLoad) {
        return inst;
    }
    if inst.op == Fence {
        inst.op = Nop;
    }
    if inst.rd == 0 {
        inst.rd = SINK;
        let effects = matches!(inst.op, Jal | Jalr | Lb | Lh | Lw | Ld | Lbu | Lhu | Lwu)
            || inst.op == FenceI
            || inst.op.ends_block()
            || (LrW as u8..=AmoMaxuD as u8).contains(&(inst.op as u8));
        let writes_rd = matches!(
            row.format,
            Format::R | Format::I | Format::Shift | Format::U | Format::J
        );
        if writes_rd && !effects {
            inst.op = Nop;
        }
    }
    inst
}
