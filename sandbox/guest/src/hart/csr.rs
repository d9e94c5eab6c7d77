//! Control and status registers of supervisor and user mode.
//!
//! Privileged manual, chapter "Supervisor-Level ISA". Absent: machine mode registers (there
//! is no machine mode) and performance counters beyond the three fixed ones.

use crate::hart::{Mode, Registers};
use crate::interp::fp::{FS_OFF, Fp};
use crate::interp::inst::{Inst, Op};

/// Supervisor software interrupt: its bit in `sip` and `sie`, and its cause.
pub(crate) const SOFTWARE: u32 = 1;
/// Supervisor timer interrupt.
pub(crate) const TIMER: u32 = 5;
/// Supervisor external interrupt.
pub(crate) const EXTERNAL: u32 = 9;

const INTERRUPTS: u64 = 1 << SOFTWARE | 1 << TIMER | 1 << EXTERNAL;

/// `senvcfg.CBZE`: user mode may run `cbo.zero`.
const SENVCFG_CBZE: u64 = 1 << 7;

/// Bits of an address space number (ASID), as in `sfence.vma`.
pub(crate) const ASID: u64 = 0xffff;

/// Position of the ASID in `satp`.
const ASID_SHIFT: u32 = 44;

/// `satp.MODE` of Sv39.
pub(crate) const SV39: u64 = 8;

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
    pub(super) const FFLAGS: u32 = 0x001;
    pub(super) const FRM: u32 = 0x002;
    pub(super) const FCSR: u32 = 0x003;
    pub(super) const SSTATUS: u32 = 0x100;
    pub(super) const SIE: u32 = 0x104;
    pub(super) const STVEC: u32 = 0x105;
    pub(super) const SCOUNTEREN: u32 = 0x106;
    pub(super) const SENVCFG: u32 = 0x10a;
    pub(super) const SSCRATCH: u32 = 0x140;
    pub(super) const SEPC: u32 = 0x141;
    pub(super) const SCAUSE: u32 = 0x142;
    pub(super) const STVAL: u32 = 0x143;
    pub(super) const SIP: u32 = 0x144;
    pub(super) const SATP: u32 = 0x180;
    pub(super) const CYCLE: u32 = 0xc00;
    pub(super) const TIME: u32 = 0xc01;
    pub(super) const INSTRET: u32 = 0xc02;
}

/// The stored registers; `sstatus` in its parts, `FS` with the floating-point registers.
#[derive(Debug)]
pub struct Csrs {
    /// `sstatus.SIE`: interrupts are on in supervisor mode.
    pub sie_on: bool,
    /// `sstatus.SPIE`.
    pub spie: bool,
    /// `sstatus.SPP`: the trap came from supervisor mode.
    pub spp: bool,
    /// `sstatus.SUM`: supervisor loads and stores may access user pages.
    pub sum: bool,
    /// `sstatus.MXR`: loads may access executable pages.
    pub mxr: bool,
    /// Enabled interrupts.
    pub sie: u64,
    /// Pending interrupts.
    pub sip: u64,
    /// Trap vector.
    pub stvec: u64,
    /// Counters that user mode may read. Linux expects the firmware to have enabled the
    /// time, which its vDSO reads.
    pub scounteren: u64,
    /// Environment of user mode; of the manual's fields, only `CBZE`.
    pub senvcfg: u64,
    /// Scratch register.
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
            senvcfg: 0,
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

    /// Interrupt to take now, if any: user mode always takes enabled ones, supervisor mode
    /// only while `sstatus.SIE` is set.
    pub fn interrupt(&self, mode: Mode) -> Option<u32> {
        let on = mode == Mode::User || self.sie_on;
        self.pending().filter(|_| on)
    }

    /// Index of the data TLBs for a mode.
    #[inline(always)]
    pub fn mmu_index(&self, mode: Mode) -> usize {
        match (mode, self.sum) {
            (Mode::User, _) => 0,
            (Mode::Supervisor, false) => 1,
            (Mode::Supervisor, true) => 2,
        }
    }

    /// Whether a timer interrupt would wake a waiting hart.
    pub fn timer_enabled(&self) -> bool {
        self.sie >> TIMER & 1 == 1
    }

    /// Whether user mode may run `cbo.zero`.
    pub fn user_may_zero(&self) -> bool {
        self.senvcfg & SENVCFG_CBZE != 0
    }

    /// The ASID.
    pub fn space(&self) -> u64 {
        self.satp >> ASID_SHIFT & ASID
    }

    /// Sets or clears a pending bit.
    pub fn set_pending(&mut self, bit: u32, on: bool) {
        self.sip = self.sip & !(1 << bit) | u64::from(on) << bit;
    }
}

/// Effect of a register write on the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No effect.
    None,
    /// Flush all translations.
    FlushTlbs,
    /// Flush the translations of one address space.
    FlushSpace,
}

/// The registers as seen by an instruction in a mode.
#[derive(Debug)]
pub struct Bank<'a> {
    /// Privilege.
    pub mode: Mode,
    /// The stored registers.
    pub csr: &'a mut Csrs,
    /// Floating-point registers.
    pub fp: &'a mut Fp,
}

/// Whether an operation accesses a control and status register.
pub(crate) fn is_access(op: Op) -> bool {
    (Op::Csrrw..=Op::Csrrci).contains(&op)
}

/// Whether [`Bank::quick`] can handle a register: a read needs only the hart, and a write
/// changes no translation.
pub(crate) fn is_quick(csr: u32) -> bool {
    use number::*;
    matches!(
        csr,
        FFLAGS | FRM | FCSR | SSTATUS | SIE | SSCRATCH | SEPC | SCAUSE | STVAL
    )
}

/// Whether an instruction may enable interrupts.
fn may_enable(inst: &Inst) -> bool {
    let sets = !matches!(inst.op, Op::Csrrc | Op::Csrrci);
    let bits = match inst.op {
        Op::Csrrsi | Op::Csrrwi => u64::from(inst.rs1),
        _ => u64::MAX,
    };
    match inst.imm as u32 {
        number::SSTATUS => sets && bits & SSTATUS_SIE != 0 && writes(inst),
        number::SIE => sets && writes(inst),
        _ => false,
    }
}

/// Whether an instruction may change the memory that supervisor mode can access; an
/// immediate has none of those bits.
pub(crate) fn may_change_mmu_index(inst: &Inst) -> bool {
    let has_register = matches!(inst.op, Op::Csrrw | Op::Csrrs | Op::Csrrc);
    let replaces = matches!(inst.op, Op::Csrrw | Op::Csrrwi);
    inst.imm as u32 == number::SSTATUS && writes(inst) && (has_register || replaces)
}

/// Whether an instruction writes its register: setting or clearing the bits of `x0` or of
/// zero does not.
fn writes(inst: &Inst) -> bool {
    matches!(inst.op, Op::Csrrw | Op::Csrrwi) || inst.rs1 != 0
}

impl Bank<'_> {
    /// Runs an instruction on a register that [`is_quick`]. `false` means that it did not
    /// run: it is illegal, changes more than registers, or may enable an interrupt, which
    /// must come right after it (privileged manual, section "Supervisor Interrupt
    /// Registers").
    pub fn quick(&mut self, x: &mut Registers, inst: &Inst) -> bool {
        let number = inst.imm as u32;
        if !is_quick(number) || self.csr.sip != 0 && may_enable(inst) {
            return false;
        }
        let Some(old) = self.read(number, || 0, 0) else {
            return false;
        };
        if let Some(new) = replacement(x, inst, old) {
            if number == number::SSTATUS && (old ^ new) & SSTATUS_MXR != 0 {
                return false;
            }
            self.write(number, new);
        }
        x[usize::from(inst.rd)] = old;
        true
    }

    /// Reads a register; `None` if it does not exist or this mode must not access it.
    /// `time` returns the time in ticks, which costs a call of the host; `retired` is the
    /// number of instructions run.
    pub fn read(&self, csr: u32, time: impl FnOnce() -> u64, retired: u64) -> Option<u64> {
        if !self.may_access(csr) {
            return None;
        }
        let csrs = &*self.csr;
        Some(match csr {
            number::FFLAGS => u64::from(self.fp.flags),
            number::FRM => u64::from(self.fp.rounding),
            number::FCSR => u64::from(self.fp.flags | self.fp.rounding << 5),
            number::SSTATUS => self.sstatus(),
            number::SIE => csrs.sie,
            number::STVEC => csrs.stvec,
            number::SCOUNTEREN => csrs.scounteren,
            number::SENVCFG => csrs.senvcfg,
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

    /// Writes a register that [`Bank::read`] found; `None` if it is read-only.
    pub fn write(&mut self, csr: u32, value: u64) -> Option<Effect> {
        if csr >> 10 == 3 || !self.may_access(csr) {
            return None;
        }
        let csrs = &mut *self.csr;
        match csr {
            number::FFLAGS => self.fp.set_flags(value as u8),
            number::FRM => self.fp.set_rounding(value as u8),
            number::FCSR => {
                self.fp.set_flags(value as u8);
                self.fp.set_rounding((value >> 5) as u8);
            }
            number::SSTATUS => return Some(self.set_sstatus(value)),
            number::SIE => csrs.sie = value & INTERRUPTS,
            number::STVEC if value & 2 == 0 => csrs.stvec = value,
            number::STVEC => {}
            number::SCOUNTEREN => csrs.scounteren = value & 7,
            number::SENVCFG => csrs.senvcfg = value & SENVCFG_CBZE,
            number::SSCRATCH => csrs.sscratch = value,
            number::SEPC => csrs.sepc = value & !1,
            number::SCAUSE => csrs.scause = value,
            number::STVAL => csrs.stval = value,
            number::SIP => csrs.set_pending(SOFTWARE, value >> SOFTWARE & 1 == 1),
            number::SATP => {
                // Other modes leave the register unchanged (section on `satp`).
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

    /// Whether the mode can access the register: bits 8-9 of its number hold the lowest
    /// privilege, the counters are enabled for user mode one by one, and floating-point
    /// registers exist while `FS` is not off.
    fn may_access(&self, csr: u32) -> bool {
        match csr {
            number::FFLAGS | number::FRM | number::FCSR => self.fp.is_on(),
            number::CYCLE | number::TIME | number::INSTRET => {
                self.mode == Mode::Supervisor || self.csr.scounteren >> (csr & 31) & 1 == 1
            }
            _ => self.mode == Mode::Supervisor || csr >> 8 & 3 == 0,
        }
    }

    fn sstatus(&self) -> u64 {
        let csrs = &*self.csr;
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        flag(csrs.sie_on, SSTATUS_SIE)
            | flag(csrs.spie, SSTATUS_SPIE)
            | flag(csrs.spp, SSTATUS_SPP)
            | flag(csrs.sum, SSTATUS_SUM)
            | flag(csrs.mxr, SSTATUS_MXR)
            | u64::from(self.fp.state) << SSTATUS_FS
            | SSTATUS_UXL
            | flag(self.fp.is_dirty(), SSTATUS_SD)
    }

    fn set_sstatus(&mut self, value: u64) -> Effect {
        let csrs = &mut *self.csr;
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
        self.fp.state = (value >> SSTATUS_FS & 3) as u8;
        effect
    }
}

/// New value that an instruction writes to its register, if it writes.
pub(crate) fn replacement(x: &Registers, inst: &Inst, old: u64) -> Option<u64> {
    let source = match inst.op {
        Op::Csrrw | Op::Csrrs | Op::Csrrc => x[usize::from(inst.rs1)],
        _ => u64::from(inst.rs1),
    };
    let new = match inst.op {
        Op::Csrrw | Op::Csrrwi => source,
        Op::Csrrs | Op::Csrrsi => old | source,
        _ => old & !source,
    };
    writes(inst).then_some(new)
}

const _: () = assert!(FS_OFF == 0, "sstatus.FS is stored as it reads");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hart::Hart;

    #[test]
    fn user_mode_reaches_what_it_was_given() {
        let mut hart = Hart::new(0);
        assert_eq!(hart.bank().read(number::TIME, || 7, 9), Some(7));
        hart.mode = Mode::User;
        assert_eq!(hart.bank().read(number::SSTATUS, || 0, 0), None);
        assert_eq!(hart.bank().read(number::INSTRET, || 7, 9), None);
        hart.csr.scounteren = 4;
        assert_eq!(hart.bank().read(number::INSTRET, || 7, 9), Some(9));
        assert_eq!(hart.bank().write(number::INSTRET, 1), None);
        assert_eq!(hart.bank().read(number::FCSR, || 0, 0), None);
    }

    #[test]
    fn fcsr_is_flags_and_rounding() {
        let mut hart = Hart::new(0);
        hart.bank().write(number::SSTATUS, 1 << SSTATUS_FS);
        assert_eq!(hart.bank().write(number::FCSR, 0x1ff), Some(Effect::None));
        assert_eq!(hart.bank().read(number::FRM, || 0, 0), Some(7));
        assert_eq!(hart.bank().read(number::FFLAGS, || 0, 0), Some(31));
        assert_eq!(
            hart.bank().read(number::SSTATUS, || 0, 0).map(|s| s >> 63),
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
        let effect = hart.bank().write(number::SATP, satp);
        assert_eq!((hart.csr.satp, effect), (satp, Some(Effect::FlushTlbs)));
        hart.bank().write(number::SATP, 9 << 60 | 6);
        assert_eq!(hart.csr.satp, satp);
        let effect = hart.bank().write(number::SATP, satp - 1);
        assert_eq!(effect, Some(Effect::FlushSpace));
    }

    fn csr(op: Op, number: u32, rs1: u8) -> Inst {
        Inst {
            op,
            rd: 10,
            rs1,
            rs2: 0,
            imm: number as i32,
        }
    }

    #[test]
    fn what_is_quick_is_what_only_the_hart_knows() {
        let mut hart = Hart::new(0);
        let mut x: Registers = [0; 256];
        x[5] = SSTATUS_SUM | SSTATUS_SIE;
        hart.csr.spie = true;
        let sets = csr(Op::Csrrs, number::SSTATUS, 5);
        assert!(hart.bank().quick(&mut x, &sets));
        assert_eq!(x[10], SSTATUS_SPIE | SSTATUS_UXL);
        assert!(hart.csr.sum && hart.csr.sie_on && hart.csr.spie);
        // Without bits there is no write, even to a read-only register.
        x[5] = SSTATUS_MXR;
        let asks = csr(Op::Csrrc, number::SSTATUS, 0);
        assert!(hart.bank().quick(&mut x, &asks));
        assert_eq!(
            x[10],
            SSTATUS_SPIE | SSTATUS_UXL | SSTATUS_SUM | SSTATUS_SIE
        );
        // Changes of translations, calls of the host, and registers of another mode.
        x[10] = 7;
        assert!(!hart.bank().quick(&mut x, &sets));
        for number in [number::SATP, number::TIME, number::INSTRET, 0xfff] {
            assert!(!hart.bank().quick(&mut x, &csr(Op::Csrrs, number, 0)));
        }
        // An instruction that would enable an interrupt.
        hart.csr.set_pending(TIMER, true);
        let enables = csr(Op::Csrrsi, number::SSTATUS, SSTATUS_SIE as u8);
        assert!(!hart.bank().quick(&mut x, &enables));
        hart.csr.set_pending(TIMER, false);
        assert!(hart.bank().quick(&mut x, &enables));
        x[10] = 7;
        hart.mode = Mode::User;
        assert!(!hart.bank().quick(&mut x, &asks));
        assert!(!hart.bank().quick(&mut x, &csr(Op::Csrrs, number::FRM, 0)));
        assert_eq!((x[10], hart.csr.mxr), (7, false));
    }

    #[test]
    fn foretells_what_an_instruction_may_change() {
        let foretold = |op, number, rs1| {
            let inst = csr(op, number, rs1);
            (may_enable(&inst), may_change_mmu_index(&inst))
        };
        let status = number::SSTATUS;
        assert_eq!(foretold(Op::Csrrs, status, 5), (true, true));
        assert_eq!(foretold(Op::Csrrs, status, 0), (false, false));
        assert_eq!(foretold(Op::Csrrc, status, 5), (false, true));
        assert_eq!(foretold(Op::Csrrw, status, 0), (true, true));
        assert_eq!(foretold(Op::Csrrsi, status, 2), (true, false));
        assert_eq!(foretold(Op::Csrrsi, status, 1), (false, false));
        assert_eq!(foretold(Op::Csrrci, status, 2), (false, false));
        assert_eq!(foretold(Op::Csrrwi, status, 0), (false, true));
        assert_eq!(foretold(Op::Csrrs, number::SIE, 5), (true, false));
        assert_eq!(foretold(Op::Csrrw, number::SSCRATCH, 5), (false, false));
    }
}
