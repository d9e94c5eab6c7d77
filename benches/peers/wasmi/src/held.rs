//! The memory that instances hold while their runs wait, every allocation counted.

use a99_benches_work::list;
use cap::Cap;
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static COUNTED: Cap<System> = Cap::new(System, usize::MAX);

fn main() -> ExitCode {
    peer_wasmi::held(&[(list::W9_BYTES, |size| {
        peer_wasmi::bytes(size, || COUNTED.allocated())
    })])
}
