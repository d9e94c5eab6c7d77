//! Keys and values of the attribute.
#![allow(deprecated, unused, non_snake_case)]

use agent99::atom;

#[atom]
fn no_cost() {}

#[atom(name = "x")]
fn no_cost_either() {}

#[atom(cost = -1)]
fn negative() {}

#[atom(cost = "5")]
fn quoted() {}

#[atom(cost = 1 + 1)]
fn computed() {}

#[atom(cost = price())]
fn called() {}

#[atom(cost = 1e999)]
fn infinite() {}

#[atom(cost)]
fn no_value() {}

#[atom(cost = 1, price = 2, timeout = 5, nonsense)]
fn unknown_keys() {}

#[atom(cost = 1, cost = 2, name = "a", name = "b")]
fn twice() {}

#[atom(cost = 1, name = "a b")]
fn bad_name() {}

#[atom(cost = 1, name = "")]
fn empty_name() {}

#[atom(cost = 1, name = 5)]
fn number_as_name() {}

#[atom(cost = 1, name = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmn")]
fn long_name() {}

#[atom(cost = 1)]
fn größe() {}

#[atom(cost = 1, docs = five, timeout_ms = -5, effect = "none", output = "{", crate = "a b")]
fn values() {}

#[atom(cost = 1, timeout_ms = 0.5, effect = io, output = "[]", docs = 1)]
fn other_values() {}

#[atom(cost = 1)]
struct NotAFunction;

fn main() {
    // The functions and what belongs to them are there all the same.
    no_cost();
    negative();
    let set = agent99::AtomSet::new().with(NO_COST).with(UNKNOWN_KEYS).with(VALUES);
    let input: CalledInput;
    agent99::Builder::new().no_cost().bad_name();
}
