//! Errors of `mathCalc` texts.

use std::fmt;

/// A parse error of a `mathCalc` text. It is a run-time error of the atom (decision D3); the
/// caller wraps it as `Expression error "<source>": <message>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MathError {
    /// The reference's message, with its ` at character N` (N in UTF-16 units).
    pub message: String,
    /// The byte offset of character N.
    pub offset: u32,
}

impl fmt::Display for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for MathError {}
