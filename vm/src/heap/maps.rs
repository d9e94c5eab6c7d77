//! Cells of maps (D111): an object finds the entries, by texts that stand for the keys.
//!
//! A map has three slots: an object from tagged texts to values, a list of the entries whose
//! keys have an identity instead of a text, and the number of the next such entry. Collection,
//! snapshots and the count of memory follow from those of objects and lists.

use super::{CellKind, Heap, Oom, Ref, Val};

/// Slots of a map.
pub(super) const SLOTS: u32 = 3;

/// The parts of a map.
#[derive(Copy, Clone, Debug)]
pub(crate) struct MapParts {
    /// The object from tagged texts to values, or to the entry of a key with an identity.
    pub(crate) table: Ref,
    /// The entries of keys with an identity: arrays of key, value and number.
    pub(crate) named: Ref,
    /// The number of the next such entry.
    pub(crate) next: f64,
}

impl Heap {
    /// Allocates an empty map.
    pub(crate) fn alloc_map(&mut self) -> Result<Ref, Oom> {
        let table = self.alloc_obj_keys(&[], &[])?;
        let named = self.alloc_arr(&[])?;
        self.map_of_slots(&[Val::Obj(table), Val::Arr(named), Val::Num(0.0)])
    }

    /// Allocates a map with these slots.
    pub(crate) fn map_of_slots(&mut self, slots: &[Val]) -> Result<Ref, Oom> {
        let r = self.alloc_arr(slots)?;
        self.cells[r.0 as usize].kind = CellKind::Map;
        Ok(r)
    }

    /// The parts of a map; `None` if a damaged snapshot has other values there.
    pub(crate) fn map_parts(&self, r: Ref) -> Option<MapParts> {
        match self.items(r) {
            [Val::Obj(table), Val::Arr(named), Val::Num(next)] => Some(MapParts {
                table: *table,
                named: *named,
                next: *next,
            }),
            _ => None,
        }
    }

    /// Number of entries of a map.
    pub(crate) fn map_len(&self, r: Ref) -> usize {
        self.map_parts(r).map_or(0, |parts| self.len(parts.table))
    }
}
