//! The fluent builder: each method writes the hand-written step, and its programs compile and
//! run.

#[path = "../../examples/builder.rs"]
#[allow(dead_code, reason = "the example's own main is not called here")]
mod example;
mod methods;
mod methods_io;
mod methods_turn;
mod run;
