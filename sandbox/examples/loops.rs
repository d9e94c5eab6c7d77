//! Runs the emulator's bare loops (`mips` of the guest's crate, built for
//! `wasm32-wasip1`) under the engine settings of guests.
//!
//! `cargo run --release -p a99-sandbox --example loops -- MIPS.wasm`. The
//! program's clock is this thread's processor time: on a busy machine the
//! clock on the wall tells little.

use a99_sandbox::vm;
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::io::Write;
use wasmtime::{Caller, Engine, Extern, Linker, Memory, Module, Store};

/// `errno` of WASI: the descriptor is not open.
const BADF: u32 = 8;

/// `errno` of WASI: there is no such file.
const NOENT: u32 = 44;

/// The module of WASI's functions.
const WASI: &str = "wasi_snapshot_preview1";

fn memory(caller: &mut Caller<'_, ()>) -> wasmtime::Result<Memory> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => wasmtime::bail!("no memory"),
    }
}

fn put(caller: &mut Caller<'_, ()>, address: u32, bytes: &[u8]) -> wasmtime::Result<u32> {
    memory(caller)?.write(caller, address as usize, bytes)?;
    Ok(0)
}

fn word(caller: &mut Caller<'_, ()>, address: u32) -> wasmtime::Result<u32> {
    let mut bytes = [0; 4];
    memory(caller)?.read(caller, address as usize, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Writes the buffers to standard output.
fn write(mut caller: Caller<'_, ()>, list: u32, count: u32, done: u32) -> wasmtime::Result<u32> {
    let mut total = 0;
    for at in (list..).step_by(8).take(count as usize) {
        let (address, len) = (word(&mut caller, at)?, word(&mut caller, at + 4)?);
        let mut bytes = vec![0; len as usize];
        memory(&mut caller)?.read(&mut caller, address as usize, &mut bytes)?;
        std::io::stdout().write_all(&bytes)?;
        total += len;
    }
    put(&mut caller, done, &total.to_le_bytes())
}

/// What the program needs: output and a clock. It has no arguments, environment
/// or files.
fn linker(engine: &Engine) -> wasmtime::Result<Linker<()>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(
        WASI,
        "fd_write",
        |caller: Caller<'_, ()>, fd: u32, list: u32, count: u32, done: u32| {
            if fd > 2 {
                return Ok(BADF);
            }
            write(caller, list, count, done)
        },
    )?;
    linker.func_wrap(
        WASI,
        "clock_time_get",
        |mut caller: Caller<'_, ()>, _: u32, _: u64, at: u32| {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            let nanoseconds = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            put(&mut caller, at, &nanoseconds.to_le_bytes())
        },
    )?;
    linker.func_wrap(
        WASI,
        "random_get",
        |mut caller: Caller<'_, ()>, at: u32, len: u32| {
            put(&mut caller, at, &vec![0; len as usize])
        },
    )?;
    let none = |mut caller: Caller<'_, ()>, count: u32, size: u32| {
        put(&mut caller, count, &[0; 4])?;
        put(&mut caller, size, &[0; 4])
    };
    linker.func_wrap(WASI, "environ_sizes_get", none)?;
    linker.func_wrap(WASI, "args_sizes_get", none)?;
    linker.func_wrap(WASI, "proc_exit", |code: u32| -> wasmtime::Result<()> {
        std::process::exit(code as i32)
    })?;
    linker.func_wrap(
        WASI,
        "path_open",
        |_: u32, _: u32, _: u32, _: u32, _: u32, _: u64, _: u64, _: u32, _: u32| NOENT,
    )?;
    linker.func_wrap(WASI, "fd_prestat_get", |_: u32, _: u32| BADF)?;
    Ok(linker)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: loops MIPS.wasm")?;
    let engine = vm::engine()?;
    let module = Module::new(&engine, std::fs::read(path)?)?;
    let mut linker = linker(&engine)?;
    let mut store = Store::new(&engine, ());
    linker.define_unknown_imports_as_traps(&module)?;
    let instance = linker.instantiate(&mut store, &module)?;
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
    start.call(&mut store, ())?;
    Ok(())
}
