//! Advice for what other languages, libraries and systems write: help of errors, and of the
//! lint pass.

mod conditions;
mod ops;
mod words;

pub use conditions::{condition_help, foreign_help, holes_help, math_help};
pub use ops::{atom_for, help_for_op};
pub use words::{callee_help, input_help, node_help, operator_help};
