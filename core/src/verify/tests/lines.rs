//! The lines of the security catalogue that the verifier covers.

use super::super::codes::*;
use super::{refusal, refusal_of, sample::sample};
use crate::program::{
    ArgIdx, BlockIdx, BuiltinIdx, ChargeKind, ConstIdx, Count, FunctionIdx, KeyIdx, LiteralIdx,
    MemoIdx, NamesIdx, Op, PathIdx, Reg, SchemaIdx, ShapeIdx, SiteIdx, Slot, Target,
};
use crate::sig::BaseCost;

#[test]
fn b02_jump_out_of_range() {
    assert_eq!(refusal_of(10, Op::Jmp { to: Target(22) }), BAD_JUMP);
    assert_eq!(
        refusal_of(
            10,
            Op::Jmp {
                to: Target(u32::MAX)
            }
        ),
        BAD_JUMP
    );
    assert_eq!(
        refusal_of(
            6,
            Op::IterNext {
                dst: Reg(4),
                it: Reg(2),
                to: Target(1000)
            }
        ),
        BAD_JUMP
    );
}

#[test]
fn b02_jump_into_a_block() {
    assert_eq!(refusal_of(10, Op::Jmp { to: Target(6) }), BAD_JUMP);
    assert_eq!(refusal_of(10, Op::Jmp { to: Target(8) }), BAD_JUMP);
}

#[test]
fn b02_no_cycle_avoids_the_yield_point() {
    // A backward jump can only go to a block head, and each head is a `Fuel`.
    assert_eq!(refusal_of(5, Op::Nop {}), BAD_BLOCKS);
    assert_eq!(refusal_of(5, Op::Fuel { block: BlockIdx(0) }), BAD_BLOCKS);
    assert_eq!(refusal_of(12, Op::Fuel { block: BlockIdx(3) }), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks[1].start = 6), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks[5].end = 23), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks.truncate(5)), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks.clear()), BAD_BLOCKS);
}

#[test]
fn b02_the_code_does_not_run_off_its_end() {
    assert_eq!(refusal_of(21, Op::Nop {}), RUNS_OFF);
    assert_eq!(
        refusal_of(
            21,
            Op::JTrue {
                src: Reg(0),
                to: Target(5)
            }
        ),
        RUNS_OFF
    );
    assert_eq!(refusal(|p| p.functions[1].code.clear()), BAD_STEPS);
    let no_steps = refusal(|p| {
        p.functions[1].steps.clear();
        p.functions[1].code.clear();
    });
    assert_eq!(no_steps, RUNS_OFF);
}

#[test]
fn b03_register_out_of_range() {
    assert_eq!(
        refusal_of(
            1,
            Op::LoadK {
                dst: Reg(12),
                k: ConstIdx(0)
            }
        ),
        BAD_REGISTER
    );
    assert_eq!(
        refusal_of(
            16,
            Op::Mov {
                dst: Reg(6),
                src: Reg(255)
            }
        ),
        BAD_REGISTER
    );
    assert_eq!(
        refusal_of(
            4,
            Op::IterInit {
                it: Reg(11),
                src: Reg(1),
                k: ConstIdx(1)
            }
        ),
        BAD_REGISTER
    );
    assert_eq!(
        refusal_of(
            9,
            Op::Unbind {
                base: Reg(11),
                n: Count(2)
            }
        ),
        BAD_REGISTER
    );
    assert_eq!(
        refusal_of(
            9,
            Op::Unbind {
                base: Reg(255),
                n: Count(255)
            }
        ),
        BAD_REGISTER
    );
    assert_eq!(
        refusal_of(
            9,
            Op::Unbind {
                base: Reg(13),
                n: Count(0)
            }
        ),
        BAD_REGISTER
    );
    assert_eq!(refusal(|p| p.functions[0].params = 13), BAD_REGISTER);
    assert_eq!(refusal(|p| p.functions[0].registers = 8), BAD_REGISTER);
}

#[test]
fn b03_constant_out_of_range() {
    assert_eq!(
        refusal_of(
            1,
            Op::LoadK {
                dst: Reg(0),
                k: ConstIdx(5)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            1,
            Op::LoadLit {
                dst: Reg(0),
                lit: LiteralIdx(1)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            1,
            Op::LoadArg {
                dst: Reg(0),
                arg: ArgIdx(2)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            9,
            Op::SlotLoad {
                dst: Reg(0),
                slot: Slot(1)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            12,
            Op::NewObj {
                dst: Reg(6),
                base: Reg(0),
                n: Count(2),
                shape: ShapeIdx(1)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            16,
            Op::Member {
                dst: Reg(6),
                obj: Reg(7),
                key: KeyIdx(2)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            9,
            Op::Path {
                dst: Reg(0),
                root: Reg(0),
                path: PathIdx(1)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            16,
            Op::Project {
                dst: Reg(6),
                src: Reg(7),
                schema: SchemaIdx(1)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            9,
            Op::MemoKey {
                dst: Reg(7),
                base: Reg(0),
                n: Count(2),
                memo: MemoIdx(1)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            9,
            Op::CallFn {
                dst: Reg(7),
                base: Reg(0),
                n: Count(2),
                function: BuiltinIdx(999)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(refusal(|p| p.functions[1].name = 3), BAD_INDEX);
}

#[test]
fn b03_atom_and_callee_out_of_range() {
    assert_eq!(
        refusal_of(
            8,
            Op::CallAtom {
                dst: Reg(5),
                base: Reg(4),
                n: Count(1),
                site: SiteIdx(1)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            19,
            Op::Call {
                dst: Reg(7),
                base: Reg(0),
                n: Count(1),
                callee: FunctionIdx(2)
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            20,
            Op::RunCode {
                dst: Reg(8),
                base: Reg(0),
                n: Count(2),
                names: NamesIdx(1)
            }
        ),
        BAD_INDEX
    );
}

#[test]
fn b03_uninitialised_register_read() {
    assert_eq!(refusal_of(1, Op::Nop {}), UNWRITTEN_REGISTER);
    assert_eq!(
        refusal_of(
            16,
            Op::Mov {
                dst: Reg(6),
                src: Reg(11)
            }
        ),
        UNWRITTEN_REGISTER
    );
    assert_eq!(
        refusal_of(
            12,
            Op::NewObj {
                dst: Reg(6),
                base: Reg(8),
                n: Count(2),
                shape: ShapeIdx(0)
            }
        ),
        UNWRITTEN_REGISTER
    );
    // Only one path to the end writes r6.
    assert_eq!(refusal_of(16, Op::Nop {}), UNWRITTEN_REGISTER);
    // The last item is unwritten if the loop never turned.
    assert_eq!(
        refusal_of(
            16,
            Op::Mov {
                dst: Reg(6),
                src: Reg(4)
            }
        ),
        ""
    );
    assert_eq!(
        refusal_of(
            12,
            Op::Mov {
                dst: Reg(6),
                src: Reg(4)
            }
        ),
        UNWRITTEN_REGISTER
    );
    // The handler does not have the result of the protected call.
    assert_eq!(
        refusal_of(
            16,
            Op::Mov {
                dst: Reg(6),
                src: Reg(5)
            }
        ),
        UNWRITTEN_REGISTER
    );
    assert_eq!(
        refusal_of(
            9,
            Op::MovBound {
                dst: Reg(9),
                src: Reg(0)
            }
        ),
        UNWRITTEN_REGISTER
    );
    assert_eq!(refusal(|p| p.functions[1].params = 0), BAD_OPERANDS);
}

#[test]
fn b03_the_value_of_a_memo_is_there_only_after_a_hit() {
    let memo = |read| {
        refusal(|p| {
            p.functions[0].code[16] = Op::MemoGet {
                dst: Reg(6),
                key: Reg(7),
                to: Target(18),
            };
            p.functions[0].code[17] = Op::Ret { src: Reg(read) };
        })
    };
    assert_eq!(memo(7), "");
    assert_eq!(memo(6), UNWRITTEN_REGISTER);
}

#[test]
fn b04_forged_block_price() {
    for price in [0, -1, 1_102_999, i64::MIN, i64::MAX] {
        assert_eq!(
            refusal(|p| p.functions[0].blocks[0].price = price),
            BAD_PRICE
        );
    }
    assert_eq!(
        refusal(|p| p.functions[1].blocks[0] = super::helper_block(0)),
        BAD_PRICE
    );
}

#[test]
fn b04_forged_default_price() {
    assert_eq!(refusal(|p| p.ops[0].cost = BaseCost::Fixed(-1)), BAD_PRICE);
    assert_eq!(
        refusal(|p| p.ops[0].cost = BaseCost::Dynamic(i64::MIN)),
        BAD_PRICE
    );
    assert_eq!(refusal(|p| p.ops[0].cost = BaseCost::Fixed(0)), BAD_PRICE);
    // The sum overflows and saturates.
    let sum = refusal(|p| {
        p.ops[0].cost = BaseCost::Fixed(i64::MAX);
        p.functions[0].blocks[0].price = i64::MAX;
        p.functions[1].blocks[0].price = i64::MAX;
    });
    assert_eq!(sum, "");
}

#[test]
fn b04_misplaced_charges() {
    assert_eq!(refusal(|p| p.functions[0].charges[0].pc = 2), BAD_PRICE);
    assert_eq!(refusal(|p| p.functions[0].charges[0].pc = 99), BAD_PRICE);
    assert_eq!(refusal(|p| p.functions[0].charges[0].step = 99), BAD_PRICE);
    assert_eq!(refusal(|p| p.functions[0].charges.swap(1, 2)), BAD_PRICE);
    assert_eq!(refusal(|p| p.functions[0].charges.swap(0, 5)), BAD_PRICE);
    assert_eq!(refusal(|p| p.functions[0].blocks[2].charges = 3), BAD_PRICE);
    assert_eq!(
        refusal(|p| p.functions[0].blocks[2].charges = u32::MAX),
        BAD_PRICE
    );
    // A jump of the block would skip the code that it pays for.
    assert_eq!(
        refusal_of(
            1,
            Op::JTrue {
                src: Reg(0),
                to: Target(5)
            }
        ),
        BAD_PRICE
    );
}

#[test]
fn b04_an_atom_cannot_be_reached_unpaid() {
    let unpaid = refusal(|p| {
        let f = &mut p.functions[0];
        f.charges.remove(4);
        f.blocks[2].price = 0;
        for block in &mut f.blocks[3..] {
            block.charges -= 1;
        }
    });
    assert_eq!(unpaid, UNCHARGED_STEP);
    let moved = refusal(|p| p.functions[0].charges[4].pc = 9);
    assert_eq!(moved, BAD_PRICE);
    // From block 3 back into the loop, which is inside another step.
    let jump = refusal(|p| p.functions[0].code[20] = Op::Jmp { to: Target(7) });
    assert_eq!(jump, UNCHARGED_STEP);
    assert_eq!(sample().functions[0].charges[4].kind, ChargeKind::Step);
}
