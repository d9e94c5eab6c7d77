//! Low-level API of guests: images, engines, errors.

#[cfg(feature = "testing")]
pub use a99_sandbox_runner::{Bare, Execution, Instances};
pub use a99_sandbox_runner::{
    Boot, Booter, CMDLINE, Frozen, GuestJit, Image, Layer, MAX_DESCRIPTORS, MAX_LAYERS, Manifest,
    Output, RAM_BYTES, ScriptOutcome, Translations, VmCode, VmError, WasmMachine, Worker, block_on,
    compatibility, engine, load, smoke_test, verify, write,
};
use std::ffi::OsString;

/// Runs the command of a [`Worker`] with the arguments after its own; returns whether it
/// succeeded.
pub fn serve(arguments: &[OsString]) -> bool {
    if let Some((task, rest)) = arguments.split_first()
        && task == a99_sandbox_oci::TASK
    {
        return a99_sandbox_oci::serve(rest);
    }
    #[cfg(feature = "c2w")]
    let foreign = Some(a99_sandbox_c2w::precompile as a99_sandbox_runner::CompileForeign);
    #[cfg(not(feature = "c2w"))]
    let foreign = None;
    a99_sandbox_runner::serve(arguments, foreign)
}
