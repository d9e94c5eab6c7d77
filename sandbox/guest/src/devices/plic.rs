//! Platform-level interrupt controller (RISC-V PLIC specification 1.0.0),
//! with one context: supervisor mode of hart 0.
//!
//! Devices drive a level or send a pulse. There is no M-mode context, because no guest code
//! runs in M-mode.

use crate::devices::map::LAST_IRQ;

/// Offset of the pending bits.
const PENDING: u64 = 0x1000;
/// Offset of context 0's enable bits.
const ENABLE: u64 = 0x2000;
/// Offset of context 0's priority threshold.
const THRESHOLD: u64 = 0x20_0000;
/// Offset of context 0's claim and complete register.
const CLAIM: u64 = 0x20_0004;
/// Highest priority; priorities have that many bits (section 4 leaves the number to the
/// platform).
const MAX_PRIORITY: u32 = 7;
/// Number of sources, including the absent source 0.
const SOURCES: usize = LAST_IRQ as usize + 1;

/// The interrupt controller.
#[derive(Debug)]
pub struct Plic {
    priority: [u32; SOURCES],
    enabled: u32,
    threshold: u32,
    /// Sources whose line is high.
    level: u32,
    /// Sources that pulsed since they were last claimed.
    pulsed: u32,
    /// Sources that were claimed and not completed: their gateway is closed.
    claimed: u32,
    output: bool,
}

impl Plic {
    /// Creates a controller with all sources off.
    pub fn new() -> Self {
        Self {
            priority: [0; SOURCES],
            enabled: 0,
            threshold: 0,
            level: 0,
            pulsed: 0,
            claimed: 0,
            output: false,
        }
    }

    /// Sets the line of a source.
    pub fn set_level(&mut self, irq: u32, high: bool) {
        let bit = source_bit(irq);
        let level = if high {
            self.level | bit
        } else {
            self.level & !bit
        };
        if level != self.level {
            self.level = level;
            self.update();
        }
    }

    /// Pulses the line of a source: one interrupt, which stays pending while the source is
    /// being served.
    pub fn pulse(&mut self, irq: u32) {
        self.pulsed |= source_bit(irq);
        self.update();
    }

    /// Whether the external interrupt of supervisor mode is pending.
    pub fn output(&self) -> bool {
        self.output
    }

    /// Reads the register at an offset; unassigned ones read as zero.
    pub fn read(&mut self, offset: u64) -> u32 {
        match offset {
            PENDING => self.pending(),
            ENABLE => self.enabled,
            THRESHOLD => self.threshold,
            CLAIM => self.claim(),
            _ => self.source_at(offset).map_or(0, |irq| self.priority[irq]),
        }
    }

    /// Writes the register at an offset; unassigned ones ignore it.
    pub fn write(&mut self, offset: u64, value: u32) {
        match offset {
            ENABLE => self.enabled = value & !1,
            THRESHOLD => self.threshold = value.min(MAX_PRIORITY),
            CLAIM => self.claimed &= !source_bit(value),
            _ => {
                if let Some(irq) = self.source_at(offset) {
                    self.priority[irq] = value.min(MAX_PRIORITY);
                }
            }
        }
        self.update();
    }

    /// The source whose priority register is at `offset`.
    fn source_at(&self, offset: u64) -> Option<usize> {
        let irq = usize::try_from(offset / 4).ok()?;
        (offset.is_multiple_of(4) && (1..SOURCES).contains(&irq)).then_some(irq)
    }

    fn pending(&self) -> u32 {
        (self.level | self.pulsed) & !self.claimed
    }

    /// The enabled pending source of the highest priority above `floor`; ties go to the
    /// lowest number (section 3).
    fn best(&self, floor: u32) -> Option<u32> {
        let mut best = None;
        let mut highest = floor;
        let mut left = self.pending() & self.enabled;
        while left != 0 {
            let irq = left.trailing_zeros();
            left &= left - 1;
            if self.priority[irq as usize] > highest {
                highest = self.priority[irq as usize];
                best = Some(irq);
            }
        }
        best
    }

    /// Claims the best source, regardless of the threshold (section 7).
    fn claim(&mut self) -> u32 {
        let Some(irq) = self.best(0) else { return 0 };
        self.claimed |= 1 << irq;
        self.pulsed &= !(1 << irq);
        self.update();
        irq
    }

    fn update(&mut self) {
        self.output = self.best(self.threshold).is_some();
    }
}

impl Default for Plic {
    fn default() -> Self {
        Self::new()
    }
}

/// Bit of a source; zero for numbers that do not exist.
fn source_bit(irq: u32) -> u32 {
    if (1..=LAST_IRQ).contains(&irq) {
        1 << irq
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plic(irqs: &[(u32, u32)]) -> Plic {
        let mut plic = Plic::new();
        for &(irq, priority) in irqs {
            plic.write(u64::from(irq) * 4, priority);
            let enabled = plic.read(ENABLE);
            plic.write(ENABLE, enabled | 1 << irq);
        }
        plic
    }

    #[test]
    fn a_level_is_served_until_it_falls() {
        let mut plic = plic(&[(3, 1)]);
        plic.set_level(3, true);
        assert!(plic.output());
        assert_eq!(plic.read(PENDING), 1 << 3);
        assert_eq!(plic.read(CLAIM), 3);
        assert!(!plic.output(), "the gateway is shut");
        assert_eq!(plic.read(CLAIM), 0);
        plic.write(CLAIM, 3);
        assert!(plic.output(), "still high");
        assert_eq!(plic.read(CLAIM), 3);
        plic.set_level(3, false);
        plic.write(CLAIM, 3);
        assert!(!plic.output());
    }

    #[test]
    fn a_pulse_is_served_once_even_while_serving() {
        let mut plic = plic(&[(12, 1)]);
        plic.pulse(12);
        assert_eq!(plic.read(CLAIM), 12);
        plic.pulse(12);
        assert_eq!(plic.read(CLAIM), 0);
        plic.write(CLAIM, 12);
        assert_eq!(plic.read(CLAIM), 12);
        plic.write(CLAIM, 12);
        assert!(!plic.output());
    }

    #[test]
    fn priorities_thresholds_and_enables() {
        let mut plic = plic(&[(1, 1), (2, 5), (4, 5), (6, 0)]);
        for irq in [1, 2, 4, 6, 9] {
            plic.set_level(irq, true);
        }
        plic.write(THRESHOLD, 5);
        assert!(!plic.output());
        plic.write(THRESHOLD, 0);
        assert_eq!(plic.read(CLAIM), 2);
        assert_eq!(plic.read(CLAIM), 4);
        assert_eq!(plic.read(CLAIM), 1);
        assert_eq!(plic.read(CLAIM), 0, "priority 0 never interrupts; 9 is off");
        plic.write(4 * 2, 99);
        assert_eq!(plic.read(4 * 2), MAX_PRIORITY);
    }

    #[test]
    fn sources_that_do_not_exist_are_ignored() {
        let mut plic = Plic::new();
        plic.set_level(0, true);
        plic.set_level(32, true);
        plic.pulse(u32::MAX);
        plic.write(CLAIM, 77);
        plic.write(0, 7);
        plic.write(ENABLE, u32::MAX);
        assert_eq!((plic.read(0), plic.read(PENDING)), (0, 0));
        assert_eq!(plic.read(ENABLE), !1);
    }
}
