//! Code generation for single instructions.

use crate::hart::NO_RESERVATION;
use crate::hart::csr;
use crate::interp::inst::{Inst, Op};
use crate::jit::code::op::*;
use crate::jit::context::{ADDEND, CONTEXT_EXEC, SLOT_SHIFT, TAG};
use crate::jit::emit::{Emitter, INTERPRET, OptLevel, local};
use crate::jit::region::Step;
use crate::mmu::tlb::{DATA_SLOTS, HASH_FOLD, MICRO_OFFSET, PAGE_MASK};
use crate::ram::{PAGE_SHIFT, PAGE_SIZE};

/// Maximum instructions left of a block in which a group may cross a page without leaving
/// to the interpreter.
const MAX_APART: u32 = 16;

/// Packs an instruction for a helper.
pub(crate) fn pack(inst: &Inst) -> i64 {
    let fields = [inst.op as u8, inst.rd, inst.rs1, inst.rs2];
    let [b0, b1, b2, b3] = inst.imm.to_le_bytes();
    let [op, rd, rs1, rs2] = fields;
    i64::from_le_bytes([op, rd, rs1, rs2, b0, b1, b2, b3])
}

/// Unpacks an instruction that the translator packed for a helper.
#[cfg(any(test, target_arch = "wasm32"))]
pub(crate) fn unpack(bits: u64) -> Inst {
    let [op, rd, rs1, rs2, b0, b1, b2, b3] = bits.to_le_bytes();
    Inst {
        op: Op::ALL.get(usize::from(op)).copied().unwrap_or(Op::Illegal),
        rd,
        rs1,
        rs2,
        imm: i32::from_le_bytes([b0, b1, b2, b3]),
    }
}

impl Emitter<'_> {
    /// Emits one instruction, except for the branch that ends its block.
    pub(crate) fn step(&mut self, step: &Step) {
        use Op::*;
        if step.crosses_page() {
            self.check_next_page(step);
        }
        let inst = &step.inst;
        let imm = i64::from(inst.imm);
        match inst.op {
            Nop | Beq | Bne | Blt | Bge | Bltu | Bgeu => {}
            Lui => {
                self.code.i64(imm);
                self.write(inst.rd);
            }
            Auipc => {
                self.code.get(local::PAGE);
                self.code.i64(i64::from(step.offset) + imm).op(I64_ADD);
                self.write(inst.rd);
            }
            Jal => self.link(step),
            Jalr => {
                self.read(inst.rs1);
                self.code.i64(imm).op(I64_ADD).i64(-2).op(I64_AND);
                self.code.set(local::VA);
                self.link(step);
                self.flush();
                self.pay();
                self.code.get(local::VA);
                self.jump();
            }
            Lb | Lh | Lw | Ld | Lbu | Lhu | Lwu => self.load(step),
            Sb | Sh | Sw | Sd => self.store(step),
            LrW | LrD | ScW | ScD => self.reserved(step),
            op if is_amo(op) => self.amo(step),
            Flw | Fld | Fsw | Fsd => self.float_memory(step),
            op if op >= FmaddS => self.float(step),
            Addi | Slti | Sltiu | Xori | Ori | Andi | Slli | Srli | Srai | Addiw | Slliw
            | Srliw | Sraiw => {
                self.read(inst.rs1);
                self.code.i64(imm);
                self.simple(inst.op);
                self.write(inst.rd);
            }
            Csrrw | Csrrs | Csrrc | Csrrwi | Csrrsi | Csrrci => self.csr(step),
            Mulh | Mulhsu | Mulhu => self.high_product(inst),
            Div | Divu | Rem | Remu | Divw | Divuw | Remw | Remuw => self.divide(inst),
            _ => {
                self.read(inst.rs1);
                self.read(inst.rs2);
                self.simple(inst.op);
                self.write(inst.rd);
            }
        }
    }

    /// Leaves to the interpreter unless the next page is executable and begins with the half
    /// of the instruction that was translated. Which page that is, may change between runs,
    /// and what it holds, too.
    fn check_next_page(&mut self, step: &Step) {
        self.code.get(local::PAGE).i64(PAGE_SIZE as i64);
        self.code.op(I64_ADD).set(local::VA);
        let table = self.misses(false, 2);
        let exec = match self.layout.user_tables() {
            Some(tables) => {
                self.code.get(local::SLOT);
                tables.exec
            }
            None => {
                self.code.get(local::SLOT).get(local::READ).op(I32_SUB);
                self.code.get(local::CONTEXT);
                self.code.memory(I32_LOAD, 2, CONTEXT_EXEC).op(I32_ADD);
                0
            }
        };
        self.code.memory(I64_LOAD, 3, exec + TAG);
        self.code.get(local::VA).ops(&[I64_NE, I32_OR]);
        self.exit_if(step.offset, INTERPRET, self.rest);
        self.found(table);
        self.code.memory(I64_LOAD16_U, 1, self.layout.ram);
        self.code.i64(self.region.next_half.into()).op(I64_NE);
        self.exit_if(step.offset, INTERPRET, self.rest);
    }

    /// An instruction on a control and status register.
    fn csr(&mut self, step: &Step) {
        let inst = &step.inst;
        if matches!(inst.op, Op::Csrrw | Op::Csrrs | Op::Csrrc) {
            self.write_back(inst.rs1);
        }
        // The call replaces or preserves it.
        self.write_back(inst.rd);
        self.call(self.layout.helpers.csr, inst);
        self.code.op(I32_EQZ);
        self.exit_if(step.offset, INTERPRET, self.rest);
        self.reload(inst.rd);
        // Floating point may be off now.
        self.float_on = false;
        if csr::may_change_mmu_index(inst) {
            self.load_tlb_bases();
        }
    }

    /// Writes the address of the next instruction to the destination.
    fn link(&mut self, step: &Step) {
        let after = i64::from(step.offset) + i64::from(step.length);
        self.code.get(local::PAGE).i64(after).op(I64_ADD);
        self.write(step.inst.rd);
    }

    /// Computes a result from two numbers on the stack.
    fn simple(&mut self, op: Op) {
        use Op::*;
        let word = [I64_EXTEND32_S];
        // Shifts of words: the amount is five bits.
        let amount = |code: &mut crate::jit::code::WasmCode| {
            code.i64(31).op(I64_AND);
        };
        let code = &mut self.code;
        match op {
            Add | Addi => code.op(I64_ADD),
            Sub => code.op(I64_SUB),
            And | Andi => code.op(I64_AND),
            Or | Ori => code.op(I64_OR),
            Xor | Xori => code.op(I64_XOR),
            Sll | Slli => code.op(I64_SHL),
            Srl | Srli => code.op(I64_SHR_U),
            Sra | Srai => code.op(I64_SHR_S),
            Slt | Slti => code.ops(&[I64_LT_S, I64_EXTEND_I32_U]),
            Sltu | Sltiu => code.ops(&[I64_LT_U, I64_EXTEND_I32_U]),
            Addw | Addiw => code.op(I64_ADD).ops(&word),
            Subw => code.op(I64_SUB).ops(&word),
            Mul => code.op(I64_MUL),
            Mulw => code.op(I64_MUL).ops(&word),
            Sllw | Slliw => {
                amount(code);
                code.op(I64_SHL).ops(&word)
            }
            Srlw | Srliw | Sraw | Sraiw => {
                amount(code);
                let is_signed = matches!(op, Sraw | Sraiw);
                code.set(local::B);
                if is_signed {
                    code.ops(&word);
                } else {
                    code.i64(0xffff_ffff).op(I64_AND);
                }
                code.get(local::B)
                    .op(I64_SHR_U_OR_S[usize::from(is_signed)]);
                code.ops(&word)
            }
            // Unreachable: `step` lists all operations.
            _ => code.op(UNREACHABLE),
        };
    }

    /// The high half of a product, from four products of halves.
    fn high_product(&mut self, inst: &Inst) {
        use local::{A, B, C, D};
        self.read(inst.rs1);
        self.code.set(A);
        self.read(inst.rs2);
        self.code.set(B);
        let code = &mut self.code;
        const LOW: i64 = 0xffff_ffff;
        // C = high(A) * low(B) + high of (low(A) * low(B))
        code.get(A).i64(32).op(I64_SHR_U);
        code.get(B).i64(LOW).op(I64_AND).op(I64_MUL);
        code.get(A).i64(LOW).op(I64_AND);
        code.get(B).i64(LOW).op(I64_AND).op(I64_MUL);
        code.i64(32).ops(&[I64_SHR_U, I64_ADD]).set(C);
        // D = low(A) * high(B) + low(C)
        code.get(A).i64(LOW).op(I64_AND);
        code.get(B).i64(32).ops(&[I64_SHR_U, I64_MUL]);
        code.get(C).i64(LOW).ops(&[I64_AND, I64_ADD]).set(D);
        // high(A) * high(B) + high(C) + high(D)
        code.get(A).i64(32).op(I64_SHR_U);
        code.get(B).i64(32).ops(&[I64_SHR_U, I64_MUL]);
        code.get(C).i64(32).ops(&[I64_SHR_U, I64_ADD]);
        code.get(D).i64(32).ops(&[I64_SHR_U, I64_ADD]);
        // A negative factor counted 2^64 too much.
        let mut correct = |sign: u32, other: u32| {
            code.get(sign).i64(63).op(I64_SHR_S);
            code.get(other).ops(&[I64_AND, I64_SUB]);
        };
        if inst.op != Op::Mulhu {
            correct(A, B);
        }
        if inst.op == Op::Mulh {
            correct(B, A);
        }
        self.write(inst.rd);
    }

    /// Divides, with the manual's results for a zero divisor and for overflow. Words are
    /// divided as extended to 64 bits.
    fn divide(&mut self, inst: &Inst) {
        use Op::*;
        use local::{A, B};
        let is_word = matches!(inst.op, Divw | Divuw | Remw | Remuw);
        let is_signed = matches!(inst.op, Div | Rem | Divw | Remw);
        let is_rest = matches!(inst.op, Rem | Remu | Remw | Remuw);
        for (register, local) in [(inst.rs1, A), (inst.rs2, B)] {
            self.read(register);
            match (is_word, is_signed) {
                (true, true) => self.code.op(I64_EXTEND32_S),
                (true, false) => self.code.i64(0xffff_ffff).op(I64_AND),
                _ => &mut self.code,
            };
            self.code.set(local);
        }
        let code = &mut self.code;
        let result = Some(crate::jit::code::Type::I64);
        code.get(B).op(I64_EQZ).open(IF, result);
        if is_rest {
            code.get(A);
        } else {
            code.i64(-1);
        }
        code.op(ELSE);
        if is_signed {
            // The only overflow is that of a division by minus one.
            code.get(B).i64(-1).op(I64_EQ).open(IF, result);
            code.i64(0);
            if !is_rest {
                code.get(A).op(I64_SUB);
            }
            code.op(ELSE);
        }
        code.get(A).get(B).op(match (is_signed, is_rest) {
            (true, false) => I64_DIV_S,
            (true, true) => I64_REM_S,
            (false, false) => I64_DIV_U,
            (false, true) => I64_REM_U,
        });
        if is_signed {
            code.op(END);
        }
        code.op(END);
        if is_word {
            code.op(I64_EXTEND32_S);
        }
        self.write(inst.rd);
    }

    /// Pushes the RAM offset of an access of `1 << align` bytes at the address in the
    /// local, or leaves to the interpreter if it misses the TLB or is misaligned.
    fn translate(&mut self, step: &Step, align: u8, is_write: bool) {
        let table = self.find_slot(is_write);
        let tag = PAGE_MASK | ((1 << align) - 1);
        let code = &mut self.code;
        code.get(local::SLOT).memory(I64_LOAD, 3, table + TAG);
        code.get(local::VA).i64(tag as i64).ops(&[I64_AND, I64_NE]);
        self.exit_if(step.offset, INTERPRET, self.rest);
        self.found(table);
    }

    /// Finds the slot of the page of the address in the local, and stores its position and
    /// the low bits of the address in locals. Returns what uses of the position must add.
    fn find_slot(&mut self, is_write: bool) -> u32 {
        let mask = (DATA_SLOTS as i32 - 1) << SLOT_SHIFT;
        let code = &mut self.code;
        code.get(local::VA).op(I32_WRAP_I64).tee(local::CELL);
        code.get(local::CELL).i32(HASH_FOLD as i32).op(I32_SHR_U);
        code.op(I32_XOR);
        // The slot times its size.
        code.i32((PAGE_SHIFT - SLOT_SHIFT) as i32).op(I32_SHR_U);
        code.i32(mask).op(I32_AND);
        let table = match self.layout.user_tables() {
            Some(tables) if is_write => tables.write,
            Some(tables) => tables.read,
            None => {
                let tlb = if is_write { local::WRITE } else { local::READ };
                code.get(tlb).op(I32_ADD);
                0
            }
        };
        code.set(local::SLOT);
        table
    }

    /// Pushes whether the page of the address in the local misses the TLB, or `span` bytes
    /// from there cross a page. Returns what [`Emitter::find_slot`] does.
    fn misses(&mut self, is_write: bool, span: i64) -> u32 {
        let table = self.find_slot(is_write);
        // Distance from the page of the slot: large for any other page, lower or higher.
        let code = &mut self.code;
        code.get(local::VA);
        code.get(local::SLOT).memory(I64_LOAD, 3, table + TAG);
        code.op(I64_SUB);
        code.i64(PAGE_SIZE as i64 - span).op(I64_GT_U);
        table
    }

    /// Pushes the RAM offset of the address in the local, whose slot was found.
    fn found(&mut self, table: u32) {
        let code = &mut self.code;
        code.get(local::SLOT).memory(I32_LOAD, 2, table + ADDEND);
        code.get(local::CELL).op(I32_ADD);
    }

    /// Does the same for the address of register plus immediate; returns the offset that
    /// the access must add to the address on the stack.
    pub(crate) fn access(&mut self, step: &Step, length: u8, is_write: bool) -> u32 {
        let imm = i64::from(step.inst.imm);
        let ram = self.layout.ram;
        let group = self.groups.of(self.node, step);
        let Some((number, group)) = group.filter(|_| !self.is_careful) else {
            self.address(step.inst.rs1, imm);
            self.find_page(step, (1 << length, is_write), false);
            return ram;
        };
        let cell = self.group_locals + number as u32;
        let (low, span, is_write) = (group.low, group.span(), group.is_write);
        if group.begins(self.node, step) {
            self.address(step.inst.rs1, low);
            let is_apart = self.opt_level == OptLevel::Speed && self.rest <= MAX_APART;
            self.find_page(step, (span, is_write), is_apart);
            self.code.tee(cell);
        } else {
            self.code.get(cell);
        }
        ram + (imm - low) as u32
    }

    /// Pushes the RAM offset of the address in the local, for `span` bytes from there. It
    /// looks in the micro-TLB first. Leaves to the interpreter if they miss the TLB or cross
    /// a page; if `is_apart`, continues in a copy of the rest of the block instead.
    fn find_page(&mut self, step: &Step, (span, is_write): (i64, bool), is_apart: bool) {
        let slot = self.micro_slot(step).filter(|_| !self.is_careful);
        if let Some(slot) = slot {
            self.micro_base(is_write);
            let micro = self.micro_offset(slot, is_write);
            self.code.memory(I64_LOAD, 3, micro + TAG).set(local::A);
            self.code.get(local::VA).i64(1).op(I64_SHR_U);
            // Half the greatest distance; the last place of a page may be missed.
            let limit = (PAGE_SIZE as i64 - span - 1) / 2;
            self.code.get(local::A).op(I64_SUB).i64(limit).op(I64_GT_U);
            self.unlikely().begin_if();
        }
        let table = self.misses(is_write, span);
        if is_apart {
            self.careful_if();
        } else {
            self.exit_if(step.offset, INTERPRET, self.rest);
        }
        let Some(slot) = slot else {
            return self.found(table);
        };
        let micro = self.micro_offset(slot, is_write);
        self.micro_base(is_write);
        self.code.get(local::SLOT).memory(I64_LOAD, 3, table + TAG);
        self.code
            .i64(1)
            .op(I64_SHR_U)
            .memory(I64_STORE, 3, micro + TAG);
        self.micro_base(is_write);
        self.code
            .get(local::SLOT)
            .memory(I64_LOAD, 3, table + ADDEND);
        self.code.memory(I64_STORE, 3, micro + ADDEND);
        self.end_if();
        self.micro_base(is_write);
        self.code.memory(I32_LOAD, 2, micro + ADDEND);
        self.code.get(local::VA).ops(&[I32_WRAP_I64, I32_ADD]);
    }

    /// The entry of the micro-TLB for an access: that of its base register, if that stays on
    /// few pages: the stack pointer, or that of globals or of the thread. With others, wrong
    /// guesses cost more than the search.
    fn micro_slot(&self, step: &Step) -> Option<u32> {
        let base = u32::from(step.inst.rs1);
        let lasts = matches!(base, 2..=4);
        (lasts && self.opt_level == OptLevel::Speed).then_some(base)
    }

    /// Pushes the address that [`Emitter::micro_offset`] counts from.
    fn micro_base(&mut self, is_write: bool) {
        match self.layout.user_tables() {
            Some(_) => self.code.i32(0),
            None if is_write => self.code.get(local::WRITE),
            None => self.code.get(local::READ),
        };
    }

    /// Where an entry of the micro-TLB is.
    fn micro_offset(&self, slot: u32, is_write: bool) -> u32 {
        let table = match self.layout.user_tables() {
            Some(tables) if is_write => tables.write,
            Some(tables) => tables.read,
            None => 0,
        };
        table + MICRO_OFFSET + (slot << SLOT_SHIFT)
    }

    /// Sets the local to the sum of a register and a number.
    fn address(&mut self, register: u8, imm: i64) {
        self.read(register);
        if imm != 0 {
            self.code.i64(imm).op(I64_ADD);
        }
        self.code.set(local::VA);
    }

    /// Pushes the condition of a branch.
    pub(super) fn condition(&mut self, inst: &Inst) {
        self.read(inst.rs1);
        self.read(inst.rs2);
        self.code.op(match inst.op {
            Op::Beq => I64_EQ,
            Op::Bne => I64_NE,
            Op::Blt => I64_LT_S,
            Op::Bge => I64_GE_S,
            Op::Bltu => I64_LT_U,
            _ => I64_GE_U,
        });
    }

    fn load(&mut self, step: &Step) {
        let (opcode, align) = match step.inst.op {
            Op::Lb => (I64_LOAD8_S, 0),
            Op::Lbu => (I64_LOAD8_U, 0),
            Op::Lh => (I64_LOAD16_S, 1),
            Op::Lhu => (I64_LOAD16_U, 1),
            Op::Lw => (I64_LOAD32_S, 2),
            Op::Lwu => (I64_LOAD32_U, 2),
            _ => (I64_LOAD, 3),
        };
        let offset = self.access(step, align, false);
        self.code.memory(opcode, align, offset);
        self.write(step.inst.rd);
    }

    fn store(&mut self, step: &Step) {
        let (opcode, align) = match step.inst.op {
            Op::Sb => (I64_STORE8, 0),
            Op::Sh => (I64_STORE16, 1),
            Op::Sw => (I64_STORE32, 2),
            _ => (I64_STORE, 3),
        };
        let offset = self.access(step, align, true);
        self.read(step.inst.rs2);
        self.code.memory(opcode, align, offset);
    }

    /// `lr` and `sc`: the reservation is the offset in RAM.
    fn reserved(&mut self, step: &Step) {
        use Op::*;
        let inst = &step.inst;
        let is_word = matches!(inst.op, LrW | ScW);
        let is_load = matches!(inst.op, LrW | LrD);
        let align = if is_word { 2 } else { 3 };
        let reservation = self.layout.reservation as i32;
        let ram = self.layout.ram;
        self.read(inst.rs1);
        self.code.set(local::VA);
        self.translate(step, align, !is_load);
        let code = &mut self.code;
        code.tee(local::CELL);
        // The offset in the interpreter's form.
        code.op(I64_EXTEND_I32_U).set(local::A);
        if is_load {
            code.i32(reservation).get(local::A).memory(I64_STORE, 3, 0);
            let load = if is_word { I64_LOAD32_S } else { I64_LOAD };
            code.get(local::CELL).memory(load, align, ram);
            return self.write(inst.rd);
        }
        self.read(inst.rs2);
        let code = &mut self.code;
        code.set(local::B);
        code.i32(reservation).memory(I64_LOAD, 3, 0);
        code.get(local::A).op(I64_NE).tee(local::SLOT).op(I32_EQZ);
        self.begin_if();
        self.code.get(local::CELL).get(local::B);
        let store = if is_word { I64_STORE32 } else { I64_STORE };
        self.code.memory(store, align, ram);
        self.end_if();
        let none = NO_RESERVATION as i64;
        self.code.i32(reservation).i64(none).memory(I64_STORE, 3, 0);
        self.code.get(local::SLOT).op(I64_EXTEND_I32_U);
        self.write(inst.rd);
    }

    fn amo(&mut self, step: &Step) {
        use Op::*;
        use local::{A, B};
        let inst = &step.inst;
        let is_word = inst.op <= AmoMaxuW;
        let align = if is_word { 2 } else { 3 };
        self.read(inst.rs1);
        self.code.set(local::VA);
        self.translate(step, align, true);
        let load = if is_word { I64_LOAD32_S } else { I64_LOAD };
        let ram = self.layout.ram;
        self.code.tee(local::CELL).memory(load, align, ram).set(A);
        self.read(inst.rs2);
        if is_word {
            // Sign extension preserves the order of unsigned words too.
            self.code.op(I64_EXTEND32_S);
        }
        self.code.set(B).get(local::CELL);
        let code = &mut self.code;
        match inst.op {
            AmoSwapW | AmoSwapD => code.get(B),
            AmoAddW | AmoAddD => code.get(A).get(B).op(I64_ADD),
            AmoXorW | AmoXorD => code.get(A).get(B).op(I64_XOR),
            AmoAndW | AmoAndD => code.get(A).get(B).op(I64_AND),
            AmoOrW | AmoOrD => code.get(A).get(B).op(I64_OR),
            AmoMinW | AmoMinD => code.get(A).get(B).get(A).get(B).ops(&[I64_LT_S, SELECT]),
            AmoMaxW | AmoMaxD => code.get(B).get(A).get(A).get(B).ops(&[I64_LT_S, SELECT]),
            AmoMinuW | AmoMinuD => code.get(A).get(B).get(A).get(B).ops(&[I64_LT_U, SELECT]),
            _ => code.get(B).get(A).get(A).get(B).ops(&[I64_LT_U, SELECT]),
        };
        let store = if is_word { I64_STORE32 } else { I64_STORE };
        code.memory(store, align, ram).get(A);
        self.write(inst.rd);
    }
}

/// Unsigned and signed shift to the right.
const I64_SHR_U_OR_S: [u8; 2] = [I64_SHR_U, I64_SHR_S];

fn is_amo(op: Op) -> bool {
    use Op::*;
    (AmoSwapW..=AmoMaxuW).contains(&op) || (AmoSwapD..=AmoMaxuD).contains(&op)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_loses_nothing() {
        for op in Op::ALL {
            let inst = Inst {
                op: *op,
                rd: 32,
                rs1: 31,
                rs2: 5,
                imm: -7,
            };
            assert_eq!(unpack(pack(&inst) as u64), inst);
        }
    }
}
