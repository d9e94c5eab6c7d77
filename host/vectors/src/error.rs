//! Errors of vectors and rows.

use std::fmt;

/// Why a vector or a row is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorError {
    /// No index has such vectors: they have none, or too many numbers.
    Dimension {
        /// Numbers of a vector.
        dimension: usize,
    },
    /// A vector has another number of numbers than those of the index.
    Length {
        /// What the index asks for.
        expected: usize,
        /// What there is.
        found: usize,
    },
    /// One of the numbers is infinite or none.
    NotFinite {
        /// Its place, from 0.
        at: usize,
    },
    /// The vector is neither zero nor of length one.
    NotUnit,
    /// A row with this id is there already.
    Known {
        /// The id.
        id: u64,
    },
    /// A search was not to go on.
    Stopped,
}

impl fmt::Display for VectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VectorError::Dimension { dimension } => write!(
                f,
                "vectors of {dimension} numbers cannot be indexed: 1 to {} can",
                crate::MAX_DIMENSION
            ),
            VectorError::Length { expected, found } => {
                write!(f, "the vector has {found} numbers, not {expected}")
            }
            VectorError::NotFinite { at } => {
                write!(f, "number {at} of the vector is not finite")
            }
            VectorError::NotUnit => f.write_str("the vector has not length one"),
            VectorError::Stopped => f.write_str("the search was stopped"),
            VectorError::Known { id } => write!(f, "row {id} is there already"),
        }
    }
}

impl std::error::Error for VectorError {}
