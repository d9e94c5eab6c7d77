//! Functions that cannot be atoms, and parameters that cannot be inputs.
#![allow(deprecated, unused, non_snake_case)]

use agent99::{AtomCx, atom};

struct Host;

impl Host {
    #[atom(cost = 1)]
    fn method(&self, x: u8) {}
}

#[atom(cost = 1)]
const fn constant() {}

#[atom(cost = 1)]
unsafe fn dangerous() {}

#[atom(cost = 1)]
extern "C" fn foreign() {}

#[atom(cost = 1)]
fn generic<'a, T, const N: usize>(x: &'a str, y: T, z: [u8; N])
where
    T: Clone,
{
}

#[atom(cost = 1)]
fn patterns((a, b): (u8, u8), _: u8, ref c: u8) {}

#[atom(cost = 1)]
fn references(a: &u8, b: &mut str, c: Vec<&str>, d: &[u8], e: std::borrow::Cow<'_, str>) {}

#[atom(cost = 1)]
fn opaque(a: impl Clone) -> impl Clone {}

#[atom(cost = 1)]
fn late_cx(a: u8, cx: &AtomCx) {}

#[atom(cost = 1)]
fn owned_cx(cx: AtomCx) {}

#[atom(cost = 1)]
fn changed_cx(cx: &mut AtomCx) {}

#[atom(cost = 1)]
fn shared(db: std::sync::Arc<String>, lock: std::sync::Mutex<u8>) {}

#[atom(cost = 1, effect = "pure")]
async fn waits_purely(n: u8) {}

#[atom(cost = 1)]
fn step_keys(op: u8, result: u8, result_const: u8, #[atom(name = "op")] x: u8) {}

#[atom(cost = 1)]
fn same_keys(ab_c: u8, #[atom(name = "abC")] d: u8, #[atom(name = "")] e: u8) {}

#[atom(cost = 1)]
fn param_keys(#[atom(rename = "x")] a: u8, #[atom(default = 1, default = 2)] b: u8) {}

#[atom(cost = 1)]
#[atom(cost = 2)]
fn two_atoms() {}

#[atom(cost = 1)]
fn UPPER() {}

#[atom(cost = -1, nonsense = 1)]
fn all_at_once(op: u8, (a, b): (u8, u8), c: &u8) {}

fn main() {
    constant();
    two_atoms();
    late_cx;
}
