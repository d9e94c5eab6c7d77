//! Parse errors of condition texts.

use std::fmt;
use std::ops::Range;

/// The kind of a parse error.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The text does not follow the grammar.
    Syntax,
    /// The text uses a construct that conditions deliberately leave out.
    Unsupported,
    /// The text is longer than [`MAX_TEXT_BYTES`](super::MAX_TEXT_BYTES).
    TooLong,
    /// The text nests deeper than [`MAX_NESTING`](super::MAX_NESTING).
    TooDeep,
}

/// One error in a condition text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The kind of error.
    pub kind: ParseErrorKind,
    /// The message.
    pub message: String,
    /// Byte range in the text; empty at the end of the text.
    pub span: Range<u32>,
    /// What to write instead.
    pub help: Option<String>,
}

impl ParseError {
    /// An error without help.
    pub(super) fn new(kind: ParseErrorKind, message: impl Into<String>, span: Range<u32>) -> Self {
        Self {
            kind,
            message: message.into(),
            span,
            help: None,
        }
    }

    /// A syntax error.
    pub(super) fn syntax(message: impl Into<String>, span: Range<u32>) -> Self {
        Self::new(ParseErrorKind::Syntax, message, span)
    }

    /// The error of an unsupported construct.
    pub(super) fn unsupported(message: impl Into<String>, span: Range<u32>) -> Self {
        Self::new(ParseErrorKind::Unsupported, message, span)
    }

    /// Adds a suggestion.
    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.span.start)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

/// All errors in one condition text, in order of position; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseErrors(pub Vec<ParseError>);

impl fmt::Display for ParseErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseErrors {}
