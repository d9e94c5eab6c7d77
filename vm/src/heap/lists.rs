//! Growth and truncation of arrays and sets.

use super::{CELL_BYTES, Cell, Heap, Oom, Ref, SLOT_BYTES, Val};

impl Heap {
    /// Appends to an array or set. Growth doubles the capacity.
    pub fn push(&mut self, r: Ref, val: Val) -> Result<(), Oom> {
        let c = self.cell(r);
        if c.len == c.cap {
            self.widen(r, c)?;
        }
        let cell = &mut self.cells[r.0 as usize];
        let at = (cell.off + cell.len) as usize;
        cell.len += 1;
        self.slots[at] = val;
        Ok(())
    }

    /// Appends if the capacity allows it; whether it did.
    #[inline]
    pub(crate) fn push_in_place(&mut self, r: Ref, val: Val) -> bool {
        let cell = &mut self.cells[r.0 as usize];
        let has_room = cell.len < cell.cap;
        if has_room {
            let at = (cell.off + cell.len) as usize;
            cell.len += 1;
            self.slots[at] = val;
        }
        has_room
    }

    /// Grows a full array.
    #[cold]
    pub(super) fn widen(&mut self, r: Ref, c: Cell) -> Result<(), Oom> {
        let (off, moved, more) = self.room_to_widen(c)?;
        let from = c.off as usize;
        self.slots.extend_from_within(from..from + moved);
        self.slots.resize(self.slots.len() + more, Val::Undefined);
        self.widened(r, off, more);
        Ok(())
    }

    /// Reserves room to double a full array, or less if that exceeds the ceiling. Returns the
    /// new offset, the number of values to move, and the added capacity.
    pub(super) fn room_to_widen(&mut self, c: Cell) -> Result<(u32, usize, usize), Oom> {
        let (from, cap) = (c.off as usize, c.cap as usize);
        // An array at the end of the heap grows in place.
        let in_place = from + cap == self.slots.len();
        let moved = if in_place { 0 } else { cap };
        let fits = |more: &usize| self.check((moved + more) * SLOT_BYTES + CELL_BYTES).is_ok();
        let mut ways = [cap, cap / 2, cap / 8].into_iter().filter(|n| *n > 4);
        // A large array that moved for a few values would soon move again: near the ceiling
        // each move costs a compaction.
        let more = ways.find(fits).unwrap_or((cap / 32).max(4));
        let off = self.reserve_slots(moved + more)?;
        Ok((if in_place { c.off } else { off }, moved, more))
    }

    pub(super) fn widened(&mut self, r: Ref, off: u32, more: usize) {
        let cell = &mut self.cells[r.0 as usize];
        cell.off = off;
        cell.cap += more as u32;
    }

    /// Shortens an array or set.
    pub fn truncate(&mut self, r: Ref, len: usize) {
        let cell = &mut self.cells[r.0 as usize];
        cell.len = cell.len.min(len as u32);
    }

    /// Replaces all values of an array or set.
    pub fn replace(&mut self, r: Ref, vals: &[Val]) -> Result<(), Oom> {
        let c = self.cell(r);
        if vals.len() <= c.cap as usize {
            self.cells[r.0 as usize].len = vals.len() as u32;
            self.items_mut(r).copy_from_slice(vals);
            return Ok(());
        }
        let off = self.reserve_slots(vals.len())?;
        self.slots.extend_from_slice(vals);
        let cell = &mut self.cells[r.0 as usize];
        cell.off = off;
        cell.len = vals.len() as u32;
        cell.cap = vals.len() as u32;
        Ok(())
    }
}
