//! Which `.a99b` files an engine takes, and why it refuses others.

use a99_core::artifact::{ArtifactError, DecodeOptions};
use a99_vm::LinkError;
use std::fmt;

#[cfg(feature = "signing")]
use a99_core::artifact::sign::{TrustedKeys, check};

/// What a file must be before it is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admission {
    /// How large it may be.
    pub(crate) decode: DecodeOptions,
    /// Who must have signed it, if anybody.
    #[cfg(feature = "signing")]
    pub(crate) required: Option<TrustedKeys>,
}

#[cfg(feature = "signing")]
impl Admission {
    /// Checks the signature, if one is required, at this time.
    pub(crate) fn check_signature(&self, bytes: &[u8], now_ms: f64) -> Result<(), ArtifactError> {
        match &self.required {
            None => Ok(()),
            Some(keys) => check(bytes, keys, seconds(now_ms), &self.decode).map(drop),
        }
    }
}

/// Whole seconds since 1970. By a clock that shows no time every key with an end
/// has expired.
#[cfg(feature = "signing")]
fn seconds(now_ms: f64) -> u64 {
    if now_ms.is_nan() || now_ms < 0.0 {
        return u64::MAX;
    }
    // The cast saturates.
    (now_ms / 1000.0) as u64
}

/// Whether the source that an agent carries is that of its code: see
/// [`Engine::compare_source`](crate::Engine::compare_source).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SourceCheck {
    /// It compiles to the same program.
    Matches,
    /// It compiles to another program, or not at all.
    Differs,
    /// There is no source.
    Absent,
    /// It was made of a text in the source form, which this build does not read.
    Unread,
}

#[cfg(not(feature = "source"))]
impl crate::Engine {
    /// Whether the text that the source was made of stands for it: only a build with the
    /// source form knows.
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
    /// The file is no artifact, is damaged or forged, or is not signed as it
    /// must be.
    Artifact(ArtifactError),
    /// The engine's atoms do not fit the program.
    Link(LinkError),
}

impl LoadError {
    /// The stable code: `artifact.*` of the format and of signatures,
    /// `verify.*` of the verifier, `link.*` of linking.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::Artifact(error) => error.code,
            LoadError::Link(error) => error.code(),
        }
    }

    /// What is wrong, without code and place.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            LoadError::Artifact(error) => error.message.clone(),
            LoadError::Link(error) => error.to_string(),
        }
    }

    /// The byte of the file that is to blame, if one is.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self {
            LoadError::Artifact(error) => error.offset,
            LoadError::Link(_) => None,
        }
    }

    /// What to do about it.
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
