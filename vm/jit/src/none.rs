//! No machine code: what there is on machines that the compiler does not know.

use crate::{ExitId, Meter, Refused, Region};

/// A region as machine code; there is none on this machine.
#[derive(Debug)]
pub enum CompiledLoop {}

impl CompiledLoop {
    /// Runs the loop over these cells until it is left.
    pub fn run(&self, _: &mut [f64], _: &mut Meter) -> ExitId {
        match *self {}
    }

    /// Bytes that its machine code takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match *self {}
    }
}

pub(crate) fn compile(_: &Region) -> Result<CompiledLoop, Refused> {
    Err(Refused::Machine)
}
