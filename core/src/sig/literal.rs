//! Literals in programs, judged by the atom that would take them.

use crate::value::Value;
use std::fmt;

/// Why an atom does not take a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralFault {
    /// RFC 6901 pointer into the literal; empty for all of it.
    pub pointer: String,
    /// What is wrong there, as the run would say it, without a full stop.
    pub message: String,
}

/// A function that is called with the index of a parameter and the value that a
/// program gives for it.
type Check = fn(usize, &Value) -> Result<(), LiteralFault>;

/// What an atom knows of the values it takes before it is called: the reading of
/// its inputs, without the call. What it refuses, every run would refuse.
#[derive(Copy, Clone)]
pub struct LiteralCheck(Check);

impl LiteralCheck {
    /// The check by this function, which must not panic.
    #[must_use]
    pub const fn new(check: Check) -> LiteralCheck {
        LiteralCheck(check)
    }

    /// Judges a value for the parameter of this index.
    ///
    /// # Errors
    /// The atom would not take it.
    pub fn check(self, param: usize, value: &Value) -> Result<(), LiteralFault> {
        (self.0)(param, value)
    }
}

impl PartialEq for LiteralCheck {
    fn eq(&self, other: &LiteralCheck) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl fmt::Debug for LiteralCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiteralCheck")
    }
}
