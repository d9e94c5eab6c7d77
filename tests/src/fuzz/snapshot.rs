//! Damage to snapshots: whatever bytes arrive, restoring them ends in a refusal or in a
//! run that goes on within its limits.
//!
//! The hash keeps accidents out, not enemies: bytes are changed and the hash is made
//! right again.

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

/// Bytes of the header, and where its length and hash stand (`docs/snapshot.md`).
const HEADER: usize = 52;
const LENGTH: usize = 12;
const HASH: usize = 20;

/// Fuel of the runs whose snapshots are changed.
const FUEL: f64 = 100.0;

/// Steps of the host after which a run counts as endless: it has fuel for far fewer
/// blocks.
const STEPS: usize = 1_000_000;

/// The longest that is waited for an answer, in time of the run.
const LATE: Duration = Duration::from_secs(3600);

/// Calls of a run at which it is suspended, and pauses.
const CALLS: usize = 8;
const PAUSES: usize = 24;

/// A snapshot and what it is restored with.
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

/// Programs whose runs hold what runs can hold.
const PROGRAMS: [&str; 4] = [
    include_str!("snapshot/state.json"),
    include_str!("snapshot/nested.json"),
    include_str!("snapshot/text.json"),
    include_str!("snapshot/several.json"),
];

/// Snapshots of the programs here, at their calls and some of their pauses, traced and
/// not.
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

/// Answers what a run asks until it ends; `at` is told of each call and pause.
/// Fuel beyond the budget that atoms and answers of these runs charge, at most.
const MORE: f64 = 1_000_000.0;

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
                // Only calls that were answered before.
                None => now = until.unwrap_or(LATE).max(now),
            },
            Next::Call(call) => {
                at(run, true);
                open.push(call);
            }
            Next::Done(outcome) => {
                let error = outcome.error.map(|error| error.code);
                assert_ne!(error, Some(ErrorCode::Internal), "the engine blames itself");
                // What an atom charged for a call under way is paid when its run is stopped,
                // though it be more than there is. Nothing runs after that.
                let stopped = Some(ErrorCode::RunTimeout);
                let used = outcome.fuel_used.to_f64();
                // An answer may have used some more; no count is beyond all measure.
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

/// What a call gets: stores answer themselves.
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

/// Gives bytes the length and the hash that their content has.
pub fn correct(bytes: &mut [u8]) {
    if bytes.len() < HEADER {
        return;
    }
    let length = (bytes.len() - HEADER) as u64;
    bytes[LENGTH..HASH].copy_from_slice(&length.to_le_bytes());
    let hash = Sha256::digest(&bytes[HEADER..]);
    bytes[HASH..HEADER].copy_from_slice(&hash);
}

/// Restores bytes as a snapshot like another one; a run that is accepted goes on to its
/// end, and can be suspended on the way.
///
/// # Panics
/// If anything does, fuel is overdrawn, or a run does not end.
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

/// Ends of counters and of what they count towards.
pub const ENDS: [u64; 5] = [
    u64::MAX,
    u64::MAX - 1,
    i64::MAX as u64,
    i64::MIN as u64,
    u32::MAX as u64,
];

/// A copy of a snapshot with an end of a counter at one place, corrected.
pub fn end_at(bytes: &[u8], at: usize, end: u64) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    if let Some(field) = changed.get_mut(at..at + 8) {
        field.copy_from_slice(&end.to_le_bytes());
    }
    correct(&mut changed);
    changed
}

/// Bytes before the run itself: the header, and what a snapshot is bound to.
pub const BEFORE_THE_RUN: usize = HEADER + 32 + 32 + 8 + 4;

/// Changes a snapshot in one to three places and corrects it: `mutant` becomes a changed
/// copy of it.
pub fn mutate(bytes: &[u8], mutant: &mut Vec<u8>, numbers: &mut Numbers) {
    /// Of what the snapshot is bound to little is worth changing.
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

/// The first byte chooses a snapshot, the others how it is changed; then the bytes as
/// they are, as a snapshot.
///
/// # Panics
/// If [`attempt`] does.
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
