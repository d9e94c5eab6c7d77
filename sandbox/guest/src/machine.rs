//! Machine: hart, memory and devices, and the loading of a kernel.

use crate::bus::Bus;
use crate::cpu::{Cpu, Pause};
use crate::devices::DeviceConfig;
use crate::fdt::{self, FdtConfig};
use crate::hart::Hart;
use crate::host::Host;
use crate::ram::{PAGE_SIZE, RAM_BASE, Ram};
use std::fmt;

/// Configuration of a machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// Bytes of RAM.
    pub ram_bytes: usize,
    /// The devices.
    pub devices: DeviceConfig,
}

impl Default for MachineConfig {
    fn default() -> Self {
        Self {
            ram_bytes: DEFAULT_RAM,
            devices: DeviceConfig::default(),
        }
    }
}

/// Default RAM in bytes: the root file system in memory with room for programs; untouched
/// pages cost the host nothing.
const DEFAULT_RAM: usize = 256 << 20;

/// Bytes of the seed of the kernel's random generator at boot.
const SEED_BYTES: usize = 32;

/// Why [`Machine::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The budget is used up, or a device needs the embedder.
    Budget,
    /// The guest waits for an interrupt: until that host monotonic time in nanoseconds, or
    /// only for input.
    Wait {
        /// Deadline of its timer.
        until_ns: Option<u64>,
    },
    /// The guest turned itself off.
    PowerOff,
    /// The guest asked for a restart.
    Reset,
}

/// Why a kernel cannot be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Not a RISC-V kernel in the `Image` format.
    NotAnImage,
    /// Kernel, initial file system and device tree do not fit into RAM.
    TooLarge,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoadError::NotAnImage => "not a RISC-V kernel in the Image format",
            LoadError::TooLarge => "kernel and initial file system do not fit into guest memory",
        })
    }
}

impl std::error::Error for LoadError {}

/// Positions of a kernel and its files in RAM (guest physical addresses).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First byte of the kernel, its entry point.
    pub kernel: u64,
    /// First byte of the initial file system.
    pub initrd: u64,
}

/// The header of a kernel `Image` (Linux, `Documentation/arch/riscv/
/// boot-image-header.rst`): text offset at 8, size in memory at 16, magic
/// number at 56.
struct ImageHeader {
    text_offset: u64,
    size: u64,
}

impl ImageHeader {
    fn parse(image: &[u8]) -> Result<Self, LoadError> {
        let field = |at: usize| {
            let bytes = image.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        if image.get(56..60) != Some(b"RSC\x05") {
            return Err(LoadError::NotAnImage);
        }
        let header = field(8).zip(field(16));
        let (text_offset, size) = header.ok_or(LoadError::NotAnImage)?;
        Ok(Self { text_offset, size })
    }
}

/// A machine; see the module.
#[derive(Debug)]
pub struct Machine<H: Host> {
    /// The hart.
    pub cpu: Cpu,
    /// Memory and devices.
    pub bus: Bus<H>,
}

impl<H: Host> Machine<H> {
    /// Creates a machine with empty memory; its hart starts at the beginning of RAM.
    pub fn new(config: &MachineConfig, host: H) -> Self {
        // Before the RAM: translated code reaches the TLBs by constant offsets, which need
        // no check only if they are small.
        let hart = Hart::new(RAM_BASE);
        let ram = Ram::new(config.ram_bytes);
        Self {
            cpu: Cpu::new(hart, ram.size()),
            bus: Bus::new(ram, &config.devices, host),
        }
    }

    /// Computes the positions of a kernel that begins with `head` (64 bytes or more) and an
    /// initial file system of `initrd_len` bytes, so that an embedder can read both
    /// directly into RAM before [`Machine::start_kernel`].
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn layout(&self, head: &[u8], initrd_len: usize) -> Result<Layout, LoadError> {
        let header = ImageHeader::parse(head)?;
        let page = PAGE_SIZE as u64;
        let ram = self.bus.ram.size() as u64;
        let end = header.text_offset.checked_add(header.size);
        let initrd = end
            .filter(|end| *end <= ram)
            .map(|end| end.next_multiple_of(page))
            .ok_or(LoadError::TooLarge)?;
        let files_end = initrd.checked_add(initrd_len as u64);
        if files_end.is_none_or(|end| end > ram) {
            return Err(LoadError::TooLarge);
        }
        Ok(Layout {
            kernel: RAM_BASE + header.text_offset,
            initrd: RAM_BASE + initrd,
        })
    }

    /// Copies kernel and initial file system to their positions and enters the kernel.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_kernel(
        &mut self,
        image: &[u8],
        initrd: &[u8],
        cmdline: &str,
    ) -> Result<(), LoadError> {
        let layout = self.layout(image, initrd.len())?;
        for (at, bytes) in [(layout.kernel, image), (layout.initrd, initrd)] {
            let place = self.bus.ram.slice_mut(at, bytes.len());
            place.ok_or(LoadError::TooLarge)?.copy_from_slice(bytes);
        }
        self.start_kernel(layout, initrd.len(), cmdline)
    }

    /// Enters a loaded kernel: writes the device tree to the end of RAM and sets the
    /// registers of the boot protocol.
    ///
    /// # Errors
    /// [`LoadError::TooLarge`] if the device tree does not fit.
    pub fn start_kernel(
        &mut self,
        layout: Layout,
        initrd_len: usize,
        cmdline: &str,
    ) -> Result<(), LoadError> {
        let mut seed = [0; SEED_BYTES];
        self.bus.host.random(&mut seed);
        let ram_bytes = self.bus.ram.size() as u64;
        let initrd_end = layout.initrd + initrd_len as u64;
        let blob = fdt::build(&FdtConfig {
            ram_bytes,
            bootargs: cmdline,
            initrd: (initrd_len > 0).then_some(layout.initrd..initrd_end),
            rng_seed: &seed,
        });
        let tree = (RAM_BASE + ram_bytes)
            .checked_sub(blob.len() as u64)
            .map(|at| at & !(PAGE_SIZE as u64 - 1))
            .filter(|at| *at >= initrd_end)
            .ok_or(LoadError::TooLarge)?;
        let place = self.bus.ram.slice_mut(tree, blob.len());
        place.ok_or(LoadError::TooLarge)?.copy_from_slice(&blob);
        self.cpu.stop_translating(&mut self.bus);
        self.cpu.hart.reset(layout.kernel);
        // The hart's number and the device tree.
        self.cpu.hart.x[10] = 0;
        self.cpu.hart.x[11] = tree;
        Ok(())
    }

    /// Grows RAM to `bytes`; `false` if it cannot. The guest has to learn of it otherwise.
    pub fn grow_ram(&mut self, bytes: usize) -> bool {
        let grown = self.bus.ram.grow(bytes);
        if grown {
            self.cpu.grow_ram(bytes);
        }
        grown
    }

    /// Runs about `budget` instructions, or until the guest waits or ends.
    pub fn run(&mut self, budget: u64) -> Status {
        match self.cpu.run(&mut self.bus, budget) {
            Pause::Budget => Status::Budget,
            Pause::Wait => Status::Wait {
                until_ns: self.wake_time(),
            },
            Pause::PowerOff => Status::PowerOff,
            Pause::Reset => Status::Reset,
        }
    }

    fn wake_time(&mut self) -> Option<u64> {
        let csr = &self.cpu.hart.csr;
        let timer = if csr.timer_enabled() {
            csr.deadline
        } else {
            u64::MAX
        };
        self.bus.deadline_ns(timer)
    }
}
