//! An image with a real Linux in it: the machine of our own guest as a preview1 program
//! that is driven like container2wasm's emulators, with a real shell on a real terminal. It
//! shares no code with the host that runs it.
//!
//! Kernel and files are read from mounts. The tests build it with `rustc --target
//! wasm32-wasip1` from the sources of the guest's crate, without its own WebAssembly
//! interface.

#![allow(dead_code, unused_imports, reason = "the crate's interface is larger")]

#[path = "../../../guest/src/bus.rs"]
mod bus;
#[path = "../../../guest/src/channels/mod.rs"]
mod channels;
#[path = "../../../guest/src/cpu/mod.rs"]
mod cpu;
#[path = "../../../guest/src/devices/mod.rs"]
mod devices;
#[path = "../../../guest/src/fdt/mod.rs"]
mod fdt;
#[path = "../../../guest/src/hart/mod.rs"]
mod hart;
#[path = "../../../guest/src/host/mod.rs"]
mod host;
#[path = "../../../guest/src/interp/mod.rs"]
mod interp;
#[path = "../../../guest/src/jit/mod.rs"]
mod jit;
#[path = "../../../guest/src/machine.rs"]
mod machine;
#[path = "../../../guest/src/mmu/mod.rs"]
mod mmu;
#[path = "../../../guest/src/ram/mod.rs"]
mod ram;
#[path = "../c2w_image/wasi.rs"]
mod wasi;
mod wasm {
    //! Replaces the crate's own interface: no code is translated here.

    use crate::hart::csr::Bank;
    use crate::hart::{Cursor, Registers};
    use crate::interp::inst::Inst;
    use crate::jit::INTERPRET;
    use crate::mmu::tlb::{DataTlbs, ExecTlb, MMU_INDEXES};

    #[allow(clippy::too_many_arguments, reason = "those of the crate's own")]
    pub fn region(
        _: &Inst,
        _: u64,
        _: &mut Registers,
        _: Bank<'_>,
        _: &[DataTlbs; MMU_INDEXES],
        _: &ExecTlb,
        _: &mut [u8],
        _: &mut Cursor,
    ) -> u32 {
        INTERPRET
    }
}

use machine::{Machine, MachineConfig, Status};
use std::io::Write;
use std::time::{Instant, SystemTime};

/// Instructions of one turn.
const BUDGET: u64 = 500_000;

/// Maximum wait of a turn in milliseconds.
const MAX_DELAY_MS: u64 = 10;

/// Init script of the guest: a shell on its console as a terminal, and power-off when it
/// ends.
const INIT: &str = "#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=dumb
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t tmpfs tmp /tmp
setsid sh -c 'exec sh -i </dev/hvc0 >/dev/hvc0 2>&1'
poweroff -f
";

/// Host clocks; booting needs only a changing number as randomness.
struct Clocks(Instant);

impl host::Host for Clocks {
    fn monotonic_ns(&mut self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn wall_ns(&mut self) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    }

    fn random(&mut self, buf: &mut [u8]) {
        use std::hash::{BuildHasher, Hasher, RandomState};
        for chunk in buf.chunks_mut(8) {
            let number = RandomState::new().build_hasher().finish();
            chunk.copy_from_slice(&number.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// An archive (newc) with one executable.
fn archive(name: &str, content: &[u8]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, mode, content) in [
        (name, 0o100_755, content),
        ("TRAILER!!!", 0, b"".as_slice()),
    ] {
        let fields = [
            1,
            mode,
            0,
            0,
            1,
            0,
            content.len(),
            0,
            0,
            0,
            0,
            name.len() + 1,
            0,
        ];
        archive.extend(b"070701");
        fields
            .iter()
            .for_each(|field| archive.extend(format!("{field:08x}").bytes()));
        archive.extend(name.as_bytes());
        archive.push(0);
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(4), 0);
    }
    archive
}

fn main() {
    let _ = wasi::preopens();
    let read = |name: &str| match std::fs::read(name) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{name}: {error}");
            std::process::exit(1);
        }
    };
    let kernel = read("/kernel/Image");
    let mut files = read("/rootfs/rootfs.cpio");
    files.resize(files.len().next_multiple_of(512), 0);
    files.extend(archive("c2w-init", INIT.as_bytes()));
    let mut machine = Machine::new(&MachineConfig::default(), Clocks(Instant::now()));
    let cmdline = "console=hvc0 quiet rdinit=/c2w-init";
    if let Err(error) = machine.load_kernel(&kernel, &files, cmdline) {
        eprintln!("{error}");
        std::process::exit(1);
    }
    drop((kernel, files));
    let mut delay = 0;
    loop {
        input(&mut machine, delay);
        let status = machine.run(BUDGET);
        output(&mut machine);
        delay = match status {
            Status::Budget => 0,
            Status::PowerOff | Status::Reset => std::process::exit(0),
            Status::Wait { until_ns } => {
                let now = host::Host::monotonic_ns(&mut machine.bus.host);
                let left = until_ns.map(|until| until.saturating_sub(now) / 1_000_000);
                left.unwrap_or(MAX_DELAY_MS).min(MAX_DELAY_MS)
            }
        };
    }
}

/// Reads console input, only if the guest has room.
fn input(machine: &mut Machine<Clocks>, delay: u64) {
    let console = &mut machine.bus.channels.console.input;
    let asks = console.free() >= 128;
    if wasi::poll(asks.then_some(0), delay) {
        let mut buffer = [0; 128];
        match wasi::read(0, &mut buffer) {
            Ok(0) => std::process::exit(1),
            // Hosts of the emulators double the escape.
            Ok(count) => {
                let mut bytes = buffer[..count].to_vec();
                bytes.dedup_by(|byte, last| *byte == 1 && *last == 1);
                console.push(&bytes);
            }
            Err(wasi::AGAIN) => {}
            Err(_) => std::process::exit(1),
        }
    }
}

fn output(machine: &mut Machine<Clocks>) {
    let console = &mut machine.bus.channels.console.output;
    let mut stdout = std::io::stdout().lock();
    while !console.is_empty() {
        let count = console.front().len();
        let written = stdout.write_all(console.front());
        if written.and_then(|()| stdout.flush()).is_err() {
            std::process::exit(1);
        }
        console.consume(count);
    }
}
