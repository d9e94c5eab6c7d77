//! JIT and AOT code of the CPU: requests translations, installs them, and enables the
//! image's AOT regions.

use super::{Cpu, NONE, SLICE};
use crate::bus::Bus;
use crate::hart::Mode;
use crate::host::Host;
use crate::interp::decode;
use crate::jit::{AotRegions, ContextLayout, Helpers, Policy, Profile};
use crate::ram::{CodeMark, PAGE_SIZE};
use a99_sandbox_abi::{LAYOUT_WORDS, NEXT_BYTES};

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

    /// Layout for the embedder that translates; none while translation is off.
    pub fn context_layout(&self) -> Option<[u32; LAYOUT_WORDS]> {
        self.translator.layout().map(ContextLayout::words)
    }

    /// Installs function `function` of the table, with its entries as offset and node, as a
    /// translation of the page requested with that ticket; zero ends the request. Returns
    /// whether it is used: not if its page has changed.
    pub fn translated<H: Host>(
        &mut self,
        bus: &mut Bus<H>,
        ticket: u32,
        function: u32,
        entries: impl Iterator<Item = (u16, u8)>,
    ) -> bool {
        if function == 0 {
            self.translator.finish(ticket);
            return false;
        }
        let Some(page) = self.translator.page(ticket) else {
            return false;
        };
        if bus.ram.mark(page) != CodeMark::Clean || self.code.is_full() {
            return false;
        }
        let table = self.code.table(page);
        for (offset, node) in entries.filter(|entry| usize::from(entry.0) < PAGE_SIZE) {
            let offset = usize::from(offset);
            let block = match self.code.find(table, offset) {
                Some(block) => block,
                // The remaining entries are optional.
                None if self.code.is_full() => break,
                None => self.decode_block(bus, page, offset),
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
        if bus.ram.mark(page) != CodeMark::Clean {
            return;
        }
        let Some(entries) = self.translator.sample(page, offset as u16) else {
            return;
        };
        let ticket = self.translator.ticket();
        let is_user = self.hart.mode == Mode::User;
        let start = |page: usize, len| &bus.ram.bytes()[page * PAGE_SIZE..][..len];
        let mut bytes = start(page, PAGE_SIZE).to_vec();
        // The next page matters only to a long instruction that begins on this one.
        let last = bytes[PAGE_SIZE - 2].into();
        let after = (pc | (PAGE_SIZE as u64 - 1)).wrapping_add(1);
        if decode::length(last) == 4
            && let Some(table) = self.hart.tlbs.exec[self.hart.mode as usize].find(after)
        {
            bytes.extend(start(self.code.owner(table), NEXT_BYTES));
        }
        if bus.host.translate(&bytes, is_user, &entries, ticket) {
            self.translator.requested(page, ticket);
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
            profile.sample(at / PAGE_SIZE, self.hart.mode == Mode::User);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use crate::jit::{Helpers, Policy};
    use crate::machine::{Machine, MachineConfig, Status};
    use crate::ram::RAM_BASE;

    /// Records requests for translations.
    #[derive(Debug, Default)]
    struct Compiler(Vec<(Vec<u16>, u32)>);

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

        fn translate(&mut self, page: &[u8], is_user: bool, entries: &[u16], ticket: u32) -> bool {
            assert_eq!(page[..4], 0x0015_0513u32.to_le_bytes());
            assert!(!is_user);
            self.0.push((entries.to_vec(), ticket));
            true
        }
    }

    /// A machine in a loop (addi a0, a0, 1; j .-4) that translates.
    fn machine(samples: u16) -> Machine<Compiler> {
        let config = MachineConfig {
            ram_bytes: 1 << 16,
            ..MachineConfig::default()
        };
        let mut machine = Machine::new(&config, Compiler::default());
        for (at, word) in [(0, 0x0015_0513), (4, 0xffdf_f06f)] {
            machine.bus.ram.write_u32(RAM_BASE + at, word);
        }
        let helpers = Helpers { float: 1, csr: 2 };
        let policy = Policy { samples, age: 0 };
        machine.cpu.translate(&machine.bus, policy, helpers);
        machine
    }

    /// Such a machine that has requested one translation, and the ticket.
    fn asked() -> (Machine<Compiler>, u32) {
        let mut machine = machine(1);
        assert_eq!(machine.run(1), Status::Budget);
        let ticket = ask(&mut machine);
        (machine, ticket)
    }

    fn ask(machine: &mut Machine<Compiler>) -> u32 {
        machine.bus.host.0.clear();
        machine.run(100);
        let (entries, ticket) = machine.bus.host.0.pop().expect("a request");
        assert_eq!(entries.len(), 1);
        ticket
    }

    /// Announces a function with an entry at the loop.
    fn announce(machine: &mut Machine<Compiler>, ticket: u32, function: u32) -> bool {
        let Machine { cpu, bus } = machine;
        let entries = [(0, 0), (4, 1), (u16::MAX, 2)];
        cpu.translated(bus, ticket, function, entries.into_iter())
    }

    #[test]
    fn a_function_is_used_as_long_as_its_request_is_open() {
        let (mut machine, ticket) = asked();
        assert!(!announce(&mut machine, ticket, 0));
        assert!(!announce(&mut machine, ticket, 5));
        let again = ask(&mut machine);
        assert_ne!(again, ticket);
        assert!(!announce(&mut machine, ticket, 5));
        assert!(announce(&mut machine, again, 5));
        // Another function for other entries of the page.
        assert!(announce(&mut machine, again, 6));
        assert!(!announce(&mut machine, again, 0));
        assert!(!announce(&mut machine, again, 5));
        // Translated code that exits at once must still make progress.
        let before = (machine.cpu.retired(), machine.cpu.hart.x[10]);
        machine.run(1000);
        let after = (machine.cpu.retired(), machine.cpu.hart.x[10]);
        assert!(after.0 >= before.0 + 1000);
        assert_eq!((after.0 - before.0) / 2, after.1 - before.1);
    }

    #[test]
    fn a_function_for_code_that_changed_is_not_used() {
        let (mut machine, ticket) = asked();
        machine.bus.ram.write_u32(RAM_BASE, 0x0025_0513);
        assert!(!announce(&mut machine, ticket, 5));
        let (mut machine, ticket) = asked();
        let Machine { cpu, bus } = &mut machine;
        cpu.flush(bus);
        assert!(!announce(&mut machine, ticket, 5));
    }

    #[test]
    fn the_first_sample_asks_for_what_exists_and_heat_for_a_translation() {
        let mut machine = machine(3);
        machine.run(10 * super::SLICE as u64);
        let requests = std::mem::take(&mut machine.bus.host.0);
        let counts: Vec<usize> = requests.iter().map(|request| request.0.len()).collect();
        assert_eq!(counts[..4], [0, 1, 0, 1]);
    }
}
