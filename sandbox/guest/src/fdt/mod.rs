//! Flattened device tree (Devicetree specification 0.4, chapter 5), which describes the
//! [address map](crate::devices::map) to the kernel.

mod writer;

#[cfg(test)]
mod reader;

use crate::bus::TIMEBASE_HZ;
use crate::devices::map::{LAST_IRQ, MmioRegion, MmioTarget, REGIONS};
use crate::interp::slow::ZERO_BLOCK;
use crate::ram::RAM_BASE;
use std::ops::Range;
use writer::Writer;

/// Contents of the tree in addition to the map.
#[derive(Clone, Debug, Default)]
pub(crate) struct FdtConfig<'a> {
    /// Size of RAM in bytes.
    pub ram_bytes: u64,
    /// Kernel command line.
    pub bootargs: &'a str,
    /// Guest physical address range of the initial file system.
    pub initrd: Option<Range<u64>>,
    /// Seed of the kernel's random generator at boot.
    pub rng_seed: &'a [u8],
}

/// ISA extensions of the hart, single letters first.
///
/// Svvptc (a page that becomes valid is found without a fence) holds because no TLB caches
/// unmapped pages; Linux then saves a fence at each page fault.
const EXTENSIONS: [&str; 10] = [
    "i", "m", "a", "f", "d", "c", "zicboz", "zicsr", "zifencei", "svvptc",
];
/// The same extensions in the older format.
const ISA: &str = "rv64imafdc_zicboz_zicsr_zifencei_svvptc";

/// Phandle of the hart's own interrupt controller.
const CPU_INTC: u32 = 1;
/// Phandle of the PLIC.
const PLIC: u32 = 2;
/// The hart's supervisor external interrupt (privileged manual, `scause` 9).
const SUPERVISOR_EXTERNAL: u32 = 9;

/// Builds the device tree blob.
pub(crate) fn build(config: &FdtConfig<'_>) -> Vec<u8> {
    let mut tree = Writer::new();
    tree.begin("");
    tree.cells("#address-cells", &[2]);
    tree.cells("#size-cells", &[2]);
    tree.strings("compatible", &["agent99,guest", "riscv-virtio"]);
    tree.strings("model", &["agent99,guest"]);
    chosen(&mut tree, config);
    cpus(&mut tree);
    tree.begin(&format!("memory@{RAM_BASE:x}"));
    tree.strings("device_type", &["memory"]);
    tree.wide("reg", &[RAM_BASE, config.ram_bytes]);
    tree.end();
    tree.begin("soc");
    tree.cells("#address-cells", &[2]);
    tree.cells("#size-cells", &[2]);
    tree.strings("compatible", &["simple-bus"]);
    tree.property("ranges", &[]);
    for region in &REGIONS {
        device(&mut tree, region);
    }
    tree.end();
    tree.end();
    tree.finish()
}

fn chosen(tree: &mut Writer, config: &FdtConfig<'_>) {
    tree.begin("chosen");
    tree.strings("bootargs", &[config.bootargs]);
    if let Some(initrd) = &config.initrd {
        tree.wide("linux,initrd-start", &[initrd.start]);
        tree.wide("linux,initrd-end", &[initrd.end]);
    }
    if !config.rng_seed.is_empty() {
        tree.property("rng-seed", config.rng_seed);
    }
    tree.end();
}

fn cpus(tree: &mut Writer) {
    tree.begin("cpus");
    tree.cells("#address-cells", &[1]);
    tree.cells("#size-cells", &[0]);
    tree.cells("timebase-frequency", &[TIMEBASE_HZ as u32]);
    tree.begin("cpu@0");
    tree.strings("device_type", &["cpu"]);
    tree.cells("reg", &[0]);
    tree.strings("status", &["okay"]);
    tree.strings("compatible", &["riscv"]);
    tree.strings("riscv,isa", &[ISA]);
    tree.strings("riscv,isa-base", &["rv64i"]);
    tree.strings("riscv,isa-extensions", &EXTENSIONS);
    tree.cells("riscv,cboz-block-size", &[ZERO_BLOCK as u32]);
    tree.strings("mmu-type", &["riscv,sv39"]);
    tree.begin("interrupt-controller");
    tree.cells("#interrupt-cells", &[1]);
    tree.cells("#address-cells", &[0]);
    tree.property("interrupt-controller", &[]);
    tree.strings("compatible", &["riscv,cpu-intc"]);
    tree.cells("phandle", &[CPU_INTC]);
    tree.end();
    tree.end();
    tree.end();
}

fn device(tree: &mut Writer, region: &MmioRegion) {
    tree.begin(&format!("{}@{:x}", region.name, region.base));
    tree.strings("compatible", region.compatible);
    tree.wide("reg", &[region.base, region.size]);
    if let Some(irq) = region.irq {
        tree.cells("interrupt-parent", &[PLIC]);
        tree.cells("interrupts", &[irq]);
    }
    if region.target == MmioTarget::Plic {
        tree.cells("#interrupt-cells", &[1]);
        tree.cells("#address-cells", &[0]);
        tree.property("interrupt-controller", &[]);
        tree.cells("interrupts-extended", &[CPU_INTC, SUPERVISOR_EXTERNAL]);
        tree.cells("riscv,ndev", &[LAST_IRQ]);
        tree.cells("phandle", &[PLIC]);
    }
    tree.end();
}

#[cfg(test)]
mod tests {
    use super::reader::TreeNode;
    use super::*;

    fn tree(config: &FdtConfig<'_>) -> TreeNode {
        TreeNode::parse(&build(config))
    }

    #[test]
    fn says_what_the_map_says() {
        let root = tree(&FdtConfig::default());
        let plic = root.at("soc/interrupt-controller@c000000");
        assert_eq!(plic.cells("phandle"), [PLIC]);
        assert_eq!(plic.cells("riscv,ndev"), [LAST_IRQ]);
        let intc = root.at("cpus/cpu@0/interrupt-controller");
        assert_eq!(
            plic.cells("interrupts-extended"),
            [intc.cells("phandle")[0], 9]
        );
        assert_eq!(root.at("soc").children.len(), REGIONS.len());
        for region in &REGIONS {
            let node = root.at(&format!("soc/{}@{:x}", region.name, region.base));
            assert_eq!(node.wide("reg"), [region.base, region.size]);
            assert_eq!(node.strings("compatible"), region.compatible);
            if let Some(irq) = region.irq {
                assert_eq!(node.cells("interrupts"), [irq]);
                assert_eq!(node.cells("interrupt-parent"), [PLIC]);
            } else {
                assert!(!node.properties.contains_key("interrupts"));
            }
        }
    }

    #[test]
    fn says_what_the_hart_can() {
        let root = tree(&FdtConfig::default());
        let cpus = root.at("cpus");
        assert_eq!(cpus.cells("timebase-frequency"), [10_000_000]);
        let cpu = cpus.at("cpu@0");
        assert_eq!(cpu.strings("riscv,isa"), [ISA]);
        assert_eq!(cpu.cells("riscv,cboz-block-size"), [4096]);
        assert_eq!(cpu.strings("mmu-type"), ["riscv,sv39"]);
        let (letters, names) = EXTENSIONS.split_at(6);
        let named = format!("rv64{}_{}", letters.concat(), names.join("_"));
        assert_eq!(named, ISA);
        assert_eq!(cpu.strings("riscv,isa-extensions"), EXTENSIONS);
    }

    #[test]
    fn says_what_to_boot() {
        let root = tree(&FdtConfig {
            ram_bytes: 256 << 20,
            bootargs: "console=hvc0",
            initrd: Some(0x8400_0000..0x8400_1234),
            rng_seed: &[1, 2, 3],
        });
        let chosen = root.at("chosen");
        assert_eq!(chosen.strings("bootargs"), ["console=hvc0"]);
        assert_eq!(chosen.wide("linux,initrd-start"), [0x8400_0000]);
        assert_eq!(chosen.wide("linux,initrd-end"), [0x8400_1234]);
        assert_eq!(chosen.properties["rng-seed"], [1, 2, 3]);
        assert_eq!(
            root.at("memory@80000000").wide("reg"),
            [RAM_BASE, 256 << 20]
        );
        let root = tree(&FdtConfig::default());
        assert!(
            !root
                .at("chosen")
                .properties
                .contains_key("linux,initrd-start")
        );
        assert!(!root.at("chosen").properties.contains_key("rng-seed"));
    }
}
