//! Devices: each is implemented in a separate file, placed by the [address
//! map](crate::devices::map), and reached by the hart over the [bus](crate::bus).

pub(crate) mod map;
pub(crate) mod plic;
pub(crate) mod rtc;
pub(crate) mod virtio;
pub(crate) mod vmgenid;

use crate::bus::{AccessFault, Width};
use crate::channels::Channels;
use crate::devices::map::{RTC_IRQ, VMGENID_IRQ, virtio_irq};
use crate::host::{Disk, Host};
use crate::ram::Ram;
use a99_sandbox_abi::SWAP_BYTES;
use plic::Plic;
use rtc::Rtc;
use virtio::balloon::Balloon;
use virtio::blk::{Blk, SECTOR_BYTES};
use virtio::console::Console;
use virtio::mmio::Mmio;
use virtio::net::{Net, NetConfig};
use virtio::p9::P9;
use virtio::rng::Rng;
use vmgenid::{ID_BYTES, VmGenId};

/// Configuration of the devices.
#[derive(Clone, Debug, Default)]
pub struct DeviceConfig {
    /// The network interface.
    pub net: NetConfig,
    /// Initial VM generation identifier.
    pub vmgenid: [u8; ID_BYTES],
    /// Sectors of the image's disk.
    pub image_sectors: u64,
}

/// Resources that a device may use while it works.
pub struct Env<'a, H: Host> {
    /// Guest memory.
    pub ram: &'a mut Ram,
    /// The rings shared with the embedder.
    pub channels: &'a mut Channels,
    /// Clocks and entropy.
    pub host: &'a mut H,
}

/// Defines the virtio devices, one row each, in the order of their windows, interrupts and
/// bits: name, field, type and constructor. Address map entry, register dispatch, polling,
/// fuzzing, interrupt line and bit among broken devices all follow from the row.
macro_rules! virtio_devices {
    ($($(#[$doc:meta])* $name:ident $field:ident: $device:ty = |$config:pat_param| $new:expr;)*) => {
        /// A virtio device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum VirtioDevice {
            $($(#[$doc])* $name,)*
        }

        impl VirtioDevice {
            /// All virtio devices, in the order of their windows.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Device type (virtio 1.2 section 5).
            #[cfg(test)]
            pub(crate) const fn id(self) -> u32 {
                match self {
                    $(Self::$name => <$device as virtio::mmio::Device>::ID,)*
                }
            }

            /// Number of queues.
            #[cfg(any(test, feature = "fuzzing"))]
            pub(crate) const fn queues(self) -> u32 {
                match self {
                    $(Self::$name => <$device as virtio::mmio::Device>::QUEUE_SIZES.len() as u32,)*
                }
            }
        }

        // The embedder uses the same numbers for the same devices.
        const _: () = {
            $(assert!(VirtioDevice::$name as u32 == a99_sandbox_abi::Device::$name as u32);)*
            assert!(VirtioDevice::ALL.len() == a99_sandbox_abi::Device::ALL.len());
        };

        /// All virtio devices of the machine.
        #[derive(Debug)]
        pub struct VirtioDevices {
            $($(#[$doc])* pub $field: Mmio<$device>,)*
        }

        impl VirtioDevices {
            fn new(config: &DeviceConfig) -> Self {
                Self {
                    $($field: {
                        let $config = config;
                        Mmio::new($new)
                    },)*
                }
            }

            /// Reads a register or a part of the configuration.
            ///
            /// # Errors
            /// [`AccessFault`] if a register is not read as a word.
            pub(crate) fn load(
                &self,
                device: VirtioDevice,
                offset: u64,
                width: Width,
            ) -> Result<u64, AccessFault> {
                match device {
                    $(VirtioDevice::$name => self.$field.load(offset, width),)*
                }
            }

            /// Writes a register; configurations ignore it.
            ///
            /// # Errors
            /// [`AccessFault`] if a register is not written as a word.
            pub(crate) fn store<H: Host>(
                &mut self,
                device: VirtioDevice,
                offset: u64,
                width: Width,
                value: u32,
                env: &mut Env<'_, H>,
            ) -> Result<(), AccessFault> {
                match device {
                    $(VirtioDevice::$name => self.$field.store(offset, width, value, env),)*
                }
            }

            fn poll<H: Host>(&mut self, env: &mut Env<'_, H>) {
                $(self.$field.poll(env);)*
            }

            fn update_lines(&self, plic: &mut Plic) {
                $(plic.set_level(virtio_irq(VirtioDevice::$name), self.$field.interrupt());)*
            }

            /// Devices whose driver violated the protocol and that stay dead until the
            /// guest resets them, by [`Device::bit`](a99_sandbox_abi::Device::bit).
            pub fn broken(&self) -> u32 {
                let mut broken = 0;
                $(broken |= u32::from(self.$field.fault().is_some()) << VirtioDevice::$name as u32;)*
                broken
            }
        }
    };
}

virtio_devices! {
    /// Console and agent port.
    Console console: Console = |_| Console::new();
    /// Network interface.
    Net net: Net = |config| Net::new(&config.net);
    /// File channel.
    P9 p9: P9 = |_| P9::new();
    /// Entropy source.
    Rng rng: Rng = |_| Rng::new();
    /// Disk of the image.
    ImageDisk image_disk: Blk = |config| Blk::new(Disk::Image, config.image_sectors);
    /// The guest's own disk.
    Disk disk: Blk = |_| Blk::new(Disk::Own, 0);
    /// Memory balloon.
    Balloon balloon: Balloon = |_| Balloon::new();
    /// Layer 0.
    Layer0 layer0: Blk = |_| Blk::new(Disk::Layer(0), 0);
    /// Layer 1.
    Layer1 layer1: Blk = |_| Blk::new(Disk::Layer(1), 0);
    /// Layer 2.
    Layer2 layer2: Blk = |_| Blk::new(Disk::Layer(2), 0);
    /// Layer 3.
    Layer3 layer3: Blk = |_| Blk::new(Disk::Layer(3), 0);
    /// Layer 4.
    Layer4 layer4: Blk = |_| Blk::new(Disk::Layer(4), 0);
    /// Layer 5.
    Layer5 layer5: Blk = |_| Blk::new(Disk::Layer(5), 0);
    /// Layer 6.
    Layer6 layer6: Blk = |_| Blk::new(Disk::Layer(6), 0);
    /// Layer 7.
    Layer7 layer7: Blk = |_| Blk::new(Disk::Layer(7), 0);
    /// Disk for files that do not fit memory.
    Swap swap: Blk = |_| Blk::new(Disk::Swap, SWAP_BYTES / SECTOR_BYTES);
}

/// All devices of the machine.
#[derive(Debug)]
pub struct Devices {
    /// Interrupt controller.
    pub plic: Plic,
    /// Wall clock.
    pub rtc: Rtc,
    /// VM generation identifier.
    pub vmgenid: VmGenId,
    /// The virtio devices.
    pub virtio: VirtioDevices,
}

impl Devices {
    /// Creates the devices in their power-on state.
    pub fn new(config: &DeviceConfig) -> Self {
        Self {
            plic: Plic::new(),
            rtc: Rtc::new(),
            vmgenid: VmGenId::new(config.vmgenid),
            virtio: VirtioDevices::new(config),
        }
    }

    /// Moves data between queues and channels, rings a due alarm and updates the interrupt
    /// lines.
    pub fn poll<H: Host>(&mut self, env: &mut Env<'_, H>) {
        self.virtio.poll(env);
        if self.rtc.armed() {
            self.rtc.poll(env.host.wall_ns());
        }
        self.update_lines();
    }

    /// Changes the VM generation identifier and notifies the guest.
    pub fn renew_vmgenid(&mut self, id: [u8; ID_BYTES]) {
        self.vmgenid.renew(id);
        self.plic.pulse(VMGENID_IRQ);
    }

    /// Attaches a disk of `sectors` sectors to its drive and notifies the guest; `false` if
    /// that drive cannot change its disk.
    pub fn attach_disk(&mut self, disk: Disk, sectors: u64) -> bool {
        let virtio = &mut self.virtio;
        let drive = match disk {
            Disk::Own => &mut virtio.disk,
            Disk::Layer(0) => &mut virtio.layer0,
            Disk::Layer(1) => &mut virtio.layer1,
            Disk::Layer(2) => &mut virtio.layer2,
            Disk::Layer(3) => &mut virtio.layer3,
            Disk::Layer(4) => &mut virtio.layer4,
            Disk::Layer(5) => &mut virtio.layer5,
            Disk::Layer(6) => &mut virtio.layer6,
            Disk::Layer(7) => &mut virtio.layer7,
            Disk::Image | Disk::Layer(_) | Disk::Swap => return false,
        };
        drive.device.resize(sectors);
        drive.tell_config();
        self.update_lines();
        true
    }

    /// Passes the devices' interrupt lines to the interrupt controller.
    pub fn update_lines(&mut self) {
        self.virtio.update_lines(&mut self.plic);
        self.plic.set_level(RTC_IRQ, self.rtc.interrupt());
    }
}
