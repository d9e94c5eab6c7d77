//! Types that cannot be inputs or answers, and what else rustc finds.
#![allow(unused, non_snake_case)]

use agent99::{AtomCx, AtomSet, atom};
use std::rc::Rc;

struct Opaque;

/// A documented atom.
#[atom(cost = 1)]
fn takes_opaque(it: Opaque) {}

/// A documented atom.
#[atom(cost = 1)]
fn takes_several(them: Option<Vec<Opaque>>) {}

/// A documented atom.
#[atom(cost = 1)]
fn gives_opaque() -> Opaque {
    Opaque
}

/// A documented atom.
#[atom(cost = 1)]
fn perhaps_opaque() -> Result<Opaque, String> {
    Ok(Opaque)
}

/// A documented atom.
#[atom(cost = 1)]
fn fails_opaquely() -> Result<u8, Opaque> {
    Ok(1)
}

/// A documented atom.
#[atom(cost = 1)]
async fn not_send(cx: &AtomCx) -> u8 {
    let counter = Rc::new(1);
    std::future::ready(()).await;
    let _ = cx;
    *counter
}

fn wrong_price(input: &str) -> f64 {
    input.len() as f64
}

/// A documented atom.
#[atom(cost = wrong_price)]
fn priced(text: String) -> usize {
    text.len()
}

/// A documented atom.
#[atom(cost = 1)]
fn defaulted(#[atom(default = "five")] n: u8) {}

/// A documented atom.
#[atom(cost = 1)]
fn twice(n: u8) -> u8 {
    n * 2
}

fn registered() -> AtomSet {
    AtomSet::new().with(twice)
}

fn main() {}
