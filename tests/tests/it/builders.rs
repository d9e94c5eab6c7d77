//! Random chains of builder calls: the JSON that they write is read as the
//! same program and compiles alike.

use a99_testkit::fuzz::builders;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// Chains, about a second of a debug build.
const CASES: u32 = 2_000;

/// The same chains on every machine, so that a change is to blame when it
/// fails; the fuzz target tries others.
const SEED: u64 = 0xA99;

/// Longest string of bytes that a chain starts from.
const MAX_BYTES: usize = 600;

fn config() -> Config {
    Config {
        cases: CASES,
        rng_seed: RngSeed::Fixed(SEED),
        max_shrink_iters: 1_000,
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn chains_are_read_as_they_were_written(
        bytes in prop::collection::vec(any::<u8>(), 0..MAX_BYTES)
    ) {
        builders(&bytes);
    }
}
