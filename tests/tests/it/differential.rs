//! The VM and the oracle agree on random well-typed programs.
//!
//! `A99_CASES=20000 cargo test -p a99-testkit --test it differential` is the
//! long form.

use a99_testkit::differential::difference;
use a99_testkit::generate::{cases, cases_with_builtins};
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
