//! Damage to artifacts: whatever bytes arrive, reading them ends in a refusal or
//! in a program that runs within its limits.
//!
//! A file's hash keeps accidents out, not enemies, who can compute it. So bytes
//! are changed and the hash is made right again, which lets the checks behind
//! it be reached. What is accepted runs with the deadline off: only fuel and
//! heap stop it, and a run that takes longer than any honest one could at that
//! fuel counts as a failure.

use super::{ENGINE, HEAP_BYTES};
use crate::numbers::Numbers;
use a99_core::artifact::{DecodeOptions, EncodeOptions, decode};
use a99_core::fuel::Fuel;
use a99_core::verify::Artifact;
use agent99::{Capabilities, Engine, ErrorCode, RunOptions, Value};
use sha2::{Digest, Sha256};

/// Bytes of the header, and where its hash and length stand (`docs/a99b.md`).
const HEADER: usize = 64;
const HASH: usize = 32;
const LENGTH: usize = 24;

/// Fuel of a run.
const FUEL: f64 = 5.0;

/// The longest that a run with so little fuel may take in milliseconds, far
/// beyond what an honest one takes even on a busy machine: one that the deadline
/// had to end was not metered.
const TOO_LONG_MS: u64 = 20_000;

/// Words that are put in place of others: limits, and what they are next to.
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

/// What became of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Refused with this code.
    Refused(&'static str),
    /// Accepted, and its run ended: with the code of an error, or none.
    Ran(Option<ErrorCode>),
}

/// Gives bytes the hash that their content has.
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

/// Reads bytes as a file; what is accepted runs with little.
///
/// # Panics
/// If anything does, fuel is overdrawn, or a run does not end.
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
    // Whatever a file says is not the engine's fault.
    assert_ne!(error, Some(ErrorCode::Internal), "the engine blames itself");
    // What cannot be paid any more is charged and not done: only then is more
    // used than was there.
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

/// Any bytes, as they are and with the right hash. What decodes is written
/// again as it was read.
///
/// # Panics
/// If it is not, or [`attempt`] does.
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

/// The first half of the bytes chooses a program, the second how its file is
/// changed.
///
/// # Panics
/// If [`attempt`] does.
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

/// Changes a file in one to three places and corrects the hash: `mutant` becomes
/// a changed copy of `file`. Its room is used again.
pub fn mutate(file: &[u8], mutant: &mut Vec<u8>, numbers: &mut Numbers) {
    mutant.clear();
    mutant.extend_from_slice(file);
    // Mostly what the machine runs; names and source seldom change a fate.
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

/// Where the section of this number lies.
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

/// One change of an instruction of the main program that leaves it one: an
/// operand, a copy of another, or a swap with it.
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
            // An operand of a byte that is used, or the low byte of the word.
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
        // Fields and instructions change places, or are there twice.
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

/// Files to change: the examples' and generated programs, whole and stripped,
/// each small.
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
