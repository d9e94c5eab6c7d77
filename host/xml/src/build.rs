//! Building: from the parts of a well-formed document to values.

use crate::characters::is_blank;
use crate::parts::{Kind, Parts};
use a99_core::text::Text;
use a99_core::value::{Map, Value};

/// Parts in one turn: a fraction of a millisecond.
const PARTS_IN_TURN: usize = 500;
/// Bytes in one turn.
const BYTES_IN_TURN: usize = 256 << 10;

/// An open element.
struct Frame {
    name: Text,
    attributes: Map,
    children: Vec<Value>,
    /// Indices of children that are white space between tags.
    blanks: Vec<usize>,
    holds_elements: bool,
}

/// A tree that is being built.
pub(crate) struct Build {
    /// The index of the next part.
    at: usize,
    open: Vec<Frame>,
    keys: [Text; 4],
}

impl Default for Build {
    fn default() -> Build {
        Build {
            at: 0,
            open: Vec::new(),
            keys: ["name", "attributes", "children", "text"].map(Text::from),
        }
    }
}

impl Build {
    /// Builds for one turn. Gives the root element once it is closed.
    pub(crate) fn turn(&mut self, parts: &Parts) -> Option<Value> {
        let mut bytes = 0;
        for _ in 0..PARTS_IN_TURN {
            let (kind, text) = (parts.kind(self.at)?, parts.text(self.at));
            self.at += 1;
            bytes += text.len();
            match (kind, self.open.last_mut()) {
                (Kind::Open, parent) => {
                    if let Some(parent) = parent {
                        parent.holds_elements = true;
                    }
                    self.open.push(Frame::of(text));
                }
                (Kind::Attribute, Some(frame)) => {
                    frame.attributes.insert(parts.text(self.at - 2), text);
                }
                (Kind::Text | Kind::Explicit, Some(frame)) => {
                    if kind == Kind::Text && is_blank(text) {
                        frame.blanks.push(frame.children.len());
                    }
                    frame.children.push(text.into());
                }
                (Kind::Close, _) => {
                    let element = self.close()?;
                    match self.open.last_mut() {
                        Some(parent) => parent.children.push(element),
                        None => return Some(element),
                    }
                }
                // A value follows its key, and there are no parts outside of the root.
                (Kind::Key, _) | (_, None) => {}
            }
            if bytes > BYTES_IN_TURN {
                break;
            }
        }
        None
    }

    fn close(&mut self) -> Option<Value> {
        let frame = self.open.pop()?;
        let mut children = frame.children;
        if frame.holds_elements && !frame.blanks.is_empty() {
            let mut blanks = frame.blanks.into_iter().peekable();
            let mut place = 0;
            children.retain(|_| {
                let blank = blanks.next_if_eq(&place).is_some();
                place += 1;
                !blank
            });
        }
        let text = own_text(&children);
        let [name_key, attributes_key, children_key, text_key] = self.keys.clone();
        let mut element = Map::with_capacity(4);
        element.insert(name_key, frame.name);
        element.insert(attributes_key, frame.attributes);
        element.insert(children_key, children);
        element.insert(text_key, text);
        Some(element.into())
    }
}

impl Frame {
    fn of(name: &str) -> Frame {
        Frame {
            name: name.into(),
            attributes: Map::new(),
            children: Vec::new(),
            blanks: Vec::new(),
            holds_elements: false,
        }
    }
}

/// Joins the texts among these.
fn own_text(children: &[Value]) -> Text {
    let mut texts = children.iter().filter_map(Value::as_text);
    match (texts.next(), texts.next()) {
        (None, _) => Text::from(""),
        (Some(one), None) => one.clone(),
        (Some(first), Some(second)) => {
            let all = [first, second].into_iter().chain(texts);
            Text::from_wtf8(all.flat_map(|t| t.as_bytes()).copied().collect())
        }
    }
}
