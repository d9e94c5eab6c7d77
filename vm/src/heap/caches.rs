//! Inline caches: where members of objects lie, and which keys names of the run are.
//!
//! A program reads the same few members of objects of the same few shapes again and again, and
//! computes keys from the same few texts. Both answers hold until the heap is compacted, which
//! numbers shapes and keys anew and moves text. The tables are direct-mapped, belong to a run,
//! and are made when it has looked up so much that they pay.

use super::{KeyId, ShapeId, Str};

/// Entries of a table; a power of two.
const ENTRIES: usize = 32;

/// Look-ups of a run before it has tables.
const LOOK_UPS_BEFORE: u32 = 32;

/// A member of the objects of a shape.
#[derive(Copy, Clone)]
struct Member {
    of: u64,
    slot: u32,
}

impl Member {
    const NONE: Member = Member {
        of: u64::MAX,
        slot: 0,
    };

    /// No shape has this number together with that key, as each is an index of a list.
    #[inline]
    fn of(shape: ShapeId, key: KeyId) -> u64 {
        u64::from(shape.0) << 32 | u64::from(key.0)
    }

    /// Neighbouring shapes and keys have places of their own.
    #[inline]
    fn place(of: u64) -> usize {
        /// 2^64 divided by the golden ratio.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        (of.wrapping_mul(SPREAD) >> (u64::BITS - ENTRIES.ilog2())) as usize
    }
}

/// A name that was looked up.
#[derive(Copy, Clone)]
struct Name {
    text: Str,
    key: KeyId,
}

impl Name {
    /// The empty name, which is not kept.
    const NONE: Name = Name {
        text: Str::EMPTY,
        key: KeyId(0),
    };

    #[inline]
    fn place(text: Str) -> usize {
        /// 2^32 divided by the golden ratio: texts at any distance are spread.
        const SPREAD: u32 = 0x9E37_79B1;
        (text.raw_offset().wrapping_mul(SPREAD) >> (32 - ENTRIES.ilog2())) as usize
    }
}

struct Tables {
    members: [Member; ENTRIES],
    names: [Name; ENTRIES],
    is_empty: bool,
}

impl Tables {
    const EMPTY: Tables = Tables {
        members: [Member::NONE; ENTRIES],
        names: [Name::NONE; ENTRIES],
        is_empty: true,
    };
}

/// The caches of a heap.
#[derive(Default)]
pub(super) struct Caches {
    tables: Option<Box<Tables>>,
    look_ups: u32,
}

impl std::fmt::Debug for Caches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caches").finish_non_exhaustive()
    }
}

impl Caches {
    /// The slot of a member, if it is known.
    #[inline]
    pub(super) fn slot(&self, shape: ShapeId, key: KeyId) -> Option<usize> {
        let of = Member::of(shape, key);
        let known = &self.tables.as_deref()?.members[Member::place(of)];
        (known.of == of).then_some(known.slot as usize)
    }

    /// Remembers the slot of a member, in a shape that does not change in place.
    pub(super) fn put_slot(&mut self, shape: ShapeId, key: KeyId, slot: usize) {
        if let Some(tables) = self.tables() {
            let (of, slot) = (Member::of(shape, key), slot as u32);
            tables.members[Member::place(of)] = Member { of, slot };
        }
    }

    /// The key that a name is, if it is known.
    #[inline]
    pub(super) fn key(&self, text: Str) -> Option<KeyId> {
        let known = &self.tables.as_deref()?.names[Name::place(text)];
        (known.text == text && !text.is_empty()).then_some(known.key)
    }

    /// Remembers which key a name is.
    pub(super) fn put_key(&mut self, text: Str, key: KeyId) {
        if let Some(tables) = self.tables() {
            tables.names[Name::place(text)] = Name { text, key };
        }
    }

    fn tables(&mut self) -> Option<&mut Tables> {
        self.look_ups = self.look_ups.saturating_add(1);
        if self.tables.is_none() {
            if self.look_ups <= LOOK_UPS_BEFORE {
                return None;
            }
            self.tables = Some(Box::new(Tables::EMPTY));
        }
        let tables = self.tables.as_deref_mut()?;
        tables.is_empty = false;
        Some(tables)
    }

    /// Forgets what shapes, keys and texts were.
    pub(super) fn clear(&mut self) {
        self.look_ups = 0;
        if let Some(tables) = self.tables.as_deref_mut().filter(|tables| !tables.is_empty) {
            *tables = Tables::EMPTY;
        }
    }

    /// Gives the tables back.
    pub(super) fn free(&mut self) {
        *self = Caches::default();
    }
}
