//! Inline caches: slots of members, and keys of names.
//!
//! A program reads the same few members of objects of the same few shapes repeatedly, and
//! computes keys from the same few texts. Both results hold until a compaction, which
//! renumbers shapes and keys and moves text. The tables are direct-mapped, belong to a run,
//! and are allocated once it has made enough look-ups to pay for them.

use super::{KeyId, ShapeId, Str};

/// Entries per table; a power of two.
const ENTRIES: usize = 32;

/// Look-ups of a run before the tables are allocated.
const LOOK_UPS_BEFORE: u32 = 32;

/// A cached member of a shape.
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

    /// A unique tag: shape and key are both list indices, so no other pair has it.
    #[inline]
    fn of(shape: ShapeId, key: KeyId) -> u64 {
        u64::from(shape.0) << 32 | u64::from(key.0)
    }

    /// Consecutive shapes and keys map to different entries.
    #[inline]
    fn place(of: u64) -> usize {
        /// 2^64 divided by the golden ratio.
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        (of.wrapping_mul(SPREAD) >> (u64::BITS - ENTRIES.ilog2())) as usize
    }
}

/// A cached name.
#[derive(Copy, Clone)]
struct Name {
    text: Str,
    key: KeyId,
}

impl Name {
    /// The empty name, which is never cached.
    const NONE: Name = Name {
        text: Str::EMPTY,
        key: KeyId(0),
    };

    #[inline]
    fn place(text: Str) -> usize {
        /// 2^32 divided by the golden ratio: spreads texts at any distance.
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
    /// The cached slot of a member.
    #[inline]
    pub(super) fn slot(&self, shape: ShapeId, key: KeyId) -> Option<usize> {
        let of = Member::of(shape, key);
        let known = &self.tables.as_deref()?.members[Member::place(of)];
        (known.of == of).then_some(known.slot as usize)
    }

    /// Caches the slot of a member; the shape must not change in place.
    pub(super) fn put_slot(&mut self, shape: ShapeId, key: KeyId, slot: usize) {
        if let Some(tables) = self.tables() {
            let (of, slot) = (Member::of(shape, key), slot as u32);
            tables.members[Member::place(of)] = Member { of, slot };
        }
    }

    /// The cached key of a name.
    #[inline]
    pub(super) fn key(&self, text: Str) -> Option<KeyId> {
        let known = &self.tables.as_deref()?.names[Name::place(text)];
        (known.text == text && !text.is_empty()).then_some(known.key)
    }

    /// Caches the key of a name.
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

    /// Clears the entries, after shapes, keys and texts have changed.
    pub(super) fn clear(&mut self) {
        self.look_ups = 0;
        if let Some(tables) = self.tables.as_deref_mut().filter(|tables| !tables.is_empty) {
            *tables = Tables::EMPTY;
        }
    }

    /// Frees the tables.
    pub(super) fn free(&mut self) {
        *self = Caches::default();
    }
}
