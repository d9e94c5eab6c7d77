//! Programs that would continue without being charged.

use super::super::codes::UNCHARGED_CODE;
use super::super::verify;
use super::sample::empty;
use crate::json::NodeId;
use crate::program::*;
use crate::program::{BlockIdx, ConstIdx, Count, Flag, FunctionIdx, Reg, Slot, Target};
use crate::sig::BaseCost;

const NO_PRICE: i64 = 0;

/// A function of this code, whose `Fuel`s begin its blocks. Each charge is one expression node.
fn function(code: &[Op], charged: &[u32], registers: u8) -> Function {
    let mut blocks: Vec<Block> = Vec::new();
    for (pc, op) in (0u32..).zip(code) {
        if matches!(op, Op::Fuel { .. }) {
            if let Some(last) = blocks.last_mut() {
                last.end = pc;
            }
            blocks.push(Block {
                start: pc,
                end: code.len() as u32,
                charges: charged.iter().filter(|at| **at < pc).count() as u32,
                price: NO_PRICE,
            });
        }
    }
    for block in &mut blocks {
        let inside = charged
            .iter()
            .filter(|at| (block.start..block.end).contains(at));
        block.price = inside.count() as i64 * crate::costs::NODE_METERED;
    }
    let charge = |pc: &u32| Charge {
        pc: *pc,
        step: 0,
        kind: ChargeKind::Nodes(1),
    };
    Function {
        registers,
        slots: 2,
        code: code.to_vec(),
        blocks,
        charges: charged.iter().map(charge).collect(),
        steps: vec![Step {
            parent: u32::MAX,
            start: 0,
            end: code.len() as u32,
            op: 0,
            node: NodeId(0),
            implicit: false,
            scope: 0,
            value: u8::MAX,
        }],
        scopes: vec![Scope::default()],
        ..Function::default()
    }
}

/// The code with which a program of these functions is refused; empty if it is accepted.
fn refusal(functions: Vec<Function>) -> &'static str {
    let mut p = empty();
    p.consts = vec![Const::Null, Const::Text(TextRange { start: 0, end: 0 })];
    p.ops = vec![OpRef {
        name: TextRange { start: 0, end: 0 },
        cost: BaseCost::Fixed(0),
        needs_body: false,
        signature: NO_SIGNATURE,
    }];
    p.functions = functions;
    for f in &mut p.functions {
        f.name = 1;
    }
    verify(p).map_or_else(|error| error.code, |_| "")
}

fn one(code: &[Op], charged: &[u32]) -> &'static str {
    refusal(vec![function(code, charged, 8)])
}

const FUEL0: Op = Op::Fuel { block: BlockIdx(0) };
const FUEL1: Op = Op::Fuel { block: BlockIdx(1) };
const FUEL2: Op = Op::Fuel { block: BlockIdx(2) };
const RET: Op = Op::Ret { src: Reg(0) };
const LOAD: Op = Op::LoadK {
    dst: Reg(0),
    k: ConstIdx(0),
};

/// Its block 1 loops to itself.
const LOOP: [Op; 6] = [
    FUEL0,
    LOAD,
    FUEL1,
    Op::JTrue {
        src: Reg(0),
        to: Target(2),
    },
    FUEL2,
    RET,
];

#[test]
fn a_loop_is_charged() {
    assert_eq!(one(&LOOP, &[]), UNCHARGED_CODE);
    assert_eq!(one(&LOOP, &[1]), UNCHARGED_CODE);
    assert_eq!(one(&LOOP, &[3]), "");
    let endless = [FUEL0, Op::Jmp { to: Target(0) }];
    assert_eq!(one(&endless, &[]), UNCHARGED_CODE);
    assert_eq!(one(&endless, &[1]), "");
}

#[test]
fn a_loop_is_charged_in_each_model() {
    let of_kinds = |kinds: &[(ChargeKind, i64)]| {
        let mut f = function(&LOOP, &vec![3; kinds.len()], 8);
        for (charge, (kind, _)) in f.charges.iter_mut().zip(kinds) {
            charge.kind = *kind;
        }
        f.blocks[1].price = kinds.iter().map(|(_, metered)| metered).sum();
        refusal(vec![f])
    };
    let only_metered = (ChargeKind::TextNodes(1), crate::costs::NODE_METERED);
    let only_flat = (ChargeKind::TextTest, NO_PRICE);
    assert_eq!(of_kinds(&[only_metered]), UNCHARGED_CODE);
    assert_eq!(of_kinds(&[only_flat]), UNCHARGED_CODE);
    assert_eq!(of_kinds(&[only_metered, only_flat]), "");
}

/// A loop over r0 with the iterator in r2 and r3; `inside` is its body.
fn iteration(inside: &[Op]) -> Vec<Op> {
    let exit = 6 + inside.len() as u32;
    let mut code = vec![
        FUEL0,
        LOAD,
        Op::IterInit {
            it: Reg(2),
            src: Reg(0),
            k: ConstIdx(1),
        },
        FUEL1,
        Op::IterNext {
            dst: Reg(1),
            it: Reg(2),
            to: Target(exit),
        },
    ];
    code.extend(inside);
    code.extend([Op::Jmp { to: Target(3) }, FUEL2, RET]);
    code
}

#[test]
fn an_iteration_ends_by_itself_unless_it_is_started_again() {
    assert_eq!(one(&iteration(&[]), &[]), "");
    assert_eq!(
        one(
            &iteration(&[Op::Mov {
                dst: Reg(4),
                src: Reg(1)
            }]),
            &[]
        ),
        ""
    );
    for again in [
        Op::IterInit {
            it: Reg(2),
            src: Reg(0),
            k: ConstIdx(1),
        },
        Op::Mov {
            dst: Reg(3),
            src: Reg(1),
        },
        Op::LoadK {
            dst: Reg(2),
            k: ConstIdx(0),
        },
        Op::Unbind {
            base: Reg(1),
            n: Count(3),
        },
    ] {
        assert_eq!(one(&iteration(&[again]), &[]), UNCHARGED_CODE, "{again:?}");
        assert_eq!(one(&iteration(&[again]), &[4]), "", "{again:?}");
    }
}

#[test]
fn an_iteration_that_is_over_leads_out_of_its_loop() {
    let mut code = iteration(&[]);
    code[4] = Op::IterNext {
        dst: Reg(1),
        it: Reg(2),
        to: Target(3),
    };
    assert_eq!(one(&code, &[]), UNCHARGED_CODE);
    assert_eq!(one(&code, &[4]), "");
}

#[test]
fn an_iterator_that_waits_in_slots_must_be_the_one_that_advances() {
    let body = |store: Op, more: Op| {
        vec![
            FUEL0,
            LOAD,
            Op::IterInit {
                it: Reg(2),
                src: Reg(0),
                k: ConstIdx(1),
            },
            Op::SlotStore {
                src: Reg(2),
                slot: Slot(0),
            },
            Op::SlotStore {
                src: Reg(3),
                slot: Slot(1),
            },
            FUEL1,
            Op::SlotLoad {
                dst: Reg(4),
                slot: Slot(0),
            },
            Op::SlotLoad {
                dst: Reg(5),
                slot: Slot(1),
            },
            Op::IterNext {
                dst: Reg(1),
                it: Reg(4),
                to: Target(12),
            },
            store,
            more,
            Op::Jmp { to: Target(5) },
            FUEL2,
            RET,
        ]
    };
    let store = Op::SlotStore {
        src: Reg(5),
        slot: Slot(1),
    };
    assert_eq!(one(&body(store, Op::Nop {}), &[]), "");
    assert_eq!(one(&body(Op::Nop {}, store), &[]), UNCHARGED_CODE);
    assert_eq!(
        one(
            &body(
                store,
                Op::SlotStore {
                    src: Reg(3),
                    slot: Slot(1)
                }
            ),
            &[]
        ),
        UNCHARGED_CODE
    );
    assert_eq!(
        one(
            &body(
                store,
                Op::SlotStore {
                    src: Reg(2),
                    slot: Slot(0)
                }
            ),
            &[]
        ),
        UNCHARGED_CODE
    );
    let other = Op::SlotStore {
        src: Reg(4),
        slot: Slot(1),
    };
    assert_eq!(one(&body(other, Op::Nop {}), &[]), UNCHARGED_CODE);
}

#[test]
fn an_error_that_gives_its_price_back_closes_no_loop() {
    // Block 1 always fails; its handler, block 2, leads back to it.
    let code = [
        FUEL0,
        LOAD,
        FUEL1,
        Op::Throw {
            flag: Flag(0),
            k: ConstIdx(1),
        },
        FUEL2,
        Op::Catch {
            msg: Reg(1),
            op: Reg(2),
        },
        Op::Jmp { to: Target(2) },
    ];
    let run = |charged: &[u32]| {
        let mut f = function(&code, charged, 8);
        f.handlers = vec![Handler {
            start: 3,
            end: 4,
            target: 4,
        }];
        refusal(vec![f])
    };
    assert_eq!(run(&[]), UNCHARGED_CODE);
    assert_eq!(run(&[3]), "");
    assert_eq!(run(&[6]), "");
    let late = [
        FUEL0,
        LOAD,
        FUEL1,
        Op::ThrowUnbound {
            src: Reg(0),
            k: ConstIdx(1),
        },
        Op::Nop {},
        RET,
        Op::Fuel { block: BlockIdx(2) },
        Op::Catch {
            msg: Reg(1),
            op: Reg(2),
        },
        Op::Jmp { to: Target(2) },
    ];
    let mut f = function(&late, &[4], 8);
    f.handlers = vec![Handler {
        start: 2,
        end: 5,
        target: 6,
    }];
    assert_eq!(refusal(vec![f]), UNCHARGED_CODE);
}

#[test]
fn calls_are_paid_by_the_caller_or_by_what_is_called() {
    let call = |callee| Op::Call {
        dst: Reg(1),
        base: Reg(0),
        n: Count(0),
        callee: FunctionIdx(callee),
    };
    let caller = |calls: &[Op], charged: &[u32]| {
        let mut code = vec![FUEL0, LOAD];
        code.extend(calls);
        code.push(RET);
        function(&code, charged, 8)
    };
    let leaf = |charged: &[u32]| function(&[FUEL0, LOAD, RET], charged, 1);
    let two = [call(1), Op::Fuel { block: BlockIdx(1) }, call(1)];
    assert_eq!(
        refusal(vec![caller(&[call(1)], &[]), leaf(&[])]),
        UNCHARGED_CODE
    );
    assert_eq!(refusal(vec![caller(&[call(1)], &[2]), leaf(&[])]), "");
    assert_eq!(refusal(vec![caller(&[call(1)], &[]), leaf(&[1])]), "");
    assert_eq!(refusal(vec![caller(&two, &[2]), leaf(&[])]), UNCHARGED_CODE);
    assert_eq!(refusal(vec![caller(&two, &[2, 4]), leaf(&[])]), "");
    // Recursion that never pays, and one that does.
    let again = |charged: &[u32]| caller(&[call(1)], charged);
    assert_eq!(refusal(vec![leaf(&[]), again(&[])]), UNCHARGED_CODE);
    assert_eq!(refusal(vec![leaf(&[]), again(&[1])]), "");
}

#[test]
fn a_host_that_charges_nothing_for_what_the_program_relies_on_is_told() {
    let mut p = empty();
    p.consts = vec![Const::Null];
    p.ops = vec![OpRef {
        name: TextRange { start: 0, end: 0 },
        cost: BaseCost::Fixed(7),
        needs_body: false,
        signature: NO_SIGNATURE,
    }];
    let mut f = function(&LOOP, &[], 8);
    f.steps.push(Step {
        parent: 0,
        start: 2,
        end: 4,
        ..f.steps[0]
    });
    f.charges = vec![Charge {
        pc: 3,
        step: 1,
        kind: ChargeKind::Step,
    }];
    f.blocks[1].price = 7;
    f.blocks[2].charges = 1;
    p.functions = vec![f];
    let artifact = verify(p).expect("the loop is charged");
    assert_eq!(artifact.check_prices(&[BaseCost::Fixed(7)]), Ok(()));
    assert_eq!(artifact.check_prices(&[BaseCost::Fixed(1)]), Ok(()));
    let free = artifact.check_prices(&[BaseCost::Fixed(0)]);
    assert_eq!(free.expect_err("free").code, UNCHARGED_CODE);
}
