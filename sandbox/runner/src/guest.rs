//! Guest driver: steps the emulator, and moves requests and reports of the agent, file
//! requests and network frames. It uses no threads and never blocks.

use super::backends::{Backends, no_files};
use super::cow;
use super::disk::{Disks, Layer, OwnDisk};
use super::error::{VmCode, VmError};
use super::frozen::{Frozen, Head, Origin};
use super::handle::random_id;
use super::imports::{CLOCK_RESOLUTION_NS, wall_ns};
use super::instance::{Emulator, Linked, Ran};
use super::machine::RAM_BYTES;
use super::translator::GuestJit;
use a99_sandbox_abi::{Answer, Channel, Device, Disk, RAM_BASE, frame, functions as abi, unpair};
use a99_sandbox_protocol::{FrameReader, Report, Request, Resume};
use std::collections::VecDeque;
use std::sync::Arc;

/// Instructions of one step: some milliseconds, after which new requests are seen.
const BUDGET: u64 = 1_000_000;

/// Bytes of console output to keep, for the kernel's last messages.
const CONSOLE_BYTES: usize = 64 << 10;

/// Size of a VM generation identifier, 128 bits.
const VMGENID_BYTES: usize = 16;

/// Bytes of fresh entropy for a guest that starts from a snapshot: twice the state of the
/// kernel's generator.
const ENTROPY_BYTES: usize = 64;

/// Boot parameters of a new machine.
#[derive(Clone, Copy, Debug)]
pub struct Boot<'a> {
    /// Kernel `Image`.
    pub kernel: &'a [u8],
    /// Initial file system, as cpio archives.
    pub initrd: &'a [u8],
    /// Kernel command line.
    pub cmdline: &'a str,
    /// RAM in bytes.
    pub ram_bytes: u32,
}

/// MAC address of the network interface, locally administered.
pub(super) const MAC: u64 = 0x01_00_00_00_00_02;

/// Maximum MTU of the network interface: virtio's limit, rounded to a multiple of eight for
/// fragments. The kernel fixes it when it finds the device; the agent may set less.
pub(super) const MTU: u32 = a99_sandbox_net::MAX_MTU as u32;

/// Interval in nanoseconds at which a full net backend is retried even without a wake-up.
const NET_POLL_INTERVAL_NS: u64 = 2_000_000;

/// Parameters of a guest that starts from its image.
#[derive(Debug)]
pub struct Setup {
    /// Request for the agent; time and entropy are filled in.
    pub resume: Resume,
    /// When hot guest code is compiled.
    pub guest_jit: GuestJit,
    /// Clock resolution in nanoseconds.
    pub clock_resolution_ns: u64,
    /// Backends of the devices.
    pub backends: Backends,
    /// RAM in bytes, at least that of the image.
    pub ram_bytes: u32,
    /// The guest's own disk: empty, or created by the origin.
    pub disk: Option<OwnDisk>,
    /// Where files go that do not fit memory. Without it, the guest must be asked to keep
    /// them in memory ([`Resume::swap_off`]).
    pub swap: Option<OwnDisk>,
    /// Layers of the root's files; the first wins. At most
    /// [`MAX_LAYERS`](super::disk::MAX_LAYERS).
    pub layers: Vec<Layer>,
    /// Guest to continue, instead of the image alone.
    pub origin: Option<Origin>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            resume: Resume::default(),
            guest_jit: GuestJit::default(),
            clock_resolution_ns: CLOCK_RESOLUTION_NS,
            backends: Backends::default(),
            ram_bytes: RAM_BYTES,
            disk: None,
            swap: Some(OwnDisk::swap()),
            layers: Vec::new(),
            origin: None,
        }
    }
}

/// Next action after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Take another step.
    Step,
    /// Wait until that time of the guest's clock in nanoseconds, or for a request.
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
    aot_entries: u32,
    broken: u32,
    backends: Backends,
    /// A response to a file request, with its tag, that the guest had no room for.
    reply: Option<(u32, Vec<u8>)>,
    /// A frame that the guest had no room for.
    frame: Option<(Vec<u8>, bool)>,
    /// Guest frames wait for room in the net backend.
    net_full: bool,
    guest_jit: GuestJit,
    resumed_as: u64,
    /// Frozen pages that its memory consists of, above the image's.
    layers: Vec<Arc<cow::Layer>>,
    /// Layers to map before it runs on, after it was frozen.
    frozen: Option<Vec<Arc<cow::Layer>>>,
}

impl Guest {
    fn new(emulator: Emulator, backends: Backends) -> Self {
        Self {
            emulator,
            outbox: Vec::new(),
            reader: FrameReader::new(),
            console: VecDeque::new(),
            retired: 0,
            aot_entries: 0,
            broken: 0,
            backends,
            reply: None,
            frame: None,
            net_full: false,
            guest_jit: GuestJit::Off,
            resumed_as: 0,
            layers: Vec::new(),
            frozen: None,
        }
    }

    /// Boots a kernel on a new machine.
    pub(crate) fn boot(linked: &Linked, boot: &Boot<'_>) -> Result<Self, VmError> {
        let mut emulator = Emulator::new(linked, CLOCK_RESOLUTION_NS, false)?;
        emulator.disks().swap = Some(OwnDisk::swap());
        emulator.call(abi::INITIALIZE, ())?;
        expect_ok(
            emulator.call(
                abi::CREATE,
                (boot.ram_bytes, MAC, MTU, linked.disk_sectors()),
            )?,
            "make a machine",
        )?;
        let scratch = emulator.call(abi::SCRATCH, ())?;
        let head = boot.kernel.get(..64).unwrap_or(boot.kernel);
        emulator.write(scratch.into(), head)?;
        let initrd_len = boot.initrd.len() as u32;
        let layout = emulator.call(abi::LAYOUT, (head.len() as u32, initrd_len))?;
        if layout == u64::MAX {
            let text = "kernel and root file system do not fit, or the kernel is none";
            return Err(VmError::new(VmCode::Module, text));
        }
        let (kernel_at, initrd_at) = unpair(layout);
        for (offset, bytes) in [(kernel_at, boot.kernel), (initrd_at, boot.initrd)] {
            let at = emulator.call(abi::RAM, (offset, bytes.len() as u32))?;
            emulator.write(at.into(), bytes)?;
        }
        emulator.write(scratch.into(), boot.cmdline.as_bytes())?;
        expect_ok(emulator.call(abi::BOOT, boot.cmdline.len() as u32)?, "boot")?;
        Ok(Self::new(emulator, Backends::default()))
    }

    /// Resumes a machine from a snapshot. It first gets current clocks, a new generation
    /// identifier and fresh entropy.
    pub(crate) fn resume(linked: &Linked, mut setup: Setup) -> Result<Self, VmError> {
        let mut emulator = Emulator::new(
            linked,
            setup.clock_resolution_ns,
            setup.guest_jit.compiles(),
        )?;
        let mut reader = FrameReader::new();
        let origin = setup.origin.take();
        setup.resume.interrupt = origin.is_some();
        let mut layers = Vec::new();
        if let Some(origin) = origin {
            let disks = [setup.disk.as_mut(), setup.swap.as_mut()];
            let (shared, unread) = origin.apply(&mut emulator, disks)?;
            layers = shared;
            reader.push(&unread);
        }
        let mut guest = Self::wake(emulator, reader, setup)?;
        guest.layers = layers;
        Ok(guest)
    }

    /// Copies a guest that is ready for a snapshot; the copy behaves as if resumed from it.
    pub(crate) fn copy(linked: &Linked, original: &Self, setup: Setup) -> Result<Self, VmError> {
        let mut emulator = Emulator::new(linked, CLOCK_RESOLUTION_NS, false)?;
        let memory = original.emulator.memory();
        emulator.grow(memory.len())?;
        emulator.write(0, memory)?;
        Self::wake(emulator, FrameReader::new(), setup)
    }

    fn wake(mut emulator: Emulator, reader: FrameReader, setup: Setup) -> Result<Self, VmError> {
        let mut fresh = [0; VMGENID_BYTES + ENTROPY_BYTES];
        getrandom::fill(&mut fresh)
            .map_err(|error| VmError::new(VmCode::Resources, format!("no randomness: {error}")))?;
        let (id, entropy) = fresh.split_at(VMGENID_BYTES);
        let id = u128::from_le_bytes(id.try_into().unwrap_or_default());
        expect_ok(
            emulator.call(abi::RESUME, (id as u64, (id >> 64) as u64))?,
            "resume",
        )?;
        // The guest learns of it by the request.
        let memory = (setup.ram_bytes > RAM_BYTES).then(|| {
            let at = |bytes| RAM_BASE + u64::from(bytes);
            (at(RAM_BYTES), at(setup.ram_bytes))
        });
        if memory.is_some() {
            let grown = emulator.call(abi::GROW_RAM, setup.ram_bytes)?;
            expect_ok(grown, "grow its memory")?;
        }
        let own = setup.disk.as_ref();
        let own = own.map(|disk| (Disk::Own, disk.sectors()));
        let layers = (0..).zip(&setup.layers);
        let layers = layers.map(|(number, layer)| (Disk::Layer(number), layer.sectors()));
        // A copy's machine has its disks already.
        let is_new = !setup.resume.interrupt;
        let attached = own.into_iter().chain(layers).filter(|_| is_new);
        let attached: Vec<(Disk, u64)> = attached.collect();
        emulator.disks().own = setup.disk;
        emulator.disks().swap = setup.swap;
        emulator.disks().layers = setup.layers;
        for (disk, sectors) in attached {
            let answer = emulator.call(abi::ATTACH_DISK, (disk.number(), sectors))?;
            expect_ok(answer, "attach a disk")?;
        }
        start_jit(&mut emulator, setup.guest_jit)?;
        let mut guest = Self::new(emulator, setup.backends);
        guest.reader = reader;
        guest.guest_jit = setup.guest_jit;
        let resume = Resume {
            wall_ns: wall_ns(),
            entropy: entropy.to_vec(),
            memory,
            ..setup.resume
        };
        guest.resumed_as = random_id()?;
        guest.request(guest.resumed_as, &Request::Resume(Box::new(resume)));
        Ok(guest)
    }

    /// Queues a request for the agent.
    pub(crate) fn request(&mut self, id: u64, request: &Request) {
        request.encode(id, &mut self.outbox);
    }

    /// Id of the resume request.
    pub(crate) fn resumed_as(&self) -> u64 {
        self.resumed_as
    }

    /// Bytes of requests that the guest has not taken.
    pub(crate) fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// Runs the guest for a while and passes its reports to `on_report`.
    ///
    /// # Errors
    /// [`VmCode::GuestEnded`] and [`VmCode::EmulatorTrap`], after which the guest no longer
    /// runs.
    pub(crate) fn step(
        &mut self,
        mut on_report: impl FnMut(&mut Self, u64, Report),
    ) -> Result<Next, VmError> {
        self.thaw()?;
        let fed = self.feed()?;
        self.deliver_frames()?;
        let (status, report) = self.emulator.run(BUDGET)?;
        self.retired = report.retired;
        self.aot_entries = report.aot_entries;
        self.broken = report.broken;
        if report.has_output(Channel::Console) {
            self.read_console()?;
        }
        let answered = self.answer_files()?;
        self.send_frames()?;
        if report.has_output(Channel::Agent) {
            let reader = &mut self.reader;
            self.emulator
                .drain(Channel::Agent, |bytes| reader.push(bytes))?;
            loop {
                let next = self.reader.next(Report::decode);
                let next = next.map_err(|e| VmError::new(VmCode::Protocol, e.to_string()))?;
                let Some((id, report)) = next else { break };
                on_report(self, id, report);
            }
        }
        match status {
            Ran::Budget => Ok(Next::Step),
            // A response that found no room waits for the device, which the next step
            // advances.
            Ran::Wait(_) if answered || self.reply.is_some() => Ok(Next::Step),
            Ran::Wait(_) if !self.outbox.is_empty() && (fed || self.feed()?) => Ok(Next::Step),
            Ran::Wait(until) if self.net_full => {
                let soon = self.emulator.now_ns() + NET_POLL_INTERVAL_NS;
                Ok(Next::Wait(Some(
                    until.map_or(soon, |until| until.min(soon)),
                )))
            }
            Ran::Wait(until) => Ok(Next::Wait(until)),
            Ran::PowerOff => Err(self.ended("the guest turned itself off")),
            Ran::Reset => Err(self.ended("the guest asked to be restarted")),
        }
    }

    /// Moves the outbox to the guest as far as it has room; returns whether bytes moved.
    fn feed(&mut self) -> Result<bool, VmError> {
        if self.outbox.is_empty() {
            return Ok(false);
        }
        let count = self.emulator.feed(Channel::Agent, &self.outbox)?;
        self.outbox.drain(..count);
        Ok(count > 0)
    }

    /// Answers file requests while the guest has room for responses; returns whether it
    /// answered any.
    fn answer_files(&mut self) -> Result<bool, VmError> {
        let mut answered = false;
        loop {
            if let Some((tag, reply)) = self.reply.take() {
                if !self.emulator.offer(Channel::P9, tag, &reply)? {
                    self.reply = Some((tag, reply));
                    return Ok(answered);
                }
                answered = true;
            }
            let files = &mut self.backends.files;
            let answer = self.emulator.take(Channel::P9, |request| {
                let mut reply = Vec::new();
                match files {
                    Some(files) => files.answer(request, &mut reply),
                    None => no_files(request, &mut reply),
                }
                Some(reply)
            })?;
            match answer {
                Some(answer) => self.reply = Some(answer),
                None => return Ok(answered),
            }
        }
    }

    /// Moves frames to the net backend as far as it has room.
    fn send_frames(&mut self) -> Result<(), VmError> {
        self.net_full = false;
        loop {
            let net = &mut self.backends.net;
            let mut refused = false;
            let taken = self.emulator.take(Channel::Net, |frame| {
                refused = net.as_mut().is_some_and(|net| !net.send(frame));
                (!refused).then_some(())
            })?;
            self.net_full = refused;
            if taken.is_none() {
                return Ok(());
            }
        }
    }

    /// Moves frames to the guest as far as it has room.
    fn deliver_frames(&mut self) -> Result<(), VmError> {
        let Some(net) = &mut self.backends.net else {
            return Ok(());
        };
        while let Some((bytes, checked)) = self.frame.take().or_else(|| net.receive()) {
            let tag = if checked { frame::CHECKSUMS_VALID } else { 0 };
            if !self.emulator.offer(Channel::Net, tag, &bytes)? {
                self.frame = Some((bytes, checked));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Continues after the guest was frozen: maps the frozen pages over its own, which are
    /// equal, and uses translated code again, which a copy does not have. Copies start
    /// meanwhile.
    fn thaw(&mut self) -> Result<(), VmError> {
        let Some(layers) = self.frozen.take() else {
            return Ok(());
        };
        for layer in layers {
            // Where this fails, the guest keeps its own pages.
            let _ = layer.map(self.emulator.memory_mut());
        }
        start_jit(&mut self.emulator, self.guest_jit)
    }

    /// Freezes the guest if it is at rest; `None` if it must run on.
    pub(crate) fn freeze(&mut self, base: &Linked, image: &str) -> Result<Option<Frozen>, VmError> {
        self.thaw()?;
        let ready = self.outbox.is_empty()
            && self.reply.is_none()
            && self.frame.is_none()
            && is_done(self.emulator.call(abi::PREPARE_SNAPSHOT, ())?);
        if !ready {
            return Ok(None);
        }
        let memory = self.emulator.memory();
        let pages = match cow::written(memory) {
            Ok(pages) => pages,
            // The host hides its page table.
            Err(_) => cow::different(memory, Emulator::new(base, 1, false)?.memory()),
        };
        let frozen = cow::freeze(memory, pages, &mut self.layers);
        let frozen = frozen.map_err(|error| {
            VmError::new(VmCode::Resources, format!("memory of the guest: {error}"))
        })?;
        self.frozen = Some(frozen);
        let Disks { own, swap, .. } = self.emulator.disks();
        let disk = own.as_mut().map(OwnDisk::freeze).transpose()?;
        let swap = swap.as_mut().map(OwnDisk::freeze).transpose()?;
        let root_layers = self.emulator.disks().layers.iter();
        let root_layers = root_layers.map(|layer| layer.sha256().to_owned()).collect();
        let head = Head {
            image: image.to_owned(),
            root_layers,
            memory: self.emulator.memory().len() as u64,
            unread: self.reader.unread().to_vec(),
            files: self.backends.files.as_ref().map(|files| files.state()),
        };
        Ok(Some(Frozen {
            head,
            layers: self.layers.clone(),
            disk,
            swap,
        }))
    }

    fn read_console(&mut self) -> Result<(), VmError> {
        let console = &mut self.console;
        self.emulator
            .drain(Channel::Console, |bytes| console.extend(bytes))?;
        let excess = self.console.len().saturating_sub(CONSOLE_BYTES);
        self.console.drain(..excess);
        Ok(())
    }

    /// The last console output.
    pub(crate) fn console(&self) -> String {
        let bytes: Vec<u8> = self.console.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether the guest has neither mounts nor a network, so that its effects reach only
    /// the callers of its commands.
    pub(crate) fn is_alone(&self) -> bool {
        self.backends.files.is_none() && self.backends.net.is_none()
    }

    /// Instructions since the machine was created.
    pub(crate) fn retired(&self) -> u64 {
        self.retired
    }

    /// Number of code entries that lead to AOT regions.
    pub(crate) fn aot_entries(&self) -> u32 {
        self.aot_entries
    }

    /// Devices that are dead because their driver violated the protocol, as text; empty if
    /// there are none.
    pub(crate) fn broken(&self) -> String {
        let names: Vec<&str> = Device::in_set(self.broken).map(Device::name).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!("; broken by their drivers: {}", names.join(", ")),
        }
    }

    /// Error of a guest that ended: why its kernel failed, or else the last line of its
    /// console, and the broken devices.
    fn ended(&self, what: &str) -> VmError {
        let console = self.console();
        let failed = console.lines().find(|line| line.contains("Kernel panic"));
        let last = || console.lines().rfind(|line| !line.trim().is_empty());
        let text = match failed.or_else(last) {
            Some(line) => format!("{what}; its console says: {}", line.trim_end()),
            None => what.to_owned(),
        };
        let text = text + &self.broken();
        VmError::new(VmCode::GuestEnded, text)
    }
}

/// Whether a call succeeded.
pub(super) fn is_done(answer: u32) -> bool {
    Answer::from_number(answer) == Some(Answer::Done)
}

pub(super) fn expect_ok(answer: u32, what: &str) -> Result<(), VmError> {
    let why = match Answer::from_number(answer) {
        Some(Answer::Done) => return Ok(()),
        Some(answer) => answer.to_string(),
        None => format!("answer {answer}"),
    };
    let text = format!("the emulator refuses to {what}: {why}");
    Err(VmError::new(VmCode::Module, text))
}

/// Configures the emulator's translator; by default it uses the image's AOT regions and
/// translates no further code.
fn start_jit(emulator: &mut Emulator, guest_jit: GuestJit) -> Result<(), VmError> {
    if guest_jit == GuestJit::Off {
        let answer = emulator.call(abi::ENABLE_AOT, 0u32)?;
        return expect_ok(answer, "translate nothing");
    }
    if guest_jit.compiles() {
        expect_ok(emulator.translate(guest_jit.policy())?, "translate")?;
    }
    Ok(())
}
