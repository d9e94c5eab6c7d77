//! Random damage: verifying and printing any program ends without a panic.

use super::super::codes::BAD_BLOCKS;
use super::sample::sample;
use super::{check, refusal, verify};
use crate::disasm::disassemble;
use crate::program::{BlockIdx, ChargeKind, ConstIdx, LitOp, Location, Op, Program, Reg, Target};

/// Number of damaged programs.
const ROUNDS: u32 = 100_000;
/// Every n-th program is also disassembled.
const PRINTED: u32 = 16;

/// A xorshift generator: the same damage on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Mostly small numbers, sometimes the extremes.
    fn word(&mut self) -> u32 {
        match self.below(8) {
            0 => u32::MAX,
            1 => self.next() as u32,
            _ => self.below(26) as u32,
        }
    }
}

fn damage(p: &mut Program, r: &mut Random) {
    let function = r.below(p.functions.len());
    let word = r.word();
    let Some(f) = p.functions.get_mut(function) else {
        return;
    };
    match r.below(22) {
        0..=9 => damage_code(&mut f.code, r),
        10 => {
            let n = r.below(f.blocks.len());
            if let Some(b) = f.blocks.get_mut(n) {
                *[&mut b.start, &mut b.end, &mut b.charges][word as usize % 3] = r.word();
            }
        }
        11 => {
            let n = r.below(f.charges.len());
            if let Some(c) = f.charges.get_mut(n) {
                *[&mut c.pc, &mut c.step][word as usize % 2] = r.word();
                c.kind = [c.kind, ChargeKind::Step, ChargeKind::Nodes(9)][r.below(3)];
            }
        }
        12 => {
            let n = r.below(f.steps.len());
            if let Some(s) = f.steps.get_mut(n) {
                let fields = [
                    &mut s.parent,
                    &mut s.start,
                    &mut s.end,
                    &mut s.op,
                    &mut s.scope,
                ];
                *fields[word as usize % 5] = r.word();
            }
        }
        13 => {
            let n = r.below(f.handlers.len());
            if let Some(h) = f.handlers.get_mut(n) {
                *[&mut h.start, &mut h.end, &mut h.target][word as usize % 3] = r.word();
            }
        }
        14 => {
            let n = r.below(f.places.len());
            if let Some(place) = f.places.get_mut(n) {
                place.pc = word;
                place.node.0 = r.word();
                place.inner = Some((r.word(), r.word()));
            }
        }
        15 => f.registers = word as u8,
        16 => *[&mut f.name, &mut f.slots][r.below(2)] = word,
        17 => f.params = word as u8,
        _ => damage_tables(p, r),
    }
}

fn damage_code(code: &mut Vec<Op>, r: &mut Random) {
    let at = r.below(code.len());
    let Some(op) = code.get(at) else { return };
    let mut bytes = op.encode();
    match r.below(6) {
        0 => code.swap(at, 1),
        1 => drop(code.remove(at)),
        2 => bytes = [r.below(80) as u8, 0, 1, 2, r.below(22) as u8, 0, 0, 0],
        _ => bytes[r.below(8)] = r.word() as u8,
    }
    if let (Some(op), Some(slot)) = (Op::decode(bytes), code.get_mut(at)) {
        *slot = op;
    }
}

fn damage_tables(p: &mut Program, r: &mut Random) {
    let word = r.word();
    match r.below(12) {
        0 => {
            let at = r.below(p.text.len());
            p.text[at] = word as u8;
        }
        1 => p.text.truncate(word as usize),
        2 => p.keys[r.below(2)].end = word,
        3 => p.shapes[0][r.below(2)] = word,
        4 => p.sites[0].step = word,
        5 => p.sites[0].op = word,
        6 => p.names[0][0].1 = Location::Slot(word),
        7 => p.memos[0].free[0] = word,
        8 => p.args[0].flat.start = word,
        9 => p.literals[0][0] = LitOp::Array(word),
        10 => p.consts.truncate(word as usize),
        _ => p.functions.truncate(word as usize),
    }
}

#[test]
fn damaged_programs_never_panic() {
    let mut r = Random(0x9e37_79b9_7f4a_7c15);
    let mut accepted = 0;
    for round in 0..ROUNDS {
        let mut program = sample();
        for _ in 0..=r.below(3) {
            damage(&mut program, &mut r);
        }
        accepted += u32::from(check(&program).is_ok());
        if round % PRINTED == 0 {
            assert!(!disassemble(&program).is_empty());
        }
    }
    // Some damage is harmless (another register, another constant). If all of it were, the test
    // would check nothing.
    assert!((1..ROUNDS / 4).contains(&accepted), "{accepted} accepted");
}

/// A run can stop only between blocks.
#[test]
fn b02_blocks_are_short() {
    let of = |instructions: u32| {
        let mut f = sample().functions.remove(0);
        f.code = vec![Op::Nop {}; instructions as usize];
        f.code[0] = Op::Fuel { block: BlockIdx(0) };
        f.code[1] = Op::LoadK {
            dst: Reg(0),
            k: ConstIdx(0),
        };
        f.code[instructions as usize - 1] = Op::Ret { src: Reg(0) };
        f.blocks = vec![crate::program::Block {
            start: 0,
            end: instructions,
            charges: 0,
            price: 0,
        }];
        f.charges.clear();
        f.steps.clear();
        f.handlers.clear();
        refusal(|p| p.functions = vec![f])
    };
    assert_eq!(of(crate::program::MAX_BLOCK), "");
    assert_eq!(of(crate::program::MAX_BLOCK + 1), BAD_BLOCKS);
}

/// States travel against the order of the blocks: the worst case of the analysis.
#[test]
fn long_backward_chains_stay_cheap() {
    const BLOCKS: u32 = 20_000;
    let mut p = sample();
    p.functions.truncate(1);
    let f = &mut p.functions[0];
    f.code = vec![
        Op::Fuel { block: BlockIdx(0) },
        Op::LoadK {
            dst: Reg(0),
            k: ConstIdx(0),
        },
        Op::Jmp {
            to: Target(3 * BLOCKS),
        },
    ];
    for block in 1..=BLOCKS {
        let to = if block == 1 { 0 } else { 3 * (block - 1) };
        let last = if block == 1 {
            Op::Ret { src: Reg(0) }
        } else {
            Op::Jmp { to: Target(to) }
        };
        f.code.extend([
            Op::Fuel {
                block: BlockIdx(block),
            },
            Op::Mov {
                dst: Reg(1),
                src: Reg(0),
            },
            last,
        ]);
    }
    f.blocks = (0..=BLOCKS)
        .map(|n| crate::program::Block {
            start: 3 * n,
            end: 3 * n + 3,
            charges: 0,
            price: 0,
        })
        .collect();
    f.charges.clear();
    f.steps.clear();
    f.handlers.clear();
    assert!(verify(p).is_ok());
}
