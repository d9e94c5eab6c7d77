//! Supervisor binary interface (SBI), implemented by the emulator.
//!
//! RISC-V SBI 2.0: base, TIME, IPI, RFENCE, HSM and SRST for one hart. Legacy calls and the
//! debug console are absent on purpose: without them Linux makes the virtio console `hvc0`.

use super::Hart;
use super::csr::{SOFTWARE, TIMER};

/// Action of the machine after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Continue after the call.
    Continue,
    /// Run `fence.i` and continue.
    FenceI,
    /// Power off.
    PowerOff,
    /// Restart.
    Reset,
}

/// Specification version 2.0.
const VERSION: u64 = 2 << 24;

/// Implementation id; none is assigned to us, so one far from the assigned ones.
const IMPLEMENTATION: u64 = 0xa99;

const BASE: u64 = 0x10;
const TIME: u64 = 0x5449_4d45;
const IPI: u64 = 0x73_5049;
const RFENCE: u64 = 0x5246_4e43;
const HSM: u64 = 0x48_534d;
const SRST: u64 = 0x5352_5354;

const NOT_SUPPORTED: i64 = -2;
const INVALID_PARAM: i64 = -3;
const ALREADY_AVAILABLE: i64 = -6;

/// Id of the only hart.
const HART: u64 = 0;

type Answer = Result<u64, i64>;

/// Handles the call in `a0`-`a7`, and returns error and value in `a0` and `a1`.
pub(crate) fn call(hart: &mut Hart) -> After {
    let (extension, function) = (hart.x[17], hart.x[16]);
    let mut after = After::Continue;
    let answer = match extension {
        BASE => base(hart, function),
        TIME if function == 0 => {
            hart.csr.deadline = hart.x[10];
            hart.csr.set_pending(TIMER, false);
            Ok(0)
        }
        IPI if function == 0 => selects_us(hart.x[10], hart.x[11]).map(|us| {
            if us {
                hart.csr.set_pending(SOFTWARE, true);
            }
            0
        }),
        RFENCE => rfence(hart, function, &mut after),
        HSM => hsm(hart, function),
        SRST if function == 0 => reset(hart, &mut after),
        _ => Err(NOT_SUPPORTED),
    };
    let (error, value) = match answer {
        Ok(value) => (0, value),
        Err(error) => (error, 0),
    };
    hart.x[10] = error as u64;
    hart.x[11] = value;
    after
}

fn base(hart: &Hart, function: u64) -> Answer {
    match function {
        0 => Ok(VERSION),
        1 => Ok(IMPLEMENTATION),
        2 => Ok(1),
        3 => Ok(u64::from(matches!(
            hart.x[10],
            BASE | TIME | IPI | RFENCE | HSM | SRST
        ))),
        // Vendor, architecture and implementation of the hart: unknown.
        4..=6 => Ok(0),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Whether a hart mask selects our hart.
fn selects_us(mask: u64, base: u64) -> Result<bool, i64> {
    match base {
        u64::MAX => Ok(true),
        HART if mask & !1 == 0 => Ok(mask == 1),
        _ => Err(INVALID_PARAM),
    }
}

/// Remote fences; those of translations flush everything.
fn rfence(hart: &mut Hart, function: u64, after: &mut After) -> Answer {
    let us = selects_us(hart.x[10], hart.x[11])?;
    match function {
        0 => {
            if us {
                *after = After::FenceI;
            }
            Ok(0)
        }
        1 | 2 => {
            if us {
                hart.tlbs.flush();
            }
            Ok(0)
        }
        _ => Err(NOT_SUPPORTED),
    }
}

fn hsm(hart: &Hart, function: u64) -> Answer {
    match (function, hart.x[10]) {
        (0, HART) => Err(ALREADY_AVAILABLE),
        // The state of a hart: started.
        (2, HART) => Ok(0),
        (0 | 2, _) => Err(INVALID_PARAM),
        _ => Err(NOT_SUPPORTED),
    }
}

fn reset(hart: &Hart, after: &mut After) -> Answer {
    *after = match hart.x[10] as u32 {
        0 => After::PowerOff,
        1 | 2 => After::Reset,
        _ => return Err(INVALID_PARAM),
    };
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(hart: &mut Hart, extension: u64, function: u64, arguments: [u64; 2]) -> (i64, u64) {
        hart.x[10..12].copy_from_slice(&arguments);
        hart.x[16] = function;
        hart.x[17] = extension;
        assert_eq!(call(hart), After::Continue);
        (hart.x[10] as i64, hart.x[11])
    }

    #[test]
    fn probes() {
        let mut hart = Hart::new(0);
        assert_eq!(ask(&mut hart, BASE, 0, [0; 2]), (0, VERSION));
        assert_eq!(ask(&mut hart, BASE, 3, [TIME, 0]), (0, 1));
        // The debug console and legacy putchar.
        assert_eq!(ask(&mut hart, BASE, 3, [0x4442_434e, 0]), (0, 0));
        assert_eq!(ask(&mut hart, 1, 0, [65, 0]), (NOT_SUPPORTED, 0));
    }

    #[test]
    fn timer_and_software_interrupts() {
        let mut hart = Hart::new(0);
        hart.csr.set_pending(TIMER, true);
        assert_eq!(ask(&mut hart, TIME, 0, [99, 0]), (0, 0));
        assert_eq!((hart.csr.deadline, hart.csr.sip), (99, 0));
        assert_eq!(ask(&mut hart, IPI, 0, [2, 0]).0, INVALID_PARAM);
        assert_eq!(ask(&mut hart, IPI, 0, [1, 0]).0, 0);
        assert_eq!(hart.csr.sip, 1 << SOFTWARE);
    }

    #[test]
    fn power() {
        let mut hart = Hart::new(0);
        hart.x[17] = SRST;
        hart.x[10] = 1;
        assert_eq!(call(&mut hart), After::Reset);
        hart.x[10] = 0;
        assert_eq!(call(&mut hart), After::PowerOff);
    }
}
