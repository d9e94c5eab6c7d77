//! RISC-V emulator that boots Linux: RV64GC with Zicsr, Zifencei and Zicboz, Sv39
//! with Svvptc, one hart, the supervisor binary interface built in, and the
//! devices a small Linux guest needs.
//!
//! The same code runs natively and as WebAssembly. The machine does no I/O itself: it
//! reaches clock, randomness, console, network and files through the host's trait.

#![warn(unreachable_pub)]

mod bus;
mod channels;
mod cpu;
mod devices;
mod fdt;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod hart;
pub mod host;
mod interp;
mod jit;
pub mod machine;
mod mmu;
mod ram;

pub use self::devices::DeviceConfig;
pub use self::devices::virtio::net::NetConfig;
pub use self::ram::RAM_BASE;

#[cfg(not(target_arch = "wasm32"))]
pub mod translate {
    //! Translation of guest code for an embedder.

    pub use crate::jit::VERSION;
    pub use crate::jit::native::{
        BRANCH_HINTS, Layout, Translation, encode_hints, module, split, translate,
    };
}

pub mod isa {
    //! Instruction set: the table of instructions, and their decoding.

    pub use crate::interp::{compressed, decode, inst, table};
}
#[cfg(target_arch = "wasm32")]
pub mod wasm;
