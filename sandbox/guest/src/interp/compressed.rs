//! Compressed instructions (the C extension for RV64 with D), expanded to their 32-bit
//! equivalents.
//!
//! Unprivileged manual, chapter "C Extension for Compressed Instructions", tables "RVC
//! quadrants".

/// The 32-bit form, or `None` if the bits are reserved.
pub fn expand(half: u16) -> Option<u32> {
    let c = u32::from(half);
    match (c & 3, c >> 13) {
        (0, _) => quadrant_0(c),
        (1, _) => quadrant_1(c),
        (2, _) => quadrant_2(c),
        _ => None,
    }
}

const LOAD: u32 = 0x03;
const LOAD_FP: u32 = 0x07;
const OP_IMM: u32 = 0x13;
const OP_IMM_32: u32 = 0x1b;
const STORE: u32 = 0x23;
const STORE_FP: u32 = 0x27;
const OP: u32 = 0x33;
const LUI: u32 = 0x37;
const OP_32: u32 = 0x3b;
const BRANCH: u32 = 0x63;
const JALR: u32 = 0x67;
const JAL: u32 = 0x6f;
const EBREAK: u32 = 0x0010_0073;
const SP: u32 = 2;

/// Bits `from..from + count` of `c`, moved to bit `to`.
fn field(c: u32, from: u32, count: u32, to: u32) -> u32 {
    ((c >> from) & ((1 << count) - 1)) << to
}

/// Sign-extends the low `bits` bits.
fn sign(value: u32, bits: u32) -> u32 {
    ((value << (32 - bits)) as i32 >> (32 - bits)) as u32
}

fn reg(c: u32, at: u32) -> u32 {
    (c >> at) & 31
}

/// One of the eight popular registers, `x8` to `x15`.
fn short(c: u32, at: u32) -> u32 {
    8 + ((c >> at) & 7)
}

fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | imm << 20
}

fn s_type(opcode: u32, funct3: u32, rs1: u32, rs2: u32, imm: u32) -> u32 {
    opcode | (imm & 31) << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | (imm >> 5) << 25
}

fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    opcode | rd << 7 | funct3 << 12 | rs1 << 15 | rs2 << 20 | funct7 << 25
}

fn branch(funct3: u32, rs1: u32, imm: u32) -> u32 {
    BRANCH
        | field(imm, 11, 1, 7)
        | field(imm, 1, 4, 8)
        | funct3 << 12
        | rs1 << 15
        | field(imm, 5, 6, 25)
        | field(imm, 12, 1, 31)
}

fn jal(rd: u32, imm: u32) -> u32 {
    JAL | rd << 7
        | field(imm, 12, 8, 12)
        | field(imm, 11, 1, 20)
        | field(imm, 1, 10, 21)
        | field(imm, 20, 1, 31)
}

fn quadrant_0(c: u32) -> Option<u32> {
    let (rd, rs1) = (short(c, 2), short(c, 7));
    let word = field(c, 10, 3, 3) | field(c, 6, 1, 2) | field(c, 5, 1, 6);
    let double = field(c, 10, 3, 3) | field(c, 5, 2, 6);
    Some(match c >> 13 {
        0 => {
            let imm =
                field(c, 11, 2, 4) | field(c, 7, 4, 6) | field(c, 6, 1, 2) | field(c, 5, 1, 3);
            if imm == 0 {
                return None;
            }
            i_type(OP_IMM, 0, rd, SP, imm)
        }
        1 => i_type(LOAD_FP, 3, rd, rs1, double),
        2 => i_type(LOAD, 2, rd, rs1, word),
        3 => i_type(LOAD, 3, rd, rs1, double),
        5 => s_type(STORE_FP, 3, rs1, rd, double),
        6 => s_type(STORE, 2, rs1, rd, word),
        7 => s_type(STORE, 3, rs1, rd, double),
        _ => return None,
    })
}

fn quadrant_1(c: u32) -> Option<u32> {
    let rd = reg(c, 7);
    let imm6 = sign(field(c, 2, 5, 0) | field(c, 12, 1, 5), 6);
    Some(match c >> 13 {
        0 => i_type(OP_IMM, 0, rd, rd, imm6),
        1 if rd == 0 => return None,
        1 => i_type(OP_IMM_32, 0, rd, rd, imm6),
        2 => i_type(OP_IMM, 0, rd, 0, imm6),
        3 => return upper(c, rd, imm6),
        4 => return arithmetic(c, imm6),
        5 => {
            let imm = field(c, 12, 1, 11)
                | field(c, 11, 1, 4)
                | field(c, 9, 2, 8)
                | field(c, 8, 1, 10)
                | field(c, 7, 1, 6)
                | field(c, 6, 1, 7)
                | field(c, 3, 3, 1)
                | field(c, 2, 1, 5);
            jal(0, sign(imm, 12))
        }
        condition => {
            let imm = field(c, 12, 1, 8)
                | field(c, 10, 2, 3)
                | field(c, 5, 2, 6)
                | field(c, 3, 2, 1)
                | field(c, 2, 1, 5);
            branch(condition - 6, short(c, 7), sign(imm, 9))
        }
    })
}

/// `c.addi16sp` and `c.lui`.
fn upper(c: u32, rd: u32, imm6: u32) -> Option<u32> {
    if rd == SP {
        let imm = field(c, 12, 1, 9)
            | field(c, 6, 1, 4)
            | field(c, 5, 1, 6)
            | field(c, 3, 2, 7)
            | field(c, 2, 1, 5);
        return (imm != 0).then(|| i_type(OP_IMM, 0, SP, SP, sign(imm, 10)));
    }
    (imm6 != 0).then_some(LUI | rd << 7 | imm6 << 12)
}

/// The row of `c.srli`, `c.srai`, `c.andi` and the register operations.
fn arithmetic(c: u32, imm6: u32) -> Option<u32> {
    let (rd, rs2) = (short(c, 7), short(c, 2));
    let shift = imm6 & 63;
    Some(match (c >> 10) & 3 {
        0 => i_type(OP_IMM, 5, rd, rd, shift),
        1 => i_type(OP_IMM, 5, rd, rd, shift | 0x400),
        2 => i_type(OP_IMM, 7, rd, rd, imm6),
        _ => match ((c >> 12) & 1, (c >> 5) & 3) {
            (0, 0) => r_type(OP, 0, 0x20, rd, rd, rs2),
            (0, 1) => r_type(OP, 4, 0, rd, rd, rs2),
            (0, 2) => r_type(OP, 6, 0, rd, rd, rs2),
            (0, _) => r_type(OP, 7, 0, rd, rd, rs2),
            (_, 0) => r_type(OP_32, 0, 0x20, rd, rd, rs2),
            (_, 1) => r_type(OP_32, 0, 0, rd, rd, rs2),
            _ => return None,
        },
    })
}

fn quadrant_2(c: u32) -> Option<u32> {
    let (rd, rs2) = (reg(c, 7), reg(c, 2));
    let word = field(c, 12, 1, 5) | field(c, 4, 3, 2) | field(c, 2, 2, 6);
    let double = field(c, 12, 1, 5) | field(c, 5, 2, 3) | field(c, 2, 3, 6);
    let store_word = field(c, 9, 4, 2) | field(c, 7, 2, 6);
    let store_double = field(c, 10, 3, 3) | field(c, 7, 3, 6);
    Some(match c >> 13 {
        0 => i_type(OP_IMM, 1, rd, rd, field(c, 2, 5, 0) | field(c, 12, 1, 5)),
        1 => i_type(LOAD_FP, 3, rd, SP, double),
        2 | 3 if rd == 0 => return None,
        2 => i_type(LOAD, 2, rd, SP, word),
        3 => i_type(LOAD, 3, rd, SP, double),
        4 => match ((c >> 12) & 1, rd, rs2) {
            (0, 0, 0) => return None,
            (0, _, 0) => i_type(JALR, 0, 0, rd, 0),
            (0, _, _) => r_type(OP, 0, 0, rd, 0, rs2),
            (_, 0, 0) => EBREAK,
            (_, _, 0) => i_type(JALR, 0, 1, rd, 0),
            _ => r_type(OP, 0, 0, rd, rd, rs2),
        },
        5 => s_type(STORE_FP, 3, SP, rs2, store_double),
        6 => s_type(STORE, 2, SP, rs2, store_word),
        _ => s_type(STORE, 3, SP, rs2, store_double),
    })
}
