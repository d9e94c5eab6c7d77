//! Errors of `mathCalc` texts.

use std::fmt;

/// Why a `mathCalc` text does not parse. It is a run-time error of the atom (decision D3),
/// whose text the caller wraps as `Expression error "<source>": <message>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MathError {
    /// The reference's text, with its ` at character N` (N in UTF-16 units).
    pub message: String,
    /// The byte offset in the text that N stands for.
    pub offset: u32,
}

impl fmt::Display for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for MathError {}
