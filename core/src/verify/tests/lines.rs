//! The lines of the security catalogue that the verifier answers for.

use super::super::codes::*;
use super::{refusal, refusal_of, sample::sample};
use crate::program::{ChargeKind, Op};
use crate::sig::BaseCost;

#[test]
fn b02_jump_out_of_range() {
    assert_eq!(refusal_of(10, Op::Jmp { to: 22 }), BAD_JUMP);
    assert_eq!(refusal_of(10, Op::Jmp { to: u32::MAX }), BAD_JUMP);
    assert_eq!(
        refusal_of(
            6,
            Op::IterNext {
                dst: 4,
                it: 2,
                to: 1000
            }
        ),
        BAD_JUMP
    );
}

#[test]
fn b02_jump_into_a_block() {
    assert_eq!(refusal_of(10, Op::Jmp { to: 6 }), BAD_JUMP);
    assert_eq!(refusal_of(10, Op::Jmp { to: 8 }), BAD_JUMP);
}

#[test]
fn b02_no_cycle_avoids_the_yield_point() {
    // A backward jump can only go to a block head, and each head is a Fuel.
    assert_eq!(refusal_of(5, Op::Nop {}), BAD_BLOCKS);
    assert_eq!(refusal_of(5, Op::Fuel { block: 0 }), BAD_BLOCKS);
    assert_eq!(refusal_of(12, Op::Fuel { block: 3 }), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks[1].start = 6), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks[5].end = 23), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks.truncate(5)), BAD_BLOCKS);
    assert_eq!(refusal(|p| p.functions[0].blocks.clear()), BAD_BLOCKS);
}

#[test]
fn b02_the_code_does_not_run_off_its_end() {
    assert_eq!(refusal_of(21, Op::Nop {}), RUNS_OFF);
    assert_eq!(refusal_of(21, Op::JTrue { src: 0, to: 5 }), RUNS_OFF);
    assert_eq!(refusal(|p| p.functions[1].code.clear()), BAD_STEPS);
    let no_steps = refusal(|p| {
        p.functions[1].steps.clear();
        p.functions[1].code.clear();
    });
    assert_eq!(no_steps, RUNS_OFF);
}

#[test]
fn b03_register_out_of_range() {
    assert_eq!(refusal_of(1, Op::LoadK { dst: 12, k: 0 }), BAD_REGISTER);
    assert_eq!(refusal_of(16, Op::Mov { dst: 6, src: 255 }), BAD_REGISTER);
    assert_eq!(
        refusal_of(
            4,
            Op::IterInit {
                it: 11,
                src: 1,
                k: 1
            }
        ),
        BAD_REGISTER
    );
    assert_eq!(refusal_of(9, Op::Unbind { base: 11, n: 2 }), BAD_REGISTER);
    assert_eq!(
        refusal_of(9, Op::Unbind { base: 255, n: 255 }),
        BAD_REGISTER
    );
    assert_eq!(refusal_of(9, Op::Unbind { base: 13, n: 0 }), BAD_REGISTER);
    assert_eq!(refusal(|p| p.functions[0].params = 13), BAD_REGISTER);
    assert_eq!(refusal(|p| p.functions[0].registers = 8), BAD_REGISTER);
}

#[test]
fn b03_constant_out_of_range() {
    assert_eq!(refusal_of(1, Op::LoadK { dst: 0, k: 5 }), BAD_INDEX);
    assert_eq!(refusal_of(1, Op::LoadLit { dst: 0, lit: 1 }), BAD_INDEX);
    assert_eq!(refusal_of(1, Op::LoadArg { dst: 0, arg: 2 }), BAD_INDEX);
    assert_eq!(refusal_of(9, Op::SlotLoad { dst: 0, slot: 1 }), BAD_INDEX);
    assert_eq!(
        refusal_of(
            12,
            Op::NewObj {
                dst: 6,
                base: 0,
                n: 2,
                shape: 1
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            16,
            Op::Member {
                dst: 6,
                obj: 7,
                key: 2
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            9,
            Op::Path {
                dst: 0,
                root: 0,
                path: 1
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            16,
            Op::Project {
                dst: 6,
                src: 7,
                schema: 1
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            9,
            Op::MemoKey {
                dst: 7,
                base: 0,
                n: 2,
                memo: 1
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            9,
            Op::CallFn {
                dst: 7,
                base: 0,
                n: 2,
                function: 93
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
                dst: 5,
                base: 4,
                n: 1,
                site: 1
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            19,
            Op::Call {
                dst: 7,
                base: 0,
                n: 1,
                callee: 2
            }
        ),
        BAD_INDEX
    );
    assert_eq!(
        refusal_of(
            20,
            Op::RunCode {
                dst: 8,
                base: 0,
                n: 2,
                names: 1
            }
        ),
        BAD_INDEX
    );
}

#[test]
fn b03_uninitialised_register_read() {
    assert_eq!(refusal_of(1, Op::Nop {}), UNWRITTEN_REGISTER);
    assert_eq!(
        refusal_of(16, Op::Mov { dst: 6, src: 11 }),
        UNWRITTEN_REGISTER
    );
    assert_eq!(
        refusal_of(
            12,
            Op::NewObj {
                dst: 6,
                base: 8,
                n: 2,
                shape: 0
            }
        ),
        UNWRITTEN_REGISTER
    );
    // r6 is written on one way to the end only.
    assert_eq!(refusal_of(16, Op::Nop {}), UNWRITTEN_REGISTER);
    // The item of the last turn is not there when the loop never turned.
    assert_eq!(refusal_of(16, Op::Mov { dst: 6, src: 4 }), "");
    assert_eq!(
        refusal_of(12, Op::Mov { dst: 6, src: 4 }),
        UNWRITTEN_REGISTER
    );
    // What the protected call would have written is not there in the handler.
    assert_eq!(
        refusal_of(16, Op::Mov { dst: 6, src: 5 }),
        UNWRITTEN_REGISTER
    );
    assert_eq!(
        refusal_of(9, Op::MovBound { dst: 9, src: 0 }),
        UNWRITTEN_REGISTER
    );
    assert_eq!(refusal(|p| p.functions[1].params = 0), BAD_OPERANDS);
}

#[test]
fn b03_the_value_of_a_memo_is_there_only_after_a_hit() {
    let memo = |read| {
        refusal(|p| {
            p.functions[0].code[16] = Op::MemoGet {
                dst: 6,
                key: 7,
                to: 18,
            };
            p.functions[0].code[17] = Op::Ret { src: read };
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
    // Enough to overflow: the sum saturates.
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
    // Behind a jump of its block it would be paid for nothing.
    assert_eq!(refusal_of(1, Op::JTrue { src: 0, to: 5 }), BAD_PRICE);
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
    // From block 3 back into the loop, which lies inside another step.
    let jump = refusal(|p| p.functions[0].code[20] = Op::Jmp { to: 7 });
    assert_eq!(jump, UNCHARGED_STEP);
    assert_eq!(sample().functions[0].charges[4].kind, ChargeKind::Step);
}
