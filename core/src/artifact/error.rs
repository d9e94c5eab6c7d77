//! Errors of artifact files.

use crate::verify::VerifyError;
use std::fmt;

/// Stable codes of [`ArtifactError`]s of the format. A program that the verifier refuses has the
/// verifier's code. A code is never reused for another meaning.
pub mod codes {
    use crate::codes::code_table;

    code_table! {
        /// The file does not begin with the magic number of an artifact.
        NO_ARTIFACT = "artifact.no_artifact" alias "A99-B0001"
            help "make one with `a99 compile PROGRAM.json -o PROGRAM.a99b`";
        /// The file has another version of the format, or an unknown feature.
        UNKNOWN_VERSION = "artifact.unknown_version" alias "A99-B0002"
            help "use a newer Agent99, or compile the source with this one";
        /// The file is truncated, or has extra bytes.
        WRONG_LENGTH = "artifact.wrong_length" alias "A99-B0003"
            help "the file is damaged: copy or compile it again";
        /// The hash of the content differs from the hash in the header.
        WRONG_HASH = "artifact.wrong_hash" alias "A99-B0004"
            help "the file is damaged: copy or compile it again";
        /// The table of sections is out of order, overlaps, or leaves gaps.
        BAD_SECTIONS = "artifact.bad_sections" alias "A99-B0005"
            help "the file is damaged: copy or compile it again";
        /// A section's content is malformed.
        BAD_CONTENT = "artifact.bad_content" alias "A99-B0006"
            help "the file is damaged: copy or compile it again";
        /// The file was compiled for another instruction set.
        OTHER_INSTRUCTIONS = "artifact.other_instructions" alias "A99-B0007"
            help "another version of Agent99 made this file: compile the source again";
        /// The file is larger than the host allows, or than the format supports.
        TOO_LARGE = "artifact.too_large" alias "A99-B0008";
        /// A signature is required and missing.
        UNSIGNED = "artifact.unsigned" alias "A99-B0009"
            help "sign it with `a99 compile --sign KEYFILE`";
        /// The signature does not fit the content or the key.
        BAD_SIGNATURE = "artifact.bad_signature" alias "A99-B0010";
        /// The key of the signature is not trusted.
        UNTRUSTED_KEY = "artifact.untrusted_key" alias "A99-B0011"
            help "add its public key to the trusted ones, if you trust its owner";
        /// The key of the signature has expired.
        EXPIRED_KEY = "artifact.expired_key" alias "A99-B0012"
            help "sign the artifact with a newer key";
        /// A key file is malformed.
        BAD_KEY_FILE = "artifact.bad_key_file" alias "A99-B0013"
            help "make a key with `a99 keys new NAME`";
        /// The source in the file compiles to another program.
        SOURCE_DIFFERS = "artifact.source_differs" alias "A99-B0014"
            help "what people read in it is not what runs: compile the source again";
    }
}

/// The error of a refused file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactError {
    /// One of [`codes`], or a code of the verifier.
    pub code: &'static str,
    /// The fault, without a full stop.
    pub message: String,
    /// Byte offset in the file, if the fault has one.
    pub offset: Option<u64>,
    /// Advice on fixing the fault.
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

    /// An error for a file damaged or forged in transit.
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
