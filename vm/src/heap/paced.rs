//! Long copies into and within the heap, in pieces with yield points between them. Touching
//! new memory takes about a millisecond per four megabytes.
//!
//! An interrupted copy leaves garbage: the run has ended.

use super::{Cell, CellKind, Heap, KeyId, Oom, Ref, ShapeId, Shapes, Str, StrMark, Val};
use crate::pace::{Clock, Fault};
use a99_ecma::wtf8;
use std::ops::Range;

/// Bytes copied, or scanned for units, at once.
pub(crate) const TEXT_PIECE: usize = 64 << 10;

/// Values copied at once.
const LIST_PIECE: usize = 4096;

/// Bytes copied per unit of work.
const BYTES_A_UNIT: usize = 4;

/// Work per copied value.
const VALUE_WORK: usize = 4;

/// Ranges of a text's pieces.
fn pieces(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(TEXT_PIECE)
        .map(move |at| at..end.min(at + TEXT_PIECE))
}

/// The length of a text in UTF-16 units.
pub(crate) fn count_units(text: &[u8], clock: &mut Clock<'_>) -> Result<usize, Fault> {
    let mut units = 0;
    for part in text.chunks(TEXT_PIECE) {
        units += wtf8::utf16_len(part);
        clock.work((part.len() / BYTES_A_UNIT) as i64)?;
    }
    Ok(units)
}

/// Copies a list from outside the heap.
pub(crate) fn extend<T: Copy>(
    list: &mut Vec<T>,
    items: &[T],
    clock: &mut Clock<'_>,
) -> Result<(), Fault> {
    for part in items.chunks(LIST_PIECE) {
        list.extend_from_slice(part);
        clock.work((part.len() * VALUE_WORK) as i64)?;
    }
    Ok(())
}

impl Heap {
    /// Copies text with a known length in units, or counts it.
    pub(crate) fn copy_text(
        &mut self,
        text: &[u8],
        units: Option<usize>,
        clock: &mut Clock<'_>,
    ) -> Result<Str, Fault> {
        if text.len() <= TEXT_PIECE {
            return Ok(match units {
                Some(units) => self.alloc_str_units(text, units)?,
                None => self.alloc_str(text)?,
            });
        }
        let units = match units {
            Some(units) => units,
            None => count_units(text, clock)?,
        };
        self.reserve_bytes(text.len())?;
        let off = self.bytes.len() as u32;
        for part in text.chunks(TEXT_PIECE) {
            self.bytes.extend_from_slice(part);
            clock.work((part.len() / BYTES_A_UNIT) as i64)?;
        }
        Ok(Str::in_heap(off, text.len() as u32, units as u32))
    }

    /// [`Heap::build_str`] for a possibly long text.
    pub(crate) fn build_long(
        &mut self,
        mark: StrMark,
        s: Str,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        if s.len_bytes() <= TEXT_PIECE {
            return Ok(self.build_str(mark, s)?);
        }
        self.reserve_bytes(s.len_bytes())?;
        for range in pieces(0..s.len_bytes()) {
            clock.work((range.len() / BYTES_A_UNIT) as i64)?;
            // The units of a piece do not affect the copy. Only the first piece can meet half
            // of a surrogate pair.
            let part = s.view(range.start, range.end, 0);
            match range.start {
                0 => self.build_str(mark, part)?,
                _ => self.append(part),
            }
        }
        Ok(())
    }

    /// Appends a text; the caller has reserved the room.
    #[inline]
    pub(crate) fn append_long(&mut self, s: Str, clock: &mut Clock<'_>) -> Result<(), Fault> {
        if s.len_bytes() <= TEXT_PIECE {
            self.append(s);
            return Ok(());
        }
        self.append_pieces(s, clock)
    }

    #[inline(never)]
    fn append_pieces(&mut self, s: Str, clock: &mut Clock<'_>) -> Result<(), Fault> {
        for range in pieces(0..s.len_bytes()) {
            self.append(s.view(range.start, range.end, 0));
            clock.work((range.len() / BYTES_A_UNIT) as i64)?;
        }
        Ok(())
    }

    /// Ends the string being built, with a known number of units.
    pub(crate) fn finish_units(&mut self, mark: StrMark, units: usize) -> Str {
        match self.bytes.len() - mark.start() {
            0 => Str::EMPTY,
            len => Str::in_heap(mark.start() as u32, len as u32, units as u32),
        }
    }

    fn new_list(&mut self, kind: CellKind, off: u32, len: usize, cap: usize) -> Result<Ref, Oom> {
        self.new_cell(Cell {
            kind,
            shape: ShapeId(0),
            off,
            len: len as u32,
            cap: cap as u32,
        })
    }

    /// [`Heap::alloc_arr`] for possibly many values.
    pub(crate) fn copy_list(&mut self, vals: &[Val], clock: &mut Clock<'_>) -> Result<Ref, Fault> {
        if vals.len() <= LIST_PIECE {
            return Ok(self.alloc_arr(vals)?);
        }
        let off = self.reserve_slots(vals.len())?;
        extend(&mut self.slots, vals, clock)?;
        Ok(self.new_list(CellKind::Arr, off, vals.len(), vals.len())?)
    }

    /// [`Heap::alloc_obj_keys`] for possibly many members.
    pub(crate) fn object_of(
        &mut self,
        keys: &[KeyId],
        vals: &[Val],
        clock: &mut Clock<'_>,
    ) -> Result<Ref, Fault> {
        if vals.len() <= LIST_PIECE.min(keys.len().max(64)) && keys.len() <= 1024 {
            return Ok(self.alloc_obj_keys(keys, vals)?);
        }
        self.check(Shapes::shape_cost(keys.len()))?;
        let shape = self.shapes.shape_of_many(keys, clock)?;
        let r = self.copy_list(vals, clock)?;
        let cell = &mut self.cells[r.0 as usize];
        cell.kind = CellKind::Obj;
        cell.shape = shape;
        Ok(r)
    }

    /// Copies the members of an object in enumeration order to a list with enough room.
    pub(crate) fn copy_members(
        &self,
        r: Ref,
        out: &mut Vec<(KeyId, Val)>,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        if self.len(r) <= LIST_PIECE
            && let Some(members) = self.plain_entries(r)
        {
            out.extend(members);
            return Ok(());
        }
        for (n, member) in self.entries(r).enumerate() {
            if n % 1024 == 1023 {
                clock.work(4096)?;
            }
            out.push(member);
        }
        Ok(())
    }

    /// The key id of a possibly long name, if it is interned.
    pub(crate) fn find_name(
        &mut self,
        name: Str,
        clock: &mut Clock<'_>,
    ) -> Result<Option<KeyId>, Fault> {
        if let Some(key) = self.caches.key(name) {
            return Ok(Some(key));
        }
        let found = self.shapes.find_long(self.bytes(name), clock)?.1;
        if let Some(key) = found {
            self.caches.put_key(name, key);
        }
        Ok(found)
    }

    /// Interns a possibly long name of the heap.
    pub(crate) fn intern_name(&mut self, name: Str, clock: &mut Clock<'_>) -> Result<KeyId, Fault> {
        if let Some(key) = self.caches.key(name) {
            return Ok(key);
        }
        let (hash, found) = self.shapes.find_long(self.bytes(name), clock)?;
        if let Some(key) = found {
            self.caches.put_key(name, key);
            return Ok(key);
        }
        let off = name.offset() as usize;
        let space: &[u8] = if name.is_static() {
            &self.statics
        } else {
            &self.bytes
        };
        let text = &space[off..off + name.len_bytes()];
        self.check(Shapes::key_cost(text))?;
        Ok(self.shapes.add_key(hash, text))
    }

    /// Adds a key that [`Shapes::find_long`] did not find.
    pub(crate) fn add_key(&mut self, hash: u64, text: &[u8]) -> Result<KeyId, Oom> {
        self.check(Shapes::key_cost(text))?;
        Ok(self.shapes.add_key(hash, text))
    }

    /// [`Heap::alloc_set`] for possibly many items.
    pub(crate) fn copy_set(&mut self, items: &[Val], clock: &mut Clock<'_>) -> Result<Ref, Fault> {
        let r = self.copy_list(items, clock)?;
        self.cells[r.0 as usize].kind = CellKind::Set;
        Ok(r)
    }

    /// [`Heap::alloc_arr_cap`] for a possibly large capacity.
    pub(crate) fn list_with_room(
        &mut self,
        cap: usize,
        clock: &mut Clock<'_>,
    ) -> Result<Ref, Fault> {
        if cap <= LIST_PIECE {
            return Ok(self.alloc_arr_cap(cap)?);
        }
        let off = self.reserve_slots(cap)?;
        self.add_slots(cap, clock)?;
        Ok(self.new_list(CellKind::Arr, off, 0, cap)?)
    }

    /// Adds empty slots; the caller has reserved the room.
    fn add_slots(&mut self, n: usize, clock: &mut Clock<'_>) -> Result<(), Fault> {
        let end = self.slots.len() + n;
        while self.slots.len() < end {
            let part = LIST_PIECE.min(end - self.slots.len());
            self.slots.resize(self.slots.len() + part, Val::Undefined);
            clock.work((part * VALUE_WORK) as i64)?;
        }
        Ok(())
    }

    /// [`Heap::push`] to a possibly long array or set.
    #[inline]
    pub(crate) fn push_long(
        &mut self,
        r: Ref,
        val: Val,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        self.room_for_one(r, clock)?;
        Ok(self.push(r, val)?)
    }

    /// Makes room for one more value in a list.
    #[inline]
    pub(crate) fn room_for_one(&mut self, r: Ref, clock: &mut Clock<'_>) -> Result<(), Fault> {
        let c = self.cell(r);
        if c.len < c.cap {
            return Ok(());
        }
        match c.cap as usize > LIST_PIECE {
            true => self.widen_long(r, c, clock),
            false => Ok(self.widen(r, c)?),
        }
    }

    #[cold]
    fn widen_long(&mut self, r: Ref, c: Cell, clock: &mut Clock<'_>) -> Result<(), Fault> {
        let (off, moved, more) = self.room_to_widen(c)?;
        let from = c.off as usize;
        for at in (0..moved).step_by(LIST_PIECE) {
            let end = moved.min(at + LIST_PIECE);
            self.slots.extend_from_within(from + at..from + end);
            clock.work(((end - at) * VALUE_WORK) as i64)?;
        }
        self.add_slots(more, clock)?;
        self.widened(r, off, more);
        Ok(())
    }

    /// Copies a range of values out of the heap, to a list with enough room.
    pub(crate) fn copy_out(
        &self,
        r: Ref,
        range: Range<usize>,
        out: &mut Vec<Val>,
        clock: &mut Clock<'_>,
    ) -> Result<(), Fault> {
        extend(out, &self.items(r)[range], clock)
    }
}
