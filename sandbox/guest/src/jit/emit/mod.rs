//! Code generator: compiles one or several regions to a WebAssembly function.
//!
//! Guest registers of the region are locals, loaded at their first use (or before loops
//! without calls, for all registers of the loop), because many regions are entered for a
//! few instructions. Changed registers are stored to the hart where control leaves, off the
//! main path, and where paths with different writes meet; for a loop without calls, only
//! after the loop. Functions optimised for size ([`OptLevel`]) store a register once,
//! before the next place where control may leave. The budget is a local too: a path charges
//! its instructions where other paths join or where it leaves. The heads of loops and jumps
//! out of the region leave when the budget is used up.
//!
//! Code of user mode finds TLBs and jump cache at constant addresses. In supervisor mode the
//! TLBs change with `sstatus.SUM`, and the VM context names the current ones.
//!
//! A computed jump to an entry stays in the region. Any other jump out of the region looks
//! its address up in the jump cache. On a hit, control continues there: in the function, if
//! that has the region, otherwise by a tail call.
//! Otherwise the function leaves with the next address and the budget in the cursor, and
//! returns whether the instruction there must be interpreted.

mod floats;
pub(super) mod ops;
mod registers;

use super::access::Groups;
use super::code::{self, Type, WasmCode, op};
use super::context::{CONTEXT_READ, CONTEXT_WRITE, ContextLayout};
use super::emit::ops::pack;
use super::exits::returns;
use super::region::{End, Node, Region, Target};
use super::structure::{Construct, Loop, members, structure};
use crate::interp::inst::Inst;
use crate::mmu::tlb::TARGET_NODE_BITS;

/// Result of a region: continue at the cursor, in the usual ways.
pub(crate) const JUMP: u32 = 0;
/// Result of a region: interpret the instruction at the cursor.
pub(crate) const INTERPRET: u32 = 1;

/// Locals of a function, parameters first.
pub(super) mod local {
    /// The region and node to enter at; then the node, and the start of the loop to enter.
    pub(crate) const TARGET: u32 = 0;
    /// Virtual address of the page.
    pub(crate) const PAGE: u32 = 1;
    /// The VM context.
    pub(crate) const CONTEXT: u32 = 2;
    /// Instructions that may still run.
    pub(crate) const BUDGET: u32 = 3;
    /// An address.
    pub(crate) const VA: u32 = 4;
    /// Scratch of single instructions.
    pub(crate) const A: u32 = 5;
    /// Scratch of single instructions.
    pub(crate) const B: u32 = 6;
    /// Scratch of single instructions.
    pub(crate) const C: u32 = 7;
    /// Scratch of single instructions.
    pub(crate) const D: u32 = 8;
    /// A slot of a TLB, an entry of the jump cache, or an exit code.
    pub(crate) const SLOT: u32 = 9;
    /// A linear address.
    pub(crate) const CELL: u32 = 10;
    /// The slots of the read TLB.
    pub(crate) const READ: u32 = 11;
    /// The slots of the write TLB.
    pub(crate) const WRITE: u32 = 12;
    /// First local of the guest's registers. They are followed by the linear addresses of
    /// access groups.
    pub(crate) const REGISTERS: u32 = 13;
}

/// The type of regions, the first of the module's.
pub(super) const REGION: u32 = 0;

/// The type of [helpers](super::Helpers), the second.
pub(super) const HELPER: u32 = 1;

/// Optimisation goal of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OptLevel {
    /// Fast: rare cases get copies of code, and registers are stored only where control
    /// leaves, at each such place.
    #[default]
    Speed,
    /// Small: rare cases leave, and registers are stored once, before the next place where
    /// control may leave.
    Size,
}

/// Target of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Label {
    /// Leaves, with the code on the stack.
    Exit,
    /// Leaves for an address outside, with the code on the stack.
    Outside,
    /// Leaves for the address on the stack.
    ExitTo,
    /// Leaves for the address on the stack, or stays if that is an entry.
    Computed,
    /// Enters again at the node in the local.
    Restart,
    /// Enters the region and node in the local.
    Enter,
    /// Right before a construct that edges enter at `targets`; the local selects among
    /// `starts`.
    Before { targets: u128, starts: u128 },
    /// Back to the start of a loop.
    Again { targets: u128, starts: u128 },
    /// Not a branch target.
    Other,
}

/// An open construct.
#[derive(Clone, Copy, Debug)]
struct Open {
    label: Label,
    /// Registers whose local is loaded on every path to its end.
    loaded: u32,
    /// Registers whose local may be newer than the hart's there.
    dirty: u32,
    /// Instructions that ran before it and were not charged to the budget.
    uncharged: u32,
    /// Whether only one jump leads there, which then determines `dirty` and `uncharged`.
    carries: bool,
}

/// Emits a function.
pub(super) struct Emitter<'a> {
    pub code: WasmCode,
    pub layout: &'a ContextLayout,
    pub region: &'a Region,
    pub opt_level: OptLevel,
    labels: Vec<Open>,
    /// Positions of branches that are seldom taken.
    hints: Vec<u32>,
    /// Heads of all loops, where the budget is checked.
    heads: u128,
    /// Blocks with one incoming jump.
    single: u128,
    /// The local of each guest register.
    registers: [Option<u32>; 32],
    /// Registers whose local is loaded.
    loaded: u32,
    /// Registers whose local may be newer than the hart's.
    pub dirty: u32,
    /// Dirty registers of the loop wherever its paths meet. All of them are loaded.
    base: u32,
    /// Instructions of the blocks before this one that were not charged to the budget.
    pub uncharged: u32,
    /// Number of instructions of the block.
    pub count: u32,
    /// Number of its instructions that have not begun.
    pub rest: u32,
    /// Whether the block has found floating point on.
    pub float_on: bool,
    /// Groups of accesses.
    pub groups: Groups,
    /// First local of the access groups.
    pub group_locals: u32,
    /// Maximum groups of a region so far.
    group_count: u32,
    /// Current block.
    pub node: usize,
    /// Whether each access has a separate look-up: the code is then a copy of the rest of a
    /// block, beside its usual path.
    pub is_careful: bool,
}

/// Emits a function with these regions, for a code section. The first is number `first` of
/// the function table, the others follow: jumps between them stay in the function.
pub(super) fn function(
    regions: &[Region],
    first: u32,
    layout: &ContextLayout,
    opt_level: OptLevel,
) -> Vec<u8> {
    let Some(region) = regions.first() else {
        return Vec::new();
    };
    let used = regions.iter().fold(0, |used, one| used | one.registers());
    let mut registers = [None; 32];
    let numbers = (1..32).filter(|number| used >> number & 1 == 1);
    for (number, local) in numbers.zip(local::REGISTERS..) {
        registers[number] = Some(local);
    }
    let mut emitter = Emitter {
        code: WasmCode::default(),
        layout,
        region,
        opt_level,
        labels: Vec::new(),
        hints: Vec::new(),
        heads: 0,
        single: 0,
        registers,
        loaded: 0,
        dirty: 0,
        base: 0,
        uncharged: 0,
        count: 0,
        rest: 0,
        float_on: false,
        groups: Groups::default(),
        group_locals: local::REGISTERS + used.count_ones(),
        group_count: 0,
        node: 0,
        is_careful: false,
    };
    emitter.function(regions, first);
    let locals = [
        (local::SLOT - local::VA, Type::I64),
        (local::REGISTERS - local::SLOT, Type::I32),
        (used.count_ones(), Type::I64),
        (emitter.group_count, Type::I32),
    ];
    code::function(&locals, &emitter.code, &emitter.hints)
}

fn heads(constructs: &[Construct]) -> u128 {
    constructs.iter().fold(0, |set, construct| match construct {
        Construct::Node(_) => set,
        Construct::Loop(inner) => set | inner.heads | heads(&inner.body),
    })
}

impl<'a> Emitter<'a> {
    fn function(&mut self, regions: &'a [Region], first: u32) {
        let count = regions.len() as u32;
        self.load_tlb_bases();
        self.open(op::BLOCK, Some(Type::I32), Label::Exit);
        if count > 1 {
            self.open(op::LOOP, Some(Type::I32), Label::Enter);
            self.open(op::BLOCK, None, Label::Other);
        }
        self.open(op::BLOCK, Some(Type::I64), Label::ExitTo);
        self.open(op::BLOCK, Some(Type::I32), Label::Outside);
        if count > 1 {
            for _ in regions {
                self.open(op::BLOCK, None, Label::Other);
            }
            self.code.get(local::TARGET).i32(TARGET_NODE_BITS as i32);
            self.code
                .op(op::I32_SHR_U)
                .i32(first as i32)
                .op(op::I32_SUB);
            self.code.op(op::BR_TABLE).unsigned(count);
            // Another region is beyond the labels of this function's exits.
            for depth in (0..count).chain([count + 2]) {
                self.code.unsigned(depth);
            }
        }
        for region in regions {
            if count > 1 {
                self.close();
            }
            self.region(region);
        }
        self.close();
        self.unpack_outside();
        self.close();
        self.code.set(local::VA);
        self.jump_indirect();
        self.store_cursor();
        self.code.i32(JUMP as i32).op(op::RETURN);
        if count > 1 {
            self.close();
            self.enter_target();
            self.close();
        }
        self.close();
        self.unpack_exit();
    }

    /// Emits the code of a region, which control does not leave at its end.
    fn region(&mut self, region: &'a Region) {
        let next: Vec<u128> = region
            .nodes
            .iter()
            .map(|node| node.next().fold(0, |set, next| set | 1 << next))
            .collect();
        let constructs = structure(&next, region.entries);
        self.region = region;
        self.heads = heads(&constructs);
        self.single = region.single() & !self.heads;
        let joined = match self.opt_level {
            OptLevel::Size => self.single,
            OptLevel::Speed => 0,
        };
        self.groups = Groups::find(region, joined);
        self.group_count = self.group_count.max(self.groups.len() as u32);
        self.code
            .get(local::TARGET)
            .i32((1 << TARGET_NODE_BITS) - 1);
        self.code.op(op::I32_AND).set(local::TARGET);
        // The others use the jump cache to return to themselves.
        let returns = self.opt_level == OptLevel::Speed && returns(region);
        if returns {
            self.open(op::LOOP, Some(Type::I64), Label::Restart);
            self.open(op::BLOCK, Some(Type::I64), Label::Computed);
        }
        self.sequence(&constructs, region.entries, 0);
        self.code.op(op::UNREACHABLE);
        if returns {
            self.close();
            self.restart();
            self.close();
            self.exit_to();
        }
    }

    /// Loads the positions of the current TLBs, unless they are constant.
    pub(super) fn load_tlb_bases(&mut self) {
        if self.layout.user_tables().is_some() {
            return;
        }
        for (offset, local) in [(CONTEXT_READ, local::READ), (CONTEXT_WRITE, local::WRITE)] {
            self.code.get(local::CONTEXT);
            self.code.memory(op::I32_LOAD, 2, offset).set(local);
        }
    }

    /// Calls a helper for an instruction, and pushes its result.
    pub(super) fn call(&mut self, helper: u32, inst: &Inst) {
        self.code.get(local::CONTEXT).i64(pack(inst));
        self.code.i32(helper as i32);
        self.code.call_indirect(self.layout.types + HELPER);
    }

    fn open(&mut self, opcode: u8, result: Option<Type>, label: Label) {
        self.code.open(opcode, result);
        let (loaded, dirty, uncharged) = match label {
            // No path has reached it yet.
            Label::Before { .. } => (u32::MAX, self.base, 0),
            Label::Again { .. } => (self.loaded, self.base, 0),
            _ => (self.loaded, self.dirty, self.uncharged),
        };
        let carries = matches!(label, Label::Before { targets, .. } if targets & !self.single == 0);
        self.labels.push(Open {
            label,
            loaded,
            dirty,
            uncharged,
            carries,
        });
    }

    fn close(&mut self) {
        self.code.op(op::END);
        if let Some(open) = self.labels.pop() {
            (self.loaded, self.dirty, self.uncharged) = (open.loaded, open.dirty, open.uncharged);
        }
    }

    /// Hints that the condition of the `if` that comes next seldom holds: its code is then
    /// laid out apart from the rest.
    pub(super) fn unlikely(&mut self) -> &mut Self {
        self.hints.push(self.code.bytes().len() as u32);
        self
    }

    /// Begins an `if` without a result, to be ended by [`Emitter::end_if`].
    pub(super) fn begin_if(&mut self) {
        self.open(op::IF, None, Label::Other);
    }

    /// Ends an `if`.
    pub(super) fn end_if(&mut self) {
        self.close();
    }

    /// Depth of the innermost matching label.
    pub(super) fn depth(&self, wanted: impl Fn(&Label) -> bool) -> Option<u32> {
        let mut labels = self.labels.iter().rev();
        let found = labels.position(|open| wanted(&open.label));
        found.map(|depth| depth as u32)
    }

    /// Emits constructs in order, each with a label before it. `starts` are the nodes at
    /// which the sequence can be entered: if there are several, the local selects one,
    /// mostly the first of `heads`.
    fn sequence(&mut self, constructs: &[Construct], starts: u128, heads: u128) {
        let dispatches = starts.count_ones() > 1;
        let first = usize::from(!dispatches);
        let labels: Vec<Label> = constructs.iter().map(before).collect();
        for label in labels.iter().skip(first).rev() {
            self.open(op::BLOCK, None, *label);
        }
        if dispatches {
            self.dispatch(constructs, starts, heads);
        }
        for (at, construct) in constructs.iter().enumerate() {
            if at >= first {
                self.close();
            }
            match construct {
                Construct::Node(node) => self.node(*node),
                Construct::Loop(inner) => self.loop_item(inner),
            }
        }
    }

    /// Jumps to the construct whose start is in the local. All labels of the sequence are
    /// open, the first construct's innermost.
    fn dispatch(&mut self, constructs: &[Construct], starts: u128, heads: u128) {
        let low = starts.trailing_zeros();
        let high = 128 - starts.leading_zeros();
        let holds = |node: u32| {
            constructs
                .iter()
                .position(|construct| construct.nodes() >> node & 1 == 1)
        };
        let depth = self.labels.len();
        for (open, construct) in self.labels[depth - constructs.len()..]
            .iter_mut()
            .rev()
            .zip(constructs)
        {
            if construct.nodes() & starts != 0 {
                open.loaded &= self.loaded;
            }
        }
        if let Some(head) = members(heads).next() {
            // Better predicted than the jump through a table.
            self.code.get(local::TARGET).i32(head as i32).op(op::I32_EQ);
            let depth = holds(head as u32).unwrap_or(0);
            self.code.branch(op::BR_IF, depth as u32);
        }
        self.code.get(local::TARGET);
        if low > 0 {
            self.code.i32(low as i32).op(op::I32_SUB);
        }
        self.code.op(op::BR_TABLE).unsigned(high - low);
        for node in low..=high {
            let is_start = node < high && starts >> node & 1 == 1;
            let depth = if is_start { holds(node) } else { holds(low) };
            self.code.unsigned(depth.unwrap_or(0) as u32);
        }
    }

    fn loop_item(&mut self, inner: &Loop) {
        let label = Label::Again {
            targets: inner.heads,
            starts: inner.starts,
        };
        let outside = self.base;
        self.base |= self.load_for_loop(inner);
        self.spill(self.dirty & !self.base);
        self.dirty = self.base;
        self.open(op::LOOP, None, label);
        self.sequence(&inner.body, inner.starts, inner.heads);
        self.close();
        self.base = outside;
    }

    fn node(&mut self, number: usize) {
        let region = self.region;
        let node = &region.nodes[number];
        self.node = number;
        self.float_on = false;
        (self.count, self.rest) = (0, 0);
        if self.heads >> number & 1 == 1 {
            self.code.get(local::BUDGET).i64(0).op(op::I64_LE_S);
            self.unlikely().begin_if();
            self.exit(node.offset, JUMP, 0);
            self.end_if();
        }
        self.count = node.steps.len() as u32;
        self.rest = self.count;
        self.rest_of(node);
    }

    /// Emits the instructions of a block that have not begun.
    pub(super) fn rest_of(&mut self, node: &Node) {
        let done = node.steps.len() - self.rest as usize;
        for step in &node.steps[done..] {
            self.step(step);
            self.rest -= 1;
        }
        self.end(node);
    }

    fn end(&mut self, node: &Node) {
        match node.end {
            End::Go(target) => self.go(target),
            End::Interpret(offset) => self.exit(offset, INTERPRET, 0),
            End::Branch { taken, fall } => {
                if self.pays(taken) && self.pays(fall) {
                    self.pay();
                    (self.uncharged, self.count) = (0, 0);
                }
                if let Some(step) = node.steps.last() {
                    self.condition(&step.inst);
                }
                self.begin_if();
                self.go(taken);
                self.end_if();
                self.go(fall);
            }
            // The step itself has left.
            End::Jalr => {}
        }
    }

    /// Continues at a target.
    fn go(&mut self, target: Target) {
        match target {
            Target::Node(node) => self.go_to_node(node),
            Target::Outside(offset) => {
                self.spill(self.dirty);
                self.go_outside(offset);
            }
        }
    }

    /// Depth of the label before a node.
    fn depth_of(&self, node: usize) -> Option<u32> {
        self.depth(|label| match label {
            Label::Before { targets, .. } | Label::Again { targets, .. } => {
                targets >> node & 1 == 1
            }
            _ => false,
        })
    }

    /// Whether the way there charges the uncharged instructions to the budget.
    fn pays(&self, target: Target) -> bool {
        let Target::Node(node) = target else {
            return false;
        };
        let depth = self.depth_of(node).unwrap_or(0) as usize;
        let open = self.labels.iter().nth_back(depth);
        open.is_some_and(|open| !open.carries)
    }

    fn go_to_node(&mut self, node: usize) {
        let Some(depth) = self.depth_of(node) else {
            // Every edge of the graph has a label, so this is unreachable.
            self.code.op(op::UNREACHABLE);
            return;
        };
        let at = self.labels.len() - 1 - depth as usize;
        let open = &mut self.labels[at];
        open.loaded &= self.loaded;
        if open.carries {
            open.dirty = self.dirty;
            open.uncharged = self.uncharged + self.count;
        }
        let Open {
            label,
            dirty,
            carries,
            ..
        } = *open;
        if !carries {
            self.pay();
        }
        let (Label::Before { starts, .. } | Label::Again { starts, .. }) = label else {
            return;
        };
        self.spill(self.dirty & !dirty);
        if starts.count_ones() > 1 {
            self.code.i32(node as i32).set(local::TARGET);
        }
        self.code.branch(op::BR, depth);
    }

    /// Continues at the computed address on the stack.
    pub(super) fn jump(&mut self) {
        let computed = self.depth(|label| matches!(label, Label::Computed));
        match computed {
            Some(depth) => {
                self.code.branch(op::BR, depth);
            }
            None => self.exit_to(),
        }
    }

    /// Leaves for the address on the stack.
    fn exit_to(&mut self) {
        let depth = self.depth(|label| matches!(label, Label::ExitTo));
        self.code.branch(op::BR, depth.unwrap_or(0));
    }
}

/// The label before a construct.
fn before(construct: &Construct) -> Label {
    let (targets, starts) = match construct {
        Construct::Node(node) => (1 << node, 0),
        Construct::Loop(inner) => (inner.heads, inner.starts),
    };
    Label::Before { targets, starts }
}
