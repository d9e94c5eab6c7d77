//! The arena of one run: text, arrays and objects, counted exactly.
//!
//! Three growing buffers hold everything: `bytes` (text), `slots` (the values
//! of arrays and objects) and `cells` (one header for each array, object, set
//! or date). Nothing is freed one by one: a run's heap is dropped or reused
//! whole, and [`Heap::compact`] squeezes garbage out between two instructions,
//! when every live value is reachable from the roots it is given.
//!
//! Every allocation is checked against the ceiling first (D20) and fails with
//! [`Oom`]; the interpreter then compacts once, runs the instruction again,
//! and only then reports the heap limit.

mod compact;
mod shape;
mod val;

pub use shape::{KeyId, ShapeId, Shapes, StaticShapes};
pub(crate) use shape::array_index;
pub use val::{Ref, Str, Val};

use a99_ecma::wtf8;
use std::sync::Arc;

/// The ceiling over everything a run holds unless the host chooses another (D20).
pub const DEFAULT_HEAP_LIMIT: usize = 64 << 20;

/// No ceiling can be above this: offsets are 31 bits wide.
pub const MAX_HEAP_LIMIT: usize = 1 << 30;

/// An allocation would pass the ceiling (or the system refused memory).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Oom {
    /// Bytes that were asked for.
    pub wanted: usize,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum CellKind {
    Arr,
    Obj,
    Set,
    Date,
}

#[derive(Copy, Clone, Debug)]
struct Cell {
    kind: CellKind,
    shape: ShapeId,
    off: u32,
    len: u32,
    cap: u32,
}

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
    /// Size at which garbage is worth looking for.
    compact_at: usize,
}

impl Default for Heap {
    fn default() -> Self {
        Heap {
            statics: Arc::from([]),
            bytes: Vec::new(),
            slots: Vec::new(),
            cells: Vec::new(),
            shapes: Shapes::default(),
            limit: DEFAULT_HEAP_LIMIT,
            external: 0,
            compact_at: compact::FIRST_COMPACTION,
        }
    }
}

impl Heap {
    /// Empties the heap for a new run over a program's constant text and
    /// shapes, keeping small buffers for reuse.
    pub fn reset(&mut self, statics: Arc<[u8]>, shapes: Arc<StaticShapes>, limit: usize) {
        /// Buffers beyond this are given back instead of being pooled.
        const KEEP: usize = 1 << 20;
        self.statics = statics;
        self.bytes.clear();
        self.slots.clear();
        self.cells.clear();
        self.bytes.shrink_to(KEEP);
        self.slots.shrink_to(KEEP / SLOT_BYTES);
        self.cells.shrink_to(KEEP / CELL_BYTES);
        self.shapes.reset(shapes);
        self.limit = limit.min(MAX_HEAP_LIMIT);
        self.external = 0;
        self.compact_at = compact::FIRST_COMPACTION;
    }

    /// Bytes held now, garbage included.
    #[inline]
    pub fn used(&self) -> usize {
        self.bytes.len()
            + self.slots.len() * SLOT_BYTES
            + self.cells.len() * CELL_BYTES
            + self.shapes.bytes()
            + self.external
    }

    /// Bytes of the buffers themselves, for hosts that size pools.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.slots.capacity() * SLOT_BYTES
            + self.cells.capacity() * CELL_BYTES
            + self.shapes.bytes()
    }

    /// Gives unused buffer space back, for a run that waits on the host.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.slots.shrink_to_fit();
        self.cells.shrink_to_fit();
    }

    /// The ceiling in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Checks that `wanted` more bytes fit under the ceiling.
    #[inline]
    pub fn check(&self, wanted: usize) -> Result<(), Oom> {
        if self.used().saturating_add(wanted) > self.limit { Err(Oom { wanted }) } else { Ok(()) }
    }

    /// Counts memory that the run holds outside the arena (memo, trace).
    pub fn add_external(&mut self, bytes: usize) -> Result<(), Oom> {
        self.check(bytes)?;
        self.external += bytes;
        Ok(())
    }

    /// Counts memory that has a limit of its own and is held already.
    pub fn force_external(&mut self, bytes: usize) {
        self.external += bytes;
    }

    /// Takes back what [`Heap::add_external`] counted.
    pub fn sub_external(&mut self, bytes: usize) {
        self.external = self.external.saturating_sub(bytes);
    }

    // ---- text ----

    /// The WTF-8 bytes of a string.
    #[inline]
    pub fn bytes(&self, s: Str) -> &[u8] {
        let off = s.offset() as usize;
        let space: &[u8] = if s.is_static() { &self.statics } else { &self.bytes };
        &space[off..off + s.len_bytes()]
    }

    /// Makes room for `n` more bytes of text, or fails.
    #[inline]
    fn reserve_bytes(&mut self, n: usize) -> Result<(), Oom> {
        self.check(n)?;
        if self.bytes.capacity() - self.bytes.len() < n {
            grow(&mut self.bytes, n)?;
        }
        Ok(())
    }

    /// Copies text into the heap.
    pub fn alloc_str(&mut self, text: &[u8]) -> Result<Str, Oom> {
        let units = wtf8::utf16_len(text);
        self.alloc_str_units(text, units)
    }

    /// Copies text whose length in UTF-16 units is known.
    pub fn alloc_str_units(&mut self, text: &[u8], units: usize) -> Result<Str, Oom> {
        if text.is_empty() {
            return Ok(Str::EMPTY);
        }
        self.reserve_bytes(text.len())?;
        let off = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text);
        Ok(Str::in_heap(off, text.len() as u32, units as u32))
    }

    /// Copies text into the heap as a value.
    #[inline]
    pub fn str_val(&mut self, text: &[u8]) -> Result<Val, Oom> {
        Ok(Val::Str(self.alloc_str(text)?))
    }

    /// The text of a key as a string.
    pub fn key_str(&mut self, key: KeyId) -> Result<Str, Oom> {
        let cost = self.shapes.key_text(key).len();
        self.reserve_bytes(cost)?;
        let off = self.bytes.len() as u32;
        let text = self.shapes.key_text(key);
        self.bytes.extend_from_slice(text);
        Ok(Str::in_heap(off, text.len() as u32, self.shapes.key_units(key) as u32))
    }

    /// Concatenates. A left side that ends at the end of the heap is extended
    /// in place, so that building text piece by piece is linear.
    pub fn concat(&mut self, a: Str, b: Str) -> Result<Str, Oom> {
        if b.is_empty() {
            return Ok(a);
        }
        if a.is_empty() {
            return Ok(b);
        }
        let joins = !a.is_ascii() && !b.is_ascii() && wtf8::needs_join(self.bytes(a), self.bytes(b));
        if joins {
            let mut out = Vec::new();
            out.try_reserve_exact(a.len_bytes() + b.len_bytes())
                .map_err(|_| Oom { wanted: a.len_bytes() + b.len_bytes() })?;
            out.extend_from_slice(self.bytes(a));
            wtf8::concat(&mut out, self.bytes(b));
            return self.alloc_str(&out);
        }
        let at_end = !a.is_static() && a.offset() as usize + a.len_bytes() == self.bytes.len();
        let new = b.len_bytes() + if at_end { 0 } else { a.len_bytes() };
        self.reserve_bytes(new)?;
        let off = if at_end {
            a.offset()
        } else {
            let off = self.bytes.len() as u32;
            self.append(a);
            off
        };
        self.append(b);
        let len = (a.len_bytes() + b.len_bytes()) as u32;
        Ok(Str::in_heap(off, len, (a.units() + b.units()) as u32))
    }

    /// Appends ASCII text that is not in the heap; in place where
    /// [`Heap::concat`] would be.
    pub fn concat_ascii(&mut self, a: Str, tail: &[u8]) -> Result<Str, Oom> {
        debug_assert!(tail.is_ascii());
        let at_end = !a.is_static() && a.offset() as usize + a.len_bytes() == self.bytes.len();
        self.reserve_bytes(tail.len() + if at_end { 0 } else { a.len_bytes() })?;
        let off = if at_end { a.offset() } else { self.bytes.len() as u32 };
        if !at_end {
            self.append(a);
        }
        self.bytes.extend_from_slice(tail);
        Ok(Str::in_heap(off, (a.len_bytes() + tail.len()) as u32, (a.units() + tail.len()) as u32))
    }

    /// Copies a string's bytes to the end of the heap; room was reserved.
    fn append(&mut self, s: Str) {
        let off = s.offset() as usize;
        if s.is_static() {
            let statics = &self.statics;
            self.bytes.extend_from_slice(&statics[off..off + s.len_bytes()]);
        } else {
            self.bytes.extend_from_within(off..off + s.len_bytes());
        }
    }

    /// Starts building a string of at most `max_bytes` at the end of the heap.
    /// Append with [`Heap::build_str`] and [`Heap::build_bytes`], end with
    /// [`Heap::finish_str`]; no other text may be allocated in between.
    pub fn begin_str(&mut self, max_bytes: usize) -> Result<StrMark, Oom> {
        self.reserve_bytes(max_bytes)?;
        Ok(StrMark(self.bytes.len() as u32))
    }

    /// Appends a string to the one being built. A surrogate pair that meets at
    /// the border is joined by [`Heap::finish_str`]'s caller choosing
    /// [`Heap::build_bytes`] instead; this method joins by itself.
    pub fn build_str(&mut self, mark: StrMark, s: Str) -> Result<(), Oom> {
        self.reserve_bytes(s.len_bytes())?;
        let tail = &self.bytes[mark.0 as usize..];
        if !s.is_ascii() && wtf8::needs_join(tail, self.bytes(s)) {
            let copy = self.bytes(s).to_vec();
            wtf8::concat(&mut self.bytes, &copy);
        } else {
            self.append(s);
        }
        Ok(())
    }

    /// Appends raw WTF-8 bytes to the string being built.
    pub fn build_bytes(&mut self, mark: StrMark, text: &[u8]) -> Result<(), Oom> {
        self.reserve_bytes(text.len())?;
        if wtf8::needs_join(&self.bytes[mark.0 as usize..], text) {
            wtf8::concat(&mut self.bytes, text);
        } else {
            self.bytes.extend_from_slice(text);
        }
        Ok(())
    }

    /// Ends the string being built.
    pub fn finish_str(&mut self, mark: StrMark) -> Str {
        let off = mark.0 as usize;
        let len = self.bytes.len() - off;
        if len == 0 {
            return Str::EMPTY;
        }
        let units = wtf8::utf16_len(&self.bytes[off..]);
        Str::in_heap(mark.0, len as u32, units as u32)
    }

    // ---- arrays ----

    fn new_cell(&mut self, cell: Cell) -> Result<Ref, Oom> {
        if self.cells.capacity() == self.cells.len() {
            grow(&mut self.cells, 1)?;
        }
        let id = self.cells.len() as u32;
        self.cells.push(cell);
        Ok(Ref(id))
    }

    /// Makes room for `n` more slots and a cell, or fails.
    fn reserve_slots(&mut self, n: usize) -> Result<u32, Oom> {
        self.check(n.saturating_mul(SLOT_BYTES) + CELL_BYTES)?;
        if self.slots.capacity() - self.slots.len() < n {
            grow(&mut self.slots, n)?;
        }
        Ok(self.slots.len() as u32)
    }

    /// A new array of these values.
    pub fn alloc_arr(&mut self, vals: &[Val]) -> Result<Ref, Oom> {
        let off = self.reserve_slots(vals.len())?;
        self.slots.extend_from_slice(vals);
        let len = vals.len() as u32;
        self.new_cell(Cell { kind: CellKind::Arr, shape: ShapeId(0), off, len, cap: len })
    }

    /// A new empty array with room for `cap` values.
    pub fn alloc_arr_cap(&mut self, cap: usize) -> Result<Ref, Oom> {
        let off = self.reserve_slots(cap)?;
        self.slots.resize(off as usize + cap, Val::Undefined);
        self.new_cell(Cell { kind: CellKind::Arr, shape: ShapeId(0), off, len: 0, cap: cap as u32 })
    }

    #[inline]
    fn cell(&self, r: Ref) -> Cell {
        self.cells[r.0 as usize]
    }

    /// The values of an array or the items of a set, or of an object in slot
    /// order.
    #[inline]
    pub fn items(&self, r: Ref) -> &[Val] {
        let c = self.cell(r);
        &self.slots[c.off as usize..(c.off + c.len) as usize]
    }

    /// How many values an array, a set or an object holds.
    #[inline]
    pub fn len(&self, r: Ref) -> usize {
        self.cell(r).len as usize
    }

    /// Whether an array, a set or an object is empty.
    #[inline]
    pub fn is_empty(&self, r: Ref) -> bool {
        self.len(r) == 0
    }

    /// The values of an array or set, to be changed in place.
    #[inline]
    pub fn items_mut(&mut self, r: Ref) -> &mut [Val] {
        let c = self.cell(r);
        &mut self.slots[c.off as usize..(c.off + c.len) as usize]
    }

    /// Appends to an array or set. Growth doubles the room.
    pub fn push(&mut self, r: Ref, val: Val) -> Result<(), Oom> {
        let c = self.cell(r);
        if c.len == c.cap {
            let cap = (c.cap as usize * 2).max(4);
            // An array at the end of the heap grows where it is.
            if (c.off + c.cap) as usize == self.slots.len() {
                let more = cap - c.cap as usize;
                self.reserve_slots(more)?;
                self.slots.resize(self.slots.len() + more, Val::Undefined);
                self.cells[r.0 as usize].cap = cap as u32;
            } else {
                let off = self.reserve_slots(cap)?;
                let from = c.off as usize;
                self.slots.extend_from_within(from..from + c.len as usize);
                self.slots.resize(off as usize + cap, Val::Undefined);
                let cell = &mut self.cells[r.0 as usize];
                cell.off = off;
                cell.cap = cap as u32;
            }
        }
        let cell = &mut self.cells[r.0 as usize];
        let at = (cell.off + cell.len) as usize;
        cell.len += 1;
        self.slots[at] = val;
        Ok(())
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

    // ---- sets and dates ----

    /// A new set of these items, which the caller has made distinct.
    pub fn alloc_set(&mut self, items: &[Val]) -> Result<Ref, Oom> {
        let r = self.alloc_arr(items)?;
        self.cells[r.0 as usize].kind = CellKind::Set;
        Ok(r)
    }

    /// A new date, in milliseconds since the epoch.
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

    /// A new object of this shape; `vals` are in slot order.
    pub fn alloc_obj(&mut self, shape: ShapeId, vals: &[Val]) -> Result<Ref, Oom> {
        debug_assert_eq!(self.shapes.keys(shape).len(), vals.len());
        let off = self.reserve_slots(vals.len())?;
        self.slots.extend_from_slice(vals);
        let len = vals.len() as u32;
        self.new_cell(Cell { kind: CellKind::Obj, shape, off, len, cap: len })
    }

    /// Interns a key, counted against the ceiling.
    pub fn intern(&mut self, text: &[u8]) -> Result<KeyId, Oom> {
        if let Some(key) = self.shapes.find_key(text) {
            return Ok(key);
        }
        self.check(Shapes::key_cost(text))?;
        Ok(self.shapes.intern(text))
    }

    /// A new object with these distinct keys in insertion order.
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

    /// A member of an object; own members are all there are (D16).
    #[inline]
    pub fn get(&self, r: Ref, key: KeyId) -> Option<Val> {
        let c = self.cell(r);
        let slot = self.shapes.slot(c.shape, key)?;
        Some(self.slots[c.off as usize + slot])
    }

    /// A member of an object by the text of its key.
    pub fn get_text(&self, r: Ref, key: &[u8]) -> Option<Val> {
        self.get(r, self.shapes.find_key(key)?)
    }

    /// The members of an object in enumeration order (D37).
    pub fn entries(&self, r: Ref) -> impl Iterator<Item = (KeyId, Val)> + '_ {
        let c = self.cell(r);
        let keys = self.shapes.keys(c.shape);
        let vals = self.items(r);
        self.shapes.order(c.shape).map(move |slot| (keys[slot], vals[slot]))
    }
}

/// A string being built at the end of the heap.
#[derive(Copy, Clone, Debug)]
pub struct StrMark(u32);

/// Grows a buffer by at least `n` elements, by half of what it has where that
/// is more; fails instead of aborting when the system has no memory.
#[cold]
fn grow<T>(buf: &mut Vec<T>, n: usize) -> Result<(), Oom> {
    let more = n.max(buf.capacity() / 2).max(16);
    buf.try_reserve_exact(more).map_err(|_| Oom { wanted: n * size_of::<T>() })
}

/// Collects the members of a new object: later values of a key replace earlier
/// ones in place, as in a JavaScript object.
#[derive(Debug, Default)]
pub struct ObjDraft {
    keys: Vec<KeyId>,
    vals: Vec<Val>,
    index: Option<std::collections::HashMap<KeyId, usize>>,
}

impl ObjDraft {
    /// Beyond this many members look-ups go through a hash table.
    const SCAN: usize = 16;

    /// An empty draft.
    pub fn new() -> ObjDraft {
        ObjDraft::default()
    }

    /// Sets a member.
    pub fn set(&mut self, key: KeyId, val: Val) {
        match self.find(key) {
            Some(i) => self.vals[i] = val,
            None => {
                if let Some(index) = &mut self.index {
                    index.insert(key, self.keys.len());
                } else if self.keys.len() == Self::SCAN {
                    self.index = Some(
                        self.keys.iter().copied().chain([key]).enumerate().map(|(i, k)| (k, i)).collect(),
                    );
                }
                self.keys.push(key);
                self.vals.push(val);
            }
        }
    }

    /// Sets a member by the text of its key.
    pub fn set_text(&mut self, heap: &mut Heap, key: &[u8], val: Val) -> Result<(), Oom> {
        let key = heap.intern(key)?;
        self.set(key, val);
        Ok(())
    }

    fn find(&self, key: KeyId) -> Option<usize> {
        match &self.index {
            None => self.keys.iter().position(|k| *k == key),
            Some(index) => index.get(&key).copied(),
        }
    }

    /// How many members the draft has.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the draft has no member.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Makes the object and empties the draft for the next one.
    pub fn finish(&mut self, heap: &mut Heap) -> Result<Val, Oom> {
        let obj = heap.alloc_obj_keys(&self.keys, &self.vals);
        self.keys.clear();
        self.vals.clear();
        self.index = None;
        Ok(Val::Obj(obj?))
    }
}
