//! Loop discovery in a function, and the limits for compilation.

use super::kinds::has_form;
use a99_core::program::{Block, Function, Op, OperandKind, Reg};

/// Maximum blocks of a compiled loop.
const MAX_BLOCKS: usize = 64;

/// Maximum instructions of a compiled loop.
const MAX_OPS: usize = 256;

/// Maximum instructions of a function that is searched for loops.
const MAX_CODE: usize = 4_096;

/// Maximum steps of a search: some tenths of a millisecond.
const MAX_STEPS: usize = 16_384;

/// A natural loop: the blocks from which a back edge to its head is reachable without passing
/// the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The block that every iteration begins with.
    pub(crate) head: u32,
    /// Its blocks in order, including the head.
    pub(crate) blocks: Vec<u32>,
}

impl Loop {
    /// Number of instructions.
    pub(crate) fn instructions(&self, f: &Function) -> usize {
        let instructions = self.blocks.iter().map(|block| {
            let block = f.blocks[*block as usize];
            (block.end - block.start) as usize
        });
        instructions.sum()
    }

    pub(crate) fn has(&self, block: u32) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }
}

/// The compilable loops of a function: of bounded size, with a path around that consists only
/// of operations on numbers and booleans.
pub(crate) fn loops(f: &Function) -> Vec<Loop> {
    if f.code.len() > MAX_CODE {
        return Vec::new();
    }
    let mut graph = Graph::of(f);
    let mut found = Vec::new();
    for head in 0..graph.next.len() as u32 {
        let is_back = |from: &&u32| **from >= head;
        let ends: Vec<u32> = graph.before[head as usize]
            .iter()
            .filter(is_back)
            .copied()
            .collect();
        if ends.is_empty() {
            continue;
        }
        if let Some(blocks) = graph.body(head, ends) {
            let of_loop = Loop { head, blocks };
            if of_loop.instructions(f) <= MAX_OPS && graph.has_way_around(f, &of_loop) {
                found.push(of_loop);
            }
        }
    }
    found
}

/// The block that begins at an instruction.
pub(crate) fn block_at(f: &Function, pc: u32) -> Option<u32> {
    let found = f.blocks.binary_search_by_key(&pc, |block| block.start);
    found.ok().and_then(|block| u32::try_from(block).ok())
}

/// Blocks and their edges.
struct Graph {
    next: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
    /// Steps left.
    left: usize,
}

impl Graph {
    fn of(f: &Function) -> Graph {
        let targets = |block: &Block| -> Vec<u32> {
            let code = &f.code[block.start as usize..block.end as usize];
            let ends = matches!(code.last(), Some(Op::Jmp { .. } | Op::Ret { .. }) | None);
            let after = (!ends).then_some(block.end);
            let jumps = code.iter().filter_map(|op| op.target());
            jumps
                .chain(after)
                .filter_map(|pc| block_at(f, pc))
                .collect()
        };
        let next: Vec<Vec<u32>> = f.blocks.iter().map(targets).collect();
        let mut before = vec![Vec::new(); next.len()];
        for (from, targets) in (0u32..).zip(&next) {
            for to in targets {
                before[*to as usize].push(from);
            }
        }
        Graph {
            next,
            before,
            left: MAX_STEPS,
        }
    }

    /// The blocks of the loop with this head and these back edges; `None` if they are too
    /// many.
    fn body(&mut self, head: u32, ends: Vec<u32>) -> Option<Vec<u32>> {
        let mut blocks = vec![head];
        let mut open = ends;
        while let Some(block) = open.pop() {
            self.left = self.left.checked_sub(1)?;
            let Err(at) = blocks.binary_search(&block) else {
                continue;
            };
            blocks.insert(at, block);
            if blocks.len() > MAX_BLOCKS {
                return None;
            }
            open.extend(&self.before[block as usize]);
        }
        Some(blocks)
    }

    /// Whether a path of fully compilable blocks leads from the head to itself.
    fn has_way_around(&self, f: &Function, of_loop: &Loop) -> bool {
        let is_pure = |block: u32| {
            let block = f.blocks[block as usize];
            let code = &f.code[block.start as usize + 1..block.end as usize];
            code.iter().all(|op| has_form(*op))
        };
        let mut seen = Vec::new();
        let mut open = vec![of_loop.head];
        while let Some(block) = open.pop() {
            if !is_pure(block) {
                continue;
            }
            for to in &self.next[block as usize] {
                if *to == of_loop.head {
                    return true;
                }
                if of_loop.has(*to) && !seen.contains(to) {
                    seen.push(*to);
                    open.push(*to);
                }
            }
        }
        false
    }
}

/// The registers that an instruction uses.
pub(crate) struct Touched {
    /// Registers that it may write.
    pub(crate) written: Vec<Reg>,
    /// Registers that it reads.
    pub(crate) read: Vec<Reg>,
}

/// The registers that an instruction uses.
pub(crate) fn touched(op: Op) -> Touched {
    let operands = op.operands();
    let count = operands
        .iter()
        .find(|operand| operand.1 == OperandKind::Count)
        .map_or(0, |operand| operand.2);
    let mut touched = Touched {
        written: Vec::new(),
        read: Vec::new(),
    };
    for (_, kind, number) in operands.iter() {
        let range = |n: u32| (number..number.saturating_add(n)).filter_map(|r| r.try_into().ok());
        let (written, read) = match kind {
            OperandKind::Write => (1, 0),
            OperandKind::Read => (0, 1),
            OperandKind::ReadWrite => (1, 1),
            OperandKind::IterWrite => (2, 0),
            OperandKind::Iter => (2, 2),
            OperandKind::Base => (0, count),
            OperandKind::BaseWrite => (count, 0),
            _ => (0, 0),
        };
        touched.written.extend(range(written).map(Reg));
        touched.read.extend(range(read).map(Reg));
    }
    touched
}
