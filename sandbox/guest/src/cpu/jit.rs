//! JIT and AOT code of the CPU: requests translations, installs them, and enables the
//! image's AOT regions.

use super::{Cpu, NONE, SLICE};
use crate::bus::Bus;
use crate::host::Host;
use crate::jit::{AotRegions, ContextLayout, Helpers, Policy, Profile};
use crate::ram::{CodeMark, PAGE_SIZE};

impl Cpu {
    /// Number of code entries that lead to AOT regions.
    pub fn aot_entries(&self) -> usize {
        self.aot.entries().len()
    }

    /// Translates hot code from now on, for an embedder that can compile it. The hart must
    /// not move.
    pub fn translate<H: Host>(&mut self, bus: &Bus<H>, policy: Policy, helpers: Helpers) {
        self.next_sample = self.retired().saturating_add(policy.age);
        let layout = ContextLayout::of(&self.hart, &bus.ram, helpers);
        self.translator.enable(layout, policy);
    }

    /// Records an execution profile from now on, without translating.
    pub fn start_profile<H: Host>(&mut self, bus: &mut Bus<H>) {
        self.stop_translating(bus);
        self.aot = AotRegions::default();
        // Separates blocks at every branch, so that each is recorded.
        self.code.join(false);
        self.profile = Some(Profile::default());
    }

    /// Ends and returns the profile of [`Cpu::start_profile`].
    pub fn finish_profile(&mut self) -> Profile {
        self.code.join(true);
        self.profile.take().unwrap_or_default()
    }

    /// Translates the code of a profile and uses it from now on; [`AotRegions::compile`]
    /// describes the result. `types` are those of [`ContextLayout`]. The hart must not
    /// move.
    pub fn compile_aot<H: Host>(
        &mut self,
        bus: &mut Bus<H>,
        profile: &Profile,
        (helpers, types): (Helpers, u32),
        (base, room): (u32, usize),
    ) -> Vec<u8> {
        let mut layout = ContextLayout::of(&self.hart, &bus.ram, helpers);
        layout.types = types;
        let (aot, functions) = AotRegions::compile(profile, &bus.ram, &layout, base, room);
        // Instances of this state have the entries at once, and the decoded code of other
        // pages.
        let mut blocks = self.code.blocks();
        let pages: Vec<usize> = aot.pages().collect();
        blocks.retain(|(page, _)| pages.binary_search(page).is_err());
        self.aot = aot;
        self.flush(bus);
        let entries = self.aot.entries().map(|entry| (entry.0, entry.1));
        blocks.extend(entries);
        for (page, offset) in blocks {
            if !self.code.is_full() {
                self.decode_block(bus, page, offset);
            }
        }
        functions
    }

    /// Enables or disables the image's translations.
    pub fn enable_aot<H: Host>(&mut self, bus: &mut Bus<H>, is_on: bool) {
        self.aot.switch(is_on);
        self.flush(bus);
    }

    /// Drops all code as [`Cpu::flush`] does, and stops translating.
    pub fn stop_translating<H: Host>(&mut self, bus: &mut Bus<H>) {
        self.flush(bus);
        self.translator.disable();
    }

    /// Installs function `function` of the table as the translation with that ticket; zero
    /// means that it failed. Returns whether it is used: not if its page has changed.
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
                // The remaining entries are optional.
                None if self.code.is_full() => break,
                None => self.decode_block(bus, installed.page, offset),
            };
            if !self.code.enters(block) {
                self.code.enter(block, function, node);
            }
        }
        // The block at the cursor may be a different one now.
        if !self.hart.at.inside {
            self.hart.at.block = NONE;
        }
        true
    }

    /// Counts a sample at the hart's position, and requests the translation of its page if
    /// that is hot.
    pub(super) fn sample<H: Host>(&mut self, bus: &mut Bus<H>) {
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

    /// Records the hart's position at the end of a slice, and the jump targets of the
    /// slice.
    pub(super) fn profile_slice<H: Host>(&mut self, bus: &mut Bus<H>) {
        let pc = self.hart.at.pc;
        let space = self.hart.csr.satp;
        let jumps = self.hart.tlbs.exec[self.hart.mode as usize].cached_targets();
        let targets: Vec<u64> = match &mut self.profile {
            Some(profile) => jumps.filter(|pc| profile.is_new(space, *pc)).collect(),
            None => return,
        };
        let here = self.fetch_offset(bus, pc);
        for target in targets {
            // A target that is no longer mapped does not matter.
            if let Ok(at) = self.fetch_offset(bus, target)
                && let Some(profile) = &mut self.profile
            {
                profile.entry(at / PAGE_SIZE, at % PAGE_SIZE);
            }
        }
        if let (Some(profile), Ok(at)) = (&mut self.profile, here) {
            profile.sample(at / PAGE_SIZE);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use crate::jit::{Helpers, Policy};
    use crate::machine::{Machine, MachineConfig, Status};
    use crate::ram::RAM_BASE;

    /// Records compilation requests.
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

    /// A machine in a loop (addi a0, a0, 1; j .-4) that has requested one translation, and
    /// the ticket.
    fn asked() -> (Machine<Compiler>, u32) {
        let config = MachineConfig {
            ram_bytes: 1 << 16,
            ..MachineConfig::default()
        };
        let mut machine = Machine::new(&config, Compiler::default());
        for (at, word) in [(0, 0x0015_0513), (4, 0xffdf_f06f)] {
            machine.bus.ram.write_u32(RAM_BASE + at, word);
        }
        let helpers = Helpers { float: 1, csr: 2 };
        let policy = Policy {
            samples: 1,
            ..Policy::default()
        };
        machine.cpu.translate(&machine.bus, policy, helpers);
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
        // Translated code that exits at once must still make progress.
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
        cpu.flush(bus);
        assert!(!cpu.translated(bus, ticket, 5));
    }
}
