//! Work that engines are compared by, one piece of it in a process: see
//! `a99_bench_work::protocol`. `cargo xtask bench` runs it.

use a99_bench_work::protocol;
use a99_benches::work::{ABOUT, TIMED};
use std::process::ExitCode;

fn main() -> ExitCode {
    protocol::main(ABOUT, TIMED)
}
