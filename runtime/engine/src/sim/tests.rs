//! Tests of simulations: sound ones break nothing, and each fault is found.

use super::{Fault, first_violation, simulate};

/// `cargo xtask simulate` tries a million.
const SEEDS: u64 = 20_000;

#[test]
fn no_promise_is_broken() {
    if let Some((seed, _, found)) = first_violation(0..SEEDS, None) {
        panic!("seed {seed}, of which `cargo xtask simulate` shows all: {found:#?}");
    }
}

#[test]
fn each_fault_is_found() {
    for fault in Fault::ALL {
        let found = first_violation(0..SEEDS, Some(*fault));
        let Some((seed, _, found)) = found else {
            panic!("{fault} stays unseen");
        };
        println!("{fault}: seed {seed}, {}", found[0]);
        assert_eq!(fault.name().parse(), Ok(*fault));
    }
}

#[test]
fn a_seed_has_one_history() {
    for seed in 0..50 {
        assert_eq!(simulate(seed, None), simulate(seed, None));
    }
}
