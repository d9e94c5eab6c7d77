//! Region exits: jumps that leave a region, or might, to entries of the same region, to
//! other regions through the jump cache, and back to the interpreter.

use super::code::op;
use super::context::{CONTEXT_JUMP_CACHE, ContextLayout, ENTRY_PC, ENTRY_TARGET};
use super::emit::{Emitter, Label, OptLevel, REGION, local};
use super::region::{End, MAX_INSTRUCTIONS, Region, Target};
use super::structure::members;
use crate::interp::inst::{Op, SINK};
use crate::mmu::tlb::{
    JUMP_CACHE_ENTRY_BYTES, JUMP_CACHE_FOLD, JUMP_CACHE_SHIFT, JUMP_CACHE_SLOTS, PAGE_MASK,
    TARGET_NODE_BITS,
};
use crate::ram::PAGE_SHIFT;

/// Register of the return address.
const RETURN_ADDRESS: u8 = 1;

/// Bits of an instruction count in an exit code.
const COUNT_BITS: u32 = 10;
const _: () = assert!(MAX_INSTRUCTIONS < 1 << COUNT_BITS);

/// Bits of an offset in the page, or of its size.
const OFFSET_BITS: u32 = PAGE_SHIFT + 1;

/// Encodes an exit: the offset, the kind, and the instructions to charge to the budget.
fn exit_code(offset: u16, kind: u32, used: u32) -> i32 {
    i32::from(offset) | (kind << OFFSET_BITS | used << (OFFSET_BITS + 1)) as i32
}

/// Encodes an exit to an address outside, relative to the page: no jump reaches farther
/// than 2^20 bytes.
fn outside_code(offset: i64, used: u32) -> i32 {
    (offset << COUNT_BITS) as i32 | used as i32
}

/// Whether a computed jump of a region is likely to stay in it: it returns from a call of
/// the region, or is not a return.
pub(super) fn returns(region: &Region) -> bool {
    let calls = region.nodes.iter().any(|node| {
        let last = node.steps.last();
        matches!(node.end, End::Go(Target::Node(_)))
            && last.is_some_and(|step| step.inst.op == Op::Jal && step.inst.rd != SINK)
    });
    region.nodes.iter().any(|node| {
        let last = node.steps.last();
        node.end == End::Jalr && (calls || last.is_some_and(|step| step.inst.rs1 != RETURN_ADDRESS))
    })
}

impl Emitter<'_> {
    /// Charges the number in the local to the budget.
    fn pay_cell(&mut self) {
        self.code.get(local::BUDGET).get(local::CELL);
        self.code.ops(&[op::I64_EXTEND_I32_U, op::I64_SUB]);
        self.code.set(local::BUDGET);
    }

    /// Charges the instructions up to the end of the block to the budget.
    pub(super) fn pay(&mut self) {
        let count = i64::from(self.uncharged + self.count);
        if count > 0 {
            self.code.get(local::BUDGET).i64(count).op(op::I64_SUB);
            self.code.set(local::BUDGET);
        }
    }

    /// Leaves if the number on the stack is not zero: for an offset, without the block's
    /// `unused` instructions.
    pub(super) fn exit_if(&mut self, offset: u16, kind: u32, unused: u32) {
        if self.opt_level == OptLevel::Size {
            self.flush();
        }
        self.unlikely().begin_if();
        self.exit(offset, kind, unused);
        self.end_if();
    }

    /// If the number on the stack is not zero, continues in a copy of the rest of the block
    /// in which each access has a separate look-up, from the current instruction on.
    pub(super) fn careful_if(&mut self) {
        let node = &self.region.nodes[self.node];
        let (count, rest, float_on) = (self.count, self.rest, self.float_on);
        self.unlikely().begin_if();
        self.is_careful = true;
        self.rest_of(node);
        self.is_careful = false;
        self.end_if();
        (self.count, self.rest, self.float_on) = (count, rest, float_on);
    }

    pub(super) fn exit(&mut self, offset: u16, kind: u32, unused: u32) {
        self.spill(self.dirty);
        let used = self.uncharged + self.count - unused;
        self.code.i32(exit_code(offset, kind, used));
        let depth = self.depth(|label| matches!(label, Label::Exit));
        self.code.branch(op::BR, depth.unwrap_or(0));
    }

    /// Continues at an address outside, relative to the page.
    pub(super) fn go_outside(&mut self, offset: i64) {
        self.code
            .i32(outside_code(offset, self.uncharged + self.count));
        let depth = self.depth(|label| matches!(label, Label::Outside));
        self.code.branch(op::BR, depth.unwrap_or(0));
    }

    /// Decodes an exit code on the stack: charges the budget, and pushes the address
    /// outside.
    pub(super) fn unpack_outside(&mut self) {
        self.code.tee(local::SLOT).i32((1 << COUNT_BITS) - 1);
        self.code.op(op::I32_AND).set(local::CELL);
        self.pay_cell();
        self.code.get(local::SLOT).i32(COUNT_BITS as i32);
        self.code.ops(&[op::I32_SHR_S, op::I64_EXTEND_I32_S]);
        self.code.get(local::PAGE).op(op::I64_ADD);
    }

    /// Decodes an exit code on the stack: stores the continuation to the hart, and pushes
    /// the region's result.
    pub(super) fn unpack_exit(&mut self) {
        self.code.set(local::SLOT);
        self.code.get(local::PAGE).get(local::SLOT);
        self.code.i32((1 << OFFSET_BITS) - 1);
        self.code.ops(&[op::I32_AND, op::I64_EXTEND_I32_U]);
        self.code.op(op::I64_ADD).set(local::VA);
        self.code.get(local::SLOT).i32(OFFSET_BITS as i32 + 1);
        self.code.op(op::I32_SHR_U).set(local::CELL);
        self.pay_cell();
        self.store_cursor();
        self.code.get(local::SLOT).i32(OFFSET_BITS as i32);
        self.code.op(op::I32_SHR_U).i32(1).op(op::I32_AND);
    }

    /// Stays in the region for the address on the stack if that is an entry and the budget
    /// allows it; otherwise leaves the address there.
    pub(super) fn restart(&mut self) {
        use local::{BUDGET, PAGE, TARGET, VA};
        let entries: Vec<usize> = members(self.region.entries).collect();
        let position = |node: &usize| u32::from(self.region.nodes[*node].offset) / 2;
        let positions: Vec<u32> = entries.iter().map(position).collect();
        let (Some(low), Some(high)) = (positions.first(), positions.last()) else {
            return;
        };
        let restart = self.depth(|label| matches!(label, Label::Restart));
        let restart = restart.unwrap_or(0);
        let code = &mut self.code;
        // One block around the code of each entry, and one around all.
        code.set(VA).open(op::BLOCK, None);
        code.get(BUDGET).i64(0).ops(&[op::I64_LE_S]);
        code.branch(op::BR_IF, 0);
        for _ in &entries {
            code.open(op::BLOCK, None);
        }
        let count = entries.len() as u32;
        // The distance in units of two bytes, which is out of range for every other page.
        code.get(VA).get(PAGE).op(op::I64_SUB);
        code.i64(i64::from(*low) * 2).op(op::I64_SUB).tee(local::A);
        code.i64(i64::from(high - low) * 2).op(op::I64_GT_U);
        code.branch(op::BR_IF, count);
        code.get(local::A)
            .i64(1)
            .ops(&[op::I64_SHR_U, op::I32_WRAP_I64]);
        code.op(op::BR_TABLE).unsigned(high - low + 1);
        for here in *low..=*high {
            let found = positions.binary_search(&here);
            code.unsigned(found.map_or(count, |at| at as u32));
        }
        code.unsigned(count);
        for (at, node) in entries.iter().enumerate() {
            code.op(op::END).i32(*node as i32).set(TARGET);
            code.branch(op::BR, count - at as u32 + restart);
        }
        code.op(op::END).get(VA);
    }

    /// Continues at the address in the local, if the jump cache has it and the budget
    /// allows it.
    pub(super) fn jump_indirect(&mut self) {
        use local::{BUDGET, CONTEXT, PAGE, SLOT, TARGET, VA};
        let code = &mut self.code;
        code.open(op::BLOCK, None);
        code.get(BUDGET).i64(0).op(op::I64_LE_S);
        code.branch(op::BR_IF, 0);
        code.get(VA).op(op::I32_WRAP_I64).tee(SLOT);
        code.i32(JUMP_CACHE_SHIFT as i32).op(op::I32_SHL);
        code.get(SLOT).i32(JUMP_CACHE_FOLD as i32).op(op::I32_SHR_U);
        let mask = (JUMP_CACHE_SLOTS - 1) * JUMP_CACHE_ENTRY_BYTES;
        code.op(op::I32_XOR).i32(mask as i32).op(op::I32_AND);
        // Where the slots of the table are, if that is constant.
        let table = match self.layout.user_tables() {
            Some(tables) => tables.jump_cache,
            None => {
                code.get(CONTEXT)
                    .memory(op::I32_LOAD, 2, CONTEXT_JUMP_CACHE);
                code.op(op::I32_ADD);
                0
            }
        };
        code.set(SLOT);
        code.open(op::BLOCK, None);
        code.get(SLOT).memory(op::I64_LOAD, 3, table + ENTRY_PC);
        code.get(VA).op(op::I64_EQ).branch(op::BR_IF, 0);
        code.get(SLOT)
            .i32(JUMP_CACHE_ENTRY_BYTES as i32)
            .op(op::I32_XOR);
        code.tee(SLOT).memory(op::I64_LOAD, 3, table + ENTRY_PC);
        code.get(VA).op(op::I64_NE).branch(op::BR_IF, 1);
        code.op(op::END).get(SLOT);
        code.memory(op::I32_LOAD, 2, table + ENTRY_TARGET)
            .set(TARGET);
        code.get(VA).i64(PAGE_MASK as i64);
        code.op(op::I64_AND).set(PAGE);
        match self.depth(|label| matches!(label, Label::Enter)) {
            // It may be in this function. The block is not among the labels.
            Some(enter) => {
                self.code.branch(op::BR, enter + 1);
            }
            None => self.enter_target(),
        }
        self.code.op(op::END);
    }

    /// Enters another function for the target in the local.
    pub(super) fn enter_target(&mut self) {
        use local::{BUDGET, CONTEXT, PAGE, TARGET};
        let code = &mut self.code;
        code.get(TARGET).get(PAGE).get(CONTEXT).get(BUDGET);
        code.get(TARGET).i32(TARGET_NODE_BITS as i32);
        code.op(op::I32_SHR_U);
        code.return_call_indirect(self.layout.types + REGION);
    }

    /// Stores address and budget to the hart.
    pub(super) fn store_cursor(&mut self) {
        let ContextLayout { pc, budget, .. } = *self.layout;
        self.code.i32(pc as i32).get(local::VA);
        self.code.memory(op::I64_STORE, 3, 0);
        self.code.i32(budget as i32).get(local::BUDGET);
        self.code.memory(op::I64_STORE, 3, 0);
    }
}
