//! What a process really holds while it runs an attack: each program of
//! `a99_testkit::attacks` runs in a process of its own, whose peak of resident
//! memory the kernel tells.
//!
//! `cargo test -p a99-testkit --test residents -- --nocapture` prints a line
//! for each; `A99_ATTACKS=a8` runs those whose name contains `a8`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a line for each attack"
)]

use a99_testkit::attacks::{self, Attack, CEILING, End};
use agent99::{Engine, Outcome, RunOptions};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a process may hold beside the ceiling and a quarter of it, in bytes:
/// the program itself, its stacks, and compiled code.
const BESIDES: usize = 30 << 20;

/// Names the attack that a child process runs.
const NAME: &str = "A99_ATTACK";

/// Restricts the test to attacks whose name contains this.
const ONLY: &str = "A99_ATTACKS";

/// The line by which a child tells its peak in KiB.
const PEAK: &str = "peak KiB: ";

fn run(attack: &Attack) -> Outcome {
    let program = agent99::json!({"op": "seq", "steps": attack.steps}).to_string();
    let engine = Engine::new();
    let agent = engine.compile(program).expect("a program");
    let args = attack.args.clone();
    engine.run_sync_with(&agent, args, options(attack), (attack.grants)())
}

fn options(attack: &Attack) -> RunOptions {
    let options = RunOptions::new().fuel(1e10).expect("fuel");
    (attack.options)(options.timeout_ms(600_000).heap_bytes(CEILING))
}

fn judge(attack: &Attack, outcome: &Outcome) {
    let code = outcome.error.as_ref().map(|error| error.code);
    let fits = match attack.end {
        End::Any => code != Some(agent99::ErrorCode::Internal),
        End::HeapLimit => code == Some(agent99::ErrorCode::HeapLimit),
        End::Fails(wanted) => code == Some(wanted),
        End::Returns => code.is_none(),
    };
    assert!(fits, "{}: {:?}", attack.name, outcome.error);
}

/// The most that this process ever held, in KiB.
#[cfg(target_os = "linux")]
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What a child process does; without a name it is one of the tests, and has
/// nothing to do.
#[test]
#[cfg(target_os = "linux")]
fn one() {
    let Ok(name) = std::env::var(NAME) else {
        return;
    };
    let all = attacks::all();
    let attack = all.iter().find(|attack| attack.name == name);
    let attack = attack.expect("an attack of this name");
    let outcome = run(attack);
    judge(attack, &outcome);
    let fuel = outcome.fuel_used.to_f64();
    println!("{PEAK}{} fuel {fuel:.1}", peak().expect("a peak"));
}

/// What is wrong with an attack's run in a process of its own.
fn finding(attack: &Attack) -> Option<String> {
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "one", "--nocapture", "--test-threads=1"])
        .env(NAME, attack.name)
        .output()
        .expect("a child");
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    let line = said.lines().find_map(|line| line.split_once(PEAK));
    let peak: Option<usize> = line.and_then(|(_, l)| l.split(' ').next()?.parse().ok());
    println!("{:>8} KiB  {}", peak.unwrap_or_default(), attack.name);
    let ceiling = options(attack).limits.heap_bytes;
    let most = ceiling + ceiling / 4 + BESIDES;
    match peak {
        Some(peak) if child.status.success() => {
            (peak << 10 > most).then(|| format!("{}: {} MiB", attack.name, peak >> 10))
        }
        _ => {
            let why = String::from_utf8_lossy(&child.stderr).into_owned();
            let why: Vec<&str> = why.lines().take(4).collect();
            Some(format!("{}: {}", attack.name, why.join(" | ")))
        }
    }
}

/// Runs the attacks of a kind, each in a process of its own.
#[cfg(target_os = "linux")]
fn stay_within_their_ceiling(chosen: fn(&Attack) -> bool) {
    /// Processes at a time.
    const AT_ONCE: usize = 2;
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut attacks = attacks::all();
    attacks.retain(chosen);
    assert!(!attacks.is_empty(), "no attacks");
    attacks.retain(|attack| attack.name.contains(&only));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut bad = Vec::new();
        while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
            bad.extend(finding(attack));
        }
        bad
    };
    let bad: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        ends.flatten().collect()
    });
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a8_attacks_stay_within_their_ceiling() {
    stay_within_their_ceiling(|attack| !attack.name.starts_with("a10_"));
}

#[test]
#[cfg(target_os = "linux")]
fn a10_long_errors_stay_within_their_ceiling() {
    stay_within_their_ceiling(|attack| attack.name.starts_with("a10_"));
}
