//! Squeezing garbage out of a heap.
//!
//! Runs only between two instructions, when the roots the machine names are
//! all there is. Live cells keep their order and slide together; live text is
//! kept as the union of the ranges that live strings view.
//!
//! Its work is paid by what was allocated since the last one. That holds only
//! if things that grow piece by piece find their spare room again afterwards:
//! several arrays that grew in turn would otherwise all be copied to twice
//! their size after each compaction, which brings on the next at once. Only
//! when memory runs short does spare room go.

use super::live_text::{LiveText, TextMap};
use super::{Cell, Heap, Ref, ShapeId, Val};

/// Heap size before the first compaction is considered: below it a run ends
/// before garbage matters.
pub(super) const FIRST_COMPACTION: usize = 256 << 10;

/// After a compaction the next is due when the heap is this many times as
/// large as what survived.
const GROWTH: usize = 2;

/// A heap is full when less than one part in so many of its ceiling is free
/// after a compaction: going on would compact again and again for next to
/// nothing.
const FULL_PARTS: usize = 64;

/// Work of a compaction, in nanoseconds: for each cell there was, each slot
/// kept, each piece of text that a value views.
const WORK: (usize, usize, usize) = (4, 4, 24);

/// Bytes of text that are moved in a nanosecond.
const BYTES_A_NANOSECOND: usize = 8;

/// Calls its argument on every root of the heap.
pub type Roots<'a> = dyn FnMut(&mut dyn FnMut(&mut Val)) + 'a;

impl Heap {
    /// Whether enough was allocated since the last compaction to try one.
    #[inline]
    pub fn wants_compaction(&self) -> bool {
        self.used() >= self.compact_at
    }

    /// Whether a compaction that just ran left too little room to go on.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes allocated since the last compaction.
    pub fn allocated(&self) -> usize {
        self.used().saturating_sub(self.compacted)
    }

    /// Drops everything that no root reaches; updates the roots. `tight` takes
    /// the spare room of arrays and texts that grow, too. Returns the work
    /// done, in nanoseconds.
    pub fn compact(&mut self, tight: bool, roots: &mut Roots<'_>) -> usize {
        let mut work = self.cells.len() * WORK.0;
        let text = LiveText::new(self.bytes.len());
        let mut marks = Marks::new(self.cells.len(), self.shapes.own_shapes(), text);
        roots(&mut |val| marks.visit(*val));
        marks.trace(self);
        work += marks.text.found * WORK.2;
        if tight {
            self.rooms.clear();
        }
        let text = self.move_text(std::mem::take(&mut marks.text));
        let shape_ids = self.shapes.collect(&marks.shapes);
        let cell_ids = self.move_cells(&marks, &shape_ids, tight);
        let moved = |val: &mut Val| match val {
            Val::Str(s) if !s.is_empty() => *s = text.moved(*s),
            Val::Arr(r) | Val::Obj(r) | Val::Set(r) | Val::Date(r) => r.0 = cell_ids[r.0 as usize],
            _ => {}
        };
        self.slots.iter_mut().for_each(moved);
        roots(&mut |val| moved(val));
        let used = self.used();
        self.compacted = used;
        self.full = self.limit.saturating_sub(used) < self.limit / FULL_PARTS;
        self.compact_at = (used * GROWTH).max(FIRST_COMPACTION);
        work + self.slots.len() * WORK.1 + self.bytes.len() / BYTES_A_NANOSECOND
    }

    fn move_text(&mut self, live: LiveText) -> TextMap {
        let mut map = live.into_map();
        match &mut map {
            TextMap::Ranges(ranges) => self.rooms.widen(ranges),
            // Among so many texts few grow.
            TextMap::Bits { .. } => self.rooms.clear(),
        }
        map.slide(&mut self.bytes);
        let freed = self.places.moved(&map);
        self.sub_external(freed);
        if let TextMap::Ranges(ranges) = &map {
            self.rooms.moved(ranges);
        }
        map
    }

    /// Slides live cells and their slots together; returns the new cell ids.
    fn move_cells(&mut self, marks: &Marks, shape_ids: &[u32], tight: bool) -> Vec<u32> {
        let mut ids = vec![u32::MAX; self.cells.len()];
        // Slot ranges are in cell order except for arrays that moved when
        // they grew, so cells are placed in the order of their slots.
        let mut by_slot: Vec<u32> = Vec::with_capacity(marks.live);
        for i in (0..self.cells.len()).filter(|i| marks.cells[*i]) {
            ids[i] = by_slot.len() as u32;
            by_slot.push(i as u32);
        }
        // Mostly they are in order, and a sort takes memory.
        let slot = |i: &u32| self.cells[*i as usize].off;
        if !by_slot.is_sorted_by_key(slot) {
            by_slot.sort_by_key(slot);
        }
        let mut at = 0u32;
        for i in by_slot {
            let cell = &mut self.cells[i as usize];
            let (off, len) = (cell.off as usize, cell.len as usize);
            // Growing never leaves more room than this; taking values away does.
            let spare = if tight { 0 } else { cell.len.max(4) };
            cell.cap = cell.cap.min(cell.len + spare);
            cell.off = at;
            self.slots.copy_within(off..off + len, at as usize);
            let end = at + cell.cap;
            self.slots[at as usize + len..end as usize].fill(Val::Undefined);
            at = end;
            if cell.shape.0 >= marks.first_shape && cell.kind == super::CellKind::Obj {
                cell.shape = ShapeId(shape_ids[(cell.shape.0 - marks.first_shape) as usize]);
            }
        }
        self.slots.truncate(at as usize);
        for old in (0..self.cells.len()).filter(|i| marks.cells[*i]) {
            self.cells[ids[old] as usize] = self.cells[old];
        }
        let n = marks.live;
        self.cells.truncate(n);
        ids
    }
}

/// What a trace of the heap found alive.
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

    fn visit(&mut self, val: Val) {
        match val {
            Val::Str(s) if !s.is_static() && !s.is_empty() => {
                self.text.add(s);
            }
            Val::Arr(r) | Val::Obj(r) | Val::Set(r) | Val::Date(r) => {
                let seen = &mut self.cells[r.0 as usize];
                if !*seen {
                    *seen = true;
                    self.live += 1;
                    self.work.push(r);
                }
            }
            _ => {}
        }
    }

    fn trace(&mut self, heap: &Heap) {
        while let Some(r) = self.work.pop() {
            let cell: Cell = heap.cell(r);
            if cell.kind == super::CellKind::Obj && cell.shape.0 >= self.first_shape {
                self.shapes[(cell.shape.0 - self.first_shape) as usize] = true;
            }
            for val in heap.items(r) {
                self.visit(*val);
            }
        }
    }
}
