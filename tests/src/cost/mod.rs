//! Programs that try to be dear: made of the engine's own tables of atoms, builtins and
//! operators, over inputs of hostile shapes, out of bytes.
//!
//! `cargo xtask search` looks for those that take most CPU time or memory for their fuel;
//! the fuzz target `cost` judges memory alone ([`judge`]), which is the same each time.

pub mod counting;
mod genome;
mod grow;
mod judge;
mod steps;
mod tables;
mod values;

pub use counting::Counting;
pub use genome::{Genome, HEAD, MAX_STEPS, STEP};
pub use grow::{Program, SIZES};
pub use judge::{
    ALLOCATED_BYTES_A_UNIT, CEILING, HELD_BESIDES, HELD_FACTOR, Memory, judge, memory,
};
pub use values::{Made, Shape};
