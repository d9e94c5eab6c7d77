//! Searches disagreements between the VM and the oracle on the stable toolchain: `hunt [SEED
//! [COUNT]] [--builtins]`. Each disagreement is minimised and printed once for its kind.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people"
)]

use a99_testkit::differential::difference;
use a99_testkit::generate::Case;
use a99_testkit::numbers::Numbers;
use std::collections::BTreeSet;

/// Default number of programs.
const COUNT: u64 = 2_000;

/// Longest byte string of a program.
const MAX_BYTES: usize = 900;

/// The program of these bytes; `--builtins` uses the generator with all builtins.
fn grow(bytes: &[u8]) -> Case {
    match std::env::args().any(|arg| arg == "--builtins") {
        true => Case::with_builtins(bytes),
        false => Case::from_bytes(bytes),
    }
}

/// Kind of a difference: its first line without numbers.
fn kind(why: &str) -> String {
    why.chars()
        .filter(|c| !c.is_ascii_digit())
        .take(110)
        .collect()
}

/// Minimises bytes that cause a difference.
fn smaller(mut bytes: Vec<u8>) -> Vec<u8> {
    let bad = |bytes: &[u8]| difference(&grow(bytes)).is_some();
    let mut size = bytes.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at + size <= bytes.len() {
            let mut less = bytes.clone();
            less.drain(at..at + size);
            if bad(&less) {
                bytes = less;
            } else {
                let mut zero = bytes.clone();
                zero[at..at + size].fill(0);
                if zero != bytes && bad(&zero) {
                    bytes = zero;
                }
                at += size;
            }
        }
        size /= 2;
    }
    bytes
}

fn main() {
    let mut args = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse::<u64>().ok());
    let seed = args.next().unwrap_or(1);
    let count = args.next().unwrap_or(COUNT);
    let mut kinds = BTreeSet::new();
    let (mut bad, mut errors) = (0, 0);
    for i in 0..count {
        let mut numbers = Numbers::new(seed << 40 ^ i);
        let count = numbers.below(MAX_BYTES);
        let bytes = numbers.bytes(count);
        let Some(why) = difference(&grow(&bytes)) else {
            continue;
        };
        bad += 1;
        if !kinds.insert(kind(&why)) {
            continue;
        }
        errors += 1;
        let bytes = smaller(bytes);
        let case = grow(&bytes);
        println!(
            "--- {}\n{}",
            difference(&case).unwrap_or_default(),
            case.short()
        );
        if errors >= 12 {
            println!("stopped after {} programs", i + 1);
            break;
        }
    }
    println!("{bad} disagreements");
    std::process::exit(i32::from(bad > 0));
}
