//! Runs that are suspended and restored end as if nothing had happened.

use super::vectors::{files, list};
use a99_testkit::fuzz::artifact::Fate;
use a99_testkit::fuzz::snapshot::{BEFORE_THE_RUN, ENDS, SEEDS, attempt, end_at, mutate};
use a99_testkit::numbers::Numbers;
use a99_testkit::vectors::{Engine as _, SuspendedEngine, read_deviations, replay};

/// Suspends the runs of some files of vectors; how many snapshots were restored.
fn suspends(names: &[&str], engine: &SuspendedEngine) -> usize {
    let listed = read_deviations(&list()).expect("the list");
    let mut files = files();
    files.retain(|file| {
        file.file_stem()
            .is_some_and(|stem| names.iter().any(|n| stem == *n))
    });
    assert_eq!(files.len(), names.len());
    let report = replay(engine, &files, &listed).expect("a replay");
    assert!(report.failed.is_empty(), "{}", report.render());
    assert!(report.passed > 20, "{} of {}", report.passed, engine.name());
    engine.taken()
}

/// Those that call most. The long form, of all files and pauses, is
/// `cargo xtask snapshots`.
#[test]
fn vectors_survive_each_of_their_calls() {
    let files = [
        "agents",
        "io",
        "memo_cache",
        "own-chunks",
        "own-shell",
        "own-v3",
    ];
    assert!(suspends(&files, &SuspendedEngine::at_all(u32::MAX)) > 200);
}

#[test]
fn vectors_survive_pauses() {
    assert!(suspends(&["trace", "scoping"], &SuspendedEngine::at_all(1)) > 100);
}

/// Changed at random, with the right hash: what is accepted runs on within its limits.
/// The long form is `cargo xtask snapshots --mutants 100000`.
#[test]
fn changed_snapshots_are_refused_or_run() {
    const MUTANTS: usize = 3_000;
    let mut numbers = Numbers::new(17);
    let mut mutant = Vec::new();
    let (mut refused, mut ran) = (0, 0);
    for _ in 0..MUTANTS {
        let seed = &SEEDS[numbers.below(SEEDS.len())];
        mutate(&seed.bytes, &mut mutant, &mut numbers);
        match attempt(seed, &mutant) {
            Fate::Refused(_) => refused += 1,
            Fate::Ran(_) => ran += 1,
        }
    }
    assert!(
        refused > MUTANTS / 10 && ran > MUTANTS / 20,
        "{refused} {ran}"
    );
}

/// What a run reports that was forged is within its budget, but for one micro-unit that ends
/// it: an answer, a charge or a compaction that costs more than there is.
#[test]
fn d13_a_forged_count_reports_no_fuel_beyond_the_budget() {
    let mut seeds: Vec<_> = SEEDS.iter().collect();
    seeds.sort_by_key(|seed| seed.bytes.len());
    let mut ran = 0;
    for seed in seeds.iter().take(6) {
        for at in BEFORE_THE_RUN..seed.bytes.len() - 8 {
            let changed = end_at(&seed.bytes, at, i64::MAX as u64);
            ran += usize::from(matches!(attempt(seed, &changed), Fate::Ran(_)));
        }
    }
    assert!(ran > 20, "{ran}");
}

/// Counters at their ends, at each place of snapshots of all programs: they are refused,
/// or nothing overflows, which builds of tests would tell.
#[test]
fn no_counter_runs_over() {
    let (mut refused, mut ran) = (0, 0);
    // Small ones have each kind of field as well.
    let mut seeds: Vec<_> = SEEDS.iter().collect();
    seeds.sort_by_key(|seed| seed.bytes.len());
    for (number, seed) in seeds.iter().enumerate().step_by(9) {
        for at in BEFORE_THE_RUN..seed.bytes.len() - 8 {
            let end = ENDS[(at + number) % ENDS.len()];
            match attempt(seed, &end_at(&seed.bytes, at, end)) {
                Fate::Refused(_) => refused += 1,
                Fate::Ran(_) => ran += 1,
            }
        }
        // Step, time, budget and fuel stand first.
        for at in BEFORE_THE_RUN..BEFORE_THE_RUN + 32 {
            for end in ENDS {
                attempt(seed, &end_at(&seed.bytes, at, end));
            }
        }
    }
    assert!(refused > 1000 && ran > 1000, "{refused} {ran}");
}
