use super::kinds::{Condition, Effect, Kind, Source, effect, has_form};
use super::loops::{Loop, loops};
use super::lower::lower;
use crate::heap::Val;
use crate::link::BlockPrice;
use a99_core::program::{Block, BlockIdx, ConstIdx, Count, Function, Op, Reg, Target};
use a99_jit::{Arith, Test};

/// A function of these blocks, each without its `Fuel`.
fn function(blocks: &[&[Op]]) -> Function {
    let mut f = Function {
        registers: 16,
        ..Function::default()
    };
    for (number, ops) in (0u32..).zip(blocks) {
        let start = f.code.len() as u32;
        f.code.push(Op::Fuel {
            block: BlockIdx(number),
        });
        f.code.extend_from_slice(ops);
        f.blocks.push(Block {
            start,
            end: f.code.len() as u32,
            charges: 0,
            price: 0,
        });
    }
    f
}

const fn r(number: u8) -> Reg {
    Reg(number)
}

fn add(dst: u8, left: u8, right: u8) -> Op {
    Op::Add {
        dst: r(dst),
        l: r(left),
        r: r(right),
    }
}

fn below(left: u8, right: u8, to: u32) -> Op {
    Op::JLt {
        l: r(left),
        r: r(right),
        to: Target(to),
    }
}

const RET: Op = Op::Ret { src: r(0) };

/// An instruction without a compiled form.
const COLD: Op = Op::NewArr {
    dst: r(9),
    cap: a99_core::program::Number(0),
};

#[test]
fn loops_are_found_with_their_blocks() {
    // 0: a loop of one block; 1 and 2: one of two; 3: the end.
    let f = function(&[
        &[add(0, 0, 1), below(0, 2, 0)],
        &[below(0, 3, 3)],
        &[add(0, 0, 1), Op::Jmp { to: Target(3) }],
        &[RET],
    ]);
    let of = |head, blocks: &[u32]| Loop {
        head,
        blocks: blocks.to_vec(),
    };
    assert_eq!(loops(&f), [of(0, &[0]), of(1, &[1, 2])]);
    assert_eq!(of(1, &[1, 2]).instructions(&f), 5);
}

#[test]
fn a_loop_without_a_way_around_that_is_pure_is_none() {
    let f = function(&[&[COLD, add(0, 0, 1), below(0, 2, 0)], &[RET]]);
    assert_eq!(loops(&f), []);
    // A cold block next to the path is no obstacle: 1 is skipped if r0 < r3.
    let f = function(&[
        &[below(0, 3, 4)],
        &[COLD],
        &[add(0, 0, 1), below(0, 2, 0)],
        &[RET],
    ]);
    let found = loops(&f);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].blocks, [0, 1, 2]);
}

#[test]
fn instructions_that_have_a_form_are_those_of_numbers_and_flags() {
    let (dst, src, l) = (r(200), r(255), r(0));
    let to = Target(0);
    let has = [
        Op::Nop {},
        Op::Mov { dst, src },
        Op::MovBound { dst, src },
        Op::LoadK {
            dst,
            k: ConstIdx(900),
        },
        Op::Neg { dst, src },
        Op::Not { dst, src },
        Op::SEq { dst, l, r: src },
        Op::JNullish { src, to },
        Op::JEq { l, r: src, to },
    ];
    let has_not = [
        Op::Ret { src },
        Op::Pow { dst, l, r: src },
        Op::Index {
            dst,
            obj: l,
            idx: src,
        },
    ];
    assert!(has.into_iter().all(has_form));
    assert!(!has_not.into_iter().any(has_form));
}

#[test]
fn what_an_instruction_does_follows_from_the_kinds() {
    let mut kinds = [Kind::Number; 16];
    kinds[1] = Kind::Flag;
    kinds[2] = Kind::Unbound;
    kinds[3] = Kind::Kept;
    kinds[4] = Kind::Mixed;
    kinds[5] = Kind::Null;
    let of = |op| effect(op, &kinds, &[Val::Num(7.0), Val::Undefined]);
    let (dst, zero) = (r(8), r(0));
    let set = |source| Effect::Set { dst, source };
    let arith = |left, right| {
        set(Source::Arith {
            op: Arith::Add,
            l: left,
            r: right,
        })
    };
    assert_eq!(of(add(8, 0, 6)), arith(zero, r(6)));
    for other in 1..6 {
        assert_eq!(of(add(8, 0, other)), Effect::Leave, "{other}");
    }
    let mov = |src| of(Op::Mov { dst, src: r(src) });
    assert_eq!(mov(0), set(Source::Copy(zero)));
    assert_eq!(mov(1), set(Source::Copy(r(1))));
    assert_eq!(mov(2), set(Source::Nothing(Kind::Unbound)));
    assert_eq!((mov(3), mov(4)), (Effect::Leave, Effect::Leave));
    let bound = |src| of(Op::MovBound { dst, src: r(src) });
    assert_eq!((bound(2), bound(0)), (Effect::None, mov(0)));
    let load = |k| {
        of(Op::LoadK {
            dst,
            k: ConstIdx(k),
        })
    };
    assert_eq!(load(0), set(Source::Number(7.0)));
    assert_eq!(load(1), set(Source::Nothing(Kind::Undefined)));
    assert_eq!(load(2), Effect::Leave);
    let to = Target(3);
    let truthy = |src| of(Op::JTrue { src: r(src), to });
    let falsy = |src| of(Op::JFalse { src: r(src), to });
    assert_eq!((truthy(2), falsy(2)), (Effect::None, Effect::Go(to)));
    assert_eq!((truthy(3), falsy(4)), (Effect::Leave, Effect::Leave));
    let condition = Condition::Flag(r(1));
    assert_eq!(
        falsy(1),
        Effect::Jump {
            condition,
            negated: true,
            to
        }
    );
    let nullish = |src| of(Op::JNullish { src: r(src), to });
    assert_eq!((nullish(5), nullish(0)), (Effect::Go(to), Effect::None));
    let unbind = Op::Unbind {
        base: dst,
        n: Count(2),
    };
    assert_eq!(
        of(unbind),
        Effect::Unbind {
            base: dst,
            n: Count(2)
        }
    );
    let equal = Op::JEq {
        l: zero,
        r: r(6),
        to,
    };
    assert!(matches!(
        of(equal),
        Effect::JumpUnlessNaN { test: Test::Eq, .. }
    ));
}

#[test]
fn kinds_have_tags() {
    for kind in [
        Kind::Kept,
        Kind::Unbound,
        Kind::Undefined,
        Kind::Null,
        Kind::Flag,
        Kind::Number,
    ] {
        assert_eq!(Kind::of_tag(kind.tag()), kind);
    }
    assert_eq!(Kind::Kept.tag(), 0.0);
}

#[test]
fn a_lowered_loop_says_what_it_asks_and_leaves() {
    // r0 counts by r1 up to r2; r5 is a number on one path and unbound on the other.
    let f = function(&[
        &[below(0, 3, 4)],
        &[Op::Unbind {
            base: r(5),
            n: Count(1),
        }],
        &[add(0, 0, 1), below(0, 2, 0)],
        &[RET],
    ]);
    // `below(0, 3, 4)` jumps to block 2, which begins with instruction 4.
    assert_eq!(f.blocks[2].start, 4);
    let prices = [BlockPrice { fuel: 5, work: 16 }; 4];
    let mut kinds = vec![Kind::Number; 16];
    kinds[5] = Kind::Kept;
    let of_loop = &loops(&f)[0];
    let lowered = lower(&f, of_loop, &[], &prices, kinds.clone().into()).expect("a loop");
    assert_eq!(lowered.region.check(), Ok(()));
    let asked: Vec<u8> = lowered.entry.iter().map(|asked| asked.reg.0).collect();
    assert_eq!(asked, [0, 1, 2, 3]);
    let left = |pc: u32| lowered.exits.iter().find(|exit| exit.pc == pc);
    let at_end = left(7).expect("an exit behind the loop");
    let regs: Vec<u8> = at_end.regs.iter().map(|(reg, _)| reg.0).collect();
    assert_eq!(regs, [0, 5]);
    // With a text in r2 there is no compilable path.
    kinds[2] = Kind::Kept;
    assert!(lower(&f, of_loop, &[], &prices, kinds.into()).is_none());
}
