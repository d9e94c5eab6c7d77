//! Machine code for numeric loops.
//!
//! A [`Region`] is a part of a control-flow graph over typed cells: numbers and flags, no
//! references, no calls. [`compile`] generates machine code for it. [`CompiledLoop::run`]
//! runs that over the caller's cells until the region exits.
//!
//! No region can make its code access memory other than the cells and the meter that `run`
//! borrows, or loop without paying: [`Region::check`] rejects such regions, and [`compile`]
//! calls it first. The crate has no notion of programs, values or prices.
//!
//! - `region`: the definition of regions, and their soundness check;
//! - `emit`: regions to Cranelift IR;
//! - `code`: executable memory and calls: all of the unsafe code.
//!
//! Code is generated for x86-64 under Unix; elsewhere [`compile`] refuses every region.

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

/// The budget that blocks are paid from.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Meter {
    /// Fuel left; a block is entered only if more is left than it costs.
    pub fuel: i64,
    /// Work until the run yields; a block is entered only if some is left after it.
    pub work: i64,
}

/// Compiles a region.
///
/// # Errors
/// The region is unsound or too large, the machine is unsupported, or the compiler failed.
pub fn compile(region: &Region) -> Result<CompiledLoop, Refused> {
    region.check()?;
    emit::compile(region)
}
