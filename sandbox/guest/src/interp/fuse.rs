//! Macro-op fusion: neighbouring instructions of a block that one iteration of the
//! interpreter's loop runs.
//!
//! Half of the interpreter's time goes into dispatching the next operation. The pairs here,
//! and runs of loads or stores with one base register (function entry and exit), were the
//! most frequent in a shell, in Python and in the kernel. Fusion replaces only the
//! operation of the first instruction. Every instruction keeps its slot, its operands and
//! its length, so a fault in the middle is located as without fusing, and the slow path
//! runs [`plain`].
//!
//! `add`, `addi` and `lui` are one operation here, a *sum*: `rd = rs1 + rs2 + imm`, with
//! absent operands set to zero.

use super::inst::{Inst, Op};

/// Fuses instructions of a block.
pub(crate) fn fuse(block: &mut [Inst]) {
    let mut at = 0;
    while at + 1 < block.len() {
        let rest = &mut block[at..];
        at += run(rest)
            .or_else(|| triple(rest))
            .unwrap_or_else(|| pair(rest));
    }
}

/// Marks a run of `ld` or `sd` with one base register that the run does not change before
/// its end; returns its length.
fn run(rest: &mut [Inst]) -> Option<usize> {
    let Inst { op, rs1, .. } = rest[0];
    let fused = match op {
        Op::Ld => Op::LdRun,
        Op::Sd => Op::SdRun,
        _ => return None,
    };
    let joins = |pair: &[Inst]| {
        let keeps_base = op == Op::Sd || pair[0].rd != rs1;
        keeps_base && pair[1].op == op && pair[1].rs1 == rs1
    };
    let more = rest.windows(2).take_while(|pair| joins(pair)).count();
    if more == 0 {
        return None;
    }
    rest[..more].iter_mut().for_each(|inst| inst.op = fused);
    // Most functions end this way.
    if let [sum, jump, ..] = &mut rest[more + 1..]
        && op == Op::Ld
        && is_sum(sum.op)
        && jump.op == Op::Jalr
    {
        normalize(sum);
        sum.op = Op::SumJalr;
        rest[0].op = Op::LdRunSumJalr;
        return Some(more + 3);
    }
    Some(more + 1)
}

/// Fuses the first three, if they are a known triple, or a sum with a run of stores after
/// it, as most functions begin; returns the number of instructions consumed.
fn triple(rest: &mut [Inst]) -> Option<usize> {
    if is_sum(rest[0].op)
        && rest[1].op == Op::Sd
        && let Some(length) = run(&mut rest[1..])
    {
        normalize(&mut rest[0]);
        rest[0].op = Op::SumSdRun;
        return Some(length + 1);
    }
    let op = fused_three(kind(&rest[0]), kind(&rest[1]), kind(rest.get(2)?))?;
    for inst in &mut rest[..3] {
        normalize(inst);
    }
    rest[0].op = op;
    Some(3)
}

/// The operation's name in the lists of neighbours.
fn kind(inst: &Inst) -> Op {
    if is_sum(inst.op) { Op::Addi } else { inst.op }
}

/// Fuses the first two, if they are a known pair; returns the number of instructions
/// consumed.
fn pair(rest: &mut [Inst]) -> usize {
    let Some(op) = fused(kind(&rest[0]), kind(&rest[1])) else {
        return 1;
    };
    for inst in &mut rest[..2] {
        normalize(inst);
    }
    rest[0].op = op;
    2
}

fn is_sum(op: Op) -> bool {
    matches!(op, Op::Add | Op::Addi | Op::Lui)
}

/// Clears the absent operands of a sum.
fn normalize(inst: &mut Inst) {
    match inst.op {
        Op::Add => inst.imm = 0,
        Op::Addi => inst.rs2 = 0,
        Op::Lui => (inst.rs1, inst.rs2) = (0, 0),
        _ => {}
    }
}

/// The fused operation of two neighbours; [`Op::Addi`] matches any sum.
fn fused(first: Op, second: Op) -> Option<Op> {
    Some(match (first, second) {
        (Op::Addi, Op::Addi) => Op::SumSum,
        (Op::Addi, Op::Ld) => Op::SumLd,
        (Op::Addi, Op::Lw) => Op::SumLw,
        (Op::Addi, Op::Lbu) => Op::SumLbu,
        (Op::Addi, Op::Sd) => Op::SumSd,
        (Op::Addi, Op::Sw) => Op::SumSw,
        (Op::Addi, Op::Sb) => Op::SumSb,
        (Op::Addi, Op::Beq) => Op::SumBeq,
        (Op::Addi, Op::Bne) => Op::SumBne,
        (Op::Addi, Op::Bltu) => Op::SumBltu,
        (Op::Addi, Op::Jal) => Op::SumJal,
        (Op::Addi, Op::Jalr) => Op::SumJalr,
        (Op::Ld, Op::Addi) => Op::LdSum,
        (Op::Lw, Op::Addi) => Op::LwSum,
        (Op::Lbu, Op::Addi) => Op::LbuSum,
        (Op::Sd, Op::Addi) => Op::SdSum,
        (Op::Sw, Op::Addi) => Op::SwSum,
        (Op::Sb, Op::Addi) => Op::SbSum,
        (Op::Ld, Op::Sd) => Op::LdSd,
        (Op::Sd, Op::Ld) => Op::SdLd,
        (Op::Ld, Op::Beq) => Op::LdBeq,
        (Op::Ld, Op::Bne) => Op::LdBne,
        (Op::Lbu, Op::Beq) => Op::LbuBeq,
        (Op::Lbu, Op::Bne) => Op::LbuBne,
        (Op::Slli, Op::Addi) => Op::SlliSum,
        (Op::Slli, Op::Srli) => Op::SlliSrli,
        (Op::Andi, Op::Beq) => Op::AndiBeq,
        (Op::Andi, Op::Bne) => Op::AndiBne,
        (Op::Auipc, Op::Ld) => Op::AuipcLd,
        (Op::Auipc, Op::Addi) => Op::AuipcSum,
        (Op::Addw, Op::Addw) => Op::AddwAddw,
        (Op::Or, Op::Xor) => Op::OrXor,
        (Op::Addi, Op::Blt) => Op::SumBlt,
        (Op::Addi, Op::Bge) => Op::SumBge,
        (Op::Addi, Op::Andi) => Op::SumAndi,
        (Op::Slli, Op::Or) => Op::SlliOr,
        (Op::Or, Op::Slli) => Op::OrSlli,
        (Op::Andi, Op::Addi) => Op::AndiSum,
        (Op::And, Op::Addi) => Op::AndSum,
        (Op::Or, Op::Addiw) => Op::OrAddiw,
        (Op::Addiw, Op::Addiw) => Op::AddiwAddiw,
        (Op::Slli, Op::Blt) => Op::SlliBlt,
        (Op::Slli, Op::Bge) => Op::SlliBge,
        (Op::Addiw, Op::Beq) => Op::AddiwBeq,
        (Op::Addiw, Op::Bne) => Op::AddiwBne,
        (Op::Addiw, Op::Jal) => Op::AddiwJal,
        (Op::Srli, Op::Andi) => Op::SrliAndi,
        (Op::Ld, Op::Ld) => Op::LdLd,
        (Op::Ld, Op::Slli) => Op::LdSlli,
        (Op::Ld, Op::Srli) => Op::LdSrli,
        (Op::Ld, Op::Andi) => Op::LdAndi,
        (Op::Ld, Op::Jalr) => Op::LdJalr,
        (Op::Lbu, Op::Lbu) => Op::LbuLbu,
        (Op::Lbu, Op::Slli) => Op::LbuSlli,
        (Op::Lwu, Op::Lwu) => Op::LwuLwu,
        (Op::Lw, Op::Beq) => Op::LwBeq,
        (Op::Lw, Op::Bne) => Op::LwBne,
        (Op::Sd, Op::Jal) => Op::SdJal,
        (Op::Sd, Op::Jalr) => Op::SdJalr,
        (Op::Sw, Op::Sw) => Op::SwSw,
        (Op::Fsd, Op::Fsd) => Op::FsdFsd,
        _ => return None,
    })
}

/// The fused operation of three neighbours.
fn fused_three(first: Op, second: Op, third: Op) -> Option<Op> {
    Some(match (first, second, third) {
        // A rotation of a word, as compilers write it without a rotate instruction.
        (Op::Slliw, Op::Srliw, Op::Or) => Op::SlliwSrliwOr,
        (Op::Addi, Op::Addi, Op::Addi) => Op::SumSumSum,
        (Op::Addi, Op::Addi, Op::Jal) => Op::SumSumJal,
        (Op::Addi, Op::Addi, Op::Beq) => Op::SumSumBeq,
        (Op::Addi, Op::Addi, Op::Bne) => Op::SumSumBne,
        (Op::Addi, Op::Ld, Op::Addi) => Op::SumLdSum,
        (Op::Lbu, Op::Addi, Op::Bne) => Op::LbuSumBne,
        (Op::Addi, Op::Lbu, Op::Bne) => Op::SumLbuBne,
        (Op::Addi, Op::Sb, Op::Bne) => Op::SumSbBne,
        (Op::Ld, Op::Addi, Op::Beq) => Op::LdSumBeq,
        (Op::Ld, Op::Addi, Op::Bne) => Op::LdSumBne,
        (Op::Srli, Op::Andi, Op::Beq) => Op::SrliAndiBeq,
        (Op::Srli, Op::Andi, Op::Bne) => Op::SrliAndiBne,
        _ => return None,
    })
}

/// The unfused operation of the instruction, which the slow path runs. Only loads and
/// stores get there: instructions fused after another operation have their own slots.
pub(crate) fn plain(op: Op) -> Op {
    match op {
        Op::LdRun | Op::LdSum | Op::LdSd | Op::LdBeq | Op::LdBne => Op::Ld,
        Op::LdLd | Op::LdSlli | Op::LdSrli | Op::LdAndi | Op::LdJalr => Op::Ld,
        Op::LdRunSumJalr | Op::LdSumBeq | Op::LdSumBne => Op::Ld,
        Op::SdRun | Op::SdSum | Op::SdLd | Op::SdJal | Op::SdJalr => Op::Sd,
        Op::LwSum | Op::LwBeq | Op::LwBne => Op::Lw,
        Op::LwuLwu => Op::Lwu,
        Op::LbuSum | Op::LbuBeq | Op::LbuBne => Op::Lbu,
        Op::LbuLbu | Op::LbuSlli | Op::LbuSumBne => Op::Lbu,
        Op::SwSum | Op::SwSw => Op::Sw,
        Op::SbSum => Op::Sb,
        Op::FsdFsd => Op::Fsd,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::inst::SINK;

    fn inst(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> Inst {
        Inst {
            op,
            rd,
            rs1,
            rs2,
            imm,
        }
    }

    fn ops(block: &mut [Inst]) -> Vec<Op> {
        fuse(block);
        block.iter().map(|inst| inst.op).collect()
    }

    #[test]
    fn runs_keep_their_base() {
        let load = |rd, rs1| inst(Op::Ld, rd, rs1, 0, 8);
        let mut block = [load(1, 2), load(3, 2), load(2, 2), load(4, 2), load(5, 6)];
        let expected = [Op::LdRun, Op::LdRun, Op::Ld, Op::LdLd, Op::Ld];
        assert_eq!(ops(&mut block), expected);
        let mut stores = [inst(Op::Sd, 0, 2, 1, 0), inst(Op::Sd, 0, 2, 2, 8)];
        assert_eq!(ops(&mut stores), [Op::SdRun, Op::Sd]);
    }

    #[test]
    fn functions_begin_and_end_in_one_turn() {
        let mut block = [
            inst(Op::Addi, 2, 2, 0, -16),
            inst(Op::Sd, 0, 2, 1, 0),
            inst(Op::Sd, 0, 2, 8, 8),
            inst(Op::Ld, 1, 2, 0, 0),
            inst(Op::Ld, 8, 2, 0, 8),
            inst(Op::Addi, 2, 2, 0, 16),
            inst(Op::Jalr, SINK, 1, 0, 0),
        ];
        let expected = [
            Op::SumSdRun,
            Op::SdRun,
            Op::Sd,
            Op::LdRunSumJalr,
            Op::Ld,
            Op::SumJalr,
            Op::Jalr,
        ];
        assert_eq!(ops(&mut block), expected);
    }

    #[test]
    fn sums_have_only_their_operands() {
        let mut block = [
            inst(Op::Add, 1, 2, 3, 7),
            inst(Op::Addi, 1, 2, 3, 7),
            inst(Op::Lui, 1, 2, 3, 7),
            inst(Op::Jalr, 1, 2, 3, 7),
        ];
        assert_eq!(
            ops(&mut block),
            [Op::SumSumSum, Op::Addi, Op::Lui, Op::Jalr]
        );
        assert_eq!(block[0].imm, 0);
        assert_eq!(block[1].rs2, 0);
        assert_eq!((block[2].rs1, block[2].rs2), (0, 0));
        assert_eq!(block[3], inst(Op::Jalr, 1, 2, 3, 7));
    }

    #[test]
    fn what_may_fault_first_has_a_plain_form() {
        let loads = [Op::Ld, Op::Lw, Op::Lwu, Op::Lbu, Op::Fld];
        let stores = [Op::Sd, Op::Sw, Op::Sb, Op::Fsd];
        for first in loads.into_iter().chain(stores) {
            for second in Op::ALL {
                if let Some(op) = fused(first, *second) {
                    assert_eq!(plain(op), first, "{op:?}");
                }
                for third in Op::ALL {
                    if let Some(op) = fused_three(first, *second, *third) {
                        assert_eq!(plain(op), first, "{op:?}");
                    }
                }
            }
        }
        assert_eq!(plain(Op::LdRunSumJalr), Op::Ld);
    }
}
