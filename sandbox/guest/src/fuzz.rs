//! Bodies of fuzz targets: each takes arbitrary bytes, and panics if an invariant is
//! violated.

mod script;

use crate::bus::{Bus, Width};
use crate::channels::{Channel, Channels};
use crate::devices::map::{MmioTarget, REGIONS, region};
use crate::devices::virtio::blk::SECTOR_BYTES;
use crate::devices::{DeviceConfig, VirtioDevice};
use crate::host::{Disk, MemoryHost};
use crate::interp::decode;
use crate::interp::inst::SINK;
use crate::machine::{Machine, MachineConfig};
use crate::ram::{RAM_BASE, Ram};
use script::Script;

/// RAM of a fuzzed machine: small, so that random addresses collide.
const RAM_BYTES: usize = 256 << 10;
/// Size of its disks in bytes.
const DISK_BYTES: usize = 16 << 10;
/// Maximum steps of a script.
const MAX_STEPS: usize = 4096;
/// Descriptors of the queues that a script sets up.
const QUEUE_SIZE: u64 = 8;
/// RAM for a queue that a script sets up, in bytes.
const QUEUE_BYTES: u64 = 0x1000;

/// Simulates a hostile guest: random register accesses, descriptors and rings on every
/// device, with an embedder that feeds and drains the channels. No step may panic, and a
/// driver that then resets the devices must find them working.
///
/// # Panics
/// If the emulator fails.
pub fn virtio(data: &[u8]) {
    let config = DeviceConfig {
        image_sectors: DISK_BYTES as u64 / SECTOR_BYTES,
        ..DeviceConfig::default()
    };
    let mut host = MemoryHost::new(1);
    host.disk = vec![0; DISK_BYTES];
    let mut bus = Bus::new(Ram::new(RAM_BYTES), &config, host);
    for disk in [Disk::Own, Disk::Layer(0)] {
        assert!(bus.devices.attach_disk(disk, config.image_sectors));
    }
    let mut script = Script::new(data);
    for _ in 0..MAX_STEPS {
        if !step(&mut bus, &mut script) {
            break;
        }
    }
    works_after_reset(&mut bus);
}

/// Maximum instructions of a fuzzed program.
const BUDGET: u64 = 20_000;
/// Maximum overshoot of a run's budget: a slice of the hart's loop.
const SLACK: u64 = 20_000;

/// Runs arbitrary bytes as machine code: each word decodes to existing registers. The whole
/// runs in supervisor mode, with registers that point to RAM, to a device and nowhere,
/// without a panic and within its budget.
///
/// # Panics
/// If the emulator fails.
pub fn riscv_decode(data: &[u8]) {
    for at in 0..data.len().saturating_sub(3) {
        let bits = u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        let (inst, length) = decode::decode(bits);
        assert!(
            inst.rd <= SINK && inst.rs1 < SINK && inst.rs2 < SINK,
            "{inst:?}"
        );
        assert_eq!(length, decode::length(bits as u16));
    }
    let config = MachineConfig {
        ram_bytes: RAM_BYTES,
        devices: DeviceConfig::default(),
    };
    let mut host = MemoryHost::new(1);
    host.step_ns = 1_000;
    let mut machine = Machine::new(&config, host);
    let code = &data[..data.len().min(RAM_BYTES / 2)];
    for start in [RAM_BASE, RAM_BASE + RAM_BYTES as u64 / 2] {
        let place = machine.bus.ram.slice_mut(start, code.len()).expect("RAM");
        place.copy_from_slice(code);
    }
    let pointers = [
        RAM_BASE + 0x1000,
        RAM_BASE + RAM_BYTES as u64 - 8,
        u64::MAX - 4,
    ];
    for (register, value) in machine.cpu.hart.x[1..32]
        .iter_mut()
        .zip(pointers.iter().cycle())
    {
        *register = *value;
    }
    for (register, row) in machine.cpu.hart.x[8..16].iter_mut().zip(&REGIONS) {
        *register = row.base;
    }
    // Traps go to the second copy of the code.
    machine.cpu.hart.csr.stvec = RAM_BASE + RAM_BYTES as u64 / 2;
    let _ = machine.run(BUDGET);
    assert_eq!(machine.cpu.hart.x[0], 0, "x0 is zero");
    assert!(machine.cpu.retired() <= BUDGET + SLACK);
}

/// Runs one action of guest or embedder; `false` at the end of the script.
fn step(bus: &mut Bus<MemoryHost>, script: &mut Script<'_>) -> bool {
    let Some(what) = script.byte() else {
        return false;
    };
    match what % 11 {
        0 | 1 => {
            let width = [Width::Byte, Width::Half, Width::Word, Width::Double];
            let width = width[usize::from(script.small(4))];
            let row = &REGIONS[usize::from(script.small(REGIONS.len() as u8))];
            let addr = row.base + script.offset(row.size);
            if what % 11 == 0 {
                let _ = bus.store(addr, width, script.number());
            } else {
                let _ = bus.load(addr, width);
            }
        }
        2 => {
            let addr = address(script);
            let value = script.number();
            bus.ram.write_u64(addr, value);
        }
        3 => {
            let device = device(script);
            set_up(bus, device, script.byte().unwrap_or(0));
        }
        4 => announce(bus, script),
        5 | 6 => describe(bus, script),
        7 => bus.poll(),
        8 => feed(bus, script),
        9 => restart(bus, script),
        _ => drain(&mut bus.channels),
    }
    assert!(bus.channels.output() < 16);
    bus.external_interrupt();
    true
}

/// An address, mostly in RAM.
fn address(script: &mut Script<'_>) -> u64 {
    let number = script.number();
    if number.is_multiple_of(17) {
        number
    } else {
        RAM_BASE + number % (RAM_BYTES as u64 + 16)
    }
}

/// Writes a word register of a device.
fn write(bus: &mut Bus<MemoryHost>, device: VirtioDevice, register: u64, value: u32) {
    let written = bus.store(
        region(MmioTarget::Virtio(device)).base + register,
        Width::Word,
        value.into(),
    );
    assert_eq!(written, Ok(()), "registers take words");
}

/// Address of queue `number` of a device, as a script's driver lays it out.
fn queue_base(device: VirtioDevice, number: u32) -> u64 {
    let before = VirtioDevice::ALL
        .iter()
        .take_while(|other| **other != device);
    let first: u32 = before.map(|device| device.queues()).sum();
    RAM_BASE + u64::from(first + number) * QUEUE_BYTES
}

/// Sets up a device as a correct driver does, with the features in `choice`.
fn set_up(bus: &mut Bus<MemoryHost>, device: VirtioDevice, choice: u8) {
    for status in [0, 1, 3] {
        write(bus, device, 0x70, status);
    }
    let offered = |bus: &mut Bus<MemoryHost>| {
        let features = bus.load(region(MmioTarget::Virtio(device)).base + 0x10, Width::Word);
        features.expect("a register") as u32
    };
    // Event indices by choice; the other features as offered.
    let features = offered(bus) & !(u32::from(choice & 1) << 29);
    write(bus, device, 0x20, features);
    write(bus, device, 0x24, 1);
    write(bus, device, 0x20, 1);
    write(bus, device, 0x70, 11);
    for number in 0..device.queues() {
        let base = queue_base(device, number);
        let area = bus.ram.slice_mut(base, QUEUE_BYTES as usize).expect("RAM");
        area.fill(0);
        write(bus, device, 0x30, number);
        write(bus, device, 0x38, QUEUE_SIZE as u32);
        for (register, addr) in [(0x80, base), (0x90, base + 0x400), (0xa0, base + 0x800)] {
            write(bus, device, register, addr as u32);
            write(bus, device, register + 4, (addr >> 32) as u32);
        }
        write(bus, device, 0x44, 1);
    }
    write(bus, device, 0x70, 15);
}

/// A device that the script chooses.
fn device(script: &mut Script<'_>) -> VirtioDevice {
    VirtioDevice::ALL[usize::from(script.small(VirtioDevice::ALL.len() as u8))]
}

/// A queue that the script chooses: its base, device and number.
fn queue(script: &mut Script<'_>) -> (u64, VirtioDevice, u32) {
    let device = device(script);
    let number = u32::from(script.small(device.queues() as u8));
    (queue_base(device, number), device, number)
}

/// Stops a queue, changes its size, and may start it again.
fn restart(bus: &mut Bus<MemoryHost>, script: &mut Script<'_>) {
    let (_, device, number) = queue(script);
    write(bus, device, 0x30, number);
    write(bus, device, 0x44, 0);
    write(bus, device, 0x38, script.small(17).into());
    write(bus, device, 0x44, script.small(2).into());
}

/// Puts heads into a driver's ring, moves its index and notifies.
fn announce(bus: &mut Bus<MemoryHost>, script: &mut Script<'_>) {
    let (base, device, number) = queue(script);
    let ring = base + 0x400;
    let index = bus.ram.read_u16(ring + 2).unwrap_or(0);
    let count = u16::from(script.small(10));
    for i in 0..count {
        let slot = u64::from(index.wrapping_add(i)) % QUEUE_SIZE;
        let head = u16::from(script.small(QUEUE_SIZE as u8 + 1));
        bus.ram.write_u16(ring + 4 + 2 * slot, head);
    }
    bus.ram.write_u16(ring + 2, index.wrapping_add(count));
    write(bus, device, 0x50, number);
}

/// Writes a descriptor.
fn describe(bus: &mut Bus<MemoryHost>, script: &mut Script<'_>) {
    let (base, _, _) = queue(script);
    let at = base + 16 * u64::from(script.small(QUEUE_SIZE as u8));
    let addr = address(script);
    bus.ram.write_u64(at, addr);
    let len = match script.small(4) {
        0 => script.number() as u32,
        1 => 16 * u32::from(script.small(40)),
        _ => u32::from(script.small(255)),
    };
    bus.ram.write_u32(at + 8, len);
    bus.ram.write_u16(at + 12, script.small(8).into());
    bus.ram
        .write_u16(at + 14, script.small(QUEUE_SIZE as u8 + 1).into());
}

/// Lets the embedder send input to a channel.
fn feed(bus: &mut Bus<MemoryHost>, script: &mut Script<'_>) {
    let bytes = vec![script.byte().unwrap_or(0); script.number() as usize % 5000];
    let channels = &mut bus.channels;
    match Channel::from_number(script.small(4).into()) {
        Some(Channel::Console) => drop(channels.console.input.push(&bytes)),
        Some(Channel::Agent) => drop(channels.agent.input.push(&bytes)),
        Some(Channel::Net) => drop(
            channels
                .net
                .input
                .push(script.byte().unwrap_or(0).into(), &bytes),
        ),
        _ => drop(channels.p9.input.push(script.number() as u32, &bytes)),
    }
}

/// Lets the embedder take all output, and answer a file request.
fn drain(channels: &mut Channels) {
    for ring in [&mut channels.console.output, &mut channels.agent.output] {
        let count = ring.front().len();
        ring.consume(count);
    }
    while channels.net.output.pop() {}
    if let Some(request) = channels.p9.output.front() {
        let (tag, len) = (request.tag, request.bytes.len());
        channels.p9.output.pop();
        channels.p9.input.push(tag, &vec![0; len]);
    }
}

/// After a reset, each device must answer a request.
fn works_after_reset(bus: &mut Bus<MemoryHost>) {
    while bus.channels.p9.output.pop() {}
    while bus.channels.p9.input.pop() {}
    for device in VirtioDevice::ALL {
        set_up(bus, *device, 0);
    }
    for (device, flags) in [(VirtioDevice::Rng, 2u16), (VirtioDevice::P9, 0)] {
        let base = queue_base(device, 0);
        bus.ram.write_u64(base, RAM_BASE + 0x2_0000);
        bus.ram.write_u32(base + 8, 32);
        bus.ram.write_u16(base + 12, flags);
        bus.ram.write_u16(base + 0x400 + 2, 1);
        write(bus, device, 0x50, 0);
    }
    drain(&mut bus.channels);
    bus.poll();
    for (device, written) in [(VirtioDevice::Rng, 32), (VirtioDevice::P9, 0)] {
        let used = queue_base(device, 0) + 0x800;
        assert_eq!(bus.ram.read_u16(used + 2), Some(1), "answered");
        assert_eq!(bus.ram.read_u32(used + 8), Some(written));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Major opcodes of the hart's instructions (unprivileged manual, table
    /// "RISC-V base opcode map").
    const OPCODES: [u32; 18] = [
        0x03, 0x07, 0x0f, 0x13, 0x17, 0x1b, 0x23, 0x27, 0x2f, 0x33, 0x37, 0x3b, 0x43, 0x4f, 0x53,
        0x63, 0x6f, 0x73,
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn a_hostile_guest_harms_nothing(data in prop::collection::vec(any::<u8>(), 0..3000)) {
            virtio(&data);
        }

        #[test]
        fn any_bytes_run(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            riscv_decode(&data);
        }

        /// Mostly existing instructions.
        #[test]
        fn any_instructions_run(words in prop::collection::vec((0usize..OPCODES.len(), any::<u32>()), 0..500)) {
            let word = |(opcode, bits): (usize, u32)| bits & !0x7f | OPCODES[opcode];
            let data: Vec<u8> = words.into_iter().flat_map(|pair| word(pair).to_le_bytes()).collect();
            riscv_decode(&data);
        }

        /// Mostly descriptors and announcements on devices that are set up.
        #[test]
        fn hostile_rings_harm_nothing(
            steps in prop::collection::vec((3u8..11, prop::collection::vec(any::<u8>(), 0..16)), 0..300),
        ) {
            let mut data = vec![3, 0, 0, 3, 1, 0, 3, 2, 0, 3, 3, 0];
            data.extend([3, 4, 0, 3, 5, 0, 3, 6, 0]);
            for (what, more) in steps {
                data.push(what);
                data.extend(more);
            }
            virtio(&data);
        }
    }

    #[test]
    fn an_empty_script_finds_the_devices_working() {
        virtio(&[]);
        riscv_decode(&[]);
    }
}
