//! XML documents as values: the capability [`Xml`] without document types.
//!
//! A document is well-formed XML 1.0 in one root element. There are no document
//! types and no entities but the five of the standard and numbers of characters;
//! nothing is fetched, nothing expands, and size, depth, nodes and attributes
//! are bounded (security N12).
//!
//! An element is an object, and so is the root:
//!
//! | member | what it is |
//! |---|---|
//! | `name` | its name as written, with the prefix if it has one |
//! | `attributes` | an object: a text for each name, namespace declarations too |
//! | `children` | elements and texts, in order |
//! | `text` | its own texts in one, those of elements inside left out |
//!
//! Comments and processing instructions are skipped, CDATA sections are text, and
//! line ends are single line feeds. Texts of white space alone, which come from
//! indentation, are left out of elements that hold elements.
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

/// What a document may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlLimits {
    /// Bytes of text.
    pub max_bytes: usize,
    /// Elements inside each other.
    pub max_depth: usize,
    /// Elements, texts and attributes together.
    pub max_nodes: usize,
    /// Attributes of one element.
    pub max_attributes: usize,
}

impl Default for XmlLimits {
    /// 4 MiB, which is what may cross into a program (D21); 128 levels; 50,000
    /// nodes; 256 attributes.
    fn default() -> XmlLimits {
        XmlLimits {
            max_bytes: 4 << 20,
            max_depth: 128,
            max_nodes: 50_000,
            max_attributes: 256,
        }
    }
}

/// Parses documents; see the crate for what it makes of them. As a capability it and its
/// clones read four at once, and others wait.
#[derive(Clone, Debug, Default)]
pub struct XmlParser {
    limits: XmlLimits,
    gate: Arc<Gate>,
}

impl XmlParser {
    /// With the limits that hold by default.
    #[must_use]
    pub fn new() -> XmlParser {
        XmlParser::default()
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(limits: XmlLimits) -> XmlParser {
        XmlParser {
            limits,
            gate: Arc::default(),
        }
    }

    /// The root element of a document.
    ///
    /// # Errors
    /// If it is not well-formed, has a document type or another entity, or passes
    /// a limit.
    pub fn parse_document(&self, text: &str) -> Result<Value, XmlError> {
        let mut tree = Tree::new(text, &self.limits)?;
        loop {
            if let Turn::Done(root) = tree.turn()? {
                return Ok(root);
            }
        }
    }

    /// The same, giving way to other tasks now and then.
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
