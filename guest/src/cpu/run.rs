//! The hart with its decoded code: chooses blocks, takes traps and interrupts.

use super::blocks::{self, Code, NONE};
use super::csr::{EXTERNAL, TIMER};
use super::decode;
use super::exec::{self, Exit};
use super::fuse;
use super::hart::Hart;
use super::inst::Op;
use super::mmu::Access;
use super::slow::{self, Flow};
use super::tlb::ExecTlb;
use super::translate::{Places, Translator};
use super::trap::Trap;
use crate::bus::Bus;
use crate::host::Host;
use crate::ram::{CodeMark, PAGE_SIZE, RAM_BASE};

/// Instructions between two looks at the clock and the devices: some 20 us.
const SLICE: i64 = 8192;

/// Why the hart stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The budget is used up, or a device wants the embedder.
    Budget,
    /// It waits for an interrupt.
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
    code: Code,
    /// Holds one instruction that lies on two pages.
    straddling: Code,
    /// Stays empty; see [`exec::run_alone`].
    nowhere: ExecTlb,
    translator: Translator,
    /// Instructions run when the next sample is due.
    next_sample: u64,
}

impl Cpu {
    /// A hart in supervisor mode at `pc`, for a RAM of `ram_bytes`.
    pub fn new(pc: u64, ram_bytes: usize) -> Self {
        Self {
            hart: Hart::new(pc),
            code: Code::new(ram_bytes),
            straddling: Code::new(0),
            nowhere: ExecTlb::default(),
            translator: Translator::default(),
            next_sample: 0,
        }
    }

    /// Instructions run so far.
    pub fn retired(&self) -> u64 {
        self.hart
            .csr
            .retired
            .wrapping_sub(self.hart.at.budget as u64)
    }

    /// Drops all decoded code and translations; they come back when used.
    pub fn forget<H: Host>(&mut self, bus: &mut Bus<H>) {
        self.code.clear();
        self.translator.clear();
        bus.ram.clear_marks();
        self.hart.tlbs.flush();
        if !self.hart.at.inside {
            self.hart.at.block = NONE;
        }
    }

    /// Runs about `budget` instructions, or until there is nothing to do.
    pub fn run<H: Host>(&mut self, bus: &mut Bus<H>, budget: u64) -> Pause {
        let end = self.retired().saturating_add(budget);
        loop {
            self.look_around(bus);
            let left = end.saturating_sub(self.retired());
            if left == 0 || bus.take_kick() {
                return Pause::Budget;
            }
            self.begin_slice((left as i64).min(SLICE));
            if let Some(pause) = self.slice(bus) {
                return pause;
            }
            if self.translator.is_enabled() && self.retired() >= self.next_sample {
                self.sample(bus);
            }
        }
    }

    /// From now on hot code is translated, for an embedder that can compile it:
    /// that of pages with so many samples, the first after `age` instructions.
    /// `float` is the helper [`Places`] speaks of. The hart must not move.
    pub fn translate<H: Host>(&mut self, bus: &Bus<H>, samples: u16, age: u64, float: u32) {
        self.next_sample = self.retired().saturating_add(age);
        let places = Places::of(&self.hart, &bus.ram, float);
        self.translator.enable(places, samples);
    }

    /// Drops all code as [`Cpu::forget`] does, and translates no more.
    pub fn stop_translating<H: Host>(&mut self, bus: &mut Bus<H>) {
        self.forget(bus);
        self.translator.disable();
    }

    /// What was asked for under a ticket is function `function` of the table;
    /// zero: there is none. The answer is whether it is used: not if its page
    /// has changed.
    pub fn translated<H: Host>(&mut self, bus: &mut Bus<H>, ticket: u32, function: u32) -> bool {
        let Some(installed) = self.translator.take(ticket) else {
            return false;
        };
        let is_clean = bus.ram.mark(installed.page) == CodeMark::Clean;
        if function == 0 || !is_clean || self.code.is_full() {
            return false;
        }
        let table = self.code.table(installed.page);
        for (offset, node) in installed.entries {
            let offset = usize::from(offset);
            let block = match self.code.find(table, offset) {
                Some(block) => block,
                // The rest of the entries can do without.
                None if self.code.is_full() => break,
                None => self.decode_block(bus, installed.page, offset),
            };
            if !self.code.enters(block) {
                self.code.enter(block, function, node);
            }
        }
        // The cursor may stand at a block that is another one now.
        if !self.hart.at.inside {
            self.hart.at.block = NONE;
        }
        true
    }

    /// Counts the place where the hart is, and asks for the translation of its
    /// page if that is hot.
    fn sample<H: Host>(&mut self, bus: &mut Bus<H>) {
        if !self.translator.is_eager() {
            self.next_sample = self.retired().wrapping_add(SLICE as u64);
        }
        let pc = self.hart.at.pc;
        let offset = pc as usize % PAGE_SIZE;
        let table = self.hart.tlbs.exec[self.hart.mode as usize].find(pc);
        let block = table.and_then(|table| self.code.find(table, offset));
        if block.is_none_or(|block| self.code.enters(block)) {
            return;
        }
        let Ok(at) = self.fetch_offset(bus, pc) else {
            return;
        };
        let page = at / PAGE_SIZE;
        if bus.ram.mark(page) != CodeMark::Clean || !self.translator.sample(page, offset as u16) {
            return;
        }
        let bytes = &bus.ram.bytes()[page * PAGE_SIZE..(page + 1) * PAGE_SIZE];
        if let Some(wanted) = self.translator.want(page, bytes) {
            bus.host.translate(&wanted.module, wanted.ticket);
        }
    }

    /// Moves the budget of a slice into the cursor, keeping the count.
    fn begin_slice(&mut self, budget: i64) {
        let done = self.retired();
        self.hart.at.budget = budget;
        self.hart.csr.retired = done.wrapping_add(budget as u64);
    }

    /// Polls devices and clock, and sets what is pending.
    fn look_around<H: Host>(&mut self, bus: &mut Bus<H>) {
        bus.poll();
        let csr = &mut self.hart.csr;
        csr.set_pending(TIMER, bus.time() >= csr.deadline);
        csr.set_pending(EXTERNAL, bus.external_interrupt());
    }

    /// Runs until the slice's budget is used up, or there is a reason to stop.
    fn slice<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        loop {
            if !self.hart.at.inside {
                if let Some(number) = self.hart.interrupt() {
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

    /// An exception that costs a bit of the budget, so that a guest whose trap
    /// vector faults does not run for ever.
    fn trap(&mut self, trap: Trap) {
        let pc = self.hart.at.pc;
        self.hart.at.budget -= 1;
        self.hart.take_trap(trap, pc);
    }

    /// Finds or decodes the block at the cursor, and links it to the side of
    /// the block that jumped there.
    fn enter_block<H: Host>(
        &mut self,
        bus: &mut Bus<H>,
        link: Option<(u32, bool)>,
    ) -> Result<(), Trap> {
        let pc = self.hart.at.pc;
        let offset_in_page = pc as usize % PAGE_SIZE;
        let exec = self.hart.mode as usize;
        let mut link = link;
        let known = self.hart.tlbs.exec[exec].find(pc);
        let number = known.and_then(|table| self.code.find(table, offset_in_page));
        let number = match number {
            Some(number) => number,
            None => {
                let offset = self.fetch_offset(bus, pc)?;
                let page = offset / PAGE_SIZE;
                if self.code.is_full() {
                    self.forget(bus);
                    link = None;
                }
                let table = self.code.table(page);
                self.hart.tlbs.exec[exec].fill(pc, table);
                match self.code.find(table, offset_in_page) {
                    Some(number) => number,
                    None => self.decode_block(bus, page, offset_in_page),
                }
            }
        };
        if let Some((from, taken)) = link {
            self.code.link(from, taken, number);
        }
        self.hart.at.block = number;
        self.hart.at.inside = false;
        Ok(())
    }

    /// As [`Cpu::enter_block`], but to instructions, not to translated code.
    fn enter_copy<H: Host>(&mut self, bus: &mut Bus<H>) -> Result<(), Trap> {
        self.enter_block(bus, None)?;
        if self.code.enters(self.hart.at.block) {
            let offset = self.fetch_offset(bus, self.hart.at.pc)?;
            if self.code.is_full() {
                self.forget(bus);
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
        self.code.build(&bus.ram, page, offset)
    }

    /// The offset in RAM of the instruction at `pc`.
    fn fetch_offset<H: Host>(&mut self, bus: &mut Bus<H>, pc: u64) -> Result<usize, Trap> {
        let pa = self.hart.translate(&mut bus.ram, pc, Access::Exec)?;
        let offset = bus.ram.offset(pa, 2);
        offset.ok_or(Access::Exec.access_fault(pc))
    }

    /// Runs the instruction at the cursor, which the fast loop left.
    fn slow<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        let at = self.hart.at;
        let mut inst = self.code.line(at.block)[usize::from(at.index)];
        inst.op = fuse::plain(inst.op);
        if inst.op == Op::Straddle {
            return self.straddle(bus);
        }
        let (length, before) = self.code.place(at.block, at.index);
        let pc = at.pc.wrapping_add(before);
        let after = pc.wrapping_add(u64::from(length));
        let result = slow::execute(&mut self.hart, bus, &inst, pc);
        if !inst.op.ends_block() && matches!(result, Ok(Flow::Next | Flow::Device)) {
            if result == Ok(Flow::Device) {
                self.look_around_soon();
            }
            self.hart.at.index += 1;
            return None;
        }
        self.finish(bus, result, pc, after)
    }

    /// Ends the slice at the next block, so that a device's interrupt is seen.
    fn look_around_soon(&mut self) {
        self.begin_slice(0);
    }

    /// Goes on after an instruction that ended a block or trapped.
    fn finish<H: Host>(
        &mut self,
        bus: &mut Bus<H>,
        result: Result<Flow, Trap>,
        pc: u64,
        after: u64,
    ) -> Option<Pause> {
        match result {
            Ok(Flow::Next) => self.hart.jump(after),
            Ok(Flow::Device) => {
                self.look_around_soon();
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

    /// `wfi`: goes on if an enabled interrupt is pending, whether or not it
    /// would be taken.
    fn wait<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        self.look_around(bus);
        let idle = self.hart.csr.pending().is_none();
        idle.then_some(Pause::Wait)
    }

    /// `fence.i`: drops the decoded code of pages that were written.
    fn drop_stale<H: Host>(&mut self, bus: &mut Bus<H>) {
        let pages = bus.ram.take_dirty();
        if pages.is_empty() {
            return;
        }
        for page in pages {
            self.code.drop_page(page as usize);
            self.translator.drop_page(page as usize);
        }
        for exec in &mut self.hart.tlbs.exec {
            exec.flush();
        }
    }

    /// Runs the four-byte instruction at the cursor whose halves lie on two
    /// pages.
    fn straddle<H: Host>(&mut self, bus: &mut Bus<H>) -> Option<Pause> {
        let pc = self.hart.at.pc;
        let inst = match self.fetch_straddling(bus, pc) {
            Ok(bits) => decode::decode(bits).0,
            Err(trap) => {
                self.trap(trap);
                return None;
            }
        };
        self.straddling.hold(inst, 4);
        let ram = bus.ram.bytes_mut();
        let exit = exec::run_alone(&mut self.hart, &self.straddling, &mut self.nowhere, ram);
        self.hart.at.block = NONE;
        self.hart.at.inside = false;
        if exit != Exit::Slow {
            return None;
        }
        let result = slow::execute(&mut self.hart, bus, &inst, pc);
        self.finish(bus, result, pc, pc.wrapping_add(4))
    }

    fn fetch_straddling<H: Host>(&mut self, bus: &mut Bus<H>, pc: u64) -> Result<u32, Trap> {
        let mut half = |va: u64| {
            let offset = self.fetch_offset(bus, va)?;
            let bits = bus.ram.read_u16(RAM_BASE + offset as u64);
            bits.map(u32::from).ok_or(Access::Exec.access_fault(va))
        };
        Ok(half(pc)? | half(pc.wrapping_add(2))? << 16)
    }
}

const _: () = assert!(SLICE as usize > blocks::MAX_BLOCK);

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use crate::machine::{Machine, MachineConfig, Status};
    use crate::ram::RAM_BASE;

    /// Remembers what it is asked to compile.
    #[derive(Debug, Default)]
    struct Compiler(Vec<(Vec<u8>, u32)>);

    impl Host for Compiler {
        fn monotonic_ns(&mut self) -> u64 {
            0
        }

        fn wall_ns(&mut self) -> u64 {
            0
        }

        fn random(&mut self, buf: &mut [u8]) {
            buf.fill(0);
        }

        fn translate(&mut self, module: &[u8], ticket: u32) {
            self.0.push((module.to_vec(), ticket));
        }
    }

    /// A machine in a loop (addi a0, a0, 1; j .-4) that was asked about once,
    /// and the ticket.
    fn asked() -> (Machine<Compiler>, u32) {
        let config = MachineConfig {
            ram_bytes: 1 << 16,
            ..MachineConfig::default()
        };
        let mut machine = Machine::new(&config, Compiler::default());
        for (at, word) in [(0, 0x0015_0513), (4, 0xffdf_f06f)] {
            machine.bus.ram.write_u32(RAM_BASE + at, word);
        }
        machine.cpu.translate(&machine.bus, 1, 0, 1);
        assert_eq!(machine.run(1), Status::Budget);
        let ticket = ask(&mut machine);
        (machine, ticket)
    }

    fn ask(machine: &mut Machine<Compiler>) -> u32 {
        machine.bus.host.0.clear();
        machine.run(100);
        let (module, ticket) = machine.bus.host.0.pop().expect("a module");
        assert!(module.starts_with(b"\0asm"));
        ticket
    }

    #[test]
    fn a_module_is_used_once_and_only_if_it_is_there() {
        let (mut machine, ticket) = asked();
        let Machine { cpu, bus } = &mut machine;
        assert!(!cpu.translated(bus, ticket, 0));
        let again = ask(&mut machine);
        assert_ne!(again, ticket);
        let Machine { cpu, bus } = &mut machine;
        assert!(!cpu.translated(bus, ticket, 5));
        assert!(cpu.translated(bus, again, 5));
        assert!(!cpu.translated(bus, again, 5));
        // Translated code that leaves at once still makes progress.
        let before = (cpu.retired(), cpu.hart.x[10]);
        machine.run(1000);
        let after = (machine.cpu.retired(), machine.cpu.hart.x[10]);
        assert!(after.0 >= before.0 + 1000);
        assert_eq!((after.0 - before.0) / 2, after.1 - before.1);
    }

    #[test]
    fn a_module_for_code_that_changed_is_not_used() {
        let (mut machine, ticket) = asked();
        machine.bus.ram.write_u32(RAM_BASE, 0x0025_0513);
        let Machine { cpu, bus } = &mut machine;
        assert!(!cpu.translated(bus, ticket, 5));
        let (mut machine, ticket) = asked();
        let Machine { cpu, bus } = &mut machine;
        cpu.forget(bus);
        assert!(!cpu.translated(bus, ticket, 5));
    }
}
