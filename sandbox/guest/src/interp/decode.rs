//! Decoder: from bits to typed instructions.

use super::compressed;
use super::inst::{Inst, Op, SINK};
use super::table::{self, Format, Row};

/// A decoded instruction and its length in bytes (2 or 4).
pub type Decoded = (Inst, u8);

/// Length in bytes of the instruction that begins with `low`. Encodings longer than 32 bits
/// are reserved and read as illegal 32-bit ones.
pub fn length(low: u16) -> u8 {
    if low & 3 == 3 { 4 } else { 2 }
}

/// Decodes the instruction in `bits`; for a compressed one only the low half counts.
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
        Format::Fp | Format::FpToInt | Format::Fp4 => ((bits >> 12 & 7) | (bits >> 27) << 8) as i32,
    }
}

/// Removes writes to `x0`: an instruction without other effects becomes a no-operation, any
/// other gets the destination [`SINK`].
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
            || matches!(inst.op, FenceI | CboZero)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inst(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> Inst {
        Inst {
            op,
            rd,
            rs1,
            rs2,
            imm,
        }
    }

    /// Encodings from the GNU assembler.
    #[test]
    fn formats() {
        // addi a0, a1, -5
        assert_eq!(decode(0xffb5_8513), (inst(Op::Addi, 10, 11, 27, -5), 4));
        // sd s1, -8(sp)
        assert_eq!(decode(0xfe91_3c23), (inst(Op::Sd, 24, 2, 9, -8), 4));
        // bgeu t0, t1, .-4
        assert_eq!(decode(0xfe62_fee3), (inst(Op::Bgeu, 29, 5, 6, -4), 4));
        // jal ra, .+0x1000
        assert_eq!(decode(0x0000_10ef), (inst(Op::Jal, 1, 0, 0, 0x1000), 4));
        // lui a5, 0xfffff
        let (lui, _) = decode(0xffff_f7b7);
        assert_eq!((lui.op, lui.rd, lui.imm), (Op::Lui, 15, -4096));
        // srai a0, a0, 63
        let (srai, _) = decode(0x43f5_5513);
        assert_eq!((srai.op, srai.imm), (Op::Srai, 63));
        // fmadd.d fa0, fa1, fa2, fa3, rtz
        let (fma, _) = decode(0x6ac5_9543);
        assert_eq!((fma.op, fma.rs2, fma.imm), (Op::FmaddD, 12, 13 << 8 | 1));
        // csrrw a0, satp, a1
        let (csr, _) = decode(0x1805_9573);
        assert_eq!((csr.op, csr.imm), (Op::Csrrw, 0x180));
    }

    /// Compressed instructions and their expansions by the GNU assembler.
    #[test]
    fn compressed_forms() {
        let cases = [
            (0x1141, 0xff01_0113), // addi sp, sp, -16
            (0x0808, 0x0101_0513), // addi a0, sp, 16
            (0x6105, 0x0201_0113), // addi sp, sp, 32
            (0x4501, 0x0000_0513), // li a0, 0
            (0x6491, 0x0000_44b7), // lui s1, 4
            (0x2505, 0x0015_051b), // addiw a0, a0, 1
            (0x600c, 0x0004_3583), // ld a1, 0(s0)
            (0xc410, 0x00c4_2423), // sw a2, 8(s0)
            (0x8da9, 0x00a5_c5b3), // xor a1, a1, a0
            (0x9e29, 0x00a6_063b), // addw a2, a2, a0
            (0x8f99, 0x40e7_87b3), // sub a5, a5, a4
            (0xe211, 0x0006_1263), // bnez a2, .+4
            (0xb7dd, 0xfe7f_f06f), // j .-26
            (0x8082, 0x0000_8067), // ret
            (0x9002, 0x0010_0073), // ebreak
            (0x9502, 0x0005_00e7), // jalr a0
            (0x852e, 0x00b0_0533), // mv a0, a1
            (0x95aa, 0x00a5_85b3), // add a1, a1, a0
            (0x60a2, 0x0081_3083), // ld ra, 8(sp)
            (0xe406, 0x0011_3423), // sd ra, 8(sp)
            (0x2508, 0x0085_3507), // fld fa0, 8(a0)
            (0xb422, 0x0281_3427), // fsd fs0, 40(sp)
            (0x157d, 0xfff5_0513), // addi a0, a0, -1
            (0x9179, 0x03e5_5513), // srli a0, a0, 62
            (0x857d, 0x41f5_5513), // srai a0, a0, 31
            (0x8905, 0x0015_7513), // andi a0, a0, 1
            (0x157e, 0x03f5_1513), // slli a0, a0, 63
        ];
        for (half, word) in cases {
            assert_eq!(compressed::expand(half), Some(word), "{half:#x}");
        }
        // All zeros, `c.lwsp x0`, `c.jr x0`, `c.addiw x0`, reserved rows.
        for half in [0, 0x4002, 0x8002, 0x2005, 0x9c41, 0x8000, 0x6101, 0x6501] {
            assert_eq!(compressed::expand(half), None, "{half:#x}");
            assert_eq!(decode(half.into()), (illegal(half.into()), 2));
        }
    }

    #[test]
    fn writes_to_x0_vanish() {
        // nop, lui x0, add x0, fence
        for bits in [0x13, 0x0000_1037, 0x00b5_0033, 0x0ff0_000f] {
            assert_eq!(decode(bits).0.op, Op::Nop, "{bits:#x}");
        }
        // lw x0, 0(a0) may fault; amoadd.w x0, x0, (a0) has an effect.
        for bits in [0x0005_2003, 0x0005_202f] {
            assert_eq!(decode(bits).0.rd, SINK, "{bits:#x}");
        }
        assert_eq!(decode(0x0000_006f).0.rd, SINK);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// No bits may cause a panic or a write to `x0`.
        #[test]
        fn anything_decodes(bits: u32) {
            let (inst, length) = decode(bits);
            prop_assert!(length == 2 || length == 4);
            prop_assert!(inst.rs1 < 32 && inst.rs2 < 32 && inst.rd <= SINK);
            let integer = (inst.op as u8) < Op::Flw as u8;
            prop_assert!(!integer || inst.rd != 0, "{:?}", inst);
        }
    }
}
