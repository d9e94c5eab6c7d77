//! Work that engines are compared by, one piece of it in a process: see
//! `a99_benches_work::protocol`. `cargo xtask bench` runs it.

use a99_benches::work::{ABOUT, TIMED};
use a99_benches_work::protocol;
use std::process::ExitCode;

fn main() -> ExitCode {
    protocol::main(ABOUT, TIMED)
}
