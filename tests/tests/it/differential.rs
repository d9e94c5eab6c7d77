//! The VM and the oracle agree on random well-typed programs.
//!
//! `A99_CASES=20000 cargo test -p a99-testkit --test it differential` is the
//! long form.

use a99_testkit::differential::{difference, difference_at_ends};
use a99_testkit::generate::{cases, cases_with_builtins};
use a99_testkit::vectors::{Subject, Vector, read_file};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// Programs in the short form, some seconds of a debug build.
const CASES: u32 = 1_000;

/// The seed of the short form: it tries the same programs on every machine, so
/// that a change is to blame when it fails. The long form tries others.
const SEED: u64 = 0xA99;

/// Reproducible runs, unless `A99_CASES` asks for a number of others.
pub(crate) fn config(short: u32) -> Config {
    let given = std::env::var("A99_CASES").ok();
    let cases: Option<u32> = given.and_then(|n| n.parse().ok());
    Config {
        cases: cases.unwrap_or(short),
        rng_seed: cases.map_or(RngSeed::Fixed(SEED), |_| RngSeed::Random),
        max_shrink_iters: 1_000,
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn vm_and_oracle_agree(case in cases()) {
        if let Some(why) = difference(&case) {
            prop_assert!(false, "{why}\n{case:?}");
        }
    }

    #[test]
    fn vm_and_oracle_agree_about_builtins(case in cases_with_builtins()) {
        if let Some(why) = difference(&case) {
            prop_assert!(false, "{why}\n{case:?}");
        }
    }
}

/// Budgets that are tried of each vector.
const BUDGETS: usize = 12;

/// One vector of so many in the short form; `A99_CASES` asks for all of them.
const ONE_OF: usize = 8;

/// Vectors whose runs are not alike on purpose, by the beginning of their names.
const NOT_ALIKE: [(&str, &str); 16] = [
    (
        "xt-memoize",
        "in which event the free variables of a body are paid",
    ),
    ("cx-text-cache-condition", "the same"),
    ("fe-memoize-inside", "the same"),
    ("loop-memo", "the same"),
    (
        "quirk-validate-stride",
        "the machine looks at one element less of a long list",
    ),
    (
        "quirk-abort",
        "an abort is worded as the references do by the oracle",
    ),
    ("err-time-abort", "the same"),
    ("loop-abort", "the same"),
    ("quirk-alias-cycle", "what a value that holds itself costs"),
    (
        "quirk-proto-member-array-key",
        "a constant key is refused when compiling",
    ),
    (
        "v3-query-where-missing",
        "the machine says more about what is missing",
    ),
    ("agent-json-repair-never", "texts of the JSON parser"),
    ("v3-procedure", "tokens of procedures are random"),
    ("random-", "random values"),
    ("uuid-", "random values"),
    ("fuel-atom-", "random values"),
];

/// Whether engines run a vector and give the same each time: random values are named in
/// programs, or ignored by a vector.
fn is_compared(vector: &Vector) -> bool {
    let listed = NOT_ALIKE.iter().any(|(id, _)| vector.id.starts_with(id));
    // Some are run with what no run takes, such as a budget below zero.
    let is_run = vector.run_spec().is_ok();
    !listed && is_run && vector.ignore.is_empty() && !vector.id.contains("random")
}

fn agree_wherever_the_fuel_ends(metered: bool) {
    let one_of = std::env::var("A99_CASES").map_or(ONE_OF, |_| 1);
    let files = crate::vectors::files();
    let vectors = files.iter().flat_map(|f| read_file(f).expect("vectors"));
    let bad: Vec<String> = vectors
        .filter(|v| matches!(v.subject, Subject::Program) && is_compared(v))
        .step_by(one_of)
        .filter_map(|vector| difference_at_ends(&vector, metered, BUDGETS).err())
        .collect();
    assert!(bad.is_empty(), "{}: {}", bad.len(), bad.join("\n"));
}

#[test]
fn flat_runs_agree_wherever_the_fuel_ends() {
    agree_wherever_the_fuel_ends(false);
}

#[test]
fn metered_runs_agree_wherever_the_fuel_ends() {
    agree_wherever_the_fuel_ends(true);
}
