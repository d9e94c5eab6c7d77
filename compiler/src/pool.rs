//! Interned tables of a program: text, constants, keys, shapes.

use a99_core::program::{Const, ConstIdx, KeyIdx, ShapeIdx, TextRange};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use std::hash::BuildHasher;

/// An interned text, with its numbers among the constants, the keys and the ops.
struct Stored {
    range: TextRange,
    constant: Option<ConstIdx>,
    key: Option<KeyIdx>,
    op: Option<u32>,
}

/// Concatenated texts.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    /// Interned texts, hashed with a random key: a program chooses its texts.
    stored: HashTable<Stored>,
    hasher: DefaultHashBuilder,
}

impl Texts {
    /// The entry of a text, which is interned if it was not before.
    fn stored(&mut self, text: &[u8]) -> &mut Stored {
        let (hash, bytes) = (self.hasher.hash_one(text), &self.bytes);
        let is_same = |old: &Stored| in_range(bytes, old.range) == text;
        let hash_of = |old: &Stored| self.hasher.hash_one(in_range(bytes, old.range));
        match self.stored.entry(hash, is_same, hash_of) {
            Entry::Occupied(old) => old.into_mut(),
            Entry::Vacant(free) => {
                let new = Stored {
                    range: append(&mut self.bytes, text),
                    constant: None,
                    key: None,
                    op: None,
                };
                free.insert(new).into_mut()
            }
        }
    }

    /// The entry of an interned text, by its range.
    fn at(&mut self, range: TextRange) -> Option<&mut Stored> {
        let hash = self.hasher.hash_one(in_range(&self.bytes, range));
        self.stored.find_mut(hash, |old| old.range == range)
    }
}

fn in_range(bytes: &[u8], range: TextRange) -> &[u8] {
    &bytes[range.start as usize..range.end as usize]
}

fn append(bytes: &mut Vec<u8>, text: &[u8]) -> TextRange {
    let start = bytes.len() as u32;
    bytes.extend_from_slice(text);
    let end = bytes.len() as u32;
    TextRange { start, end }
}

/// Text and constants under construction.
#[derive(Default)]
pub(crate) struct Pool {
    texts: Texts,
    pub consts: Vec<Const>,
    /// The numbers of `undefined`, `null`, `false` and `true`.
    plain: [Option<ConstIdx>; 4],
    numbers: HashMap<u64, Option<ConstIdx>>,
    pub keys: Vec<TextRange>,
    pub shapes: Vec<Box<[u32]>>,
    shape_ids: HashMap<Box<[KeyIdx]>, ShapeIdx>,
}

impl Pool {
    /// A pool with capacity for the usual output of this much source.
    pub(crate) fn with_room(room: usize) -> Pool {
        let mut pool = Pool::default();
        pool.texts.bytes.reserve(8 * room);
        pool.texts.stored = HashTable::with_capacity(room);
        pool.consts.reserve(room);
        pool.keys.reserve(room / 2);
        pool
    }

    /// All text.
    pub(crate) fn take_text(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.texts.bytes)
    }

    /// Stores text once.
    pub(crate) fn range(&mut self, text: &[u8]) -> TextRange {
        self.texts.stored(text).range
    }

    /// Interns the name of an op; returns its number, too.
    pub(crate) fn op(&mut self, name: &[u8]) -> (TextRange, &mut Option<u32>) {
        let name = self.texts.stored(name);
        (name.range, &mut name.op)
    }

    /// The number of a constant.
    pub(crate) fn constant(&mut self, value: Const) -> ConstIdx {
        let next = ConstIdx(self.consts.len() as u32);
        let known = match value {
            Const::Undefined => Some(&mut self.plain[0]),
            Const::Null => Some(&mut self.plain[1]),
            Const::Bool(b) => Some(&mut self.plain[2 + usize::from(b)]),
            Const::Number(n) => Some(self.numbers.entry(n.to_bits()).or_default()),
            Const::Text(range) => self.texts.at(range).map(|text| &mut text.constant),
        };
        let number = known.map_or(next, |known| *known.get_or_insert(next));
        if number == next {
            self.consts.push(value);
        }
        number
    }

    /// The number of a text constant.
    pub(crate) fn text_const(&mut self, text: &[u8]) -> ConstIdx {
        let next = ConstIdx(self.consts.len() as u32);
        let text = self.texts.stored(text);
        let number = *text.constant.get_or_insert(next);
        if number == next {
            self.consts.push(Const::Text(text.range));
        }
        number
    }

    /// The number of a text constant that is probably unique, so not interned.
    pub(crate) fn fresh_text(&mut self, text: &[u8]) -> ConstIdx {
        let range = append(&mut self.texts.bytes, text);
        self.fresh(Const::Text(range))
    }

    /// The number of a constant that is probably unique, so not interned.
    pub(crate) fn fresh(&mut self, value: Const) -> ConstIdx {
        self.consts.push(value);
        ConstIdx(self.consts.len() as u32 - 1)
    }

    /// The number of an object key.
    pub(crate) fn key(&mut self, text: &[u8]) -> KeyIdx {
        let next = KeyIdx(self.keys.len() as u32);
        let text = self.texts.stored(text);
        let number = *text.key.get_or_insert(next);
        if number == next {
            self.keys.push(text.range);
        }
        number
    }

    /// The number of a shape with these distinct keys.
    pub(crate) fn shape(&mut self, keys: &[KeyIdx]) -> ShapeIdx {
        if let Some(id) = self.shape_ids.get(keys) {
            return *id;
        }
        let id = ShapeIdx(self.shapes.len() as u32);
        self.shapes.push(keys.iter().map(|key| key.0).collect());
        self.shape_ids.insert(keys.into(), id);
        id
    }
}
