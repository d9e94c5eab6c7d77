//! Accesses of a block that share one look into the TLB: those off one register
//! that does not change between them.
//!
//! The first of a group checks that all of them are on one page, which the TLB
//! knows, aligned or not; the others need no check. If they are not, a copy of
//! the rest of the block looks for each of them: a frame of the stack that lies
//! on two pages does so for as long as the program does not return from there.

use super::region::Step;
use crate::cpu::csr;
use crate::cpu::inst::Op;

/// Groups of a block at most.
pub const MAX_GROUPS: usize = 8;

/// Bytes from the first to the last byte of a group at most: 64 of a page's
/// 4096 starting places make a group of that length lie on two pages.
const MAX_SPAN: i64 = 256;

/// A group of accesses; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The register.
    base: u8,
    /// Whether these are stores.
    is_write: bool,
    /// Offset of the first byte from the register.
    pub low: i64,
    /// Offset behind the last byte.
    high: i64,
    /// Offsets in the page of the instructions.
    steps: Vec<u16>,
}

impl Group {
    /// Bytes from the first to the last.
    pub fn span(&self) -> i64 {
        self.high - self.low
    }

    /// Whether an instruction is the first of the group.
    pub fn begins(&self, step: &Step) -> bool {
        self.steps.first() == Some(&step.offset)
    }

    /// Whether an instruction belongs to the group.
    pub fn holds(&self, step: &Step) -> bool {
        self.steps.contains(&step.offset)
    }

    /// Takes an access up if it fits.
    fn take(&mut self, step: &Step, length: u8) -> bool {
        let imm = i64::from(step.inst.imm);
        let low = self.low.min(imm);
        let high = self.high.max(imm + (1 << length));
        let fits = high - low <= MAX_SPAN;
        if fits {
            (self.low, self.high) = (low, high);
            self.steps.push(step.offset);
        }
        fits
    }
}

/// What an access is: its length as a shift, and whether it stores.
pub fn kind(op: Op) -> Option<(u8, bool)> {
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

/// The groups of a block that have more than one member.
pub fn groups(steps: &[Step]) -> Vec<Group> {
    let mut open: Vec<Group> = Vec::new();
    let mut done: Vec<Group> = Vec::new();
    for step in steps {
        let inst = &step.inst;
        if let Some((length, is_write)) = kind(inst.op) {
            let same = |group: &&mut Group| group.base == inst.rs1 && group.is_write == is_write;
            let found = open.iter_mut().find(same);
            if found.is_none_or(|group| !group.take(step, length)) {
                let rival = |group: &Group| group.base == inst.rs1 && group.is_write == is_write;
                done.extend(open.extract_if(.., |group| rival(group)));
                open.push(Group {
                    base: inst.rs1,
                    is_write,
                    low: inst.imm.into(),
                    high: i64::from(inst.imm) + (1 << length),
                    steps: vec![step.offset],
                });
            }
        }
        // What supervisor mode reaches may be another page behind it.
        if csr::is_access(inst.op) && csr::may_change_view(inst) {
            done.append(&mut open);
        }
        // Stores and branches have no destination; their field says so.
        if writes_integer(inst.op) {
            done.extend(open.extract_if(.., |group| group.base == inst.rd));
        }
    }
    done.append(&mut open);
    done.retain(|group| group.steps.len() > 1);
    done.truncate(MAX_GROUPS);
    done
}

/// Whether `rd` of an operation is an integer register; a `true` too many only
/// ends a group early.
pub fn writes_integer(op: Op) -> bool {
    !matches!(op, Op::Flw | Op::Fld)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::inst::{Inst, SINK};

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

    #[test]
    fn groups_end_where_their_register_changes() {
        let steps = [
            step(0, Op::Lw, 5, 2, 20),
            step(4, Op::Ld, 6, 2, 8),
            step(8, Op::Sd, SINK, 2, 32),
            step(12, Op::Ld, 2, 2, 24),
            step(16, Op::Ld, 7, 2, 0),
            step(20, Op::Sd, SINK, 2, 0),
            step(24, Op::Sd, SINK, 2, -8),
        ];
        let groups = groups(&steps);
        let [read, write] = &groups[..] else {
            panic!("{groups:?}");
        };
        assert_eq!((read.low, read.span()), (8, 24));
        assert_eq!(read.steps, [0, 4, 12]);
        assert!(read.begins(&steps[0]) && read.holds(&steps[3]));
        assert_eq!((write.low, write.span()), (-8, 16));
        assert_eq!(write.steps, [20, 24]);
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
        let groups = groups(&steps);
        let offsets: Vec<&[u16]> = groups.iter().map(|group| &group.steps[..]).collect();
        assert_eq!(offsets, [&[4, 8, 12][..], &[16, 20]]);
        assert_eq!((groups[1].low, groups[1].span()), (3, 5));
    }
}
