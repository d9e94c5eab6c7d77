//! Hostile programs end with their own error, and the guest continues.

use super::elf::{of_words, program};
use super::support::{Numbers, in_guest, is_usable, run_for};
use crate::common::{builder, start};
use a99_sandbox::{Ending, Output, Sandbox, VmCode, VmError};
use std::time::Duration;

/// Number of garbage programs.
const GARBAGE: u64 = 40;

/// Size of a garbage program in bytes.
const GARBAGE_BYTES: usize = 4096;

/// Time limit of a program that does not end by itself.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Time limit of a program that must end by itself, on a busy machine.
const LONG: Duration = Duration::from_secs(100);

// Signals of Linux (signal(7)).
const SIGILL: u8 = 4;
const SIGTRAP: u8 = 5;
const SIGBUS: u8 = 7;
const SIGKILL: u8 = 9;
const SIGSEGV: u8 = 11;

/// Copies a program into the guest and runs it.
fn run_program(sandbox: &Sandbox, bytes: &[u8]) -> Result<Output, VmError> {
    let put = "cat >/tmp/program && chmod 700 /tmp/program";
    in_guest(sandbox, &["sh", "-c", put], bytes);
    run_for(sandbox.command(["/tmp/program"]), b"", TIMEOUT)
}

#[test]
#[ignore = "needs the image"]
fn garbage_as_code_ends_in_its_own_error() {
    let sandbox = start();
    let mut signals = 0;
    for seed in 0..GARBAGE {
        let code = Numbers(seed).bytes(GARBAGE_BYTES);
        match run_program(&sandbox, &program(&code)) {
            Ok(output) => {
                signals += u32::from(matches!(output.exited.ending, Ending::Signal(_)));
            }
            // Random jumps can make a loop.
            Err(error) => assert_eq!(error.code, VmCode::TimedOut, "seed {seed}: {error}"),
        }
        is_usable(&sandbox);
    }
    assert!(
        signals > GARBAGE as u32 / 2,
        "only {signals} of {GARBAGE} faulted"
    );
}

#[test]
#[ignore = "needs the image"]
fn faults_are_the_signals_that_linux_has_for_them() {
    let sandbox = start();
    for (what, words, signals) in [
        // c.unimp, twice.
        ("an illegal instruction", vec![0], &[SIGILL][..]),
        (
            "an instruction of machine mode",
            vec![0x3020_0073],
            &[SIGILL],
        ),
        (
            "a register of supervisor mode",
            vec![0x1800_2573],
            &[SIGILL],
        ),
        ("ebreak", vec![0x0010_0073], &[SIGTRAP]),
        ("a load from address 0", vec![0x0000_3503], &[SIGSEGV]),
        ("a store to address 0", vec![0x00a0_3023], &[SIGSEGV]),
        // li a0, -1; slli a0, a0, 38; ld a0, 0(a0)
        (
            "a load from the kernel",
            vec![0xfff0_0513, 0x0265_1513, 0x0005_3503],
            &[SIGSEGV],
        ),
        // li a0, 1; slli a0, a0, 50; ld a0, 0(a0)
        (
            "a load from no address of Sv39",
            vec![0x0010_0513, 0x0325_1513, 0x0005_3503],
            &[SIGSEGV],
        ),
        ("a jump to address 0", vec![0x0000_0067], &[SIGSEGV]),
        // li a0, 3; lr.d a1, (a0)
        (
            "a misaligned reservation",
            vec![0x0030_0513, 0x1005_35af],
            &[SIGBUS, SIGSEGV],
        ),
    ] {
        let output = run_program(&sandbox, &of_words(&words));
        let ending = output
            .unwrap_or_else(|e| panic!("{what}: {e}"))
            .exited
            .ending;
        let expected = |signal: &u8| ending == Ending::Signal(*signal);
        assert!(signals.iter().any(expected), "{what}: {ending:?}");
    }
    is_usable(&sandbox);
}

#[test]
#[ignore = "needs the image"]
fn forks_without_end_are_bounded_and_killed() {
    let sandbox = start();
    // The bomb begins in a child: a shell that cannot fork ends.
    let text = "b() { b | b & }; (b) & while :; do :; done";
    let bomb = sandbox.command(["sh", "-c", text]).process_limit(64);
    let error = run_for(bomb, b"", TIMEOUT).expect_err("it does not end");
    assert_eq!(error.code, VmCode::TimedOut);
    is_usable(&sandbox);
    let left = in_guest(&sandbox, &["sh", "-c", "ps -o comm | grep -c '^sh$'"], b"");
    // The processes of this command, and of the session.
    let left: u32 = String::from_utf8_lossy(&left)
        .trim()
        .parse()
        .expect("a number");
    assert!(left <= 2, "{left} shells are left");
}

#[test]
#[ignore = "needs the image"]
fn memory_that_is_filled_kills_the_one_who_fills_it() {
    let sandbox = start();
    let text = "x = []\nwhile True: x.append(bytearray(1 << 20))";
    for memory in [Some(64 << 20), None] {
        let mut hog = sandbox.command(["python3", "-c", text]);
        if let Some(bytes) = memory {
            hog = hog.memory_limit(bytes);
        }
        let output = run_for(hog, b"", LONG).expect("it ends");
        let ending = output.exited.ending;
        // Python may notice before the kernel has to kill it.
        let reported = String::from_utf8_lossy(&output.stderr).contains("MemoryError");
        assert!(
            ending == Ending::Signal(SIGKILL) || reported,
            "{memory:?}: {ending:?}"
        );
        is_usable(&sandbox);
    }
}

#[test]
#[ignore = "needs the image"]
fn a_disk_that_is_filled_is_full_and_nothing_else() {
    let sandbox = builder().files_in_memory().start_blocking();
    let sandbox = sandbox.expect("a sandbox");
    for folder in ["/tmp", "/root", "/dev/shm"] {
        let text = format!("dd if=/dev/zero of={folder}/fill bs=1M");
        let fill = sandbox.command(["sh", "-c", &text]);
        let output = run_for(fill, b"", LONG).expect("it ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        let full = output.exit_code() == 1 && errors.contains("No space left on device");
        assert!(full, "{folder}: {:?} {errors}", output.exited.ending);
        is_usable(&sandbox);
        in_guest(&sandbox, &["rm", &format!("{folder}/fill")], b"");
    }
    is_usable(&sandbox);
}
