//! Errors of XML documents.

use std::fmt;

/// The kind of an error. The text of a code never changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum XmlCode {
    /// The value to parse is not a text.
    Input,
    /// The document is not well-formed.
    Syntax,
    /// The document has a document type, which is never read.
    Doctype,
    /// The document has an entity other than the five of the standard.
    Entity,
    /// The document has a character that XML does not allow.
    Character,
    /// The document has too many bytes.
    TooLarge,
    /// Elements are nested too deeply.
    TooDeep,
    /// The document has too many elements, texts and attributes.
    TooManyNodes,
    /// An element has too many attributes.
    TooManyAttributes,
}

impl XmlCode {
    /// The code as text, for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            XmlCode::Input => "xml.input",
            XmlCode::Syntax => "xml.syntax",
            XmlCode::Doctype => "xml.doctype",
            XmlCode::Entity => "xml.entity",
            XmlCode::Character => "xml.character",
            XmlCode::TooLarge => "xml.too_large",
            XmlCode::TooDeep => "xml.too_deep",
            XmlCode::TooManyNodes => "xml.too_many_nodes",
            XmlCode::TooManyAttributes => "xml.too_many_attributes",
        }
    }
}

/// Why a text is no XML document that is read here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlError {
    code: XmlCode,
    message: String,
    place: Option<(usize, usize)>,
}

impl XmlError {
    pub(crate) fn new(code: XmlCode, message: impl Into<String>) -> XmlError {
        XmlError {
            code,
            message: message.into(),
            place: None,
        }
    }

    pub(crate) fn input(message: String) -> XmlError {
        XmlError::new(XmlCode::Input, message)
    }

    /// The same at a byte of the text.
    pub(crate) fn at(mut self, text: &str, offset: usize) -> XmlError {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.get(line_start..).unwrap_or("").chars().count() + 1;
        self.place = Some((line, column));
        self
    }

    /// The kind.
    #[must_use]
    pub fn code(&self) -> XmlCode {
        self.code
    }

    /// Line and column, each from 1, where a place in the text is at fault.
    #[must_use]
    pub fn place(&self) -> Option<(usize, usize)> {
        self.place
    }
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.place {
            Some((line, column)) => write!(f, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for XmlError {}
