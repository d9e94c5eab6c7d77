//! Reactor, the machine as a WebAssembly module: what the embedder calls, and what it
//! must provide.
//!
//! Built as a `cdylib`: `cargo rustc -p a99-sandbox-guest --lib --profile emulator --target
//! wasm32-wasip1 --crate-type cdylib`. One module instance is
//! one machine. No export blocks; between two calls of [`run`] the embedder
//! fills and drains the channels in place, in linear memory. The life of a
//! machine:
//!
//! 1. [`_initialize`], [`create`], then a kernel: its head into [`scratch`],
//!    [`layout`], kernel and initial file system straight into [`ram`], the
//!    command line into [`scratch`], [`boot`].
//! 2. [`run`] again and again. After each, [`report`] says which channels have
//!    output; [`output`] and [`taken`] drain, [`space`] and [`commit`] feed.
//!    [`Status::Wait`] means: nothing to do until the report's time or input.
//! 3. For a snapshot: [`prepare_snapshot`], then the linear memory is saved.
//!    Each instance made from it calls [`resume`] first.
//!
//! A pair of address and length comes as one `u64`, the address in the high
//! half; zero is "none". Addresses stay valid until the next call.
//!
//! A panic of the emulator is given to the import `panicked` and then traps.

#![allow(
    unsafe_code,
    reason = "exports and imports of a WebAssembly module need it"
)]

use crate::devices::DeviceConfig;
use crate::devices::virtio::net::NetConfig;
use crate::hart::csr::{Bank, may_change_mmu_index};
use crate::hart::{Cursor, Registers};
use crate::host::Host;
use crate::interp::fp;
use crate::interp::inst::Inst;
use crate::jit::{self, Helpers, OptLevel, Policy, Profile, VmContext};
use crate::machine::{self, Layout, Machine, MachineConfig};
use crate::mmu::tlb::{DataTlbs, ExecTlb, MMU_INDEXES};
use crate::ram::RAM_BASE;
use a99_sandbox_abi::{Answer, Channel, RunReport, SCRATCH_BYTES, Status, exports};
use std::cell::RefCell;

mod embedder;

use self::embedder::{Embedder, panicked};

/// All of the instance.
#[derive(Debug)]
struct Instance {
    machine: Option<Machine<Embedder>>,
    layout: Option<(Layout, usize)>,
    scratch: [u8; SCRATCH_BYTES],
    /// Longer arguments and results.
    bytes: Vec<u8>,
    report: RunReport,
}

thread_local! {
    /// There is one thread; this is a static that needs no lock.
    static INSTANCE: RefCell<Instance> = const {
        RefCell::new(Instance {
            machine: None,
            layout: None,
            scratch: [0; SCRATCH_BYTES],
            bytes: Vec::new(),
            report: RunReport::NEW,
        })
    };
}

/// Runs `work` on the instance.
fn with<T>(work: impl FnOnce(&mut Instance) -> T) -> T {
    INSTANCE.with_borrow_mut(work)
}

/// Runs `work` on the machine, if there is one.
fn with_machine<T>(none: T, work: impl FnOnce(&mut Machine<Embedder>) -> T) -> T {
    with(|instance| instance.machine.as_mut().map_or(none, work))
}

/// Address and length in one.
fn pair(bytes: &[u8]) -> u64 {
    a99_sandbox_abi::pair(bytes.as_ptr() as u32, bytes.len() as u32)
}

/// Compiles only if each export is as the embedder knows it.
macro_rules! check {
    ($($(#[$doc:meta])* $constant:ident = $name:ident($($param:ident: $of:ty),*) $(-> $result:ty)?;)*) => {
        $(const _: extern "C" fn($($of),*) $(-> $result)? = $name;)*
    };
}

exports!(check);

unsafe extern "C" {
    /// Made by the linker: runs the constructors of the C library.
    fn __wasm_call_ctors();
}

/// Must be called first, and once. That it refers to the constructors also
/// tells the linker that this is a reactor; else it would run constructors and
/// destructors around each export.
#[unsafe(no_mangle)]
pub extern "C" fn _initialize() {
    // SAFETY: the embedder calls this once, before all else, as the WASI
    // application ABI demands of it.
    unsafe { __wasm_call_ctors() }
}

/// Makes the machine: bytes of RAM, the network interface's address (in the
/// low 48 bits, first byte lowest), its MTU, and the sectors of the image's disk.
#[unsafe(no_mangle)]
pub extern "C" fn create(ram_bytes: u32, mac: u64, mtu: u32, image_sectors: u64) -> u32 {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        panicked(&text);
    }));
    with(|instance| {
        if instance.machine.is_some() {
            return Answer::State as u32;
        }
        let [m0, m1, m2, m3, m4, m5, ..] = mac.to_le_bytes();
        let mut vmgenid = [0; 16];
        Embedder.random(&mut vmgenid);
        let config = MachineConfig {
            ram_bytes: ram_bytes as usize,
            devices: DeviceConfig {
                net: NetConfig {
                    mac: [m0, m1, m2, m3, m4, m5],
                    mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
                },
                vmgenid,
                image_sectors,
            },
        };
        instance.machine = Some(Machine::new(&config, Embedder));
        Answer::Done as u32
    })
}

/// Address of [`SCRATCH_BYTES`] bytes for arguments.
#[unsafe(no_mangle)]
pub extern "C" fn scratch() -> u32 {
    with(|instance| instance.scratch.as_ptr() as u32)
}

/// Where a kernel whose first `head_len` bytes are in [`scratch`] (64 do) and
/// an initial file system of `initrd_len` bytes go: offset of the kernel in
/// RAM in the high half, of the file system in the low half; all ones if they
/// do not fit or it is no kernel.
#[unsafe(no_mangle)]
pub extern "C" fn layout(head_len: u32, initrd_len: u32) -> u64 {
    with(|instance| {
        let head = instance.scratch.get(..head_len as usize);
        let (Some(machine), Some(head)) = (&instance.machine, head) else {
            return u64::MAX;
        };
        let Ok(layout) = machine.layout(head, initrd_len as usize) else {
            return u64::MAX;
        };
        instance.layout = Some((layout, initrd_len as usize));
        (layout.kernel - RAM_BASE) << 32 | (layout.initrd - RAM_BASE)
    })
}

/// Address of `len` bytes of guest RAM from `offset` on; zero if not all of
/// them are RAM. Meant for loading, before the guest runs.
#[unsafe(no_mangle)]
pub extern "C" fn ram(offset: u32, len: u32) -> u32 {
    with_machine(0, |machine| {
        let bytes = machine
            .bus
            .ram
            .slice_mut(RAM_BASE + u64::from(offset), len as usize);
        bytes.map_or(0, |bytes| bytes.as_mut_ptr() as u32)
    })
}

/// Enters the kernel that was put where [`layout`] said, with the command line
/// of `cmdline_len` bytes in [`scratch`].
#[unsafe(no_mangle)]
pub extern "C" fn boot(cmdline_len: u32) -> u32 {
    with(|instance| {
        let (Some(machine), Some((layout, initrd_len))) = (&mut instance.machine, instance.layout)
        else {
            return Answer::State as u32;
        };
        let cmdline = instance.scratch.get(..cmdline_len as usize);
        let Some(Ok(cmdline)) = cmdline.map(str::from_utf8) else {
            return Answer::Argument as u32;
        };
        let started = machine.start_kernel(layout, initrd_len, cmdline);
        started.map_or(Answer::Load as u32, |()| Answer::Done as u32)
    })
}

/// Runs about `budget` instructions, or until the guest waits, ends, or has
/// output that should not wait. Without a machine: [`Status::PowerOff`].
#[unsafe(no_mangle)]
pub extern "C" fn run(budget: u64) -> u32 {
    with(|instance| {
        let Some(machine) = &mut instance.machine else {
            return Status::PowerOff as u32;
        };
        let (status, until_ns) = match machine.run(budget) {
            machine::Status::Budget => (Status::Budget, None),
            machine::Status::Wait { until_ns } => (Status::Wait, until_ns),
            machine::Status::PowerOff => (Status::PowerOff, None),
            machine::Status::Reset => (Status::Reset, None),
        };
        instance.report = RunReport {
            until_ns: until_ns.unwrap_or(u64::MAX),
            ..describe(machine)
        };
        status as u32
    })
}

/// What there is to say about a machine that does not run.
fn describe(machine: &Machine<Embedder>) -> RunReport {
    let bus = &machine.bus;
    let devices = &bus.devices.virtio;
    RunReport {
        until_ns: u64::MAX,
        retired: machine.cpu.retired(),
        output: bus.channels.output(),
        input: bus.channels.input(),
        requests: devices.p9.device.in_flight() as u32,
        agent_open: devices.console.device.agent_open().into(),
        broken: devices.broken(),
        aot_entries: machine.cpu.aot_entries() as u32,
    }
}

/// Address of the [`RunReport`] of the last [`run`].
#[unsafe(no_mangle)]
pub extern "C" fn report() -> u32 {
    with(|instance| &raw const instance.report as u32)
}

/// The oldest output of a channel: a run of bytes, or one message (which may
/// be empty: then the length is zero but not the address).
#[unsafe(no_mangle)]
pub extern "C" fn output(channel: u32) -> u64 {
    with_machine(0, |machine| {
        let front =
            Channel::from_number(channel).and_then(|channel| machine.bus.channels.front(channel));
        front.map_or(0, |message| pair(message.bytes))
    })
}

/// The tag of the message that [`output`] gives; zero for bytes.
#[unsafe(no_mangle)]
pub extern "C" fn tag(channel: u32) -> u32 {
    with_machine(0, |machine| {
        let front =
            Channel::from_number(channel).and_then(|channel| machine.bus.channels.front(channel));
        front.map_or(0, |message| message.tag)
    })
}

/// The embedder has taken `count` bytes of [`output`], or the message.
#[unsafe(no_mangle)]
pub extern "C" fn taken(channel: u32, count: u32) {
    with_machine((), |machine| {
        if let Some(channel) = Channel::from_number(channel) {
            machine.bus.channels.take(channel, count as usize);
        }
    });
}

/// Room for input: for bytes the next run, at most `len`; for a message all of
/// `len`, or none.
#[unsafe(no_mangle)]
pub extern "C" fn space(channel: u32, len: u32) -> u64 {
    with_machine(0, |machine| {
        let channel = Channel::from_number(channel);
        let space = channel.and_then(|channel| machine.bus.channels.space(channel, len as usize));
        space.map_or(0, |space| pair(space))
    })
}

/// The embedder has filled the first `len` bytes of [`space`]; 1 if they are
/// now the guest's, 0 if there was no such room.
#[unsafe(no_mangle)]
pub extern "C" fn commit(channel: u32, tag: u32, len: u32) -> u32 {
    with_machine(0, |machine| {
        let channel = Channel::from_number(channel);
        channel
            .is_some_and(|channel| machine.bus.channels.commit(channel, tag, len as usize))
            .into()
    })
}

/// Puts a disk of so many sectors into the guest's own drive and tells the guest.
#[unsafe(no_mangle)]
pub extern "C" fn attach_disk(sectors: u64) -> u32 {
    with_machine(Answer::State as u32, |machine| {
        machine.bus.devices.attach_disk(sectors);
        Answer::Done as u32
    })
}

/// Tells the guest the size of its console.
#[unsafe(no_mangle)]
pub extern "C" fn resize(columns: u32, rows: u32) {
    let short = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    with_machine((), |machine| {
        let console = &mut machine.bus.devices.virtio.console.device;
        console.resize(short(columns), short(rows));
    });
}

/// Drops what a snapshot need not hold (decoded code, old contents of rings).
/// [`Answer::Busy`] if channels hold data or file requests wait.
#[unsafe(no_mangle)]
pub extern "C" fn prepare_snapshot() -> u32 {
    let answer = prepare();
    if answer == Answer::Done {
        with_machine((), |machine| machine.cpu.stop_translating(&mut machine.bus));
    }
    answer as u32
}

/// The same, but decoded code stays: guests that start from the snapshot run at
/// once what was run before. For a machine that translates nothing.
#[unsafe(no_mangle)]
pub extern "C" fn prepare_image() -> u32 {
    prepare() as u32
}

fn prepare() -> Answer {
    with(|instance| {
        let Some(machine) = &mut instance.machine else {
            return Answer::State;
        };
        if machine.bus.prepare_snapshot().is_err() {
            return Answer::Busy;
        }
        instance.scratch.fill(0);
        Answer::Done
    })
}

/// Goes on in a new instance of a snapshot, with a new VM generation
/// identifier (its halves little-endian): fresh clocks, and the guest is notified.
#[unsafe(no_mangle)]
pub extern "C" fn resume(vmgenid_low: u64, vmgenid_high: u64) -> u32 {
    let id = u128::from(vmgenid_high) << 64 | u128::from(vmgenid_low);
    with_machine(Answer::State as u32, |machine| {
        machine.bus.resume(id.to_le_bytes());
        Answer::Done as u32
    })
}

/// Switches the translator on or off. On means: modules that it asks for may be
/// compiled, added to the function table, and announced by [`translated`]. It
/// asks for pages in which `samples` samples were taken, one in 8192
/// instructions (with 1: at the end of each [`run`], too), the first after `age`
/// million instructions; functions are to be fast (0) or small (1). Zero samples
/// are off, and drop all that was announced.
#[unsafe(no_mangle)]
pub extern "C" fn translation(samples: u32, age: u32, is_small: u32) -> u32 {
    with_machine(Answer::State as u32, |machine| {
        if samples != 0 {
            let policy = Policy {
                samples: u16::try_from(samples).unwrap_or(u16::MAX),
                age: u64::from(age) * 1_000_000,
                opt_level: match is_small {
                    0 => OptLevel::Speed,
                    _ => OptLevel::Size,
                },
            };
            machine.cpu.translate(&machine.bus, policy, helpers());
        } else {
            machine.cpu.stop_translating(&mut machine.bus);
        }
        Answer::Done as u32
    })
}

/// Begins an execution profile: notes what of the guest's code runs, for
/// [`end_profile`]. Meant for a copy of a guest that runs the training workload.
#[unsafe(no_mangle)]
pub extern "C" fn begin_profile() -> u32 {
    with_machine(Answer::State as u32, |machine| {
        machine.cpu.start_profile(&mut machine.bus);
        Answer::Done as u32
    })
}

/// Ends the profile: its encoding, for [`compile_aot`] in the guest that was
/// copied. It is valid until the next [`end_profile`] or [`bytes`].
#[unsafe(no_mangle)]
pub extern "C" fn end_profile() -> u64 {
    with(|instance| {
        let profile = instance
            .machine
            .as_mut()
            .map(|m| m.cpu.finish_profile().encode());
        instance.bytes = profile.unwrap_or_default();
        pair(&instance.bytes)
    })
}

/// Room for `len` bytes of an argument; zero bytes give the room back, with
/// zeros in it, which a snapshot does not store.
#[unsafe(no_mangle)]
pub extern "C" fn bytes(len: u32) -> u64 {
    with(|instance| {
        instance.bytes.fill(0);
        instance.bytes = vec![0; len as usize];
        pair(&instance.bytes)
    })
}

/// Compiles AOT regions by the profile whose encoding is in [`bytes`], as functions
/// of about `room` bytes. The embedder promises to add them to this very module:
/// from number `base` of the function table on, with the types number `types`
/// (region) and the next one (helper). The answer is the functions as they stand
/// in a code section, each behind its length (32 bits). From now on they are
/// called; zero if the result is none.
#[unsafe(no_mangle)]
pub extern "C" fn compile_aot(base: u32, types: u32, room: u32) -> u64 {
    with(|instance| {
        let profile = Profile::decode(&instance.bytes);
        let (Some(machine), Some(profile)) = (&mut instance.machine, profile) else {
            return 0;
        };
        let layout = (helpers(), types);
        let table = (base, room as usize);
        instance.bytes = machine
            .cpu
            .compile_aot(&mut machine.bus, &profile, layout, table);
        pair(&instance.bytes)
    })
}

/// Uses the AOT regions that [`compile_aot`] made (1), which is the default, or not
/// (0).
#[unsafe(no_mangle)]
pub extern "C" fn enable_aot(on: u32) -> u32 {
    with_machine(Answer::State as u32, |machine| {
        machine.cpu.enable_aot(&mut machine.bus, on != 0);
        Answer::Done as u32
    })
}

/// The module asked for under `ticket` is function `function` of the table and
/// stays there; zero: there will be none. 1 if it is used, 0 if its code has
/// changed meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn translated(ticket: u32, function: u32) -> u32 {
    with_machine(0, |machine| {
        machine
            .cpu
            .translated(&mut machine.bus, ticket, function)
            .into()
    })
}

/// Address of the integer registers: 32 numbers of 64 bits.
#[unsafe(no_mangle)]
pub extern "C" fn registers() -> u32 {
    with_machine(0, |machine| &raw const machine.cpu.hart.x as u32)
}

/// A translated region, as the module `jit::emit` makes it: node,
/// page, what it is context, budget.
type RegionFn = unsafe extern "C" fn(u32, u64, *mut VmContext, i64) -> u32;

/// The call of the translator; see [`jit::enter`].
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "those of `jit::enter`")]
pub fn region(
    inst: &Inst,
    page: u64,
    x: &mut Registers,
    bank: Bank<'_>,
    data: &[DataTlbs; MMU_INDEXES],
    exec: &ExecTlb,
    ram: &mut [u8],
    at: &mut Cursor,
) -> u32 {
    let tlb = &data[bank.csr.mmu_index(bank.mode)];
    let mut context = VmContext {
        read: tlb.read.slots().as_ptr(),
        write: tlb.write.slots().as_ptr(),
        jump_cache: exec.jump_cache(),
        x,
        fp: bank.fp,
        csr: bank.csr,
        mode: bank.mode,
        data,
        at: &raw mut *at,
        ram: ram.as_mut_ptr(),
    };
    let budget = at.budget;
    // SAFETY: on this target a function pointer is a number of the function
    // table. The embedder put a function that `emit` wrote there, announced its
    // number, and never removes it; `Op::Enter` is made from announced numbers
    // only. A number of no function, or of one of another type, traps.
    let function = unsafe { std::mem::transmute::<usize, RegionFn>(inst.imm as u32 as usize) };
    // SAFETY: the function works on nothing but these objects. Registers and
    // cursor it finds at their constant addresses, which are those given here;
    // RAM through slots of the TLB, which hold offsets inside of it only.
    // The other regions that it goes on in were named by an `Op::Enter` that ran
    // since the last flush, and get the same.
    unsafe { function(inst.rs1.into(), page, &raw mut context, budget) }
}

/// What regions call.
fn helpers() -> Helpers {
    Helpers {
        float: float as *const () as u32,
        csr: csr as *const () as u32,
    }
}

/// See [`Helpers::float`].
unsafe extern "C" fn float(context: *mut VmContext, inst: u64) -> u32 {
    // SAFETY: a region gives on what it was context for the time of its call, and
    // nobody else uses that meanwhile.
    let (fp, x) = unsafe { (&mut *(*context).fp, &mut *(*context).x) };
    fp::execute(fp, x, &jit::unpack(inst)).into()
}

/// See [`Helpers::csr`].
unsafe extern "C" fn csr(context: *mut VmContext, inst: u64) -> u32 {
    // SAFETY: as in `float`.
    let context = unsafe { &mut *context };
    // SAFETY: the same.
    let (csr, fp, x) = unsafe { (&mut *context.csr, &mut *context.fp, &mut *context.x) };
    // SAFETY: the same.
    let data = unsafe { &*context.data };
    let mode = context.mode;
    let mut bank = Bank { mode, csr, fp };
    let inst = jit::unpack(inst);
    let ran = bank.quick(x, &inst);
    // Only behind these a region looks for its TLBs again.
    if may_change_mmu_index(&inst) {
        let tlb = &data[csr.mmu_index(mode)];
        context.read = tlb.read.slots().as_ptr();
        context.write = tlb.write.slots().as_ptr();
    }
    ran.into()
}
