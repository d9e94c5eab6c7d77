//! Interpreter: decoding, blocks of decoded instructions, and the loop that runs
//! them.
//!
//! [`exec`] is the loop that runs nearly everything; [`slow`] runs single instructions for
//! the CPU, which chooses blocks and takes traps.

pub(crate) mod alu;
pub(crate) mod blocks;
pub mod compressed;
pub mod decode;
pub(crate) mod exec;
pub(crate) mod fp;
pub(crate) mod fuse;
pub mod inst;
pub(crate) mod page_crossing;
pub(crate) mod slow;
pub mod table;
