//! Objects under construction.

use super::{Cx, Fault};
use crate::heap::{Heap, KeyId, Oom, Val};
use std::collections::HashMap;

/// Collects the members of a new object. A repeated key replaces the earlier value in place,
/// as in a JavaScript object.
#[derive(Debug, Default)]
pub struct ObjDraft {
    keys: Vec<KeyId>,
    vals: Vec<Val>,
    index: Option<HashMap<KeyId, usize>>,
}

impl ObjDraft {
    /// Work per member of an object under construction, for its builder.
    pub const MEMBER_WORK: i64 = 64;

    /// Number of members above which look-ups use a hash table.
    const SCAN: usize = 16;

    /// Creates an empty draft.
    pub fn new() -> ObjDraft {
        ObjDraft::default()
    }

    /// Creates a draft with room for `n` members: a growing table would be rehashed at once.
    pub fn with_room(n: usize) -> ObjDraft {
        ObjDraft {
            keys: Vec::with_capacity(n),
            vals: Vec::with_capacity(n),
            index: (n > Self::SCAN).then(|| HashMap::with_capacity(n)),
        }
    }

    /// Sets a member.
    pub fn set(&mut self, key: KeyId, val: Val) {
        match self.find(key) {
            Some(i) => self.vals[i] = val,
            None => {
                if let Some(index) = &mut self.index {
                    index.insert(key, self.keys.len());
                } else if self.keys.len() == Self::SCAN {
                    self.index = Some(
                        self.keys
                            .iter()
                            .copied()
                            .chain([key])
                            .enumerate()
                            .map(|(i, k)| (k, i))
                            .collect(),
                    );
                }
                self.keys.push(key);
                self.vals.push(val);
            }
        }
    }

    /// Sets a member by the text of its key.
    pub fn set_text(&mut self, heap: &mut Heap, key: &[u8], val: Val) -> Result<(), Oom> {
        let key = heap.intern(key)?;
        self.set(key, val);
        Ok(())
    }

    fn find(&self, key: KeyId) -> Option<usize> {
        match &self.index {
            None => self.keys.iter().position(|k| *k == key),
            Some(index) => index.get(&key).copied(),
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the draft has no members.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Allocates the object and empties the draft for reuse.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn finish(&mut self, cx: &mut Cx<'_>) -> Result<Val, Fault> {
        /// Work to clear a member's place in the draft.
        const CLEARED: i64 = 4;
        let members = self.keys.len() as i64;
        let obj = cx.object(&self.keys, &self.vals);
        self.keys.clear();
        self.vals.clear();
        self.index = None;
        let obj = Val::Obj(obj?);
        cx.work(members * CLEARED)?;
        Ok(obj)
    }
}
