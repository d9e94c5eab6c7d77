//! Index of the members of large objects by name. Looking up every member of an object then takes
//! linear instead of quadratic time.

use super::{Document, NodeId, Tag};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// Most members of an object that lookups scan linearly.
pub(super) const SCANNED: usize = 32;

/// The members of all larger objects. The hash key is random, so crafted names cannot collide
/// (security C10).
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    hasher: RandomState,
    members: HashTable<u32>,
}

impl Index {
    pub(super) fn of(doc: &Document) -> Index {
        let mut index = Index::default();
        for (id, node) in (0..).zip(&doc.nodes) {
            if node.tag != Tag::Object || node.b as usize <= SCANNED {
                continue;
            }
            for (key, at) in doc.members(NodeId(id)) {
                // Of members with the same name, the first is found.
                if index.find(doc, NodeId(id), key).is_none() {
                    index.add(doc, at.0);
                }
            }
        }
        index
    }

    fn add(&mut self, doc: &Document, at: u32) {
        let Index { hasher, members } = self;
        let hash = |at: &u32| {
            let parent = doc.nodes.get(*at as usize).map_or(0, |node| node.parent);
            hasher.hash_one((parent, doc.key_before(*at)))
        };
        members.insert_unique(hash(&at), at, hash);
    }

    pub(super) fn find(&self, doc: &Document, object: NodeId, key: &[u8]) -> Option<NodeId> {
        let same = |at: &u32| {
            let parent = doc.nodes.get(*at as usize).map(|node| node.parent);
            parent == Some(object.0) && doc.key_before(*at) == key
        };
        let hash = self.hasher.hash_one((object.0, key));
        self.members.find(hash, same).map(|at| NodeId(*at))
    }
}
