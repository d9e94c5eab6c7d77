//! The hart: decoding, the interpreter, floating point, registers, traps,
//! translation of addresses, and the supervisor binary interface.
//!
//! [`exec`] is the loop that runs nearly everything; [`slow`] does single
//! instructions that it leaves. [`Cpu`] chooses blocks and takes traps.

pub mod alu;
pub mod blocks;
pub mod compressed;
pub mod csr;
pub mod decode;
pub mod exec;
pub mod fp;
mod fuse;
pub mod hart;
pub mod inst;
pub mod mmu;
mod run;
pub mod sbi;
pub mod slow;
mod straddle;
pub mod table;
pub mod tlb;
pub mod translate;
pub mod trap;

pub use self::run::{Cpu, Pause};
