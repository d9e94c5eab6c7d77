//! Keys and shapes (hidden classes) of a run's objects.
//!
//! A key is interned once and then compared as a number; a shape is an ordered list of keys.
//! Objects with the same keys in the same order share a shape and hold only their values. The
//! program's own keys and shapes are frozen and shared by all runs. Those that data adds
//! belong to the run and are collected by compaction.

mod collect;
mod dict;
mod growth;
mod saved;

use self::dict::Dict;
pub(crate) use self::growth::Gap;
use super::hash::{NAME_PIECE, NameHasher};
use super::ids::Ids;
use super::pieces::sort_by_key;
use super::template::Templates;
use crate::pace::{Pace, StopReason, Watch};
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

/// Number of keys up to which a linear scan is faster than a hash look-up.
const SCAN_KEYS: usize = 8;

/// Maximum number of keys of a shared shape. Larger objects are used as dictionaries, and
/// finding an equal shape would cost more than it saves.
const SHARED_KEYS: usize = 64;

/// Bytes of an interned key beyond its text, counted against the heap: its entry, its share
/// of the table with empty and duplicated parts during growth, the counters of its text, and
/// allocator overhead.
const KEY_BYTES: usize = 96;

/// Bytes of a shape beyond its keys, counted against the heap.
const SHAPE_BYTES: usize = 96;

/// Bytes per key of a shape: its id, and its place in the order.
const SHAPE_KEY_BYTES: usize = 8;

/// Bytes per key of an indexed shape.
const INDEX_BYTES: usize = 24;

/// Bytes of a shape's optional parts.
const MORE_BYTES: usize = 112;

/// Most objects need only their keys, so the optional parts are boxed: a run may have
/// hundreds of thousands of shapes.
#[derive(Debug)]
struct Shape {
    keys: Box<[KeyId]>,
    more: Option<Box<More>>,
}

#[derive(Debug)]
struct More {
    index: Option<HashMap<KeyId, u32>>,
    /// Slots in enumeration order (D37), if it differs from slot order.
    order: Option<Box<[u32]>>,
    /// Keys of an unshared shape; `keys` is empty then.
    dict: Option<Box<Dict>>,
}

/// No array index is this large.
const NO_INT: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Key {
    text: Text,
    hash: u64,
    units: u32,
    /// The value of a key that is a canonical array index.
    int: u32,
}

impl Key {
    fn int(&self) -> Option<u32> {
        (self.int != NO_INT).then_some(self.int)
    }
}

/// A table of interned keys and shapes. The hash tables hold only list indices.
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
    /// Randomly keyed, so that no program can choose colliding keys; shared with the run's
    /// own tables.
    hasher: NameHasher,
    /// Templates among the program's texts; their names are these keys.
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

    /// The key of this text, if it is interned.
    pub(crate) fn find(&self, text: &[u8]) -> Option<KeyId> {
        let hash = self.hasher.name(text);
        self.table.find_key(hash, text).map(KeyId)
    }

    /// Adds a shape with these distinct keys; ids follow the order of insertion.
    pub fn push_shape(&mut self, keys: &[KeyId]) -> ShapeId {
        let ints = |k: KeyId| self.table.keys[k.0 as usize].int();
        let shape = Shape::new(keys, ints);
        let id = self.table.shapes.len() as u32;
        self.table.shapes.push(shape);
        let hash = self.hasher.list(keys);
        // The first of equal shapes is the one found.
        if self.table.find_shape(hash, keys).is_none() {
            self.table.name_shape(hash, id, usize::MAX, &self.hasher);
        }
        ShapeId(id)
    }
}

impl Table {
    /// Empties the table for the next run; a small one keeps its allocation.
    fn clear(&mut self) {
        /// Number of keys and shapes above which the memory is freed.
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

    /// Adds a shape to the hash table, if it has at most `most` keys.
    fn name_shape(&mut self, hash: u64, id: u32, most: usize, hasher: &NameHasher) {
        let shapes = &self.shapes;
        self.shape_ids.insert(hash, id, |id| {
            let shape = &shapes[id as usize];
            let named = shape.keys.len() <= most && shape.dict().is_none();
            named.then(|| hasher.list(&shape.keys))
        });
    }
}

/// Whether two names are equal.
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

/// Keys of a shape visited between two yield points.
const KEYS_A_LOOK: usize = 1024;

/// Work of a table insertion.
const LOOKED_UP: usize = 32;

/// Truncates a list from its end, piece by piece.
fn drop_from<T>(list: &mut Vec<T>, len: usize, watch: &mut Watch<'_>) -> Result<(), StopReason> {
    /// Elements dropped at once, and the work per element.
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

    /// The unshared shape of one growing object.
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

    /// The keys in slot order, to be renumbered.
    fn all_keys_mut(&mut self) -> &mut [KeyId] {
        match self.more.as_mut().and_then(|more| more.dict.as_mut()) {
            Some(dict) => dict.keys_mut(),
            None => &mut self.keys,
        }
    }

    /// A shape of many keys, built with yield points.
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

fn index_of(keys: &[KeyId]) -> HashMap<KeyId, u32> {
    keys.iter()
        .enumerate()
        .map(|(i, k)| (*k, i as u32))
        .collect()
}

/// Integer-like keys first in ascending order, the others as inserted (D37); `None` if slot
/// order is the same.
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

    /// Drops the shapes of the previous run.
    pub(crate) fn again(&mut self) {
        if !self.own.keys.is_empty() || !self.own.shapes.is_empty() {
            self.own.clear();
            self.own_bytes = 0;
        }
    }

    /// Estimated bytes of the run's own keys and shapes.
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

    /// The key id of `text`, if this run or its program has interned it.
    pub fn find_key(&self, text: &[u8]) -> Option<KeyId> {
        self.find_hashed(self.statics.hasher.name(text), text)
    }

    /// The hash of a possibly long name, and its id if it is interned.
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

    /// Interns `text`. The caller has reserved [`Shapes::key_cost`] in the heap.
    pub(crate) fn intern(&mut self, text: &[u8]) -> KeyId {
        let hash = self.statics.hasher.name(text);
        match self.find_hashed(hash, text) {
            Some(id) => id,
            None => self.add_key(hash, text),
        }
    }

    /// Bytes to intern a new key.
    pub(crate) fn key_cost(text: &[u8]) -> usize {
        KEY_BYTES + text.len()
    }

    /// Maximum bytes of a new shape of `n` keys.
    pub(crate) fn shape_cost(n: usize) -> usize {
        SHAPE_BYTES + MORE_BYTES + n * (SHAPE_KEY_BYTES + INDEX_BYTES)
    }

    /// The text of a key.
    pub fn key_text(&self, key: KeyId) -> &[u8] {
        self.key_entry(key).text.as_bytes()
    }

    /// The shared text of a key.
    pub fn key_name(&self, key: KeyId) -> &Text {
        &self.key_entry(key).text
    }

    /// The length of a key in UTF-16 units.
    pub fn key_units(&self, key: KeyId) -> usize {
        self.key_entry(key).units as usize
    }

    /// The shape with these distinct keys, shared if possible.
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

    /// [`Shapes::shape_of`] for possibly many keys. A large shape is not shared.
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

    /// The slot of a key by its text. Small shapes compare the keys, which is faster than a
    /// hash: a schema asks for a dozen members, of which a part has one or two.
    pub fn slot_of_text(&self, id: ShapeId, text: &[u8]) -> Option<usize> {
        /// Maximum number of keys to compare.
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

    /// The keys of a shape, if slot order is enumeration order.
    #[inline]
    pub(super) fn plain_keys(&self, id: ShapeId) -> Option<&[KeyId]> {
        let shape = self.shape(id);
        let plain = |more: &More| more.order.is_none() && more.dict.is_none();
        let is_plain = shape.more.as_deref().is_none_or(plain);
        is_plain.then_some(&*shape.keys)
    }

    /// Number of the run's own shapes, and the id of the first.
    pub(crate) fn own_shapes(&self) -> (u32, usize) {
        (self.static_shapes(), self.own.shapes.len())
    }
}
