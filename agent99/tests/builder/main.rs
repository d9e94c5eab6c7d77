//! The fluent builder: each method writes what one would write by hand, and
//! what it writes compiles and runs.

#[path = "../../examples/builder.rs"]
#[allow(dead_code, reason = "the example's own main is not called here")]
mod example;
mod methods;
mod methods_io;
mod methods_turn;
mod run;
