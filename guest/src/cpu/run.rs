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
use super::translate::{Places, Shipped, Study, Translator};
use super::trap::Trap;
use crate::bus::Bus;
use crate::host::Host;
use crate::ram::{CodeMark, PAGE_SIZE, RAM_BASE};

/// Instructions between two looks at the clock and the devices: some 20 us.
const SLICE: i64 = 8192;

/// The same while code is studied: so that few jumps are forgotten between two
/// looks at where they went.
const STUDY_SLICE: i64 = 2048;

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
    /// Translations that the image brought.
    shipped: Shipped,
    /// What of the code runs, while that is studied.
    study: Option<Study>,
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
            shipped: Shipped::default(),
            study: None,
        }
    }

    /// Instructions run so far.
    pub fn retired(&self) -> u64 {
        self.hart
            .csr
            .retired
            .wrapping_sub(self.hart.at.budget as u64)
    }

    /// How many places of code lead to translations that the image brought.
    pub fn shipped(&self) -> usize {
        self.shipped.entries().len()
    }

    /// Drops all decoded code and translations; they come back when used.
    pub fn forget<H: Host>(&mut self, bus: &mut Bus<H>) {
        self.code.clear();
        self.translator.clear();
        for page in bus.ram.take_dirty() {
            self.shipped.drop_page(page as usize);
        }
        bus.ram.clear_marks();
        for page in self.shipped.pages() {
            bus.ram.mark_code(page);
        }
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
            let slice = match self.study {
                Some(_) => STUDY_SLICE,
                None => SLICE,
            };
            self.begin_slice((left as i64).min(slice));
            if let Some(pause) = self.slice(bus) {
                return pause;
            }
            if self.study.is_some() {
                self.study_slice(bus);
            } else if self.translator.is_enabled() && self.retired() >= self.next_sample {
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

    /// From now on it is noted what of the code runs; nothing is translated.
    pub fn study<H: Host>(&mut self, bus: &mut Bus<H>) {
        self.stop_translating(bus);
        self.shipped = Shipped::default();
        // So that each place where control divides is noted.
        self.code.join(false);
        self.study = Some(Study::default());
    }

    /// What was noted since [`Cpu::study`], which ends with this.
    pub fn studied(&mut self) -> Study {
        self.code.join(true);
        self.study.take().unwrap_or_default()
    }

    /// Translates what a study found, to be used from now on; see
    /// [`Shipped::make`], which also says what the answer is. `float` and `types`
    /// are those of [`Places`]. The hart must not move.
    pub fn ship<H: Host>(
        &mut self,
        bus: &mut Bus<H>,
        study: &Study,
        (float, types): (u32, u32),
        (base, room): (u32, usize),
    ) -> Vec<u8> {
        let mut places = Places::of(&self.hart, &bus.ram, float);
        places.types = types;
        let (shipped, functions) = Shipped::make(study, &bus.ram, &places, base, room);
        // Who goes on from here has the entries at once, and what was decoded on
        // other pages.
        let mut blocks = self.code.blocks();
        let pages: Vec<usize> = shipped.pages().collect();
        blocks.retain(|(page, _)| pages.binary_search(page).is_err());
        self.shipped = shipped;
        self.forget(bus);
        let entries = self.shipped.entries().map(|entry| (entry.0, entry.1));
        blocks.extend(entries);
        for (page, offset) in blocks {
            if !self.code.is_full() {
                self.decode_block(bus, page, offset);
            }
        }
        functions
    }

    /// Uses the translations that the image brought, or does not.
    pub fn use_shipped<H: Host>(&mut self, bus: &mut Bus<H>, is_on: bool) {
        self.shipped.switch(is_on);
        self.forget(bus);
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

    /// Notes where the hart is at the end of a slice, and where jumps went in it.
    fn study_slice<H: Host>(&mut self, bus: &mut Bus<H>) {
        let pc = self.hart.at.pc;
        let space = self.hart.csr.satp;
        let jumps = self.hart.tlbs.exec[self.hart.mode as usize].jump_targets();
        let targets: Vec<u64> = match &mut self.study {
            Some(study) => jumps.filter(|pc| study.is_new(space, *pc)).collect(),
            None => return,
        };
        let here = self.fetch_offset(bus, pc);
        for target in targets {
            // A target that is not mapped any more is no loss.
            if let Ok(at) = self.fetch_offset(bus, target)
                && let Some(study) = &mut self.study
            {
                study.entry(at / PAGE_SIZE, at % PAGE_SIZE);
            }
        }
        if let (Some(study), Ok(at)) = (&mut self.study, here) {
            study.sample(at / PAGE_SIZE);
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

    /// Finds or decodes the block at the cursor, and links it to the exit in a
    /// slot, by which control got there.
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
                    None => {
                        if let (None, Some(study)) = (link, &mut self.study) {
                            study.entry(page, offset_in_page);
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
        if let Some(study) = &mut self.study {
            study.block(page, offset);
        }
        // A page that was written is translated no more, though its decoded code
        // may run until the next `fence.i`.
        match self.shipped.find(page, offset) {
            Some((function, node)) if bus.ram.mark(page) == CodeMark::Clean => {
                self.code.stub(page, offset, function, node)
            }
            _ => self.code.build(&bus.ram, page, offset),
        }
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
        let place = self.code.place(at.block, at.index);
        let pc = at.pc.wrapping_add(place.distance as i64 as u64);
        let after = pc.wrapping_add(u64::from(place.length));
        let ends = inst.op.ends_block();
        // What leaves the block here is counted here.
        let count = i64::from(place.before) + 1;
        if ends {
            self.hart.at.budget -= count;
        }
        let result = slow::execute(&mut self.hart, bus, &inst, pc);
        match result {
            _ if ends => {}
            Ok(Flow::Next | Flow::Device) => {
                if result == Ok(Flow::Device) {
                    self.look_around_soon();
                }
                self.hart.at.index += 1;
                return None;
            }
            _ => self.hart.at.budget -= count,
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
            self.shipped.drop_page(page as usize);
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
        self.hart.at.budget -= 1;
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
