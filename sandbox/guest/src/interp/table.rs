//! Instruction set table: RV64IMAFD, Zicsr, Zifencei and the privileged instructions that
//! an S-mode kernel needs.
//!
//! Each instruction has one row: which bits are fixed, their values, and the layout of the
//! rest. Rows are ordered by major opcode (bits 2-6), so that decoding searches the rows of
//! one opcode only. Encodings are those of the unprivileged manual, chapter "RV32/64G
//! Instruction Set Listings".

use super::inst::Op;

/// Layout of the bits that a row leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// No operands, or only ones that a single in-order hart can ignore.
    None,
    /// Two sources and a destination.
    R,
    /// Source, 12-bit immediate and destination.
    I,
    /// Source, shift amount and destination.
    Shift,
    /// Two sources and a 12-bit immediate.
    S,
    /// Two sources and a branch offset.
    B,
    /// Upper immediate and destination.
    U,
    /// Jump offset and destination.
    J,
    /// CSR number, source or 5-bit immediate, and destination.
    Csr,
    /// Floating-point destination, source and 12-bit immediate.
    FpLoad,
    /// Floating-point destination, up to two sources and rounding mode.
    Fp,
    /// Integer destination, up to two sources and rounding mode.
    FpToInt,
    /// Floating-point destination, three sources and rounding mode.
    Fp4,
}

/// An instruction of the set.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The operation.
    pub op: Op,
    /// Layout of the open bits.
    pub format: Format,
    /// Mask of the fixed bits.
    pub mask: u32,
    /// Values of the fixed bits.
    pub bits: u32,
}

const fn row(op: Op, format: Format, mask: u32, bits: u32) -> Row {
    Row {
        op,
        format,
        mask,
        bits,
    }
}

/// All rows, ordered by major opcode.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row(Op::Lb, Format::I, 0x0000707f, 0x00000003),
    row(Op::Lh, Format::I, 0x0000707f, 0x00001003),
    row(Op::Lw, Format::I, 0x0000707f, 0x00002003),
    row(Op::Ld, Format::I, 0x0000707f, 0x00003003),
    row(Op::Lbu, Format::I, 0x0000707f, 0x00004003),
    row(Op::Lhu, Format::I, 0x0000707f, 0x00005003),
    row(Op::Lwu, Format::I, 0x0000707f, 0x00006003),
    row(Op::Flw, Format::FpLoad, 0x0000707f, 0x00002007),
    row(Op::Fld, Format::FpLoad, 0x0000707f, 0x00003007),
    row(Op::Fence, Format::None, 0x0000707f, 0x0000000f),
    row(Op::FenceI, Format::None, 0x0000707f, 0x0000100f),
    row(Op::CboZero, Format::R, 0xfff07fff, 0x0040200f),
    row(Op::Addi, Format::I, 0x0000707f, 0x00000013),
    row(Op::Slti, Format::I, 0x0000707f, 0x00002013),
    row(Op::Sltiu, Format::I, 0x0000707f, 0x00003013),
    row(Op::Xori, Format::I, 0x0000707f, 0x00004013),
    row(Op::Ori, Format::I, 0x0000707f, 0x00006013),
    row(Op::Andi, Format::I, 0x0000707f, 0x00007013),
    row(Op::Slli, Format::Shift, 0xfc00707f, 0x00001013),
    row(Op::Srli, Format::Shift, 0xfc00707f, 0x00005013),
    row(Op::Srai, Format::Shift, 0xfc00707f, 0x40005013),
    row(Op::Auipc, Format::U, 0x0000007f, 0x00000017),
    row(Op::Addiw, Format::I, 0x0000707f, 0x0000001b),
    row(Op::Slliw, Format::Shift, 0xfe00707f, 0x0000101b),
    row(Op::Srliw, Format::Shift, 0xfe00707f, 0x0000501b),
    row(Op::Sraiw, Format::Shift, 0xfe00707f, 0x4000501b),
    row(Op::Sb, Format::S, 0x0000707f, 0x00000023),
    row(Op::Sh, Format::S, 0x0000707f, 0x00001023),
    row(Op::Sw, Format::S, 0x0000707f, 0x00002023),
    row(Op::Sd, Format::S, 0x0000707f, 0x00003023),
    row(Op::Fsw, Format::S, 0x0000707f, 0x00002027),
    row(Op::Fsd, Format::S, 0x0000707f, 0x00003027),
    row(Op::LrW, Format::R, 0xf9f0707f, 0x1000202f),
    row(Op::ScW, Format::R, 0xf800707f, 0x1800202f),
    row(Op::AmoSwapW, Format::R, 0xf800707f, 0x0800202f),
    row(Op::AmoAddW, Format::R, 0xf800707f, 0x0000202f),
    row(Op::AmoXorW, Format::R, 0xf800707f, 0x2000202f),
    row(Op::AmoAndW, Format::R, 0xf800707f, 0x6000202f),
    row(Op::AmoOrW, Format::R, 0xf800707f, 0x4000202f),
    row(Op::AmoMinW, Format::R, 0xf800707f, 0x8000202f),
    row(Op::AmoMaxW, Format::R, 0xf800707f, 0xa000202f),
    row(Op::AmoMinuW, Format::R, 0xf800707f, 0xc000202f),
    row(Op::AmoMaxuW, Format::R, 0xf800707f, 0xe000202f),
    row(Op::LrD, Format::R, 0xf9f0707f, 0x1000302f),
    row(Op::ScD, Format::R, 0xf800707f, 0x1800302f),
    row(Op::AmoSwapD, Format::R, 0xf800707f, 0x0800302f),
    row(Op::AmoAddD, Format::R, 0xf800707f, 0x0000302f),
    row(Op::AmoXorD, Format::R, 0xf800707f, 0x2000302f),
    row(Op::AmoAndD, Format::R, 0xf800707f, 0x6000302f),
    row(Op::AmoOrD, Format::R, 0xf800707f, 0x4000302f),
    row(Op::AmoMinD, Format::R, 0xf800707f, 0x8000302f),
    row(Op::AmoMaxD, Format::R, 0xf800707f, 0xa000302f),
    row(Op::AmoMinuD, Format::R, 0xf800707f, 0xc000302f),
    row(Op::AmoMaxuD, Format::R, 0xf800707f, 0xe000302f),
    row(Op::Add, Format::R, 0xfe00707f, 0x00000033),
    row(Op::Sub, Format::R, 0xfe00707f, 0x40000033),
    row(Op::Sll, Format::R, 0xfe00707f, 0x00001033),
    row(Op::Slt, Format::R, 0xfe00707f, 0x00002033),
    row(Op::Sltu, Format::R, 0xfe00707f, 0x00003033),
    row(Op::Xor, Format::R, 0xfe00707f, 0x00004033),
    row(Op::Srl, Format::R, 0xfe00707f, 0x00005033),
    row(Op::Sra, Format::R, 0xfe00707f, 0x40005033),
    row(Op::Or, Format::R, 0xfe00707f, 0x00006033),
    row(Op::And, Format::R, 0xfe00707f, 0x00007033),
    row(Op::Mul, Format::R, 0xfe00707f, 0x02000033),
    row(Op::Mulh, Format::R, 0xfe00707f, 0x02001033),
    row(Op::Mulhsu, Format::R, 0xfe00707f, 0x02002033),
    row(Op::Mulhu, Format::R, 0xfe00707f, 0x02003033),
    row(Op::Div, Format::R, 0xfe00707f, 0x02004033),
    row(Op::Divu, Format::R, 0xfe00707f, 0x02005033),
    row(Op::Rem, Format::R, 0xfe00707f, 0x02006033),
    row(Op::Remu, Format::R, 0xfe00707f, 0x02007033),
    row(Op::Lui, Format::U, 0x0000007f, 0x00000037),
    row(Op::Addw, Format::R, 0xfe00707f, 0x0000003b),
    row(Op::Subw, Format::R, 0xfe00707f, 0x4000003b),
    row(Op::Sllw, Format::R, 0xfe00707f, 0x0000103b),
    row(Op::Srlw, Format::R, 0xfe00707f, 0x0000503b),
    row(Op::Sraw, Format::R, 0xfe00707f, 0x4000503b),
    row(Op::Mulw, Format::R, 0xfe00707f, 0x0200003b),
    row(Op::Divw, Format::R, 0xfe00707f, 0x0200403b),
    row(Op::Divuw, Format::R, 0xfe00707f, 0x0200503b),
    row(Op::Remw, Format::R, 0xfe00707f, 0x0200603b),
    row(Op::Remuw, Format::R, 0xfe00707f, 0x0200703b),
    row(Op::FmaddS, Format::Fp4, 0x0600007f, 0x00000043),
    row(Op::FmaddD, Format::Fp4, 0x0600007f, 0x02000043),
    row(Op::FmsubS, Format::Fp4, 0x0600007f, 0x00000047),
    row(Op::FmsubD, Format::Fp4, 0x0600007f, 0x02000047),
    row(Op::FnmsubS, Format::Fp4, 0x0600007f, 0x0000004b),
    row(Op::FnmsubD, Format::Fp4, 0x0600007f, 0x0200004b),
    row(Op::FnmaddS, Format::Fp4, 0x0600007f, 0x0000004f),
    row(Op::FnmaddD, Format::Fp4, 0x0600007f, 0x0200004f),
    row(Op::FaddS, Format::Fp, 0xfe00007f, 0x00000053),
    row(Op::FsubS, Format::Fp, 0xfe00007f, 0x08000053),
    row(Op::FmulS, Format::Fp, 0xfe00007f, 0x10000053),
    row(Op::FdivS, Format::Fp, 0xfe00007f, 0x18000053),
    row(Op::FsqrtS, Format::Fp, 0xfff0007f, 0x58000053),
    row(Op::FsgnjS, Format::Fp, 0xfe00707f, 0x20000053),
    row(Op::FsgnjnS, Format::Fp, 0xfe00707f, 0x20001053),
    row(Op::FsgnjxS, Format::Fp, 0xfe00707f, 0x20002053),
    row(Op::FminS, Format::Fp, 0xfe00707f, 0x28000053),
    row(Op::FmaxS, Format::Fp, 0xfe00707f, 0x28001053),
    row(Op::FcvtWS, Format::FpToInt, 0xfff0007f, 0xc0000053),
    row(Op::FcvtWuS, Format::FpToInt, 0xfff0007f, 0xc0100053),
    row(Op::FcvtLS, Format::FpToInt, 0xfff0007f, 0xc0200053),
    row(Op::FcvtLuS, Format::FpToInt, 0xfff0007f, 0xc0300053),
    row(Op::FmvXW, Format::FpToInt, 0xfff0707f, 0xe0000053),
    row(Op::FclassS, Format::FpToInt, 0xfff0707f, 0xe0001053),
    row(Op::FeqS, Format::FpToInt, 0xfe00707f, 0xa0002053),
    row(Op::FltS, Format::FpToInt, 0xfe00707f, 0xa0001053),
    row(Op::FleS, Format::FpToInt, 0xfe00707f, 0xa0000053),
    row(Op::FcvtSW, Format::Fp, 0xfff0007f, 0xd0000053),
    row(Op::FcvtSWu, Format::Fp, 0xfff0007f, 0xd0100053),
    row(Op::FcvtSL, Format::Fp, 0xfff0007f, 0xd0200053),
    row(Op::FcvtSLu, Format::Fp, 0xfff0007f, 0xd0300053),
    row(Op::FmvWX, Format::Fp, 0xfff0707f, 0xf0000053),
    row(Op::FaddD, Format::Fp, 0xfe00007f, 0x02000053),
    row(Op::FsubD, Format::Fp, 0xfe00007f, 0x0a000053),
    row(Op::FmulD, Format::Fp, 0xfe00007f, 0x12000053),
    row(Op::FdivD, Format::Fp, 0xfe00007f, 0x1a000053),
    row(Op::FsqrtD, Format::Fp, 0xfff0007f, 0x5a000053),
    row(Op::FsgnjD, Format::Fp, 0xfe00707f, 0x22000053),
    row(Op::FsgnjnD, Format::Fp, 0xfe00707f, 0x22001053),
    row(Op::FsgnjxD, Format::Fp, 0xfe00707f, 0x22002053),
    row(Op::FminD, Format::Fp, 0xfe00707f, 0x2a000053),
    row(Op::FmaxD, Format::Fp, 0xfe00707f, 0x2a001053),
    row(Op::FcvtWD, Format::FpToInt, 0xfff0007f, 0xc2000053),
    row(Op::FcvtWuD, Format::FpToInt, 0xfff0007f, 0xc2100053),
    row(Op::FcvtLD, Format::FpToInt, 0xfff0007f, 0xc2200053),
    row(Op::FcvtLuD, Format::FpToInt, 0xfff0007f, 0xc2300053),
    row(Op::FmvXD, Format::FpToInt, 0xfff0707f, 0xe2000053),
    row(Op::FclassD, Format::FpToInt, 0xfff0707f, 0xe2001053),
    row(Op::FeqD, Format::FpToInt, 0xfe00707f, 0xa2002053),
    row(Op::FltD, Format::FpToInt, 0xfe00707f, 0xa2001053),
    row(Op::FleD, Format::FpToInt, 0xfe00707f, 0xa2000053),
    row(Op::FcvtDW, Format::Fp, 0xfff0007f, 0xd2000053),
    row(Op::FcvtDWu, Format::Fp, 0xfff0007f, 0xd2100053),
    row(Op::FcvtDL, Format::Fp, 0xfff0007f, 0xd2200053),
    row(Op::FcvtDLu, Format::Fp, 0xfff0007f, 0xd2300053),
    row(Op::FmvDX, Format::Fp, 0xfff0707f, 0xf2000053),
    row(Op::FcvtSD, Format::Fp, 0xfff0007f, 0x40100053),
    row(Op::FcvtDS, Format::Fp, 0xfff0007f, 0x42000053),
    row(Op::Beq, Format::B, 0x0000707f, 0x00000063),
    row(Op::Bne, Format::B, 0x0000707f, 0x00001063),
    row(Op::Blt, Format::B, 0x0000707f, 0x00004063),
    row(Op::Bge, Format::B, 0x0000707f, 0x00005063),
    row(Op::Bltu, Format::B, 0x0000707f, 0x00006063),
    row(Op::Bgeu, Format::B, 0x0000707f, 0x00007063),
    row(Op::Jalr, Format::I, 0x0000707f, 0x00000067),
    row(Op::Jal, Format::J, 0x0000007f, 0x0000006f),
    row(Op::Ecall, Format::None, 0xffffffff, 0x00000073),
    row(Op::Ebreak, Format::None, 0xffffffff, 0x00100073),
    row(Op::Sret, Format::None, 0xffffffff, 0x10200073),
    row(Op::Wfi, Format::None, 0xffffffff, 0x10500073),
    row(Op::SfenceVma, Format::R, 0xfe007fff, 0x12000073),
    row(Op::Csrrw, Format::Csr, 0x0000707f, 0x00001073),
    row(Op::Csrrs, Format::Csr, 0x0000707f, 0x00002073),
    row(Op::Csrrc, Format::Csr, 0x0000707f, 0x00003073),
    row(Op::Csrrwi, Format::Csr, 0x0000707f, 0x00005073),
    row(Op::Csrrsi, Format::Csr, 0x0000707f, 0x00006073),
    row(Op::Csrrci, Format::Csr, 0x0000707f, 0x00007073),
];

/// Major opcodes: bits 2-6 of a 32-bit instruction.
const MAJORS: usize = 32;

/// First row of each major opcode, and the end of the table.
const FIRST: [u8; MAJORS + 1] = {
    let mut first = [0; MAJORS + 1];
    let mut at = 0;
    let mut major = 0;
    while major <= MAJORS {
        while at < TABLE.len() && ((TABLE[at].bits >> 2) & 31) < major as u32 {
            at += 1;
        }
        first[major] = at as u8;
        major += 1;
    }
    first
};

/// The row of a 32-bit instruction.
pub fn find(bits: u32) -> Option<&'static Row> {
    let major = ((bits >> 2) & 31) as usize;
    let rows = &TABLE[FIRST[major] as usize..FIRST[major + 1] as usize];
    rows.iter().find(|row| bits & row.mask == row.bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ordered_and_apart() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.bits & !row.mask, 0, "{:?}", row.op);
            assert_eq!(find(row.bits).map(|found| found.op), Some(row.op));
            for other in &TABLE[at + 1..] {
                let both = row.mask & other.mask;
                assert_ne!(
                    row.bits & both,
                    other.bits & both,
                    "{:?} {:?}",
                    row.op,
                    other.op
                );
                assert!((row.bits >> 2) & 31 <= (other.bits >> 2) & 31);
            }
        }
    }

    #[test]
    fn every_operation_has_a_row() {
        let made_by_builder = |op| {
            matches!(op, Op::Nop | Op::End | Op::PageCrossing | Op::Illegal) || op >= Op::LdRun
        };
        for op in Op::ALL {
            let rows = TABLE.iter().filter(|row| row.op == *op).count();
            assert_eq!(rows, usize::from(!made_by_builder(*op)), "{op:?}");
        }
    }
}
