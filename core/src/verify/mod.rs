//! The verifier: the only way from a [`Program`] to an [`Artifact`].
//!
//! A program may come from the compiler or from a hostile file; both get the same checks. They
//! prove the properties that the machine relies on without checking, in time near-linear in the
//! size of the program:
//!
//! * every index is inside its table, every text is WTF-8 (security B03);
//! * basic blocks cover the code, each begins with its own
//!   [`Op::Fuel`](crate::program::Op::Fuel), jumps go to block heads only, and no function runs off
//!   its end (B02): so no cycle avoids a yield point;
//! * the price of each block is the sum of its charges (B04), a step that calls an atom is charged
//!   where it is entered, and can be entered nowhere else;
//! * a register is read only after every path has written it (B03); the machine itself checks that
//!   an iterator or a growing array is one, since both may have been in a frame slot;
//! * steps and handlers are properly nested;
//! * every endless path through the code meets a charge (B04).
//!
//! The source is for people: no result depends on it, so places are not compared with it.
//!
//! The verifier does not judge whether code is a faithful translation of the source. It does not
//! bound how long code runs; fuel does.

mod code;
pub mod codes;
mod flow;
mod metering;
mod ranges;
mod regions;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use crate::program::{Function, Program};
use crate::sig::BaseCost;
use std::fmt;
use std::sync::Arc;

/// A verified program, the only form that runs. Clones share it.
#[derive(Clone, Debug)]
pub struct Artifact {
    program: Arc<Program>,
}

impl Artifact {
    /// The program, which is immutable.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Proves again that no execution continues without being charged, at a host's prices for
    /// [`Program::ops`] instead of the compiled ones.
    ///
    /// # Errors
    /// [`codes::UNCHARGED_CODE`]: some execution is free at these prices.
    pub fn check_prices(&self, costs: &[BaseCost]) -> Result<(), VerifyError> {
        never_stopped(self.check_prices_watched(costs, &|| false))
    }

    /// Like [`Artifact::check_prices`], and polls `stop`; `None` once it returns true.
    ///
    /// # Errors
    /// As [`Artifact::check_prices`].
    pub fn check_prices_watched(
        &self,
        costs: &[BaseCost],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<Result<(), VerifyError>> {
        let same = |(op, cost): (&crate::program::OpRef, &BaseCost)| op.cost == *cost;
        if self.program.ops.iter().zip(costs).all(same) {
            return Some(Ok(()));
        }
        check_watched(&self.program, costs, stop)
    }
}

/// [`VerifyError::function`] of an error in a table of the whole program.
pub const NO_FUNCTION: u32 = u32::MAX;

/// The reason why a program was refused. Programs of the compiler are never refused, so this means
/// a damaged or forged file, or a compiler bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// One of [`codes`].
    pub code: &'static str,
    /// The fault, without a full stop.
    pub message: String,
    /// Index of the function, or [`NO_FUNCTION`].
    pub function: u32,
    /// Index of the instruction, if the fault is in one.
    pub pc: Option<u32>,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match (self.function, self.pc) {
            (NO_FUNCTION, _) => Ok(()),
            (function, None) => write!(f, " (function {function})"),
            (function, Some(pc)) => write!(f, " (function {function}, instruction {pc})"),
        }
    }
}

impl std::error::Error for VerifyError {}

/// The result of one check.
type Check = Result<(), VerifyError>;

/// An error in a table of the whole program.
fn refuse(code: &'static str, message: impl Into<String>) -> VerifyError {
    VerifyError {
        code,
        message: message.into(),
        function: NO_FUNCTION,
        pc: None,
    }
}

/// A function under verification.
#[derive(Copy, Clone)]
struct Unit<'a> {
    program: &'a Program,
    facts: &'a tables::Facts,
    f: &'a Function,
    index: u32,
}

impl Unit<'_> {
    /// An error in the function as a whole.
    fn refuse(&self, code: &'static str, message: impl Into<String>) -> VerifyError {
        VerifyError {
            function: self.index,
            ..refuse(code, message)
        }
    }

    /// An error at an instruction.
    fn refuse_at(
        &self,
        code: &'static str,
        pc: impl TryInto<u32>,
        message: impl Into<String>,
    ) -> VerifyError {
        VerifyError {
            pc: pc.try_into().ok(),
            ..self.refuse(code, message)
        }
    }

    /// The number of instructions; code has fewer than 4 Gi.
    fn len(&self) -> u32 {
        u32::try_from(self.f.code.len()).unwrap_or(u32::MAX)
    }

    /// Number of leading registers that are bound at the function's entry.
    fn bound_at_entry(&self) -> usize {
        let outer = if self.index == 0 {
            self.program.outer.len()
        } else {
            0
        };
        outer.max(usize::from(self.f.params))
    }
}

/// Verifies a program and makes it runnable.
///
/// # Errors
/// The first property that the machine could not rely on.
pub fn verify(program: Program) -> Result<Artifact, VerifyError> {
    check(&program)?;
    Ok(Artifact {
        program: Arc::new(program),
    })
}

/// Like [`verify`], and polls `stop`; `None` once it returns true.
///
/// # Errors
/// As [`verify`].
pub fn verify_watched(
    program: Program,
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Result<Artifact, VerifyError>> {
    let costs: Vec<BaseCost> = program.ops.iter().map(|op| op.cost).collect();
    let checked = check_watched(&program, &costs, stop)?;
    Some(checked.map(|()| Artifact {
        program: Arc::new(program),
    }))
}

/// Runs all checks, in an order in which later ones may rely on earlier ones.
fn check(program: &Program) -> Check {
    let costs: Vec<BaseCost> = program.ops.iter().map(|op| op.cost).collect();
    never_stopped(check_watched(program, &costs, &|| false))
}

/// Unwraps a check that cannot be stopped. An incomplete check is not accepted.
fn never_stopped(checked: Option<Check>) -> Check {
    checked.unwrap_or_else(|| Err(refuse(codes::TOO_LARGE, "verifying was stopped")))
}

/// Runs all checks at these prices of ops; `None` if it was stopped.
fn check_watched(
    program: &Program,
    costs: &[BaseCost],
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Check> {
    /// Returns an error to the caller, and polls `stop`.
    macro_rules! step {
        ($check:expr) => {{
            if stop() {
                return None;
            }
            match $check {
                Ok(made) => made,
                Err(error) => return Some(Err(error)),
            }
        }};
    }
    let facts = step!(tables::check(program));
    let mut functions = Vec::with_capacity(program.functions.len());
    for (index, f) in program.functions.iter().enumerate() {
        let index = u32::try_from(index).unwrap_or(NO_FUNCTION);
        let unit = Unit {
            program,
            facts: &facts,
            f,
            index,
        };
        step!(regions::check_steps(&unit));
        let jumps = step!(code::check(&unit));
        let handlers = step!(regions::check(&unit, &jumps));
        step!(flow::check(&unit, &jumps, &handlers));
        functions.push(metering::Checked {
            unit,
            jumps,
            handlers,
        });
    }
    let checked = metering::check(program, &functions, costs, stop)?;
    // Freed piece by piece, like all data that is built piece by piece.
    while functions.pop().is_some() {
        if stop() {
            return None;
        }
    }
    Some(checked)
}
