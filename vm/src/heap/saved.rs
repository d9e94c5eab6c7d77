//! Serialization of a heap, and its restore from untrusted bytes.
//!
//! The bytes hold everything that programs can reach: text, values, cells, and the run's own
//! keys and shapes, including uncollected garbage, so that a restored run compacts at the
//! same points. Spare room around texts and noted positions are not written.

use super::{Cell, CellKind, Heap, MAX_HEAP_LIMIT, Ref, ShapeId, Str, Val};
use crate::wire::{Reader, Taken, Writer};
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of text between two counted positions.
const BLOCK: usize = 64;

/// Index of a text space: positions of broken sequences, and the number of UTF-16 units
/// before each block.
struct TextIndex<'h> {
    bytes: &'h [u8],
    /// UTF-16 units before each block.
    units: Vec<u32>,
    /// Bytes that belong to no whole sequence, ascending.
    broken: Vec<u32>,
    /// First bytes of surrogate pairs encoded as two three-byte forms, ascending.
    pairs: Vec<u32>,
}

/// The length of the sequence at the start of these bytes; 0 if it is invalid. Surrogates are
/// sequences of three.
fn sequence(bytes: &[u8]) -> usize {
    let tail = |n: usize| {
        let rest = bytes.get(1..n);
        rest.is_some_and(|rest| rest.iter().all(|b| b & 0xC0 == 0x80))
    };
    let second = bytes.get(1).copied().unwrap_or(0);
    match bytes[0] {
        0x00..=0x7F => 1,
        0xC2..=0xDF if tail(2) => 2,
        0xE0 if second >= 0xA0 && tail(3) => 3,
        0xE1..=0xEF if tail(3) => 3,
        0xF0 if second >= 0x90 && tail(4) => 4,
        0xF1..=0xF3 if tail(4) => 4,
        0xF4 if second <= 0x8F && tail(4) => 4,
        _ => 0,
    }
}

/// Number of UTF-16 units that begin in these bytes.
fn units_in(bytes: &[u8]) -> u32 {
    let unit = |b: &u8| u32::from(b & 0xC0 != 0x80) + u32::from(*b >= 0xF0);
    bytes.iter().map(unit).sum()
}

impl<'h> TextIndex<'h> {
    fn new(bytes: &'h [u8]) -> TextIndex<'h> {
        let mut index = TextIndex {
            bytes,
            units: Vec::with_capacity(bytes.len() / BLOCK + 1),
            broken: Vec::new(),
            pairs: Vec::new(),
        };
        let mut sum = 0u32;
        for block in bytes.chunks(BLOCK) {
            index.units.push(sum);
            sum = sum.wrapping_add(units_in(block));
        }
        let mut at = 0;
        while at < bytes.len() {
            match sequence(&bytes[at..]) {
                0 => {
                    index.broken.push(at as u32);
                    at += 1;
                }
                n => {
                    let pair = matches!(
                        bytes[at..],
                        [0xED, 0xA0..=0xAF, _, 0xED, 0xB0..=0xBF, _, ..]
                    );
                    if pair {
                        index.pairs.push(at as u32);
                    }
                    at += n;
                }
            }
        }
        index
    }

    /// Maximum bytes of an index over a space.
    fn room(bytes: &[u8]) -> usize {
        /// A broken byte, or a byte of a pair, takes one list entry.
        const PLACE: usize = size_of::<u32>();
        let (mut odd_bytes, mut at) = (0, 0);
        while at < bytes.len() {
            let n = sequence(&bytes[at..]);
            odd_bytes += usize::from(n == 0 || bytes[at] == 0xED);
            at += n.max(1);
        }
        (bytes.len() / BLOCK + 2 * odd_bytes) * PLACE
    }

    fn units_before(&self, at: usize) -> u32 {
        let block = at / BLOCK;
        let before = self.units.get(block).copied();
        // After the last block there is nothing left to count.
        let before = before.unwrap_or_else(|| match self.units.last() {
            Some(last) => {
                let start = (self.units.len() - 1) * BLOCK;
                last.wrapping_add(units_in(&self.bytes[start..]))
            }
            None => 0,
        });
        let start = (block * BLOCK).min(self.bytes.len());
        before.wrapping_add(units_in(&self.bytes[start..at]))
    }

    /// Whether a text may begin or end here: no whole code point crosses the offset.
    fn is_border(&self, at: usize) -> bool {
        match self.bytes.get(at) {
            None => at == self.bytes.len(),
            Some(b) if b & 0xC0 != 0x80 => true,
            // A stray continuation byte belongs to no code point.
            Some(_) => self.broken.binary_search(&(at as u32)).is_ok(),
        }
    }

    /// Whether these bytes are valid text with this number of units.
    fn is_text(&self, start: usize, end: usize, units: u32) -> bool {
        let none_in = |list: &[u32], from: usize, to: usize| {
            let at = list.partition_point(|p| (*p as usize) < from);
            list.get(at).is_none_or(|p| *p as usize >= to)
        };
        /// Bytes of a pair before its last one.
        const PAIR: usize = 5;
        end <= self.bytes.len()
            && self.is_border(start)
            && self.is_border(end)
            && none_in(&self.broken, start, end)
            && none_in(&self.pairs, start, end.saturating_sub(PAIR))
            && self
                .units_before(end)
                .wrapping_sub(self.units_before(start))
                == units
    }
}

/// The bounds that values of a restored heap are checked against.
pub(crate) struct ValCheck<'h> {
    heap: TextIndex<'h>,
    statics: TextIndex<'h>,
    cells: &'h [Cell],
}

impl ValCheck<'_> {
    fn holds(&self, val: Val) -> bool {
        let is = |r: Ref, kind| self.cells.get(r.0 as usize).is_some_and(|c| c.kind == kind);
        match val {
            Val::Str(s) => {
                let index = if s.is_static() {
                    &self.statics
                } else {
                    &self.heap
                };
                let start = s.offset() as usize;
                s.is_empty() && s.units() == 0 && start <= index.bytes.len()
                    || index.is_text(start, start + s.len_bytes(), s.units() as u32)
            }
            Val::Arr(r) => is(r, CellKind::Arr),
            Val::Obj(r) => is(r, CellKind::Obj),
            Val::Set(r) => is(r, CellKind::Set),
            Val::Date(r) => is(r, CellKind::Date),
            Val::Map(r) => is(r, CellKind::Map),
            Val::Builtin(n) => super::builtin::is_known(n),
            Val::Unbound | Val::Undefined | Val::Null | Val::Bool(_) | Val::Num(_) => true,
        }
    }

    /// Reads a value and checks it.
    pub(crate) fn val(&self, r: &mut Reader<'_>) -> Taken<Val> {
        let val = raw_val(r)?;
        match self.holds(val) {
            true => Ok(val),
            false => r.wrong("a value refers to what is not there"),
        }
    }

    /// Appends a list of values; returns their number.
    pub(crate) fn vals_into(&self, r: &mut Reader<'_>, out: &mut Vec<Val>) -> Taken<usize> {
        let n = r.len(1, size_of::<Val>())?;
        out.reserve(n);
        for _ in 0..n {
            out.push(self.val(r)?);
        }
        Ok(n)
    }

    /// A list of values.
    pub(crate) fn vals(&self, r: &mut Reader<'_>) -> Taken<Vec<Val>> {
        let mut vals = Vec::new();
        self.vals_into(r, &mut vals)?;
        Ok(vals)
    }
}

/// Writes a value.
pub(crate) fn put_val(w: &mut Writer, val: Val) {
    let cell = |w: &mut Writer, tag, r: Ref| {
        w.u8(tag);
        w.u32(r.0);
    };
    match val {
        Val::Unbound => w.u8(0),
        Val::Undefined => w.u8(1),
        Val::Null => w.u8(2),
        Val::Bool(b) => w.u8(3 + u8::from(b)),
        Val::Num(n) => {
            w.u8(5);
            w.f64(n);
        }
        Val::Str(s) => {
            w.u8(6 + u8::from(s.is_static()));
            w.u32(s.offset());
            w.u32(s.len_bytes() as u32);
            w.u32(s.units() as u32);
        }
        Val::Arr(r) => cell(w, 8, r),
        Val::Obj(r) => cell(w, 9, r),
        Val::Set(r) => cell(w, 10, r),
        Val::Date(r) => cell(w, 11, r),
        Val::Map(r) => cell(w, 13, r),
        Val::Builtin(n) => {
            w.u8(12);
            w.u16(n);
        }
    }
}

/// Writes a list of values.
pub(crate) fn put_vals(w: &mut Writer, vals: &[Val]) {
    w.len(vals.len());
    vals.iter().for_each(|val| put_val(w, *val));
}

fn raw_val(r: &mut Reader<'_>) -> Taken<Val> {
    Ok(match r.u8()? {
        0 => Val::Unbound,
        1 => Val::Undefined,
        2 => Val::Null,
        3 => Val::Bool(false),
        4 => Val::Bool(true),
        5 => Val::Num(r.f64()?),
        tag @ (6 | 7) => {
            let (off, len, units) = (r.u32()?, r.u32()?, r.u32()?);
            if off as usize >= 2 * MAX_HEAP_LIMIT {
                return r.wrong("a text begins too far out");
            }
            Val::Str(match tag {
                6 => Str::in_heap(off, len, units),
                _ => Str::in_statics(off, len, units),
            })
        }
        8 => Val::Arr(Ref(r.u32()?)),
        9 => Val::Obj(Ref(r.u32()?)),
        10 => Val::Set(Ref(r.u32()?)),
        11 => Val::Date(Ref(r.u32()?)),
        12 => Val::Builtin(r.u16()?),
        13 => Val::Map(Ref(r.u32()?)),
        _ => return r.wrong("a value is of no kind"),
    })
}

impl Heap {
    /// Writes the heap.
    pub(crate) fn save(&self, w: &mut Writer) {
        self.shapes.save(w);
        w.bytes(&self.bytes);
        w.len(self.cells.len());
        for cell in &self.cells {
            w.u8(cell.kind as u8);
            if cell.kind == CellKind::Obj {
                w.u32(cell.shape.0);
            }
            w.u32(cell.off);
            w.u32(cell.len);
            w.u32(cell.cap);
        }
        put_vals(w, &self.slots);
        w.u64(self.compact_at as u64);
        w.u64(self.compacted as u64);
        w.bool(self.full);
    }

    /// Reads a heap into this one, which was reset for the program.
    pub(crate) fn load(&mut self, r: &mut Reader<'_>) -> Taken<()> {
        self.shapes.load(r, self.limit)?;
        let bytes = r.bytes()?;
        if bytes.len() >= MAX_HEAP_LIMIT {
            return r.wrong("there is too much text");
        }
        r.take_room(TextIndex::room(bytes))?;
        self.bytes.extend_from_slice(bytes);
        /// Bytes of a cell that is no object.
        const LEAST: usize = 13;
        let n = r.len(LEAST, size_of::<Cell>() + size_of::<u32>())?;
        self.cells.reserve_exact(n);
        let mut owned = HashSet::new();
        for _ in 0..n {
            let cell = self.cell_of(r)?;
            let alone = cell.kind != CellKind::Obj || !self.shapes.is_own(cell.shape);
            if !alone && !owned.insert(cell.shape) {
                return r.wrong("two objects share keys that one changes");
            }
            self.cells.push(cell);
        }
        let cells = std::mem::take(&mut self.cells);
        let statics = Arc::clone(&self.statics);
        let check = ValCheck {
            heap: TextIndex::new(&self.bytes),
            statics: TextIndex::new(&statics),
            cells: &cells,
        };
        self.slots = check.vals(r)?;
        drop(check);
        self.cells = cells;
        self.check_places(r)?;
        let most = 2 * MAX_HEAP_LIMIT as u64;
        self.compact_at = r.u64()?.min(most) as usize;
        self.compacted = r.u64()?.min(most) as usize;
        self.full = r.bool()?;
        match self.used() <= self.limit {
            true => Ok(()),
            false => Err(crate::wire::SnapshotError::too_large()),
        }
    }

    fn cell_of(&self, r: &mut Reader<'_>) -> Taken<Cell> {
        let kind = match r.u8()? {
            0 => CellKind::Arr,
            1 => CellKind::Obj,
            2 => CellKind::Set,
            3 => CellKind::Date,
            4 => CellKind::Map,
            _ => return r.wrong("a cell is of no kind"),
        };
        let mut shape = ShapeId(0);
        if kind == CellKind::Obj {
            shape = ShapeId(r.u32()?);
            if !self.shapes.has_shape(shape) {
                return r.wrong("an object has no shape");
            }
        }
        let (off, len, cap) = (r.u32()?, r.u32()?, r.u32()?);
        let fits = match kind {
            CellKind::Arr | CellKind::Set => true,
            CellKind::Obj => self.shapes.keys(shape).len() == len as usize,
            CellKind::Date => len == 1,
            CellKind::Map => len == super::maps::SLOTS,
        };
        if !fits || len > cap || off.checked_add(cap).is_none() {
            return r.wrong("a cell has the wrong number of values");
        }
        Ok(Cell {
            kind,
            shape,
            off,
            len,
            cap,
        })
    }

    /// Checks that slot ranges do not overlap and are in bounds.
    fn check_places(&self, r: &Reader<'_>) -> Taken<()> {
        let mut by_place: Vec<u32> = (0..self.cells.len() as u32).collect();
        by_place.sort_unstable_by_key(|i| self.cells[*i as usize].off);
        let mut end = 0;
        for i in by_place {
            let cell = &self.cells[i as usize];
            if cell.cap > 0 && (cell.off as usize) < end {
                return r.wrong("two cells share a place");
            }
            end = end.max((cell.off + cell.cap) as usize);
        }
        match end <= self.slots.len() {
            true => Ok(()),
            false => r.wrong("a cell lies outside"),
        }
    }

    /// The checker for values outside the heap.
    pub(crate) fn val_check(&self) -> ValCheck<'_> {
        ValCheck {
            heap: TextIndex::new(&self.bytes),
            statics: TextIndex::new(&self.statics),
            cells: &self.cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_ecma::wtf8;

    /// The index says of every range what counting it out says.
    #[test]
    fn the_index_knows_what_is_text() {
        let mut bytes = Vec::new();
        for part in [
            "plain ascii that is longer than a block of text is, so that blocks are counted",
            "é日本😀",
            "ü",
        ] {
            bytes.extend_from_slice(part.as_bytes());
        }
        // A stray tail, a cut sequence, a lone surrogate, two adjacent surrogates.
        bytes.extend_from_slice(&[0x80, b'a', 0xE6, 0x97, b'b', 0xED, 0xA0, 0x80, b'c']);
        bytes.extend_from_slice(&[0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80, 0xC0, 0xF5, b'd']);
        bytes.extend_from_slice("😀😀".as_bytes());
        let index = TextIndex::new(&bytes);
        for start in 0..=bytes.len() {
            for end in start..=bytes.len() {
                let text = &bytes[start..end];
                let is_text = wtf8::validate(text);
                let units = if is_text {
                    wtf8::utf16_len(text) as u32
                } else {
                    units_in(text)
                };
                if start == end {
                    continue;
                }
                assert_eq!(index.is_text(start, end, units), is_text, "{start}..{end}");
                assert!(!index.is_text(start, end, units + 1));
            }
        }
        assert!(!index.is_text(0, bytes.len() + 1, 0));
    }
}
