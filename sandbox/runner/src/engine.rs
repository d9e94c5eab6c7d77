//! Engine configuration: wasmtime as the guest needs it.

use super::error::{VmCode, VmError};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wasmtime::{Config, Engine, OptLevel};

/// Largest start image of a guest's memory: more than the RAM of any guest that
/// can be made (the emulator has 32-bit addresses), so that every snapshot is
/// mapped copy-on-write, however sparse it is.
const DENSE_IMAGE: u64 = 4 << 30;

/// Stack of the emulator: it recurses nowhere and needs little.
const WASM_STACK: usize = 512 << 10;

/// Addresses set aside for a guest's memory: all that 32 bits reach, so that no
/// access needs a check.
const RESERVATION: u64 = 4 << 30;

/// Unmapped addresses around it, for constant offsets.
const GUARD: u64 = 32 << 20;

/// Period of the guarded engine's epochs.
const TICK: Duration = Duration::from_millis(100);

/// Makes the engine. All guests of a process share one.
///
/// Nothing interrupts the emulator from outside: it counts its instructions
/// itself, which costs less than fuel or epochs.
///
/// It compiles on the thread that asks: translated code is for threads of low
/// priority, and wasmtime's own would not be.
///
/// # Errors
/// [`VmCode::Resources`] if this processor or system cannot run it.
pub fn engine() -> Result<Engine, VmError> {
    make(false, false)
}

/// The engine for images that were not made here: what they run can be stopped
/// from outside, at a price of a sixth of their speed. All guests of a process
/// share one; a thread of its own counts its time as long as the process lives.
///
/// # Errors
/// As [`engine`], and [`VmCode::Resources`] for want of a thread.
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

/// Machine code of an emulator, for [`guarded_engine`] or [`engine`]: compiled on
/// all processors.
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

/// What a precompiled module depends on besides its source: wasmtime's release,
/// the configuration and the processor's features. A part of cache keys.
pub fn compatibility(engine: &Engine) -> String {
    /// Gathers what is hashed as bytes, so that the key does not depend on the
    /// standard library's hash.
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
