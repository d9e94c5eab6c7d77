//! Generator of random programs that use every instruction available to a user program.
//!
//! Reserved registers: `sp` and `s0` point into the data for loads and stores, `tp` to the
//! place of the next log entry, `t1` to aligned data for atomics. Jumps go forward over at
//! most two instructions, except for the short loops around a patched instruction.

use super::random::Random;
use a99_sandbox_guest::RAM_BASE;
use a99_sandbox_guest::isa::compressed;
use a99_sandbox_guest::isa::decode::decode;
use a99_sandbox_guest::isa::inst::{Inst, Op};
use a99_sandbox_guest::isa::table::{Format, Row, TABLE};
use std::fmt::Write;

/// One in this many instructions is patched while the program runs.
const PATCH_RATE: u64 = 60;

/// Size of a page in bytes; an instruction may cross two.
const PAGE: usize = 4096;

/// Instructions of a sequence; fewer if many cross a page.
const LENGTH: usize = 800;

/// Address of the data; the code before it must fit.
const DATA: u64 = RAM_BASE + (64 << 10);

/// Bytes that loads and stores reach: on both sides of the pointers, with room for bytes
/// that a store may change after them.
const SCRATCH: usize = 8 << 10;

/// Bytes of the log, and of the whole image.
const LOG: usize = 16 << 10;
const IMAGE: usize = (64 << 10) + SCRATCH + LOG;

const SP: u32 = 2;
const TP: u32 = 4;
const T1: u32 = 6;
const S0: u32 = 8;
const RESERVED: [u8; 4] = [SP as u8, TP as u8, T1 as u8, S0 as u8];

/// A logged instruction.
pub struct Step {
    /// Its encoding.
    pub bits: u32,
    /// Destination register, if any, and whether it is floating-point.
    target: Option<(u8, bool)>,
}

impl Step {
    /// The last logged values of the source registers, for a report.
    pub fn operands(&self, steps: &[Step], value: impl Fn(usize) -> u64) -> String {
        let here = steps.iter().position(|step| std::ptr::eq(step, self));
        let inst = decode(self.bits).0;
        let mut text = String::new();
        for source in [inst.rs1, inst.rs2] {
            for float in [false, true] {
                let set = |step: &Step| step.target == Some((source, float));
                if let Some(at) = steps[..here.unwrap_or(0)].iter().rposition(set) {
                    let name = if float { 'f' } else { 'x' };
                    let _ = write!(text, "{name}{source} was {:#x}; ", value(at));
                }
            }
        }
        text
    }
}

/// A program to load at [`RAM_BASE`].
pub struct Program {
    /// Code and data.
    pub image: Vec<u8>,
    /// The compared data: address and length.
    pub data: u64,
    pub data_len: usize,
    /// Offset of the log in the data.
    pub log_start: usize,
    /// Logged instructions.
    pub steps: Vec<Step>,
}

/// The code being written.
struct Writer<'r> {
    code: Vec<u8>,
    steps: Vec<Step>,
    random: &'r mut Random,
}

impl Program {
    pub fn generate(random: &mut Random) -> Self {
        let mut writer = Writer {
            code: Vec::new(),
            steps: Vec::new(),
            random,
        };
        writer.prologue();
        // One more instruction and the end take less than two pages.
        let room = (DATA - RAM_BASE) as usize - 2 * PAGE;
        while writer.steps.len() < LENGTH && writer.code.len() < room {
            writer.instruction();
        }
        writer.epilogue();
        let Writer {
            mut code,
            steps,
            random,
        } = writer;
        assert!(
            code.len() <= (DATA - RAM_BASE) as usize,
            "code runs into the data"
        );
        code.resize(IMAGE, 0);
        let scratch = (DATA - RAM_BASE) as usize;
        for at in (scratch..scratch + SCRATCH).step_by(8) {
            code[at..at + 8].copy_from_slice(&random.interesting().to_le_bytes());
        }
        Self {
            image: code,
            data: DATA,
            data_len: SCRATCH + LOG,
            log_start: SCRATCH,
            steps,
        }
    }
}

impl Writer<'_> {
    fn word(&mut self, bits: u32) {
        self.code.extend(bits.to_le_bytes());
    }

    fn half(&mut self, bits: u16) {
        self.code.extend(bits.to_le_bytes());
    }

    /// Computes `rd = RAM_BASE + distance` from the program counter.
    fn address(&mut self, rd: u32, distance: u64) {
        let here = self.code.len() as u64;
        let delta = (distance - here) as u32;
        let high = delta.wrapping_add(0x800) & 0xffff_f000;
        self.word(0x17 | rd << 7 | high);
        self.word(0x13 | rd << 7 | rd << 15 | delta.wrapping_sub(high) << 20);
    }

    fn prologue(&mut self) {
        let scratch = DATA - RAM_BASE;
        let middle = scratch + SCRATCH as u64 / 2;
        self.address(S0, middle);
        self.address(SP, middle - 1024);
        self.address(T1, middle + 2048);
        // `ld` and `fld` of all registers from different addresses.
        for register in (1..32).filter(|r| !RESERVED.contains(&(*r as u8))) {
            self.word(0x3003 | register << 7 | S0 << 15 | (register * 8) << 20);
        }
        for register in 0..32 {
            self.word(0x3007 | register << 7 | S0 << 15 | (register * 8 + 512) << 20);
        }
        self.address(TP, scratch + SCRATCH as u64);
    }

    /// Writes the data to standard output, exits, and loops if that fails.
    fn epilogue(&mut self) {
        self.word(0x0010_0513); // li a0, 1
        self.address(11, DATA - RAM_BASE);
        self.word(0x37 | 12 << 7 | ((SCRATCH + LOG) as u32));
        self.word(0x0400_0893); // li a7, 64
        self.word(0x73);
        self.word(0x0000_0513); // li a0, 0
        self.word(0x05d0_0893); // li a7, 93
        self.word(0x73);
        self.word(0x6f); // j .
    }

    /// Writes one random instruction, and the code that logs it.
    fn instruction(&mut self) {
        if self.random.below(PATCH_RATE) == 0 {
            return self.patch();
        }
        if self.random.below(4) == 0 {
            let half = self.random.next() as u16;
            let expanded = compressed::expand(half).filter(|bits| is_usable(*bits));
            if let Some(bits) = expanded {
                self.half(half);
                self.log(bits);
            }
            return;
        }
        let row = &TABLE[self.random.below(TABLE.len() as u64) as usize];
        let open = self.random.next() as u32 & !row.mask;
        let bits = row.bits | open;
        match row.op {
            Op::Jal | Op::Jalr => self.jump(row, bits),
            op if op.is_branch() => self.branch(row, bits),
            Op::LrW | Op::LrD | Op::ScW | Op::ScD => self.reserve(row),
            _ => {
                if let Some(bits) = self.tamed(row, bits).filter(|bits| is_usable(*bits)) {
                    self.word(bits);
                    self.log(bits);
                }
            }
        }
    }

    /// Restricts the open bits so that the program continues: memory through the pointers,
    /// valid rounding modes, floating-point control registers.
    fn tamed(&mut self, row: &Row, bits: u32) -> Option<u32> {
        let base = self.random.pick(&[SP, S0]);
        let with_base = bits & !(31 << 15) | base << 15;
        let atomic = (Op::LrW as u8..=Op::AmoMaxuD as u8).contains(&(row.op as u8));
        Some(match row.format {
            _ if atomic => bits & !(31 << 15) | T1 << 15,
            Format::FpLoad => with_base,
            Format::S => with_base,
            Format::I if row.bits & 0x7f == 3 => with_base,
            Format::Fp | Format::Fp4 | Format::FpToInt if row.mask & 0x7000 == 0 => {
                let mode = self.random.pick(&[0, 1, 2, 3, 4, 7, 7, 7]);
                bits & !0x7000 | mode << 12
            }
            Format::Csr => return self.float_control(row, bits),
            _ => bits,
        })
    }

    /// Accesses to `fflags` and `frm`; modes stay valid.
    fn float_control(&mut self, row: &Row, bits: u32) -> Option<u32> {
        let operands = bits & 0x000f_ffff;
        match (row.op, self.random.below(3)) {
            (Op::Csrrwi, 0) => {
                let mode = self.random.below(5) as u32;
                Some(0x0020_0000 | operands & !(31 << 15) | mode << 15)
            }
            (Op::Csrrs | Op::Csrrsi | Op::Csrrc | Op::Csrrci, 0) => {
                Some(0x0030_0000 | operands & !(31 << 15))
            }
            _ => Some(0x0010_0000 | operands),
        }
    }

    /// A load-reserved with its store-conditional.
    fn reserve(&mut self, row: &Row) {
        let double = matches!(row.op, Op::LrD | Op::ScD);
        let funct3 = if double { 3 << 12 } else { 2 << 12 };
        let rd = self.random.pick(&[5u32, 7, 9, 31]);
        let source = self.random.below(32) as u32;
        let conditional = 0x1800_002f | funct3 | 10 << 7 | T1 << 15 | source << 20;
        let load = 0x1000_002f | funct3 | rd << 7 | T1 << 15;
        self.word(load);
        self.word(conditional);
        self.log(conditional);
        // The reservation is gone.
        self.word(conditional);
        self.log(conditional);
    }

    /// Writes an instruction that runs, is patched, and after `fence.i` runs as another
    /// one. Some cross a page.
    fn patch(&mut self) {
        /// Bytes between the first instruction here and the patched one.
        const BEFORE: usize = 20;
        if self.random.below(3) == 0 {
            while (self.code.len() + BEFORE) % PAGE != PAGE - 2 {
                self.half(1); // c.nop
            }
        }
        let addi = |random: &mut Random| 0x0005_0513 | (random.below(4096) as u32) << 20;
        let (old, new) = (addi(self.random), addi(self.random));
        let high = new.wrapping_add(0x800) & 0xffff_f000;
        self.word(0x17 | 9 << 7); // auipc s1, 0
        self.word(0x13 | 9 << 7 | 9 << 15 | (BEFORE as u32) << 20); // addi s1, s1, BEFORE
        self.word(0x37 | 5 << 7 | high); // lui t0, high
        self.word(0x1b | 5 << 7 | 5 << 15 | new.wrapping_sub(high) << 20); // addiw t0, t0, low
        self.word(0x13 | 31 << 7 | 1 << 20); // li t6, 1
        self.word(old); // addi a0, a0, a random number
        self.word(0x2023 | 9 << 15 | 5 << 20); // sw t0, 0(s1)
        self.word(0x100f); // fence.i
        self.word(0x13 | 31 << 7 | 31 << 15 | 0xfff << 20); // addi t6, t6, -1
        self.word(0xfe0f_d8e3); // bgez t6, -16
        self.log(new);
    }

    /// A branch over the next instruction.
    fn branch(&mut self, row: &Row, bits: u32) {
        let operands = bits & 0x01ff_f000 & !row.mask;
        self.word(row.bits | operands | 8 << 7);
        self.word(0x0010_8093); // addi x1, x1, 1
        self.log(0x0010_8093);
    }

    /// A jump over the next instruction, by offset or by register.
    fn jump(&mut self, row: &Row, bits: u32) {
        let rd = self.random.pick(&[0u32, 1, 3, 5, 7, 31]);
        if row.op == Op::Jal {
            self.word(0x6f | rd << 7 | 8 << 20);
        } else {
            let odd = bits >> 31;
            self.word(0x17 | 9 << 7); // auipc s1, 0
            self.word(0x67 | rd << 7 | 9 << 15 | (12 + odd) << 20);
        }
        self.word(0x0010_8093);
        self.log(0x13 | rd << 7);
    }

    /// Stores the result of an instruction.
    fn log(&mut self, bits: u32) {
        let inst = decode(bits).0;
        let target = target(bits, &inst);
        match target {
            Some((rd, true)) => self.word(0x3027 | TP << 15 | u32::from(rd) << 20),
            Some((rd, false)) => self.word(0x3023 | TP << 15 | u32::from(rd) << 20),
            None => return,
        }
        self.half(0x0221); // c.addi tp, 8
        self.steps.push(Step { bits, target });
    }
}

/// Destination register of an instruction.
fn target(bits: u32, inst: &Inst) -> Option<(u8, bool)> {
    let row = a99_sandbox_guest::isa::table::find(bits)?;
    let rd = (bits >> 7 & 31) as u8;
    match row.format {
        Format::Fp | Format::Fp4 | Format::FpLoad => Some((rd, true)),
        Format::None | Format::S | Format::B => None,
        _ if inst.op == Op::Nop => Some((0, false)),
        _ => Some((rd, false)),
    }
}

/// Whether an instruction may occur anywhere in a sequence.
fn is_usable(bits: u32) -> bool {
    let inst = decode(bits).0;
    let Some(row) = a99_sandbox_guest::isa::table::find(bits) else {
        return false;
    };
    let base = (bits >> 15 & 31) as u8;
    let by_pointer = [SP as u8, S0 as u8].contains(&base);
    let memory = matches!(row.format, Format::S | Format::FpLoad) || bits & 0x7f == 3;
    let jumps = row.op.is_branch() || matches!(row.op, Op::Jal | Op::Jalr);
    let system = matches!(
        row.op,
        Op::Ecall
            | Op::Ebreak
            | Op::Sret
            | Op::Wfi
            | Op::SfenceVma
            // QEMU clears blocks of another size.
            | Op::CboZero
    );
    let clobbers = match target(bits, &inst) {
        Some((rd, false)) => RESERVED.contains(&rd),
        _ => false,
    };
    !jumps && !system && !clobbers && (by_pointer || !memory)
}
