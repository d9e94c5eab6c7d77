//! Serialization of the run's own keys and shapes.

use super::dict::Dict;
use super::{KeyId, SHARED_KEYS, Shape, ShapeId, Shapes};
use crate::wire::SnapshotError;
use crate::wire::{Reader, Taken, Writer};

impl Shapes {
    /// Writes the run's own keys and shapes.
    pub(crate) fn save(&self, w: &mut Writer) {
        w.len(self.own.keys.len());
        self.own
            .keys
            .iter()
            .for_each(|key| w.bytes(key.text.as_bytes()));
        w.len(self.own.shapes.len());
        for shape in &self.own.shapes {
            let keys = shape.all_keys();
            w.len(keys.len());
            keys.iter().for_each(|key| w.u32(key.0));
            w.bool(shape.dict().is_some());
            if let Some(dict) = shape.dict() {
                let (entries, count) = dict.entries();
                w.u32(count as u32);
                entries.iter().for_each(|entry| w.u32(*entry));
            }
        }
    }

    /// Reads keys and shapes, counted against the ceiling.
    pub(crate) fn load(&mut self, r: &mut Reader<'_>, limit: usize) -> Taken<()> {
        let full = || SnapshotError::too_large();
        for _ in 0..r.len(4, 0)? {
            let text = r.wtf8()?;
            if self.bytes().saturating_add(Shapes::key_cost(text)) > limit {
                return Err(full());
            }
            if self.find_key(text).is_some() {
                return r.wrong("a key is there twice");
            }
            self.intern(text);
        }
        let keys = self.static_keys() + self.own.keys.len() as u32;
        let mut list: Vec<KeyId> = Vec::new();
        for _ in 0..r.len(4, 0)? {
            list.clear();
            let n = r.len(4, size_of::<KeyId>())?;
            let most = Shapes::shape_cost(n).max(Shapes::dict_cost(n));
            if self.bytes().saturating_add(most) > limit {
                return Err(full());
            }
            for _ in 0..n {
                let key = r.u32()?;
                if key >= keys {
                    return r.wrong("a shape has a key that is not there");
                }
                list.push(KeyId(key));
            }
            let mut sorted = list.clone();
            sorted.sort_unstable();
            if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
                return r.wrong("a shape has a key twice");
            }
            if r.bool()? {
                self.load_dict(r, &list)?;
            } else if !self.add_own(&list) {
                return r.wrong("a shape is there twice");
            }
        }
        Ok(())
    }

    /// Reads the insertion order of an unshared shape's keys.
    fn load_dict(&mut self, r: &mut Reader<'_>, keys: &[KeyId]) -> Taken<()> {
        let count = r.u32()? as usize;
        let mut entries = Vec::new();
        for _ in keys {
            entries.push(r.u32()?);
        }
        match Dict::restored(keys, &entries, count, self) {
            Some(dict) => self.add_dict(dict),
            None => return r.wrong("an object's keys are in no order"),
        };
        Ok(())
    }

    /// Adds one of the run's own shapes; false if it exists.
    fn add_own(&mut self, keys: &[KeyId]) -> bool {
        if keys.len() > SHARED_KEYS {
            let shape = Shape::new(keys, |k| self.key_entry(k).int());
            self.add_shape(shape);
            return true;
        }
        let before = self.own.shapes.len();
        self.shape_of(keys);
        self.own.shapes.len() > before
    }

    pub(crate) fn has_shape(&self, id: ShapeId) -> bool {
        let own = self.own.shapes.len();
        (id.0 as usize) < self.static_shapes() as usize + own
    }
}
