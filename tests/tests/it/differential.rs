//! The VM and the oracle agree on random well-typed programs.
//!
//! `A99_CASES=20000 cargo test -p a99-testkit --test it differential` is the
//! long form.

use a99_testkit::differential::difference;
use a99_testkit::generate::cases;
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Programs in the short form, some seconds of a debug build.
const CASES: u32 = 1_000;

fn cases_wanted() -> u32 {
    let given = std::env::var("A99_CASES").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

proptest! {
    #![proptest_config(Config {
        cases: cases_wanted(),
        max_shrink_iters: 1_000,
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn vm_and_oracle_agree(case in cases()) {
        if let Some(why) = difference(&case) {
            prop_assert!(false, "{why}\n{case:?}");
        }
    }
}
