//! XML documents as values: the capability [`Xml`] without document types.
//!
//! A document is well-formed XML 1.0 with one root element. There are no document types, and no
//! entities except the standard's five and numeric character references. Nothing is fetched,
//! nothing expands, and size, depth, nodes and attributes are limited (security N12).
//!
//! An element is an object, and so is the root:
//!
//! | member | content |
//! |---|---|
//! | `name` | the name as written, with its prefix |
//! | `attributes` | an object with a text for each name, including namespace declarations |
//! | `children` | elements and texts, in order |
//! | `text` | the element's texts joined, without those of nested elements |
//!
//! Comments and processing instructions are skipped, CDATA sections are text, and line ends are
//! single line feeds. Elements that contain elements lose texts of only white space, which come
//! from indentation.
//!
//! ```
//! use a99_xml::XmlParser;
//!
//! let parser = XmlParser::new();
//! let note = parser.parse_document("<note to='Ann'>See <b>1 &lt; 2</b></note>")?;
//! assert_eq!(
//!     note.to_json_string(),
//!     r#"{"name":"note","attributes":{"to":"Ann"},"children":["See ",{"name":"b","attributes":{},"children":["1 < 2"],"text":"1 < 2"}],"text":"See "}"#,
//! );
//! let bomb = "<!DOCTYPE a [<!ENTITY b 'x'>]><a>&b;</a>";
//! assert_eq!(parser.parse_document(bomb).unwrap_err().code().name(), "xml.doctype");
//! # Ok::<(), a99_xml::XmlError>(())
//! ```

#![warn(unreachable_pub)]

mod build;
mod characters;
mod error;
mod gate;
mod parts;
mod tree;

pub use error::{XmlCode, XmlError};

use a99_capabilities::{CapabilityError, Reply, Xml};
use a99_core::value::Value;
use gate::Gate;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use tree::{Tree, Turn};

/// Limits of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlLimits {
    /// Maximum bytes of text.
    pub max_bytes: usize,
    /// Maximum depth of nested elements.
    pub max_depth: usize,
    /// Maximum elements, texts and attributes together.
    pub max_nodes: usize,
    /// Maximum attributes of one element.
    pub max_attributes: usize,
}

impl Default for XmlLimits {
    /// 4 MiB, the limit for values that cross into a program (D21); 128 levels; 50,000 nodes;
    /// 256 attributes.
    fn default() -> XmlLimits {
        XmlLimits {
            max_bytes: 4 << 20,
            max_depth: 128,
            max_nodes: 50_000,
            max_attributes: 256,
        }
    }
}

/// Parses documents to the values that the crate documents. As a capability, it and its clones
/// read at most four documents at once; others wait.
#[derive(Clone, Debug, Default)]
pub struct XmlParser {
    limits: XmlLimits,
    gate: Arc<Gate>,
}

impl XmlParser {
    /// A parser with the default limits.
    #[must_use]
    pub fn new() -> XmlParser {
        XmlParser::default()
    }

    /// A parser with other limits.
    #[must_use]
    pub fn with_limits(limits: XmlLimits) -> XmlParser {
        XmlParser {
            limits,
            gate: Arc::default(),
        }
    }

    /// Parses a document to its root element.
    ///
    /// # Errors
    /// If it is not well-formed, has a document type or another entity, or exceeds a limit.
    pub fn parse_document(&self, text: &str) -> Result<Value, XmlError> {
        let mut tree = Tree::new(text, &self.limits)?;
        loop {
            if let Turn::Done(root) = tree.turn()? {
                return Ok(root);
            }
        }
    }

    /// Parses a document, and yields to other tasks regularly.
    async fn parse_in_turns(&self, text: &Value) -> Result<Value, XmlError> {
        let Some(text) = text.as_text() else {
            let kind = text.kind();
            return Err(XmlError::input(format!("XML is a string, not {kind}")));
        };
        let Some(text) = text.to_str() else {
            let message = "the XML text has half of a surrogate pair";
            return Err(XmlError::new(XmlCode::Character, message));
        };
        let _pass = self.gate.enter().await;
        let mut tree = Tree::new(text, &self.limits)?;
        loop {
            if let Turn::Done(root) = tree.turn()? {
                return Ok(root);
            }
            let mut given_way = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut given_way, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }
}

impl Xml for XmlParser {
    fn parse(&self, text: Value) -> Reply<'_> {
        Box::pin(async move {
            let parsed = self.parse_in_turns(&text).await;
            parsed.map_err(|error| CapabilityError::new(error.to_string()))
        })
    }
}
