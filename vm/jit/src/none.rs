//! Stub for machines without code generation.

use crate::{ExitId, Meter, Refused, Region};

/// The machine code of a region, which does not exist on this machine.
#[derive(Debug)]
pub enum CompiledLoop {}

impl CompiledLoop {
    /// Runs the loop over these cells and returns its exit.
    pub fn run(&self, _: &mut [f64], _: &mut Meter) -> ExitId {
        match *self {}
    }

    /// Size of the machine code in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match *self {}
    }
}

pub(crate) fn compile(_: &Region) -> Result<CompiledLoop, Refused> {
    Err(Refused::Machine)
}
