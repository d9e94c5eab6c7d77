//! The lines of the security catalogue that the verifier answers for.

use super::super::codes::*;
use super::{refusal, refusal_of, sample::sample};
use crate::program::{ChargeKind, Op};
use crate::sig::BaseCost;

#[test]
fn b02_jump_out_of_range() {
    assert_eq!(refusal_of(10, Op::Jmp { to: 22 }), V0006);
    assert_eq!(refusal_of(10, Op::Jmp { to: u32::MAX }), V0006);
    assert_eq!(
        refusal_of(
            6,
            Op::IterNext {
                dst: 4,
                it: 2,
                to: 1000
            }
        ),
        V0006
    );
}

#[test]
fn b02_jump_into_a_block() {
    assert_eq!(refusal_of(10, Op::Jmp { to: 6 }), V0006);
    assert_eq!(refusal_of(10, Op::Jmp { to: 8 }), V0006);
}

#[test]
fn b02_no_cycle_avoids_the_yield_point() {
    // A backward jump can only go to a block head, and each head is a Fuel.
    assert_eq!(refusal_of(5, Op::Nop {}), V0005);
    assert_eq!(refusal_of(5, Op::Fuel { block: 0 }), V0005);
    assert_eq!(refusal_of(12, Op::Fuel { block: 3 }), V0005);
    assert_eq!(refusal(|p| p.functions[0].blocks[1].start = 6), V0005);
    assert_eq!(refusal(|p| p.functions[0].blocks[5].end = 23), V0005);
    assert_eq!(refusal(|p| p.functions[0].blocks.truncate(5)), V0005);
    assert_eq!(refusal(|p| p.functions[0].blocks.clear()), V0005);
}

#[test]
fn b02_the_code_does_not_run_off_its_end() {
    assert_eq!(refusal_of(21, Op::Nop {}), V0007);
    assert_eq!(refusal_of(21, Op::JTrue { src: 0, to: 5 }), V0007);
    assert_eq!(refusal(|p| p.functions[1].code.clear()), V0009);
    let no_steps = refusal(|p| {
        p.functions[1].steps.clear();
        p.functions[1].code.clear();
    });
    assert_eq!(no_steps, V0007);
}

#[test]
fn b03_register_out_of_range() {
    assert_eq!(refusal_of(1, Op::LoadK { dst: 12, k: 0 }), V0003);
    assert_eq!(refusal_of(16, Op::Mov { dst: 6, src: 255 }), V0003);
    assert_eq!(
        refusal_of(
            4,
            Op::IterInit {
                it: 11,
                src: 1,
                k: 1
            }
        ),
        V0003
    );
    assert_eq!(refusal_of(9, Op::Unbind { base: 11, n: 2 }), V0003);
    assert_eq!(refusal_of(9, Op::Unbind { base: 255, n: 255 }), V0003);
    assert_eq!(refusal_of(9, Op::Unbind { base: 13, n: 0 }), V0003);
    assert_eq!(refusal(|p| p.functions[0].params = 13), V0003);
    assert_eq!(refusal(|p| p.functions[0].registers = 8), V0003);
}

#[test]
fn b03_constant_out_of_range() {
    assert_eq!(refusal_of(1, Op::LoadK { dst: 0, k: 5 }), V0002);
    assert_eq!(refusal_of(1, Op::LoadLit { dst: 0, lit: 1 }), V0002);
    assert_eq!(refusal_of(1, Op::LoadArg { dst: 0, arg: 2 }), V0002);
    assert_eq!(refusal_of(9, Op::SlotLoad { dst: 0, slot: 1 }), V0002);
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
        V0002
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
        V0002
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
        V0002
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
        V0002
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
        V0002
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
        V0002
    );
    assert_eq!(refusal(|p| p.functions[1].name = 3), V0002);
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
        V0002
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
        V0002
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
        V0002
    );
}

#[test]
fn b03_uninitialised_register_read() {
    assert_eq!(refusal_of(1, Op::Nop {}), V0012);
    assert_eq!(refusal_of(16, Op::Mov { dst: 6, src: 11 }), V0012);
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
        V0012
    );
    // r6 is written on one way to the end only.
    assert_eq!(refusal_of(16, Op::Nop {}), V0012);
    // The item of the last turn is not there when the loop never turned.
    assert_eq!(refusal_of(16, Op::Mov { dst: 6, src: 4 }), "");
    assert_eq!(refusal_of(12, Op::Mov { dst: 6, src: 4 }), V0012);
    // What the protected call would have written is not there in the handler.
    assert_eq!(refusal_of(16, Op::Mov { dst: 6, src: 5 }), V0012);
    assert_eq!(refusal_of(9, Op::MovBound { dst: 9, src: 0 }), V0012);
    assert_eq!(refusal(|p| p.functions[1].params = 0), V0004);
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
    assert_eq!(memo(6), V0012);
}

#[test]
fn b04_forged_block_price() {
    for price in [0, -1, 1_102_999, i64::MIN, i64::MAX] {
        assert_eq!(refusal(|p| p.functions[0].blocks[0].price = price), V0008);
    }
    assert_eq!(
        refusal(|p| p.functions[1].blocks[0] = super::helper_block(0)),
        V0008
    );
}

#[test]
fn b04_forged_default_price() {
    assert_eq!(refusal(|p| p.ops[0].cost = BaseCost::Fixed(-1)), V0008);
    assert_eq!(
        refusal(|p| p.ops[0].cost = BaseCost::Dynamic(i64::MIN)),
        V0008
    );
    assert_eq!(refusal(|p| p.ops[0].cost = BaseCost::Fixed(0)), V0008);
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
    assert_eq!(refusal(|p| p.functions[0].charges[0].pc = 2), V0008);
    assert_eq!(refusal(|p| p.functions[0].charges[0].pc = 99), V0008);
    assert_eq!(refusal(|p| p.functions[0].charges[0].step = 99), V0008);
    assert_eq!(refusal(|p| p.functions[0].charges.swap(1, 2)), V0008);
    assert_eq!(refusal(|p| p.functions[0].charges.swap(0, 5)), V0008);
    assert_eq!(refusal(|p| p.functions[0].blocks[2].charges = 3), V0008);
    assert_eq!(
        refusal(|p| p.functions[0].blocks[2].charges = u32::MAX),
        V0008
    );
    // Behind a jump of its block it would be paid for nothing.
    assert_eq!(refusal_of(1, Op::JTrue { src: 0, to: 5 }), V0008);
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
    assert_eq!(unpaid, V0010);
    let moved = refusal(|p| p.functions[0].charges[4].pc = 9);
    assert_eq!(moved, V0008);
    // From block 3 back into the loop, which lies inside another step.
    let jump = refusal(|p| p.functions[0].code[20] = Op::Jmp { to: 7 });
    assert_eq!(jump, V0010);
    assert_eq!(sample().functions[0].charges[4].kind, ChargeKind::Step);
}
