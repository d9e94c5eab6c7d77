//! Emulator instance: its exports as Rust functions.

use super::code_store::CodeStore;
use super::disk::{Disks, ImageDisk};
use super::engine::guarded_engine;
use super::error::{VmCode, VmError};
use super::imports::{Imports, linker};
use super::translator::{Compiler, Delivery, Place, Translating, Translations};
use a99_sandbox_abi::{
    Channel, Export, LAYOUT_WORDS, RunReport, Status, entry, functions as abi, unpair,
};
use wasmtime::{
    Engine, Instance, InstancePre, Memory, Module, Ref, Store, Table, TypedFunc, UpdateDeadline,
    WasmParams, WasmResults,
};

/// Why the emulator returned from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// The budget is used up, or output is pending.
    Budget,
    /// The guest waits until that time of its clock, or only for input.
    Wait(Option<u64>),
    /// The guest turned itself off.
    PowerOff,
    /// The guest asked for a restart.
    Reset,
}

/// A module linked to its imports and ready to be instantiated.
#[derive(Clone)]
pub(super) struct Linked {
    pre: InstancePre<Imports>,
    compiler: Compiler,
    /// Whether it runs on the engine that can be interrupted from outside.
    guarded: bool,
    disk: Option<ImageDisk>,
}

impl std::fmt::Debug for Linked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Linked").finish_non_exhaustive()
    }
}

impl Linked {
    /// Links a module to its imports and to the disk of its guests.
    ///
    /// # Errors
    /// [`VmCode::Module`] if the module imports anything that the emulator does not.
    pub(crate) fn new(module: &Module, disk: Option<ImageDisk>) -> Result<Self, VmError> {
        let failed = |error| VmError::engine(VmCode::Module, "emulator", &error);
        let linker = linker(module.engine()).map_err(failed)?;
        let pre = linker.instantiate_pre(module).map_err(failed)?;
        let compiler = Compiler::new(module.engine(), None);
        let guarded = guarded_engine().is_ok_and(|other| Engine::same(&other, module.engine()));
        Ok(Self {
            pre,
            compiler,
            guarded,
            disk,
        })
    }

    /// Keeps compiled guest code in a store.
    pub(crate) fn keep_code(self, store: CodeStore) -> Self {
        let compiler = Compiler::new(self.engine(), Some(store));
        Self { compiler, ..self }
    }

    /// Sectors of the guests' disk.
    pub(crate) fn disk_sectors(&self) -> u64 {
        self.disk.as_ref().map_or(0, ImageDisk::sectors)
    }

    /// Counts of code compiled for the guests of this module.
    pub(crate) fn translations(&self) -> Translations {
        self.compiler.translations()
    }

    fn engine(&self) -> &Engine {
        self.pre.module().engine()
    }
}

struct Exports {
    memory: Memory,
    /// The table that translated code is added to.
    table: Table,
    translated: TypedFunc<(u32, u32, u32), u32>,
    run: TypedFunc<u64, u32>,
    report: TypedFunc<(), u32>,
    output: TypedFunc<u32, u64>,
    tag: TypedFunc<u32, u32>,
    taken: TypedFunc<(u32, u32), ()>,
    space: TypedFunc<(u32, u32), u64>,
    commit: TypedFunc<(u32, u32, u32), u32>,
}

/// Ticks of the guarded engine that one run may take: 10 s, a thousand times the length of
/// a step.
const MAX_TICKS: u32 = 100;

/// Maximum bytes drained from a channel at once, above the size of its buffers.
const MAX_DRAINED: usize = 64 << 20;

/// A running emulator.
pub(super) struct Emulator {
    store: Store<Imports>,
    instance: Instance,
    exports: Exports,
    /// Address of the emulator's report.
    report_at: usize,
    /// Address of its argument buffer.
    scratch_at: u64,
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").finish_non_exhaustive()
    }
}

impl Emulator {
    /// Instantiates a module, empty or a snapshot; with `translate`, hot guest code is
    /// compiled.
    pub(crate) fn new(
        linked: &Linked,
        clock_resolution_ns: u64,
        translate: bool,
    ) -> Result<Self, VmError> {
        let failed = |error| VmError::engine(VmCode::Resources, "new guest", &error);
        // The translations of a foreign module would be unbounded.
        let translate = translate && !linked.guarded;
        let translating = translate.then(|| Translating::new(&linked.compiler));
        let mut store = Store::new(
            linked.engine(),
            Imports::new(clock_resolution_ns, translating),
        );
        store.data_mut().disks.image = linked.disk.clone();
        if linked.guarded {
            guard(&mut store);
        }
        let instance = linked.pre.instantiate(&mut store).map_err(failed)?;
        let missing = |error| VmError::engine(VmCode::Module, "emulator", &error);
        let exports = Exports::new(&mut store, &instance).map_err(missing)?;
        Ok(Self {
            store,
            instance,
            exports,
            report_at: 0,
            scratch_at: 0,
        })
    }

    /// Switches translation of hot code on: with so many samples of a page, and so many
    /// million instructions before the first.
    pub(crate) fn translate(&mut self, policy: (u32, u32)) -> Result<u32, VmError> {
        let answer = self.call(abi::TRANSLATION, policy)?;
        self.scratch_at = self.call(abi::SCRATCH, ())?.into();
        let at = self.call(abi::CONTEXT_LAYOUT, ())?;
        let mut words = [0; LAYOUT_WORDS];
        let bytes = self.read(at.into(), 4 * LAYOUT_WORDS as u64)?;
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let memory = self.memory().len();
        if let Some(translating) = &mut self.store.data_mut().translating {
            translating.start(&words, memory);
        }
        Ok(answer)
    }

    /// Installs code that was compiled meanwhile into the emulator's table.
    pub(crate) fn install(&mut self) -> Result<(), VmError> {
        loop {
            let translating = self.store.data_mut().translating.as_mut();
            let Some((ticket, deliveries)) = translating.and_then(Translating::next) else {
                return Ok(());
            };
            for delivery in deliveries {
                if let Some(number) = self.place(&delivery) {
                    self.announce(ticket, number, &delivery.entries)?;
                }
            }
            self.announce(ticket, 0, &[])?;
        }
    }

    /// Announces a function for a ticket; zero ends the ticket.
    fn announce(&mut self, ticket: u32, number: u32, entries: &[(u16, u8)]) -> Result<(), VmError> {
        let words = entries
            .iter()
            .map(|(offset, node)| entry::pack(*offset, *node));
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        self.write(self.scratch_at, &bytes)?;
        let arguments = (ticket, number, entries.len() as u32);
        let result = self.exports.translated.call(&mut self.store, arguments);
        result.map_err(|error| self.trap(&error)).map(drop)
    }

    /// The index of a function in the table; none if it failed.
    fn place(&mut self, delivery: &Delivery) -> Option<u32> {
        let translating = self.store.data_mut().translating.as_mut();
        match translating?.find(delivery)? {
            Place::Known(number) => Some(number),
            Place::Module(module) => {
                // A module that does not fit has no functions.
                let numbers = self.add(&module).unwrap_or_default();
                let translating = self.store.data_mut().translating.as_mut();
                translating?.note(delivery, numbers)
            }
        }
    }

    /// Instantiates a module with the emulator's memory and table, appends its functions to
    /// the table, and returns their indices.
    fn add(&mut self, module: &Module) -> wasmtime::Result<Vec<u32>> {
        let Exports { memory, table, .. } = self.exports;
        let imports = [memory.into(), table.into()];
        let instance = Instance::new(&mut self.store, module, &imports)?;
        let exports: Vec<_> = instance.exports(&mut self.store).collect();
        let functions = exports.into_iter().filter_map(|export| export.into_func());
        let functions: Vec<_> = functions.collect();
        let first = table.grow(&mut self.store, functions.len() as u64, Ref::Func(None))?;
        for (number, function) in (first..).zip(&functions) {
            table.set(&mut self.store, number, Ref::Func(Some(*function)))?;
        }
        let first = u32::try_from(first)?;
        Ok((first..).take(functions.len()).collect())
    }

    /// Turns a failed call into an error: the emulator's panic message, or the trap.
    fn trap(&mut self, error: &wasmtime::Error) -> VmError {
        match self.store.data_mut().panic.take() {
            Some(text) => VmError::new(VmCode::EmulatorTrap, text),
            None => VmError::engine(VmCode::EmulatorTrap, "emulator", error),
        }
    }

    /// Calls an export by name, for calls that happen once.
    pub(crate) fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        export: Export<P, R>,
        params: P,
    ) -> Result<R, VmError> {
        let function = typed(&mut self.store, &self.instance, export);
        let function =
            function.map_err(|error| VmError::engine(VmCode::Module, export.name, &error))?;
        let result = function.call(&mut self.store, params);
        result.map_err(|error| self.trap(&error))
    }

    /// Runs the guest for about `budget` instructions, or until it waits, ends or has
    /// output.
    pub(crate) fn run(&mut self, budget: u64) -> Result<(Ran, RunReport), VmError> {
        self.install()?;
        self.store.data_mut().ticks = 0;
        let run = self.exports.run.call(&mut self.store, budget);
        let status = run.map_err(|error| self.trap(&error))?;
        if self.report_at == 0 {
            let at = self.exports.report.call(&mut self.store, ());
            self.report_at = at.map_err(|error| self.trap(&error))? as usize;
        }
        let bytes = self.read(self.report_at as u64, RunReport::BYTES as u64)?;
        let report = RunReport::parse(bytes.try_into().unwrap_or(&[0; RunReport::BYTES]));
        let until = (report.until_ns != u64::MAX).then_some(report.until_ns);
        let ran = match Status::from_number(status) {
            Some(Status::Budget) => Ran::Budget,
            Some(Status::Wait) => Ran::Wait(until),
            Some(Status::PowerOff) => Ran::PowerOff,
            Some(Status::Reset) => Ran::Reset,
            None => return Err(broken(&format!("status {status}"))),
        };
        Ok((ran, report))
    }

    /// Passes all output of a channel to `take`, piece by piece.
    pub(crate) fn drain(
        &mut self,
        channel: Channel,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), VmError> {
        let number = channel as u32;
        let mut drained = 0;
        loop {
            if drained > MAX_DRAINED {
                return Err(broken("output without an end"));
            }
            let output = self.exports.output.call(&mut self.store, number);
            let pair = output.map_err(|error| self.trap(&error))?;
            if pair == 0 {
                return Ok(());
            }
            let piece = self.piece(pair)?;
            let len = piece.len() as u32;
            drained += piece.len().max(1);
            take(piece);
            let taken = self.exports.taken.call(&mut self.store, (number, len));
            taken.map_err(|error| self.trap(&error))?;
        }
    }

    /// Writes to a byte channel as far as it has room; returns the bytes written.
    pub(crate) fn feed(&mut self, channel: Channel, bytes: &[u8]) -> Result<usize, VmError> {
        let number = channel as u32;
        let mut done = 0;
        while done < bytes.len() {
            let wanted = (bytes.len() - done).min(u32::MAX as usize) as u32;
            let space = self.exports.space.call(&mut self.store, (number, wanted));
            let pair = space.map_err(|error| self.trap(&error))?;
            let (at, room) = unpair(pair);
            let room = room.min(wanted);
            if room == 0 {
                break;
            }
            self.write(at.into(), &bytes[done..done + room as usize])?;
            let commit = self.exports.commit.call(&mut self.store, (number, 0, room));
            commit.map_err(|error| self.trap(&error))?;
            done += room as usize;
        }
        Ok(done)
    }

    /// Passes the oldest message of a channel to `take`, and drops it if that returns
    /// `Some`; returns the result with the message's tag.
    pub(crate) fn take<T>(
        &mut self,
        channel: Channel,
        take: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<(u32, T)>, VmError> {
        let number = channel as u32;
        let output = self.exports.output.call(&mut self.store, number);
        let pair = output.map_err(|error| self.trap(&error))?;
        if pair == 0 {
            return Ok(None);
        }
        let tag = self.exports.tag.call(&mut self.store, number);
        let tag = tag.map_err(|error| self.trap(&error))?;
        let piece = self.piece(pair)?;
        let len = piece.len() as u32;
        let Some(answer) = take(piece) else {
            return Ok(None);
        };
        let taken = self.exports.taken.call(&mut self.store, (number, len));
        taken.map_err(|error| self.trap(&error))?;
        Ok(Some((tag, answer)))
    }

    /// Sends a message to a channel; `false` if the channel is full.
    pub(crate) fn offer(
        &mut self,
        channel: Channel,
        tag: u32,
        bytes: &[u8],
    ) -> Result<bool, VmError> {
        let (number, len) = (channel as u32, bytes.len() as u32);
        let space = self.exports.space.call(&mut self.store, (number, len));
        let pair = space.map_err(|error| self.trap(&error))?;
        let (at, room) = unpair(pair);
        if pair == 0 || room < len {
            return Ok(false);
        }
        self.write(at.into(), bytes)?;
        let commit = self
            .exports
            .commit
            .call(&mut self.store, (number, tag, len));
        Ok(commit.map_err(|error| self.trap(&error))? == 1)
    }

    pub(crate) fn memory(&self) -> &[u8] {
        self.exports.memory.data(&self.store)
    }

    pub(crate) fn memory_mut(&mut self) -> &mut [u8] {
        self.exports.memory.data_mut(&mut self.store)
    }

    /// Grows linear memory to at least `bytes`.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), VmError> {
        const WASM_PAGE: usize = 64 << 10;
        let missing = bytes.saturating_sub(self.memory().len());
        let pages = missing.div_ceil(WASM_PAGE) as u64;
        let grown = self.exports.memory.grow(&mut self.store, pages);
        grown
            .map(drop)
            .map_err(|error| VmError::engine(VmCode::Resources, "memory of a guest", &error))
    }

    /// A range of linear memory.
    pub(crate) fn read(&self, address: u64, len: u64) -> Result<&[u8], VmError> {
        let data = self.exports.memory.data(&self.store);
        let range = address as usize..(address + len) as usize;
        data.get(range)
            .ok_or_else(|| broken("an address outside its memory"))
    }

    /// The bytes at an address and length packed as a `pair`.
    pub(crate) fn piece(&self, pair: u64) -> Result<&[u8], VmError> {
        let (at, len) = unpair(pair);
        self.read(at.into(), len.into())
    }

    /// Writes to linear memory.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), VmError> {
        let data = self.exports.memory.data_mut(&mut self.store);
        let range = address as usize..address as usize + bytes.len();
        let place = data
            .get_mut(range)
            .ok_or_else(|| broken("an address outside its memory"))?;
        place.copy_from_slice(bytes);
        Ok(())
    }

    /// Optimises translations for size.
    #[cfg(feature = "testing")]
    pub(crate) fn translate_small(&mut self) {
        if let Some(translating) = &mut self.store.data_mut().translating {
            translating.small();
        }
    }

    /// Requests for translations without an answer.
    #[cfg(feature = "testing")]
    pub(crate) fn waiting(&self) -> usize {
        let translating = self.store.data().translating.as_ref();
        translating.map_or(0, Translating::waiting)
    }

    /// The emulator's clock in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.store.data().now_ns()
    }

    pub(crate) fn disks(&mut self) -> &mut Disks {
        &mut self.store.data_mut().disks
    }

    /// The instance's state, for a snapshot.
    pub(crate) fn parts(&mut self) -> (&mut Store<Imports>, Instance) {
        (&mut self.store, self.instance)
    }
}

/// Bounds a foreign module's time in one call and its memory.
fn guard(store: &mut Store<Imports>) {
    store.limiter(|imports| &mut imports.limits);
    store.epoch_deadline_callback(|mut context| {
        let ticks = &mut context.data_mut().ticks;
        *ticks += 1;
        Ok(match *ticks > MAX_TICKS {
            true => UpdateDeadline::Interrupt,
            false => UpdateDeadline::Continue(1),
        })
    });
    store.set_epoch_deadline(1);
}

impl Exports {
    fn new(store: &mut Store<Imports>, instance: &Instance) -> wasmtime::Result<Self> {
        let memory = instance.get_memory(&mut *store, abi::MEMORY);
        let Some(memory) = memory else {
            wasmtime::bail!("it exports no memory");
        };
        let Some(table) = instance.get_table(&mut *store, abi::TABLE) else {
            wasmtime::bail!("it exports no table");
        };
        Ok(Self {
            memory,
            table,
            translated: typed(store, instance, abi::TRANSLATED)?,
            run: typed(store, instance, abi::RUN)?,
            report: typed(store, instance, abi::REPORT)?,
            output: typed(store, instance, abi::OUTPUT)?,
            tag: typed(store, instance, abi::TAG)?,
            taken: typed(store, instance, abi::TAKEN)?,
            space: typed(store, instance, abi::SPACE)?,
            commit: typed(store, instance, abi::COMMIT)?,
        })
    }
}

/// Looks up an export with the type of its ABI row.
fn typed<P: WasmParams, R: WasmResults>(
    store: &mut Store<Imports>,
    instance: &Instance,
    export: Export<P, R>,
) -> wasmtime::Result<TypedFunc<P, R>> {
    instance.get_typed_func(store, export.name)
}

/// Error of an emulator that violates its interface.
fn broken(what: &str) -> VmError {
    VmError::new(VmCode::Protocol, format!("the emulator gave {what}"))
}
