//! The source of a program: parsed, unparsed text, or stripped.

use crate::json::{Document, Limits, NodeId, Places};
use crate::value::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The source that a program was compiled from: for error places, trace inputs, and people. Results
/// never depend on it.
///
/// A program from a file parses its text lazily, so a run without errors does not pay for it.
#[derive(Clone, Debug, Default)]
pub struct Source(Repr);

#[derive(Clone, Debug, Default)]
enum Repr {
    #[default]
    Stripped,
    Document(Arc<Document>),
    Text(Arc<Late>),
}

#[derive(Debug)]
struct Late {
    text: Box<[u8]>,
    /// The origin text and its byte range for each value and key.
    origin: Option<(Box<[u8]>, Box<Places>)>,
    document: OnceLock<Option<Document>>,
}

impl Late {
    fn read(&self) -> Option<Document> {
        let document = Document::parse(self.text.to_vec(), &Limits::default()).ok()?;
        Some(match &self.origin {
            Some((text, places)) => document.with_origin(text.to_vec(), places.to_vec()),
            None => document,
        })
    }
}

impl From<Arc<Document>> for Source {
    fn from(document: Arc<Document>) -> Source {
        Source(Repr::Document(document))
    }
}

impl Source {
    /// Creates a source from JSON text, which is parsed lazily. Invalid JSON then counts as no
    /// source.
    #[must_use]
    pub fn from_text(text: impl Into<Box<[u8]>>) -> Source {
        Source(Repr::Text(Arc::new(Late {
            text: text.into(),
            origin: None,
            document: OnceLock::new(),
        })))
    }

    /// Sets the byte ranges in the origin of the text's values and keys.
    pub(crate) fn set_places(&mut self, places: Vec<(u32, u32)>) {
        if let Some(late) = self.late() {
            late.origin = Some((Box::default(), places.into()));
        }
    }

    /// Sets the origin text. Expects that `set_places` was called before.
    pub(crate) fn set_origin(&mut self, text: &[u8]) {
        if let Some((origin, _)) = self.late().and_then(|late| late.origin.as_mut()) {
            *origin = text.into();
        }
    }

    fn late(&mut self) -> Option<&mut Late> {
        match &mut self.0 {
            Repr::Text(late) => Arc::get_mut(late),
            _ => None,
        }
    }

    /// The non-JSON text that the source was generated from, and its byte range for each value and
    /// key, in reading order.
    #[must_use]
    pub fn origin(&self) -> Option<(&[u8], &Places)> {
        match &self.0 {
            Repr::Stripped => None,
            Repr::Document(document) => document.origin(),
            Repr::Text(late) => late
                .origin
                .as_ref()
                .map(|(text, places)| (&**text, &**places)),
        }
    }

    /// The parsed document; `None` without a source.
    #[must_use]
    pub fn document(&self) -> Option<&Document> {
        match &self.0 {
            Repr::Stripped => None,
            Repr::Document(document) => Some(document),
            Repr::Text(late) => late.document.get_or_init(|| late.read()).as_ref(),
        }
    }

    /// The source text; for a program that was given as a value, its JSON text.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, [u8]>> {
        match &self.0 {
            Repr::Stripped => None,
            Repr::Text(late) => Some(Cow::Borrowed(&late.text)),
            Repr::Document(document) => Some(match document.source() {
                Some(text) => Cow::Borrowed(text),
                None => {
                    let mut text = Vec::new();
                    document.write_json(document.root(), &mut text);
                    Cow::Owned(text)
                }
            }),
        }
    }

    /// The RFC 6901 pointer to a node.
    #[must_use]
    pub fn pointer(&self, node: NodeId) -> Option<String> {
        self.document().map(|document| document.pointer(node))
    }

    /// Line and column of a node in the non-JSON text that the program was generated from; both
    /// from 1.
    #[must_use]
    pub fn line_col(&self, node: NodeId) -> Option<(u32, u32)> {
        let document = self.document().filter(|document| document.has_origin())?;
        let span = document.span(node)?;
        Some(document.line_col(span.start))
    }

    /// Line and column of a node in the text that was compiled, JSON or not; both from 1.
    #[must_use]
    pub fn text_line_col(&self, node: NodeId) -> Option<(u32, u32)> {
        let document = self.document()?;
        Some(document.line_col(document.span(node)?.start))
    }

    /// Line and column of the node at an RFC 6901 pointer; see [`line_col`](Self::line_col).
    #[must_use]
    pub fn line_col_at(&self, pointer: &str) -> Option<(u32, u32)> {
        self.line_col(self.document()?.find(pointer)?)
    }

    /// The value of a root member.
    #[must_use]
    pub fn root_member(&self, key: &str) -> Option<Value> {
        let document = self.document()?;
        let node = document.get(document.root(), key)?;
        Some(document.to_value(node))
    }

    /// Number of the document's values; 0 without a source. Compilation at run time measures a
    /// program's size by it.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.document().map_or(0, Document::node_count)
    }
}
