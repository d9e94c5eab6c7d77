//! Goldfish real-time clock (QEMU `docs/specs` and Linux
//! `drivers/rtc/rtc-goldfish.c`): wall time in nanoseconds, and an alarm.
//!
//! Each read asks the host for the time, so it is right after a restore. A guest that sets
//! the clock changes an offset.

const TIME_LOW: u64 = 0x00;
const TIME_HIGH: u64 = 0x04;
const ALARM_LOW: u64 = 0x08;
const ALARM_HIGH: u64 = 0x0c;
const IRQ_ENABLED: u64 = 0x10;
const CLEAR_ALARM: u64 = 0x14;
const ALARM_STATUS: u64 = 0x18;
const CLEAR_INTERRUPT: u64 = 0x1c;

/// The clock's registers.
#[derive(Debug, Default)]
pub struct Rtc {
    /// Offset that the guest added to the host's time, modulo 2^64.
    offset: u64,
    /// High half of the time at the last read of the low half.
    latch: u32,
    /// High half of a time or alarm being written.
    time_high: u32,
    alarm_high: u32,
    alarm: Option<u64>,
    irq_enabled: bool,
    irq_pending: bool,
}

impl Rtc {
    /// Creates a clock that shows the host's time, without an alarm.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the guest's offset, as required after a restore.
    pub fn follow_host(&mut self) {
        self.offset = 0;
    }

    /// Whether its interrupt line is high.
    pub fn interrupt(&self) -> bool {
        self.irq_pending && self.irq_enabled
    }

    /// Rings the alarm if it is due at host wall time `wall_ns`.
    pub fn poll(&mut self, wall_ns: u64) {
        let now = wall_ns.wrapping_add(self.offset);
        if self.alarm.is_some_and(|alarm| alarm <= now) {
            self.alarm = None;
            self.irq_pending = true;
        }
    }

    /// Whether an alarm is set.
    pub fn armed(&self) -> bool {
        self.alarm.is_some()
    }

    /// Nanoseconds until the alarm rings, at host wall time `wall_ns`.
    pub fn alarm_in(&self, wall_ns: u64) -> Option<u64> {
        let now = wall_ns.wrapping_add(self.offset);
        self.alarm.map(|alarm| alarm.saturating_sub(now))
    }

    /// Reads the register at `offset`, at host wall time `wall_ns`.
    pub fn read(&mut self, offset: u64, wall_ns: u64) -> u32 {
        match offset {
            TIME_LOW => {
                let now = wall_ns.wrapping_add(self.offset);
                self.latch = (now >> 32) as u32;
                now as u32
            }
            TIME_HIGH => self.latch,
            ALARM_LOW => self.alarm.unwrap_or(0) as u32,
            ALARM_HIGH => (self.alarm.unwrap_or(0) >> 32) as u32,
            IRQ_ENABLED => u32::from(self.irq_enabled),
            ALARM_STATUS => u32::from(self.alarm.is_some()),
            _ => 0,
        }
    }

    /// Writes the register at `offset`, at host wall time `wall_ns`. High halves come
    /// first; the low half takes effect.
    pub fn write(&mut self, offset: u64, value: u32, wall_ns: u64) {
        let join = |high: u32| u64::from(high) << 32 | u64::from(value);
        match offset {
            TIME_LOW => self.offset = join(self.time_high).wrapping_sub(wall_ns),
            TIME_HIGH => self.time_high = value,
            ALARM_LOW => self.alarm = Some(join(self.alarm_high)),
            ALARM_HIGH => self.alarm_high = value,
            IRQ_ENABLED => self.irq_enabled = value & 1 != 0,
            CLEAR_ALARM => self.alarm = None,
            CLEAR_INTERRUPT => self.irq_pending = false,
            _ => {}
        }
        self.poll(wall_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(rtc: &mut Rtc, wall: u64) -> u64 {
        let low = u64::from(rtc.read(TIME_LOW, wall));
        // Later reads of the high half belong to that low half.
        u64::from(rtc.read(TIME_HIGH, wall + (1 << 40))) << 32 | low
    }

    #[test]
    fn shows_and_sets_the_time() {
        let wall = 1_700_000_000_123_456_789;
        let mut rtc = Rtc::new();
        assert_eq!(time(&mut rtc, wall), wall);
        rtc.write(TIME_HIGH, 1, wall);
        rtc.write(TIME_LOW, 5, wall);
        assert_eq!(time(&mut rtc, wall + 10), (1 << 32) + 15);
        rtc.follow_host();
        assert_eq!(time(&mut rtc, wall), wall);
    }

    #[test]
    fn an_alarm_rings_once() {
        let mut rtc = Rtc::new();
        rtc.write(IRQ_ENABLED, 1, 0);
        rtc.write(ALARM_HIGH, 1, 0);
        rtc.write(ALARM_LOW, 100, 0);
        assert_eq!(rtc.read(ALARM_STATUS, 0), 1);
        assert_eq!(rtc.alarm_in(40), Some((1 << 32) + 60));
        rtc.poll((1 << 32) + 99);
        assert!(!rtc.interrupt());
        rtc.poll((1 << 32) + 100);
        assert!(rtc.interrupt());
        assert_eq!(rtc.read(ALARM_STATUS, 0), 0);
        rtc.write(CLEAR_INTERRUPT, 1, 0);
        assert!(!rtc.interrupt() && !rtc.armed());
    }

    #[test]
    fn an_alarm_can_be_taken_back() {
        let mut rtc = Rtc::new();
        rtc.write(ALARM_LOW, 100, 0);
        rtc.write(CLEAR_ALARM, 1, 0);
        rtc.poll(200);
        assert!(!rtc.interrupt());
        assert_eq!(rtc.alarm_in(0), None);
    }
}
