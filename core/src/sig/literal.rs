//! Checks of literals in programs by the atom that takes them.

use crate::value::Value;
use std::fmt;

/// The reason why an atom refuses a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralFault {
    /// RFC 6901 pointer into the literal; empty for the whole literal.
    pub pointer: String,
    /// The error message of the run, without a full stop.
    pub message: String,
}

/// Checks the literal that a program passes for the parameter of an index.
type Check = fn(usize, &Value) -> Result<(), LiteralFault>;

/// Compile-time check of an atom's literals: parses inputs without a call. Every run would refuse a
/// refused literal.
#[derive(Copy, Clone)]
pub struct LiteralCheck(Check);

impl LiteralCheck {
    /// Creates a check from a function, which must not panic.
    #[must_use]
    pub const fn new(check: Check) -> LiteralCheck {
        LiteralCheck(check)
    }

    /// Checks a value for the parameter with an index.
    ///
    /// # Errors
    /// The atom would refuse the value.
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
