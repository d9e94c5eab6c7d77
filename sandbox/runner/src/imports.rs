//! Imports of the emulator: clocks, randomness, disks and a panic message, and no-op stubs
//! for the calls that its C library refers to.
//!
//! wasmtime-wasi is not used: the emulator does no I/O itself, so WASI would only give it
//! unneeded access.

use super::disk::Disks;
use super::release::release as give_back;
use super::translator::{Translating, WITH_NEXT};
use a99_sandbox_abi::{MAX_ENTRIES, PAGE_BYTES, functions as abi};
use std::time::{Instant, SystemTime};
use wasmtime::{Caller, Engine, Extern, Linker, StoreLimits, StoreLimitsBuilder};

/// Maximum bytes of a panic message.
const MAX_PANIC_TEXT: usize = 4096;

/// Default resolution of the guest's clock in nanoseconds.
pub(super) const CLOCK_RESOLUTION_NS: u64 = 1000;

/// `errno` of WASI: the descriptor is not open.
const WASI_BADF: i32 = 8;

/// `errno` of WASI: not supported.
const WASI_NOSYS: i32 = 52;

/// Maximum memory of a foreign module in bytes, twice the RAM of a guest, and maximum
/// elements of its table.
const MAX_MEMORY: usize = 1 << 30;
const MAX_TABLE: usize = 1 << 20;

/// Host side of one guest's imports.
#[derive(Debug)]
pub(super) struct Imports {
    start: Instant,
    /// Resolution of both clocks in nanoseconds.
    resolution_ns: u64,
    /// Why the emulator is about to trap.
    pub panic: Option<String>,
    /// Compiles translated code, if translation is on.
    pub translating: Option<Translating>,
    /// Ticks of the guarded engine since the last run began.
    pub ticks: u32,
    /// Memory and table limits of a foreign module.
    pub limits: StoreLimits,
    pub disks: Disks,
}

impl Imports {
    pub(crate) fn new(resolution_ns: u64, translating: Option<Translating>) -> Self {
        Self {
            start: Instant::now(),
            resolution_ns: resolution_ns.max(1),
            panic: None,
            translating,
            ticks: 0,
            limits: StoreLimitsBuilder::new()
                .memory_size(MAX_MEMORY)
                .table_elements(MAX_TABLE)
                .instances(1)
                .memories(1)
                .build(),
            disks: Disks::default(),
        }
    }

    /// The emulator's clock in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        let now = self.start.elapsed().as_nanos() as u64;
        now - now % self.resolution_ns
    }
}

/// Nanoseconds since 1970.
pub(super) fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Creates a linker with all imports of the emulator.
pub(super) fn linker(engine: &Engine) -> wasmtime::Result<Linker<Imports>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap(
        abi::MODULE,
        abi::NOW_NS.name,
        |caller: Caller<'_, Imports>| caller.data().now_ns(),
    )?;
    linker.func_wrap(
        abi::MODULE,
        abi::WALL_NS.name,
        |caller: Caller<'_, Imports>| {
            let now = wall_ns();
            now - now % caller.data().resolution_ns
        },
    )?;
    linker.func_wrap(abi::MODULE, abi::RANDOM.name, random)?;
    linker.func_wrap(abi::MODULE, abi::TRANSLATE.name, translate)?;
    linker.func_wrap(abi::MODULE, abi::PANICKED.name, panicked)?;
    linker.func_wrap(abi::MODULE, abi::DISK_READ.name, disk_read)?;
    linker.func_wrap(abi::MODULE, abi::DISK_WRITE.name, disk_write)?;
    linker.func_wrap(
        abi::MODULE,
        abi::DISK_DISCARD.name,
        |mut caller: Caller<'_, Imports>, disk: u32, offset: u64, len: u64, zero: u32| {
            let disks = &mut caller.data_mut().disks;
            u32::from(disks.discard(disk, offset, len, zero != 0))
        },
    )?;
    linker.func_wrap(
        abi::MODULE,
        abi::DISK_FLUSH.name,
        |mut caller: Caller<'_, Imports>, disk: u32| u32::from(caller.data_mut().disks.flush(disk)),
    )?;
    linker.func_wrap(abi::MODULE, abi::RELEASE.name, release)?;
    wasi(&mut linker)?;
    Ok(linker)
}

/// The slice of linear memory at an address that the emulator passed.
fn slice<'a>(
    caller: &'a mut Caller<'_, Imports>,
    address: u32,
    len: u32,
) -> wasmtime::Result<(&'a mut [u8], &'a mut Imports)> {
    let Some(Extern::Memory(memory)) = caller.get_export(abi::MEMORY) else {
        wasmtime::bail!("the emulator has no memory");
    };
    let (data, imports) = memory.data_and_store_mut(caller);
    let end = u64::from(address) + u64::from(len);
    match data.get_mut(address as usize..end as usize) {
        Some(slice) => Ok((slice, imports)),
        None => wasmtime::bail!("the emulator names memory that is not there"),
    }
}

fn random(mut caller: Caller<'_, Imports>, address: u32, len: u32) -> wasmtime::Result<()> {
    let (slice, _) = slice(&mut caller, address, len)?;
    getrandom::fill(slice).map_err(|error| wasmtime::format_err!("no randomness: {error}"))
}

fn panicked(mut caller: Caller<'_, Imports>, address: u32, len: u32) -> wasmtime::Result<()> {
    let (text, imports) = slice(&mut caller, address, len)?;
    let text = &text[..text.len().min(MAX_PANIC_TEXT)];
    imports.panic = Some(String::from_utf8_lossy(text).into_owned());
    Ok(())
}

fn translate(
    mut caller: Caller<'_, Imports>,
    page: u32,
    len: u32,
    user: u32,
    entries: u32,
    count: u32,
    ticket: u32,
) -> wasmtime::Result<u32> {
    let is_page = matches!(len as usize, PAGE_BYTES | WITH_NEXT);
    if !is_page || count as usize > MAX_ENTRIES {
        return Ok(0);
    }
    let (entries, _) = slice(&mut caller, entries, 2 * count)?;
    let entries = entries.as_chunks().0;
    let entries = entries.iter().map(|bytes| u16::from_le_bytes(*bytes));
    let entries = entries.collect();
    let (page, imports) = slice(&mut caller, page, len)?;
    let translating = imports.translating.as_mut();
    Ok(translating
        .is_some_and(|it| it.request((page, user != 0), entries, ticket))
        .into())
}

fn disk_read(
    mut caller: Caller<'_, Imports>,
    disk: u32,
    offset: u64,
    address: u32,
    len: u32,
) -> wasmtime::Result<u32> {
    let (slice, imports) = slice(&mut caller, address, len)?;
    Ok(imports.disks.read(disk, offset, slice).into())
}

fn disk_write(
    mut caller: Caller<'_, Imports>,
    disk: u32,
    offset: u64,
    address: u32,
    len: u32,
) -> wasmtime::Result<u32> {
    let (slice, imports) = slice(&mut caller, address, len)?;
    Ok(imports.disks.write(disk, offset, slice).into())
}

fn release(mut caller: Caller<'_, Imports>, address: u32, len: u32) -> wasmtime::Result<()> {
    let (slice, _) = slice(&mut caller, address, len)?;
    give_back(slice);
    Ok(())
}

/// Stubs WASI for a program without arguments, environment and files.
fn wasi(linker: &mut Linker<Imports>) -> wasmtime::Result<()> {
    const WASI: &str = "wasi_snapshot_preview1";
    let sizes = |mut caller: Caller<'_, Imports>, count: u32, size: u32| {
        for address in [count, size] {
            slice(&mut caller, address, 4)?.0.fill(0);
        }
        wasmtime::Result::Ok(0)
    };
    linker.func_wrap(WASI, "environ_sizes_get", sizes)?;
    linker.func_wrap(WASI, "args_sizes_get", sizes)?;
    linker.func_wrap(WASI, "environ_get", |_: u32, _: u32| 0)?;
    linker.func_wrap(WASI, "args_get", |_: u32, _: u32| 0)?;
    linker.func_wrap(WASI, "fd_write", |_: u32, _: u32, _: u32, _: u32| WASI_BADF)?;
    linker.func_wrap(WASI, "fd_read", |_: u32, _: u32, _: u32, _: u32| WASI_BADF)?;
    linker.func_wrap(WASI, "fd_close", |_: u32| WASI_BADF)?;
    linker.func_wrap(WASI, "fd_seek", |_: u32, _: u64, _: u32, _: u32| WASI_BADF)?;
    linker.func_wrap(WASI, "fd_fdstat_get", |_: u32, _: u32| WASI_BADF)?;
    linker.func_wrap(WASI, "fd_prestat_get", |_: u32, _: u32| WASI_BADF)?;
    linker.func_wrap(WASI, "fd_prestat_dir_name", |_: u32, _: u32, _: u32| {
        WASI_BADF
    })?;
    linker.func_wrap(WASI, "sched_yield", || 0)?;
    linker.func_wrap(WASI, "clock_time_get", |_: u32, _: u64, _: u32| WASI_NOSYS)?;
    linker.func_wrap(
        WASI,
        "random_get",
        |caller: Caller<'_, Imports>, address: u32, len: u32| {
            random(caller, address, len).map(|()| 0)
        },
    )?;
    linker.func_wrap(WASI, "proc_exit", |code: u32| -> wasmtime::Result<()> {
        wasmtime::bail!("the emulator exits with code {code}")
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_sandbox_abi::Value;
    use wasmtime::{Store, ValType};

    #[test]
    fn all_imports_of_the_abi_are_there_with_their_types() {
        let engine = Engine::default();
        let linker = linker(&engine).unwrap();
        let mut store = Store::new(&engine, Imports::new(1, None));
        let is = |value: &Value, found: &ValType| match value {
            Value::I32 => found.is_i32(),
            Value::I64 => found.is_i64(),
        };
        for import in abi::IMPORTS {
            let found = linker.get(&mut store, abi::MODULE, import.name).unwrap();
            let found = found.into_func().unwrap().ty(&store);
            let params: Vec<ValType> = found.params().collect();
            let results: Vec<ValType> = found.results().collect();
            assert_eq!(params.len(), import.params.len(), "{}", import.name);
            let mut both = import.params.iter().zip(&params);
            assert!(both.all(|(row, found)| is(row, found)), "{}", import.name);
            assert_eq!(results.len(), import.result.iter().len(), "{}", import.name);
            let mut both = import.result.iter().zip(&results);
            assert!(both.all(|(row, found)| is(row, found)), "{}", import.name);
        }
        let ours = linker
            .iter(&mut store)
            .filter(|(of, ..)| *of == abi::MODULE);
        assert_eq!(ours.count(), abi::IMPORTS.len());
    }
}
