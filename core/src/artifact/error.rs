//! Why a file is no artifact.

use crate::verify::VerifyError;
use std::fmt;

/// The stable codes of [`ArtifactError`]s that the format knows; a program that
/// the verifier refuses has the verifier's. A code is never reused for another
/// meaning.
pub mod codes {
    /// The file does not begin as an artifact does.
    pub const B0001: &str = "A99-B0001";
    /// Another version of the format, or an unknown feature.
    pub const B0002: &str = "A99-B0002";
    /// The file ends too early, or goes on after its end.
    pub const B0003: &str = "A99-B0003";
    /// The content does not have the hash that the header says.
    pub const B0004: &str = "A99-B0004";
    /// The table of sections is out of order, overlaps, or leaves gaps.
    pub const B0005: &str = "A99-B0005";
    /// A section's bytes do not mean anything.
    pub const B0006: &str = "A99-B0006";
    /// Compiled for another instruction set.
    pub const B0007: &str = "A99-B0007";
    /// Larger than the host allows, or than the format can say.
    pub const B0008: &str = "A99-B0008";
    /// A signature is required and there is none.
    pub const B0009: &str = "A99-B0009";
    /// The signature does not fit the content or the key.
    pub const B0010: &str = "A99-B0010";
    /// Signed by a key that is not among the trusted ones.
    pub const B0011: &str = "A99-B0011";
    /// Signed by a key whose time is over.
    pub const B0012: &str = "A99-B0012";
    /// A key file is malformed.
    pub const B0013: &str = "A99-B0013";
    /// The source in the file compiles to another program.
    pub const B0014: &str = "A99-B0014";
}

/// A file that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactError {
    /// One of [`codes`], or of the verifier's.
    pub code: &'static str,
    /// What is wrong, without a full stop.
    pub message: String,
    /// Where: the byte of the file, if one is to blame.
    pub offset: Option<u64>,
    /// What to do.
    pub help: String,
}

impl ArtifactError {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, help: &str) -> ArtifactError {
        ArtifactError {
            code,
            message: message.into(),
            offset: None,
            help: help.to_owned(),
        }
    }

    pub(crate) fn at(self, offset: usize) -> ArtifactError {
        ArtifactError {
            offset: Some(offset as u64),
            ..self
        }
    }

    /// The file was damaged or forged on its way.
    pub(crate) fn damaged(code: &'static str, message: impl Into<String>) -> ArtifactError {
        ArtifactError::new(
            code,
            message,
            "the file is damaged: copy or compile it again",
        )
    }

    pub(crate) fn refused(error: VerifyError) -> ArtifactError {
        let text = error.to_string();
        let message = text.strip_prefix(error.code).unwrap_or(&text);
        ArtifactError::new(
            error.code,
            message.trim_start_matches(": "),
            "no compiler makes such a program: compile it again from a source you trust",
        )
    }
}

impl fmt::Display for ArtifactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match self.offset {
            Some(offset) => write!(f, " (byte {offset})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ArtifactError {}
