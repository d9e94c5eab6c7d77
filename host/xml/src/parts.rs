//! Parts of a document in order, in two blocks of memory: reading an element allocates nothing.

/// The kind of a part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A start tag, with the element's name.
    Open,
    /// An attribute's name; its value follows.
    Key,
    Attribute,
    /// Text between tags.
    Text,
    /// Text that is partly a CDATA section or reference.
    Explicit,
    Close,
}

#[derive(Copy, Clone, Debug)]
struct Part {
    kind: Kind,
    /// The end of its text; the start is the end of the part before.
    end: usize,
}

/// Parts and their texts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    parts: Vec<Part>,
    texts: String,
}

impl Parts {
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn push(&mut self, kind: Kind, text: &str) {
        self.texts.push_str(text);
        let end = self.texts.len();
        self.parts.push(Part { kind, end });
    }

    /// Appends to the text of the last part, which becomes of this kind.
    pub(crate) fn extend(&mut self, kind: Kind, text: &str) {
        self.texts.push_str(text);
        let end = self.texts.len();
        if let Some(last) = self.parts.last_mut() {
            *last = Part { kind, end };
        }
    }

    pub(crate) fn kind(&self, at: usize) -> Option<Kind> {
        self.parts.get(at).map(|part| part.kind)
    }

    pub(crate) fn text(&self, at: usize) -> &str {
        let end = |at: usize| self.parts.get(at).map_or(0, |part| part.end);
        let start = at.checked_sub(1).map_or(0, end);
        self.texts.get(start..end(at)).unwrap_or("")
    }
}
