//! `cargo xtask stops`: how long a run goes on after it was told to stop.

use crate::shell::{Failed, cargo, run};

/// Builds the measuring program as users build the engine, and runs it.
pub fn measure(args: &[&str]) -> Result<(), Failed> {
    let mut stops = cargo("run");
    stops.args(["--quiet", "--release", "--package", "a99-benches"]);
    stops.args(["--bin", "stops", "--"]).args(args);
    // Its own last line says what failed.
    run(&mut stops).map_err(|_| Failed(String::new()))
}
