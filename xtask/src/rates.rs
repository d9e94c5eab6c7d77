//! `cargo xtask rates`: what a unit of fuel takes in CPU time.

use crate::shell::{Failed, cargo, run};

/// Builds the measuring program as users build the engine, and runs it.
pub fn measure(args: &[&str]) -> Result<(), Failed> {
    let mut rates = cargo("run");
    rates.args(["--quiet", "--release", "--package", "a99-benches"]);
    rates.args(["--bin", "rates", "--"]).args(args);
    // Its own last line says what failed.
    run(&mut rates).map_err(|_| Failed(String::new()))
}
