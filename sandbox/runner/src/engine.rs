//! Engine configuration: wasmtime's settings for guests.

use super::error::{VmCode, VmError};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wasmtime::{Config, Engine, OptLevel};

/// Maximum size of a memory image: above the RAM of any possible guest (the emulator has
/// 32-bit addresses), so that every snapshot is mapped copy-on-write, however sparse it is.
const DENSE_IMAGE: u64 = 4 << 30;

/// Stack of the emulator in bytes: it does not recurse and needs little.
const WASM_STACK: usize = 512 << 10;

/// Reserved address space for a guest's memory: all that 32 bits reach, so that no access
/// needs a bounds check.
const RESERVATION: u64 = 4 << 30;

/// Guard region around the memory, for constant offsets: translated code names the state of
/// the hart and the start of RAM so, which is behind the emulator's heap.
const GUARD: u64 = 256 << 20;

/// Period of the guarded engine's epochs.
const TICK: Duration = Duration::from_millis(100);

/// Creates the engine, which all guests of a process share.
///
/// No epoch or fuel interrupts the emulator: it counts its instructions itself, which costs
/// less.
///
/// Compilation runs on the calling thread, since translated code is compiled on threads of
/// low priority and wasmtime's own would not be.
///
/// # Errors
/// [`VmCode::Resources`] if this processor or system cannot run it.
pub fn engine() -> Result<Engine, VmError> {
    make(false, false)
}

/// Returns the engine for foreign images: their code can be interrupted from outside, at a
/// sixth of its speed.
///
/// All guests of a process share the engine. A dedicated thread advances its epochs as long
/// as the process runs.
///
/// # Errors
/// Those of [`engine`], and [`VmCode::Resources`] if the thread cannot start.
pub(super) fn guarded_engine() -> Result<Engine, VmError> {
    static GUARDED: Mutex<Option<Engine>> = Mutex::new(None);
    let mut guarded = GUARDED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = &*guarded {
        return Ok(engine.clone());
    }
    let engine = make(false, true)?;
    let ticking = engine.clone();
    std::thread::Builder::new()
        .name("a99-ticks".to_owned())
        .spawn(move || {
            loop {
                std::thread::sleep(TICK);
                ticking.increment_epoch();
            }
        })
        .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")))?;
    Ok(guarded.insert(engine).clone())
}

/// Compiles an emulator to machine code for [`guarded_engine`] or [`engine`], on all
/// processors.
///
/// # Errors
/// [`VmCode::Module`].
pub(super) fn precompile(wasm: &[u8], guarded: bool) -> Result<Vec<u8>, VmError> {
    let code = make(true, guarded)?.precompile_module(wasm);
    code.map_err(|error| VmError::engine(VmCode::Module, "compile", &error))
}

fn make(parallel: bool, guarded: bool) -> Result<Engine, VmError> {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .wasm_branch_hinting(true)
        .parallel_compilation(parallel)
        .epoch_interruption(guarded)
        .memory_reservation(RESERVATION)
        .memory_guard_size(GUARD)
        .memory_guaranteed_dense_image_size(DENSE_IMAGE)
        .memory_init_cow(true)
        .max_wasm_stack(WASM_STACK)
        .signals_based_traps(true)
        .generate_address_map(false)
        .wasm_backtrace_max_frames(None);
    Engine::new(&config)
        .map_err(|error| VmError::engine(VmCode::Resources, "WebAssembly engine", &error))
}

/// Describes the dependencies of a precompiled module apart from its source: wasmtime's
/// release, the configuration and the processor's features. Part of cache keys.
pub fn compatibility(engine: &Engine) -> String {
    /// Collects hashed data as bytes, so that the key does not depend on the standard
    /// library's hash.
    #[derive(Default)]
    struct Gather(Vec<u8>);

    impl Hasher for Gather {
        fn finish(&self) -> u64 {
            0
        }

        fn write(&mut self, bytes: &[u8]) {
            self.0.extend(bytes);
        }
    }

    let mut gather = Gather::default();
    engine.precompile_compatibility_hash().hash(&mut gather);
    a99_sandbox_cache::digest::of_bytes(&gather.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_engine_compiles_the_other_runs() {
        let of = |parallel, guarded| compatibility(&make(parallel, guarded).expect("an engine"));
        assert_eq!(of(false, false), of(true, false));
        assert_eq!(of(false, true), of(true, true));
        assert_ne!(of(false, true), of(false, false));
    }
}
