//! The WebAssembly engine as the guest needs it.

use super::error::{VmCode, VmError};
use std::hash::{Hash, Hasher};
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
    make(false)
}

/// The same engine for compiling the emulator: on all processors.
///
/// # Errors
/// As [`engine`].
pub(super) fn compiling_engine() -> Result<Engine, VmError> {
    make(true)
}

fn make(parallel: bool) -> Result<Engine, VmError> {
    let mut config = Config::new();
    config
        .cranelift_opt_level(OptLevel::Speed)
        .parallel_compilation(parallel)
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
    crate::image::digest::of_bytes(&gather.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_engine_compiles_the_other_runs() {
        let one = compatibility(&engine().expect("an engine"));
        let other = compatibility(&compiling_engine().expect("an engine"));
        assert_eq!(one, other);
    }
}
