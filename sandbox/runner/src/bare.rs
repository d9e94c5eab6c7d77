//! Bare machine: runs code without Linux in the emulator, to test the translator against
//! the interpreter and to measure both; and bare instances.

use super::error::{VmCode, VmError};
use super::guest::{MAC, MTU, expect_ok};
use super::imports::CLOCK_RESOLUTION_NS;
use super::instance::{Emulator, Linked, Ran};
use super::translator::Translations;
use a99_sandbox_abi::{REGISTERS, functions as abi};
use std::time::Duration;
use wasmtime::{Engine, InstancePre, Linker, Module, Store};

/// Interval at which a compilation is polled.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// How a [`Bare`] machine runs code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Interprets all code.
    Interpreted,
    /// Translates a page after this many samples, optimised for speed, as in a guest that
    /// translates while it runs.
    Fast(u32),
    /// Does the same optimised for size, as for most AOT regions.
    Small(u32),
}

/// An emulated machine that runs given code from the start of RAM, in supervisor mode.
#[derive(Debug)]
pub struct Bare {
    emulator: Emulator,
    linked: Linked,
    retired: u64,
}

impl Bare {
    /// Creates a machine with empty memory from the emulator's module.
    ///
    /// # Errors
    /// [`VmError`] if the module is not the emulator, or memory is exhausted.
    pub fn new(
        engine: &Engine,
        emulator: &[u8],
        ram_bytes: u32,
        execution: Execution,
    ) -> Result<Self, VmError> {
        let failed = |error| VmError::engine(VmCode::Module, "emulator", &error);
        let linked = Linked::new(&Module::new(engine, emulator).map_err(failed)?, None)?;
        let samples = match execution {
            Execution::Interpreted => 0,
            Execution::Fast(samples) | Execution::Small(samples) => samples,
        };
        let mut emulator = Emulator::new(&linked, CLOCK_RESOLUTION_NS, samples > 0)?;
        emulator.call(abi::INITIALIZE, ())?;
        let made = emulator.call(abi::CREATE, (ram_bytes, MAC, MTU, 0u64))?;
        expect_ok(made, "make a machine")?;
        if matches!(execution, Execution::Small(_)) {
            emulator.translate_small();
        }
        if samples > 0 {
            expect_ok(emulator.translate((samples, 0))?, "translate")?;
        }
        Ok(Self {
            emulator,
            linked,
            retired: 0,
        })
    }

    /// Writes to RAM at an offset.
    ///
    /// # Errors
    /// [`VmError`] if the range is outside RAM.
    pub fn load(&mut self, offset: u32, bytes: &[u8]) -> Result<(), VmError> {
        let at = self.address(offset, bytes.len() as u32)?;
        self.emulator.write(at, bytes)
    }

    /// Reads from RAM at an offset.
    ///
    /// # Errors
    /// [`VmError`] if the range is outside RAM.
    pub fn ram(&mut self, offset: u32, len: u32) -> Result<Vec<u8>, VmError> {
        let at = self.address(offset, len)?;
        Ok(self.emulator.read(at, len.into())?.to_vec())
    }

    fn address(&mut self, offset: u32, len: u32) -> Result<u64, VmError> {
        let at = self.emulator.call(abi::RAM, (offset, len))?;
        if at == 0 {
            return Err(VmError::new(VmCode::Module, "memory that is not there"));
        }
        Ok(at.into())
    }

    /// Reads the integer registers.
    ///
    /// # Errors
    /// [`VmError`] if the emulator is broken.
    pub fn registers(&mut self) -> Result<[u64; REGISTERS], VmError> {
        let at = self.emulator.call(abi::REGISTERS, ())?;
        let bytes = self.emulator.read(at.into(), 8 * REGISTERS as u64)?;
        let mut registers = [0; REGISTERS];
        for (register, bytes) in registers.iter_mut().zip(bytes.as_chunks().0) {
            *register = u64::from_le_bytes(*bytes);
        }
        Ok(registers)
    }

    /// Runs about `budget` instructions; `false` once the machine has turned itself off.
    ///
    /// # Errors
    /// [`VmCode::EmulatorTrap`].
    pub fn run(&mut self, budget: u64) -> Result<bool, VmError> {
        let (status, report) = self.emulator.run(budget)?;
        self.retired = report.retired;
        Ok(!matches!(status, Ran::PowerOff | Ran::Reset))
    }

    /// Waits until all requested code is compiled and installed.
    ///
    /// # Errors
    /// [`VmCode::EmulatorTrap`].
    pub fn drain_translations(&mut self) -> Result<(), VmError> {
        loop {
            self.emulator.install()?;
            if self.emulator.waiting() == 0 {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Instructions run so far.
    pub fn retired(&self) -> u64 {
        self.retired
    }

    /// Counts of compiled code so far.
    pub fn translations(&self) -> Translations {
        self.linked.translations()
    }
}

/// Instances of a guest's module that never run, to measure instantiation.
pub struct Instances {
    ready: InstancePre<()>,
}

impl std::fmt::Debug for Instances {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instances").finish_non_exhaustive()
    }
}

impl Instances {
    /// Prepares instances of a module that [`load`](super::load) returned.
    ///
    /// # Errors
    /// [`VmCode::Module`].
    pub fn of(module: &Module) -> Result<Self, VmError> {
        let failed = |error| VmError::engine(VmCode::Module, "emulator", &error);
        let mut linker = Linker::new(module.engine());
        linker
            .define_unknown_imports_as_traps(module)
            .map_err(failed)?;
        let ready = linker.instantiate_pre(module).map_err(failed)?;
        Ok(Self { ready })
    }

    /// Creates another instance, dropped with the returned store.
    ///
    /// # Errors
    /// [`VmCode::Resources`].
    pub fn another(&self) -> Result<Store<()>, VmError> {
        let mut store = Store::new(self.ready.module().engine(), ());
        let made = self.ready.instantiate(&mut store);
        made.map_err(|error| VmError::engine(VmCode::Resources, "new guest", &error))?;
        Ok(store)
    }
}
