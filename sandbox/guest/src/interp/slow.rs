//! Slow path: runs one instruction with access to the whole machine, after the fast loop
//! left it because it misses a TLB, accesses a device, crosses a page, or changes the
//! hart's state.

use super::fp;
use super::inst::{Inst, Op};
use crate::bus::{Bus, Width};
use crate::hart::csr::{self, Effect};
use crate::hart::sbi::{self, After};
use crate::hart::trap::{Cause, Trap};
use crate::hart::{Hart, Mode, NO_RESERVATION};
use crate::host::Host;
use crate::mmu::Access;
use crate::ram::{CodeMark, PAGE_SIZE, RAM_BASE};

/// Bytes that `cbo.zero` clears: a page, Linux's most frequent size.
pub(crate) const ZERO_BLOCK: usize = PAGE_SIZE;

/// Continuation after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With the next instruction.
    Next,
    /// With the next instruction, which may be mapped elsewhere now, and an interrupt may
    /// come before it.
    Anew,
    /// A device was written: its interrupt may be pending.
    Device,
    /// At the hart's cursor.
    Jumped,
    /// With the next instruction, after dropping stale code.
    FenceI,
    /// With the next instruction, once the hart is woken.
    Wait,
    /// Not at all: power off.
    PowerOff,
    /// Not at all: restart.
    Reset,
}

/// Runs `inst`, which is at `pc`.
pub(crate) fn execute<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    inst: &Inst,
    pc: u64,
) -> Result<Flow, Trap> {
    use Op::*;
    let address = hart.x[usize::from(inst.rs1)].wrapping_add(inst.imm as i64 as u64);
    let source = hart.x[usize::from(inst.rs2)];
    let rd = usize::from(inst.rd);
    match inst.op {
        Lb => hart.x[rd] = load(hart, bus, address, 1)? as i8 as u64,
        Lh => hart.x[rd] = load(hart, bus, address, 2)? as i16 as u64,
        Lw => hart.x[rd] = load(hart, bus, address, 4)? as i32 as u64,
        Ld => hart.x[rd] = load(hart, bus, address, 8)?,
        Lbu => hart.x[rd] = load(hart, bus, address, 1)?,
        Lhu => hart.x[rd] = load(hart, bus, address, 2)?,
        Lwu => hart.x[rd] = load(hart, bus, address, 4)?,
        Sb => return store(hart, bus, address, 1, source),
        Sh => return store(hart, bus, address, 2, source),
        Sw => return store(hart, bus, address, 4, source),
        Sd => return store(hart, bus, address, 8, source),
        Flw | Fld | Fsw | Fsd => return float_memory(hart, bus, inst, address, pc),
        CboZero => zero_block(hart, bus, inst, pc)?,
        FenceI => return Ok(Flow::FenceI),
        Ecall => return call(hart),
        Ebreak => {
            return Err(Trap {
                cause: Cause::Breakpoint,
                value: pc,
            });
        }
        Csrrw | Csrrs | Csrrc | Csrrwi | Csrrsi | Csrrci => {
            return csr_access(hart, bus, inst, pc);
        }
        Sret | Wfi | SfenceVma if hart.mode == Mode::User => return Err(illegal(hart, bus, pc)),
        Sret => {
            hart.return_from_trap();
            return Ok(Flow::Jumped);
        }
        Wfi => return Ok(Flow::Wait),
        SfenceVma => fence(hart, inst),
        op if is_atomic(op) => atomic(hart, bus, inst)?,
        op if op as u8 >= FmaddS as u8 => {
            if !fp::execute(&mut hart.fp, &mut hart.x, inst) {
                return Err(illegal(hart, bus, pc));
            }
        }
        _ => return Err(illegal(hart, bus, pc)),
    }
    Ok(Flow::Next)
}

/// The exception of an illegal instruction, with its bits if they can be read.
fn illegal<H: Host>(hart: &mut Hart, bus: &mut Bus<H>, pc: u64) -> Trap {
    let mut half = |va: u64| {
        let pa = hart.translate(&mut bus.ram, va, Access::Exec).ok()?;
        bus.ram.read_u16(pa)
    };
    let low = half(pc).unwrap_or(0);
    let long = super::decode::length(low) == 4;
    let high = if long { half(pc.wrapping_add(2)) } else { None };
    Trap {
        cause: Cause::IllegalInstruction,
        value: u64::from(low) | u64::from(high.unwrap_or(0)) << 16,
    }
}

/// Runs `cbo.zero`: clears the block that holds an address (Zicboz, unprivileged manual,
/// section "Cache-Block Zero Instructions").
fn zero_block<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    inst: &Inst,
    pc: u64,
) -> Result<(), Trap> {
    if hart.mode == Mode::User && !hart.csr.user_may_zero() {
        return Err(illegal(hart, bus, pc));
    }
    let va = hart.x[usize::from(inst.rs1)];
    let pa = hart.translate(&mut bus.ram, va, Access::Write)?;
    let block = pa & !(ZERO_BLOCK as u64 - 1);
    let Some(offset) = bus.ram.offset(block, ZERO_BLOCK) else {
        return Err(Access::Write.access_fault(va));
    };
    bus.ram.touch(offset, ZERO_BLOCK);
    bus.ram.bytes_mut()[offset..offset + ZERO_BLOCK].fill(0);
    Ok(())
}

/// Runs `sfence.vma` in its four forms. Translations of other address spaces than the
/// current one are never cached.
fn fence(hart: &mut Hart, inst: &Inst) {
    let [va, space] = [inst.rs1, inst.rs2].map(|register| hart.x[usize::from(register)]);
    let is_current = inst.rs2 == 0 || space & csr::ASID == hart.csr.space();
    match (inst.rs1, inst.rs2) {
        (0, 0) => hart.tlbs.flush(),
        _ if !is_current => {}
        (0, _) => hart.tlbs.flush_local(),
        _ => hart.tlbs.flush_page(va),
    }
}

fn call(hart: &mut Hart) -> Result<Flow, Trap> {
    if hart.mode == Mode::User {
        return Err(Trap {
            cause: Cause::UserCall,
            value: 0,
        });
    }
    Ok(match sbi::call(hart) {
        After::Continue => Flow::Next,
        After::FenceI => Flow::FenceI,
        After::PowerOff => Flow::PowerOff,
        After::Reset => Flow::Reset,
    })
}

fn csr_access<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    inst: &Inst,
    pc: u64,
) -> Result<Flow, Trap> {
    let number = inst.imm as u32;
    let retired = hart.csr.retired.wrapping_sub(hart.at.budget as u64);
    let Some(old) = hart.bank().read(number, || bus.time(), retired) else {
        return Err(illegal(hart, bus, pc));
    };
    if let Some(new) = csr::replacement(&hart.x, inst, old) {
        match hart.bank().write(number, new) {
            Some(Effect::FlushTlbs) => hart.tlbs.flush(),
            Some(Effect::FlushSpace) => hart.tlbs.flush_local(),
            Some(Effect::None) => {}
            None => return Err(illegal(hart, bus, pc)),
        }
    }
    hart.x[usize::from(inst.rd)] = old;
    Ok(Flow::Anew)
}

fn float_memory<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    inst: &Inst,
    address: u64,
    pc: u64,
) -> Result<Flow, Trap> {
    if !hart.fp.is_on() {
        return Err(illegal(hart, bus, pc));
    }
    match inst.op {
        Op::Flw => {
            let bits = load(hart, bus, address, 4)? as u32;
            hart.fp.set_f32(inst.rd, bits);
        }
        Op::Fld => {
            let bits = load(hart, bus, address, 8)?;
            hart.fp.set_f64(inst.rd, bits);
        }
        Op::Fsw => return store(hart, bus, address, 4, hart.fp.bits(inst.rs2)),
        _ => return store(hart, bus, address, 8, hart.fp.bits(inst.rs2)),
    }
    Ok(Flow::Next)
}

fn width(size: usize) -> Width {
    match size {
        1 => Width::Byte,
        2 => Width::Half,
        4 => Width::Word,
        _ => Width::Double,
    }
}

fn is_split(va: u64, size: usize) -> bool {
    va as usize % PAGE_SIZE + size > PAGE_SIZE
}

/// Loads `size` bytes, aligned or not; caches the page if it is RAM.
fn load<H: Host>(hart: &mut Hart, bus: &mut Bus<H>, va: u64, size: usize) -> Result<u64, Trap> {
    if is_split(va, size) {
        return load_split(hart, bus, va, size);
    }
    let mapping = hart.map(&mut bus.ram, va, Access::Read)?;
    let pa = mapping.pa;
    if let Some(offset) = bus.ram.offset(pa, size) {
        let tlb = &mut hart.tlbs.data[hart.mmu_index()].read;
        tlb.fill(va, offset, mapping.is_global);
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&bus.ram.bytes()[offset..offset + size]);
        return Ok(u64::from_le_bytes(bytes));
    }
    if !(va as usize).is_multiple_of(size) {
        return Err(Access::Read.access_fault(va));
    }
    bus.load(pa, width(size))
        .map_err(|_| Access::Read.access_fault(va))
}

/// Stores `size` bytes, aligned or not; caches the page if it is RAM without decoded code,
/// which would require the store to be recorded.
fn store<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    va: u64,
    size: usize,
    value: u64,
) -> Result<Flow, Trap> {
    if is_split(va, size) {
        return store_split(hart, bus, va, size, value);
    }
    let mapping = hart.map(&mut bus.ram, va, Access::Write)?;
    let pa = mapping.pa;
    if let Some(offset) = bus.ram.offset(pa, size) {
        bus.ram.touch(offset, size);
        debug_assert_ne!(bus.ram.mark(offset / PAGE_SIZE), CodeMark::Clean);
        let tlb = &mut hart.tlbs.data[hart.mmu_index()].write;
        tlb.fill(va, offset, mapping.is_global);
        let bytes = &mut bus.ram.bytes_mut()[offset..offset + size];
        bytes.copy_from_slice(&value.to_le_bytes()[..size]);
        return Ok(Flow::Next);
    }
    if !(va as usize).is_multiple_of(size) {
        return Err(Access::Write.access_fault(va));
    }
    bus.store(pa, width(size), value)
        .map_err(|_| Access::Write.access_fault(va))?;
    Ok(Flow::Device)
}

/// Translates an access that crosses a page boundary: the physical addresses of its first
/// byte and of the second page.
fn translate_split<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    va: u64,
    size: usize,
    access: Access,
) -> Result<(u64, u64, usize), Trap> {
    let first = PAGE_SIZE - va as usize % PAGE_SIZE;
    let next = va.wrapping_add(first as u64);
    let low = hart.translate(&mut bus.ram, va, access)?;
    let high = hart.translate(&mut bus.ram, next, access)?;
    if bus.ram.offset(low, first).is_none() {
        return Err(access.access_fault(va));
    }
    if bus.ram.offset(high, size - first).is_none() {
        return Err(access.access_fault(next));
    }
    Ok((low, high, first))
}

fn load_split<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    va: u64,
    size: usize,
) -> Result<u64, Trap> {
    let (low, high, first) = translate_split(hart, bus, va, size, Access::Read)?;
    let mut bytes = [0; 8];
    let parts = [(low, 0..first), (high, first..size)];
    for (pa, range) in parts {
        let found = bus.ram.slice(pa, range.len());
        bytes[range].copy_from_slice(found.ok_or(Access::Read.access_fault(va))?);
    }
    Ok(u64::from_le_bytes(bytes))
}

fn store_split<H: Host>(
    hart: &mut Hart,
    bus: &mut Bus<H>,
    va: u64,
    size: usize,
    value: u64,
) -> Result<Flow, Trap> {
    let (low, high, first) = translate_split(hart, bus, va, size, Access::Write)?;
    let bytes = value.to_le_bytes();
    let parts = [(low, 0..first), (high, first..size)];
    for (pa, range) in parts {
        let target = bus.ram.slice_mut(pa, range.len());
        target
            .ok_or(Access::Write.access_fault(va))?
            .copy_from_slice(&bytes[range]);
    }
    Ok(Flow::Next)
}

fn is_atomic(op: Op) -> bool {
    (Op::LrW as u8..=Op::AmoMaxuD as u8).contains(&(op as u8))
}

/// Runs atomic instructions, on aligned RAM only.
fn atomic<H: Host>(hart: &mut Hart, bus: &mut Bus<H>, inst: &Inst) -> Result<(), Trap> {
    use Op::*;
    let va = hart.x[usize::from(inst.rs1)];
    let source = hart.x[usize::from(inst.rs2)];
    let double = inst.op as u8 >= LrD as u8;
    let size = if double { 8 } else { 4 };
    let access = match inst.op {
        LrW | LrD => Access::Read,
        _ => Access::Write,
    };
    if !(va as usize).is_multiple_of(size) {
        let cause = match access {
            Access::Read => Cause::LoadMisaligned,
            _ => Cause::StoreMisaligned,
        };
        return Err(Trap { cause, value: va });
    }
    let pa = hart.translate(&mut bus.ram, va, access)?;
    let offset = bus.ram.offset(pa, size).ok_or(access.access_fault(va))?;
    let rd = usize::from(inst.rd);
    if matches!(inst.op, ScW | ScD) {
        let held = hart.at.reservation == offset as u64;
        hart.at.reservation = NO_RESERVATION;
        if held {
            store(hart, bus, va, size, source)?;
        }
        hart.x[rd] = u64::from(!held);
        return Ok(());
    }
    let old = load_at(bus, offset, double);
    if access == Access::Read {
        hart.at.reservation = offset as u64;
    } else {
        let new = combine(inst.op, old, source);
        store(hart, bus, va, size, new)?;
    }
    hart.x[rd] = old;
    Ok(())
}

fn load_at<H: Host>(bus: &Bus<H>, offset: usize, double: bool) -> u64 {
    let pa = RAM_BASE + offset as u64;
    let value = if double {
        bus.ram.read_u64(pa)
    } else {
        bus.ram.read_u32(pa).map(|word| word as i32 as u64)
    };
    // The caller has checked that it is RAM.
    value.unwrap_or(0)
}

/// Value that an atomic memory operation stores; words come sign-extended.
fn combine(op: Op, old: u64, source: u64) -> u64 {
    use Op::*;
    let (old_word, word) = (old as u32, source as u32);
    match op {
        AmoSwapW | AmoSwapD => source,
        AmoAddW | AmoAddD => old.wrapping_add(source),
        AmoXorW | AmoXorD => old ^ source,
        AmoAndW | AmoAndD => old & source,
        AmoOrW | AmoOrD => old | source,
        AmoMinW => (old_word as i32).min(word as i32) as u64,
        AmoMaxW => (old_word as i32).max(word as i32) as u64,
        AmoMinuW => old_word.min(word).into(),
        AmoMaxuW => old_word.max(word).into(),
        AmoMinD => (old as i64).min(source as i64) as u64,
        AmoMaxD => (old as i64).max(source as i64) as u64,
        AmoMinuD => old.min(source),
        _ => old.max(source),
    }
}
