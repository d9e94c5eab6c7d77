//! Collection of unused keys and shapes.

use super::{KEYS_A_LOOK, LOOKED_UP, SHARED_KEYS, Shapes, drop_from};
use crate::heap::ids::Ids;
use crate::pace::{StopReason, Watch};

impl Shapes {
    /// Drops the run's shapes and keys that no live object uses. `live` marks the run's own
    /// live shapes; returns the new ids. All entries move within their list: there is no room
    /// for a second one.
    ///
    /// # Errors
    /// The host stops the run.
    pub(crate) fn collect(
        &mut self,
        live: &[bool],
        watch: &mut Watch<'_>,
    ) -> Result<Vec<u32>, StopReason> {
        let base = self.static_shapes();
        let key_base = self.static_keys();
        let hasher = &self.statics.hasher;
        let own = &mut self.own;
        // The new index of each own key.
        let mut places = vec![u32::MAX; own.keys.len()];
        for (shape, _) in own.shapes.iter().zip(live).filter(|(_, live)| **live) {
            for part in shape.all_keys().chunks(KEYS_A_LOOK) {
                watch.work(4 + part.len())?;
                for key in part.iter().filter(|key| key.0 >= key_base) {
                    places[(key.0 - key_base) as usize] = 0;
                }
            }
        }
        let mut kept = 0;
        for (at, place) in places.iter_mut().enumerate() {
            watch.work(4)?;
            if *place == 0 {
                *place = kept;
                own.keys.swap(kept as usize, at);
                kept += 1;
            }
        }
        drop_from(&mut own.keys, kept as usize, watch)?;
        own.keys.shrink_to(2 * own.keys.len());
        own.ids = Ids::with_capacity(own.keys.len());
        self.own_bytes = 0;
        for (id, key) in own.keys.iter().enumerate() {
            watch.work(LOOKED_UP)?;
            own.ids.insert(key.hash, id as u32, |_| None);
            self.own_bytes += Self::key_cost(key.text.as_bytes());
        }
        // The new index of each own shape; its keys are renumbered already.
        let mut renumber = vec![u32::MAX; own.shapes.len()];
        let mut kept = 0;
        for (at, live) in live.iter().enumerate() {
            watch.work(4)?;
            if !live {
                continue;
            }
            renumber[at] = base + kept;
            own.shapes.swap(kept as usize, at);
            let shape = &mut own.shapes[kept as usize];
            kept += 1;
            let mut moved = false;
            for part in shape.all_keys_mut().chunks_mut(KEYS_A_LOOK) {
                watch.work(part.len() * 2)?;
                for key in part.iter_mut().filter(|key| key.0 >= key_base) {
                    let place = key_base + places[(key.0 - key_base) as usize];
                    moved |= place != key.0;
                    key.0 = place;
                }
            }
            if moved && let Some(index) = shape.more.as_mut().and_then(|m| m.index.as_mut()) {
                index.clear();
                for (i, key) in shape.keys.iter().enumerate() {
                    watch.work(LOOKED_UP)?;
                    index.insert(*key, i as u32);
                }
            }
        }
        drop_from(&mut own.shapes, kept as usize, watch)?;
        own.shapes.shrink_to(2 * own.shapes.len());
        own.shape_ids = Ids::with_capacity(own.shapes.len());
        for (id, shape) in own.shapes.iter().enumerate() {
            watch.work(LOOKED_UP)?;
            self.own_bytes += shape.cost();
            if shape.keys.len() <= SHARED_KEYS && shape.dict().is_none() {
                let hash = hasher.list(&shape.keys);
                own.shape_ids.insert(hash, id as u32, |_| None);
            }
        }
        Ok(renumber)
    }
}
