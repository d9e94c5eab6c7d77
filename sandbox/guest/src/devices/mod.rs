//! The devices: what they are is in their own files, where they are in the
//! [address map](crate::devices::map), and how the hart reaches them in the
//! [bus](crate::bus).

pub(crate) mod map;
pub(crate) mod plic;
pub(crate) mod rtc;
pub(crate) mod virtio;
pub(crate) mod vmgenid;

use crate::channels::Channels;
use crate::devices::map::{Place, RTC_IRQ, VMGENID_IRQ, region};
use crate::host::{Disk, Host};
use crate::ram::Ram;
use plic::Plic;
use rtc::Rtc;
use virtio::balloon::Balloon;
use virtio::blk::Blk;
use virtio::console::Console;
use virtio::mmio::Mmio;
use virtio::net::{Net, NetConfig};
use virtio::p9::P9;
use virtio::rng::Rng;
use vmgenid::{ID_BYTES, VmGenId};

/// What can be chosen about the devices.
#[derive(Clone, Debug, Default)]
pub struct DeviceConfig {
    /// The network interface.
    pub net: NetConfig,
    /// The first VM generation identifier.
    pub vmgenid: [u8; ID_BYTES],
    /// Sectors of the image's disk.
    pub image_sectors: u64,
}

/// What a device may reach while it works.
pub struct Env<'a, H: Host> {
    /// Guest memory.
    pub ram: &'a mut Ram,
    /// The rings shared with the embedder.
    pub channels: &'a mut Channels,
    /// Clocks and entropy.
    pub host: &'a mut H,
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
    /// Console and agent port.
    pub console: Mmio<Console>,
    /// Network interface.
    pub net: Mmio<Net>,
    /// File channel.
    pub p9: Mmio<P9>,
    /// Entropy source.
    pub rng: Mmio<Rng>,
    /// Disk of the image.
    pub image_disk: Mmio<Blk>,
    /// Disk of the guest's own.
    pub disk: Mmio<Blk>,
    /// Memory balloon.
    pub balloon: Mmio<Balloon>,
}

impl Devices {
    /// Devices as after power-on.
    pub fn new(config: &DeviceConfig) -> Self {
        Self {
            plic: Plic::new(),
            rtc: Rtc::new(),
            vmgenid: VmGenId::new(config.vmgenid),
            console: Mmio::new(Console::new()),
            net: Mmio::new(Net::new(&config.net)),
            p9: Mmio::new(P9::new()),
            rng: Mmio::new(Rng::new()),
            image_disk: Mmio::new(Blk::new(Disk::Image, config.image_sectors)),
            disk: Mmio::new(Blk::new(Disk::Own, 0)),
            balloon: Mmio::new(Balloon::new()),
        }
    }

    /// Moves what can be moved between queues and channels, rings a due alarm
    /// and updates the interrupt lines.
    pub fn poll<H: Host>(&mut self, env: &mut Env<'_, H>) {
        self.console.poll(env);
        self.net.poll(env);
        self.p9.poll(env);
        self.rng.poll(env);
        self.image_disk.poll(env);
        self.disk.poll(env);
        self.balloon.poll(env);
        if self.rtc.armed() {
            self.rtc.poll(env.host.wall_ns());
        }
        self.update_lines();
    }

    /// Changes the VM generation identifier and tells the guest.
    pub fn renew_vmgenid(&mut self, id: [u8; ID_BYTES]) {
        self.vmgenid.renew(id);
        self.plic.pulse(VMGENID_IRQ);
    }

    /// Puts a disk of so many sectors into the guest's own drive and tells it.
    pub fn attach_disk(&mut self, sectors: u64) {
        self.disk.device.resize(sectors);
        self.disk.tell_config();
        self.update_lines();
    }

    /// Carries the devices' interrupt lines to the interrupt controller.
    pub fn update_lines(&mut self) {
        let lines = [
            (Place::Console, self.console.interrupt()),
            (Place::Net, self.net.interrupt()),
            (Place::P9, self.p9.interrupt()),
            (Place::Rng, self.rng.interrupt()),
            (Place::ImageDisk, self.image_disk.interrupt()),
            (Place::Disk, self.disk.interrupt()),
            (Place::Balloon, self.balloon.interrupt()),
        ];
        for (place, high) in lines {
            if let Some(irq) = region(place).irq {
                self.plic.set_level(irq, high);
            }
        }
        self.plic.set_level(RTC_IRQ, self.rtc.interrupt());
    }
}
