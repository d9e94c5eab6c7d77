//! The compiled tier does what the interpreter does.
//!
//! `A99_CASES=20000 cargo test -p a99-testkit --features jit-eager --test it tier` is the long
//! form.

use super::differential::config;
use a99_testkit::numbers::Numbers;
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

/// What the comparison is worth: most of the programs have loops that are compiled.
#[test]
fn loops_of_random_programs_are_compiled() {
    const PROGRAMS: usize = 40;
    let mut numbers = Numbers::new(102);
    let compiled: Vec<usize> = (0..PROGRAMS)
        .map(|_| tier::agree(&numbers.bytes(300)))
        .collect();
    let with_some = compiled.iter().filter(|loops| **loops > 0).count();
    assert!(with_some > PROGRAMS / 2, "{compiled:?}");
}
