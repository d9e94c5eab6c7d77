//! Random chains of builder calls: the JSON that they write is read as the
//! same program and compiles alike.

use crate::differential::config;
use a99_testkit::fuzz::builders;
use proptest::prelude::*;

/// Chains, about a second of a debug build.
const CASES: u32 = 2_000;

/// Longest string of bytes that a chain starts from.
const MAX_BYTES: usize = 600;

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn chains_are_read_as_they_were_written(
        bytes in prop::collection::vec(any::<u8>(), 0..MAX_BYTES)
    ) {
        builders(&bytes);
    }
}
