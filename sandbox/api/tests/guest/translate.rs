//! The translator against the interpreter: the same programs on both must end with the same
//! memory and registers.
//!
//! Code is translated at its first sample, a few instructions at a time, so that everything
//! runs as translated code, and that budgets end at every place. Random programs then go on
//! in long steps.
//!
//! `cargo xtask translate` compares more random programs, for ten minutes;
//! `A99_TRANSLATE_SEED`, `A99_TRANSLATE_COUNT` and `A99_TRANSLATE_ROUNDS` choose them.

#[path = "../../../guest/tests/cosim/generator.rs"]
#[allow(dead_code, reason = "made for a test that reports more")]
mod generator;
#[path = "../../../guest/tests/cosim/random.rs"]
#[allow(dead_code, reason = "made for a test that reports more")]
mod random;

use a99_sandbox::vm::{self, Bare, Execution};
use generator::Program;
use random::Random;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// RAM of the machines that the test programs expect.
const RAM_BYTES: u32 = 1 << 20;

/// Budgets after which a program is considered stuck.
const MAX_BUDGETS: u32 = 1_000_000;

/// Random programs of the short form, and the rounds of each.
const COUNT: u64 = 8;
const ROUNDS: u64 = 500;

/// Instructions of all programs of a test, at least, in the short form.
const INSTRUCTIONS: u64 = 10_000_000;

/// Short steps of a program.
const SHORT_STEPS: u32 = 5_000;

/// A number that the environment may override.
fn chosen(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| text.parse().expect("a number"))
}

/// The emulator, built as the image's builder builds it.
static EMULATOR: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulator");
    let flags = "-Clink-arg=--export-table -Clink-arg=--growable-table";
    let arguments =
        "rustc -p a99-sandbox-guest --lib --profile emulator --crate-type cdylib --locked";
    let built = Command::new(env!("CARGO"))
        .current_dir(sources)
        .args(arguments.split(' '))
        .args(["--target", "wasm32-wasip1", "--target-dir"])
        .arg(&target)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", flags)
        .status();
    assert!(built.expect("cargo runs").success());
    std::fs::read(target.join("wasm32-wasip1/emulator/a99_sandbox_guest.wasm"))
        .expect("it is built")
});

/// Both kinds of functions, translated at once.
const EAGER: [Execution; 2] = [Execution::Fast(1), Execution::Small(1)];

/// A machine with a program at the start of RAM.
fn machine(execution: Execution, code: &[u8]) -> Bare {
    let engine = vm::engine().expect("an engine");
    let mut machine = Bare::new(&engine, &EMULATOR, RAM_BYTES, execution).expect("a machine");
    machine.load(0, code).expect("it fits");
    machine
}

/// Runs to the end, possibly in steps of random length, each followed by the compilation of
/// requested code.
fn finish(machine: &mut Bare, random: Option<&mut Random>) {
    let mut random = random;
    for step in 0..MAX_BUDGETS {
        let budget = match &mut random {
            Some(random) if step < SHORT_STEPS => 1 + random.below(24),
            _ => 10_000,
        };
        if !machine.run(budget).expect("no trap") {
            return;
        }
        if random.is_some() {
            machine.drain_translations().expect("no trap");
        }
    }
    panic!("no end: {:x?}", machine.registers());
}

/// The programs of the guest's own tests: every group of instructions, faults with their
/// addresses, paging, traps, and self-modifying code.
#[test]
fn programs_pass_translated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest/tests/programs");
    for name in ["integer", "memory", "frames", "paging", "traps", "code"] {
        let code = std::fs::read(folder.join(name).with_extension("bin")).expect("a program");
        for execution in EAGER {
            let mut machine = machine(execution, &code);
            finish(&mut machine, Some(&mut Random::new(1)));
            let registers = machine.registers().expect("registers");
            let failed = registers[3];
            assert_eq!(failed, 0, "{name}, {execution:?}: the check that failed");
            let done = machine.translations();
            assert!(done.compiled > 0, "{name}: {done:?}");
            assert_eq!(done.failed, 0, "{name}");
        }
    }
}

/// Offset of the random program: its code and data are relative to it.
const PROGRAM: u32 = 64 << 10;

/// Offset of the number of rounds.
const COUNTER: u32 = 0x1000;

/// `jal x0` over a distance.
fn jump(distance: i32) -> u32 {
    let bits = distance as u32;
    0x6f | bits & 0xf_f000 | (bits >> 11 & 1) << 20 | (bits >> 1 & 0x3ff) << 21 | (bits >> 31) << 31
}

/// Powers off: `system_reset` of the binary interface.
const POWER_OFF: [u32; 6] = [
    0x5352_58b7, // lui a7, 0x53525
    0x3548_8893, // addi a7, a7, 0x354
    0x0000_0813, // li a6, 0
    0x0000_0513, // li a0, 0
    0x0000_0593, // li a1, 0
    0x0000_0073, // ecall
];

/// The start of a round: leaves the loop after the last one.
const ROUND: [u32; 7] = [
    0x0000_1297, // auipc t0, 1
    0x0002_b303, // ld t1, 0(t0)
    0x0003_0a63, // beqz t1, .+20
    0xfff3_0313, // addi t1, t1, -1
    0x0062_b023, // sd t1, 0(t0)
    0x0000_0013, // nop
    0x01c0_006f, // j .+28: over the end
];

/// Encodes instructions as bytes.
fn code(parts: &[&[u32]]) -> Vec<u8> {
    let words = parts.iter().copied().flatten();
    words.flat_map(|word| word.to_le_bytes()).collect()
}

/// Runs a program for some rounds on the data that the previous one left, with floating
/// point on, then powers off.
fn rounds() -> Vec<u8> {
    let start = [
        0x0000_63b7, // lui t2, 6
        0x1003_a073, // csrs sstatus, t2
        jump(PROGRAM as i32 - 15 * 4),
    ];
    code(&[&ROUND, &POWER_OFF, &start])
}

/// Does the same in user mode. Its environment calls return at once; any other exception
/// ends the run, as the illegal instruction after the last round does.
fn user_rounds() -> Vec<u8> {
    let enter = [
        0x0082_b303, // ld t1, 8(t0): whether this is user mode
        0x0603_1c63, // bnez t1, the program
        0x0010_0313, // li t1, 1
        0x0062_b423, // sd t1, 8(t0)
        0x0000_63b7, // lui t2, 6
        0x1003_a073, // csrs sstatus, t2
        0x1000_0393, // li t2, 0x100: SPP
        0x1003_b073, // csrc sstatus, t2
        0xfff0_0393, // li t2, -1
        0x1063_9073, // csrw scounteren, t2
        0x10a3_9073, // csrw senvcfg, t2
        0x0000_0397, // auipc t2, 0
        0x01c3_8393, // addi t2, t2, 28: the handler
        0x1053_9073, // csrw stvec, t2
        0x0000_0397, // auipc t2, 0
        0x0443_8393, // addi t2, t2, 68: the program
        0x1413_9073, // csrw sepc, t2
        0x1020_0073, // sret
        0x1420_22f3, // csrr t0, scause
        0xff82_8293, // addi t0, t0, -8
        0x0002_9a63, // bnez t0, .+20
        0x1410_22f3, // csrr t0, sepc
        0x0042_8293, // addi t0, t0, 4
        0x1412_9073, // csrw sepc, t0
        0x1020_0073, // sret
    ];
    let mut code = code(&[&ROUND, &[0; POWER_OFF.len()], &enter, &POWER_OFF]);
    let go = jump(PROGRAM as i32 - code.len() as i32);
    code.extend(go.to_le_bytes());
    code
}

#[test]
fn random_programs_end_the_same() {
    random_programs(&rounds());
}

#[test]
fn random_programs_of_user_mode_end_the_same() {
    random_programs(&user_rounds());
}

fn random_programs(rounds: &[u8]) {
    let mut random = Random::new(chosen("A99_TRANSLATE_SEED", 0xa99));
    let (count, turns) = (
        chosen("A99_TRANSLATE_COUNT", COUNT),
        chosen("A99_TRANSLATE_ROUNDS", ROUNDS),
    );
    let mut instructions = 0;
    for number in 0..count {
        let mut program = Program::generate(&mut random).image;
        // It ends by jumping to itself; here it jumps back to the rounds.
        let end = program.chunks(2).enumerate().rposition(|(at, _)| {
            let at = at * 2;
            program.get(at..at + 8) == Some(&[0x73, 0, 0, 0, 0x6f, 0, 0, 0])
        });
        let end = end.expect("its end") * 2 + 4;
        let back = jump(-((PROGRAM as usize + end) as i32));
        program[end..end + 4].copy_from_slice(&back.to_le_bytes());
        let run = |execution: Execution, steps: Option<&mut Random>| {
            let mut machine = machine(execution, rounds);
            machine.load(PROGRAM, &program).expect("it fits");
            machine
                .load(COUNTER, &turns.to_le_bytes())
                .expect("it fits");
            finish(&mut machine, steps);
            let done = machine.translations();
            assert_eq!(done.failed, 0);
            assert_eq!(done.compiled > 0, execution != Execution::Interpreted);
            let ram = machine.ram(0, RAM_BYTES).expect("all of it");
            assert_eq!(ram[COUNTER as usize], 0, "rounds left");
            (
                machine.registers().expect("registers"),
                machine.retired(),
                ram,
            )
        };
        let expected = run(Execution::Interpreted, None);
        instructions += expected.1;
        for execution in EAGER {
            let actual = run(execution, Some(&mut random));
            assert_eq!(actual.0, expected.0, "registers of program {number}");
            assert_eq!(actual.1, expected.1, "instructions of program {number}");
            let differs = actual.2.iter().zip(&expected.2).position(|(a, b)| a != b);
            assert_eq!(differs, None, "memory of program {number}");
        }
    }
    assert!(instructions >= INSTRUCTIONS * count * turns / (COUNT * ROUNDS));
}

/// Runs a loop of loads at the end of each of these steps, and powers off: a step is the
/// address that is read, and whether user mode runs the loop. Each ends with a number in
/// `s0`: that of an exception, or zero after supervisor mode has returned.
///
/// User mode finds the loop at 0x1000 and supervisor mode at its place in RAM, so that
/// code which was translated for one of them is there for the other.
const MODES: [u32; 37] = [
    0x0000_0a17, // auipc s4, 0
    0x07ca_0293, // addi t0, s4, 124: the handler
    0x1052_9073, // csrw stvec, t0
    0xfff0_0293, // li t0, -1
    0x03f2_9293, // slli t0, t0, 63: Sv39
    0x0008_0337, // lui t1, 0x80
    0x0103_0313, // addi t1, t1, 16: the root
    0x0062_e2b3, // or t0, t0, t1
    0x1802_9073, // csrw satp, t0
    0x1200_0073, // sfence.vma
    0x0000_69b7, // lui s3, 6: the steps
    0x0149_89b3, // add s3, s3, s4
    0x0009_b583, // ld a1, 0(s3)
    0x0605_8063, // beqz a1, .+96: the end
    0x0089_b283, // ld t0, 8(s3)
    0x0109_8993, // addi s3, s3, 16
    0x1f40_0613, // li a2, 500
    0xfff0_0893, // li a7, -1: no function of the binary interface
    0x084a_0093, // addi ra, s4, 132: after the handler
    0x0002_9863, // bnez t0, .+16
    0x0000_3337, // lui t1, 3
    0x0143_0333, // add t1, t1, s4
    0x0003_0067, // jr t1: the loop
    0x1000_0313, // li t1, 0x100: SPP
    0x1003_3073, // csrc sstatus, t1
    0x0000_1337, // lui t1, 1
    0x1413_1073, // csrw sepc, t1
    0x1020_0073, // sret: the loop
    0x0000_0013, // nop
    0x0000_0013, // nop
    0x0000_0013, // nop
    0x1420_22f3, // csrr t0, scause
    0x0080_006f, // j .+8
    0x0000_0293, // li t0, 0
    0x0084_1413, // slli s0, s0, 8
    0x0054_6433, // or s0, s0, t0
    0xfa1f_f06f, // j .-96: the next step
];

/// The loop of [`MODES`]: `ld a0, 0(a1)`, `mv sp, a1`, `ld a0, 0(sp)`, `addi a2, a2, -1`,
/// `bnez a2, .-16`, `ecall`, `ret`. The second load looks in the micro-TLB.
const LOADS: [u32; 7] = [
    0x0005_b503,
    0x0005_8113,
    0x0001_3503,
    0xfff6_0613,
    0xfe06_18e3,
    0x0000_0073,
    0x0000_8067,
];

#[test]
fn code_translated_for_one_mode_reads_nothing_as_the_other() {
    // Pages of user mode, and one of supervisor mode.
    const LOOP: u64 = 0x1000;
    const OF_USER: u64 = 0x2000;
    const OF_SUPERVISOR: u64 = 0x8000_4000;
    const PAGE_FAULT: u64 = 13;
    const ECALL: u64 = 8;
    let pointer = |page: u64| (0x8_0000 + page) << 10 | 1;
    let leaf = |page: u64, flags: u64| (0x8_0000 + page) << 10 | flags;
    let steps = [
        ((OF_USER, 1), ECALL),
        ((OF_USER, 0), PAGE_FAULT),
        ((OF_SUPERVISOR, 0), 0),
        ((OF_SUPERVISOR, 1), PAGE_FAULT),
    ];
    for execution in [Execution::Interpreted, EAGER[0], EAGER[1]] {
        for order in [[0, 1, 2, 3], [2, 3, 0, 1], [0, 2, 3, 1], [2, 0, 1, 3]] {
            let mut machine = machine(execution, &code(&[&MODES, &POWER_OFF]));
            let mut load = |at: u32, numbers: &[u64]| {
                let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
                machine.load(at, &bytes).expect("it fits");
            };
            // Readable, writable and executable by supervisor mode: RAM at its place.
            load(0x1_0000, &[pointer(0x11), 0, leaf(0, 0xcf)]);
            load(0x1_1000, &[pointer(0x12)]);
            // The loop is readable and executable by user mode, its page writable too.
            let number = |va: u64| (va >> 12) as u32 * 8;
            load(0x1_2000 + number(LOOP), &[leaf(3, 0x5b)]);
            load(0x1_2000 + number(OF_USER), &[leaf(5, 0xd7)]);
            let chosen = order.map(|step| steps[step]);
            let table = chosen.map(|((address, mode), _)| [address, mode]);
            load(0x6000, table.as_flattened());
            machine.load(0x3000, &code(&[&LOADS])).expect("it fits");
            finish(&mut machine, Some(&mut Random::new(1)));
            let ends = chosen.iter().fold(0, |all, (_, end)| all << 8 | end);
            let registers = machine.registers().expect("registers");
            assert_eq!(registers[8], ends, "{execution:?}, {order:?}");
            let done = machine.translations();
            assert_eq!(done.compiled > 0, execution != Execution::Interpreted);
        }
    }
}

/// A loop of two instructions. After a million rounds the timer is set and the same loop
/// runs for ever; the trap's handler powers off.
fn timed_loop() -> Vec<u8> {
    let words = [
        0x0000_0297, // auipc t0, 0
        0x0482_8293, // addi t0, t0, 72: the handler
        0x1052_9073, // csrw stvec, t0
        0x0200_0313, // li t1, 32: the timer's bit
        0x1043_2073, // csrs sie, t1
        0x1001_6073, // csrsi sstatus, 2: SIE
        0x0010_09b7, // lui s3, 0x100
        0x0014_8493, // addi s1, s1, 1
        0xff34_9ee3, // bne s1, s3, .-4
        0xc010_2573, // rdtime a0
        0x0001_85b7, // lui a1, 0x18: some 10 ms
        0x00b5_0533, // add a0, a0, a1
        0x5449_58b7, // lui a7, 0x54495: the extension TIME
        0xd458_8893, // addi a7, a7, -0x2bb
        0x0000_0813, // li a6, 0: set_timer
        0x0000_0073, // ecall
        0x0000_0993, // li s3, 0
        jump(-40),
        0x1420_2473, // csrr s0, scause
        0x1410_2973, // csrr s2, sepc
    ];
    code(&[&words, &POWER_OFF])
}

#[test]
fn a_timer_interrupts_a_translated_loop() {
    const ROUNDS: u64 = 1 << 20;
    const LOOP: u64 = 0x8000_0000 + 28;
    let mut machine = machine(Execution::Fast(1), &timed_loop());
    while machine.translations().compiled == 0 {
        assert!(machine.run(1000).expect("no trap"));
        machine.drain_translations().expect("no trap");
    }
    // The loop was entered, and has not ended.
    let before = machine.registers().expect("registers");
    assert!((1..ROUNDS).contains(&before[9]), "{}", before[9]);
    finish(&mut machine, None);
    let after = machine.registers().expect("registers");
    assert_eq!(after[8], 1 << 63 | 5, "a supervisor timer interrupt");
    assert!((LOOP..LOOP + 8).contains(&after[18]), "{:x}", after[18]);
    // The interrupt was taken in the endless part.
    assert!(after[9] > ROUNDS, "{}", after[9]);
    assert_eq!(machine.translations().failed, 0);
}

/// Offset of the numbers of [`sums`], number of pairs, and size in bytes of each pair with
/// its results.
const NUMBERS: u32 = 0x2000;
const PAIRS: usize = 2000;
const PAIR_BYTES: usize = 16 + OPERATIONS.len() * 16;

/// Double precision on a pair in `f0` and `f1`, the first also in `t4`: the instruction, the
/// flags that have accrued before it, and whether its result is an integer, in `t3` instead
/// of `f2`.
const OPERATIONS: [(u32, u32, bool); 15] = [
    (0x0210_7153, 0, false), // fadd.d f2, f0, f1
    (0x0a10_7153, 0, false), // fsub.d f2, f0, f1
    (0x1210_7153, 0, false), // fmul.d f2, f0, f1
    (0x1a10_7153, 0, false), // fdiv.d f2, f0, f1
    (0xa210_2e53, 0, true),  // feq.d t3, f0, f1
    (0xa210_1e53, 0, true),  // flt.d t3, f0, f1
    (0xa210_0e53, 0, true),  // fle.d t3, f0, f1
    (0xc200_1e53, 0, true),  // fcvt.w.d t3, f0, rtz
    (0xc220_1e53, 0, true),  // fcvt.l.d t3, f0, rtz
    (0xc200_1e53, 1, true),  // the same, after an inexact result
    (0xc220_1e53, 1, true),
    (0xd22e_f153, 0, false), // fcvt.d.l f2, t4
    (0xd22e_f153, 1, false),
    (0xd20e_8153, 0, false), // fcvt.d.w f2, t4
    (0xd21e_8153, 0, false), // fcvt.d.wu f2, t4
];

/// Runs the operations on each pair of numbers, and stores the result and the flags of each.
fn sums() -> Vec<u8> {
    let mut words = vec![
        0x0000_2297,                        // auipc t0, 2: the numbers
        0x0000_6337,                        // lui t1, 6
        0x1003_2073,                        // csrs sstatus, t1
        0x0000_0313 | (PAIRS as u32) << 20, // li t1, PAIRS
        0x0002_b007,                        // fld f0, 0(t0)
        0x0082_b087,                        // fld f1, 8(t0)
        0x0002_be83,                        // ld t4, 0(t0)
    ];
    let start = words.len() as i32 - 3;
    for (at, (word, flags, is_integer)) in (1..).zip(OPERATIONS) {
        let result = if is_integer { 0x01c2_b023 } else { 0x0022_b027 };
        let store = |base: u32, offset: u32| base | (offset >> 5) << 25 | (offset & 31) << 7;
        words.extend([
            0x0010_5073 | flags << 15,       // csrwi fflags, flags
            word,                            // the operation
            0x0010_23f3,                     // csrr t2, fflags
            store(result, 16 * at),          // fsd f2, 16 * at(t0), or sd t3
            store(0x0072_b023, 16 * at + 8), // sd t2, 16 * at + 8(t0)
        ]);
    }
    words.push(0x0002_8293 | (PAIR_BYTES as u32) << 20); // addi t0, t0, PAIR_BYTES
    words.push(0xfff3_0313); // addi t1, t1, -1
    words.push(0x0003_0463); // beqz t1, .+8
    words.push(jump((start - words.len() as i32) * 4));
    code(&[&words, &POWER_OFF])
}

/// A number whose significand has few or many bits, with an exponent in the middle or near
/// the ends, or a number that is not normal.
fn number(random: &mut Random) -> u64 {
    let exponent = match random.below(8) {
        0 => random.below(60),
        1 => 0x7ff - random.below(60),
        2 => 0,
        _ => 1023 - 60 + random.below(120),
    };
    let width = random.below(53);
    let fraction = (random.next() | 1) << (52 - width) & ((1 << 52) - 1);
    (random.below(2) << 63) | exponent << 52 | fraction
}

#[test]
fn arithmetic_is_exact_where_the_interpreter_is() {
    let mut random = Random::new(0xf64);
    let mut numbers = Vec::new();
    for _ in 0..PAIRS {
        let one = number(&mut random);
        // Often makes the quotient exact.
        let other = match random.below(3) {
            0 => one ^ random.below(4) << 51,
            _ => number(&mut random),
        };
        numbers.extend(one.to_le_bytes());
        numbers.extend(other.to_le_bytes());
        numbers.extend([0; PAIR_BYTES - 16]);
    }
    let run = |execution: Execution| {
        let mut machine = machine(execution, &sums());
        machine.load(NUMBERS, &numbers).expect("it fits");
        finish(&mut machine, Some(&mut Random::new(2)));
        let done = machine.translations();
        assert_eq!(done.failed, 0);
        assert_eq!(done.compiled > 0, execution != Execution::Interpreted);
        machine
            .ram(NUMBERS, numbers.len() as u32)
            .expect("it is RAM")
    };
    let expected = run(Execution::Interpreted);
    // Both kinds of results are frequent.
    let inexact = |pair: &&[u8]| pair[24] & 1 == 1;
    let count = expected.chunks(PAIR_BYTES).filter(inexact).count();
    assert!((PAIRS / 8..PAIRS * 7 / 8).contains(&count), "{count}");
    for execution in EAGER {
        let actual = run(execution);
        let mut pairs = actual.chunks(PAIR_BYTES).zip(expected.chunks(PAIR_BYTES));
        let differs = pairs.find(|(actual, expected)| actual != expected);
        assert_eq!(differs, None, "{execution:?}");
    }
}
