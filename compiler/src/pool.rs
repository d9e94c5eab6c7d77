//! Interned tables of a program: text, constants, keys, shapes.

use a99_core::program::{Const, ConstIdx, KeyIdx, ShapeIdx, TextRange};
use hashbrown::HashMap;

#[derive(Hash, PartialEq, Eq, Clone, Copy)]
enum ConstKey {
    Undefined,
    Null,
    Bool(bool),
    Number(u64),
    Text(TextRange),
}

/// Text and constants under construction.
#[derive(Default)]
pub(crate) struct Pool {
    pub text: Vec<u8>,
    ranges: HashMap<Box<[u8]>, TextRange>,
    pub consts: Vec<Const>,
    const_ids: HashMap<ConstKey, ConstIdx>,
    pub keys: Vec<TextRange>,
    key_ids: HashMap<TextRange, KeyIdx>,
    pub shapes: Vec<Box<[u32]>>,
    shape_ids: HashMap<Box<[KeyIdx]>, ShapeIdx>,
}

impl Pool {
    /// Stores text once.
    pub(crate) fn range(&mut self, text: &[u8]) -> TextRange {
        if let Some(r) = self.ranges.get(text) {
            return *r;
        }
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        let range = TextRange {
            start,
            end: self.text.len() as u32,
        };
        self.ranges.insert(text.into(), range);
        range
    }

    /// The number of a constant.
    pub(crate) fn constant(&mut self, value: Const) -> ConstIdx {
        let key = match value {
            Const::Undefined => ConstKey::Undefined,
            Const::Null => ConstKey::Null,
            Const::Bool(b) => ConstKey::Bool(b),
            Const::Number(n) => ConstKey::Number(n.to_bits()),
            Const::Text(r) => ConstKey::Text(r),
        };
        *self.const_ids.entry(key).or_insert_with(|| {
            self.consts.push(value);
            ConstIdx(self.consts.len() as u32 - 1)
        })
    }

    /// The number of a text constant.
    pub(crate) fn text_const(&mut self, text: &[u8]) -> ConstIdx {
        let range = self.range(text);
        self.constant(Const::Text(range))
    }

    /// The number of a text constant that is probably no other's too.
    pub(crate) fn fresh_text(&mut self, text: &[u8]) -> ConstIdx {
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        let end = self.text.len() as u32;
        self.fresh(Const::Text(TextRange { start, end }))
    }

    /// The number of a constant that is probably no other's too.
    pub(crate) fn fresh(&mut self, value: Const) -> ConstIdx {
        self.consts.push(value);
        ConstIdx(self.consts.len() as u32 - 1)
    }

    /// The number of an object key.
    pub(crate) fn key(&mut self, text: &[u8]) -> KeyIdx {
        let range = self.range(text);
        *self.key_ids.entry(range).or_insert_with(|| {
            self.keys.push(range);
            KeyIdx(self.keys.len() as u32 - 1)
        })
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
