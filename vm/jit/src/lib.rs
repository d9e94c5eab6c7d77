//! Loops over numbers as machine code.
//!
//! A [`Region`] is a piece of a control-flow graph over typed cells: numbers and flags, no
//! references, no calls. [`compile`] makes machine code of it, [`CompiledLoop::run`] runs that
//! over the caller's cells until the region is left at one of its exits.
//!
//! Nothing that a region says can make its code read or write anything but the cells and the
//! meter that `run` borrows, or loop without paying: [`Region::check`] refuses what would, and
//! [`compile`] asks it first. The crate knows nothing of programs, values or prices.
//!
//! - `region`: what a region is, and what a sound one is;
//! - `emit`: from a region to Cranelift's instructions;
//! - `code`: machine code in memory, and calling it: all of the unsafe code.
//!
//! There is code for x86-64 under Unix; elsewhere [`compile`] refuses every region.

#![warn(unreachable_pub)]

#[cfg(all(target_arch = "x86_64", unix))]
mod code;
#[cfg(all(target_arch = "x86_64", unix))]
mod emit;
#[cfg(not(all(target_arch = "x86_64", unix)))]
#[path = "none.rs"]
mod emit;
mod region;
#[cfg(all(test, target_arch = "x86_64", unix))]
mod tests;

pub use emit::CompiledLoop;
pub use region::{
    Arith, Block, BlockId, Cell, Condition, End, ExitId, Kind, MAX_CELLS, Op, Price, Refused,
    Region, Test,
};

/// What entering blocks is paid from.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Meter {
    /// Fuel that is left; a block is entered only if more is left than it takes.
    pub fuel: i64,
    /// Work until others have their turn; a block is entered only if some is left after it.
    pub work: i64,
}

/// Compiles a region.
///
/// # Errors
/// A region that is not sound or too large, a machine that there is no code for, or a fault
/// of the compiler.
pub fn compile(region: &Region) -> Result<CompiledLoop, Refused> {
    region.check()?;
    emit::compile(region)
}
