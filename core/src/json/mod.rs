//! JSON documents: an iterative RFC 8259 parser into a compact arena that keeps source positions.
//!
//! Programs are compiled from a [`Document`], so every finding has a place. The parser accepts a
//! UTF-8 BOM and keeps escaped lone surrogates (decision D36). It refuses duplicate keys in
//! programs (decision D44), documents beyond the [`Limits`] (decision D38) and all other invalid
//! JSON, with place and advice. It recovers from common mistakes (trailing commas, single quotes,
//! comments) to report several at once.
//!
//! It does not stream, and it does not implement the guest's `JSON.parse`, whose messages are part
//! of the language.

mod close;
mod convert;
mod filter;
mod format;
mod index;
mod number;
mod origin;
mod parse;
mod recover;
mod string;
#[cfg(test)]
mod tests;
mod write;

pub use number::{json_number_len, write_js_number, write_json_number};
pub use write::write_json_string;

use crate::diag::{Diagnostics, LineIndex};
use crate::pointer;
use crate::text::{same_name, wtf8_to_string_lossy};
use crate::value::Value;
use index::Index;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::OnceLock;

/// Limits on a document (decision D38).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text; also capped at 4 GiB - 1, so spans fit `u32`.
    pub max_bytes: usize,
    /// Nesting depth of arrays and objects.
    pub max_depth: u32,
    /// Number of values and keys.
    pub max_nodes: u32,
}

impl Default for Limits {
    /// The default limits: 64 MiB of text, 8,192 levels, 4 Mi values and keys. The depth exceeds
    /// 512 steps and 1,024 expression nodes of a few levels each. The nodes take about 100 MiB of
    /// memory.
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            max_depth: 8192,
            max_nodes: 4 << 20,
        }
    }
}

/// Index of a value in a [`Document`].
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Kind of a value. [`Document::elements`] and [`Document::members`] have the contents of
/// containers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Kind<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; infinite if the text names one beyond the range of `f64`.
    Number(f64),
    /// A string as WTF-8.
    String(&'a [u8]),
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Policy for repeated keys.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Repeated {
    Refused,
    Last,
}

/// No node, no offset.
const NONE: u32 = u32::MAX;

/// Interpretation of the two words of a [`Node`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Tag {
    Null,
    False,
    True,
    /// The bits of the number: high word, low word.
    Number,
    /// Offset and length in the source: a string without escapes.
    SourceString,
    /// Offset and length in the buffer of decoded strings.
    OwnString,
    /// Offset and length in the links.
    Array,
    /// Offset and length in the links; the key of a member is the node before.
    Object,
}

/// One value or key: 24 bytes.
#[derive(Copy, Clone, Debug)]
struct Node {
    tag: Tag,
    /// Filter of the member names of an object; see [`filter`].
    names: [u8; 3],
    parent: u32,
    start: u32,
    end: u32,
    a: u32,
    b: u32,
}

/// A JSON document in an arena. Nodes are numbered in reading order.
///
/// An id of another document yields the node with that number, or `null`. It never panics.
#[derive(Clone, Debug)]
pub struct Document {
    source: Option<Vec<u8>>,
    strings: Vec<u8>,
    nodes: Vec<Node>,
    links: Vec<u32>,
    keys: usize,
    lines: OnceLock<LineIndex>,
    index: OnceLock<Index>,
    origin: Option<Box<Origin>>,
}

/// Byte range in the origin for each value and key of a document, in reading order.
pub type Places = [(u32, u32)];

/// The non-JSON text that a document was generated from.
#[derive(Clone, Debug)]
struct Origin {
    text: Vec<u8>,
    /// Byte range in the text for each node.
    places: Vec<(u32, u32)>,
}

impl Document {
    /// Parses JSON text.
    ///
    /// # Errors
    /// All faults found, at least one, in reading order: findings of the family `json` in
    /// [`codes`](crate::diag::codes).
    pub fn parse(text: impl Into<Vec<u8>>, limits: &Limits) -> Result<Self, Diagnostics> {
        parse::parse(text.into(), limits, Repeated::Refused)
    }

    /// Parses JSON data of other systems, where keys may repeat. As in `JSON.parse`, the last value
    /// counts, at the position of the first.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse), without the one about keys.
    pub fn parse_data(text: impl Into<Vec<u8>>, limits: &Limits) -> Result<Self, Diagnostics> {
        parse::parse(text.into(), limits, Repeated::Last)
    }

    /// Sets the text that the document was generated from. Spans, lines and columns then refer to
    /// it. `places` has its byte range for each value and key, in reading order; with a wrong
    /// number of them nothing changes.
    #[must_use]
    pub fn with_origin(mut self, text: Vec<u8>, places: Vec<(u32, u32)>) -> Self {
        if places.len() == self.nodes.len() {
            self.origin = Some(Box::new(Origin { text, places }));
            self.lines = OnceLock::new();
        }
        self
    }

    /// The text that spans refer to: the origin if there is one, otherwise the source.
    #[must_use]
    pub fn shown(&self) -> Option<&[u8]> {
        match &self.origin {
            Some(origin) => Some(&origin.text),
            None => self.source(),
        }
    }

    /// The non-JSON text that the document was generated from, and its byte range for each value
    /// and key, in reading order.
    #[must_use]
    pub fn origin(&self) -> Option<(&[u8], &Places)> {
        let origin = self.origin.as_deref()?;
        Some((&origin.text, &origin.places))
    }

    /// True if the document was generated from non-JSON text.
    #[must_use]
    pub fn has_origin(&self) -> bool {
        self.origin.is_some()
    }

    /// Converts a value to a document without source and spans. `undefined` members are dropped;
    /// other `undefined`s become `null`.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let Ok(document) = convert::from_value(value, || Ok::<_, Infallible>(()));
        document
    }

    /// Like [`from_value`](Self::from_value), for values of any size: polls `stop` every 1,024
    /// nodes and returns `None` once it is true.
    #[must_use]
    pub fn from_value_watched(value: &Value, stop: &dyn Fn() -> bool) -> Option<Self> {
        convert::from_value(value, || if stop() { Err(()) } else { Ok(()) }).ok()
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    fn bytes(&self, buffer: &[u8], node: &Node) -> Range<usize> {
        let start = (node.a as usize).min(buffer.len());
        start..(start + node.b as usize).min(buffer.len())
    }

    fn node_str(&self, node: &Node) -> Option<&[u8]> {
        let buffer = match node.tag {
            Tag::SourceString => self.source.as_deref()?,
            Tag::OwnString => &self.strings,
            _ => return None,
        };
        Some(&buffer[self.bytes(buffer, node)])
    }

    /// Kind of a value.
    #[must_use]
    pub fn kind(&self, id: NodeId) -> Kind<'_> {
        let Some(node) = self.node(id) else {
            return Kind::Null;
        };
        match node.tag {
            Tag::Null => Kind::Null,
            Tag::False => Kind::Bool(false),
            Tag::True => Kind::Bool(true),
            Tag::Number => Kind::Number(node.number()),
            Tag::SourceString | Tag::OwnString => {
                Kind::String(self.node_str(node).unwrap_or_default())
            }
            Tag::Array => Kind::Array,
            Tag::Object => Kind::Object,
        }
    }

    /// The children of a container with the tag `tag`, in source order.
    fn children(&self, id: NodeId, tag: Tag) -> &[u32] {
        match self.node(id) {
            Some(node) if node.tag == tag => {
                let start = node.a as usize;
                self.links
                    .get(start..start + node.b as usize)
                    .unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// The number of elements or members; 0 for scalars.
    #[must_use]
    pub fn len(&self, id: NodeId) -> usize {
        match self.node(id) {
            Some(node) if matches!(node.tag, Tag::Array | Tag::Object) => node.b as usize,
            _ => 0,
        }
    }

    /// True if the value has no elements or members.
    #[must_use]
    pub fn is_empty(&self, id: NodeId) -> bool {
        self.len(id) == 0
    }

    /// The elements of an array; empty for other kinds.
    pub fn elements(&self, id: NodeId) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.children(id, Tag::Array).iter().map(|&at| NodeId(at))
    }

    /// The element at an index of an array.
    #[must_use]
    pub fn element(&self, id: NodeId, index: usize) -> Option<NodeId> {
        self.children(id, Tag::Array)
            .get(index)
            .map(|&at| NodeId(at))
    }

    /// The members of an object in source order, keys as WTF-8; empty for other kinds.
    pub fn members(&self, id: NodeId) -> impl ExactSizeIterator<Item = (&[u8], NodeId)> + '_ {
        self.children(id, Tag::Object)
            .iter()
            .map(|&at| (self.key_before(at), NodeId(at)))
    }

    /// The elements of an array, or the values of an object's members; empty for other kinds.
    pub fn parts(&self, id: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + '_ {
        let tag = self.node(id).map_or(Tag::Null, |node| node.tag);
        let parts = match tag {
            Tag::Array | Tag::Object => self.children(id, tag),
            _ => &[],
        };
        parts.iter().map(|&at| NodeId(at))
    }

    /// The key of the member whose value is node `at`: the node before it.
    fn key_before(&self, at: u32) -> &[u8] {
        self.nodes
            .get(at.wrapping_sub(1) as usize)
            .and_then(|key| self.node_str(key))
            .unwrap_or_default()
    }

    /// The member with a name.
    #[must_use]
    #[inline]
    pub fn get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        self.member(id, key.as_bytes())
    }

    /// The member with a WTF-8 name.
    #[must_use]
    #[inline]
    pub fn member(&self, id: NodeId, key: &[u8]) -> Option<NodeId> {
        // Only objects have bits set.
        match self.node(id) {
            Some(object) if object.may_have(filter::of(key)) => self.search(id, key),
            _ => None,
        }
    }

    /// Searches an object whose filter has the name.
    fn search(&self, id: NodeId, key: &[u8]) -> Option<NodeId> {
        let members = self.children(id, Tag::Object);
        if members.len() > index::SCANNED {
            return self.look_up(id, key);
        }
        let is_named = |at: &&u32| {
            let name = self.nodes.get(at.wrapping_sub(1) as usize);
            // Most names already differ in length.
            name.is_some_and(|name| {
                name.b as usize == key.len()
                    && self.node_str(name).is_some_and(|name| same_name(name, key))
            })
        };
        members.iter().find(is_named).map(|&at| NodeId(at))
    }

    /// Looks up a member of a large object in the index.
    #[inline(never)]
    fn look_up(&self, id: NodeId, key: &[u8]) -> Option<NodeId> {
        let index = self.index.get_or_init(|| Index::of(self));
        index.find(self, id, key)
    }

    /// The string as WTF-8; `None` for other kinds.
    #[must_use]
    pub fn str(&self, id: NodeId) -> Option<&[u8]> {
        self.node_str(self.node(id)?)
    }

    /// The container of the value; `None` for the root.
    #[must_use]
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        let parent = self.node(id)?.parent;
        (parent != NONE).then_some(NodeId(parent))
    }

    /// The RFC 6901 pointer to the value. Lone surrogates in keys become U+FFFD.
    #[must_use]
    pub fn pointer(&self, id: NodeId) -> String {
        let mut path = Vec::new();
        let mut at = id;
        while let Some(parent) = self.parent(at) {
            path.push((parent, at));
            at = parent;
        }
        let mut out = String::new();
        for (parent, child) in path.into_iter().rev() {
            // Child links ascend, because nodes are numbered in reading order.
            match self.children(parent, Tag::Array).binary_search(&child.0) {
                Ok(index) => pointer::push_index(&mut out, index),
                Err(_) => {
                    pointer::push_key(&mut out, &wtf8_to_string_lossy(self.key_before(child.0)));
                }
            }
        }
        out
    }

    /// The byte range of the value in the source, including quotes and brackets; `None` without a
    /// source.
    #[must_use]
    pub fn span(&self, id: NodeId) -> Option<Range<u32>> {
        match &self.origin {
            Some(origin) => origin
                .places
                .get(id.0 as usize)
                .map(|&(start, end)| start..end),
            None => self.node(id).and_then(Node::span),
        }
    }

    /// The byte range of the value's key, including quotes; `None` for elements, the root, and
    /// without a source.
    #[must_use]
    pub fn key_span(&self, id: NodeId) -> Option<Range<u32>> {
        let parent = self.node(self.parent(id)?)?;
        (parent.tag == Tag::Object)
            .then(|| self.span(NodeId(id.0.wrapping_sub(1))))
            .flatten()
    }

    /// Line and column of a byte offset, both from 1, columns in Unicode scalar values; (1, 1)
    /// without a source.
    #[must_use]
    pub fn line_col(&self, offset: u32) -> (u32, u32) {
        match self.shown() {
            Some(text) => self
                .lines
                .get_or_init(|| LineIndex::new(text))
                .line_col(text, offset),
            None => (1, 1),
        }
    }

    /// The parsed text; `None` for a document made from a value.
    #[must_use]
    pub fn source(&self) -> Option<&[u8]> {
        self.source.as_deref()
    }

    /// The value at an RFC 6901 pointer.
    #[must_use]
    pub fn find(&self, pointer: &str) -> Option<NodeId> {
        let mut at = self.root();
        for token in pointer::parse(pointer) {
            at = match self.kind(at) {
                Kind::Array => self.element(at, token.parse().ok()?)?,
                _ => self.get(at, &token)?,
            };
        }
        Some(at)
    }

    /// Converts a value of the document to a [`Value`], without recursion.
    #[must_use]
    pub fn to_value(&self, id: NodeId) -> Value {
        convert::to_value(self, id)
    }

    /// Appends the value as compact JSON text, as `JSON.stringify` writes it: keys in the order of
    /// decision D37, lone surrogates as `\udXXX`.
    pub fn write_json(&self, id: NodeId, out: &mut Vec<u8>) {
        write::write_document(self, id, out);
    }

    /// For each node, including keys, the end of its subtree: one past the last node inside it.
    #[must_use]
    pub fn ends(&self) -> Vec<u32> {
        let mut ends: Vec<u32> = (1..=word(self.nodes.len())).collect();
        // Nodes are numbered in reading order, so descendants follow their ancestors.
        for at in (0..self.nodes.len()).rev() {
            let parent = self.nodes[at].parent;
            if parent != NONE {
                let inner = ends[at];
                let outer = &mut ends[parent as usize];
                *outer = inner.max(*outer);
            }
        }
        ends
    }

    /// Bytes of decoded strings and keys, without those that are slices of the source.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.strings.len()
    }

    /// Memory usage of the document in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let origin = self.origin.as_ref().map_or(0, |origin| {
            origin.text.len() + size_of_val(origin.places.as_slice())
        });
        self.source.as_ref().map_or(0, Vec::len)
            + origin
            + self.strings.len()
            + size_of_val(self.nodes.as_slice())
            + size_of_val(self.links.as_slice())
    }

    /// The number of values; keys do not count.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len() - self.keys
    }
}

impl Node {
    /// True if the filter admits a name with this bit.
    #[inline]
    fn may_have(&self, name: u32) -> bool {
        let [a, b, c] = self.names;
        u32::from_le_bytes([a, b, c, 0]) & name != 0
    }

    /// Stores the name filter of an object.
    fn set_names(&mut self, names: u32) {
        let [a, b, c, _] = names.to_le_bytes();
        self.names = [a, b, c];
    }

    fn number(&self) -> f64 {
        f64::from_bits((u64::from(self.a) << 32) | u64::from(self.b))
    }

    fn span(&self) -> Option<Range<u32>> {
        (self.start != NONE).then_some(self.start..self.end)
    }
}

/// The bits of a number as the two words of a node.
fn number_words(number: f64) -> (u32, u32) {
    let bits = number.to_bits();
    // The casts split the high and the low half.
    ((bits >> 32) as u32, bits as u32)
}

/// A length or offset as stored; documents have fewer than 4 Gi bytes.
fn word(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(NONE)
}
