//! Device tree reader for tests, written from the specification alone, independent of the
//! writer.

use super::writer::{BEGIN_NODE, END, END_NODE, MAGIC, PROP, VERSIONS};
use std::collections::BTreeMap;

/// A node with its subtree.
#[derive(Debug, Default)]
pub(super) struct TreeNode {
    /// Properties by name.
    pub properties: BTreeMap<String, Vec<u8>>,
    /// Child nodes by name, unit address included.
    pub children: BTreeMap<String, TreeNode>,
}

struct Walk<'a> {
    blob: &'a [u8],
    at: usize,
    strings: usize,
}

fn word(blob: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(blob[at..at + 4].try_into().expect("four bytes"))
}

fn text(blob: &[u8], at: usize) -> String {
    let len = blob[at..]
        .iter()
        .position(|&byte| byte == 0)
        .expect("a zero");
    String::from_utf8(blob[at..at + len].to_vec()).expect("ASCII")
}

impl TreeNode {
    /// Parses a blob; panics at the first error.
    pub(super) fn parse(blob: &[u8]) -> Self {
        assert_eq!(word(blob, 0), MAGIC);
        assert_eq!(word(blob, 4) as usize, blob.len());
        assert_eq!((word(blob, 20), word(blob, 24)), VERSIONS);
        let [structure, strings, reserved] = [8, 12, 16].map(|at| word(blob, at) as usize);
        assert_eq!((structure % 4, reserved % 8), (0, 0));
        assert_eq!(blob[reserved..reserved + 16], [0; 16]);
        assert_eq!(strings + word(blob, 32) as usize, blob.len());
        let mut walk = Walk {
            blob,
            at: structure,
            strings,
        };
        assert_eq!(walk.next(), BEGIN_NODE);
        assert_eq!(walk.name(), "");
        let root = walk.node();
        assert_eq!(walk.next(), END);
        assert_eq!(walk.at, structure + word(blob, 36) as usize);
        root
    }

    /// The node at a path.
    pub(super) fn at(&self, path: &str) -> &Self {
        path.split('/').fold(self, |node, name| {
            node.children
                .get(name)
                .unwrap_or_else(|| panic!("no {name} of {path}"))
        })
    }

    /// A property as 32-bit cells.
    pub(super) fn cells(&self, name: &str) -> Vec<u32> {
        let chunks = self.properties[name].chunks(4);
        chunks
            .map(|chunk| u32::from_be_bytes(chunk.try_into().expect("cells")))
            .collect()
    }

    /// A property as 64-bit numbers.
    pub(super) fn wide(&self, name: &str) -> Vec<u64> {
        let chunks = self.properties[name].chunks(8);
        chunks
            .map(|chunk| u64::from_be_bytes(chunk.try_into().expect("cells")))
            .collect()
    }

    /// A property as strings.
    pub(super) fn strings(&self, name: &str) -> Vec<String> {
        let text = String::from_utf8(self.properties[name].clone()).expect("ASCII");
        text.split_terminator('\0').map(str::to_owned).collect()
    }
}

impl Walk<'_> {
    fn next(&mut self) -> u32 {
        self.at += 4;
        word(self.blob, self.at - 4)
    }

    fn name(&mut self) -> String {
        let name = text(self.blob, self.at);
        self.at = (self.at + name.len() + 1).next_multiple_of(4);
        name
    }

    fn node(&mut self) -> TreeNode {
        let mut node = TreeNode::default();
        loop {
            match self.next() {
                PROP => {
                    let len = self.next() as usize;
                    let name = text(self.blob, self.strings + self.next() as usize);
                    let value = self.blob[self.at..self.at + len].to_vec();
                    self.at = (self.at + len).next_multiple_of(4);
                    assert!(node.children.is_empty(), "properties come first");
                    assert!(node.properties.insert(name, value).is_none());
                }
                BEGIN_NODE => {
                    let name = self.name();
                    let child = self.node();
                    assert!(node.children.insert(name, child).is_none());
                }
                END_NODE => return node,
                token => panic!("token {token}"),
            }
        }
    }
}
