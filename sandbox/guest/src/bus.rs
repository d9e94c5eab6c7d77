//! Bus: the hart's view of everything but RAM, that is, devices by address, the external
//! interrupt, and the time.
//!
//! How the CPU uses it:
//!
//! - accesses outside RAM go to [`Bus::load`] and [`Bus::store`];
//! - after a `store`, [`Bus::take_early_exit`] returns whether `run` should return to the
//!   embedder early, with urgent output;
//! - at slices of a budget, when `run` starts, and before waiting in WFI it calls
//!   [`Bus::poll`], then reads [`Bus::external_interrupt`];
//! - a WFI without pending work waits until [`Bus::deadline_ns`].

use crate::channels::Channels;
use crate::devices::map::{MmioTarget, find};
use crate::devices::vmgenid::ID_BYTES;
use crate::devices::{DeviceConfig, Devices, Env};
use crate::host::Host;
use crate::ram::Ram;

/// Ticks of the time counter in a second (`timebase-frequency` of the device
/// tree).
pub(crate) const TIMEBASE_HZ: u64 = 10_000_000;

/// Nanoseconds of a tick.
const NS_PER_TICK: u64 = 1_000_000_000 / TIMEBASE_HZ;

/// Width of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    Byte = 1,
    /// Two bytes.
    Half = 2,
    /// Four bytes.
    Word = 4,
    /// Eight bytes.
    Double = 8,
}

/// No device at that address, or an unsupported kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessFault;

/// Why a snapshot is not possible now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Channels with output that the embedder has not taken, by bit.
    pub output: u32,
    /// Channels with input that the guest has not taken, by bit.
    pub input: u32,
    /// File requests that the embedder has not answered.
    pub requests: usize,
}

/// The machine without its hart.
#[derive(Debug)]
pub struct Bus<H: Host> {
    /// Guest physical memory.
    pub ram: Ram,
    /// The devices.
    pub devices: Devices,
    /// The rings shared with the embedder.
    pub channels: Channels,
    /// Clocks and entropy.
    pub host: H,
    clock: Clock,
}

/// Relation of the time counter to the host's monotonic clock.
#[derive(Debug)]
struct Clock {
    /// Ticks at `origin_ns`.
    base: u64,
    /// Host time that belongs to `base`.
    origin_ns: u64,
    /// The last time that was returned; it never goes back.
    last: u64,
}

impl<H: Host> Bus<H> {
    /// Creates a bus over `ram`; time starts at zero.
    pub fn new(ram: Ram, config: &DeviceConfig, mut host: H) -> Self {
        let origin_ns = host.monotonic_ns();
        Self {
            ram,
            devices: Devices::new(config),
            channels: Channels::new(),
            host,
            clock: Clock {
                base: 0,
                origin_ns,
                last: 0,
            },
        }
    }

    /// Reads from a device.
    ///
    /// # Errors
    /// [`AccessFault`] if the address has no device, or the device does not support the
    /// width: registers are 32 bits wide and aligned, except for virtio configurations and
    /// the VM generation identifier.
    pub fn load(&mut self, addr: u64, width: Width) -> Result<u64, AccessFault> {
        let (region, offset) = find(addr).ok_or(AccessFault)?;
        let devices = &mut self.devices;
        match region.target {
            MmioTarget::Plic => Ok(devices.plic.read(word(offset, width)?).into()),
            MmioTarget::Rtc => {
                let wall_ns = self.host.wall_ns();
                Ok(devices.rtc.read(word(offset, width)?, wall_ns).into())
            }
            MmioTarget::VmGenId => Ok(devices.vmgenid.read(offset, width as usize)),
            MmioTarget::Virtio(device) => devices.virtio.load(device, offset, width),
        }
    }

    /// Writes to a device. Virtio configurations and the VM generation identifier ignore
    /// writes.
    ///
    /// # Errors
    /// [`AccessFault`], as [`Bus::load`].
    pub fn store(&mut self, addr: u64, width: Width, value: u64) -> Result<(), AccessFault> {
        let (region, offset) = find(addr).ok_or(AccessFault)?;
        let value = value as u32;
        let devices = &mut self.devices;
        let mut env = Env {
            ram: &mut self.ram,
            channels: &mut self.channels,
            host: &mut self.host,
        };
        match region.target {
            MmioTarget::Plic => devices.plic.write(word(offset, width)?, value),
            MmioTarget::Rtc => {
                let wall_ns = env.host.wall_ns();
                devices.rtc.write(word(offset, width)?, value, wall_ns);
            }
            MmioTarget::VmGenId => {}
            MmioTarget::Virtio(device) => {
                let (virtio, env) = (&mut devices.virtio, &mut env);
                virtio.store(device, offset, width, value, env)?;
            }
        }
        devices.update_lines();
        Ok(())
    }

    /// Whether the external interrupt of supervisor mode is pending.
    pub fn external_interrupt(&self) -> bool {
        self.devices.plic.output()
    }

    /// Whether a device requested an early return to the embedder since the last call.
    pub fn take_early_exit(&mut self) -> bool {
        self.channels.take_early_exit()
    }

    /// Moves data between rings and queues, and updates the external interrupt.
    pub fn poll(&mut self) {
        let mut env = Env {
            ram: &mut self.ram,
            channels: &mut self.channels,
            host: &mut self.host,
        };
        self.devices.poll(&mut env);
    }

    /// The time counter, in ticks of [`TIMEBASE_HZ`].
    pub fn time(&mut self) -> u64 {
        let now_ns = self.host.monotonic_ns();
        let passed = now_ns.saturating_sub(self.clock.origin_ns) / NS_PER_TICK;
        let ticks = self.clock.base.wrapping_add(passed);
        self.clock.last = self.clock.last.max(ticks);
        self.clock.last
    }

    /// Host monotonic time in nanoseconds at which a waiting hart must continue: its timer
    /// at `timer` ticks (`u64::MAX`: off), or the alarm of the real-time clock. `None`:
    /// only input can wake it.
    pub fn deadline_ns(&mut self, timer: u64) -> Option<u64> {
        let clock = &self.clock;
        // Linux turns its timer off by setting it far into the future.
        let timer = timer
            .saturating_sub(clock.base)
            .checked_mul(NS_PER_TICK)
            .and_then(|ns| ns.checked_add(clock.origin_ns));
        let alarm = if self.devices.rtc.armed() {
            let wall_ns = self.host.wall_ns();
            let left = self.devices.rtc.alarm_in(wall_ns);
            left.map(|left| self.host.monotonic_ns().saturating_add(left))
        } else {
            None
        };
        [timer, alarm].into_iter().flatten().min()
    }

    /// Prepares rings and clock for a snapshot: overwrites the rings' old contents, and
    /// stops the time counter until [`Bus::resume`].
    ///
    /// # Errors
    /// [`Busy`] if a channel holds data or a file request is unanswered: a snapshot would
    /// carry it into every instance.
    pub fn prepare_snapshot(&mut self) -> Result<(), Busy> {
        let busy = Busy {
            output: self.channels.output(),
            input: self.channels.input(),
            requests: self.devices.virtio.p9.device.in_flight(),
        };
        if busy != Busy::default() {
            return Err(busy);
        }
        self.time();
        self.channels.scrub();
        self.channels.take_early_exit();
        Ok(())
    }

    /// Continues after a restore: the time counter from its old value by this host's clock,
    /// the wall clock from the host, and the new identifier, which the guest receives.
    pub fn resume(&mut self, vmgenid: [u8; ID_BYTES]) {
        self.clock.base = self.clock.last;
        self.clock.origin_ns = self.host.monotonic_ns();
        self.devices.rtc.follow_host();
        self.devices.renew_vmgenid(vmgenid);
        self.poll();
    }
}

/// Returns the offset of a 32-bit register, if the access matches one.
pub(crate) fn word(offset: u64, width: Width) -> Result<u64, AccessFault> {
    let fits = width == Width::Word && offset.is_multiple_of(4);
    if fits { Ok(offset) } else { Err(AccessFault) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::VirtioDevice;
    use crate::devices::map::region;
    use crate::host::MemoryHost;

    fn bus() -> Bus<MemoryHost> {
        let mut host = MemoryHost::new(1);
        host.monotonic_ns = 5_000;
        host.wall_ns = 1 << 40;
        Bus::new(Ram::new(1 << 20), &DeviceConfig::default(), host)
    }

    #[test]
    fn devices_are_where_the_map_says() {
        let mut bus = bus();
        for device in VirtioDevice::ALL {
            let base = region(MmioTarget::Virtio(*device)).base;
            assert_eq!(bus.load(base, Width::Word), Ok(0x7472_6976));
            assert_eq!(bus.load(base + 4, Width::Word), Ok(2));
            assert_eq!(bus.load(base + 8, Width::Word), Ok(device.id().into()));
            assert_eq!(bus.load(base, Width::Double), Err(AccessFault));
            assert_eq!(bus.load(base + 2, Width::Word), Err(AccessFault));
            assert_eq!(bus.store(base + 0x70, Width::Byte, 0), Err(AccessFault));
        }
        let mac = region(MmioTarget::Virtio(VirtioDevice::Net)).base + 0x100;
        assert_eq!(bus.load(mac + 5, Width::Byte), Ok(1));
        assert_eq!(bus.load(0x1234, Width::Word), Err(AccessFault));
        assert_eq!(bus.store(0x1234, Width::Word, 0), Err(AccessFault));
        assert_eq!(
            bus.load(region(MmioTarget::Rtc).base + 4, Width::Word),
            Ok(0)
        );
        bus.load(region(MmioTarget::Rtc).base, Width::Word)
            .expect("a register");
        assert_eq!(
            bus.load(region(MmioTarget::Rtc).base + 4, Width::Word),
            Ok(1 << 8)
        );
    }

    #[test]
    fn a_driver_that_breaks_the_rules_breaks_its_device_alone() {
        for (index, device) in VirtioDevice::ALL.iter().enumerate() {
            let mut bus = bus();
            let base = region(MmioTarget::Virtio(*device)).base;
            let mut write = |register, value| {
                let written = bus.store(base + register, Width::Word, value);
                assert_eq!(written, Ok(()), "{device:?}");
            };
            // Rings at address 0, where there is no memory.
            for (register, value) in [
                (0x70, 3),
                (0x24, 1),
                (0x20, 1),
                (0x70, 11),
                (0x38, 8),
                (0x44, 1),
                (0x70, 15),
                (0x50, 0),
            ] {
                write(register, value);
            }
            bus.poll();
            assert_eq!(bus.devices.virtio.broken(), 1 << index, "{device:?}");
        }
    }

    #[test]
    fn time_follows_the_host_and_never_goes_back() {
        let mut bus = bus();
        assert_eq!(bus.time(), 0);
        bus.host.monotonic_ns = 5_000 + 1_234_500;
        assert_eq!(bus.time(), 12_345);
        bus.host.monotonic_ns = 0;
        assert_eq!(bus.time(), 12_345);
    }

    #[test]
    fn deadlines_are_in_host_time() {
        let mut bus = bus();
        assert_eq!(bus.deadline_ns(u64::MAX), None);
        assert_eq!(bus.deadline_ns(100), Some(15_000));
        let rtc = region(MmioTarget::Rtc).base;
        let alarm = bus.host.wall_ns + 7_000;
        bus.store(rtc + 0x0c, Width::Word, alarm >> 32)
            .expect("a register");
        bus.store(rtc + 0x08, Width::Word, alarm & 0xffff_ffff)
            .expect("a register");
        assert_eq!(bus.deadline_ns(u64::MAX), Some(12_000));
        assert_eq!(bus.deadline_ns(10), Some(6_000));
    }

    #[test]
    fn a_snapshot_wants_empty_channels() {
        let mut bus = bus();
        bus.channels.agent.output.push(b"secret");
        bus.channels.p9.input.push(1, b"answer");
        let busy = Busy {
            output: 2,
            input: 8,
            requests: 0,
        };
        assert_eq!(bus.prepare_snapshot(), Err(busy));
        bus.channels.agent.output.consume(6);
        bus.channels.p9.input.pop();
        assert_eq!(bus.prepare_snapshot(), Ok(()));
        assert!(
            bus.channels
                .agent
                .output
                .space()
                .iter()
                .all(|&byte| byte == 0)
        );
    }

    #[test]
    fn a_restore_goes_on_where_time_stopped() {
        let mut bus = bus();
        bus.host.monotonic_ns += 1_000_000;
        assert_eq!(bus.time(), 10_000);
        // Another process has another origin of its clock.
        bus.host.monotonic_ns = 77;
        let plic = region(MmioTarget::Plic).base;
        let irq = crate::devices::map::VMGENID_IRQ;
        bus.store(plic + u64::from(irq) * 4, Width::Word, 1)
            .expect("a register");
        bus.store(plic + 0x2000, Width::Word, 1 << irq)
            .expect("a register");
        assert!(!bus.external_interrupt());
        bus.resume([7; 16]);
        assert!(bus.external_interrupt());
        assert_eq!(
            bus.load(region(MmioTarget::VmGenId).base + 8, Width::Double),
            Ok(0x0707_0707_0707_0707)
        );
        assert_eq!(bus.time(), 10_000);
        bus.host.monotonic_ns += 100;
        assert_eq!(bus.time(), 10_001);
        assert_eq!(bus.deadline_ns(10_010), Some(77 + 1_000));
    }
}
