//! MMIO transport, version 2 (virtio 1.2 section 4.2), and the device life cycle (sections
//! 2.1 and 3.1).

use super::queue::{Queue, QueueFault};
use crate::bus::{AccessFault, Width, word};
use crate::channels::Channels;
use crate::devices::Env;
use crate::host::Host;

/// "virt" (section 4.2.2).
const MAGIC: u32 = 0x7472_6976;
const VERSION: u32 = 2;
/// Vendor identifier: "A99 " in ASCII, little-endian; any value is allowed.
const VENDOR: u32 = 0x2039_3941;

const REG_MAGIC: u64 = 0x000;
const REG_VERSION: u64 = 0x004;
const REG_DEVICE_ID: u64 = 0x008;
const REG_VENDOR_ID: u64 = 0x00c;
const REG_DEVICE_FEATURES: u64 = 0x010;
const REG_DEVICE_FEATURES_SEL: u64 = 0x014;
const REG_DRIVER_FEATURES: u64 = 0x020;
const REG_DRIVER_FEATURES_SEL: u64 = 0x024;
const REG_QUEUE_SEL: u64 = 0x030;
const REG_QUEUE_SIZE_MAX: u64 = 0x034;
const REG_QUEUE_SIZE: u64 = 0x038;
const REG_QUEUE_READY: u64 = 0x044;
const REG_QUEUE_NOTIFY: u64 = 0x050;
const REG_INTERRUPT_STATUS: u64 = 0x060;
const REG_INTERRUPT_ACK: u64 = 0x064;
const REG_STATUS: u64 = 0x070;
const REG_QUEUE_DESC: u64 = 0x080;
const REG_QUEUE_DRIVER: u64 = 0x090;
const REG_QUEUE_DEVICE: u64 = 0x0a0;
const REG_SHM_LEN_LOW: u64 = 0x0b0;
const REG_SHM_BASE_HIGH: u64 = 0x0bc;
const REG_CONFIG_GENERATION: u64 = 0x0fc;
/// First byte of the device's own configuration.
const REG_CONFIG: u64 = 0x100;

/// Status bits (section 2.1).
pub(crate) mod status {
    /// The driver has noticed the device.
    #[cfg(test)]
    pub(crate) const ACKNOWLEDGE: u32 = 1;
    /// The driver knows how to drive the device.
    #[cfg(test)]
    pub(crate) const DRIVER: u32 = 2;
    /// The driver is ready; the device is live.
    pub(crate) const DRIVER_OK: u32 = 4;
    /// Features are negotiated.
    pub(crate) const FEATURES_OK: u32 = 8;
    /// The device cannot continue until it is reset.
    pub(crate) const NEEDS_RESET: u32 = 64;
}

/// Interrupt status bits (section 4.2.2).
const INTERRUPT_USED: u32 = 1;
const INTERRUPT_CONFIG: u32 = 2;

/// Descriptor chains may use indirect tables (section 6).
pub(crate) const F_INDIRECT_DESC: u64 = 1 << 28;
/// Event indices suppress notifications (section 6).
pub(crate) const F_EVENT_IDX: u64 = 1 << 29;
/// The device conforms to version 1 of the specification (section 6).
pub(crate) const F_VERSION_1: u64 = 1 << 32;
const TRANSPORT_FEATURES: u64 = F_INDIRECT_DESC | F_EVENT_IDX | F_VERSION_1;

/// Device-specific part of a virtio device.
pub trait Device {
    /// Device type (section 5).
    const ID: u32;
    /// Maximum size of each queue: powers of two, at most
    /// [`MAX_CHAIN`](super::queue::MAX_CHAIN).
    const QUEUE_SIZES: &'static [u16];

    /// Device-specific feature bits.
    fn features(&self) -> u64;

    /// The configuration structure.
    fn config(&self) -> &[u8];

    /// Starts the device after the driver has accepted `features`.
    fn start(&mut self, features: u64);

    /// Resets the device-specific state.
    fn reset(&mut self);

    /// Whether the device may have work without a notification of the driver: input from
    /// the embedder, or room for blocked output. Drivers notify about all other work.
    fn wants_service(&self, channels: &Channels) -> bool;

    /// Serves the queues: takes chains while the channels have room, and completes finished
    /// ones. Takes at most a queue's size of chains from each.
    ///
    /// # Errors
    /// If the driver violated the protocol; the device then needs a reset.
    fn serve<H: Host>(
        &mut self,
        queues: &mut [Queue],
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault>;
}

/// A virtio device behind MMIO registers.
#[derive(Debug)]
pub struct Mmio<D> {
    /// Device behind the registers.
    pub device: D,
    queues: Vec<Queue>,
    status: u32,
    device_features_sel: u32,
    driver_features_sel: u32,
    driver_features: u64,
    queue_sel: u32,
    interrupt_status: u32,
    /// Number of configuration changes.
    generation: u32,
    fault: Option<QueueFault>,
}

impl<D: Device> Mmio<D> {
    /// Creates a device in its power-on state.
    pub fn new(device: D) -> Self {
        Self {
            device,
            queues: D::QUEUE_SIZES
                .iter()
                .map(|&size| Queue::new(size))
                .collect(),
            status: 0,
            device_features_sel: 0,
            driver_features_sel: 0,
            driver_features: 0,
            queue_sel: 0,
            interrupt_status: 0,
            generation: 0,
            fault: None,
        }
    }

    /// Whether its interrupt line is high.
    pub fn interrupt(&self) -> bool {
        self.interrupt_status != 0
    }

    /// Whether the driver has started the device and it works.
    pub fn live(&self) -> bool {
        self.status & (status::DRIVER_OK | status::NEEDS_RESET) == status::DRIVER_OK
    }

    /// Why the device needs a reset, if it does.
    pub fn fault(&self) -> Option<QueueFault> {
        self.fault
    }

    /// Notifies the driver that the configuration has changed.
    pub fn tell_config(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.live() {
            self.interrupt_status |= INTERRUPT_CONFIG;
        }
    }

    /// Serves the device if the embedder's side of the channels gave it work.
    pub fn poll<H: Host>(&mut self, env: &mut Env<'_, H>) {
        if self.live() && self.device.wants_service(env.channels) {
            self.process(env);
        }
    }

    /// Serves the queues and raises the interrupt that the driver enabled.
    pub fn process<H: Host>(&mut self, env: &mut Env<'_, H>) {
        if !self.live() {
            return;
        }
        let served = self.device.serve(&mut self.queues, env);
        let mut tell = false;
        for queue in &mut self.queues {
            tell |= queue.take_interrupt(env.ram);
        }
        if tell {
            self.interrupt_status |= INTERRUPT_USED;
        }
        if let Err(fault) = served {
            self.fail(fault);
        }
    }

    /// Reads a register, or a part of the configuration of any width.
    ///
    /// # Errors
    /// [`AccessFault`] if a register is not read as a word.
    pub(crate) fn load(&self, offset: u64, width: Width) -> Result<u64, AccessFault> {
        if Self::is_config(offset) {
            Ok(self.read_config(offset, width as usize))
        } else {
            Ok(self.read(word(offset, width)?).into())
        }
    }

    /// Writes a register; the configuration ignores it.
    ///
    /// # Errors
    /// [`AccessFault`] if a register is not written as a word.
    pub(crate) fn store<H: Host>(
        &mut self,
        offset: u64,
        width: Width,
        value: u32,
        env: &mut Env<'_, H>,
    ) -> Result<(), AccessFault> {
        if !Self::is_config(offset) {
            self.write(word(offset, width)?, value, env);
        }
        Ok(())
    }

    /// Reads a 32-bit register at `offset`; unassigned ones read as zero.
    pub fn read(&self, offset: u64) -> u32 {
        match offset {
            REG_MAGIC => MAGIC,
            REG_VERSION => VERSION,
            REG_DEVICE_ID => D::ID,
            REG_VENDOR_ID => VENDOR,
            REG_DEVICE_FEATURES => match self.device_features_sel {
                0 => self.offered() as u32,
                1 => (self.offered() >> 32) as u32,
                _ => 0,
            },
            REG_QUEUE_SIZE_MAX => self.queue().map_or(0, |queue| u32::from(queue.max_size)),
            REG_QUEUE_READY => self.queue().map_or(0, |queue| u32::from(queue.ready)),
            REG_INTERRUPT_STATUS => self.interrupt_status,
            REG_STATUS => self.status,
            // No shared memory region: length and base are all ones.
            REG_SHM_LEN_LOW..=REG_SHM_BASE_HIGH => u32::MAX,
            REG_CONFIG_GENERATION => self.generation,
            _ => 0,
        }
    }

    /// Reads `len` (at most 8) bytes of the configuration, at [offset
    /// 0x100](Self::is_config); zero past its end.
    pub fn read_config(&self, offset: u64, len: usize) -> u64 {
        let config = self.device.config();
        let byte = |at: u64| {
            let at = at
                .checked_sub(REG_CONFIG)
                .and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| config.get(at)).copied().unwrap_or(0)
        };
        (0..len.min(8) as u64).fold(0, |value, i| {
            value | u64::from(byte(offset.saturating_add(i))) << (8 * i)
        })
    }

    /// Whether an offset belongs to the configuration, which allows reads of any width,
    /// rather than to the registers.
    pub fn is_config(offset: u64) -> bool {
        offset >= REG_CONFIG
    }

    /// Writes the 32-bit register at `offset`; unassigned ones ignore it.
    pub fn write<H: Host>(&mut self, offset: u64, value: u32, env: &mut Env<'_, H>) {
        match offset {
            REG_DEVICE_FEATURES_SEL => self.device_features_sel = value,
            REG_DRIVER_FEATURES_SEL => self.driver_features_sel = value,
            REG_DRIVER_FEATURES => self.accept_features(value),
            REG_QUEUE_SEL => self.queue_sel = value,
            REG_QUEUE_NOTIFY => self.process(env),
            REG_INTERRUPT_ACK => self.interrupt_status &= !value,
            REG_STATUS => self.set_status(value),
            REG_QUEUE_READY => self.set_queue_ready(value, env),
            REG_QUEUE_SIZE..REG_QUEUE_READY | REG_QUEUE_DESC..REG_SHM_LEN_LOW => {
                self.set_up_queue(offset, value);
            }
            _ => {}
        }
    }

    fn offered(&self) -> u64 {
        self.device.features() | TRANSPORT_FEATURES
    }

    fn queue(&self) -> Option<&Queue> {
        self.queues.get(self.queue_sel as usize)
    }

    /// Accepts half of the driver's features; they are fixed once negotiated.
    fn accept_features(&mut self, value: u32) {
        if self.status & status::FEATURES_OK != 0 {
            return;
        }
        let value = u64::from(value);
        match self.driver_features_sel {
            0 => self.driver_features = self.driver_features & !0xffff_ffff | value,
            1 => self.driver_features = self.driver_features & 0xffff_ffff | value << 32,
            _ => {}
        }
    }

    /// Sets status bits; zero resets the device.
    fn set_status(&mut self, value: u32) {
        if value == 0 {
            self.reset();
            return;
        }
        let before = self.status;
        self.status |= value & !status::NEEDS_RESET;
        let acceptable =
            self.driver_features & !self.offered() == 0 && self.driver_features & F_VERSION_1 != 0;
        let now = |bit| before & bit == 0 && self.status & bit != 0;
        if now(status::FEATURES_OK) && !acceptable {
            self.status &= !status::FEATURES_OK;
        } else if now(status::DRIVER_OK) {
            self.device.start(self.driver_features);
        }
    }

    /// Returns to the power-on state (section 2.4).
    fn reset(&mut self) {
        self.device.reset();
        for queue in &mut self.queues {
            *queue = Queue::new(queue.max_size);
        }
        self.status = 0;
        self.device_features_sel = 0;
        self.driver_features_sel = 0;
        self.driver_features = 0;
        self.queue_sel = 0;
        self.interrupt_status = 0;
        self.fault = None;
    }

    /// Sets size and addresses of the selected queue, which can only change while it is not
    /// ready.
    fn set_up_queue(&mut self, offset: u64, value: u32) {
        let Some(queue) = self.queues.get_mut(self.queue_sel as usize) else {
            return;
        };
        if queue.ready {
            return;
        }
        let address = match offset & !7 {
            REG_QUEUE_DESC => &mut queue.desc,
            REG_QUEUE_DRIVER => &mut queue.driver,
            REG_QUEUE_DEVICE => &mut queue.device,
            _ => {
                if offset == REG_QUEUE_SIZE {
                    // `start` rejects an invalid size.
                    queue.size = u16::try_from(value).unwrap_or(0);
                }
                return;
            }
        };
        match offset & 7 {
            0 => *address = *address & !0xffff_ffff | u64::from(value),
            4 => *address = *address & 0xffff_ffff | u64::from(value) << 32,
            _ => {}
        }
    }

    fn set_queue_ready<H: Host>(&mut self, value: u32, env: &mut Env<'_, H>) {
        let event_idx = self.driver_features & F_EVENT_IDX != 0;
        let Some(queue) = self.queues.get_mut(self.queue_sel as usize) else {
            return;
        };
        if value & 1 == 0 {
            queue.ready = false;
        } else if !queue.ready
            && let Err(fault) = queue.start(env.ram, event_idx)
        {
            self.fail(fault);
        }
    }

    /// Stops the device until it is reset (section 2.1.2).
    fn fail(&mut self, fault: QueueFault) {
        self.fault = Some(fault);
        self.status |= status::NEEDS_RESET;
        if self.status & status::DRIVER_OK != 0 {
            self.interrupt_status |= INTERRUPT_CONFIG;
        }
    }
}
