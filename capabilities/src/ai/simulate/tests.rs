//! Tests that simulations pass, and that they find injected faults.

use super::{Fault, check};

/// `cargo xtask budgets` tries a million.
const SEEDS: u64 = 5_000;

#[test]
fn no_tree_spends_beyond_its_budget() {
    for seed in 0..SEEDS {
        if let Err(found) = check(seed, None) {
            panic!("seed {seed}: {found}");
        }
    }
}

#[test]
fn each_fault_is_found() {
    for fault in Fault::ALL {
        let found = (0..4 * SEEDS).find_map(|seed| Some((seed, check(seed, Some(*fault)).err()?)));
        let (seed, found) = found.unwrap_or_else(|| panic!("{fault:?} stays unseen"));
        println!("{fault:?}: seed {seed}, {found}");
    }
}
