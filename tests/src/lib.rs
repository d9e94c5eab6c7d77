//! Test kit: the oracle that judges the engine, a second reader of artifacts, and
//! the runner of conformance vectors.

#![warn(unreachable_pub)]

pub mod a99b;
pub mod attacks;
pub mod cost;
pub mod differential;
pub mod fuzz;
pub mod generate;
pub mod numbers;
pub mod oracle;
pub mod pages;
pub mod sources;
#[cfg(feature = "jit-eager")]
pub mod tier;
pub mod vectors;
