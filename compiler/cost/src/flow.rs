//! Control flow of a function: blocks, their order, and natural loops.

use a99_core::program::{Function, Op};

/// A natural loop.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) header: usize,
    /// Its blocks, those of inner loops included.
    pub(crate) body: Vec<bool>,
    /// The blocks that jump back to the header.
    pub(crate) latches: Vec<usize>,
    pub(crate) parent: Option<usize>,
}

/// The control flow of a function.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) succs: Vec<Vec<usize>>,
    pub(crate) preds: Vec<Vec<usize>>,
    /// The blocks that may run, each before its successors but for jumps back.
    pub(crate) order: Vec<usize>,
    /// Whether a block is where errors go.
    pub(crate) handles: Vec<bool>,
    /// Inner loops precede outer ones.
    pub(crate) loops: Vec<Loop>,
    /// The innermost loop around a block.
    pub(crate) inner: Vec<Option<usize>>,
    dominator: Vec<usize>,
    position: Vec<usize>,
}

/// Most loops of a function times its blocks.
const MAX_LOOP_BLOCKS: usize = 10_000_000;

/// Not in the order.
const NONE: usize = usize::MAX;

impl Flow {
    /// The flow; `None` if a loop has several entries or a block several exits
    /// inside, and if there are too many loops.
    pub(crate) fn of(f: &Function) -> Option<Flow> {
        let count = f.blocks.len();
        let block_at = |pc: u32| {
            f.blocks
                .partition_point(|b| b.start <= pc)
                .saturating_sub(1)
        };
        let (mut succs, mut handles) = (vec![Vec::new(); count], vec![false; count]);
        for (at, block) in f.blocks.iter().enumerate() {
            let ops = f.code.get(block.start as usize..block.end as usize)?;
            let (last, inside) = ops.split_last()?;
            if inside.iter().any(|op| op.jumps() || op.is_terminal()) {
                return None;
            }
            if let Some(to) = last.target() {
                succs[at].push(block_at(to));
            }
            let falls = !last.is_terminal() && at + 1 < count;
            if falls && !succs[at].contains(&(at + 1)) {
                succs[at].push(at + 1);
            }
            for handler in &f.handlers {
                let to = block_at(handler.target);
                if handler.start < block.end && block.start < handler.end {
                    handles[to] = true;
                    if !succs[at].contains(&to) {
                        succs[at].push(to);
                    }
                }
            }
        }
        let mut preds = vec![Vec::new(); count];
        for (at, list) in succs.iter().enumerate() {
            list.iter().for_each(|to| preds[*to].push(at));
        }
        let order = order(&succs);
        let mut position = vec![NONE; count];
        for (at, block) in order.iter().enumerate() {
            position[*block] = at;
        }
        preds
            .iter_mut()
            .for_each(|list| list.retain(|p| position[*p] != NONE));
        let dominator = dominators(&order, &position, &preds);
        let mut flow = Flow {
            succs,
            preds,
            order,
            handles,
            loops: Vec::new(),
            inner: vec![None; count],
            dominator,
            position,
        };
        flow.find_loops().then_some(flow)
    }

    /// Whether every path to `block` passes `by`.
    pub(crate) fn dominates(&self, by: usize, block: usize) -> bool {
        let mut at = block;
        while self.position[at] > self.position[by] {
            at = self.dominator[at];
        }
        at == by
    }

    fn find_loops(&mut self) -> bool {
        for &block in &self.order {
            for &to in &self.succs[block] {
                if self.position[to] > self.position[block] {
                    continue;
                }
                if !self.dominates(to, block) {
                    return false;
                }
                if (self.loops.len() + 1).saturating_mul(self.succs.len()) > MAX_LOOP_BLOCKS {
                    return false;
                }
                let known = self.loops.iter().position(|l| l.header == to);
                let at = known.unwrap_or_else(|| {
                    let mut body = vec![false; self.succs.len()];
                    body[to] = true;
                    self.loops.push(Loop {
                        header: to,
                        body,
                        latches: Vec::new(),
                        parent: None,
                    });
                    self.loops.len() - 1
                });
                let found = &mut self.loops[at];
                found.latches.push(block);
                let mut todo = vec![block];
                while let Some(block) = todo.pop() {
                    if !std::mem::replace(&mut found.body[block], true) {
                        todo.extend(&self.preds[block]);
                    }
                }
            }
        }
        let size = |l: &Loop| l.body.iter().filter(|inside| **inside).count();
        self.loops.sort_by_key(size);
        for at in 0..self.loops.len() {
            let header = self.loops[at].header;
            let outer = (at + 1..self.loops.len()).find(|o| self.loops[*o].body[header]);
            self.loops[at].parent = outer;
        }
        for block in 0..self.inner.len() {
            self.inner[block] = self.loops.iter().position(|l| l.body[block]);
        }
        true
    }
}

/// Blocks in reverse postorder.
fn order(succs: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; succs.len()];
    let mut done = Vec::new();
    let mut stack = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, next)) = stack.last_mut() {
        match succs[*block].get(*next) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
            None => {
                done.push(*block);
                stack.pop();
            }
        }
    }
    done.reverse();
    done
}

/// The immediate dominator of each block.
fn dominators(order: &[usize], position: &[usize], preds: &[Vec<usize>]) -> Vec<usize> {
    let mut found = vec![NONE; preds.len()];
    found[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().skip(1) {
            let mut new = NONE;
            for &pred in preds[block].iter().filter(|p| found[**p] != NONE) {
                let (mut a, mut b) = (pred, if new == NONE { pred } else { new });
                while a != b {
                    match position[a] > position[b] {
                        true => a = found[a],
                        false => b = found[b],
                    }
                }
                new = a;
            }
            if found[block] != new {
                found[block] = new;
                changed = true;
            }
        }
    }
    found
}

/// Where a conditional jump goes if it jumps, and whether it then tests the negation of its name.
pub(crate) fn compared(op: Op) -> Option<(u8, u8, bool, bool)> {
    // Left, right, whether equal values count, whether the jump is taken unless it holds.
    match op {
        Op::JLt { l, r, .. } => Some((l.0, r.0, false, false)),
        Op::JNLt { l, r, .. } => Some((l.0, r.0, false, true)),
        Op::JLe { l, r, .. } => Some((l.0, r.0, true, false)),
        Op::JNLe { l, r, .. } => Some((l.0, r.0, true, true)),
        _ => None,
    }
}
