//! Static bounds of what a program costs: fuel, calls of the host, and tokens of models, as
//! formulas over the sizes of its inputs.
//!
//! The analysis reads verified bytecode, whose blocks have their static prices. It bounds the turns
//! of loops over lists and of counters, follows the sizes of values, and adds what instructions
//! charge for sizes. What it cannot bound has a place and a reason.

mod amounts;
mod atoms;
mod build;
mod builtins;
mod flow;
mod formula;
mod functions;
mod graph;
mod kinds;
mod numbers;
mod ops;
mod price;
mod report;
mod schema;
mod sizes;
mod solve;
mod widths;

pub use formula::Measure;
pub use report::{Answer, Cost, Formula, Size, Term, Unbounded, estimate};
