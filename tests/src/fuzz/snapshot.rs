//! Damaged snapshots: restoring any bytes ends in a refusal, or in a run that continues within
//! its limits.
//!
//! The hash detects accidents, not attackers: bytes are changed and the hash is corrected.

use super::artifact::{Fate, change};
use super::{ENGINE, HEAP_BYTES};
use crate::numbers::Numbers;
use a99_core::fuel::Fuel;
use agent99::{
    Agent, AtomError, Call, Capabilities, CostModel, ErrorCode, HostReply, Next, Run, RunOptions,
    Value,
};
use sha2::{Digest, Sha256};
use std::future::Future;
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Bytes of the header, with the places of its length and hash (`docs/snapshot.md`).
const HEADER: usize = 52;
const LENGTH: usize = 12;
const HASH: usize = 20;

/// Fuel of the runs whose snapshots are mutated.
const FUEL: f64 = 100.0;

/// Host steps after which a run counts as endless: its fuel pays for far fewer blocks.
const STEPS: usize = 1_000_000;

/// Longest wait for an answer, in time of the run.
const LATE: Duration = Duration::from_secs(3600);

/// Calls and pauses of a run at which it is suspended.
const CALLS: usize = 8;
const PAUSES: usize = 24;

/// A snapshot with the data to restore it.
pub struct Saved {
    agent: Agent,
    options: RunOptions,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Saved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saved")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// Programs whose runs contain every kind of state.
const PROGRAMS: [&str; 4] = [
    include_str!("snapshot/state.json"),
    include_str!("snapshot/nested.json"),
    include_str!("snapshot/text.json"),
    include_str!("snapshot/several.json"),
];

/// Snapshots of these programs, at their calls and some of their pauses, with and without
/// trace.
pub static SEEDS: LazyLock<Vec<Saved>> = LazyLock::new(|| {
    let mut seeds = Vec::new();
    for program in PROGRAMS {
        let agent = ENGINE.compile(program).expect("a program");
        for (trace, model) in [(false, CostModel::Metered), (true, CostModel::Flat)] {
            let mut options = RunOptions::new().trace(trace).cost_model(model);
            options.fuel = Fuel::from_decimal(FUEL).expect("a budget");
            options.limits.heap_bytes = HEAP_BYTES;
            let (mut calls, mut pauses) = (0, 0);
            let mut run = start(&agent, &options);
            let ended = drive(&mut run, &mut |run, is_call| {
                let count = if is_call { &mut calls } else { &mut pauses };
                *count += 1;
                if *count <= if is_call { CALLS } else { PAUSES } {
                    seeds.push(Saved {
                        agent: agent.clone(),
                        options: options.clone(),
                        bytes: run.snapshot().expect("a run that waits"),
                    });
                }
            });
            assert_eq!(ended, Fate::Ran(None), "{program}");
            assert!(calls > 1 && pauses > 1, "{program}");
        }
    }
    seeds
});

fn start(agent: &Agent, options: &RunOptions) -> Run {
    let args = [("n", Value::from(3.0)), ("s", "täxt 😀".into())];
    let args = Value::Object(args.into_iter().collect());
    let mut run = ENGINE.start(agent, args, options.clone(), Capabilities::none());
    run.set_slice(1);
    run
}

/// Most fuel beyond the budget that atoms and answers of these runs charge.
const MORE: f64 = 1_000_000.0;

/// Answers the calls of a run until it ends; `at` sees each call and pause.
fn drive(run: &mut Run, at: &mut dyn FnMut(&Run, bool)) -> Fate {
    let mut now = Duration::ZERO;
    let mut open = Vec::new();
    for step in 0..STEPS {
        match run.next(now) {
            Next::Pause => at(run, false),
            Next::Wait(until) => match open.pop() {
                Some(call) => {
                    let call: Box<Call> = call;
                    let id = call.id.clone();
                    run.answer(&id, answer(*call, step)).expect("it waits");
                    at(run, true);
                }
                // Only calls that were already answered.
                None => now = until.unwrap_or(LATE).max(now),
            },
            Next::Call(call) => {
                at(run, true);
                open.push(call);
            }
            Next::Done(outcome) => {
                let error = outcome.error.map(|error| error.code);
                assert_ne!(error, Some(ErrorCode::Internal), "the engine blames itself");
                // A stopped run pays for an atom's call in flight, even beyond its fuel.
                // Nothing runs after that.
                let stopped = Some(ErrorCode::RunTimeout);
                let used = outcome.fuel_used.to_f64();
                // An answer may have used more; the bound excludes absurd counts.
                assert!(used <= FUEL + MORE, "{used} units of {FUEL}, and {error:?}");
                if error != Some(ErrorCode::OutOfFuel) && error != stopped {
                    assert!(used <= FUEL, "{used} units of {FUEL}, and {error:?}");
                }
                return Fate::Ran(error);
            }
        }
    }
    panic!("the run went on");
}

/// The answer to a call: stores answer by themselves.
fn answer(call: Call, step: usize) -> Result<HostReply, AtomError> {
    const STORES: [&str; 5] = [
        "storeGet",
        "storeSet",
        "storeDelete",
        "storeList",
        "storeCompareAndSet",
    ];
    if !STORES.contains(&&*call.atom) {
        let text = format!("answer {step} \u{fc}");
        return Ok(HostReply::from(Value::from(text.as_str())));
    }
    let mut answer = pin!(call.start(None));
    match answer
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a store waits"),
    }
}

/// Sets the correct length and hash of the content.
pub fn correct(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let length = (bytes.len() - HEADER) as u64;
    bytes[LENGTH..HASH].copy_from_slice(&length.to_le_bytes());
    let hash = Sha256::digest(&bytes[HEADER..]);
    bytes[HASH..HEADER].copy_from_slice(&hash);
}

/// Restores bytes as a variant of another snapshot; an accepted run continues to its end, with
/// suspensions.
///
/// # Panics
/// If any step panics, fuel is overdrawn, or a run does not end.
pub fn attempt(like: &Saved, bytes: &[u8]) -> Fate {
    let granted = Capabilities::none();
    let mut run = match ENGINE.restore(&like.agent, bytes, like.options.clone(), granted) {
        Ok(run) => run,
        Err(error) => {
            assert!(!error.help().is_empty() && !error.message.is_empty());
            return Fate::Refused(error.code);
        }
    };
    let mut seen = 0;
    drive(&mut run, &mut |run, _| {
        seen += 1;
        if seen <= 2 {
            let bytes = run.snapshot().expect("a run that waits");
            let granted = Capabilities::none();
            let again = ENGINE.restore(&like.agent, &bytes, like.options.clone(), granted);
            again.expect("what was accepted is accepted again");
        }
    })
}

/// Boundary values of counters and limits.
pub const ENDS: [u64; 5] = [
    u64::MAX,
    u64::MAX - 1,
    i64::MAX as u64,
    i64::MIN as u64,
    u32::MAX as u64,
];

/// A copy of a snapshot with a counter at a boundary value, corrected.
pub fn end_at(bytes: &[u8], at: usize, end: u64) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    if let Some(field) = changed.get_mut(at..at + 8) {
        field.copy_from_slice(&end.to_le_bytes());
    }
    correct(&mut changed);
    changed
}

/// Bytes before the run's state: the header, and the bindings of a snapshot.
pub const BEFORE_THE_RUN: usize = HEADER + 32 + 32 + 8 + 4;

/// Changes a snapshot in one to three places and corrects it: `mutant` becomes a changed copy.
pub fn mutate(bytes: &[u8], mutant: &mut Vec<u8>, numbers: &mut Numbers) {
    /// The bindings are rarely worth changing.
    const BINDING: usize = HEADER + 72;
    mutant.clear();
    mutant.extend_from_slice(bytes);
    for _ in 0..=numbers.below(3) {
        let from = if numbers.below(32) == 0 { 0 } else { BINDING };
        let end = mutant.len();
        change(mutant, from.min(end)..end, numbers);
    }
    correct(mutant);
}

/// The first byte chooses a snapshot, the others its changes; then the unchanged bytes are
/// tried as a snapshot.
///
/// # Panics
/// If [`attempt`] panics.
pub fn any_bytes(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let seed = &SEEDS[usize::from(*first) % SEEDS.len()];
    let mut bytes = seed.bytes.clone();
    for piece in rest.chunks_exact(4) {
        let at = usize::from(piece[0]) << 8 | usize::from(piece[1]);
        let at = HEADER + at % (bytes.len() - HEADER);
        match piece[2] % 4 {
            0 => bytes[at] ^= piece[3],
            1 => bytes[at] = piece[3],
            2 => bytes[at] = bytes[at].wrapping_add(piece[3]),
            _ => {
                bytes.remove(at);
            }
        }
        if bytes.len() <= HEADER {
            break;
        }
    }
    correct(&mut bytes);
    attempt(seed, &bytes);
    let mut plain = seed.bytes[..HEADER].to_vec();
    plain.extend_from_slice(rest);
    attempt(seed, &plain);
    correct(&mut plain);
    attempt(seed, &plain);
}
