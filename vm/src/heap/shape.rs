//! Keys and shapes: what the objects of a run look like.
//!
//! A key is interned once and then compared as a number; a shape is an ordered
//! list of keys. Objects with the same keys in the same order share a shape
//! and hold only their values. The program's own keys and shapes are frozen
//! and shared by all runs; those that data brings along belong to the run and
//! are collected when the heap is compacted.

mod collect;
mod dict;
mod growth;
mod saved;

use self::dict::Dict;
pub(crate) use self::growth::Gap;
use super::hash::{NAME_PIECE, NameHasher};
use super::ids::Ids;
use super::pieces::sort_by_key;
use crate::native::{Pace, StopReason, Watch};
use crate::template::Templates;
use a99_core::text::Text;
use a99_core::value::array_index;
use std::collections::HashMap;
use std::hash::Hasher;
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

/// Bytes of an interned key beyond its text, counted against the heap: its
/// entry, its place in the table with what growth leaves empty or holds twice
/// for a moment, the counters of its text, and what the allocator adds.
const KEY_BYTES: usize = 96;

/// The same of a shape beyond its keys.
const SHAPE_BYTES: usize = 96;

/// Bytes of a shape for each key: its number, and its place in the order.
const SHAPE_KEY_BYTES: usize = 8;

/// Bytes for each key of a shape that has an index.
const INDEX_BYTES: usize = 24;

/// Bytes of what a shape has besides its keys, where it has it.
const MORE_BYTES: usize = 112;

/// Few objects need more than their keys, so the rest is apart: there may be
/// hundreds of thousands of shapes.
#[derive(Debug)]
struct Shape {
    keys: Box<[KeyId]>,
    more: Option<Box<More>>,
}

#[derive(Debug)]
struct More {
    index: Option<HashMap<KeyId, u32>>,
    /// Slots in enumeration order (D37), where it differs from slot order.
    order: Option<Box<[u32]>>,
    /// The keys of an object that has this shape to itself; `keys` is empty then.
    dict: Option<Box<Dict>>,
}

/// No array index is as large.
const NO_INT: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Key {
    text: Text,
    hash: u64,
    units: u32,
    /// The value of a key that is an array index in canonical form.
    int: u32,
}

impl Key {
    fn int(&self) -> Option<u32> {
        (self.int != NO_INT).then_some(self.int)
    }
}

/// A table of interned keys and shapes. The look-up tables hold numbers only:
/// what they stand for is in the lists.
#[derive(Debug, Default)]
struct Table {
    keys: Vec<Key>,
    ids: Ids,
    shapes: Vec<Shape>,
    shape_ids: Ids,
}

/// The frozen keys and shapes of a linked program.
#[derive(Debug, Default)]
pub struct StaticShapes {
    table: Table,
    /// Keyed at random, so that no program can choose keys that collide; that
    /// of the run's own tables too.
    hasher: NameHasher,
    /// Templates among the program's texts, whose names are such keys.
    pub(crate) templates: Templates,
}

impl StaticShapes {
    /// Interns `text`.
    pub fn key(&mut self, text: &[u8]) -> KeyId {
        let hash = self.hasher.name(text);
        match self.table.find_key(hash, text) {
            Some(id) => KeyId(id),
            None => KeyId(self.table.push_key(hash, text)),
        }
    }

    /// The key of this text, if there is one.
    pub(crate) fn find(&self, text: &[u8]) -> Option<KeyId> {
        let hash = self.hasher.name(text);
        self.table.find_key(hash, text).map(KeyId)
    }

    /// Adds a shape with these distinct keys; shapes are numbered in the
    /// order they were added.
    pub fn push_shape(&mut self, keys: &[KeyId]) -> ShapeId {
        let ints = |k: KeyId| self.table.keys[k.0 as usize].int();
        let shape = Shape::new(keys, ints);
        let id = self.table.shapes.len() as u32;
        self.table.shapes.push(shape);
        let hash = self.hasher.list(keys);
        // Of equal ones the first is found.
        if self.table.find_shape(hash, keys).is_none() {
            self.table.name_shape(hash, id, usize::MAX, &self.hasher);
        }
        ShapeId(id)
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

    #[inline]
    fn find_key(&self, hash: u64, text: &[u8]) -> Option<u32> {
        self.ids.find(hash, |id| {
            let key = &self.keys[id as usize];
            key.hash == hash && key.text.as_bytes() == text
        })
    }

    fn push_key(&mut self, hash: u64, text: &[u8]) -> u32 {
        let id = self.keys.len() as u32;
        self.keys.push(Key {
            text: Text::copy_wtf8(text),
            hash,
            units: a99_ecma::wtf8::utf16_len(text) as u32,
            int: array_index(text).unwrap_or(NO_INT),
        });
        let keys = &self.keys;
        self.ids.insert(hash, id, |id| Some(keys[id as usize].hash));
        id
    }

    fn find_shape(&self, hash: u64, keys: &[KeyId]) -> Option<u32> {
        let same = |id| *self.shapes[id as usize].keys == *keys;
        self.shape_ids.find(hash, same)
    }

    /// Lets a shape be found by its keys, as all are that have at most so many.
    fn name_shape(&mut self, hash: u64, id: u32, most: usize, hasher: &NameHasher) {
        let shapes = &self.shapes;
        self.shape_ids.insert(hash, id, |id| {
            let shape = &shapes[id as usize];
            let named = shape.keys.len() <= most && shape.dict().is_none();
            named.then(|| hasher.list(&shape.keys))
        });
    }
}

/// Whether two names are the same.
fn same_long<P: Pace>(a: &[u8], b: &[u8], pace: &mut P) -> Result<bool, P::Stop> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.chunks(NAME_PIECE).zip(b.chunks(NAME_PIECE)) {
        pace.work(a.len() / 8)?;
        if a != b {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keys of a shape that are walked between two looks at the host.
const KEYS_A_LOOK: usize = 1024;

/// Work of an insertion into a table.
const LOOKED_UP: usize = 32;

/// Shortens a list from its end, piece by piece.
fn drop_from<T>(list: &mut Vec<T>, len: usize, watch: &mut Watch<'_>) -> Result<(), StopReason> {
    /// Elements that are dropped at once, and the work of one.
    const DROPPED: (usize, usize) = (128, 64);
    while list.len() > len {
        list.truncate(len.max(list.len().saturating_sub(DROPPED.0)));
        watch.work(DROPPED.0 * DROPPED.1)?;
    }
    Ok(())
}

impl Shape {
    fn new(keys: &[KeyId], int_of: impl Fn(KeyId) -> Option<u32>) -> Shape {
        let index = (keys.len() > SCAN_KEYS).then(|| index_of(keys));
        let order = enumeration_order(keys, int_of);
        Shape::from_parts(keys, index, order)
    }

    fn from_parts(
        keys: &[KeyId],
        index: Option<HashMap<KeyId, u32>>,
        order: Option<Box<[u32]>>,
    ) -> Shape {
        let more = index.is_some() || order.is_some();
        Shape {
            keys: keys.into(),
            more: more.then(|| {
                Box::new(More {
                    index,
                    order,
                    dict: None,
                })
            }),
        }
    }

    /// The shape of one object that grows.
    fn of_dict(dict: Dict) -> Shape {
        let more = More {
            index: None,
            order: None,
            dict: Some(Box::new(dict)),
        };
        Shape {
            keys: Box::default(),
            more: Some(Box::new(more)),
        }
    }

    #[inline]
    fn dict(&self) -> Option<&Dict> {
        self.more.as_ref()?.dict.as_deref()
    }

    /// The keys in slot order.
    #[inline]
    fn all_keys(&self) -> &[KeyId] {
        self.dict().map_or(&*self.keys, Dict::keys)
    }

    /// The same, to be numbered anew.
    fn all_keys_mut(&mut self) -> &mut [KeyId] {
        match self.more.as_mut().and_then(|more| more.dict.as_mut()) {
            Some(dict) => dict.keys_mut(),
            None => &mut self.keys,
        }
    }

    /// The same of many keys.
    fn of_many<P: Pace>(
        keys: &[KeyId],
        int_of: impl Fn(KeyId) -> Option<u32>,
        pace: &mut P,
    ) -> Result<Shape, P::Stop> {
        let mut index = HashMap::with_capacity(keys.len());
        let mut ints: Vec<(u32, u32)> = Vec::new();
        let mut rest: Vec<u32> = Vec::new();
        for (slot, key) in keys.iter().enumerate() {
            pace.work(LOOKED_UP)?;
            index.insert(*key, slot as u32);
            match int_of(*key) {
                Some(n) => ints.push((n, slot as u32)),
                None => rest.push(slot as u32),
            }
        }
        let mut order = None;
        if !ints.is_empty() {
            sort_by_key(&mut ints, |int| *int, pace)?;
            pace.work(keys.len())?;
            let ints = ints.into_iter().map(|(_, slot)| slot);
            order = Some(ints.chain(rest).collect());
        }
        Ok(Shape::from_parts(keys, Some(index), order))
    }

    #[inline]
    fn find(&self, key: KeyId) -> Option<usize> {
        if self.keys.len() <= SCAN_KEYS {
            return self.keys.iter().position(|k| *k == key);
        }
        let index = self.more.as_ref()?.index.as_ref()?;
        index.get(&key).map(|i| *i as usize)
    }

    fn order(&self) -> Option<&[u32]> {
        self.more.as_ref()?.order.as_deref()
    }

    fn cost(&self) -> usize {
        let n = self.keys.len();
        let index = if n > SCAN_KEYS { n * INDEX_BYTES } else { 0 };
        let more = self.more.as_ref().map_or(0, |_| MORE_BYTES);
        let dict = self.dict().map_or(0, Dict::cost);
        SHAPE_BYTES + n * SHAPE_KEY_BYTES + index + more + dict
    }
}

/// The slot of each key.
fn index_of(keys: &[KeyId]) -> HashMap<KeyId, u32> {
    keys.iter()
        .enumerate()
        .map(|(i, k)| (*k, i as u32))
        .collect()
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
    pub(crate) statics: Arc<StaticShapes>,
    own: Table,
    own_bytes: usize,
}

impl Shapes {
    pub(crate) fn new(statics: Arc<StaticShapes>) -> Shapes {
        Shapes {
            statics,
            own: Table::default(),
            own_bytes: 0,
        }
    }

    pub(crate) fn reset(&mut self, statics: &Arc<StaticShapes>) {
        if !Arc::ptr_eq(&self.statics, statics) {
            self.statics = Arc::clone(statics);
        }
        self.again();
    }

    /// Forgets the shapes of a run.
    pub(crate) fn again(&mut self) {
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
        self.find_hashed(self.statics.hasher.name(text), text)
    }

    /// The same for a name that may be long: its hash, and its id if it has one.
    pub(crate) fn find_long<P: Pace>(
        &self,
        text: &[u8],
        pace: &mut P,
    ) -> Result<(u64, Option<KeyId>), P::Stop> {
        if text.len() <= NAME_PIECE {
            let hash = self.statics.hasher.name(text);
            return Ok((hash, self.find_hashed(hash, text)));
        }
        let mut hasher = self.statics.hasher.pieces();
        for part in text.chunks(NAME_PIECE) {
            hasher.write(part);
            pace.work(part.len())?;
        }
        let hash = hasher.finish();
        for (table, base) in [(&self.statics.table, 0), (&self.own, self.static_keys())] {
            for id in table.ids.iter_hash(hash) {
                let key = &table.keys[id as usize];
                if key.hash == hash && same_long(key.text.as_bytes(), text, pace)? {
                    return Ok((hash, Some(KeyId(base + id))));
                }
            }
        }
        Ok((hash, None))
    }

    /// Adds a key that [`Shapes::find_long`] did not find.
    pub(crate) fn add_key(&mut self, hash: u64, text: &[u8]) -> KeyId {
        self.own_bytes += Self::key_cost(text);
        KeyId(self.static_keys() + self.own.push_key(hash, text))
    }

    fn find_hashed(&self, hash: u64, text: &[u8]) -> Option<KeyId> {
        let found = self.statics.table.find_key(hash, text);
        let own = || Some(self.own.find_key(hash, text)? + self.static_keys());
        found.or_else(own).map(KeyId)
    }

    /// Interns `text`. The caller has checked that the heap has room for
    /// [`Shapes::key_cost`].
    pub(crate) fn intern(&mut self, text: &[u8]) -> KeyId {
        let hash = self.statics.hasher.name(text);
        match self.find_hashed(hash, text) {
            Some(id) => id,
            None => self.add_key(hash, text),
        }
    }

    /// Bytes that interning a new key takes.
    pub(crate) fn key_cost(text: &[u8]) -> usize {
        KEY_BYTES + text.len()
    }

    /// Bytes that a new shape of `n` keys takes at most.
    pub(crate) fn shape_cost(n: usize) -> usize {
        SHAPE_BYTES + MORE_BYTES + n * (SHAPE_KEY_BYTES + INDEX_BYTES)
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
        let shared = keys.len() <= SHARED_KEYS;
        let hash = self.statics.hasher.list(keys);
        if let Some(id) = self.statics.table.find_shape(hash, keys) {
            return ShapeId(id);
        }
        if shared && let Some(id) = self.own.find_shape(hash, keys) {
            return ShapeId(self.static_shapes() + id);
        }
        let shape = Shape::new(keys, |k| self.key_entry(k).int());
        let id = self.add_shape(shape);
        if shared {
            let hasher = &self.statics.hasher;
            self.own.name_shape(hash, id, SHARED_KEYS, hasher);
        }
        ShapeId(self.static_shapes() + id)
    }

    fn add_shape(&mut self, shape: Shape) -> u32 {
        self.own_bytes += shape.cost();
        self.own.shapes.push(shape);
        self.own.shapes.len() as u32 - 1
    }

    /// [`Shapes::shape_of`] of keys that may be many. A shape of so many is
    /// nobody else's.
    pub(crate) fn shape_of_many<P: Pace>(
        &mut self,
        keys: &[KeyId],
        pace: &mut P,
    ) -> Result<ShapeId, P::Stop> {
        if keys.len() <= KEYS_A_LOOK {
            return Ok(self.shape_of(keys));
        }
        let shape = Shape::of_many(keys, |k| self.key_entry(k).int(), pace)?;
        Ok(ShapeId(self.static_shapes() + self.add_shape(shape)))
    }

    /// The keys of a shape in slot order.
    #[inline]
    pub fn keys(&self, id: ShapeId) -> &[KeyId] {
        self.shape(id).all_keys()
    }

    /// The slot of `key` in objects of this shape.
    #[inline]
    pub fn slot(&self, id: ShapeId, key: KeyId) -> Option<usize> {
        let shape = self.shape(id);
        match shape.dict() {
            None => shape.find(key),
            Some(dict) => dict.find(key, self.key_entry(key).hash),
        }
    }

    /// The slot of a key by its text. A few keys are compared, which takes less time than
    /// a hash: a part of a schema is asked for a dozen members, of which it has one or two.
    pub fn slot_of_text(&self, id: ShapeId, text: &[u8]) -> Option<usize> {
        /// No more keys are compared.
        const FEW: usize = 4;
        let shape = self.shape(id);
        if shape.dict().is_none() && shape.keys.len() <= FEW {
            let mut keys = shape.keys.iter();
            return keys.position(|key| self.key_text(*key) == text);
        }
        self.slot(id, self.find_key(text)?)
    }

    /// The slots of a shape in enumeration order (D37).
    pub fn order(&self, id: ShapeId) -> impl Iterator<Item = usize> + '_ {
        let shape = self.shape(id);
        let n = shape.keys.len();
        let order = shape.order();
        let dict = shape.dict().into_iter();
        (0..n)
            .map(move |i| order.map_or(i, |o| o[i] as usize))
            .chain(dict.flat_map(|dict| dict.order(self)))
    }

    /// The keys of a shape whose members are enumerated in the order of their slots.
    #[inline]
    pub(super) fn plain_keys(&self, id: ShapeId) -> Option<&[KeyId]> {
        let shape = self.shape(id);
        let plain = |more: &More| more.order.is_none() && more.dict.is_none();
        let is_plain = shape.more.as_deref().is_none_or(plain);
        is_plain.then_some(&*shape.keys)
    }

    /// How many shapes the run itself made, and the id of the first.
    pub(crate) fn own_shapes(&self) -> (u32, usize) {
        (self.static_shapes(), self.own.shapes.len())
    }
}
