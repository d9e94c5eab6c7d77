//! Test kit: the oracle that judges the engine, and the runner of conformance
//! vectors.

pub mod differential;
pub mod fuzz;
pub mod generate;
pub mod oracle;

pub mod vectors;
