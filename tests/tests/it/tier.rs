//! The compiled tier does what the interpreter does.
//!
//! `A99_CASES=20000 cargo test -p a99-testkit --features jit-eager --test it tier` is the long
//! form.

use super::differential::config;
use a99_testkit::tier;
use proptest::prelude::*;

/// Programs in the short form.
const CASES: u32 = 300;

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn compiled_loops_are_the_interpreters(
        bytes in prop::collection::vec(any::<u8>(), 8..400),
    ) {
        tier::agree(&bytes);
    }
}
