//! A guest that is driven turn by turn: the emulator, what goes to the agent
//! and what comes from it. It knows no threads and never waits.

use super::error::{VmCode, VmError};
use super::imports::wall_ns;
use super::instance::{Channel, Emulator, Linked, Status};
use a99_guest_agent::protocol::{FrameReader, Report, Request};
use std::collections::VecDeque;

/// Instructions of one turn: some milliseconds, after which new requests are
/// seen.
const BUDGET: u64 = 1_000_000;

/// Bytes of console output that are kept: the kernel's last words.
const CONSOLE_BYTES: usize = 64 << 10;

/// Bytes of a VM generation identifier, 128 bits.
const VMGENID_BYTES: usize = 16;

/// Fresh entropy for a guest that starts from a snapshot, twice what the
/// kernel's generator holds.
const ENTROPY_BYTES: usize = 64;

/// What a new machine is made of and starts with.
#[derive(Clone, Copy, Debug)]
pub struct Boot<'a> {
    /// Kernel `Image`.
    pub kernel: &'a [u8],
    /// Initial file system: cpio archives.
    pub initrd: &'a [u8],
    /// The kernel's command line.
    pub cmdline: &'a str,
    /// Bytes of RAM.
    pub ram_bytes: u32,
}

/// Address of the network interface: locally administered.
pub(super) const MAC: u64 = 0x01_00_00_00_00_02;

/// Samples that make a page of guest code hot: with one in 8192 instructions a
/// million instructions, some 10,000 runs of a usual region. Compiling one costs
/// about as much as interpreting two million, so that less would lose.
const HOT_SAMPLES: u32 = 128;

/// Largest packet of the network interface in bytes.
pub(super) const MTU: u32 = 1500;

/// What is to be done after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another turn.
    Turn,
    /// Nothing until that time of the guest's clock in nanoseconds, or until a
    /// request.
    Wait(Option<u64>),
}

/// A guest; see the module.
#[derive(Debug)]
pub(super) struct Guest {
    pub emulator: Emulator,
    outbox: Vec<u8>,
    reader: FrameReader,
    console: VecDeque<u8>,
    retired: u64,
}

impl Guest {
    fn new(emulator: Emulator) -> Self {
        Self {
            emulator,
            outbox: Vec::new(),
            reader: FrameReader::new(),
            console: VecDeque::new(),
            retired: 0,
        }
    }

    /// A new machine that boots a kernel.
    pub fn boot(linked: &Linked, boot: &Boot<'_>) -> Result<Self, VmError> {
        let mut emulator = Emulator::new(linked, false)?;
        emulator.call::<(), ()>("_initialize", ())?;
        expect_ok(
            emulator.call("create", (boot.ram_bytes, MAC, MTU))?,
            "make a machine",
        )?;
        let scratch: u32 = emulator.call("scratch", ())?;
        let head = boot.kernel.get(..64).unwrap_or(boot.kernel);
        emulator.write(scratch.into(), head)?;
        let initrd_len = boot.initrd.len() as u32;
        let layout: u64 = emulator.call("layout", (head.len() as u32, initrd_len))?;
        if layout == u64::MAX {
            let text = "kernel and root file system do not fit, or the kernel is none";
            return Err(VmError::new(VmCode::Module, text));
        }
        for (offset, bytes) in [
            ((layout >> 32) as u32, boot.kernel),
            (layout as u32, boot.initrd),
        ] {
            let at: u32 = emulator.call("ram", (offset, bytes.len() as u32))?;
            emulator.write(at.into(), bytes)?;
        }
        emulator.write(scratch.into(), boot.cmdline.as_bytes())?;
        expect_ok(emulator.call("boot", boot.cmdline.len() as u32)?, "boot")?;
        Ok(Self::new(emulator))
    }

    /// A machine that goes on from a snapshot: with clocks of now, another
    /// generation identifier and fresh entropy, before anything else happens.
    pub fn resume(
        linked: &Linked,
        hostname: Option<&str>,
        translate: bool,
    ) -> Result<Self, VmError> {
        let mut emulator = Emulator::new(linked, translate)?;
        let mut fresh = [0; VMGENID_BYTES + ENTROPY_BYTES];
        getrandom::fill(&mut fresh)
            .map_err(|error| VmError::new(VmCode::Resources, format!("no randomness: {error}")))?;
        let (id, entropy) = fresh.split_at(VMGENID_BYTES);
        let id = u128::from_le_bytes(id.try_into().unwrap_or_default());
        expect_ok(
            emulator.call("resume", (id as u64, (id >> 64) as u64))?,
            "resume",
        )?;
        if translate {
            expect_ok(emulator.call("translation", HOT_SAMPLES)?, "translate")?;
        }
        let mut guest = Self::new(emulator);
        let resume = Request::Resume {
            wall_ns: wall_ns(),
            entropy: entropy.to_vec(),
            hostname: hostname.map(|name| name.as_bytes().to_vec()),
        };
        guest.request(0, &resume);
        Ok(guest)
    }

    /// Queues a request for the agent.
    pub fn request(&mut self, id: u32, request: &Request) {
        request.encode(id, &mut self.outbox);
    }

    /// Bytes of requests that the guest has not taken.
    pub fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// Runs the guest for a while and gives its reports to `told`.
    ///
    /// # Errors
    /// [`VmCode::GuestEnded`] and [`VmCode::EmulatorTrap`]: it runs no more.
    pub fn turn(&mut self, mut told: impl FnMut(&mut Self, u32, Report)) -> Result<Next, VmError> {
        let fed = self.feed()?;
        let (status, report) = self.emulator.run(BUDGET)?;
        self.retired = report.retired;
        if report.has_output(Channel::Console) {
            self.read_console()?;
        }
        // Nobody is at the other end of these yet.
        for channel in [Channel::Net, Channel::P9] {
            if report.has_output(channel) {
                self.emulator.drain(channel, |_| {})?;
            }
        }
        if report.has_output(Channel::Agent) {
            let reader = &mut self.reader;
            self.emulator
                .drain(Channel::Agent, |bytes| reader.push(bytes))?;
            loop {
                let next = self.reader.next(Report::decode);
                let next = next.map_err(|e| VmError::new(VmCode::Protocol, e.to_string()))?;
                let Some((id, report)) = next else { break };
                told(self, id, report);
            }
        }
        match status {
            Status::Budget => Ok(Next::Turn),
            Status::Wait(_) if !self.outbox.is_empty() && (fed || self.feed()?) => Ok(Next::Turn),
            Status::Wait(until) => Ok(Next::Wait(until)),
            Status::PowerOff => Err(self.ended("the guest turned itself off")),
            Status::Reset => Err(self.ended("the guest asked to be restarted")),
        }
    }

    /// Gives the guest what it takes of the outbox; whether that was anything.
    fn feed(&mut self) -> Result<bool, VmError> {
        if self.outbox.is_empty() {
            return Ok(false);
        }
        let count = self.emulator.feed(Channel::Agent, &self.outbox)?;
        self.outbox.drain(..count);
        Ok(count > 0)
    }

    fn read_console(&mut self) -> Result<(), VmError> {
        let console = &mut self.console;
        self.emulator
            .drain(Channel::Console, |bytes| console.extend(bytes))?;
        let excess = self.console.len().saturating_sub(CONSOLE_BYTES);
        self.console.drain(..excess);
        Ok(())
    }

    /// The end of what the console showed.
    pub fn console(&self) -> String {
        let bytes: Vec<u8> = self.console.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Instructions since the machine was made.
    pub fn retired(&self) -> u64 {
        self.retired
    }

    /// The guest's end, with the last line of its console.
    fn ended(&self, what: &str) -> VmError {
        let console = self.console();
        let last = console.lines().rfind(|line| !line.trim().is_empty());
        let text = match last {
            Some(line) => format!("{what}; its console ends with: {}", line.trim_end()),
            None => what.to_owned(),
        };
        VmError::new(VmCode::GuestEnded, text)
    }
}

pub(super) fn expect_ok(answer: u32, what: &str) -> Result<(), VmError> {
    if answer == 0 {
        return Ok(());
    }
    let text = format!("the emulator refuses to {what}: answer {answer}");
    Err(VmError::new(VmCode::Module, text))
}
