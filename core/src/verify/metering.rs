//! Proves that no execution continues without being charged (security B04).
//!
//! Other checks ensure that prices are the sums of charges; this one proves that execution meets
//! charges. In each cost model, considering the blocks that cost nothing:
//!
//! * a cycle of free blocks is bounded: it takes items from an iteration that nothing in the cycle
//!   restarts, and ends when the items do;
//! * between two calls of program functions, and between the entry of a function and its first
//!   call, something is paid, unless the callee pays before it calls or returns. So neither
//!   recursion nor a tree of calls is free.
//!
//! An error refunds the price of the code that did not run. A block whose charges all come after an
//! instruction that can fail therefore counts as free where a handler may lead back to it.

use super::code::Jumps;
use super::codes::UNCHARGED_CODE;
use super::flow::each_written;
use super::regions::Handlers;
use super::{Check, Unit};
use crate::costs::CostModel;
use crate::program::{Charge, Function, Op, Program, Reg, Slot};
use crate::sig::BaseCost;

/// A function and the results of earlier checks.
pub(super) struct Checked<'a> {
    pub(super) unit: Unit<'a>,
    pub(super) jumps: Jumps,
    pub(super) handlers: Handlers,
}

/// Proves the module's claims for prices of ops; `None` once `stop` returns true.
pub(super) fn check(
    p: &Program,
    functions: &[Checked<'_>],
    costs: &[BaseCost],
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Check> {
    let mut ways = Vec::with_capacity(functions.len());
    for checked in functions {
        if stop() {
            return None;
        }
        ways.push(Ways::new(checked));
    }
    let mut proved = Vec::new();
    for model in [CostModel::Metered, CostModel::Flat] {
        let prices = Prices { p, model, costs };
        let mut free = Vec::with_capacity(functions.len());
        for (checked, ways) in functions.iter().zip(&ways) {
            if stop() {
                return None;
            }
            free.push(Free::new(checked.unit.f, ways, &prices));
        }
        // The proof depends only on which blocks are free, and these usually agree in both models.
        if free == proved {
            continue;
        }
        let graphs = || {
            ways.iter()
                .zip(&free)
                .map(|(ways, free)| Graph { ways, free })
        };
        let mut pays = Vec::with_capacity(functions.len());
        for graph in graphs() {
            if stop() {
                return None;
            }
            pays.push(graph.pays_first());
        }
        for (checked, graph) in functions.iter().zip(graphs()) {
            if stop() {
                return None;
            }
            let proved = check_cycles(checked, graph);
            if let Err(error) = proved.and_then(|()| check_calls(checked, graph, &pays)) {
                return Some(Err(error));
            }
        }
        proved = free;
    }
    Some(Ok(()))
}

struct Prices<'a> {
    p: &'a Program,
    model: CostModel,
    costs: &'a [BaseCost],
}

impl Prices<'_> {
    fn is_free(&self, f: &Function, charge: &Charge) -> bool {
        let step_cost = |step: u32| match self.costs.get(f.steps[step as usize].op as usize) {
            // A dynamic price is paid at the call, which the code may never reach.
            Some(cost) => cost.known_in(self.model),
            None => 0,
        };
        self.p.price(charge, self.model, step_cost) == 0
    }
}

/// One list per block, stored consecutively.
struct Lists<T> {
    all: Vec<T>,
    /// End of each block's list.
    ends: Vec<usize>,
}

impl<T> Lists<T> {
    fn new(blocks: usize) -> Lists<T> {
        Lists {
            all: Vec::with_capacity(blocks),
            ends: Vec::with_capacity(blocks),
        }
    }

    /// Last entry of the list under construction.
    fn last(&self) -> Option<&T> {
        self.all[self.ends.last().copied().unwrap_or(0)..].last()
    }

    /// Ends the list of the current block.
    fn end(&mut self) {
        self.ends.push(self.all.len());
    }

    fn of(&self, block: usize) -> &[T] {
        let start = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[block]]
    }
}

/// Control flow between the blocks of a function, independent of prices.
struct Ways {
    /// Jump and fall-through successors of each block.
    next: Lists<usize>,
    /// Error successors of each block.
    errors: Lists<usize>,
    /// Calls of program functions in each block.
    calls: Lists<u32>,
    /// True if the function can end in the block.
    ends: Vec<bool>,
    /// The first instruction of each block that can fail, or `u32::MAX`.
    fails_at: Vec<u32>,
}

impl Ways {
    fn new(checked: &Checked<'_>) -> Ways {
        let n = checked.unit.f.blocks.len();
        let mut ways = Ways {
            next: Lists::new(n),
            errors: Lists::new(if checked.handlers.block_of.is_empty() {
                0
            } else {
                n
            }),
            calls: Lists::new(0),
            ends: vec![false; n],
            fails_at: vec![u32::MAX; n],
        };
        (0..n).for_each(|number| ways.add(checked, number));
        ways
    }

    fn add(&mut self, checked: &Checked<'_>, number: usize) {
        let f = checked.unit.f;
        let block = f.blocks[number];
        let mut falls = true;
        for pc in block.start..block.end {
            let op = f.code[pc as usize];
            if self.fails_at[number] == u32::MAX && can_fail(op) {
                self.fails_at[number] = pc;
            }
            if let Some(&handler) = checked.handlers.block_of.get(pc as usize)
                && handler != u32::MAX
                && self.errors.last() != Some(&(handler as usize))
            {
                self.errors.all.push(handler as usize);
            }
            self.next.all.extend(checked.jumps.target(pc));
            if let Op::Call { callee, .. } = op {
                self.calls.all.push(callee.0);
            }
            if op.is_terminal() {
                self.ends[number] = !matches!(op, Op::Jmp { .. });
                falls = false;
                break;
            }
        }
        if falls && number + 1 < f.blocks.len() {
            self.next.all.push(number + 1);
        }
        self.next.end();
        self.errors.end();
        self.calls.end();
    }
}

/// The free blocks of a function in a cost model.
#[derive(PartialEq)]
struct Free {
    free: Vec<bool>,
    /// Free blocks that cost nothing only if they fail. Execution that leaves at their end has
    /// paid.
    given_back: Vec<bool>,
}

impl Free {
    fn new(f: &Function, ways: &Ways, prices: &Prices<'_>) -> Free {
        let n = f.blocks.len();
        let (mut free, mut given_back) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for number in 0..n {
            let mut charges = f.charges_of(number).iter();
            let paid_at = charges.find(|c| !prices.is_free(f, c)).map(|c| c.pc);
            let fails = !ways.errors.of(number).is_empty();
            let back = fails && paid_at.is_some_and(|paid| paid > ways.fails_at[number]);
            free.push(paid_at.is_none() || back);
            given_back.push(back);
        }
        Free { free, given_back }
    }
}

/// Control flow and free blocks of a function.
#[derive(Copy, Clone)]
struct Graph<'g> {
    ways: &'g Ways,
    free: &'g Free,
}

impl<'g> Graph<'g> {
    fn len(self) -> usize {
        self.free.free.len()
    }

    fn is_free(self, block: usize) -> bool {
        self.free.free[block]
    }

    fn calls(self, block: usize) -> &'g [u32] {
        self.ways.calls.of(block)
    }

    fn leads_to(self, block: usize) -> impl Iterator<Item = usize> + 'g {
        let errors = self.ways.errors.of(block);
        self.ways.next.of(block).iter().chain(errors).copied()
    }

    /// True if every path into the function pays before it calls or ends.
    fn pays_first(self) -> bool {
        let mut seen = vec![false; self.len()];
        let mut work = vec![0];
        while let Some(block) = work.pop() {
            if !self.is_free(block) || std::mem::replace(&mut seen[block], true) {
                continue;
            }
            if self.ways.ends[block] || !self.calls(block).is_empty() {
                return false;
            }
            work.extend(self.leads_to(block));
        }
        true
    }

    /// Successors that a block can reach for free any number of times. For a block that takes an
    /// item of an ending iteration, only the exit without an item. For a block whose price an error
    /// refunds, only its error successors.
    fn leads_free(
        self,
        block: usize,
        takes_item: bool,
    ) -> impl DoubleEndedIterator<Item = usize> + 'g {
        // Its first jump is that of `IterNext`.
        let ways = match (self.free.given_back[block], takes_item) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => usize::MAX,
        };
        let ways = self.ways.next.of(block).iter().take(ways);
        let all = ways.chain(self.ways.errors.of(block)).copied();
        all.filter(move |to| self.is_free(*to))
    }

    /// The cycles of free blocks, given which blocks take items of ending iterations: strongly
    /// connected components by Tarjan's algorithm with an explicit stack.
    fn cycles(self, takes_item: &[bool]) -> Vec<Vec<usize>> {
        let next = |b: usize| self.leads_free(b, takes_item[b]);
        let free = || (0..self.len()).filter(|b| self.is_free(*b));
        // Blocks are in code order, so a cycle needs a backward edge.
        if !free().any(|b| next(b).any(|to| to <= b)) {
            return Vec::new();
        }
        let mut search = Search::new(self.len());
        free().for_each(|root| search.from(root, next));
        search.sets
    }
}

/// Strongly connected components, without single blocks that do not lead to themselves.
struct Search {
    order: Vec<usize>,
    low: Vec<usize>,
    held: Vec<bool>,
    stack: Vec<usize>,
    count: usize,
    sets: Vec<Vec<usize>>,
}

impl Search {
    fn new(n: usize) -> Search {
        Search {
            order: vec![usize::MAX; n],
            low: vec![0; n],
            held: vec![false; n],
            stack: Vec::new(),
            count: 0,
            sets: Vec::new(),
        }
    }

    fn enter(&mut self, block: usize) {
        self.order[block] = self.count;
        self.low[block] = self.count;
        self.count += 1;
        self.held[block] = true;
        self.stack.push(block);
    }

    fn from<I: DoubleEndedIterator<Item = usize>>(
        &mut self,
        root: usize,
        next: impl Fn(usize) -> I,
    ) {
        if self.order[root] != usize::MAX {
            return;
        }
        self.enter(root);
        let mut path = vec![(root, next(root))];
        while let Some((block, rest)) = path.last_mut() {
            let block = *block;
            if let Some(to) = rest.next_back() {
                if self.order[to] == usize::MAX {
                    self.enter(to);
                    path.push((to, next(to)));
                } else if self.held[to] {
                    self.low[block] = self.low[block].min(self.order[to]);
                }
                continue;
            }
            path.pop();
            if let Some((above, _)) = path.last() {
                self.low[*above] = self.low[*above].min(self.low[block]);
            }
            if self.low[block] == self.order[block] {
                let at = self.stack.iter().rposition(|b| *b == block).unwrap_or(0);
                let set = self.stack.drain(at..);
                set.as_slice().iter().for_each(|b| self.held[*b] = false);
                if set.len() > 1 || next(block).any(|to| to == block) {
                    self.sets.push(set.collect());
                }
            }
        }
    }
}

/// True if an error may leave the instruction for a handler.
fn can_fail(op: Op) -> bool {
    !matches!(
        op,
        Op::Nop {}
            | Op::Fuel { .. }
            | Op::Mov { .. }
            | Op::MovBound { .. }
            | Op::MovDefined { .. }
            | Op::LoadK { .. }
            | Op::LoadArg { .. }
            | Op::Unbind { .. }
            | Op::SlotLoad { .. }
            | Op::SlotStore { .. }
            | Op::Not { .. }
            | Op::Jmp { .. }
            | Op::JTrue { .. }
            | Op::JFalse { .. }
            | Op::JNullish { .. }
            | Op::JPresent { .. }
            | Op::Catch { .. }
    )
}

fn check_cycles(checked: &Checked<'_>, graph: Graph<'_>) -> Check {
    let mut takes_item = vec![false; graph.len()];
    for cycle in graph.cycles(&takes_item) {
        let writes = Writes::of(checked, &cycle);
        for block in &cycle {
            takes_item[*block] = writes.bounds(checked, *block);
        }
    }
    match graph
        .cycles(&takes_item)
        .first()
        .and_then(|cycle| cycle.first())
    {
        None => Ok(()),
        Some(block) => {
            let start = checked.unit.f.blocks[*block].start;
            Err(checked
                .unit
                .refuse_at(UNCHARGED_CODE, start, "a loop that nothing charges"))
        }
    }
}

/// Registers and slots that a cycle's instructions write.
struct Writes {
    /// Registers written by any instruction except `IterNext` on its own iterator.
    registers: [bool; 256],
    /// Slots, with the instruction that writes each.
    slots: Vec<(Slot, u32)>,
    /// True if code that arrives at run time may write any variable.
    anything: bool,
}

impl Writes {
    fn of(checked: &Checked<'_>, cycle: &[usize]) -> Writes {
        let f = checked.unit.f;
        let mut writes = Writes {
            registers: [false; 256],
            slots: Vec::new(),
            anything: false,
        };
        for block in cycle {
            let block = f.blocks[*block];
            for pc in block.start..block.end {
                let op = f.code[pc as usize];
                match op {
                    Op::SlotStore { slot, .. } => writes.slots.push((slot, pc)),
                    Op::RunCode { .. } => writes.anything = true,
                    _ => {}
                }
                each_written(op, |r| writes.register(r));
                // `NewObj` makes its values storable in place.
                if let Op::NewObj { base, n, .. } = op {
                    let base = u32::from(base.0);
                    (base..base + u32::from(n.0)).for_each(|r| writes.register(r));
                }
            }
        }
        writes
    }

    fn register(&mut self, r: u32) {
        self.registers[(r & 255) as usize] = true;
    }

    /// True if the path past the block's first jump takes an item from an iteration that the cycle
    /// does not restart.
    fn bounds(&self, checked: &Checked<'_>, block: usize) -> bool {
        let f = checked.unit.f;
        let range = f.blocks[block];
        // Every execution of the block passes its first jump.
        let first = (range.start..range.end).find(|pc| {
            let op = f.code[*pc as usize];
            op.is_terminal() || checked.jumps.target(*pc).is_some()
        });
        let Some(pc) = first else { return false };
        let Op::IterNext { it, .. } = f.code[pc as usize] else {
            return false;
        };
        let own = |r: usize| !self.registers[r];
        !self.anything && ((own(it.at()) && own(it.at() + 1)) || self.waits_in_slots(f, pc, it))
    }

    /// Matches an iterator kept in slots: loaded directly before, its position stored directly
    /// after, and neither slot written by other code.
    fn waits_in_slots(&self, f: &Function, pc: u32, it: Reg) -> bool {
        let at = |n: i64| {
            let pc = i64::from(pc) + n;
            usize::try_from(pc)
                .ok()
                .and_then(|pc| f.code.get(pc))
                .copied()
        };
        let (
            Some(Op::SlotLoad {
                dst: array,
                slot: a,
            }),
            Some(Op::SlotLoad {
                dst: position,
                slot: b,
            }),
            Some(Op::SlotStore { src, slot }),
        ) = (at(-2), at(-1), at(1))
        else {
            return false;
        };
        let only_here = |(s, by): &(Slot, u32)| *s != a && (*s != b || *by == pc + 1);
        array == it
            && position.at() == it.at() + 1
            && src == position
            && slot == b
            && self.slots.iter().all(only_here)
    }
}

/// Checks that the caller or the callee pays for each call.
fn check_calls(checked: &Checked<'_>, graph: Graph<'_>, pays: &[bool]) -> Check {
    let unpaid = |block: usize| graph.calls(block).iter().any(|f| !pays[*f as usize]);
    if !(0..graph.len()).any(unpaid) {
        return Ok(());
    }
    // Blocks that may be entered without a payment since the last call.
    let mut entered = vec![false; graph.len()];
    let mut work = vec![0];
    let mut started = vec![false; graph.len()];
    for (block, started) in started.iter_mut().enumerate() {
        if !graph.calls(block).is_empty() {
            *started = true;
            work.extend(graph.leads_to(block));
        }
    }
    while let Some(block) = work.pop() {
        if std::mem::replace(&mut entered[block], true) || !graph.is_free(block) {
            continue;
        }
        if unpaid(block) {
            let start = checked.unit.f.blocks[block].start;
            return Err(checked.unit.refuse_at(
                UNCHARGED_CODE,
                start,
                "a call that nothing charges",
            ));
        }
        if !started[block] {
            work.extend(graph.leads_to(block));
        }
    }
    Ok(())
}
