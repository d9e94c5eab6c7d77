//! Memory of runs that wait for their host, with the protocol of `work`. It is a separate program,
//! because it counts every allocation of the process.

use a99_benches::work::{ABOUT, HELD, bytes, future_bytes};
use a99_benches_work::{Entry, protocol};
use cap::Cap;
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static COUNTED: Cap<System> = Cap::new(System, usize::MAX);

fn main() -> ExitCode {
    let [runs, futures] = HELD;
    let entries: [Entry; 2] = [
        (runs, |size| bytes(size, || COUNTED.allocated())),
        (futures, |size| future_bytes(size, || COUNTED.allocated())),
    ];
    protocol::main(ABOUT, &entries)
}
