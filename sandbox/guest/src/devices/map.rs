//! Physical address map of the guest: the only place that defines addresses and interrupts
//! of devices.
//!
//! The bus dispatches by it, and the [device tree](crate::fdt) is made from it. Addresses
//! follow the layout of QEMU's `virt` board where that has the device, so that tools for it
//! work.

use crate::devices::VirtioDevice;

/// Device behind an address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MmioTarget {
    /// The goldfish real-time clock.
    Rtc,
    /// The VM generation identifier.
    VmGenId,
    /// The platform-level interrupt controller.
    Plic,
    /// A virtio device.
    Virtio(VirtioDevice),
}

/// A row of the address map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MmioRegion {
    /// Device that the region belongs to.
    pub target: MmioTarget,
    /// Node name in the device tree, without the unit address.
    pub name: &'static str,
    /// The `compatible` strings of the node.
    pub compatible: &'static [&'static str],
    /// First guest physical address.
    pub base: u64,
    /// Size in bytes.
    pub size: u64,
    /// Interrupt source of the PLIC, if the device has one.
    pub irq: Option<u32>,
}

/// The interrupt source of the real-time clock, beyond those of the virtio devices.
pub(crate) const RTC_IRQ: u32 = 30;
/// The interrupt source of the VM generation identifier.
pub(crate) const VMGENID_IRQ: u32 = 31;
/// Highest interrupt source number; source 0 does not exist (PLIC specification 1.0.0,
/// section 3).
pub(crate) const LAST_IRQ: u32 = 31;

/// The non-virtio devices.
const PLATFORM: [MmioRegion; 3] = [
    MmioRegion {
        target: MmioTarget::Rtc,
        name: "rtc",
        compatible: &["google,goldfish-rtc"],
        base: 0x0010_1000,
        size: 0x1000,
        irq: Some(RTC_IRQ),
    },
    MmioRegion {
        target: MmioTarget::VmGenId,
        name: "vmgenid",
        compatible: &["microsoft,vmgenid"],
        base: 0x0010_2000,
        size: 0x1000,
        irq: Some(VMGENID_IRQ),
    },
    MmioRegion {
        target: MmioTarget::Plic,
        name: "interrupt-controller",
        compatible: &["sifive,plic-1.0.0", "riscv,plic0"],
        base: 0x0c00_0000,
        size: 0x0060_0000,
        irq: None,
    },
];

/// The map, by ascending address.
pub(crate) const REGIONS: [MmioRegion; PLATFORM.len() + VirtioDevice::ALL.len()] = {
    let mut regions = [PLATFORM[0]; PLATFORM.len() + VirtioDevice::ALL.len()];
    let mut at = 0;
    while at < regions.len() {
        regions[at] = if at < PLATFORM.len() {
            PLATFORM[at]
        } else {
            virtio(VirtioDevice::ALL[at - PLATFORM.len()])
        };
        at += 1;
    }
    regions
};

/// Row of a virtio-mmio window of 4 KiB.
const fn virtio(device: VirtioDevice) -> MmioRegion {
    MmioRegion {
        target: MmioTarget::Virtio(device),
        name: "virtio_mmio",
        compatible: &["virtio,mmio"],
        base: 0x1000_1000 + device as u64 * 0x1000,
        size: 0x1000,
        irq: Some(virtio_irq(device)),
    }
}

/// The interrupt source of a virtio device.
pub(crate) const fn virtio_irq(device: VirtioDevice) -> u32 {
    1 + device as u32
}

/// Finds the region of a guest physical address, and the offset in it.
pub(crate) fn find(addr: u64) -> Option<(&'static MmioRegion, u64)> {
    REGIONS.iter().find_map(|region| {
        let offset = addr.checked_sub(region.base)?;
        (offset < region.size).then_some((region, offset))
    })
}

/// Row of a device.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn region(target: MmioTarget) -> &'static MmioRegion {
    let found = REGIONS.iter().find(|region| region.target == target);
    found.unwrap_or(&REGIONS[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ram::RAM_BASE;

    #[test]
    fn rows_neither_overlap_nor_share_interrupts() {
        for pair in REGIONS.windows(2) {
            assert!(pair[0].base + pair[0].size <= pair[1].base);
        }
        let last = REGIONS[REGIONS.len() - 1];
        assert!(last.base + last.size <= RAM_BASE);
        let mut irqs: Vec<u32> = REGIONS.iter().filter_map(|region| region.irq).collect();
        assert!(irqs.iter().all(|&irq| (1..=LAST_IRQ).contains(&irq)));
        irqs.sort_unstable();
        irqs.dedup();
        assert_eq!(irqs.len(), REGIONS.len() - 1);
    }

    #[test]
    fn every_target_is_found() {
        for row in &REGIONS {
            assert_eq!(region(row.target).base, row.base);
            let (found, offset) = find(row.base + row.size - 1).expect("inside");
            assert_eq!((found.target, offset), (row.target, row.size - 1));
        }
        assert!(find(0).is_none());
        assert!(find(0x1000_0fff).is_none());
        assert!(find(u64::MAX).is_none());
    }
}
