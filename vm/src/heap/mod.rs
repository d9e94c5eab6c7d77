//! The arena of one run: text, arrays and objects, counted exactly.
//!
//! Three growing buffers hold all data: `bytes` (text), `slots` (the values of arrays and
//! objects) and `cells` (one header for each array, object, set, date or map). Values are never
//! freed individually. A run's heap is dropped or reused whole, and `Heap::compact` removes
//! garbage between two instructions, when every live value is reachable from its roots.
//!
//! Every allocation is checked against the ceiling first (D20) and fails with [`Oom`]. The
//! interpreter then compacts once, runs the instruction again, and only then reports the heap
//! limit.

pub mod builtin;
mod caches;
mod compact;
mod hash;
mod ids;
mod lists;
mod live_text;
mod maps;
mod members;
pub(crate) mod paced;
mod pieces;
mod places;
mod rooms;
pub(crate) mod saved;
mod shape;
pub mod template;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_growth;
#[cfg(test)]
mod tests_members;
mod text;
mod val;

pub(crate) use a99_core::value::array_index;
pub(crate) use compact::Visit;
pub(crate) use maps::MapParts;
pub use shape::{KeyId, ShapeId, Shapes, StaticShapes};
pub use text::StrMark;
pub use val::{Ref, Str, Val};

pub use crate::pace::Oom;
use crate::pace::{Clock, Fault};
use a99_core::value::Value;
use std::sync::Arc;

/// Default ceiling over everything that a run holds (D20).
pub const DEFAULT_HEAP_LIMIT: usize = 64 << 20;

/// Maximum ceiling: offsets are 31 bits wide.
pub const MAX_HEAP_LIMIT: usize = 1 << 30;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum CellKind {
    Arr,
    Obj,
    Set,
    Date,
    Map,
}

#[derive(Copy, Clone, Debug)]
struct Cell {
    kind: CellKind,
    shape: ShapeId,
    off: u32,
    len: u32,
    cap: u32,
}

/// Buffers may exceed the ceiling by this fraction (1/n) as spare room.
const SPARE_PARTS: usize = 16;

/// Work of dropping a host value.
const VALUE_DROPPED: i64 = 32;

/// Estimated bytes of undropped host values: too much to keep for reuse.
const LEFT_BYTES: usize = 2 << 20;

const CELL_BYTES: usize = size_of::<Cell>();
const SLOT_BYTES: usize = size_of::<Val>();

/// The memory of one run.
#[derive(Debug)]
pub struct Heap {
    statics: Arc<[u8]>,
    bytes: Vec<u8>,
    slots: Vec<Val>,
    cells: Vec<Cell>,
    /// Keys and shapes of this run's objects.
    pub shapes: Shapes,
    limit: usize,
    external: usize,
    /// Bytes of host copies in use by the current instruction.
    copies: usize,
    /// Size at which the next compaction is due.
    compact_at: usize,
    /// Size after the last compaction.
    compacted: usize,
    /// Whether the last compaction left almost nothing free.
    full: bool,
    /// Spare bytes around growing text.
    rooms: rooms::Rooms,
    /// Noted unit positions in long non-ASCII text.
    places: places::UnitPositions,
    /// Host values whose disposal was interrupted by a stop.
    left: Vec<Value>,
    caches: caches::Caches,
    pub(crate) console: crate::console::Console,
}

impl Default for Heap {
    fn default() -> Self {
        Heap::new(Arc::default(), Arc::default())
    }
}

impl Heap {
    /// Creates an empty heap over a program's constant text and shapes.
    pub(crate) fn new(statics: Arc<[u8]>, shapes: Arc<StaticShapes>) -> Heap {
        Heap {
            statics,
            bytes: Vec::new(),
            slots: Vec::new(),
            cells: Vec::new(),
            shapes: Shapes::new(shapes),
            limit: DEFAULT_HEAP_LIMIT,
            external: 0,
            copies: 0,
            compact_at: compact::FIRST_COMPACTION,
            compacted: 0,
            full: false,
            rooms: rooms::Rooms::default(),
            places: places::UnitPositions::default(),
            left: Vec::new(),
            caches: caches::Caches::default(),
            console: crate::console::Console::default(),
        }
    }
}

impl Heap {
    /// Empties the heap for a new run over a program's constant text and shapes. Buffers
    /// within the ceiling are kept.
    pub fn reset(&mut self, statics: &Arc<[u8]>, shapes: &Arc<StaticShapes>, limit: usize) {
        // The same program as before is already counted.
        if !Arc::ptr_eq(&self.statics, statics) {
            self.statics = Arc::clone(statics);
        }
        self.shapes.reset(shapes);
        self.limit = limit.min(MAX_HEAP_LIMIT);
        self.clear();
        if self.buffer_bytes() > self.limit {
            self.shrink();
        }
    }

    pub(crate) fn program_bytes(&self) -> usize {
        self.statics.len()
    }

    /// [`Heap::reset`] for another run of the same program under the same ceiling, by a host
    /// that keeps the heap.
    pub(crate) fn again(&mut self) {
        /// Buffer size in bytes above which the memory is freed.
        const KEEP: usize = 1 << 20;
        self.clear();
        self.bytes.shrink_to(KEEP);
        self.slots.shrink_to(KEEP / SLOT_BYTES);
        self.cells.shrink_to(KEEP / CELL_BYTES);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.cells.clear();
        self.shapes.again();
        self.external = 0;
        self.copies = 0;
        self.compact_at = compact::FIRST_COMPACTION;
        self.compacted = 0;
        self.full = false;
        self.rooms.clear();
        self.places.clear();
        self.left = Vec::new();
        self.caches.clear();
        self.console.clear();
    }

    /// Bytes held now, including garbage.
    #[inline]
    pub fn used(&self) -> usize {
        self.bytes.len()
            + self.slots.len() * SLOT_BYTES
            + self.cells.len() * CELL_BYTES
            + self.shapes.bytes()
            + self.external
            + self.copies
    }

    /// Bytes of the buffers themselves, for hosts that size pools.
    pub fn capacity_bytes(&self) -> usize {
        self.buffer_bytes() + self.shapes.bytes()
    }

    /// Bytes of the buffers of values and text.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.slots.capacity() * SLOT_BYTES
            + self.cells.capacity() * CELL_BYTES
    }

    /// Drops host values that a run no longer needs, with yield points. After a stop the rest
    /// is left to the owner of the heap.
    pub(crate) fn discard(
        &mut self,
        values: Vec<Value>,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        let mut rest = values;
        let ended = Value::dispose_all(&mut rest, |n| clock.work(n as i64 * VALUE_DROPPED));
        self.left.append(&mut rest);
        ended
    }

    /// Leaves a host value of an ending run to the owner of the heap.
    pub(crate) fn leave(&mut self, value: Value) {
        self.left.push(value);
    }

    /// Estimated bytes of values that [`Heap::discard`] left.
    pub(crate) fn left_bytes(&self) -> usize {
        // A few values can be roots of large trees.
        if self.left.is_empty() { 0 } else { LEFT_BYTES }
    }

    /// Frees unused buffer capacity, for a run that waits on the host.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.slots.shrink_to_fit();
        self.cells.shrink_to_fit();
        self.caches.free();
    }

    /// The ceiling in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Checks that `wanted` more bytes fit under the ceiling.
    #[inline]
    pub fn check(&self, wanted: usize) -> Result<(), Oom> {
        if self.used().saturating_add(wanted) > self.limit {
            Err(Oom { wanted })
        } else {
            Ok(())
        }
    }

    /// Bytes free under the ceiling.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.used())
    }

    /// Counts memory that the run holds outside the arena (memo, trace).
    pub fn add_external(&mut self, bytes: usize) -> Result<(), Oom> {
        self.check(bytes)?;
        self.make_room(bytes);
        self.external += bytes;
        Ok(())
    }

    /// Frees spare buffer capacity if the request would otherwise take the run past its
    /// ceiling: a buffer that was filled with garbage may hold memory that another buffer
    /// needs.
    #[inline]
    fn make_room(&mut self, wanted: usize) {
        let spare = self.capacity_bytes() + self.external + self.copies;
        if spare.saturating_add(wanted) > self.limit + self.limit / SPARE_PARTS {
            self.shrink();
        }
    }

    /// Bytes of host copies counted now.
    pub(crate) fn copies(&self) -> usize {
        self.copies
    }

    /// Counts a host copy before it is made.
    #[inline]
    pub(crate) fn copy(&mut self, bytes: usize) -> Result<(), Oom> {
        self.check(bytes)?;
        self.make_room(bytes);
        self.copies += bytes;
        Ok(())
    }

    /// Releases host copies, down to the earlier count.
    pub(crate) fn end_copies(&mut self, before: usize) {
        self.copies = before;
    }

    /// Counts memory that is already held and has its own limit.
    pub fn force_external(&mut self, bytes: usize) {
        self.external += bytes;
    }

    /// Releases memory counted by [`Heap::add_external`].
    pub fn sub_external(&mut self, bytes: usize) {
        self.external = self.external.saturating_sub(bytes);
    }

    // ---- arrays ----

    #[inline]
    fn new_cell(&mut self, cell: Cell) -> Result<Ref, Oom> {
        if self.cells.capacity() == self.cells.len() {
            self.make_room(CELL_BYTES);
            let room = self.room();
            grow(&mut self.cells, 1, room)?;
        }
        let id = self.cells.len() as u32;
        self.cells.push(cell);
        Ok(Ref(id))
    }

    /// Reserves room for `n` more slots and a cell.
    #[inline]
    fn reserve_slots(&mut self, n: usize) -> Result<u32, Oom> {
        self.check(n.saturating_mul(SLOT_BYTES) + CELL_BYTES)?;
        if self.slots.capacity() - self.slots.len() < n {
            self.grow_slots(n)?;
        }
        Ok(self.slots.len() as u32)
    }

    #[cold]
    fn grow_slots(&mut self, n: usize) -> Result<(), Oom> {
        self.make_room(n * SLOT_BYTES);
        let room = self.room();
        grow(&mut self.slots, n, room)
    }

    /// Allocates an array with these values.
    pub fn alloc_arr(&mut self, vals: &[Val]) -> Result<Ref, Oom> {
        let off = self.reserve_slots(vals.len())?;
        self.slots.extend_from_slice(vals);
        let len = vals.len() as u32;
        self.new_cell(Cell {
            kind: CellKind::Arr,
            shape: ShapeId(0),
            off,
            len,
            cap: len,
        })
    }

    /// Allocates an empty array with room for `cap` values.
    pub fn alloc_arr_cap(&mut self, cap: usize) -> Result<Ref, Oom> {
        let off = self.reserve_slots(cap)?;
        self.slots.resize(off as usize + cap, Val::Undefined);
        self.new_cell(Cell {
            kind: CellKind::Arr,
            shape: ShapeId(0),
            off,
            len: 0,
            cap: cap as u32,
        })
    }

    #[inline]
    fn cell(&self, r: Ref) -> Cell {
        self.cells[r.0 as usize]
    }

    /// The values of an array, the items of a set, or the values of an object in slot order.
    #[inline]
    pub fn items(&self, r: Ref) -> &[Val] {
        let c = self.cell(r);
        &self.slots[c.off as usize..(c.off + c.len) as usize]
    }

    /// Number of values in an array, a set or an object.
    #[inline]
    pub fn len(&self, r: Ref) -> usize {
        self.cell(r).len as usize
    }

    /// Whether an array, a set or an object is empty.
    #[inline]
    pub fn is_empty(&self, r: Ref) -> bool {
        self.len(r) == 0
    }

    /// The mutable values of an array or set.
    #[inline]
    pub fn items_mut(&mut self, r: Ref) -> &mut [Val] {
        let c = self.cell(r);
        &mut self.slots[c.off as usize..(c.off + c.len) as usize]
    }

    // ---- sets and dates ----

    /// Allocates a set of items that the caller has made distinct.
    pub fn alloc_set(&mut self, items: &[Val]) -> Result<Ref, Oom> {
        let r = self.alloc_arr(items)?;
        self.cells[r.0 as usize].kind = CellKind::Set;
        Ok(r)
    }

    /// Allocates a date, in milliseconds since the epoch.
    pub fn alloc_date(&mut self, ms: f64) -> Result<Ref, Oom> {
        let r = self.alloc_arr(&[Val::Num(ms)])?;
        self.cells[r.0 as usize].kind = CellKind::Date;
        Ok(r)
    }

    /// The milliseconds of a date.
    pub fn date_ms(&self, r: Ref) -> f64 {
        match self.items(r) {
            [Val::Num(ms)] => *ms,
            _ => f64::NAN,
        }
    }

    // ---- objects ----

    /// Allocates an object of this shape; `vals` are in slot order.
    #[inline]
    pub fn alloc_obj(&mut self, shape: ShapeId, vals: &[Val]) -> Result<Ref, Oom> {
        debug_assert_eq!(self.shapes.keys(shape).len(), vals.len());
        let off = self.reserve_slots(vals.len())?;
        self.slots.extend_from_slice(vals);
        self.new_obj_cell(shape, off, vals.len())
    }

    /// Allocates an object of this shape from an iterator of values.
    #[inline]
    pub(crate) fn alloc_obj_of(
        &mut self,
        shape: ShapeId,
        vals: impl ExactSizeIterator<Item = Val>,
    ) -> Result<Ref, Oom> {
        let len = vals.len();
        debug_assert_eq!(self.shapes.keys(shape).len(), len);
        let off = self.reserve_slots(len)?;
        self.slots.extend(vals);
        self.new_obj_cell(shape, off, len)
    }

    /// Allocates the cell of an object whose values begin at this slot.
    #[inline]
    fn new_obj_cell(&mut self, shape: ShapeId, off: u32, len: usize) -> Result<Ref, Oom> {
        let len = len as u32;
        self.new_cell(Cell {
            kind: CellKind::Obj,
            shape,
            off,
            len,
            cap: len,
        })
    }

    /// Interns a key and counts it against the ceiling.
    pub fn intern(&mut self, text: &[u8]) -> Result<KeyId, Oom> {
        if let Some(key) = self.shapes.find_key(text) {
            return Ok(key);
        }
        self.check(Shapes::key_cost(text))?;
        Ok(self.shapes.intern(text))
    }

    /// Allocates an object with these distinct keys in insertion order.
    pub fn alloc_obj_keys(&mut self, keys: &[KeyId], vals: &[Val]) -> Result<Ref, Oom> {
        self.check(Shapes::shape_cost(keys.len()))?;
        let shape = self.shapes.shape_of(keys);
        self.alloc_obj(shape, vals)
    }

    /// The shape of an object.
    #[inline]
    pub fn shape(&self, r: Ref) -> ShapeId {
        self.cell(r).shape
    }

    /// A member of an object; there are only own members (D16).
    #[inline]
    pub fn get(&self, r: Ref, key: KeyId) -> Option<Val> {
        let c = self.cell(r);
        let slot = self.shapes.slot(c.shape, key)?;
        Some(self.slots[c.off as usize + slot])
    }

    /// A member of an object in place, through the inline cache.
    #[inline(always)]
    pub(crate) fn member(&mut self, r: Ref, key: KeyId) -> Option<&mut Val> {
        let (shape, off) = (self.cell(r).shape, self.cell(r).off as usize);
        let slot = match self.caches.slot(shape, key) {
            Some(slot) => slot,
            None => self.look_up(shape, key)?,
        };
        Some(&mut self.slots[off + slot])
    }

    /// Looks up the slot of a member and caches it.
    #[inline(never)]
    fn look_up(&mut self, shape: ShapeId, key: KeyId) -> Option<usize> {
        let slot = self.shapes.slot(shape, key)?;
        if !self.shapes.is_own(shape) {
            self.caches.put_slot(shape, key, slot);
        }
        Some(slot)
    }

    /// A member of an object by the text of its key.
    pub fn get_text(&self, r: Ref, key: &[u8]) -> Option<Val> {
        let c = self.cell(r);
        let slot = self.shapes.slot_of_text(c.shape, key)?;
        Some(self.slots[c.off as usize + slot])
    }

    /// The members of an object, if slot order is enumeration order (D37); faster than
    /// [`Heap::entries`].
    #[inline]
    pub fn plain_entries(&self, r: Ref) -> Option<impl Iterator<Item = (KeyId, Val)> + '_> {
        let keys = self.shapes.plain_keys(self.cell(r).shape)?;
        Some(keys.iter().copied().zip(self.items(r).iter().copied()))
    }

    /// The members of an object in enumeration order (D37).
    pub fn entries(&self, r: Ref) -> impl Iterator<Item = (KeyId, Val)> + '_ {
        let c = self.cell(r);
        let keys = self.shapes.keys(c.shape);
        let vals = self.items(r);
        self.shapes
            .order(c.shape)
            .map(move |slot| (keys[slot], vals[slot]))
    }
}

/// Grows a buffer by `n` elements or by half its length, whichever is more, but at most by
/// the `room` under the ceiling. Fails instead of aborting if the system has no memory.
#[cold]
fn grow<T>(buf: &mut Vec<T>, n: usize, room: usize) -> Result<(), Oom> {
    let wish = (buf.capacity() / 2).max(16);
    let more = n.max(wish.min(room / size_of::<T>()));
    reserve_mapped(buf, more, room).map_err(|_| Oom {
        wanted: n * size_of::<T>(),
    })
}

/// Reserves exactly `more` elements, in time independent of the buffer's length.
///
/// An allocator may copy a growing buffer: ten milliseconds for some tens of megabytes. It
/// copies nothing if the buffer is a separate mapping, whose pages are remapped. So a buffer
/// that becomes large is requested at a size at which every allocator maps, and the unneeded
/// part is returned untouched. This takes as much `room` in bytes under the ceiling, so that
/// the request never exceeds it; with less room, copies are short.
///
/// # Errors
/// The system refused the memory.
pub(crate) fn reserve_mapped<T>(
    buf: &mut Vec<T>,
    more: usize,
    room: usize,
) -> Result<(), std::collections::TryReserveError> {
    /// Size in bytes from which a buffer is large: copying less is fast.
    const LARGE: usize = 512 << 10;
    /// The largest size that glibc's `malloc` may serve without a mapping (its
    /// `DEFAULT_MMAP_THRESHOLD_MAX`).
    const MAPPED: usize = 32 << 20;
    let size = size_of::<T>().max(1);
    let wanted = buf.len().saturating_add(more);
    let is_large = |n: usize| n.saturating_mul(size) >= LARGE;
    if is_large(wanted) && !is_large(buf.capacity()) && room > MAPPED + size {
        let mut mapped: Vec<T> = Vec::new();
        if mapped
            .try_reserve_exact(wanted.max(MAPPED / size + 1))
            .is_ok()
        {
            mapped.append(buf);
            mapped.shrink_to(wanted);
            *buf = mapped;
            return Ok(());
        }
    }
    buf.try_reserve_exact(more)
}
