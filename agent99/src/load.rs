//! Loading of `.a99b` files: what an engine accepts, and why it refuses a file.

use a99_core::artifact::{ArtifactError, DecodeOptions};
use a99_vm::LinkError;
use std::fmt;

#[cfg(feature = "signing")]
use a99_core::artifact::sign::{TrustedKeys, check};

/// Requirements on a file before it is decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admission {
    pub(crate) decode: DecodeOptions,
    /// Keys of which one must have signed the file; `None` needs no signature.
    #[cfg(feature = "signing")]
    pub(crate) required: Option<TrustedKeys>,
}

#[cfg(feature = "signing")]
impl Admission {
    /// Checks the signature, if one is required, at the given time.
    pub(crate) fn check_signature(&self, bytes: &[u8], now_ms: f64) -> Result<(), ArtifactError> {
        match &self.required {
            None => Ok(()),
            Some(keys) => check(bytes, keys, seconds(now_ms), &self.decode).map(drop),
        }
    }
}

/// Seconds since 1970, rounded down. If the clock gives no time, every key with an end has
/// expired.
#[cfg(feature = "signing")]
fn seconds(now_ms: f64) -> u64 {
    if now_ms.is_nan() || now_ms < 0.0 {
        return u64::MAX;
    }
    // The cast saturates.
    (now_ms / 1000.0) as u64
}

/// Result of [`Engine::compare_source`](crate::Engine::compare_source): whether an agent's
/// source matches its code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SourceCheck {
    /// The source compiles to the same program.
    Matches,
    /// The source compiles to another program, or not at all.
    Differs,
    /// The agent carries no source.
    Absent,
    /// The source was compiled from the JavaScript form, which this build cannot read.
    Unread,
}

#[cfg(not(feature = "source"))]
impl crate::Engine {
    /// Whether the original text compiles to the source. Only builds with the feature
    /// `source` can check it.
    pub(crate) fn compare_origin(&self, agent: &crate::Agent) -> SourceCheck {
        match agent.artifact().program().source.origin() {
            Some(_) => SourceCheck::Unread,
            None => SourceCheck::Matches,
        }
    }
}

/// Why [`Engine::load`](crate::Engine::load) refused a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file is no artifact, is damaged or forged, or lacks a required signature.
    Artifact(ArtifactError),
    /// The engine's atoms do not match the program.
    Link(LinkError),
}

impl LoadError {
    /// The stable code: `artifact.*` for the format and signatures, `verify.*` for the
    /// verifier, `link.*` for linking.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::Artifact(error) => error.code,
            LoadError::Link(error) => error.code(),
        }
    }

    /// The message, without code and place.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            LoadError::Artifact(error) => error.message.clone(),
            LoadError::Link(error) => error.to_string(),
        }
    }

    /// Offset of the fault in the file, in bytes, if it has one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            LoadError::Artifact(error) => error.offset,
            LoadError::Link(_) => None,
        }
    }

    /// A suggestion for a fix.
    #[must_use]
    pub fn help(&self) -> &str {
        match self {
            LoadError::Artifact(error) => &error.help,
            LoadError::Link(error) => error.help(),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Artifact(error) => error.fmt(f),
            LoadError::Link(error) => write!(f, "{}: {error}", error.code()),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LoadError::Artifact(error) => Some(error),
            LoadError::Link(error) => Some(error),
        }
    }
}

impl From<ArtifactError> for LoadError {
    fn from(error: ArtifactError) -> LoadError {
        LoadError::Artifact(error)
    }
}

impl From<LinkError> for LoadError {
    fn from(error: LinkError) -> LoadError {
        LoadError::Link(error)
    }
}

#[cfg(all(test, feature = "signing"))]
mod tests {
    use super::seconds;

    #[test]
    fn a_clock_without_time_is_late() {
        assert_eq!(seconds(1_999.9), 1);
        assert_eq!(seconds(0.0), 0);
        assert_eq!(seconds(f64::INFINITY), u64::MAX);
        assert_eq!(seconds(f64::NAN), u64::MAX);
        assert_eq!(seconds(-1.0), u64::MAX);
    }
}
