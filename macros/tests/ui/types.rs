//! Types that cannot be inputs or answers, and what else rustc finds.
#![allow(unused, non_snake_case)]

use agent99::{AtomCx, atom};
use std::rc::Rc;

#[derive(Clone, Debug)]
struct Opaque;

#[atom(cost = 1)]
fn takes_opaque(it: Opaque) {}

#[atom(cost = 1)]
fn gives_opaque() -> Opaque {
    Opaque
}

#[atom(cost = 1)]
fn fails_opaquely() -> Result<u8, Opaque> {
    Ok(1)
}

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

#[atom(cost = wrong_price)]
fn priced(text: String) -> usize {
    text.len()
}

#[atom(cost = 1)]
fn defaulted(#[atom(default = "five")] n: u8) {}

fn main() {}
