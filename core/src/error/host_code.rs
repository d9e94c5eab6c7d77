//! Error codes that hosts define for failures of their atoms.

use crate::codes::{is_dotted, is_of_capability, is_taken};
use serde::{Serialize, Serializer};
use std::fmt;

/// A host-defined error code: a family and a name in snake case with a dot between them, such as
/// `billing.declined`. It accompanies the engine's [`ErrorCode`](super::ErrorCode). The two cannot
/// be confused: families of the engine ([docs/errors.md]) are refused.
///
/// The compiler rejects an invalid constant, and `match` takes a constant as a pattern:
///
/// ```
/// use a99_core::error::HostCode;
///
/// const DECLINED: HostCode = HostCode::new("billing.declined");
///
/// match HostCode::checked("billing.declined") {
///     Ok(DECLINED) => {}
///     other => panic!("{other:?}"),
/// }
/// assert!(HostCode::checked("fuel.exhausted").is_err());
/// ```
///
/// [docs/errors.md]: crate::codes
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostCode(&'static str);

/// The reason why a text cannot be a host code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum HostCodeError {
    /// The text is not two snake-case words with a dot between them.
    Form,
    /// The family belongs to the engine.
    Taken,
}

impl HostCodeError {
    const fn text(self) -> &'static str {
        match self {
            HostCodeError::Form => {
                "a code is a family and a name in snake case, as in `billing.declined`"
            }
            HostCodeError::Taken => {
                "the code's family belongs to the engine: choose another, as in `billing.declined`"
            }
        }
    }
}

impl fmt::Display for HostCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for HostCodeError {}

impl HostCode {
    /// Creates a code, for constants.
    ///
    /// # Panics
    /// The text cannot be a host code. In a constant this is a compile error.
    #[must_use]
    pub const fn new(code: &'static str) -> HostCode {
        match HostCode::checked(code) {
            Ok(code) => code,
            Err(error) => panic!("{}", error.text()),
        }
    }

    /// Creates a code from a text.
    ///
    /// # Errors
    /// The text is malformed, or its family belongs to the engine.
    pub const fn checked(code: &'static str) -> Result<HostCode, HostCodeError> {
        if !is_dotted(code) {
            Err(HostCodeError::Form)
        } else if is_taken(code) {
            Err(HostCodeError::Taken)
        } else {
            Ok(HostCode(code))
        }
    }

    /// The code of a capability that comes with the engine, such as `ai.length`. Hosts cannot use
    /// these families. `None` for other families.
    #[must_use]
    pub const fn of_capability(code: &'static str) -> Option<HostCode> {
        match is_dotted(code) && is_of_capability(code) {
            true => Some(HostCode(code)),
            false => None,
        }
    }

    /// The code as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for HostCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Serializes as the text.
impl Serialize for HostCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    #[test]
    fn codes_of_the_engine_are_taken() {
        for row in codes::all() {
            assert_eq!(HostCode::checked(row.name), Err(HostCodeError::Taken));
        }
        for taken in ["sandbox.mine", "lint.mine", "cli.usage"] {
            assert_eq!(HostCode::checked(taken), Err(HostCodeError::Taken));
        }
        let of_capability = |code| HostCode::of_capability(code).map(HostCode::as_str);
        assert_eq!(of_capability("ai.length"), Some("ai.length"));
        for other in ["fuel.exhausted", "billing.declined", "ai", "ai.A"] {
            assert_eq!(of_capability(other), None);
        }
        for bad in [
            "", "declined", "a.b.c", "a.", ".b", "A.b", "a.b-c", "a.b_", "a b.c",
        ] {
            assert_eq!(HostCode::checked(bad), Err(HostCodeError::Form), "{bad}");
        }
        for good in ["billing.declined", "fuels.exhausted", "fue.l", "x2.no_3"] {
            assert_eq!(HostCode::checked(good).map(HostCode::as_str), Ok(good));
        }
    }
}
