//! Access groups that share one TLB look-up: accesses off one register that does not change
//! between them, in a block or along a path without other incoming jumps.
//!
//! The first access of a group checks that all of them, aligned or not, are on one page in
//! the TLB; the others need no check. If they are not, a copy of the rest of the block
//! looks up each of them: for a stack frame on two pages that happens until the program
//! returns from it. Functions optimised for size leave to the interpreter instead.

use super::region::{Region, Step};
use super::structure::members;
use crate::hart::csr;
use crate::interp::inst::{Inst, Op};
use std::collections::BTreeMap;

/// Maximum span of a group in bytes: for 64 of a page's 4096 starting positions, a group of
/// that length crosses a page.
const MAX_SPAN: i64 = 256;

/// A group of accesses; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Base register.
    base: u8,
    /// Whether the page must be writable, which implies readable.
    pub is_write: bool,
    /// Offset of the first byte from the register.
    pub low: i64,
    /// Offset after the last byte.
    high: i64,
    /// Block and offset in the page of the first instruction.
    first: (usize, u16),
    /// Number of accesses.
    count: usize,
}

impl Group {
    /// Bytes from the first to the last.
    pub(super) fn span(&self) -> i64 {
        self.high - self.low
    }

    /// Whether an instruction of a block is the first of the group.
    pub(super) fn begins(&self, node: usize, step: &Step) -> bool {
        self.first == (node, step.offset)
    }

    /// Adds an access if it fits.
    fn take(&mut self, inst: &Inst, (length, is_write): (u8, bool)) -> bool {
        let imm = i64::from(inst.imm);
        let low = self.low.min(imm);
        let high = self.high.max(imm + (1 << length));
        let fits = self.base == inst.rs1 && self.is_write >= is_write && high - low <= MAX_SPAN;
        if fits {
            (self.low, self.high) = (low, high);
            self.count += 1;
        }
        fits
    }
}

/// All groups of a region.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    /// The group of each access, by block and offset in the page.
    of: BTreeMap<(usize, u16), usize>,
}

impl Groups {
    /// Finds the groups of a region. They continue from block to block if the next block is
    /// in `single`, that is, has one incoming jump.
    pub(super) fn find(region: &Region, single: u128) -> Self {
        let mut groups = Self::default();
        let roots = (0..region.nodes.len()).filter(|node| single >> node & 1 == 0);
        let mut work: Vec<(usize, Vec<usize>)> = roots.map(|node| (node, Vec::new())).collect();
        while let Some((node, mut open)) = work.pop() {
            groups.block(node, &region.nodes[node].steps, &mut open);
            let next = region.nodes[node].next();
            let next = next.fold(0, |set, next| set | 1 << next) & single;
            work.extend(members(next).map(|node| (node, open.clone())));
        }
        groups.of.retain(|_, group| groups.all[*group].count > 1);
        groups
    }

    /// Adds the accesses of a block to the open groups.
    fn block(&mut self, node: usize, steps: &[Step], open: &mut Vec<usize>) {
        for (at, step) in steps.iter().enumerate() {
            let inst = &step.inst;
            if let Some((length, is_write)) = kind(inst.op) {
                let here = (node, step.offset);
                let mut groups = open.iter().copied();
                let found = groups.find(|group| self.all[*group].take(inst, (length, is_write)));
                let group = found.unwrap_or_else(|| {
                    let is_write = is_write || stores_later(&steps[at..]);
                    open.retain(|group| {
                        let group = &self.all[*group];
                        group.base != inst.rs1 || group.is_write != is_write
                    });
                    open.push(self.all.len());
                    self.all.push(Group {
                        base: inst.rs1,
                        is_write,
                        low: inst.imm.into(),
                        high: i64::from(inst.imm) + (1 << length),
                        first: here,
                        count: 1,
                    });
                    self.all.len() - 1
                });
                self.of.insert(here, group);
            }
            // After it, supervisor mode may see another page at the address.
            if csr::is_access(inst.op) && csr::may_change_mmu_index(inst) {
                open.clear();
            }
            // Stores and branches have no destination, and their field says so.
            if writes_integer(inst.op) {
                open.retain(|group| self.all[*group].base != inst.rd);
            }
        }
    }

    /// The group of an instruction of a block, and its number.
    pub(super) fn of(&self, node: usize, step: &Step) -> Option<(usize, &Group)> {
        let group = *self.of.get(&(node, step.offset))?;
        Some((group, &self.all[group]))
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

/// Whether the first of these instructions, a load, is soon followed by a store off the
/// same register: one look-up of a writable page then suffices.
fn stores_later(steps: &[Step]) -> bool {
    let Some((first, rest)) = steps.split_first() else {
        return false;
    };
    let base = first.inst.rs1;
    let changes = |inst: &Inst| writes_integer(inst.op) && inst.rd == base;
    if changes(&first.inst) {
        return false;
    }
    for step in rest {
        let inst = &step.inst;
        let distance = (i64::from(inst.imm) - i64::from(first.inst.imm)).abs();
        let is_store = kind(inst.op).is_some_and(|(_, is_write)| is_write);
        if is_store && inst.rs1 == base && distance < MAX_SPAN {
            return true;
        }
        if changes(inst) {
            return false;
        }
    }
    false
}

/// Length of an access as a shift, and whether it stores.
fn kind(op: Op) -> Option<(u8, bool)> {
    use Op::*;
    Some(match op {
        Lb | Lbu => (0, false),
        Lh | Lhu => (1, false),
        Lw | Lwu | Flw => (2, false),
        Ld | Fld => (3, false),
        Sb => (0, true),
        Sh => (1, true),
        Sw | Fsw => (2, true),
        Sd | Fsd => (3, true),
        _ => return None,
    })
}

/// Whether `rd` of an operation is an integer register; a wrong `true` only ends a group
/// early.
pub(super) fn writes_integer(op: Op) -> bool {
    !matches!(op, Op::Flw | Op::Fld)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::inst::SINK;
    use crate::jit::region::{End, Node, Target};

    fn step(offset: u16, op: Op, rd: u8, rs1: u8, imm: i32) -> Step {
        Step {
            offset,
            length: 4,
            inst: Inst {
                op,
                rd,
                rs1,
                rs2: 0,
                imm,
            },
        }
    }

    fn region(blocks: &[&[Step]]) -> Region {
        let node = |(at, steps): (usize, &&[Step])| Node {
            offset: steps[0].offset,
            steps: steps.to_vec(),
            end: End::Go(Target::Node(at + 1)),
        };
        let mut nodes: Vec<Node> = blocks.iter().enumerate().map(node).collect();
        nodes.last_mut().expect("a block").end = End::Jalr;
        Region {
            nodes,
            entries: 1,
            next_half: 0,
        }
    }

    /// Offsets of the instructions of each group with several.
    fn found(groups: &Groups) -> Vec<Vec<u16>> {
        let mut found = vec![Vec::new(); groups.len()];
        for ((_, offset), group) in &groups.of {
            found[*group].push(*offset);
        }
        found.retain(|group| !group.is_empty());
        found.sort();
        found
    }

    #[test]
    fn groups_end_where_their_register_changes() {
        let steps = [
            step(0, Op::Lw, 5, 2, 20),
            step(4, Op::Ld, 6, 2, 8),
            step(12, Op::Ld, 2, 2, 24),
            step(16, Op::Ld, 7, 2, 0),
            step(20, Op::Ld, 7, 3, 0),
            step(24, Op::Sd, SINK, 2, -8),
            step(28, Op::Ld, 3, 3, 8),
            step(32, Op::Sd, SINK, 3, 8),
        ];
        let groups = Groups::find(&region(&[&steps]), 0);
        assert_eq!(found(&groups), [&[0, 4, 12][..], &[16, 24], &[20, 28]]);
        let (_, read) = groups.of(0, &steps[0]).expect("a group");
        assert_eq!((read.low, read.span(), read.is_write), (8, 24, false));
        assert!(read.begins(0, &steps[0]) && !read.begins(0, &steps[1]));
        // A later store makes the look-up one for writing.
        let (_, write) = groups.of(0, &steps[3]).expect("a group");
        assert_eq!((write.low, write.span(), write.is_write), (-8, 16, true));
        assert_eq!(groups.of(0, &steps[7]), None);
    }

    #[test]
    fn groups_are_short() {
        let far = MAX_SPAN as i32;
        let steps = [
            step(0, Op::Ld, 5, 10, 0),
            step(4, Op::Ld, 5, 10, far),
            step(8, Op::Ld, 5, 10, far + 8),
            step(12, Op::Lw, 5, 10, far + 6),
            step(16, Op::Lbu, 5, 11, 3),
            step(20, Op::Lw, 5, 11, 4),
        ];
        let groups = Groups::find(&region(&[&steps]), 0);
        assert_eq!(found(&groups), [&[4, 8, 12][..], &[16, 20]]);
        let (_, group) = groups.of(0, &steps[4]).expect("a group");
        assert_eq!((group.low, group.span()), (3, 5));
    }

    #[test]
    fn groups_go_on_only_where_nothing_else_comes_in() {
        let blocks: [&[Step]; 4] = [
            &[step(0, Op::Ld, 5, 2, 0)],
            &[step(4, Op::Ld, 5, 2, 8)],
            &[step(8, Op::Ld, 5, 2, 16)],
            &[step(12, Op::Ld, 5, 2, 24), step(16, Op::Sd, SINK, 2, 32)],
        ];
        let groups = Groups::find(&region(&blocks), 0b1010);
        // A store needs a separate look-up.
        assert_eq!(found(&groups), [&[0, 4][..], &[8, 12]]);
        let (_, group) = groups.of(1, &blocks[1][0]).expect("a group");
        assert!(group.begins(0, &blocks[0][0]) && group.span() == 16);
    }
}
