//! Damaged artifacts: reading any bytes ends in a refusal, or in a program that runs within its
//! limits.
//!
//! A file's hash detects accidents, not attackers, who can compute it. So bytes are changed and
//! the hash is corrected, which exercises the later checks. Accepted programs run without a
//! deadline: only fuel and heap stop them, and a run that takes longer than any honest one with
//! that fuel counts as a failure.

use super::{ENGINE, HEAP_BYTES};
use crate::numbers::Numbers;
use a99_core::artifact::{DecodeOptions, EncodeOptions, decode};
use a99_core::fuel::Fuel;
use a99_core::verify::Artifact;
use agent99::{Capabilities, Engine, ErrorCode, RunOptions, Value};
use sha2::{Digest, Sha256};

/// Bytes of the header, with the places of its hash and length (`docs/a99b.md`).
const HEADER: usize = 64;
const HASH: usize = 32;
const LENGTH: usize = 24;

/// Fuel of a run.
const FUEL: f64 = 5.0;

/// Longest time of a run with so little fuel in milliseconds, far above an honest one even on a
/// busy machine: a slower run was not metered.
const TOO_LONG_MS: u64 = 20_000;

/// Replacement words: limits and their neighbours.
const WORDS: [u32; 12] = [
    0,
    1,
    2,
    3,
    255,
    256,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    u32::MAX,
    65_535,
    64,
];

/// Outcome of reading bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Refused with this code.
    Refused(&'static str),
    /// Accepted, and its run ended, possibly with an error.
    Ran(Option<ErrorCode>),
}

/// Sets the correct hash of the content.
pub fn correct_hash(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let said = [0, 1, 2, 3].map(|i| bytes[LENGTH + i]);
    let end = (u32::from_le_bytes(said) as usize).clamp(HEADER, bytes.len());
    let mut hash = Sha256::new();
    hash.update(&bytes[..HASH]);
    hash.update(&bytes[HEADER..end]);
    bytes[HASH..HEADER].copy_from_slice(&hash.finalize());
}

/// Reads bytes as a file; an accepted program runs with little fuel.
///
/// # Panics
/// If any step panics, fuel is overdrawn, or a run does not end.
pub fn attempt(bytes: &[u8]) -> Fate {
    let agent = match ENGINE.load(bytes) {
        Ok(agent) => agent,
        Err(error) => {
            assert!(!error.help().is_empty() && !error.message().is_empty());
            return Fate::Refused(error.code());
        }
    };
    let mut options = RunOptions::new().timeout_ms(TOO_LONG_MS);
    let budget = Fuel::from_decimal(FUEL).unwrap_or(options.fuel);
    options.fuel = budget;
    options.limits.heap_bytes = HEAP_BYTES;
    let outcome = ENGINE.run_sync_with(&agent, args(), options, Capabilities::none());
    let error = outcome.error.map(|error| error.code);
    assert_ne!(error, Some(ErrorCode::RunTimeout), "the run went on");
    // An internal error would be the engine's fault, for any file.
    assert_ne!(error, Some(ErrorCode::Internal), "the engine blames itself");
    // Work that cannot be paid is charged but not done: only then is more fuel used than
    // available.
    if error != Some(ErrorCode::OutOfFuel) {
        assert!(
            outcome.fuel_used.micro() <= budget.micro(),
            "{} of {budget} fuel used, and {error:?}",
            outcome.fuel_used
        );
    }
    Fate::Ran(error)
}

fn args() -> Value {
    let xs = Value::Array(vec![1.0.into(), "b".into(), Value::Null]);
    let members = [("n", Value::from(3.0)), ("s", "text".into()), ("xs", xs)];
    Value::Object(members.into_iter().collect())
}

/// Any bytes, unchanged and with the correct hash. Decoded files are written again without
/// change.
///
/// # Panics
/// If they change, or [`attempt`] panics.
pub fn any_bytes(data: &[u8]) {
    let mut bytes = data.to_vec();
    for corrected in [false, true] {
        if corrected {
            correct_hash(&mut bytes);
        }
        attempt(&bytes);
        if decode(&bytes, &DecodeOptions::default()).is_err() {
            continue;
        }
        if let Ok(artifact) = Artifact::from_bytes(&bytes, &DecodeOptions::default()) {
            let again = artifact.to_bytes(&EncodeOptions::default());
            let again = again.expect("what was read can be written");
            assert!(bytes.starts_with(&again), "another file is written");
        }
    }
}

/// The first half of the bytes chooses a program, the second half the changes of its file.
///
/// # Panics
/// If [`attempt`] panics.
pub fn mutated(data: &[u8]) {
    let (seed, damage) = data.split_at(data.len() / 2);
    let program = crate::generate::Case::from_bytes(seed).program();
    let Ok(agent) = ENGINE.compile_value(&program) else {
        return;
    };
    let strip = damage.first().is_some_and(|byte| byte & 1 == 1);
    let Ok(bytes) = agent.to_bytes(&EncodeOptions { strip }) else {
        return;
    };
    let mut mutant = bytes.clone();
    let mut numbers = Numbers::new(damage.iter().fold(0, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    }));
    mutate(&bytes, &mut mutant, &mut numbers);
    attempt(&mutant);
}

/// Changes a file in one to three places and corrects the hash: `mutant` becomes a changed copy
/// of `file`. Its capacity is reused.
pub fn mutate(file: &[u8], mutant: &mut Vec<u8>, numbers: &mut Numbers) {
    mutant.clear();
    mutant.extend_from_slice(file);
    // Mostly executed parts; names and source rarely change the outcome.
    let functions = section(file, 16).unwrap_or(HEADER..file.len());
    for _ in 0..=numbers.below(3) {
        if numbers.below(2) == 0 {
            change_op(mutant, functions.start, numbers);
            continue;
        }
        let range = match numbers.below(8) {
            0 => 0..file.len(),
            1 | 2 => HEADER..functions.start,
            _ => functions.clone(),
        };
        if mutant.len() == file.len() {
            change(mutant, range, numbers);
        }
    }
    correct_hash(mutant);
}

/// The range of the section with this number.
fn section(file: &[u8], wanted: u32) -> Option<std::ops::Range<usize>> {
    let word = |at: usize| {
        let bytes = file.get(at..at + 4)?;
        Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let count = word(28)?;
    let entry = (0..count).map(|i| HEADER + 12 * i as usize);
    let mut entry = entry.filter(|at| word(*at) == Some(wanted));
    let at = entry.next()?;
    let start = word(at + 4)? as usize;
    Some(start..start + word(at + 8)? as usize)
}

/// One change of an instruction of the main program that leaves it valid in form: an operand, a
/// copy of another, or a swap with it.
fn change_op(bytes: &mut [u8], functions: usize, numbers: &mut Numbers) {
    // Before the code: count, name, params, registers, slots, length.
    let first = functions + 4 + 4 + 1 + 1 + 4 + 4;
    let Some(count) = bytes.get(first - 4..first) else {
        return;
    };
    let count = u32::from_le_bytes([count[0], count[1], count[2], count[3]]) as usize;
    let (at, other) = (
        first + 8 * numbers.below(count),
        first + 8 * numbers.below(count),
    );
    if at.max(other) + 8 > bytes.len() {
        return;
    }
    match numbers.below(8) {
        0 => bytes.copy_within(other..other + 8, at),
        1 => (0..8).for_each(|i| bytes.swap(at + i, other + i)),
        2 => bytes[at] = bytes[other],
        n => {
            // A used byte operand, or the low byte of the word.
            let operand = at + [1, 2, 3, 4, 4][n - 3];
            let small = numbers.below(12) as u8;
            bytes[operand] = match numbers.below(3) {
                0 => small,
                1 => bytes[operand].wrapping_add(1),
                _ => bytes[other + (operand - at)],
            };
        }
    }
}

/// One change inside a range.
pub(super) fn change(bytes: &mut Vec<u8>, range: std::ops::Range<usize>, numbers: &mut Numbers) {
    let at = range.start + numbers.below(range.len());
    let other = range.start + numbers.below(range.len());
    match numbers.below(64) {
        0..=24 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << numbers.below(8);
            }
        }
        25..=32 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = numbers.next() as u8;
            }
        }
        33..=42 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = byte.wrapping_add(if numbers.below(2) == 0 { 1 } else { 255 });
            }
        }
        43..=48 => {
            let word = WORDS[numbers.below(WORDS.len())].to_le_bytes();
            if let Some(field) = bytes.get_mut(at..at + 4) {
                field.copy_from_slice(&word);
            }
        }
        // Swaps or duplicates fields and instructions.
        49..=61 => {
            let size = [4, 8, 8, 16][numbers.below(4)];
            let (a, b) = (at.min(other), at.max(other));
            if a + size <= b && b + size <= bytes.len() {
                if numbers.below(2) == 0 {
                    let (left, right) = bytes.split_at_mut(b);
                    left[a..a + size].swap_with_slice(&mut right[..size]);
                } else {
                    bytes.copy_within(a..a + size, b);
                }
            }
        }
        62 => bytes.truncate(at),
        _ => {
            let byte = numbers.next() as u8;
            if at <= bytes.len() {
                bytes.insert(at, byte);
            }
        }
    }
}

/// Files to mutate: the examples' and generated programs, whole and stripped, each small.
///
/// # Panics
/// If none compiles.
#[must_use]
pub fn seeds(count: usize, seed: u64) -> Vec<Vec<u8>> {
    let engine: &Engine = &ENGINE;
    let mut numbers = Numbers::new(seed);
    let mut files = Vec::new();
    let add = |agent: &agent99::Agent, files: &mut Vec<Vec<u8>>| {
        // The source costs time, and no check depends on it.
        let strip = !files.len().is_multiple_of(4);
        files.extend(agent.to_bytes(&EncodeOptions { strip }));
    };
    for example in EXAMPLES {
        let agent = engine.compile(example).expect("an example compiles");
        add(&agent, &mut files);
    }
    while files.len() < count {
        let n = 40 + numbers.below(400);
        let bytes: Vec<u8> = (0..n).map(|_| numbers.next() as u8).collect();
        let program = crate::generate::Case::from_bytes(&bytes).program();
        if let Ok(agent) = engine.compile_value(&program) {
            add(&agent, &mut files);
        }
    }
    files
}

const EXAMPLES: [&str; 4] = [
    include_str!("../../../examples/invoice/agent.json"),
    include_str!("../../../examples/cleaning/agent.json"),
    include_str!("../../../examples/retry/agent.json"),
    include_str!("../../../examples/paging/agent.json"),
];
