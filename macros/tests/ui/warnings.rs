//! What is told without being an error; a code that cannot be makes it fail.

use agent99::{AtomSet, atom};

#[atom(cost = 1)]
fn undocumented() {}

#[atom(cost = 1, docs = "Documented by the attribute.")]
fn by_attribute() {}

#[doc = concat!("Documented ", "elsewhere.")]
#[atom(cost = 1)]
fn elsewhere() {}

/// A family of the engine.
const TAKEN: agent99::HostCode = agent99::HostCode::new("fuel.mine");

fn main() {
    let _ = AtomSet::new().with(UNDOCUMENTED).with(BY_ATTRIBUTE).with(ELSEWHERE);
}
