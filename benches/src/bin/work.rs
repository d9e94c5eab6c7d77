//! Work that compares engines, one piece in each process: see `a99_benches_work::protocol`.
//! `cargo xtask bench` runs it.

use a99_benches::work::{ABOUT, TIMED};
use a99_benches_work::protocol;
use std::process::ExitCode;

fn main() -> ExitCode {
    protocol::main(ABOUT, TIMED)
}
