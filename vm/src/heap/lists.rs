//! Lists of a heap, arrays and sets, that grow and are cut.

use super::{CELL_BYTES, Cell, Heap, Oom, Ref, SLOT_BYTES, Val};

impl Heap {
    /// Appends to an array or set. Growth doubles the room.
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

    /// The same if that takes no more room; whether it did.
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

    /// Gives a full array room.
    #[cold]
    pub(super) fn widen(&mut self, r: Ref, c: Cell) -> Result<(), Oom> {
        let (off, moved, more) = self.room_to_widen(c)?;
        let from = c.off as usize;
        self.slots.extend_from_within(from..from + moved);
        self.slots.resize(self.slots.len() + more, Val::Undefined);
        self.widened(r, off, more);
        Ok(())
    }

    /// Makes room for as many values as a full array has, for fewer where that
    /// does not fit under the ceiling. Where it goes, how many values move,
    /// and how many more there is room for.
    pub(super) fn room_to_widen(&mut self, c: Cell) -> Result<(u32, usize, usize), Oom> {
        let (from, cap) = (c.off as usize, c.cap as usize);
        // An array at the end of the heap grows where it is.
        let in_place = from + cap == self.slots.len();
        let moved = if in_place { 0 } else { cap };
        let fits = |more: &usize| self.check((moved + more) * SLOT_BYTES + CELL_BYTES).is_ok();
        let mut ways = [cap, cap / 2, cap / 8].into_iter().filter(|n| *n > 4);
        // A large array that moved for a handful of places would move again at
        // once: near the ceiling that is a compaction for each.
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
