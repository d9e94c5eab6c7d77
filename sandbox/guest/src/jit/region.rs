//! Region selection: the code of a page that direct jumps reach from its entries, as a
//! graph of basic blocks.
//!
//! The page is decoded again from memory, independently of the interpreter's blocks.

use crate::hart::csr;
use crate::interp::decode;
use crate::interp::inst::{Inst, Op, SINK};
use crate::ram::PAGE_SIZE;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum instructions of a region: bounds the time of one compilation to some tens of
/// milliseconds, and by how much a region overruns a slice.
pub(crate) const MAX_INSTRUCTIONS: usize = 768;

/// Maximum basic blocks of a region: a set of them fits a `u128`.
pub(crate) const MAX_NODES: usize = 128;

/// An instruction and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Offset in the page.
    pub offset: u16,
    /// Length in bytes.
    pub length: u8,
    /// Decoded instruction.
    pub inst: Inst,
}

impl Step {
    /// Whether the instruction ends on the next page.
    pub(crate) fn crosses_page(&self) -> bool {
        usize::from(self.offset) + usize::from(self.length) > PAGE_SIZE
    }
}

/// Where control continues after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// At a block of the region.
    Node(usize),
    /// At that address outside the region, relative to the page's first byte.
    Outside(i64),
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With a conditional branch, its last step.
    Branch {
        /// Target if the condition holds.
        taken: Target,
        /// Target otherwise.
        fall: Target,
    },
    /// By continuing at the target: after `jal`, its last step, or in the next block.
    Go(Target),
    /// With `jalr`, its last step.
    Jalr,
    /// Before the instruction at that offset, which the interpreter must run.
    Interpret(u16),
}

/// A basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Offset of its first instruction in the page.
    pub offset: u16,
    /// Its instructions.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: End,
}

impl Node {
    /// The blocks that may follow.
    pub(crate) fn next(&self) -> impl Iterator<Item = usize> {
        let (first, second) = match self.end {
            End::Branch { taken, fall } => (Some(taken), Some(fall)),
            End::Go(target) => (Some(target), None),
            End::Jalr | End::Interpret(_) => (None, None),
        };
        let inside = |target| match target {
            Some(Target::Node(node)) => Some(node),
            _ => None,
        };
        [inside(first), inside(second)].into_iter().flatten()
    }
}

/// A region: basic blocks by rising offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// The blocks.
    pub nodes: Vec<Node>,
    /// Blocks that control may enter from outside, a bit each: the requested entries,
    /// return points of calls, and the heads of loops, so that a loop that was left for one
    /// slow instruction is found again.
    pub entries: u128,
    /// The first two bytes of the next page when the region was found: half of an
    /// instruction that begins on this one.
    pub next_half: u16,
}

/// State of a growing region.
#[derive(Default)]
struct Growth {
    steps: BTreeMap<u16, Step>,
    /// Offsets at which blocks begin.
    leaders: BTreeSet<u16>,
    /// Leaders that control may enter from outside.
    entries: BTreeSet<u16>,
    work: VecDeque<u16>,
}

impl Region {
    /// Finds the region of a page with entries at `roots`: its [`PAGE_SIZE`] bytes, and two
    /// of the next page if they are known. `None` if no instruction can be translated.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn find(page: &[u8], roots: &[u16]) -> Option<Self> {
        Self::among(page, roots, |_| true)
    }

    /// Does the same, restricted to blocks whose offset is `wanted`.
    pub(crate) fn among(page: &[u8], roots: &[u16], wanted: impl Fn(u16) -> bool) -> Option<Self> {
        let mut growth = Growth::default();
        for root in roots {
            growth.leader(*root, true);
        }
        while let Some(offset) = growth.work.pop_front() {
            if wanted(offset) {
                growth.walk(page, offset);
            } else {
                growth.leaders.remove(&offset);
                growth.entries.remove(&offset);
            }
        }
        let nodes = growth.nodes(page);
        let useful = nodes.iter().any(|node| !node.steps.is_empty());
        let mut entries = 0;
        for (at, node) in nodes.iter().enumerate() {
            // An entry without instructions would only cost time.
            if growth.entries.contains(&node.offset) && !node.steps.is_empty() {
                entries |= 1 << at;
            }
        }
        (useful && entries != 0).then_some(Self {
            nodes,
            entries,
            next_half: half(page, PAGE_SIZE).unwrap_or(0) as u16,
        })
    }

    /// Region exits: offsets in the page that direct jumps out of the region lead to.
    pub(crate) fn exit_targets(&self) -> impl Iterator<Item = u16> {
        let targets = self.nodes.iter().flat_map(|node| match node.end {
            End::Branch { taken, fall } => [Some(taken), Some(fall)],
            End::Go(target) => [Some(target), None],
            End::Jalr | End::Interpret(_) => [None, None],
        });
        targets.flatten().filter_map(|target| match target {
            Target::Outside(offset) if offset < PAGE_SIZE as i64 => u16::try_from(offset).ok(),
            _ => None,
        })
    }

    /// Offsets in the page at which the limit cut a block.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = u16> {
        self.nodes.iter().filter_map(|node| {
            let last = node.steps.last()?;
            let end = last.offset + u16::from(last.length);
            let is_cut =
                node.end == End::Go(Target::Outside(end.into())) && last.inst.op != Op::Jal;
            (is_cut && usize::from(end) < PAGE_SIZE).then_some(end)
        })
    }

    /// Instructions in all blocks.
    pub(crate) fn instructions(&self) -> usize {
        self.nodes.iter().map(|node| node.steps.len()).sum()
    }

    /// Blocks with exactly one incoming jump of the region.
    pub(crate) fn single(&self) -> u128 {
        let (mut once, mut more) = (0, self.entries);
        for next in self.nodes.iter().flat_map(Node::next) {
            more |= once & 1 << next;
            once |= 1 << next;
        }
        once & !more
    }

    /// Guest registers that are read or written, a bit each. Floating-point register
    /// numbers count too, which costs a load at most.
    pub(crate) fn registers(&self) -> u32 {
        let mut used = 0u64;
        for step in self.nodes.iter().flat_map(|node| &node.steps) {
            let Inst { rd, rs1, rs2, .. } = step.inst;
            used |= 1 << rd | 1 << rs1 | 1 << rs2;
        }
        used as u32 & !1
    }
}

impl Growth {
    /// Records that a block begins at `offset`.
    fn leader(&mut self, offset: u16, is_entry: bool) {
        let room = self.leaders.len() < MAX_NODES && self.steps.len() < MAX_INSTRUCTIONS;
        if self.leaders.contains(&offset) || room && usize::from(offset) < PAGE_SIZE {
            if self.leaders.insert(offset) {
                self.work.push_back(offset);
            }
            if is_entry {
                self.entries.insert(offset);
            }
        }
    }

    /// Follows the straight line from `offset`.
    fn walk(&mut self, page: &[u8], mut offset: u16) {
        while self.steps.len() < MAX_INSTRUCTIONS && !self.steps.contains_key(&offset) {
            let Some(step) = fetch(page, offset) else {
                return;
            };
            self.steps.insert(offset, step);
            let after = offset + u16::from(step.length);
            let Inst { op, rd, imm, .. } = step.inst;
            if op.is_branch() || op == Op::Jal {
                let target = i64::from(offset) + i64::from(imm);
                if (0..PAGE_SIZE as i64).contains(&target) {
                    self.leader(target as u16, target <= i64::from(offset));
                }
            }
            match op {
                _ if op.is_branch() => return self.leader(after, false),
                // A call returns here.
                Op::Jal | Op::Jalr if rd != SINK => return self.leader(after, true),
                Op::Jal | Op::Jalr => return,
                Op::Sret | Op::Illegal | Op::Ebreak => return,
                _ if op.ends_block() || !is_translated(&step.inst) => {
                    return self.leader(after, true);
                }
                _ => offset = after,
            }
        }
    }

    fn nodes(&self, page: &[u8]) -> Vec<Node> {
        let numbers: BTreeMap<u16, usize> = self.leaders.iter().copied().zip(0..).collect();
        let target = |offset: i64| {
            let inside = u16::try_from(offset).ok();
            match inside.and_then(|offset| numbers.get(&offset)) {
                Some(number) => Target::Node(*number),
                None => Target::Outside(offset),
            }
        };
        let node = |leader: &u16| {
            let mut steps = Vec::new();
            let mut offset = *leader;
            let end = loop {
                let here = i64::from(offset);
                if offset != *leader && self.leaders.contains(&offset) {
                    break End::Go(target(here));
                }
                let Some(step) = self.steps.get(&offset) else {
                    // Exceeded the limit: another region may begin here. Or crosses the
                    // page's end.
                    let is_code = fetch(page, offset).is_some_and(|step| is_translated(&step.inst));
                    break if is_code || !steps.is_empty() {
                        End::Go(Target::Outside(here))
                    } else {
                        End::Interpret(offset)
                    };
                };
                let Inst { op, imm, .. } = step.inst;
                if !is_translated(&step.inst) {
                    break End::Interpret(offset);
                }
                steps.push(*step);
                offset += u16::from(step.length);
                let taken = target(here + i64::from(imm));
                match op {
                    Op::Jal => break End::Go(taken),
                    Op::Jalr => break End::Jalr,
                    _ if op.is_branch() => {
                        let fall = target(offset.into());
                        break End::Branch { taken, fall };
                    }
                    _ => {}
                }
            };
            Node {
                offset: *leader,
                steps,
                end,
            }
        };
        self.leaders.iter().map(node).collect()
    }
}

/// Whether the translator supports an instruction: all except those that change more than
/// the hart's registers, or need more.
fn is_translated(inst: &Inst) -> bool {
    let op = inst.op;
    let jumps = op.is_branch() || matches!(op, Op::Jal | Op::Jalr);
    op < Op::LdRun
        && !matches!(op, Op::Fence | Op::CboZero)
        && (jumps || !op.ends_block())
        && (!csr::is_access(op) || csr::is_quick(inst.imm as u32))
}

fn half(page: &[u8], at: usize) -> Option<u32> {
    let bytes = page.get(at..at + 2)?.try_into().ok()?;
    Some(u32::from(u16::from_le_bytes(bytes)))
}

/// Decodes the instruction at `offset`, if it begins on the page and all of it is known.
fn fetch(page: &[u8], offset: u16) -> Option<Step> {
    let at = usize::from(offset);
    let low = half(page, at).filter(|_| at < PAGE_SIZE)?;
    let high = match half(page, at + 2) {
        Some(high) => high,
        None if decode::length(low as u16) == 2 => 0,
        None => return None,
    };
    let (inst, length) = decode::decode(low | high << 16);
    Some(Step {
        offset,
        length,
        inst,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[u32]) -> Vec<u8> {
        let mut page: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        page.resize(PAGE_SIZE, 0);
        page
    }

    /// addi a0, a0, -1; bnez a0, .-4; jal ra, .+8; ret; csrr a0, time; nop; ret
    const LOOP: [u32; 7] = [
        0xfff5_0513,
        0xfe05_1ee3,
        0x0080_00ef,
        0x0000_8067,
        0xc010_2573,
        0x0000_0013,
        0x0000_8067,
    ];

    #[test]
    fn follows_branches_calls_and_what_the_interpreter_runs() {
        let region = Region::find(&page(&LOOP), &[0]).expect("a region");
        let offsets: Vec<u16> = region.nodes.iter().map(|node| node.offset).collect();
        assert_eq!(offsets, [0, 8, 12, 16, 20]);
        assert_eq!(
            region.nodes[0].end,
            End::Branch {
                taken: Target::Node(0),
                fall: Target::Node(1)
            }
        );
        assert_eq!(region.nodes[1].end, End::Go(Target::Node(3)));
        assert_eq!(region.nodes[2].end, End::Jalr);
        assert_eq!(region.nodes[3].end, End::Interpret(16));
        // The root, the return point of the call, and the instruction after the CSR.
        assert_eq!(region.entries, 0b10101);
        assert_eq!(region.instructions(), 6);
        // The block after the loop, and the called function.
        assert_eq!(region.single(), 0b01010);
    }

    #[test]
    fn stays_on_its_page_and_within_bounds() {
        let mut words = vec![0x0000_0013; PAGE_SIZE / 4];
        let region = Region::find(&page(&words), &[8]).expect("a region");
        assert_eq!(region.instructions(), MAX_INSTRUCTIONS);
        words[PAGE_SIZE / 4 - 1] = 0x0000_006f | 1 << 22;
        let last = PAGE_SIZE as u16 - 4;
        let region = Region::find(&page(&words), &[last]).expect("a region");
        let end = End::Go(Target::Outside(PAGE_SIZE as i64));
        assert_eq!(region.nodes[0].end, end);
        // Each branch skips one instruction: more blocks than fit.
        words.fill(0x0005_0463);
        let region = Region::find(&page(&words), &[0]).expect("a region");
        assert!(region.nodes.len() <= MAX_NODES);
        // Half of a long instruction at the end, and all of it: `addi a0, zero, 2`.
        let last = PAGE_SIZE as u16 - 2;
        let mut halves = page(&[]);
        halves[PAGE_SIZE - 2..].copy_from_slice(&[0x13, 0x05]);
        assert_eq!(Region::find(&halves, &[last]), None);
        halves.extend([0x20, 0x00]);
        let region = Region::find(&halves, &[last]).expect("a region");
        assert_eq!((region.instructions(), region.next_half), (1, 0x20));
        assert!(region.nodes[0].steps[0].crosses_page());
        let end = End::Go(Target::Outside(PAGE_SIZE as i64 + 2));
        assert_eq!(region.nodes[0].end, end);
        // Half of a long instruction without the rest; only an illegal instruction.
        words.fill(0x0013_0001);
        assert_eq!(Region::find(&page(&words), &[PAGE_SIZE as u16 - 2]), None);
        assert_eq!(Region::find(&[0; PAGE_SIZE], &[0]), None);
    }
}
