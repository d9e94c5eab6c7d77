//! Definite assignment: a forward dataflow analysis over blocks.
//!
//! For each register it proves whether every path to a point writes it. States only shrink, by at
//! most 256 bits, so the fixed point is reached after a bounded number of visits. An error may
//! leave any instruction: its handler sees the state before every instruction it protects.

use super::code::Jumps;
use super::codes::UNWRITTEN_REGISTER;
use super::regions::Handlers;
use super::{Check, Unit};
use crate::program::{Op, OperandKind};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A set of registers.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Set([u64; 4]);

impl Set {
    const EMPTY: Set = Set([0; 4]);

    /// The registers 0 to n - 1.
    fn first(n: usize) -> Set {
        let mut set = Set::EMPTY;
        (0..n.min(256)).for_each(|r| set.add(r as u32));
        set
    }

    // Checked operands are below 256. The mask keeps the index in bounds without a branch.
    fn has(&self, r: u32) -> bool {
        self.0[(r >> 6) as usize & 3] >> (r & 63) & 1 == 1
    }

    fn add(&mut self, r: u32) {
        self.0[(r >> 6) as usize & 3] |= 1 << (r & 63);
    }

    fn meet(&mut self, other: &Set) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a &= b);
    }

    fn holds_all(&self, needed: [u64; 4]) -> bool {
        self.0
            .iter()
            .zip(needed)
            .all(|(has, need)| need & !has == 0)
    }
}

/// The proved facts at one point of the code.
#[derive(Copy, Clone, PartialEq, Eq)]
struct State {
    /// Registers written on every path.
    plain: Set,
}

impl State {
    fn meet(&mut self, other: &State) {
        self.plain.meet(&other.plain);
    }

    fn write(&mut self, r: u32) {
        self.plain.add(r);
    }

    /// Applies the instruction as it falls through. Returns whether all registers it reads were
    /// written.
    fn run(&mut self, u: &Unit<'_>, op: Op) -> bool {
        let before = *self;
        let mut sound = true;
        // `MemoGet` writes its value only when it jumps.
        let writes = !matches!(op, Op::MemoGet { .. });
        each_use(op, |used| match used {
            Use::Write(r) if writes => self.write(r),
            Use::Write(_) => {}
            Use::Read(r) => sound &= before.plain.has(r),
            Use::Names(table) => sound &= before.plain.holds_all(names(u, table)),
        });
        sound
    }

    /// The state after the instruction as it jumps.
    fn jump(mut self, op: Op) -> State {
        if let Op::MemoGet { dst, .. } = op {
            self.write(dst.0.into());
        }
        self
    }
}

/// Use of a register, or of the registers in a table of variables.
enum Use {
    Read(u32),
    Write(u32),
    Names(u32),
}

/// The registers in a table of variables.
fn names(u: &Unit<'_>, table: u32) -> [u64; 4] {
    u.facts.names[table as usize].registers
}

/// Visits the registers that the operands read and write. Advancing an iterator counts as a read.
#[inline]
fn each_use(op: Op, mut each: impl FnMut(Use)) {
    let mut base = 0;
    let mut base_is_written = false;
    for (_, kind, value) in op.operands().iter() {
        match kind {
            OperandKind::Read => each(Use::Read(value)),
            OperandKind::Write => each(Use::Write(value)),
            OperandKind::ReadWrite => {
                each(Use::Read(value));
                each(Use::Write(value));
            }
            OperandKind::Iter => (value..value + 2).for_each(|r| each(Use::Read(r))),
            OperandKind::IterWrite => (value..value + 2).for_each(|r| each(Use::Write(r))),
            OperandKind::Base | OperandKind::BaseWrite => {
                base = value;
                base_is_written = kind == OperandKind::BaseWrite;
            }
            OperandKind::Count => (base..base + value).for_each(|r| match base_is_written {
                true => each(Use::Write(r)),
                false => each(Use::Read(r)),
            }),
            OperandKind::Names => each(Use::Names(value)),
            _ => {}
        }
    }
}

/// Visits the registers that the operands write.
pub(super) fn each_written(op: Op, mut write: impl FnMut(u32)) {
    each_use(op, |used| {
        if let Use::Write(r) = used {
            write(r);
        }
    });
}

/// The states at block heads, and the worklist of blocks.
struct Flow {
    heads: Vec<Option<State>>,
    queue: BinaryHeap<Reverse<usize>>,
    queued: Vec<bool>,
}

impl Flow {
    fn new(blocks: usize) -> Flow {
        Flow {
            heads: vec![None; blocks],
            queue: BinaryHeap::new(),
            queued: vec![false; blocks],
        }
    }

    fn enter(&mut self, block: usize, state: &State) {
        let Some(head) = self.heads.get_mut(block) else {
            return;
        };
        let mut met = *state;
        if let Some(old) = head {
            met.meet(old);
        }
        if *head != Some(met) {
            *head = Some(met);
            if !std::mem::replace(&mut self.queued[block], true) {
                self.queue.push(Reverse(block));
            }
        }
    }

    fn next(&mut self) -> Option<(usize, State)> {
        let Reverse(block) = self.queue.pop()?;
        self.queued[block] = false;
        self.heads[block].map(|state| (block, state))
    }
}

/// Checks all reads. Requires that all other checks passed.
pub(super) fn check(u: &Unit<'_>, jumps: &Jumps, handlers: &Handlers) -> Check {
    let mut flow = Flow::new(u.f.blocks.len());
    let entry = State {
        plain: Set::first(u.bound_at_entry()),
    };
    flow.enter(0, &entry);
    let mut sound = true;
    while let Some((block, state)) = flow.next() {
        sound &= visit(u, (jumps, handlers), &mut flow, block, state);
    }
    // States only shrink, so a read that is unsound at any visit is unsound at the last one.
    if sound {
        return Ok(());
    }
    // Unreachable code has no state and needs none.
    for (block, head) in u.f.blocks.iter().zip(&flow.heads) {
        let Some(mut state) = *head else { continue };
        for pc in block.start..block.end {
            let op = u.f.code[pc as usize];
            check_reads(u, pc, op, &state)?;
            if op.is_terminal() {
                break;
            }
            state.run(u, op);
        }
    }
    Ok(())
}

/// Propagates the state of a block to its successors. Returns whether the block reads only written
/// registers.
fn visit(
    u: &Unit<'_>,
    (jumps, handlers): (&Jumps, &Handlers),
    flow: &mut Flow,
    block: usize,
    mut state: State,
) -> bool {
    let range = u.f.blocks[block];
    let mut sound = true;
    for pc in range.start..range.end {
        let op = u.f.code[pc as usize];
        if let Some(handler) = handlers.block_of.get(pc as usize) {
            // The marker for no handler is not a valid block number.
            flow.enter(*handler as usize, &state);
        }
        if let Some(target) = jumps.target(pc) {
            flow.enter(target, &state.jump(op));
        }
        sound &= state.run(u, op);
        if op.is_terminal() {
            return sound;
        }
    }
    flow.enter(block + 1, &state);
    sound
}

/// Checks that the instruction reads only written registers.
fn check_reads(u: &Unit<'_>, pc: u32, op: Op, state: &State) -> Check {
    let unwritten = |r: u32| {
        let message = format!("{op:?} reads r{r}, which may hold no value here");
        u.refuse_at(UNWRITTEN_REGISTER, pc, message)
    };
    let mut found = Ok(());
    each_use(op, |used| match used {
        Use::Read(r) if found.is_ok() && !state.plain.has(r) => found = Err(unwritten(r)),
        Use::Names(table) if found.is_ok() && !state.plain.holds_all(names(u, table)) => {
            let message = "a variable of the names table is unwritten";
            found = Err(u.refuse_at(UNWRITTEN_REGISTER, pc, message));
        }
        _ => {}
    });
    found
}
