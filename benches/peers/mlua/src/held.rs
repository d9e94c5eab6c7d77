//! The memory that states hold while their runs wait, every allocation counted; mlua
//! takes Lua's memory from Rust's allocator.

use a99_benches_work::{Entry, Task, list, protocol};
use cap::Cap;
use peer_mlua::{ABOUT, held, waiting};
use std::alloc::System;
use std::process::ExitCode;

#[global_allocator]
static COUNTED: Cap<System> = Cap::new(System, usize::MAX);

const ENTRIES: &[Entry] = &[(list::W9_BYTES, |size| {
    Task::held(held(size), || COUNTED.allocated(), waiting)
})];

fn main() -> ExitCode {
    protocol::main(ABOUT, ENTRIES)
}
