//! Compaction of a heap.
//!
//! It runs only between two instructions, when the machine's roots are complete. Live cells
//! keep their order and slide together. Live text is the union of the ranges that live
//! strings view.
//!
//! Allocations since the last compaction pay for its work. That holds only if growing arrays
//! and texts keep their spare room: several arrays that grow in turn would otherwise all be
//! copied to twice their size after each compaction, which at once makes the next one due.
//! Spare room is dropped only when memory runs short.
//!
//! Compacting many megabytes takes longer than the time within which a run must stop, so
//! every walk has yield points. An interrupted compaction leaves an unreadable heap: the run
//! has ended, and the heap may only be emptied or dropped.

use super::live_text::{LiveText, TextMap};
use super::pieces::{PIECE, copy_down, fill, sort_by_key};
use super::{Cell, Heap, MAX_HEAP_LIMIT, Ref, ShapeId, Str, Val};
use crate::pace::{StopReason, Watch};

/// Heap size at which the first compaction is considered: smaller runs end before garbage
/// matters.
pub(super) const FIRST_COMPACTION: usize = 256 << 10;

/// Bounds of the growth factor between compactions, relative to the surviving size. The upper
/// bound applies if everything survived: a run that builds data would otherwise rescan all of
/// it at each doubling.
const GROWTH: (usize, usize) = (2, 8);

/// The heap is full if less than this fraction (1/n) of its ceiling is free after a
/// compaction: continuing would compact repeatedly for almost no gain.
const FULL_PARTS: usize = 64;

/// Work of a compaction, in nanoseconds: for each cell, each slot kept, each text view.
const WORK: (usize, usize, usize) = (4, 4, 24);

/// Bytes of text moved per nanosecond.
const BYTES_A_NANOSECOND: usize = 8;

/// Callback for a root of the heap.
pub(crate) type Visit<'v> = dyn FnMut(&mut Val) -> Result<(), StopReason> + 'v;

/// Calls its argument on every root of the heap, up to the first error.
pub(crate) type Roots<'a> = dyn FnMut(&mut Visit<'_>) -> Result<(), StopReason> + 'a;

impl Heap {
    /// Whether enough was allocated since the last compaction for another.
    #[inline]
    pub fn wants_compaction(&self) -> bool {
        self.used() >= self.compact_at
    }

    /// Whether the last compaction left too little room to continue.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes allocated since the last compaction.
    pub fn allocated(&self) -> usize {
        self.used().saturating_sub(self.compacted)
    }

    /// Drops unreachable values and updates the roots. `tight` also drops the spare room of
    /// growing arrays and texts. Returns the work in nanoseconds.
    ///
    /// # Errors
    /// The host stops the run. The heap may then only be emptied.
    pub(crate) fn compact(
        &mut self,
        tight: bool,
        roots: &mut Roots<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<usize, StopReason> {
        let before = self.used();
        self.caches.clear();
        let mut work = self.cells.len() * WORK.0;
        let text = LiveText::new(self.bytes.len());
        let mut marks = Marks::new(self.cells.len(), self.shapes.own_shapes(), text);
        roots(&mut |val| {
            watch.work(1)?;
            marks.visit(*val, watch)
        })?;
        marks.trace(self, watch)?;
        work += marks.text.found * WORK.2;
        if tight {
            self.rooms.clear();
        }
        let text = self.move_text(std::mem::take(&mut marks.text), watch)?;
        let shape_ids = self.shapes.collect(&marks.shapes, watch)?;
        let cell_ids = self.move_cells(&marks, &shape_ids, tight, watch)?;
        let moved = |val: &mut Val| match val {
            // An empty view must not keep its old offset.
            Val::Str(s) if s.is_empty() => *s = Str::EMPTY,
            Val::Str(s) => *s = text.moved(*s),
            Val::Arr(r) | Val::Obj(r) | Val::Set(r) | Val::Date(r) | Val::Map(r) => {
                r.0 = cell_ids[r.0 as usize];
            }
            _ => {}
        };
        for part in self.slots.chunks_mut(PIECE) {
            watch.work(part.len() * 8)?;
            part.iter_mut().for_each(moved);
        }
        roots(&mut |val| {
            moved(val);
            watch.work(8)
        })?;
        let used = self.used();
        self.compacted = used;
        self.full = self.limit.saturating_sub(used) < self.limit / FULL_PARTS;
        self.compact_at = next(before, used).max(FIRST_COMPACTION);
        Ok(work + self.slots.len() * WORK.1 + self.bytes.len() / BYTES_A_NANOSECOND)
    }

    /// A compaction that cannot be stopped.
    #[cfg(test)]
    pub(super) fn compact_from(&mut self, tight: bool, roots: &mut [Val]) -> usize {
        let mut watch = Watch::new(&crate::builtins::testing::Still);
        let mut roots = |visit: &mut Visit<'_>| roots.iter_mut().try_for_each(visit);
        self.compact(tight, &mut roots, &mut watch)
            .expect("nothing stops it")
    }

    fn move_text(&mut self, live: LiveText, watch: &mut Watch<'_>) -> Result<TextMap, StopReason> {
        let mut map = live.into_map(watch)?;
        match &mut map {
            TextMap::Ranges(ranges) => self.rooms.widen(ranges),
            // With this number of texts the share of growing ones is small.
            TextMap::Bits { .. } => self.rooms.clear(),
        }
        map.slide(&mut self.bytes, watch)?;
        let freed = self.places.moved(&map, watch)?;
        self.sub_external(freed);
        if let TextMap::Ranges(ranges) = &map {
            self.rooms.moved(ranges);
        }
        Ok(map)
    }

    /// Slides live cells and their slots together; returns the new cell ids.
    fn move_cells(
        &mut self,
        marks: &Marks,
        shape_ids: &[u32],
        tight: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<u32>, StopReason> {
        let mut ids = Vec::with_capacity(self.cells.len());
        // Slot ranges follow cell order except for arrays that moved when they grew, so cells
        // are placed by the order of their slots.
        let mut by_slot: Vec<u32> = Vec::with_capacity(marks.live);
        for (n, part) in marks.cells.chunks(PIECE).enumerate() {
            watch.work(part.len() * 2)?;
            for (i, live) in part.iter().enumerate() {
                ids.push(if *live {
                    by_slot.len() as u32
                } else {
                    u32::MAX
                });
                if *live {
                    by_slot.push((n * PIECE + i) as u32);
                }
            }
        }
        // They are mostly in order, and sorting takes memory.
        let cells = &self.cells;
        sort_by_key(&mut by_slot, |i| cells[*i as usize].off, watch)?;
        let mut at = 0usize;
        for i in by_slot {
            watch.work(8)?;
            let cell = &mut self.cells[i as usize];
            let (off, len) = (cell.off as usize, cell.len as usize);
            // Growth never leaves more room than this; removing values does.
            let spare = if tight { 0 } else { cell.len.max(4) };
            cell.cap = cell.cap.min(cell.len + spare);
            cell.off = at as u32;
            let end = at + cell.cap as usize;
            if cell.shape.0 >= marks.first_shape && cell.kind == super::CellKind::Obj {
                cell.shape = ShapeId(shape_ids[(cell.shape.0 - marks.first_shape) as usize]);
            }
            copy_down(&mut self.slots, off..off + len, at, watch)?;
            fill(&mut self.slots[at + len..end], Val::Undefined, watch)?;
            at = end;
        }
        self.slots.truncate(at);
        for (n, part) in marks.cells.chunks(PIECE).enumerate() {
            watch.work(part.len() * 2)?;
            for (i, _) in part.iter().enumerate().filter(|(_, live)| **live) {
                let old = n * PIECE + i;
                self.cells[ids[old] as usize] = self.cells[old];
            }
        }
        self.cells.truncate(marks.live);
        Ok(ids)
    }
}

/// Heap size at which the next compaction is due.
fn next(before: usize, survived: usize) -> usize {
    let (least, most) = GROWTH;
    let dropped = before.saturating_sub(survived);
    // In eighths of the heap: each dropped eighth lowers the growth by one.
    let eighths = dropped / (before / 8).max(1);
    let growth = most.saturating_sub(2 * eighths).max(least);
    survived.saturating_mul(growth).min(2 * MAX_HEAP_LIMIT)
}

/// The result of a heap trace.
struct Marks {
    cells: Vec<bool>,
    live: usize,
    work: Vec<Ref>,
    text: LiveText,
    shapes: Vec<bool>,
    first_shape: u32,
}

impl Marks {
    fn new(cells: usize, (first_shape, shapes): (u32, usize), text: LiveText) -> Marks {
        Marks {
            cells: vec![false; cells],
            live: 0,
            work: Vec::new(),
            text,
            shapes: vec![false; shapes],
            first_shape,
        }
    }

    #[inline]
    fn visit(&mut self, val: Val, watch: &mut Watch<'_>) -> Result<(), StopReason> {
        match val {
            Val::Str(s) if !s.is_static() && !s.is_empty() => self.text.add(s, watch)?,
            Val::Arr(r) | Val::Obj(r) | Val::Set(r) | Val::Date(r) | Val::Map(r) => {
                let seen = &mut self.cells[r.0 as usize];
                if !*seen {
                    *seen = true;
                    self.live += 1;
                    self.work.push(r);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn trace(&mut self, heap: &Heap, watch: &mut Watch<'_>) -> Result<(), StopReason> {
        while let Some(r) = self.work.pop() {
            let cell: Cell = heap.cell(r);
            if cell.kind == super::CellKind::Obj && cell.shape.0 >= self.first_shape {
                self.shapes[(cell.shape.0 - self.first_shape) as usize] = true;
            }
            watch.work(4)?;
            for part in heap.items(r).chunks(PIECE) {
                watch.work(part.len() * 2)?;
                for val in part {
                    self.visit(*val, watch)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn the_less_was_garbage_the_later_it_is_looked_for() {
        let mib = |n: usize| n << 20;
        assert_eq!(next(mib(8), mib(8)), mib(64));
        assert_eq!(next(mib(8), mib(7)), mib(42));
        assert_eq!(next(mib(8), mib(6)), mib(24));
        assert_eq!(next(mib(8), mib(5)), mib(10));
        assert_eq!(next(mib(8), mib(1)), mib(2));
        assert_eq!((next(0, 0), next(mib(8), 0)), (0, 0));
        // The same as a snapshot stores.
        assert_eq!(next(mib(1000), mib(1000)), mib(2048));
    }
}
