//! Allocation by builtins and atoms: copies of any length, with yield points between their
//! pieces.

use super::{Cx, Fault};
use crate::heap::{KeyId, Oom, Ref, Str, StrMark, Val, paced};
use a99_core::value::Value;
use std::ops::Range;

impl Cx<'_> {
    /// Copies text into the heap.
    ///
    /// # Errors
    /// Memory; a stop.
    #[inline]
    pub fn str(&mut self, text: &[u8]) -> Result<Val, Fault> {
        let (heap, mut clock) = self.split();
        Ok(Val::Str(heap.copy_text(text, None, &mut clock)?))
    }

    /// Copies text whose length in UTF-16 units is known.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn str_units(&mut self, text: &[u8], units: usize) -> Result<Str, Fault> {
        let (heap, mut clock) = self.split();
        heap.copy_text(text, Some(units), &mut clock)
    }

    /// Appends a string to the one being built ([`Heap::begin_str`]).
    ///
    /// [`Heap::begin_str`]: crate::heap::Heap::begin_str
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn build(&mut self, mark: StrMark, s: Str) -> Result<(), Fault> {
        let (heap, mut clock) = self.split();
        heap.build_long(mark, s, &mut clock)
    }

    /// Ends the string being built, with its length in UTF-16 units.
    pub fn built(&mut self, mark: StrMark, units: usize) -> Str {
        self.heap.finish_units(mark, units)
    }

    /// Concatenates parts with these totals of bytes and UTF-16 units.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn concat_all(&mut self, parts: &[Str], bytes: usize, units: usize) -> Result<Str, Fault> {
        /// Parts copied between two yield points, and the work per part.
        const PARTS: (usize, i64) = (256, 16);
        let mark = self.heap.begin_str(bytes)?;
        for parts in parts.chunks(PARTS.0) {
            self.work(PARTS.1 * parts.len() as i64)?;
            let (heap, mut clock) = self.split();
            for part in parts {
                match bytes == units {
                    // All parts are ASCII and the room is reserved.
                    true => heap.append_long(*part, &mut clock)?,
                    false => heap.build_long(mark, *part, &mut clock)?,
                }
            }
        }
        Ok(self.built(mark, units))
    }

    /// Drops host values that the run no longer needs, with yield points.
    pub(crate) fn discard(&mut self, values: Vec<Value>) -> Result<(), Fault> {
        if values.is_empty() {
            return Ok(());
        }
        let (heap, mut clock) = self.split();
        heap.discard(values, &mut clock)
    }

    /// Drops a host value after a fault, and returns the fault. If the run ends, the owner of
    /// the heap drops the value later; if it continues, the value is dropped here with yield
    /// points.
    #[cold]
    pub(crate) fn abandon(&mut self, value: Value, fault: Fault) -> Fault {
        match fault {
            Fault::Stop(_) | Fault::OutOfFuel => self.heap.leave(value),
            Fault::Oom(_) | Fault::Throw(_) => {
                // The caller returns the fault; a stop is seen again there.
                let _ = self.discard(vec![value]);
            }
        }
        fault
    }

    pub(crate) fn joined(&mut self, a: Str, b: Str) -> Result<Str, Fault> {
        let (heap, mut clock) = self.split();
        heap.concat(a, b, &mut clock)
    }

    /// Counts the UTF-16 units of a byte range of a string.
    ///
    /// # Errors
    /// A stop.
    pub fn units_of(&mut self, s: Str, bytes: Range<usize>) -> Result<usize, Fault> {
        if s.is_ascii() {
            return Ok(bytes.len());
        }
        let (heap, mut clock) = self.split();
        paced::count_units(&heap.bytes(s)[bytes], &mut clock)
    }

    /// Counts the UTF-16 units of text outside the heap.
    pub(crate) fn count_units(&mut self, text: &[u8]) -> Result<usize, Fault> {
        paced::count_units(text, &mut self.split().1)
    }

    /// Runs a reader of a text. The reader reports the bytes that it is about to read; each
    /// counts as a unit of work.
    ///
    /// # Errors
    /// Those of the reader; a stop.
    pub fn read_text<T>(
        &mut self,
        s: Str,
        bytes: Range<usize>,
        read: impl FnOnce(&[u8], &mut dyn FnMut(usize) -> Result<(), Fault>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (heap, mut clock) = self.split();
        read(&heap.bytes(s)[bytes], &mut |n| clock.work(n as i64))
    }

    /// Allocates an array with these values.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn list(&mut self, vals: &[Val]) -> Result<Ref, Fault> {
        let (heap, mut clock) = self.split();
        heap.copy_list(vals, &mut clock)
    }

    /// Allocates a set of items that the caller has made distinct.
    pub(crate) fn set_of(&mut self, items: &[Val]) -> Result<Ref, Fault> {
        let (heap, mut clock) = self.split();
        heap.copy_set(items, &mut clock)
    }

    /// Allocates an object with these distinct keys in insertion order.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn object(&mut self, keys: &[KeyId], vals: &[Val]) -> Result<Ref, Fault> {
        let (heap, mut clock) = self.split();
        heap.object_of(keys, vals, &mut clock)
    }

    /// Copies the members of an object out of the heap, in enumeration order.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn members(&mut self, r: Ref) -> Result<Vec<(KeyId, Val)>, Fault> {
        let n = self.heap.len(r);
        let wanted = n.saturating_mul(size_of::<(KeyId, Val)>());
        let (heap, mut clock) = self.split();
        heap.check(wanted)?;
        let mut out = Vec::new();
        out.try_reserve_exact(n).map_err(|_| Oom { wanted })?;
        heap.copy_members(r, &mut out, &mut clock)?;
        Ok(out)
    }

    /// The key id of a name, if the heap has interned it.
    ///
    /// # Errors
    /// A stop.
    pub fn find_name(&mut self, name: Str) -> Result<Option<KeyId>, Fault> {
        let (heap, mut clock) = self.split();
        heap.find_name(name, &mut clock)
    }

    /// Reads a member through the inline cache, for readers of many objects.
    #[inline]
    pub fn own_member(&mut self, r: Ref, key: KeyId) -> Option<Val> {
        self.heap.member(r, key).copied()
    }

    /// Interns a name.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn intern_name(&mut self, name: Str) -> Result<KeyId, Fault> {
        let (heap, mut clock) = self.split();
        heap.intern_name(name, &mut clock)
    }

    /// Allocates an empty array with room for `cap` values.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn list_with_room(&mut self, cap: usize) -> Result<Ref, Fault> {
        let (heap, mut clock) = self.split();
        heap.list_with_room(cap, &mut clock)
    }

    /// Appends to an array or set.
    ///
    /// # Errors
    /// Memory; a stop.
    #[inline]
    pub fn push(&mut self, r: Ref, val: Val) -> Result<(), Fault> {
        let (heap, mut clock) = self.split();
        heap.push_long(r, val, &mut clock)
    }

    pub(crate) fn copy_out(&mut self, r: Ref, range: Range<usize>) -> Result<Vec<Val>, Fault> {
        let wanted = range.len().saturating_mul(size_of::<Val>());
        let (heap, mut clock) = self.split();
        heap.check(wanted)?;
        let mut out = Vec::new();
        out.try_reserve_exact(range.len())
            .map_err(|_| Oom { wanted })?;
        heap.copy_out(r, range, &mut out, &mut clock)?;
        Ok(out)
    }
}
