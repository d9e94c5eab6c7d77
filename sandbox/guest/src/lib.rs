//! A RISC-V machine that boots Linux: RV64GC with Zicsr, Zifencei and Zicboz, Sv39
//! with Svvptc, one hart, the supervisor binary interface built in, and the
//! devices a small Linux guest needs.
//!
//! The same code runs natively and as WebAssembly. The machine does no I/O of
//! its own: it reaches clock, randomness, console, network and files through
//! the host's trait.

pub mod bus;
pub mod channels;
pub mod cpu;
pub mod devices;
pub mod fdt;
pub mod fuzz;
pub mod host;
pub mod machine;
pub mod map;
pub mod ram;
#[cfg(target_arch = "wasm32")]
pub mod wasm;
