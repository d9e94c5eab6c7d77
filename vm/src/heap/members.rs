//! In-place insertion and deletion of object members (D66).

use super::shape::Gap;
use super::{Heap, KeyId, Ref, Val};
use crate::pace::{Clock, Fault};

impl Heap {
    /// Sets a member; a new one comes last. All references to the object see the change.
    pub(crate) fn set_member(
        &mut self,
        r: Ref,
        key: KeyId,
        val: Val,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        if let Some(member) = self.member(r, key) {
            *member = val;
            return Ok(());
        }
        let c = self.cell(r);
        self.room_for_one(r, clock)?;
        self.check(self.shapes.change_bytes(c.shape))?;
        let shape = self.shapes.with_key(c.shape, key, clock)?;
        let cell = &mut self.cells[r.0 as usize];
        cell.shape = shape;
        let at = (cell.off + cell.len) as usize;
        cell.len += 1;
        self.slots[at] = val;
        Ok(())
    }

    /// Deletes a member; whether it existed.
    pub(crate) fn delete_member(
        &mut self,
        r: Ref,
        key: KeyId,
        clock: &mut Clock<'_>,
    ) -> Result<bool, Fault> {
        let c = self.cell(r);
        let Some(slot) = self.shapes.slot(c.shape, key) else {
            return Ok(false);
        };
        self.check(self.shapes.change_bytes(c.shape))?;
        let (shape, gap) = self.shapes.without_slot(c.shape, slot, clock)?;
        let (off, len) = (c.off as usize, c.len as usize);
        match gap {
            Gap::Closed => self
                .slots
                .copy_within(off + slot + 1..off + len, off + slot),
            Gap::Filled => self.slots[off + slot] = self.slots[off + len - 1],
        }
        let cell = &mut self.cells[r.0 as usize];
        cell.shape = shape;
        cell.len -= 1;
        Ok(true)
    }

    /// Allocates an object with the keys of another, which must be settled.
    pub(crate) fn object_like(
        &mut self,
        r: Ref,
        vals: &[Val],
        clock: &mut Clock<'_>,
    ) -> Result<Ref, Fault> {
        let shape = self.shape(r);
        if !self.shapes.is_own(shape) {
            return Ok(self.alloc_obj(shape, vals)?);
        }
        self.check(vals.len() * size_of::<KeyId>())?;
        let keys = self.shapes.keys(shape).to_vec();
        self.object_of(&keys, vals, clock)
    }

    /// Restores insertion order of the members, for walks by slot.
    pub(crate) fn settle(&mut self, r: Ref, clock: &mut Clock<'_>) -> Result<(), Fault> {
        let c = self.cell(r);
        if !self.shapes.is_own(c.shape) {
            return Ok(());
        }
        let len = c.len as usize;
        self.check(len * (size_of::<Val>() + size_of::<u32>() + size_of::<KeyId>()))?;
        let Some(from) = self.shapes.settle(c.shape, clock)? else {
            return Ok(());
        };
        let off = c.off as usize;
        let mut vals = Vec::with_capacity(len);
        for part in from.chunks(PIECE) {
            clock.work(2 * part.len() as i64)?;
            vals.extend(part.iter().map(|slot| self.slots[off + *slot as usize]));
        }
        self.slots[off..off + len].copy_from_slice(&vals);
        Ok(())
    }
}

/// Values moved between two yield points.
const PIECE: usize = 4096;
