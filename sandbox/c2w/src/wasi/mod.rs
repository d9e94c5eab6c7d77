//! WASI preview1 for container2wasm images, complete and nothing beyond it.
//!
//! Images use 33 of its functions; all 46 are here, so that another build of the same
//! emulator works. No call panics on any input, and only [`poll`](mod@poll) and writes of
//! unread output wait.
//!
//! wasmtime-wasi answers calls about arguments, environment, clocks and randomness, with
//! our clocks and limits: these calls end at once and access nothing. All other calls are
//! implemented here. Images must find their sockets at high numbers that never fail, and
//! their directories right after the standard streams; waits must end at a stop; and files
//! are confined to their mounts. Our functions answer each address outside of memory with
//! an error number. Those of wasmtime-wasi end the program, as the standard specifies, also
//! for unknown clocks.

pub(super) mod abi;
mod clocks;
mod io;
mod path;
mod poll;
mod socket;
mod state;

pub(super) use state::{Host, LISTEN_FD, Setup};

use abi::{Answer, Memory, number};
use wasmtime::{Caller, Engine, Extern, Linker};
use wasmtime_wasi::p1;

/// The only module that images may import from.
pub(super) const MODULE: &str = "wasi_snapshot_preview1";

/// Runs a call with the program's memory. A stop ends the program here.
fn call(
    caller: &mut Caller<'_, Host>,
    call: impl FnOnce(&mut Host, &mut Memory<'_>) -> Answer,
) -> wasmtime::Result<i32> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        wasmtime::bail!("the image exports no memory");
    };
    let (bytes, host) = memory.data_and_store_mut(caller);
    let answer = call(host, &mut Memory(bytes));
    if host.is_over() {
        wasmtime::bail!("the image is over");
    }
    Ok(number(answer))
}

/// Declares the function table: the names, and a linker with all of them.
macro_rules! table {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// Functions that return here; `proc_exit` does not return.
        const ANSWERING: &[&str] = &[$(stringify!($name)),*];

        fn link(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
            $(linker.func_wrap(
                MODULE,
                stringify!($name),
                |mut caller: Caller<'_, Host>, $($argument: $type),*| {
                    call(&mut caller, |host, memory| host.$name(memory, $($argument),*))
                },
            )?;)*
            Ok(())
        }
    };
}

table! {
    fd_advise(fd: u32, offset: u64, len: u64, advice: u32);
    fd_allocate(fd: u32, offset: u64, len: u64);
    fd_close(fd: u32);
    fd_datasync(fd: u32);
    fd_fdstat_get(fd: u32, result: u32);
    fd_fdstat_set_flags(fd: u32, flags: u32);
    fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64);
    fd_filestat_get(fd: u32, result: u32);
    fd_filestat_set_size(fd: u32, size: u64);
    fd_filestat_set_times(fd: u32, atim: u64, mtim: u64, flags: u32);
    fd_pread(fd: u32, iovecs: u32, count: u32, offset: u64, result: u32);
    fd_prestat_get(fd: u32, result: u32);
    fd_prestat_dir_name(fd: u32, path: u32, len: u32);
    fd_pwrite(fd: u32, iovecs: u32, count: u32, offset: u64, result: u32);
    fd_read(fd: u32, iovecs: u32, count: u32, result: u32);
    fd_readdir(fd: u32, buffer: u32, len: u32, cookie: u64, result: u32);
    fd_renumber(fd: u32, to: u32);
    fd_seek(fd: u32, offset: i64, whence: u32, result: u32);
    fd_sync(fd: u32);
    fd_tell(fd: u32, result: u32);
    fd_write(fd: u32, iovecs: u32, count: u32, result: u32);
    path_create_directory(fd: u32, path: u32, len: u32);
    path_filestat_get(fd: u32, lookup: u32, path: u32, len: u32, result: u32);
    path_filestat_set_times(
        fd: u32, lookup: u32, path: u32, len: u32, atim: u64, mtim: u64, flags: u32
    );
    path_link(fd: u32, lookup: u32, path: u32, len: u32, to: u32, new: u32, new_len: u32);
    path_open(
        fd: u32, lookup: u32, path: u32, len: u32, oflags: u32, rights: u64, inheriting: u64,
        flags: u32, result: u32
    );
    path_readlink(fd: u32, path: u32, len: u32, buffer: u32, buffer_len: u32, result: u32);
    path_remove_directory(fd: u32, path: u32, len: u32);
    path_rename(fd: u32, path: u32, len: u32, to: u32, new: u32, new_len: u32);
    path_symlink(target: u32, target_len: u32, fd: u32, path: u32, len: u32);
    path_unlink_file(fd: u32, path: u32, len: u32);
    poll_oneoff(subscriptions: u32, events: u32, count: u32, result: u32);
    proc_raise(signal: u32);
    sock_accept(fd: u32, flags: u32, result: u32);
    sock_recv(fd: u32, iovecs: u32, count: u32, flags: u32, result: u32, out_flags: u32);
    sock_send(fd: u32, iovecs: u32, count: u32, flags: u32, result: u32);
    sock_shutdown(fd: u32, how: u32);
}

/// Functions left to wasmtime-wasi.
const PLAIN: [&str; 8] = [
    "args_get",
    "args_sizes_get",
    "environ_get",
    "environ_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "random_get",
    "sched_yield",
];

/// Whether preview1 has a function.
pub(super) fn has(name: &str) -> bool {
    name == "proc_exit" || ANSWERING.contains(&name) || PLAIN.contains(&name)
}

/// Creates a linker with the whole table.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    // All of wasmtime-wasi, then ours over it except for the plain ones.
    p1::add_to_linker_sync(&mut linker, |host: &mut Host| &mut host.wasi)?;
    linker.allow_shadowing(true);
    link(&mut linker)?;
    linker.func_wrap(
        MODULE,
        "proc_exit",
        |mut caller: Caller<'_, Host>, code: u32| -> wasmtime::Result<()> {
            caller.data_mut().exit_code = Some(code);
            wasmtime::bail!("the image exits with code {code}")
        },
    )?;
    linker.allow_shadowing(false);
    Ok(linker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Console;
    use crate::options::Options;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use wasmtime::Store;

    #[test]
    fn the_table_is_whole() {
        // The number of functions of preview1.
        assert_eq!(ANSWERING.len() + PLAIN.len() + 1, 46);
        assert!(has("proc_exit") && has("sock_recv") && !has("fd_fstat"));
        let ours = |name: &&&str| ANSWERING.contains(name);
        assert_eq!(PLAIN.iter().filter(ours).count(), 0);
    }

    #[test]
    fn of_wasmtime_wasi_the_plain_functions_are_used_and_no_other() {
        let engine = Engine::default();
        let linker = linker(&engine).unwrap();
        let setup = Options::default().set_up(Arc::new(|| {})).unwrap();
        let host = Host::new(setup, Arc::new(Console::new(None))).unwrap();
        let mut store = Store::new(&engine, host);
        let names: BTreeSet<String> = linker
            .iter(&mut store)
            .map(|(module, name, _)| format!("{module}.{name}"))
            .collect();
        let ours = ANSWERING.iter().chain(&PLAIN).chain(&["proc_exit"]);
        let ours = ours.map(|name| format!("{MODULE}.{name}")).collect();
        assert_eq!(names, ours);
    }
}
