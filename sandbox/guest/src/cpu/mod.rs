//! CPU: the hart with its decoded and translated code. It chooses blocks, and takes traps
//! and interrupts.

use crate::bus::Bus;
use crate::hart::Hart;
use crate::hart::csr::{EXTERNAL, TIMER};
use crate::hart::trap::Trap;
use crate::host::Host;
use crate::interp::blocks::{self, DecodedCode, NONE};
use crate::interp::exec::{self, Exit};
use crate::interp::fuse;
use crate::interp::inst::Op;
use crate::interp::page_crossing::PageCrossing;
use crate::interp::slow::{self, Flow};
use crate::jit::{AotRegions, Profile, Translator};
use crate::mmu::Access;
use crate::mmu::tlb::ExecTlb;
use crate::ram::{CodeMark, PAGE_SIZE, RAM_BASE};

mod jit;

/// Instructions between two polls of clock and devices: some 20 us.
const SLICE: i64 = 8192;

/// Slice length while code is profiled: short, so that few jumps are lost between
/// recordings of their targets.
const PROFILE_SLICE: i64 = 2048;

/// Why the hart stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The budget is used up, or a device needs the embedder.
    Budget,
    /// The hart waits for an interrupt.
    Wait,
    /// The guest turned itself off.
    PowerOff,
    /// The guest asked to be restarted.
    Reset,
}

/// The hart and its code; see the module.
#[derive(Debug)]
pub struct Cpu {
    /// Architectural state.
    pub hart: Hart,
    code: DecodedCode,
    /// Instructions that cross a page boundary.
    page_crossing: PageCrossing,
    /// Stays empty; see [`exec::run_alone`].
    nowhere: ExecTlb,
    translator: Translator,
    /// Retired instructions at which the next sample is due.
    next_sample: u64,
    /// Translations that came with the image.
    aot: AotRegions,
    /// Execution profile, while one is recorded.
    profile: Option<Profile>,
}

impl Cpu {
    /// Prepares a hart to run, for a RAM of `ram_bytes`.
    pub fn new(hart: Hart, ram_bytes: usize) -> Self {
        Self {
            hart,
            code: DecodedCode::new(ram_bytes),
            page_crossing: PageCrossing::default(),
            nowhere: ExecTlb::default(),
            translator: Translator::default(),
            next_sample: 0,
            aot: AotRegions::default(),
            profile: None,
        }
    }

    /// Prepares for code in a RAM that has grown to `bytes`.
    pub fn grow_ram(&mut self, bytes: usize) {
        self.code.grow(bytes);
    }

    /// Instructions retired so far.
    pub fn retired(&self) -> u64 {
        self.hart
            .csr
            .retired
            .wrapping_sub(self.hart.at.budget as u64)
    }

    /// Drops all decoded code and translations; they return on use.
    pub fn flush<H: Host>(&mut self, bus: &mut Bus<H>) {
        self.code.clear();
        self.translator.clear();
        for page in bus.ram.take_dirty() {
            self.aot.drop_page(page as usize);
        }
        bus.ram.clear_marks();
        for page in self.aot.pages() {
            bus.ram.mark_code(page);
        }
        self.hart.tlbs.flush();
        if !self.hart.at.inside {
            self.hart.at.block = NONE;
        }
    }

    /// Runs about `budget` instructions, or until the hart is idle.
    pub fn run<H: Host>(&mut self, bus: &mut Bus<H>, budget: u64) -> Pause {
        let end = self.retired().saturating_add(budget);
        loop {
            self.poll_devices(bus);
            let left = end.saturating_sub(self.retired());
            if left == 0 || bus.take_early_exit() {
                return Pause::Budget;
            }
            let slice = match self.profile {
                Some(_) => PROFILE_SLICE,
                None => SLICE,
            };
            self.begin_slice((left as i64).min(slice));
            if let Some(pause) = self.slice(bus) {
                return pause;
            }
            if self.profile.is_some() {
                self.profile_slice(bus);
            } else if self.translator.is_enabled() && self.retired() >= self.next_sample {
                self.sample(bus);
            }
        }
    }

    /// Moves the budget of a slice into the cursor, preserving the count.
    fn begin_slice(&mut self, budget: i64) {
        let done = self.retired();
        self.hart.at.budget = budget;
        self.hart.csr.retired = done.wrapping_add(budget as u64);
    }

    /// Polls devices and clock, and updates pending interrupts.
    fn poll_devices<H: Host>(&mut self, bus: &mut Bus<H>) {
        bus.poll();
        let csr = &mut self.hart.csr;
        csr.set_pending(TIMER, bus.time() >= csr.deadline);
        csr.set_pending(EXTERNAL, bus.external_interrupt());
    }

    /// Runs until the slice's budget is used up, or the hart must stop.
    fn slice<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        loop {
            if !self.hart.at.inside {
                if let Some(number) = self.hart.csr.interrupt(self.hart.mode) {
                    let pc = self.hart.at.pc;
                    self.hart.take_interrupt(number, pc);
                }
                if self.hart.at.budget <= 0 {
                    return None;
                }
            }
            if self.hart.at.block == NONE
                && let Err(trap) = self.enter_block(bus, None)
            {
                self.trap(trap);
                continue;
            }
            let exit = exec::run(&mut self.hart, &self.code, bus.ram.bytes_mut());
            let pause = match exit {
                Exit::Budget => None,
                Exit::Lookup(link) => {
                    if let Err(trap) = self.enter_block(bus, link) {
                        self.trap(trap);
                    }
                    None
                }
                Exit::Slow => self.slow(bus),
                Exit::Interpret => {
                    if let Err(trap) = self.enter_copy(bus) {
                        self.trap(trap);
                    }
                    None
                }
            };
            if pause.is_some() {
                return pause;
            }
        }
    }

    /// Takes an exception and charges the budget, so that a guest whose trap vector faults
    /// does not run for ever.
    fn trap(&mut self, trap: Trap) {
        let pc = self.hart.at.pc;
        self.hart.at.budget -= 1;
        self.hart.take_trap(trap, pc);
    }

    /// Finds or decodes the block at the cursor, and links it to the exit slot through
    /// which control arrived.
    fn enter_block<H: Host>(&mut self, bus: &mut Bus<H>, link: Option<u32>) -> Result<(), Trap> {
        let pc = self.hart.at.pc;
        let offset_in_page = pc as usize % PAGE_SIZE;
        let exec = self.hart.mode as usize;
        let mut link = link;
        let known = self.hart.tlbs.exec[exec].find(pc);
        let number = known.and_then(|table| self.code.find(table, offset_in_page));
        let number = match number {
            Some(number) => number,
            None => {
                let (offset, is_global) = self.fetch_mapped(bus, pc)?;
                let page = offset / PAGE_SIZE;
                if self.code.is_full() {
                    self.flush(bus);
                    link = None;
                }
                let table = self.code.table(page);
                self.hart.tlbs.exec[exec].fill(pc, table, is_global);
                match self.code.find(table, offset_in_page) {
                    Some(number) => number,
                    None => {
                        if let (None, Some(profile)) = (link, &mut self.profile) {
                            profile.entry(page, offset_in_page);
                        }
                        self.decode_block(bus, page, offset_in_page)
                    }
                }
            }
        };
        if let Some(exit) = link {
            self.code.link(exit, number);
        }
        self.hart.at.block = number;
        self.hart.at.inside = false;
        Ok(())
    }

    /// Does the same as [`Cpu::enter_block`], but never enters translated code.
    fn enter_copy<H: Host>(&mut self, bus: &mut Bus<H>) -> Result<(), Trap> {
        self.enter_block(bus, None)?;
        if self.code.enters(self.hart.at.block) {
            let offset = self.fetch_offset(bus, self.hart.at.pc)?;
            if self.code.is_full() {
                self.flush(bus);
                return self.enter_block(bus, None);
            }
            let (page, offset) = (offset / PAGE_SIZE, offset % PAGE_SIZE);
            self.hart.at.block = self.code.copy(&bus.ram, page, offset);
        }
        Ok(())
    }

    fn decode_block<H: Host>(&mut self, bus: &mut Bus<H>, page: usize, offset: usize) -> u32 {
        if bus.ram.mark_code(page) {
            self.hart.tlbs.flush_writes_to(page * PAGE_SIZE);
        }
        if let Some(profile) = &mut self.profile {
            profile.block(page, offset);
        }
        // A written page is no longer translated, though its decoded code may run until the
        // next `fence.i`.
        match self.aot.find(page, offset) {
            Some((function, node)) if bus.ram.mark(page) == CodeMark::Clean => {
                self.code.stub(page, offset, function, node)
            }
            _ => self.code.build(&bus.ram, page, offset),
        }
    }

    /// RAM offset of the instruction at `pc`.
    fn fetch_offset<H: Host>(&mut self, bus: &mut Bus<H>, pc: u64) -> Result<usize, Trap> {
        match self.hart.tlbs.exec[self.hart.mode as usize].find(pc) {
            Some(table) => Ok(self.code.owner(table) * PAGE_SIZE + pc as usize % PAGE_SIZE),
            None => Ok(self.fetch_mapped(bus, pc)?.0),
        }
    }

    /// Translates by the page tables; also returns whether the mapping is global.
    fn fetch_mapped<H: Host>(&mut self, bus: &mut Bus<H>, pc: u64) -> Result<(usize, bool), Trap> {
        let mapping = self.hart.map(&mut bus.ram, pc, Access::Exec)?;
        match bus.ram.offset(mapping.pa, 2) {
            Some(offset) => Ok((offset, mapping.is_global)),
            None => Err(Access::Exec.access_fault(pc)),
        }
    }

    /// Runs the instruction at the cursor that the fast loop left.
    fn slow<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        let at = self.hart.at;
        let mut inst = self.code.line(at.block)[usize::from(at.index)];
        inst.op = fuse::plain(inst.op);
        if inst.op == Op::PageCrossing {
            return self.run_page_crossing(bus);
        }
        let location = self.code.location(at.block, at.index);
        let pc = at.pc.wrapping_add(location.distance as i64 as u64);
        let after = pc.wrapping_add(u64::from(location.length));
        let ends = inst.op.ends_block();
        // Exits of the block here are counted here.
        let count = i64::from(location.before) + 1;
        self.hart.at.budget -= count;
        let result = slow::execute(&mut self.hart, bus, &inst, pc);
        if !ends && matches!(result, Ok(Flow::Next | Flow::Device)) {
            self.hart.at.budget += count;
            if result == Ok(Flow::Device) {
                self.poll_devices_soon();
            }
            self.hart.at.index += 1;
            return None;
        }
        self.finish(bus, result, pc, after)
    }

    /// Ends the slice at the next block, so that a device's interrupt is seen.
    fn poll_devices_soon(&mut self) {
        self.begin_slice(0);
    }

    /// Continues after an instruction that ended a block or trapped.
    fn finish<H: Host>(
        &mut self,
        bus: &mut Bus<H>,
        result: Result<Flow, Trap>,
        pc: u64,
        after: u64,
    ) -> Option<Pause> {
        match result {
            Ok(Flow::Next | Flow::Anew) => self.hart.jump(after),
            Ok(Flow::Device) => {
                self.poll_devices_soon();
                self.hart.jump(after);
            }
            Ok(Flow::Jumped) => {}
            Ok(Flow::FenceI) => {
                self.drop_stale(bus);
                self.hart.jump(after);
            }
            Ok(Flow::Wait) => {
                self.hart.jump(after);
                return self.wait(bus);
            }
            Ok(Flow::PowerOff) => {
                self.hart.jump(after);
                return Some(Pause::PowerOff);
            }
            Ok(Flow::Reset) => {
                self.hart.jump(after);
                return Some(Pause::Reset);
            }
            Err(trap) => {
                self.hart.at.budget -= 1;
                self.hart.take_trap(trap, pc);
            }
        }
        None
    }

    /// Runs `wfi`: continues if an enabled interrupt is pending, even one that would not be
    /// taken.
    fn wait<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        self.poll_devices(bus);
        let idle = self.hart.csr.pending().is_none();
        idle.then_some(Pause::Wait)
    }

    /// Runs `fence.i`: drops the decoded code of written pages.
    fn drop_stale<H: Host>(&mut self, bus: &mut Bus<H>) {
        let pages = bus.ram.take_dirty();
        if pages.is_empty() {
            return;
        }
        for page in pages {
            self.code.drop_page(page as usize);
            self.translator.drop_page(page as usize);
            self.aot.drop_page(page as usize);
        }
        for exec in &mut self.hart.tlbs.exec {
            exec.flush();
        }
    }

    /// Runs the four-byte instruction at the cursor that crosses a page boundary.
    fn run_page_crossing<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        let pc = self.hart.at.pc;
        let block = match self.fetch_page_crossing(bus, pc) {
            Ok(bits) => {
                self.note_page_crossing(bus, pc, bits);
                self.page_crossing.block(bits)
            }
            Err(trap) => {
                self.trap(trap);
                return None;
            }
        };
        let code = &self.page_crossing.code;
        let ram = bus.ram.bytes_mut();
        let exit = exec::run_alone(&mut self.hart, (code, block), &mut self.nowhere, ram);
        self.hart.at.block = NONE;
        self.hart.at.inside = false;
        if exit != Exit::Slow {
            return None;
        }
        let inst = code.line(block)[usize::from(blocks::first(block))];
        self.hart.at.budget -= 1;
        let result = slow::execute(&mut self.hart, bus, &inst, pc);
        self.finish(bus, result, pc, pc.wrapping_add(4))
    }

    fn fetch_page_crossing<H: Host>(&mut self, bus: &mut Bus<H>, pc: u64) -> Result<u32, Trap> {
        let mut half = |va: u64| {
            let offset = self.fetch_offset(bus, va)?;
            let bits = bus.ram.read_u16(RAM_BASE + offset as u64);
            bits.map(u32::from).ok_or(Access::Exec.access_fault(va))
        };
        Ok(half(pc)? | half(pc.wrapping_add(2))? << 16)
    }

    /// Records an instruction that crosses a page boundary, and maps its second page for
    /// reading, where translated code checks it. A page that is not readable is no fault.
    fn note_page_crossing<H: Host>(&mut self, bus: &mut Bus<H>, pc: u64, bits: u32) {
        if let (Some(profile), Some(table)) = (
            &mut self.profile,
            self.hart.tlbs.exec[self.hart.mode as usize].find(pc),
        ) {
            profile.crossing(self.code.owner(table), (bits >> 16) as u16);
        }
        let next = pc.wrapping_add(2);
        let known = &self.hart.tlbs.data[self.hart.mmu_index()].read;
        if known.find(next, 2).is_none()
            && let Ok(mapping) = self.hart.map(&mut bus.ram, next, Access::Read)
            && let Some(offset) = bus.ram.offset(mapping.pa, 2)
        {
            let read = &mut self.hart.tlbs.data[self.hart.mmu_index()].read;
            read.fill(next, offset, mapping.is_global);
        }
    }
}

const _: () = assert!(SLICE as usize > blocks::MAX_BLOCK);
