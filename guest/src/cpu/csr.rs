//! Control and status registers of supervisor and user mode.
//!
//! Privileged manual, chapter "Supervisor-Level ISA". Not there: machine mode's
//! registers (no machine mode), performance counters beyond the three fixed
//! ones.

use super::fp::FS_OFF;
use super::hart::{Hart, Mode};

/// Supervisor software interrupt: its bit in `sip` and `sie`, its cause.
pub const SOFTWARE: u32 = 1;
/// Supervisor timer interrupt.
pub const TIMER: u32 = 5;
/// Supervisor external interrupt.
pub const EXTERNAL: u32 = 9;

const INTERRUPTS: u64 = 1 << SOFTWARE | 1 << TIMER | 1 << EXTERNAL;

/// The bits of an address space number, as `sfence.vma` is given it.
pub const ASID: u64 = 0xffff;

/// Where `satp` holds it.
const ASID_SHIFT: u32 = 44;

/// `satp.MODE` of Sv39.
pub const SV39: u64 = 8;

const SSTATUS_SIE: u64 = 1 << 1;
const SSTATUS_SPIE: u64 = 1 << 5;
const SSTATUS_SPP: u64 = 1 << 8;
const SSTATUS_FS: u32 = 13;
const SSTATUS_SUM: u64 = 1 << 18;
const SSTATUS_MXR: u64 = 1 << 19;
/// `UXL` = 64 bits.
const SSTATUS_UXL: u64 = 2 << 32;
const SSTATUS_SD: u64 = 1 << 63;

/// Numbers of the registers.
mod number {
    pub const FFLAGS: u32 = 0x001;
    pub const FRM: u32 = 0x002;
    pub const FCSR: u32 = 0x003;
    pub const SSTATUS: u32 = 0x100;
    pub const SIE: u32 = 0x104;
    pub const STVEC: u32 = 0x105;
    pub const SCOUNTEREN: u32 = 0x106;
    pub const SENVCFG: u32 = 0x10a;
    pub const SSCRATCH: u32 = 0x140;
    pub const SEPC: u32 = 0x141;
    pub const SCAUSE: u32 = 0x142;
    pub const STVAL: u32 = 0x143;
    pub const SIP: u32 = 0x144;
    pub const SATP: u32 = 0x180;
    pub const CYCLE: u32 = 0xc00;
    pub const TIME: u32 = 0xc01;
    pub const INSTRET: u32 = 0xc02;
}

/// The registers that are stored; `sstatus` in its parts, `FS` with the
/// floating-point registers.
#[derive(Debug)]
pub struct Csrs {
    /// `sstatus.SIE`: interrupts are on in supervisor mode.
    pub sie_on: bool,
    /// `sstatus.SPIE`.
    pub spie: bool,
    /// `sstatus.SPP`: the trap came from supervisor mode.
    pub spp: bool,
    /// `sstatus.SUM`: supervisor loads and stores may reach user pages.
    pub sum: bool,
    /// `sstatus.MXR`: loads may reach executable pages.
    pub mxr: bool,
    /// Interrupts that are enabled.
    pub sie: u64,
    /// Interrupts that are pending.
    pub sip: u64,
    /// Trap vector.
    pub stvec: u64,
    /// Which counters user mode may read. Linux expects the firmware to have
    /// given it the time, which its vDSO reads.
    pub scounteren: u64,
    /// Scratch.
    pub sscratch: u64,
    /// Address of the trapping instruction.
    pub sepc: u64,
    /// Cause of the trap.
    pub scause: u64,
    /// Faulting address or instruction.
    pub stval: u64,
    /// Translation mode, address space number and root page.
    pub satp: u64,
    /// Timer deadline in ticks, set through SBI.
    pub deadline: u64,
    /// Instructions run before the current slice.
    pub retired: u64,
}

impl Default for Csrs {
    fn default() -> Self {
        Self {
            sie_on: false,
            spie: false,
            spp: false,
            sum: false,
            mxr: false,
            sie: 0,
            sip: 0,
            stvec: 0,
            scounteren: 1 << 1,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            satp: 0,
            deadline: u64::MAX,
            retired: 0,
        }
    }
}

impl Csrs {
    /// The pending and enabled interrupt of highest priority: external,
    /// software, timer (privileged manual, section "Supervisor Interrupt
    /// Registers").
    pub fn pending(&self) -> Option<u32> {
        let pending = self.sip & self.sie;
        [EXTERNAL, SOFTWARE, TIMER]
            .into_iter()
            .find(|bit| pending >> bit & 1 == 1)
    }

    /// Whether a timer interrupt would wake a waiting hart.
    pub fn timer_enabled(&self) -> bool {
        self.sie >> TIMER & 1 == 1
    }

    /// The number of the address space.
    pub fn space(&self) -> u64 {
        self.satp >> ASID_SHIFT & ASID
    }

    /// Sets or clears a pending bit.
    pub fn set_pending(&mut self, bit: u32, on: bool) {
        self.sip = self.sip & !(1 << bit) | u64::from(on) << bit;
    }
}

/// What a write to a register asks of the machine beyond the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// All translations have changed.
    FlushTlbs,
    /// Those of one address space have.
    FlushSpace,
}

/// Reads a register; `None` if it does not exist or this mode may not.
/// `time` tells the time in ticks, which costs a call of the host; `retired` is
/// the number of instructions run.
pub fn read(hart: &Hart, csr: u32, time: impl FnOnce() -> u64, retired: u64) -> Option<u64> {
    if !may_access(hart, csr) {
        return None;
    }
    let csrs = &hart.csr;
    Some(match csr {
        number::FFLAGS => u64::from(hart.fp.flags),
        number::FRM => u64::from(hart.fp.rounding),
        number::FCSR => u64::from(hart.fp.flags | hart.fp.rounding << 5),
        number::SSTATUS => sstatus(hart),
        number::SIE => csrs.sie,
        number::STVEC => csrs.stvec,
        number::SCOUNTEREN => csrs.scounteren,
        number::SENVCFG => 0,
        number::SSCRATCH => csrs.sscratch,
        number::SEPC => csrs.sepc,
        number::SCAUSE => csrs.scause,
        number::STVAL => csrs.stval,
        number::SIP => csrs.sip,
        number::SATP => csrs.satp,
        number::TIME => time(),
        number::CYCLE | number::INSTRET => retired,
        _ => return None,
    })
}

/// Writes a register that [`read`] found; `None` if it is read-only.
pub fn write(hart: &mut Hart, csr: u32, value: u64) -> Option<Effect> {
    if csr >> 10 == 3 || !may_access(hart, csr) {
        return None;
    }
    let csrs = &mut hart.csr;
    match csr {
        number::FFLAGS => hart.fp.set_flags(value as u8),
        number::FRM => hart.fp.set_rounding(value as u8),
        number::FCSR => {
            hart.fp.set_flags(value as u8);
            hart.fp.set_rounding((value >> 5) as u8);
        }
        number::SSTATUS => return Some(set_sstatus(hart, value)),
        number::SIE => csrs.sie = value & INTERRUPTS,
        number::STVEC if value & 2 == 0 => csrs.stvec = value,
        number::STVEC => {}
        number::SCOUNTEREN => csrs.scounteren = value & 7,
        number::SENVCFG => {}
        number::SSCRATCH => csrs.sscratch = value,
        number::SEPC => csrs.sepc = value & !1,
        number::SCAUSE => csrs.scause = value,
        number::STVAL => csrs.stval = value,
        number::SIP => csrs.set_pending(SOFTWARE, value >> SOFTWARE & 1 == 1),
        number::SATP => {
            // Other modes leave the register as it was (section on `satp`).
            if matches!(value >> 60, 0 | SV39) {
                let old = std::mem::replace(&mut csrs.satp, value);
                return Some(match old ^ value {
                    0 => Effect::None,
                    change if change >> 60 == 0 => Effect::FlushSpace,
                    _ => Effect::FlushTlbs,
                });
            }
        }
        _ => return None,
    }
    Some(Effect::None)
}

/// Whether the mode reaches the register: bits 8-9 of its number name the
/// least privilege, the counters are opened to user mode one by one, and
/// floating-point registers exist while `FS` is not off.
fn may_access(hart: &Hart, csr: u32) -> bool {
    match csr {
        number::FFLAGS | number::FRM | number::FCSR => hart.fp.is_on(),
        number::CYCLE | number::TIME | number::INSTRET => {
            hart.mode == Mode::Supervisor || hart.csr.scounteren >> (csr & 31) & 1 == 1
        }
        _ => hart.mode == Mode::Supervisor || csr >> 8 & 3 == 0,
    }
}

fn sstatus(hart: &Hart) -> u64 {
    let csrs = &hart.csr;
    let flag = |on: bool, bit: u64| if on { bit } else { 0 };
    flag(csrs.sie_on, SSTATUS_SIE)
        | flag(csrs.spie, SSTATUS_SPIE)
        | flag(csrs.spp, SSTATUS_SPP)
        | flag(csrs.sum, SSTATUS_SUM)
        | flag(csrs.mxr, SSTATUS_MXR)
        | u64::from(hart.fp.state) << SSTATUS_FS
        | SSTATUS_UXL
        | flag(hart.fp.is_dirty(), SSTATUS_SD)
}

fn set_sstatus(hart: &mut Hart, value: u64) -> Effect {
    let csrs = &mut hart.csr;
    let mxr = value & SSTATUS_MXR != 0;
    let effect = if mxr == csrs.mxr {
        Effect::None
    } else {
        Effect::FlushTlbs
    };
    csrs.sie_on = value & SSTATUS_SIE != 0;
    csrs.spie = value & SSTATUS_SPIE != 0;
    csrs.spp = value & SSTATUS_SPP != 0;
    csrs.sum = value & SSTATUS_SUM != 0;
    csrs.mxr = mxr;
    hart.fp.state = (value >> SSTATUS_FS & 3) as u8;
    effect
}

const _: () = assert!(FS_OFF == 0, "sstatus.FS is stored as it reads");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_mode_reaches_what_it_was_given() {
        let mut hart = Hart::new(0);
        assert_eq!(read(&hart, number::TIME, || 7, 9), Some(7));
        hart.mode = Mode::User;
        assert_eq!(read(&hart, number::SSTATUS, || 0, 0), None);
        assert_eq!(read(&hart, number::INSTRET, || 7, 9), None);
        hart.csr.scounteren = 4;
        assert_eq!(read(&hart, number::INSTRET, || 7, 9), Some(9));
        assert_eq!(write(&mut hart, number::INSTRET, 1), None);
        assert_eq!(read(&hart, number::FCSR, || 0, 0), None);
    }

    #[test]
    fn fcsr_is_flags_and_rounding() {
        let mut hart = Hart::new(0);
        write(&mut hart, number::SSTATUS, 1 << SSTATUS_FS);
        assert_eq!(write(&mut hart, number::FCSR, 0x1ff), Some(Effect::None));
        assert_eq!(read(&hart, number::FRM, || 0, 0), Some(7));
        assert_eq!(read(&hart, number::FFLAGS, || 0, 0), Some(31));
        assert_eq!(
            read(&hart, number::SSTATUS, || 0, 0).map(|s| s >> 63),
            Some(1)
        );
    }

    #[test]
    fn priorities() {
        let mut csrs = Csrs {
            sie: INTERRUPTS,
            sip: INTERRUPTS,
            ..Csrs::default()
        };
        assert_eq!(csrs.pending(), Some(EXTERNAL));
        csrs.set_pending(EXTERNAL, false);
        assert_eq!(csrs.pending(), Some(SOFTWARE));
        csrs.sie = 1 << TIMER;
        assert_eq!(csrs.pending(), Some(TIMER));
        csrs.sip = 0;
        assert_eq!(csrs.pending(), None);
    }

    #[test]
    fn unknown_translation_modes_change_nothing() {
        let mut hart = Hart::new(0);
        let satp = SV39 << 60 | 0xffff << 44 | 5;
        let effect = write(&mut hart, number::SATP, satp);
        assert_eq!((hart.csr.satp, effect), (satp, Some(Effect::FlushTlbs)));
        write(&mut hart, number::SATP, 9 << 60 | 6);
        assert_eq!(hart.csr.satp, satp);
        let effect = write(&mut hart, number::SATP, satp - 1);
        assert_eq!(effect, Some(Effect::FlushSpace));
    }
}
