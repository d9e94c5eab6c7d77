//! Repeated boots from scratch.
//!
//! `A99_BOOTS` sets their number; `cargo xtask boots` runs 200.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what is measured"
)]

use a99_sandbox::cache::Cache;
use a99_sandbox::image::crates::EMULATOR;
use a99_sandbox::image::{kernel, rootfs};
use a99_sandbox::vm::{Boot, Booter, CMDLINE, VmCode, engine};
use std::collections::HashSet;

/// Default number of boots, for CI.
const COUNT: u32 = 3;

/// RAM of the guest, in bytes.
const RAM_BYTES: u32 = 256 << 20;

/// Messages of level 4 (warning) and below that are not faults of the machine, each with
/// the reason.
const EXPECTED: &[&str] = &[
    // A choice of the kernel's configuration: its text is not write-protected from itself,
    // which keeps the pages of a guest few. The sandbox does not rely on it.
    "Kernel memory protection not selected by kernel config.",
];

/// Kernel messages about a defect, at any level.
const BROKEN: [&str; 8] = [
    "Oops",
    "BUG:",
    "WARNING:",
    "Call Trace",
    "Unable to handle",
    "rcu:",
    "hung task",
    "Kernel panic",
];

/// Prints the kernel's messages with their levels, then two numbers that must differ
/// between boots.
const SCRIPT: &str = "dmesg -r; echo ----; cat /proc/sys/kernel/random/boot_id; \
                      head -c 16 /dev/urandom | xxd -p";

/// Lets commands see the kernel's messages, which are hidden by default.
const LOUD: &str = "console=hvc0 sysctl.kernel.dmesg_restrict=0";

fn count() -> u32 {
    let text = std::env::var("A99_BOOTS").ok();
    text.map_or(COUNT, |text| text.parse().expect("A99_BOOTS is a number"))
}

/// Reads a file of a step of the last build.
fn part(cache: &Cache, step: &str, file: &str) -> Vec<u8> {
    let entry = cache.current(step).expect("a cache");
    let entry = entry.unwrap_or_else(|| panic!("no {step}: `cargo xtask guest` builds it"));
    std::fs::read(entry.path(file)).expect("a file")
}

/// Messages that report a fault.
fn wrong(messages: &str) -> Vec<&str> {
    let is_wrong = |line: &&str| {
        let level = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        // The lowest three bits are the level, the others the facility.
        let level = level.and_then(|(number, text)| Some((number.parse::<u32>().ok()? & 7, text)));
        let loud = level.is_some_and(|(level, text)| {
            level <= 4 && !EXPECTED.iter().any(|expected| text.contains(expected))
        });
        loud || BROKEN.iter().any(|broken| line.contains(broken))
    };
    messages.lines().filter(is_wrong).collect()
}

#[test]
fn faults_are_seen_in_messages() {
    let messages = "<6>fine\n<5>fine\n<12>of a program\n<4>loud\n<6>Oops [#1]\n\
                    <4>Kernel memory protection not selected by kernel config.\n";
    assert_eq!(
        wrong(messages),
        ["<12>of a program", "<4>loud", "<6>Oops [#1]"]
    );
}

/// Boots the emulator with the image's disk of the last build.
fn booter(cache: &Cache) -> Booter {
    let emulator = part(cache, "emulator", EMULATOR.result);
    let entry = cache.current("rootfs").expect("readable").expect("built");
    let engine = engine().expect("an engine");
    Booter::new(&engine, &emulator, &entry.path(rootfs::DISK)).expect("the emulator")
}

#[test]
#[ignore = "needs the image"]
fn boots_reach_a_shell_without_a_warning_and_are_all_different() {
    let cache = Cache::of_user().expect("a cache");
    let kernel = part(&cache, "kernel", kernel::IMAGE);
    let initrd = part(&cache, "rootfs", rootfs::ARCHIVE);
    let booter = booter(&cache);
    let boot = Boot {
        kernel: &kernel,
        initrd: &initrd,
        cmdline: LOUD,
        ram_bytes: RAM_BYTES,
    };
    let mut seen = HashSet::new();
    let count = count();
    for number in 1..=count {
        let tried = booter.boot(&boot, SCRIPT);
        let tried = tried.unwrap_or_else(|error| panic!("boot {number}: {error}"));
        let text = String::from_utf8(tried.stdout).expect("text");
        assert_eq!(tried.exited.exit_code(), 0, "boot {number}: {text}");
        let (messages, unique) = text.split_once("----\n").expect("both parts");
        assert!(
            messages.contains("Linux version"),
            "boot {number}: {messages}"
        );
        for seen_where in [messages, &tried.console] {
            let wrong = wrong(seen_where);
            assert!(wrong.is_empty(), "boot {number}: {wrong:#?}");
        }
        let unique: Vec<&str> = unique.lines().collect();
        assert_eq!(unique.len(), 2, "boot {number}: {unique:?}");
        for id in unique {
            assert!(seen.insert(id.to_owned()), "boot {number}: {id} again");
        }
        let (elapsed, millions) = (tried.elapsed.as_secs_f64(), tried.instructions / 1_000_000);
        println!("boot {number} of {count}: {elapsed:.2} s, {millions} M instructions");
    }
}

/// A kernel that panics ends the guest at once, and its last messages are reported: here it
/// has no first process.
#[test]
#[ignore = "needs the image"]
fn s6_a_kernel_that_panics_ends_the_guest_at_once() {
    let cache = Cache::of_user().expect("a cache");
    let kernel = part(&cache, "kernel", kernel::IMAGE);
    let booter = booter(&cache);
    let boot = Boot {
        kernel: &kernel,
        initrd: &[],
        cmdline: CMDLINE,
        ram_bytes: RAM_BYTES,
    };
    let start = std::time::Instant::now();
    let error = booter.boot(&boot, "true").expect_err("it has no files");
    assert_eq!(error.code, VmCode::GuestEnded, "{error}");
    assert!(error.text.contains("panic"), "{error}");
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}
