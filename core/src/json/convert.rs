//! Conversion between documents and values, without recursion.

use super::{Document, Kind, NONE, Node, NodeId, Tag, filter, number_words, word};
use crate::text::Text;
use crate::value::{Map, Value};
use std::sync::OnceLock;

/// The unvisited part of a container.
enum Rest<'v> {
    Array(std::slice::Iter<'v, Value>),
    Object(crate::value::MapIter<'v>),
}

/// A container whose children are being added.
struct ToValueFrame<'v> {
    node: u32,
    /// Start of its children in `pending`.
    base: usize,
    /// Filter of its member names.
    names: u32,
    rest: Rest<'v>,
}

impl Document {
    fn push(&mut self, tag: Tag, parent: u32, a: u32, b: u32) -> u32 {
        let at = word(self.nodes.len());
        self.nodes.push(Node {
            tag,
            names: [0; 3],
            parent,
            start: NONE,
            end: NONE,
            a,
            b,
        });
        at
    }

    fn push_string(&mut self, parent: u32, text: &Text) -> u32 {
        let start = word(self.strings.len());
        self.strings.extend_from_slice(text.as_bytes());
        self.push(Tag::OwnString, parent, start, word(text.len_bytes()))
    }
}

/// Nodes between two polls of the stop condition.
const ASK_EVERY: usize = 1024;

pub(super) fn from_value<E>(
    value: &Value,
    mut go_on: impl FnMut() -> Result<(), E>,
) -> Result<Document, E> {
    let mut doc = Document {
        source: None,
        strings: Vec::new(),
        nodes: Vec::new(),
        links: Vec::new(),
        keys: 0,
        lines: OnceLock::new(),
        index: OnceLock::new(),
        origin: None,
    };
    let mut frames: Vec<ToValueFrame<'_>> = Vec::new();
    let mut pending: Vec<u32> = Vec::new();
    let mut next = value;
    let mut asked = 0;
    loop {
        if doc.nodes.len() / ASK_EVERY > asked {
            asked = doc.nodes.len() / ASK_EVERY;
            go_on()?;
        }
        let parent = frames.last().map_or(NONE, |frame| frame.node);
        let (node, rest) = push_value(&mut doc, parent, next);
        pending.push(node);
        if let Some(rest) = rest {
            let base = pending.len();
            frames.push(ToValueFrame {
                node,
                base,
                names: 0,
                rest,
            });
        }
        loop {
            let Some(frame) = frames.last_mut() else {
                return Ok(doc);
            };
            let child = match &mut frame.rest {
                Rest::Array(items) => items.next(),
                Rest::Object(members) => {
                    let (node, names) = (frame.node, &mut frame.names);
                    members
                        .find(|(_, value)| !value.is_undefined())
                        .map(|(key, value)| {
                            *names |= filter::of(key.as_bytes());
                            doc.push_string(node, key);
                            doc.keys += 1;
                            value
                        })
                }
            };
            if let Some(child) = child {
                next = child;
                break;
            }
            let start = word(doc.links.len());
            let count = word(pending.len() - frame.base);
            doc.links.extend(pending.drain(frame.base..));
            if let Some(node) = doc.nodes.get_mut(frame.node as usize) {
                (node.a, node.b) = (start, count);
                node.set_names(frame.names);
            }
            frames.pop();
        }
    }
}

/// Adds the node of one value. For a container also returns its unvisited part.
fn push_value<'v>(doc: &mut Document, parent: u32, value: &'v Value) -> (u32, Option<Rest<'v>>) {
    match value {
        Value::Undefined | Value::Null => (doc.push(Tag::Null, parent, 0, 0), None),
        Value::Bool(false) => (doc.push(Tag::False, parent, 0, 0), None),
        Value::Bool(true) => (doc.push(Tag::True, parent, 0, 0), None),
        Value::Number(number) => {
            let (a, b) = number_words(*number);
            (doc.push(Tag::Number, parent, a, b), None)
        }
        Value::String(text) => (doc.push_string(parent, text), None),
        Value::Array(items) => {
            let node = doc.push(Tag::Array, parent, 0, 0);
            (node, Some(Rest::Array(items.iter())))
        }
        Value::Object(map) => {
            let node = doc.push(Tag::Object, parent, 0, 0);
            (node, Some(Rest::Object(map.iter())))
        }
    }
}

/// A container being built from the children of a node.
struct Building<'d> {
    children: std::slice::Iter<'d, u32>,
    built: Built,
}

enum Built {
    Array(Vec<Value>),
    /// The members and the key of the member being built.
    Object(Map, Text),
}

pub(super) fn to_value(doc: &Document, id: NodeId) -> Value {
    let mut stack: Vec<Building<'_>> = Vec::new();
    let mut at = id;
    loop {
        let mut done = match doc.kind(at) {
            Kind::Null => Some(Value::Null),
            Kind::Bool(value) => Some(Value::Bool(value)),
            Kind::Number(number) => Some(Value::Number(number)),
            Kind::String(text) => Some(Value::String(Text::from_wtf8(text.to_vec()))),
            Kind::Array => {
                let children = doc.children(at, Tag::Array);
                stack.push(Building {
                    children: children.iter(),
                    built: Built::Array(Vec::with_capacity(children.len())),
                });
                None
            }
            Kind::Object => {
                let children = doc.children(at, Tag::Object);
                stack.push(Building {
                    children: children.iter(),
                    built: Built::Object(Map::with_capacity(children.len()), Text::default()),
                });
                None
            }
        };
        loop {
            let Some(mut top) = stack.pop() else {
                return done.unwrap_or(Value::Null);
            };
            match (&mut top.built, done.take()) {
                (Built::Array(items), Some(item)) => items.push(item),
                (Built::Object(map, key), Some(value)) => {
                    map.insert(std::mem::take(key), value);
                }
                (_, None) => {}
            }
            if let Some(&child) = top.children.next() {
                if let Built::Object(_, key) = &mut top.built {
                    *key = Text::from_wtf8(doc.key_before(child).to_vec());
                }
                stack.push(top);
                at = NodeId(child);
                break;
            }
            done = Some(match top.built {
                Built::Array(items) => Value::Array(items),
                Built::Object(map, _) => Value::Object(map),
            });
        }
    }
}
