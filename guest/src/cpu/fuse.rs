//! Fusing: neighbours in a block that one turn of the interpreter's loop runs.
//!
//! Half of the interpreter's time goes into finding the code of the next
//! operation. The pairs here, and runs of loads or stores with one base
//! register (function entry and exit), were the most frequent in a shell, in
//! Python and in the kernel. Only the operation of the first instruction is
//! replaced: every instruction keeps its slot, its operands and its length, so
//! a fault in the middle is found as without fusing, and the slow path runs
//! [`plain`].
//!
//! `add`, `addi` and `lui` are one here, a *sum*: `rd = rs1 + rs2 + imm`, with
//! what the instruction does not have set to zero.

use super::inst::{Inst, Op};

/// Fuses what can be fused in a block.
pub fn fuse(block: &mut [Inst]) {
    let mut at = 0;
    while at + 1 < block.len() {
        let rest = &mut block[at..];
        at += run(rest)
            .or_else(|| rotation(rest))
            .unwrap_or_else(|| pair(rest));
    }
}

/// Marks a run of `ld` or `sd` with one base register that the run does not
/// change before its end; the answer is its length.
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
    rest[..more].iter_mut().for_each(|inst| inst.op = fused);
    (more > 0).then_some(more + 1)
}

/// A rotation of a word, as compilers write it where the processor has none.
fn rotation(rest: &mut [Inst]) -> Option<usize> {
    let ops = [rest[0].op, rest[1].op, rest.get(2)?.op];
    (ops == [Op::Slliw, Op::Srliw, Op::Or]).then(|| {
        rest[0].op = Op::SlliwSrliwOr;
        3
    })
}

/// Fuses the first two, if they are a known pair; the answer is the number of
/// instructions done with.
fn pair(rest: &mut [Inst]) -> usize {
    let kind = |inst: &Inst| if is_sum(inst.op) { Op::Addi } else { inst.op };
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

/// Clears what a sum does not have.
fn normalize(inst: &mut Inst) {
    match inst.op {
        Op::Add => inst.imm = 0,
        Op::Addi => inst.rs2 = 0,
        Op::Lui => (inst.rs1, inst.rs2) = (0, 0),
        _ => {}
    }
}

/// The operation for two neighbours; [`Op::Addi`] stands for any sum.
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
        _ => return None,
    })
}

/// The operation of the instruction itself, which the slow path runs. Only
/// loads and stores get there: what is fused behind another operation has its
/// own slot.
pub fn plain(op: Op) -> Op {
    match op {
        Op::LdRun | Op::LdSum | Op::LdSd | Op::LdBeq | Op::LdBne => Op::Ld,
        Op::SdRun | Op::SdSum | Op::SdLd => Op::Sd,
        Op::LwSum => Op::Lw,
        Op::LbuSum | Op::LbuBeq | Op::LbuBne => Op::Lbu,
        Op::SwSum => Op::Sw,
        Op::SbSum => Op::Sb,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let expected = [Op::LdRun, Op::LdRun, Op::Ld, Op::Ld, Op::Ld];
        assert_eq!(ops(&mut block), expected);
        let mut stores = [inst(Op::Sd, 0, 2, 1, 0), inst(Op::Sd, 0, 2, 2, 8)];
        assert_eq!(ops(&mut stores), [Op::SdRun, Op::Sd]);
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
            [Op::SumSum, Op::Addi, Op::SumJalr, Op::Jalr]
        );
        assert_eq!(block[0].imm, 0);
        assert_eq!(block[1].rs2, 0);
        assert_eq!((block[2].rs1, block[2].rs2), (0, 0));
        assert_eq!(block[3], inst(Op::Jalr, 1, 2, 3, 7));
    }

    #[test]
    fn what_may_fault_first_has_a_plain_form() {
        for first in [Op::Ld, Op::Lw, Op::Lbu, Op::Sd, Op::Sw, Op::Sb] {
            for second in Op::ALL {
                if let Some(op) = fused(first, *second) {
                    assert_eq!(plain(op), first, "{op:?}");
                }
            }
        }
    }
}
