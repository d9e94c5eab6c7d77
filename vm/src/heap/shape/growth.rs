//! Shape transitions: objects that gain or lose a member.
//!
//! Small objects take the shared shape of their keys. With more than [`SCAN_KEYS`] keys an
//! object gets unshared keys in a [`Dict`].

use super::dict::{Dict, KeyFacts};
use super::{Key, KeyId, MORE_BYTES, SCAN_KEYS, SHAPE_BYTES, Shape, ShapeId, Shapes, Table};
use crate::pace::Pace;

/// How values close the gap of a deleted key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// The following values move down.
    Closed,
    /// The last value takes its slot.
    Filled,
}

/// The keys of program and run.
struct Known<'k> {
    statics: &'k Table,
    own: &'k [Key],
}

impl Known<'_> {
    fn entry(&self, key: KeyId) -> &Key {
        let base = self.statics.keys.len();
        match self.statics.keys.get(key.0 as usize) {
            Some(key) => key,
            None => &self.own[key.0 as usize - base],
        }
    }
}

impl KeyFacts for Known<'_> {
    fn hash(&self, key: KeyId) -> u64 {
        self.entry(key).hash
    }

    fn int(&self, key: KeyId) -> Option<u32> {
        self.entry(key).int()
    }
}

impl KeyFacts for Shapes {
    fn hash(&self, key: KeyId) -> u64 {
        self.key_entry(key).hash
    }

    fn int(&self, key: KeyId) -> Option<u32> {
        self.key_entry(key).int()
    }
}

impl Shapes {
    /// The dictionary of a shape, if it has one, and the properties of keys.
    fn dict_mut(&mut self, id: ShapeId) -> Option<(&mut Dict, Known<'_>)> {
        let at = id.0.checked_sub(self.static_shapes())? as usize;
        let known = Known {
            statics: &self.statics.table,
            own: &self.own.keys,
        };
        let more = self.own.shapes.get_mut(at)?.more.as_mut()?;
        Some((more.dict.as_mut()?, known))
    }

    pub(super) fn add_dict(&mut self, dict: Dict) -> ShapeId {
        let id = self.add_shape(Shape::of_dict(dict));
        ShapeId(self.static_shapes() + id)
    }

    /// Maximum bytes to add or remove a key.
    pub(crate) fn change_bytes(&self, id: ShapeId) -> usize {
        let shape = self.shape(id);
        let keys = shape.all_keys().len();
        match shape.dict() {
            Some(_) => Dict::KEY_BYTES,
            None if keys < SCAN_KEYS => Self::shape_cost(keys + 1),
            None => Self::dict_cost(keys + 1),
        }
    }

    /// Maximum bytes of an unshared shape with this number of keys.
    pub(super) fn dict_cost(keys: usize) -> usize {
        SHAPE_BYTES + MORE_BYTES + Dict::most_bytes(keys)
    }

    /// The shape with an additional new key. The caller has reserved [`Shapes::change_bytes`]
    /// in the heap.
    pub(crate) fn with_key<P: Pace>(
        &mut self,
        id: ShapeId,
        key: KeyId,
        pace: &mut P,
    ) -> Result<ShapeId, P::Stop> {
        if let Some((dict, known)) = self.dict_mut(id) {
            let before = dict.cost();
            dict.push(key, &known);
            let more = dict.cost() - before;
            self.own_bytes += more;
            return Ok(id);
        }
        let mut keys = self.keys(id).to_vec();
        keys.push(key);
        if keys.len() <= SCAN_KEYS {
            return Ok(self.shape_of(&keys));
        }
        let dict = Dict::of(&keys, self, pace)?;
        Ok(self.add_dict(dict))
    }

    /// The shape without the key of a slot, and the move of the values. The caller has
    /// reserved [`Shapes::change_bytes`] in the heap.
    pub(crate) fn without_slot<P: Pace>(
        &mut self,
        id: ShapeId,
        slot: usize,
        pace: &mut P,
    ) -> Result<(ShapeId, Gap), P::Stop> {
        let mut id = id;
        if self.shape(id).dict().is_none() {
            let mut keys = self.keys(id).to_vec();
            if keys.len() <= SCAN_KEYS {
                keys.remove(slot);
                return Ok((self.shape_of(&keys), Gap::Closed));
            }
            let dict = Dict::of(&keys, self, pace)?;
            id = self.add_dict(dict);
        }
        if let Some((dict, known)) = self.dict_mut(id) {
            let before = dict.cost();
            dict.swap_remove(slot, &known, pace)?;
            let less = before - dict.cost();
            self.own_bytes -= less;
        }
        Ok((id, Gap::Filled))
    }

    /// Restores insertion order of a shape's keys, the order of all other shapes. Returns the
    /// previous slots, if they moved.
    pub(crate) fn settle<P: Pace>(
        &mut self,
        id: ShapeId,
        pace: &mut P,
    ) -> Result<Option<Vec<u32>>, P::Stop> {
        let Some(dict) = self.shape(id).dict() else {
            return Ok(None);
        };
        pace.work(dict.keys().len())?;
        if dict.is_in_order() {
            return Ok(None);
        }
        let slots: Vec<u32> = dict.inserted().map(|slot| slot as u32).collect();
        let keys: Vec<KeyId> = slots.iter().map(|n| dict.keys()[*n as usize]).collect();
        let settled = Dict::of(&keys, self, pace)?;
        if let Some((dict, _)) = self.dict_mut(id) {
            let before = dict.cost();
            *dict = settled;
            let after = dict.cost();
            self.own_bytes = self.own_bytes - before + after;
        }
        Ok(Some(slots))
    }

    /// Whether the shape is unshared.
    pub(crate) fn is_own(&self, id: ShapeId) -> bool {
        self.shape(id).dict().is_some()
    }
}
