//! Keys and shapes: what the objects of a run look like.
//!
//! A key is interned once and then compared as a number; a shape is an ordered
//! list of keys. Objects with the same keys in the same order share a shape
//! and hold only their values. The program's own keys and shapes are frozen
//! and shared by all runs; those that data brings along belong to the run and
//! are collected when the heap is compacted.

use a99_core::text::Text;
use a99_core::value::array_index;
use std::collections::HashMap;
use std::sync::Arc;

/// An interned object key.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub(crate) u32);

/// An ordered list of keys.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub(crate) u32);

/// Up to this many keys a linear scan beats a hash look-up.
const SCAN_KEYS: usize = 8;

/// Shapes with more keys than this are not shared: such objects are used as
/// dictionaries, and finding their twin would cost more than it saves.
const SHARED_KEYS: usize = 64;

/// Estimated bytes of an interned key beyond its text, counted against the heap.
const KEY_BYTES: usize = 80;

/// Estimated bytes of a shape beyond its keys, counted against the heap.
const SHAPE_BYTES: usize = 96;

/// Estimated bytes of a shape for each key.
const SHAPE_KEY_BYTES: usize = 8;

/// Estimated bytes for each key of a shape that has an index.
const INDEX_BYTES: usize = 24;

#[derive(Debug)]
pub(crate) struct Shape {
    keys: Box<[KeyId]>,
    index: Option<HashMap<KeyId, u32>>,
    /// Slots in enumeration order (D37), where it differs from slot order.
    order: Option<Box<[u32]>>,
}

#[derive(Debug, Clone)]
struct Key {
    text: Text,
    units: u32,
    /// The value of a key that is an array index in canonical form.
    int: Option<u32>,
}

/// A table of interned keys and shapes.
#[derive(Debug, Default)]
struct Table {
    keys: Vec<Key>,
    ids: HashMap<Text, KeyId>,
    shapes: Vec<Shape>,
    shape_ids: HashMap<Box<[KeyId]>, ShapeId>,
}

/// The frozen keys and shapes of a linked program.
#[derive(Debug, Default)]
pub struct StaticShapes {
    table: Table,
}

impl StaticShapes {
    /// Interns `text`.
    pub fn key(&mut self, text: &[u8]) -> KeyId {
        if let Some(id) = self.table.ids.get(text) {
            return *id;
        }
        self.table.push_key(text, 0)
    }

    /// Adds a shape with these distinct keys; shapes are numbered in the
    /// order they were added.
    pub fn push_shape(&mut self, keys: &[KeyId]) -> ShapeId {
        let ints = |k: KeyId| self.table.keys[k.0 as usize].int;
        let shape = Shape::new(keys, ints);
        let id = ShapeId(self.table.shapes.len() as u32);
        self.table.shapes.push(shape);
        self.table.shape_ids.insert(keys.into(), id);
        id
    }
}

impl Table {
    /// Empties the table for the next run; the room of a small one is kept.
    fn clear(&mut self) {
        /// Keys and shapes beyond which the room is given back.
        const KEEP: usize = 256;
        if self.keys.capacity().max(self.shapes.capacity()) > KEEP {
            *self = Table::default();
            return;
        }
        self.keys.clear();
        self.ids.clear();
        self.shapes.clear();
        self.shape_ids.clear();
    }

    fn push_key(&mut self, text: &[u8], base: u32) -> KeyId {
        let id = KeyId(base + self.keys.len() as u32);
        let units = a99_ecma::wtf8::utf16_len(text) as u32;
        let int = array_index(text);
        let text = match std::str::from_utf8(text) {
            Ok(text) => Text::from(text),
            Err(_) => Text::from_wtf8(text.to_vec()),
        };
        self.keys.push(Key {
            int,
            text: text.clone(),
            units,
        });
        self.ids.insert(text, id);
        id
    }
}

impl Shape {
    fn new(keys: &[KeyId], int_of: impl Fn(KeyId) -> Option<u32>) -> Shape {
        let index = (keys.len() > SCAN_KEYS).then(|| {
            keys.iter()
                .enumerate()
                .map(|(i, k)| (*k, i as u32))
                .collect()
        });
        Shape {
            order: enumeration_order(keys, int_of),
            keys: keys.into(),
            index,
        }
    }

    #[inline]
    fn find(&self, key: KeyId) -> Option<usize> {
        match &self.index {
            None => self.keys.iter().position(|k| *k == key),
            Some(index) => index.get(&key).map(|i| *i as usize),
        }
    }

    fn cost(&self) -> usize {
        let n = self.keys.len();
        SHAPE_BYTES + n * SHAPE_KEY_BYTES + self.index.as_ref().map_or(0, |_| n * INDEX_BYTES)
    }
}

/// Integer-like keys first in ascending order, the others as inserted (D37);
/// `None` where that is the slot order already.
fn enumeration_order(keys: &[KeyId], int_of: impl Fn(KeyId) -> Option<u32>) -> Option<Box<[u32]>> {
    if keys.iter().all(|k| int_of(*k).is_none()) {
        return None;
    }
    let mut ints: Vec<(u32, u32)> = Vec::new();
    let mut rest: Vec<u32> = Vec::new();
    for (slot, key) in keys.iter().enumerate() {
        match int_of(*key) {
            Some(n) => ints.push((n, slot as u32)),
            None => rest.push(slot as u32),
        }
    }
    ints.sort_unstable();
    Some(ints.into_iter().map(|(_, slot)| slot).chain(rest).collect())
}

/// The keys and shapes of a run: the program's, then the run's own.
#[derive(Debug, Default)]
pub struct Shapes {
    statics: Arc<StaticShapes>,
    own: Table,
    own_bytes: usize,
}

impl Shapes {
    pub(crate) fn reset(&mut self, statics: Arc<StaticShapes>) {
        self.statics = statics;
        if !self.own.keys.is_empty() || !self.own.shapes.is_empty() {
            self.own.clear();
            self.own_bytes = 0;
        }
    }

    /// Estimated bytes of what the run itself interned.
    pub(crate) fn bytes(&self) -> usize {
        self.own_bytes
    }

    #[inline]
    fn static_keys(&self) -> u32 {
        self.statics.table.keys.len() as u32
    }

    #[inline]
    fn static_shapes(&self) -> u32 {
        self.statics.table.shapes.len() as u32
    }

    fn key_entry(&self, key: KeyId) -> &Key {
        let base = self.static_keys();
        if key.0 < base {
            &self.statics.table.keys[key.0 as usize]
        } else {
            &self.own.keys[(key.0 - base) as usize]
        }
    }

    #[inline]
    fn shape(&self, id: ShapeId) -> &Shape {
        let base = self.static_shapes();
        if id.0 < base {
            &self.statics.table.shapes[id.0 as usize]
        } else {
            &self.own.shapes[(id.0 - base) as usize]
        }
    }

    /// The id of `text` if any object of this run or program could have it.
    pub fn find_key(&self, text: &[u8]) -> Option<KeyId> {
        self.statics
            .table
            .ids
            .get(text)
            .or_else(|| self.own.ids.get(text))
            .copied()
    }

    /// Interns `text`. The caller has checked that the heap has room for
    /// [`Shapes::key_cost`].
    pub(crate) fn intern(&mut self, text: &[u8]) -> KeyId {
        if let Some(id) = self.find_key(text) {
            return id;
        }
        self.own_bytes += Self::key_cost(text);
        self.own.push_key(text, self.static_keys())
    }

    /// Bytes that interning a new key takes.
    pub(crate) fn key_cost(text: &[u8]) -> usize {
        KEY_BYTES + text.len()
    }

    /// Bytes that a new shape of `n` keys takes at most.
    pub(crate) fn shape_cost(n: usize) -> usize {
        SHAPE_BYTES + n * (2 * SHAPE_KEY_BYTES + INDEX_BYTES)
    }

    /// The text of a key.
    pub fn key_text(&self, key: KeyId) -> &[u8] {
        self.key_entry(key).text.as_bytes()
    }

    /// The text of a key to share.
    pub fn key_name(&self, key: KeyId) -> &Text {
        &self.key_entry(key).text
    }

    /// The length of a key in UTF-16 units.
    pub fn key_units(&self, key: KeyId) -> usize {
        self.key_entry(key).units as usize
    }

    /// The shape with these distinct keys.
    pub(crate) fn shape_of(&mut self, keys: &[KeyId]) -> ShapeId {
        if let Some(id) = self.statics.table.shape_ids.get(keys) {
            return *id;
        }
        let shared = keys.len() <= SHARED_KEYS;
        if shared && let Some(id) = self.own.shape_ids.get(keys) {
            return *id;
        }
        let shape = Shape::new(keys, |k| self.key_entry(k).int);
        self.own_bytes += shape.cost();
        let id = ShapeId(self.static_shapes() + self.own.shapes.len() as u32);
        self.own.shapes.push(shape);
        if shared {
            self.own_bytes += keys.len() * SHAPE_KEY_BYTES;
            self.own.shape_ids.insert(keys.into(), id);
        }
        id
    }

    /// The keys of a shape in slot order.
    #[inline]
    pub fn keys(&self, id: ShapeId) -> &[KeyId] {
        &self.shape(id).keys
    }

    /// The slot of `key` in objects of this shape.
    #[inline]
    pub fn slot(&self, id: ShapeId, key: KeyId) -> Option<usize> {
        self.shape(id).find(key)
    }

    /// The slots of a shape in enumeration order (D37).
    pub fn order(&self, id: ShapeId) -> impl Iterator<Item = usize> + '_ {
        let shape = self.shape(id);
        let n = shape.keys.len();
        (0..n).map(move |i| shape.order.as_ref().map_or(i, |o| o[i] as usize))
    }

    /// Forgets the run's shapes and keys that no live object uses. `live` is
    /// asked for and told new ids of the run's own shapes, indexed from the
    /// first of them; returns that renumbering.
    pub(crate) fn collect(&mut self, live: &[bool]) -> Vec<u32> {
        let base = self.static_shapes();
        let key_base = self.static_keys();
        let old = std::mem::take(&mut self.own);
        self.own_bytes = 0;
        let mut renumber = vec![u32::MAX; old.shapes.len()];
        for (i, shape) in old.shapes.iter().enumerate() {
            if !live[i] {
                continue;
            }
            let mut keys = Vec::with_capacity(shape.keys.len());
            for k in &shape.keys {
                keys.push(if k.0 < key_base {
                    *k
                } else {
                    self.intern(old.keys[(k.0 - key_base) as usize].text.as_bytes())
                });
            }
            renumber[i] = self.shape_of(&keys).0;
        }
        debug_assert!(renumber.iter().all(|n| *n == u32::MAX || *n >= base));
        renumber
    }

    /// How many shapes the run itself made, and the id of the first.
    pub(crate) fn own_shapes(&self) -> (u32, usize) {
        (self.static_shapes(), self.own.shapes.len())
    }
}
