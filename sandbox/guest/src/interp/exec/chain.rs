//! Dispatch loop: one `match` over typed instructions.

use super::{Exit, LoopState, exit_loop, jump_target, plain};
use crate::hart::csr::Bank;
use crate::hart::{Cursor, Mode, NO_RESERVATION};
use crate::interp::alu;
use crate::interp::blocks::{self, CROSS, DecodedCode, ELSEWHERE, Line, NONE};
use crate::interp::fp;
use crate::interp::inst::{Inst, Op};
use crate::jit;
use crate::ram::PAGE_SIZE;

/// Runs blocks from the cursor on.
pub(super) fn chain(parts: LoopState<'_>, code: &DecodedCode, ram: &mut [u8]) -> Exit {
    let LoopState {
        x,
        bank: Bank { mode, csr, fp },
        data,
        exec,
        at,
    } = parts;
    let mut tlb = &data[csr.mmu_index(mode)];
    let mut pc = at.pc;
    let mut budget = at.budget;
    let mut number = at.block;
    let mut line = code.line(number);
    let mut index = at.index;
    if !at.inside {
        index = blocks::first(number);
    }
    loop {
        // The address after the block, and the exit, whose slot is then at the index.
        let (next, exit) = loop {
            // Every block ends with an operation that leaves this loop.
            let mut inst = &line[usize::from(index)];
            index = index.wrapping_add(1);

            macro_rules! r {
                ($number:expr) => {
                    x[usize::from($number)]
                };
            }
            macro_rules! slow {
                () => {{
                    *at = Cursor {
                        pc,
                        block: number,
                        inside: true,
                        index: index.wrapping_sub(1),
                        budget,
                        ..*at
                    };
                    return Exit::Slow;
                }};
            }
            macro_rules! set {
                ($value:expr) => {
                    r!(inst.rd) = $value
                };
            }
            macro_rules! alu {
                (|$a:ident, $b:ident| $value:expr) => {{
                    let ($a, $b) = (r!(inst.rs1), r!(inst.rs2));
                    set!($value);
                }};
            }
            macro_rules! alu_imm {
                (|$a:ident, $b:ident| $value:expr) => {{
                    let ($a, $b) = (r!(inst.rs1), inst.imm as i64 as u64);
                    set!($value);
                }};
            }
            macro_rules! address {
                () => {
                    r!(inst.rs1).wrapping_add(inst.imm as i64 as u64)
                };
            }
            macro_rules! cell {
                ($tlb:expr, $va:expr, $type:ty) => {{
                    const SIZE: usize = size_of::<$type>();
                    let Some(offset) = $tlb.find($va, SIZE) else {
                        slow!()
                    };
                    let Some(cell) = ram.as_chunks_mut::<SIZE>().0.get_mut(offset / SIZE) else {
                        slow!()
                    };
                    (cell, offset)
                }};
            }
            macro_rules! load {
                ($type:ty) => {{
                    let (cell, _) = cell!(tlb.read, address!(), $type);
                    <$type>::from_le_bytes(*cell)
                }};
            }
            macro_rules! store {
                ($type:ty, $value:expr) => {{
                    let value = $value as $type;
                    let (cell, _) = cell!(tlb.write, address!(), $type);
                    *cell = value.to_le_bytes();
                }};
            }
            // Continues with the second of two fused instructions.
            macro_rules! next {
                () => {
                    inst = &line[usize::from(index)];
                    index = index.wrapping_add(1);
                };
            }
            macro_rules! sum {
                () => {{
                    let sum = r!(inst.rs1).wrapping_add(r!(inst.rs2));
                    set!(sum.wrapping_add(inst.imm as i64 as u64))
                }};
            }
            // Loads or stores of doubles on one base, up to the last: the TLB is looked up
            // again only when the page changes.
            macro_rules! run {
                ($tlb:expr, $more:pat, |$cell:ident| $access:expr) => {{
                    let base = r!(inst.rs1);
                    let mut entry = $tlb.entry(address!());
                    loop {
                        let va = base.wrapping_add(inst.imm as i64 as u64);
                        let mut offset = entry.find(va, 8);
                        if offset.is_none() {
                            entry = $tlb.entry(va);
                            offset = entry.find(va, 8);
                        }
                        let Some(offset) = offset else { slow!() };
                        let Some($cell) = ram.as_chunks_mut::<8>().0.get_mut(offset / 8) else {
                            slow!()
                        };
                        $access;
                        if !matches!(inst.op, $more) {
                            break;
                        }
                        next!();
                    }
                }};
            }
            macro_rules! exit {
                () => {
                    &line[usize::from(index)]
                };
            }
            macro_rules! branch {
                (|$a:ident, $b:ident| $condition:expr) => {{
                    let ($a, $b) = (r!(inst.rs1), r!(inst.rs2));
                    if $condition {
                        break (pc.wrapping_add(inst.imm as i64 as u64), exit!());
                    }
                    index = index.wrapping_add(1);
                }};
            }
            macro_rules! jal {
                () => {{
                    let exit = exit!();
                    set!(pc.wrapping_add(blocks::after(exit)));
                    break (pc.wrapping_add(inst.imm as i64 as u64), exit);
                }};
            }
            macro_rules! jalr {
                () => {{
                    let exit = exit!();
                    let target = address!() & !1;
                    set!(pc.wrapping_add(blocks::after(exit)));
                    break (target, exit);
                }};
            }
            macro_rules! auipc {
                () => {
                    set!(pc.wrapping_add(inst.imm as i64 as u64))
                };
            }
            macro_rules! fused {
                ($first:expr $(, $other:expr)+) => {{
                    $first;
                    $(
                        next!();
                        $other;
                    )+
                }};
            }
            macro_rules! ld {
                () => {
                    set!(load!(u64))
                };
            }
            macro_rules! lbu {
                () => {
                    set!(u64::from(load!(u8)))
                };
            }
            macro_rules! sd {
                () => {
                    store!(u64, r!(inst.rs2))
                };
            }
            macro_rules! beq {
                () => {
                    branch!(|a, b| a == b)
                };
            }
            macro_rules! bne {
                () => {
                    branch!(|a, b| a != b)
                };
            }
            macro_rules! addiw {
                () => {
                    alu_imm!(|a, b| alu::word(a.wrapping_add(b)))
                };
            }
            macro_rules! and_imm {
                () => {
                    alu_imm!(|a, b| a & b)
                };
            }
            macro_rules! or {
                () => {
                    alu!(|a, b| a | b)
                };
            }
            macro_rules! slli {
                () => {
                    alu_imm!(|a, b| a.wrapping_shl(b as u32))
                };
            }
            macro_rules! srli {
                () => {
                    alu_imm!(|a, b| a.wrapping_shr(b as u32))
                };
            }
            macro_rules! amo {
                ($type:ty, |$old:ident, $source:ident| $new:expr) => {{
                    let $source = r!(inst.rs2) as $type;
                    let (cell, _) = cell!(tlb.write, r!(inst.rs1), $type);
                    let $old = <$type>::from_le_bytes(*cell);
                    *cell = ($new as $type).to_le_bytes();
                    set!($old as i64 as u64);
                }};
            }
            macro_rules! csr {
                () => {{
                    let mut bank = Bank { mode, csr, fp };
                    if !bank.quick(x, inst) {
                        slow!()
                    }
                    tlb = &data[csr.mmu_index(mode)];
                }};
            }
            macro_rules! state {
                () => {
                    LoopState {
                        x,
                        bank: Bank { mode, csr, fp },
                        data,
                        exec,
                        at,
                    }
                };
            }
            macro_rules! float {
                () => {
                    if !fp::execute(fp, x, inst) {
                        slow!()
                    }
                };
            }

            match inst.op {
                Op::Nop => {}
                Op::End => {
                    index = index.wrapping_sub(1);
                    break (pc.wrapping_add(blocks::after(inst)), inst);
                }
                Op::Lui => set!(inst.imm as i64 as u64),
                Op::Auipc => auipc!(),
                Op::Jal => jal!(),
                Op::Jalr => jalr!(),
                Op::Beq => branch!(|a, b| a == b),
                Op::Bne => branch!(|a, b| a != b),
                Op::Blt => branch!(|a, b| (a as i64) < b as i64),
                Op::Bge => branch!(|a, b| a as i64 >= b as i64),
                Op::Bltu => branch!(|a, b| a < b),
                Op::Bgeu => branch!(|a, b| a >= b),
                Op::Lb => set!(load!(u8) as i8 as u64),
                Op::Lh => set!(load!(u16) as i16 as u64),
                Op::Lw => set!(load!(u32) as i32 as u64),
                Op::Ld => set!(load!(u64)),
                Op::Lbu => set!(u64::from(load!(u8))),
                Op::Lhu => set!(u64::from(load!(u16))),
                Op::Lwu => set!(u64::from(load!(u32))),
                Op::Sb => store!(u8, r!(inst.rs2)),
                Op::Sh => store!(u16, r!(inst.rs2)),
                Op::Sw => store!(u32, r!(inst.rs2)),
                Op::Sd => store!(u64, r!(inst.rs2)),
                Op::Addi => alu_imm!(|a, b| a.wrapping_add(b)),
                Op::Slti => alu_imm!(|a, b| u64::from((a as i64) < b as i64)),
                Op::Sltiu => alu_imm!(|a, b| u64::from(a < b)),
                Op::Xori => alu_imm!(|a, b| a ^ b),
                Op::Ori => alu_imm!(|a, b| a | b),
                Op::Andi => alu_imm!(|a, b| a & b),
                Op::Slli => alu_imm!(|a, b| a.wrapping_shl(b as u32)),
                Op::Srli => alu_imm!(|a, b| a.wrapping_shr(b as u32)),
                Op::Srai => alu_imm!(|a, b| (a as i64).wrapping_shr(b as u32) as u64),
                Op::Add => alu!(|a, b| a.wrapping_add(b)),
                Op::Sub => alu!(|a, b| a.wrapping_sub(b)),
                Op::Sll => alu!(|a, b| a.wrapping_shl(b as u32)),
                Op::Slt => alu!(|a, b| u64::from((a as i64) < b as i64)),
                Op::Sltu => alu!(|a, b| u64::from(a < b)),
                Op::Xor => alu!(|a, b| a ^ b),
                Op::Srl => alu!(|a, b| a.wrapping_shr(b as u32)),
                Op::Sra => alu!(|a, b| (a as i64).wrapping_shr(b as u32) as u64),
                Op::Or => alu!(|a, b| a | b),
                Op::And => alu!(|a, b| a & b),
                Op::Addiw => alu_imm!(|a, b| alu::word(a.wrapping_add(b))),
                Op::Slliw => alu_imm!(|a, b| alu::word(a.wrapping_shl(b as u32))),
                Op::Srliw => alu_imm!(|a, b| (a as u32).wrapping_shr(b as u32) as i32 as u64),
                Op::Sraiw => alu_imm!(|a, b| (a as i32).wrapping_shr(b as u32) as u64),
                Op::Addw => alu!(|a, b| alu::word(a.wrapping_add(b))),
                Op::Subw => alu!(|a, b| alu::word(a.wrapping_sub(b))),
                Op::Sllw => alu!(|a, b| (a as u32).wrapping_shl(b as u32) as i32 as u64),
                Op::Srlw => alu!(|a, b| (a as u32).wrapping_shr(b as u32) as i32 as u64),
                Op::Sraw => alu!(|a, b| (a as i32).wrapping_shr(b as u32) as u64),
                Op::Mul => alu!(|a, b| a.wrapping_mul(b)),
                Op::Mulh => alu!(|a, b| alu::mulh(a, b)),
                Op::Mulhsu => alu!(|a, b| alu::mulhsu(a, b)),
                Op::Mulhu => alu!(|a, b| alu::mulhu(a, b)),
                Op::Div => alu!(|a, b| alu::div(a, b)),
                Op::Divu => alu!(|a, b| alu::divu(a, b)),
                Op::Rem => alu!(|a, b| alu::rem(a, b)),
                Op::Remu => alu!(|a, b| alu::remu(a, b)),
                Op::Mulw => alu!(|a, b| alu::word(a.wrapping_mul(b))),
                Op::Divw => alu!(|a, b| alu::divw(a, b)),
                Op::Divuw => alu!(|a, b| alu::divuw(a, b)),
                Op::Remw => alu!(|a, b| alu::remw(a, b)),
                Op::Remuw => alu!(|a, b| alu::remuw(a, b)),
                Op::LrW => {
                    let (cell, offset) = cell!(tlb.read, r!(inst.rs1), u32);
                    set!(i32::from_le_bytes(*cell) as u64);
                    at.reservation = offset as u64;
                }
                Op::LrD => {
                    let (cell, offset) = cell!(tlb.read, r!(inst.rs1), u64);
                    set!(u64::from_le_bytes(*cell));
                    at.reservation = offset as u64;
                }
                Op::ScW => {
                    let value = r!(inst.rs2) as u32;
                    let (cell, offset) = cell!(tlb.write, r!(inst.rs1), u32);
                    let held = at.reservation == offset as u64;
                    if held {
                        *cell = value.to_le_bytes();
                    }
                    at.reservation = NO_RESERVATION;
                    set!(u64::from(!held));
                }
                Op::ScD => {
                    let value = r!(inst.rs2);
                    let (cell, offset) = cell!(tlb.write, r!(inst.rs1), u64);
                    let held = at.reservation == offset as u64;
                    if held {
                        *cell = value.to_le_bytes();
                    }
                    at.reservation = NO_RESERVATION;
                    set!(u64::from(!held));
                }
                Op::AmoSwapW => amo!(i32, |old, new| new),
                Op::AmoAddW => amo!(i32, |old, b| old.wrapping_add(b)),
                Op::AmoXorW => amo!(i32, |old, b| old ^ b),
                Op::AmoAndW => amo!(i32, |old, b| old & b),
                Op::AmoOrW => amo!(i32, |old, b| old | b),
                Op::AmoMinW => amo!(i32, |old, b| old.min(b)),
                Op::AmoMaxW => amo!(i32, |old, b| old.max(b)),
                Op::AmoMinuW => amo!(i32, |old, b| (old as u32).min(b as u32)),
                Op::AmoMaxuW => amo!(i32, |old, b| (old as u32).max(b as u32)),
                Op::AmoSwapD => amo!(i64, |old, new| new),
                Op::AmoAddD => amo!(i64, |old, b| old.wrapping_add(b)),
                Op::AmoXorD => amo!(i64, |old, b| old ^ b),
                Op::AmoAndD => amo!(i64, |old, b| old & b),
                Op::AmoOrD => amo!(i64, |old, b| old | b),
                Op::AmoMinD => amo!(i64, |old, b| old.min(b)),
                Op::AmoMaxD => amo!(i64, |old, b| old.max(b)),
                Op::AmoMinuD => amo!(i64, |old, b| (old as u64).min(b as u64)),
                Op::AmoMaxuD => amo!(i64, |old, b| (old as u64).max(b as u64)),
                Op::Fld if fp.is_on() => fp.set_f64(inst.rd, load!(u64)),
                Op::Flw if fp.is_on() => fp.set_f32(inst.rd, load!(u32)),
                Op::Fsd if fp.is_on() => store!(u64, fp.bits(inst.rs2)),
                Op::Fsw if fp.is_on() => store!(u32, fp.bits(inst.rs2)),
                Op::LdRun => run!(tlb.read, Op::LdRun, |cell| set!(u64::from_le_bytes(*cell))),
                Op::SdRun => run!(tlb.write, Op::SdRun, |cell| *cell =
                    r!(inst.rs2).to_le_bytes()),
                Op::SlliwSrliwOr => fused!(
                    alu_imm!(|a, b| alu::word(a.wrapping_shl(b as u32))),
                    alu_imm!(|a, b| (a as u32).wrapping_shr(b as u32) as i32 as u64),
                    or!()
                ),
                Op::SumSum => fused!(sum!(), sum!()),
                Op::SumLd => fused!(sum!(), ld!()),
                Op::SumLw => fused!(sum!(), set!(load!(u32) as i32 as u64)),
                Op::SumLbu => fused!(sum!(), lbu!()),
                Op::SumSd => fused!(sum!(), sd!()),
                Op::SumSw => fused!(sum!(), store!(u32, r!(inst.rs2))),
                Op::SumSb => fused!(sum!(), store!(u8, r!(inst.rs2))),
                Op::SumBeq => fused!(sum!(), beq!()),
                Op::SumBne => fused!(sum!(), bne!()),
                Op::SumBltu => fused!(sum!(), branch!(|a, b| a < b)),
                Op::SumJal => fused!(sum!(), jal!()),
                Op::SumJalr => fused!(sum!(), jalr!()),
                Op::LdSum => fused!(ld!(), sum!()),
                Op::LwSum => fused!(set!(load!(u32) as i32 as u64), sum!()),
                Op::LbuSum => fused!(lbu!(), sum!()),
                Op::SdSum => fused!(sd!(), sum!()),
                Op::SwSum => fused!(store!(u32, r!(inst.rs2)), sum!()),
                Op::SbSum => fused!(store!(u8, r!(inst.rs2)), sum!()),
                Op::LdSd => fused!(ld!(), sd!()),
                Op::SdLd => fused!(sd!(), ld!()),
                Op::LdBeq => fused!(ld!(), beq!()),
                Op::LdBne => fused!(ld!(), bne!()),
                Op::LbuBeq => fused!(lbu!(), beq!()),
                Op::LbuBne => fused!(lbu!(), bne!()),
                Op::SlliSum => fused!(slli!(), sum!()),
                Op::SlliSrli => fused!(slli!(), srli!()),
                Op::AndiBeq => fused!(and_imm!(), beq!()),
                Op::AndiBne => fused!(and_imm!(), bne!()),
                Op::AuipcLd => fused!(auipc!(), ld!()),
                Op::AuipcSum => fused!(auipc!(), sum!()),
                Op::AddwAddw => fused!(
                    alu!(|a, b| alu::word(a.wrapping_add(b))),
                    alu!(|a, b| alu::word(a.wrapping_add(b)))
                ),
                Op::OrXor => fused!(or!(), alu!(|a, b| a ^ b)),
                Op::SumBlt => fused!(sum!(), branch!(|a, b| (a as i64) < b as i64)),
                Op::SumBge => fused!(sum!(), branch!(|a, b| a as i64 >= b as i64)),
                Op::SumAndi => fused!(sum!(), and_imm!()),
                Op::SlliOr => fused!(slli!(), or!()),
                Op::OrSlli => fused!(or!(), slli!()),
                Op::AndiSum => fused!(and_imm!(), sum!()),
                Op::AndSum => fused!(alu!(|a, b| a & b), sum!()),
                Op::OrAddiw => fused!(or!(), addiw!()),
                Op::AddiwAddiw => fused!(addiw!(), addiw!()),
                Op::SlliBlt => fused!(slli!(), branch!(|a, b| (a as i64) < b as i64)),
                Op::SlliBge => fused!(slli!(), branch!(|a, b| a as i64 >= b as i64)),
                Op::AddiwBeq => fused!(addiw!(), beq!()),
                Op::AddiwBne => fused!(addiw!(), bne!()),
                Op::AddiwJal => fused!(addiw!(), jal!()),
                Op::SrliAndi => fused!(srli!(), and_imm!()),
                Op::LdLd => fused!(ld!(), ld!()),
                Op::LdSlli => fused!(ld!(), slli!()),
                Op::LdSrli => fused!(ld!(), srli!()),
                Op::LdAndi => fused!(ld!(), and_imm!()),
                Op::LdJalr => fused!(ld!(), jalr!()),
                Op::LbuLbu => fused!(lbu!(), lbu!()),
                Op::LbuSlli => fused!(lbu!(), slli!()),
                Op::LwuLwu => fused!(set!(u64::from(load!(u32))), set!(u64::from(load!(u32)))),
                Op::LwBeq => fused!(set!(load!(u32) as i32 as u64), beq!()),
                Op::LwBne => fused!(set!(load!(u32) as i32 as u64), bne!()),
                Op::SdJal => fused!(sd!(), jal!()),
                Op::SdJalr => fused!(sd!(), jalr!()),
                Op::SwSw => fused!(store!(u32, r!(inst.rs2)), store!(u32, r!(inst.rs2))),
                Op::FsdFsd if fp.is_on() => {
                    fused!(
                        store!(u64, fp.bits(inst.rs2)),
                        store!(u64, fp.bits(inst.rs2))
                    )
                }
                Op::LdRunSumJalr => fused!(
                    run!(tlb.read, Op::LdRun | Op::LdRunSumJalr, |cell| set!(
                        u64::from_le_bytes(*cell)
                    )),
                    sum!(),
                    jalr!()
                ),
                Op::SumSdRun => fused!(
                    sum!(),
                    run!(tlb.write, Op::SdRun, |cell| *cell =
                        r!(inst.rs2).to_le_bytes())
                ),
                Op::SumSumSum => fused!(sum!(), sum!(), sum!()),
                Op::SumSumJal => fused!(sum!(), sum!(), jal!()),
                Op::SumSumBeq => fused!(sum!(), sum!(), beq!()),
                Op::SumSumBne => fused!(sum!(), sum!(), bne!()),
                Op::SumLdSum => fused!(sum!(), ld!(), sum!()),
                Op::LbuSumBne => fused!(lbu!(), sum!(), bne!()),
                Op::SumLbuBne => fused!(sum!(), lbu!(), bne!()),
                Op::SumSbBne => fused!(sum!(), store!(u8, r!(inst.rs2)), bne!()),
                Op::LdSumBeq => fused!(ld!(), sum!(), beq!()),
                Op::LdSumBne => fused!(ld!(), sum!(), bne!()),
                Op::SrliAndiBeq => fused!(srli!(), and_imm!(), beq!()),
                Op::SrliAndiBne => fused!(srli!(), and_imm!(), bne!()),
                Op::Enter => {
                    (at.pc, at.budget) = (pc, budget);
                    let entered = enter_region(state!(), inst, code, ram);
                    (pc, budget, tlb) = (at.pc, at.budget, &data[csr.mmu_index(mode)]);
                    match entered {
                        Entered::Elsewhere => break (pc, &ELSEWHERE),
                        Entered::Block(found) => (number, line, index) = found,
                        Entered::Unknown => return exit_loop(at, pc, budget, Exit::Interpret),
                    }
                }
                // Every operation is listed, so that the jump table needs no range check.
                #[rustfmt::skip]
                Op::FmaddS | Op::FmsubS | Op::FnmsubS | Op::FnmaddS | Op::FmaddD | Op::FmsubD | Op::FnmsubD
                | Op::FnmaddD | Op::FaddS | Op::FsubS | Op::FmulS | Op::FdivS | Op::FsqrtS | Op::FsgnjS
                | Op::FsgnjnS | Op::FsgnjxS | Op::FminS | Op::FmaxS | Op::FcvtWS | Op::FcvtWuS | Op::FcvtLS
                | Op::FcvtLuS | Op::FmvXW | Op::FeqS | Op::FltS | Op::FleS | Op::FclassS | Op::FcvtSW
                | Op::FcvtSWu | Op::FcvtSL | Op::FcvtSLu | Op::FmvWX | Op::FaddD | Op::FsubD | Op::FmulD
                | Op::FdivD | Op::FsqrtD | Op::FsgnjD | Op::FsgnjnD | Op::FsgnjxD | Op::FminD | Op::FmaxD
                | Op::FcvtWD | Op::FcvtWuD | Op::FcvtLD | Op::FcvtLuD | Op::FmvXD | Op::FeqD | Op::FltD | Op::FleD
                | Op::FclassD | Op::FcvtDW | Op::FcvtDWu | Op::FcvtDL | Op::FcvtDLu | Op::FmvDX | Op::FcvtSD
                | Op::FcvtDS => float!(),
                Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => csr!(),
                #[rustfmt::skip]
                Op::PageCrossing | Op::Illegal | Op::CboZero | Op::Fence | Op::FenceI | Op::Ecall | Op::Ebreak | Op::Sret
                | Op::Wfi | Op::SfenceVma | Op::Flw | Op::Fld | Op::Fsw | Op::Fsd | Op::FsdFsd => slow!(),
            }
        };

        pc = next;
        budget -= i64::from(exit.rd);
        let link = exit.imm as u32;
        number = if link < CROSS {
            link
        } else if link == CROSS {
            match jump_target(exec, code, pc) {
                Some(found) => found,
                None => return exit_loop(at, pc, budget, Exit::Lookup(None)),
            }
        } else {
            debug_assert_eq!(link, NONE);
            let slot = blocks::slot(number, index);
            return exit_loop(at, pc, budget, Exit::Lookup(Some(slot)));
        };
        if budget <= 0 {
            return exit_loop(at, pc, budget, Exit::Budget);
        }
        line = code.line(number);
        index = blocks::first(number);
    }
}

/// Continuation after a region.
enum Entered<'a> {
    /// At the cursor's address, which must be looked up.
    Elsewhere,
    /// In this untranslated block: its number, line and first index.
    Block((u32, &'a Line, u8)),
    /// The block is not decoded, or the budget is used up.
    Unknown,
}

/// Runs the region of an instruction, which moves the cursor and counts itself.
#[inline(always)]
fn enter_region<'a>(
    state: LoopState<'_>,
    inst: &Inst,
    code: &'a DecodedCode,
    ram: &mut [u8],
) -> Entered<'a> {
    let (exec, at) = (state.exec, state.at);
    let is_foreign = inst.rs1 & jit::USER_NODE != 0 && state.bank.mode != Mode::User;
    let how = if is_foreign {
        jit::INTERPRET
    } else {
        exec.cache_jump(at.pc, inst.imm as u32, inst.rs1 & !jit::USER_NODE);
        let page = at.pc & !(PAGE_SIZE as u64 - 1);
        jit::enter(inst, page, state.x, state.bank, state.data, exec, ram, at)
    };
    if how != jit::INTERPRET {
        return Entered::Elsewhere;
    }
    match plain(exec, code, at.pc) {
        Some(found) if at.budget > 0 => {
            Entered::Block((found, code.line(found), blocks::first(found)))
        }
        _ => Entered::Unknown,
    }
}
