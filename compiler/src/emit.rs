//! Code of one function under construction: instructions, labels, blocks, charges, places.
//!
//! A block begins with its [`Op::Fuel`] as soon as an instruction is emitted after a label or a
//! jump. Charges are collected and attach to the next instruction. A label between a charge and
//! its instruction gets a [`Op::Nop`] first, so that only the path that owes the charge pays.

use a99_core::json::NodeId;
use a99_core::program::{
    Block, BlockIdx, Charge, ChargeKind, ConstIdx, Function, Handler, MAX_BLOCK, Op, Reg,
    SourceLocation, Step, Target, Wrap, ops,
};

/// A jump target that may not be placed yet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label(u32);

/// Blocks are cut after this many instructions or charges, so that no block is a long stretch
/// without a yield point.
const LONG_BLOCK: u32 = MAX_BLOCK / 2;

/// Registers from here down hold constants of loops until the function ends.
const PIN_TOP: u8 = 239;

/// Constants that are kept in registers at most.
const MAX_PINNED: usize = 32;

/// Variables and temporaries stay below this register.
pub(crate) const MAX_REGISTER: u8 = PIN_TOP - MAX_PINNED as u8;

const UNPLACED: u32 = u32::MAX;

pub(crate) struct Emitter<'w> {
    pub f: Function,
    labels: Vec<u32>,
    fixups: Vec<(u32, Label)>,
    handlers: Vec<(u32, u32, Label)>,
    pending: Vec<(u32, ChargeKind)>,
    open: bool,
    pub at: Option<(NodeId, Option<(u32, u32)>)>,
    /// The innermost open step.
    pub step: u32,
    pinned: Vec<ConstIdx>,
    /// How much may still be emitted; see [`Emitter::spend`].
    pub room: Room<'w>,
}

/// Instructions between two checks for cancellation.
const ASK_EVERY: u32 = 64;

/// The code budget of a program.
///
/// It bounds the size of code by that of its source, and the time between two checks for
/// cancellation.
pub(crate) struct Room<'w> {
    /// Instructions, and other output that grows with the code.
    left: usize,
    asked: u32,
    watch: &'w (dyn Fn() -> bool + Sync),
    /// Why compilation ended: the budget is used up, at this place, or the caller cancelled.
    pub end: Option<End>,
}

/// Why no more code is emitted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    TooLarge(Option<NodeId>),
    Stopped,
}

impl<'w> Room<'w> {
    pub(crate) fn new(left: usize, watch: &'w (dyn Fn() -> bool + Sync)) -> Room<'w> {
        Room {
            left,
            asked: 0,
            watch,
            end: None,
        }
    }

    /// Takes `amount` of the budget; `false` once compilation has ended.
    pub(crate) fn spend(&mut self, amount: usize, at: Option<NodeId>) -> bool {
        self.asked += 1;
        if self.asked >= ASK_EVERY || amount >= ASK_EVERY as usize {
            self.asked = 0;
            if self.end.is_none() && (self.watch)() {
                self.end = Some(End::Stopped);
            }
        }
        match self.left.checked_sub(amount) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                self.end = self.end.or(Some(End::TooLarge(at)));
            }
        }
        self.end.is_none()
    }
}

impl<'w> Emitter<'w> {
    /// An emitter with capacity for about `code` instructions.
    pub(crate) fn new(room: Room<'w>, code: usize) -> Emitter<'w> {
        let mut e = Emitter {
            f: Function {
                code: Vec::with_capacity(code),
                blocks: Vec::with_capacity(code / 8),
                charges: Vec::with_capacity(code / 2),
                steps: Vec::with_capacity(code / 4),
                places: Vec::with_capacity(code / 2),
                ..Function::default()
            },
            labels: Vec::new(),
            fixups: Vec::new(),
            handlers: Vec::new(),
            pending: Vec::with_capacity(8),
            open: false,
            at: None,
            step: u32::MAX,
            pinned: Vec::new(),
            room,
        };
        // Becomes a jump to the loads of pinned constants, if there are any.
        e.emit(Op::Nop {});
        e
    }

    pub(crate) fn pc(&self) -> u32 {
        self.f.code.len() as u32
    }

    /// Takes budget for output of the current place other than code. Once it returns `false`, the
    /// caller stops.
    pub(crate) fn spend(&mut self, amount: usize) -> bool {
        self.room.spend(amount, self.at.map(|at| at.0))
    }

    /// Whether compilation has ended: code emitted from now on is discarded, because the program is
    /// rejected.
    pub(crate) fn is_over(&self) -> bool {
        self.room.end.is_some()
    }

    pub(crate) fn emit(&mut self, op: Op) {
        if !self.spend(1) {
            self.pending.clear();
            return;
        }
        if self.open {
            let block = self.f.blocks.last().expect("an open block");
            let charges = self.f.charges.len() as u32 - block.charges;
            if self.pc() - block.start > LONG_BLOCK || charges > LONG_BLOCK {
                self.close();
            }
        }
        if !self.open {
            let block = self.f.blocks.len() as u32;
            let charges = self.f.charges.len() as u32;
            self.f.blocks.push(Block {
                start: self.pc(),
                end: 0,
                charges,
                price: 0,
            });
            self.open = true;
            self.note_place();
            self.f.code.push(Op::Fuel {
                block: BlockIdx(block),
            });
        }
        let pc = self.pc();
        for (step, kind) in self.pending.drain(..) {
            self.f.charges.push(Charge { pc, step, kind });
        }
        self.note_place();
        self.f.code.push(op);
        if op.is_terminal() || op.jumps() {
            self.close();
        }
    }

    fn note_place(&mut self) {
        if let Some((node, inner)) = self.at {
            let same = self
                .f
                .places
                .last()
                .is_some_and(|p| p.node == node && p.inner == inner);
            if !same {
                self.f.places.push(SourceLocation {
                    pc: self.pc(),
                    node,
                    inner,
                });
            }
        }
    }

    fn close(&mut self) {
        if self.open {
            self.open = false;
            let end = self.pc();
            if let Some(block) = self.f.blocks.last_mut() {
                block.end = end;
            }
        }
    }

    // ---- labels ----

    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(UNPLACED);
        Label(self.labels.len() as u32 - 1)
    }

    pub(crate) fn bind(&mut self, label: Label) {
        self.flush();
        self.close();
        self.labels[label.0 as usize] = self.pc();
    }

    /// A label placed here.
    pub(crate) fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    /// Emits a jump; its target operand is filled in at the end.
    pub(crate) fn jump(&mut self, op: Op, to: Label) {
        // A new block may begin first, so the fixup is noted after the emit.
        self.emit(op);
        if !self.is_over() {
            self.fixups.push((self.pc() - 1, to));
        }
    }

    // ---- charges and steps ----

    pub(crate) fn charge(&mut self, kind: ChargeKind) {
        self.charge_for(self.step, kind);
    }

    pub(crate) fn charge_for(&mut self, step: u32, kind: ChargeKind) {
        if let Some((last_step, last)) = self.pending.last_mut()
            && *last_step == step
        {
            match (last, kind) {
                (ChargeKind::Nodes(n), ChargeKind::Nodes(m))
                | (ChargeKind::TextNodes(n), ChargeKind::TextNodes(m))
                    if *n < u16::MAX - m =>
                {
                    *n += m;
                    return;
                }
                _ => {}
            }
        }
        self.pending.push((step, kind));
    }

    /// Attaches pending charges to an instruction.
    pub(crate) fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.emit(Op::Nop {});
        }
    }

    pub(crate) fn open_step(&mut self, op: u32, node: NodeId, implicit: bool, scope: u32) -> u32 {
        let id = self.f.steps.len() as u32;
        self.f.steps.push(Step {
            parent: self.step,
            start: self.pc(),
            end: 0,
            op,
            node,
            implicit,
            scope,
            value: u8::MAX,
        });
        self.step = id;
        self.pending.push((id, ChargeKind::Step));
        id
    }

    /// Ends the innermost step; `value` is the register with its value.
    pub(crate) fn close_step(&mut self, id: u32, value: Option<Reg>) {
        self.flush();
        let pc = self.pc();
        let step = &mut self.f.steps[id as usize];
        debug_assert!(
            step.start < pc || self.room.end.is_some(),
            "a step has at least one instruction"
        );
        step.end = pc;
        step.value = value.map_or(u8::MAX, |value| value.0);
        self.step = step.parent;
    }

    /// Covers the code from `start` to here with a handler.
    pub(crate) fn protect(&mut self, start: u32, handler: Label) {
        if start < self.pc() {
            self.handlers.push((start, self.pc(), handler));
        }
    }

    pub(crate) fn wrap(&mut self, start: u32, prefix: u32) {
        self.flush();
        if start < self.pc() {
            self.f.wraps.push(Wrap {
                start,
                end: self.pc(),
                prefix,
            });
        }
    }

    // ---- constants in registers ----

    /// A register that holds a constant for the whole function, if one is left.
    pub(crate) fn pin(&mut self, k: ConstIdx) -> Option<Reg> {
        if let Some(i) = self.pinned.iter().position(|p| *p == k) {
            return Some(Reg(PIN_TOP - i as u8));
        }
        if self.pinned.len() == MAX_PINNED {
            return None;
        }
        self.pinned.push(k);
        Some(Reg(PIN_TOP - (self.pinned.len() - 1) as u8))
    }

    /// Ends the function: places labels, loads pinned constants, moves their registers next to the
    /// others.
    pub(crate) fn finish(mut self, registers: u8, slots: u32) -> (Function, Room<'w>) {
        self.flush();
        self.close();
        if self.is_over() {
            return (self.f, self.room);
        }
        if !self.pinned.is_empty() {
            self.at = None;
            let body = self.label();
            let first = self.f.code[0];
            debug_assert_eq!(first, Op::Fuel { block: BlockIdx(0) });
            // Split block 0 after its Nop, which becomes the jump out.
            self.split_entry();
            self.labels[body.0 as usize] = 2;
            let prologue = self.here();
            for (i, k) in std::mem::take(&mut self.pinned).into_iter().enumerate() {
                self.emit(Op::LoadK {
                    dst: Reg(PIN_TOP - i as u8),
                    k,
                });
            }
            self.jump(Op::Jmp { to: Target(0) }, body);
            self.f.code[1] = Op::Jmp { to: Target(0) };
            self.fixups.push((1, prologue));
            if self.is_over() {
                return (self.f, self.room);
            }
            let pinned = self.f.registers;
            debug_assert_eq!(pinned, 0);
            self.move_pinned(registers);
        }
        for (pc, label) in &self.fixups {
            let to = self.labels[label.0 as usize];
            debug_assert_ne!(to, UNPLACED);
            self.f.code[*pc as usize].set_target(Target(to));
        }
        let placed = |l: Label| self.labels[l.0 as usize];
        self.f.handlers = self
            .handlers
            .iter()
            .map(|(start, end, label)| Handler {
                start: *start,
                end: *end,
                target: placed(*label),
            })
            .collect();
        self.f.registers = self.f.registers.max(registers);
        self.f.slots = slots;
        (self.f, self.room)
    }

    /// Splits the entry `Fuel, Nop` into a separate block, with a new head for the code after it.
    fn split_entry(&mut self) {
        if self.f.blocks[0].end == 2 {
            return;
        }
        self.f.code.insert(2, Op::Fuel { block: BlockIdx(1) });
        let shift = |pc: &mut u32| {
            if *pc >= 2 {
                *pc += 1;
            }
        };
        for op in &mut self.f.code[3..] {
            if let Op::Fuel { block } = op {
                block.0 += 1;
            }
        }
        let first = self.f.blocks[0];
        for b in &mut self.f.blocks[1..] {
            shift(&mut b.start);
            shift(&mut b.end);
        }
        self.f.blocks[0].end = 2;
        let mut rest = first;
        rest.start = 2;
        shift(&mut rest.end);
        self.f.blocks.insert(1, rest);
        for c in &mut self.f.charges {
            shift(&mut c.pc);
        }
        for s in &mut self.f.steps {
            shift(&mut s.start);
            shift(&mut s.end);
        }
        for w in &mut self.f.wraps {
            shift(&mut w.start);
            shift(&mut w.end);
        }
        for p in &mut self.f.places {
            shift(&mut p.pc);
        }
        for l in &mut self.labels {
            if *l != UNPLACED {
                shift(l);
            }
        }
        for (start, end, _) in &mut self.handlers {
            shift(start);
            shift(end);
        }
        for (pc, _) in &mut self.fixups {
            shift(pc);
        }
    }

    /// Renames the registers of pinned constants to follow the others.
    fn move_pinned(&mut self, registers: u8) {
        let low = PIN_TOP - (MAX_PINNED as u8 - 1);
        let mut high = registers;
        for op in &mut self.f.code {
            let mut bytes = op.encode();
            // Most instructions have no byte that could be such a register.
            if bytes[1..4].iter().all(|byte| *byte < low) {
                continue;
            }
            let info = ops::TABLE[op.code() as usize].operands;
            let mut changed = false;
            for (i, (_, kind)) in info.iter().enumerate() {
                if kind.is_register() && bytes[1 + i] >= low {
                    let new = registers + (PIN_TOP - bytes[1 + i]);
                    high = high.max(new + 1);
                    bytes[1 + i] = new;
                    changed = true;
                }
            }
            if changed && let Some(new) = Op::decode(bytes) {
                *op = new;
            }
        }
        self.f.registers = high;
    }
}
