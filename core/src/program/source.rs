//! The source of a program: read already, still text, or stripped.

use crate::json::{Document, Limits, NodeId, Places};
use crate::value::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The source that a program was compiled from, for places of errors, inputs
/// in traces, and people. No result depends on it.
///
/// A program that was loaded from a file reads its text at the first need, so
/// that a run without errors never pays for it.
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
    /// The text that it was made of, and the bytes of that for each value and key.
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
    /// JSON text that is read when it is needed; what is no JSON then counts as
    /// no source.
    #[must_use]
    pub fn from_text(text: impl Into<Box<[u8]>>) -> Source {
        Source(Repr::Text(Arc::new(Late {
            text: text.into(),
            origin: None,
            document: OnceLock::new(),
        })))
    }

    /// Says which bytes of its origin the values and keys of a text stand for.
    pub(crate) fn set_places(&mut self, places: Vec<(u32, u32)>) {
        if let Some(late) = self.late() {
            late.origin = Some((Box::default(), places.into()));
        }
    }

    /// Says what a text was made of; its places were said.
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

    /// The text that the source was made of, where that is no JSON, and the bytes of it
    /// that each value and key stands for, in reading order.
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

    /// The document, if there is a source.
    #[must_use]
    pub fn document(&self) -> Option<&Document> {
        match &self.0 {
            Repr::Stripped => None,
            Repr::Document(document) => Some(document),
            Repr::Text(late) => late.document.get_or_init(|| late.read()).as_ref(),
        }
    }

    /// The text: as it was read, or the JSON of a program that was given as a
    /// value.
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

    /// Line and column of a node in the text that the program was made of, where that
    /// is no JSON; both from 1.
    #[must_use]
    pub fn line_col(&self, node: NodeId) -> Option<(u32, u32)> {
        let document = self.document().filter(|document| document.has_origin())?;
        let span = document.span(node)?;
        Some(document.line_col(span.start))
    }

    /// The same for the node that an RFC 6901 pointer leads to.
    #[must_use]
    pub fn line_col_at(&self, pointer: &str) -> Option<(u32, u32)> {
        self.line_col(self.document()?.find(pointer)?)
    }

    /// The value of a member of the root.
    #[must_use]
    pub fn root_member(&self, key: &str) -> Option<Value> {
        let document = self.document()?;
        let node = document.get(document.root(), key)?;
        Some(document.to_value(node))
    }

    /// Values and keys of the document: what the program's size is measured
    /// by when it is compiled at run time. 0 without a source.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.document().map_or(0, Document::node_count)
    }
}
