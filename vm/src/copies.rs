//! What builtins and atoms make of the heap: copies of any length, that stop
//! between their pieces.

use crate::heap::{KeyId, Oom, Ref, Str, StrMark, Val, paced};
use crate::native::{Cx, Fault};
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

    /// Ends the string being built, of so many UTF-16 units.
    pub fn built(&mut self, mark: StrMark, units: usize) -> Str {
        self.heap.finish_units(mark, units)
    }

    /// The text of these parts, which have so many bytes and UTF-16 units together.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn concat_all(&mut self, parts: &[Str], bytes: usize, units: usize) -> Result<Str, Fault> {
        /// Parts that are copied between two looks at the host, and the work of one.
        const PARTS: (usize, i64) = (256, 16);
        let mark = self.heap.begin_str(bytes)?;
        for parts in parts.chunks(PARTS.0) {
            self.work(PARTS.1 * parts.len() as i64)?;
            let (heap, mut clock) = self.split();
            for part in parts {
                match bytes == units {
                    // All ASCII, for which there is room.
                    true => heap.append_long(*part, &mut clock)?,
                    false => heap.build_long(mark, *part, &mut clock)?,
                }
            }
        }
        Ok(self.built(mark, units))
    }

    /// Takes host values apart that the run no longer needs.
    pub(crate) fn discard(&mut self, values: Vec<Value>) -> Result<(), Fault> {
        if values.is_empty() {
            return Ok(());
        }
        let (heap, mut clock) = self.split();
        heap.discard(values, &mut clock)
    }

    /// Gives up host values because of a fault, which it hands back. Where the
    /// run ends they are left to whoever drops the heap; where it goes on they
    /// are taken apart.
    #[cold]
    pub(crate) fn abandon(&mut self, value: Value, fault: Fault) -> Fault {
        match fault {
            Fault::Stop(_) | Fault::OutOfFuel => self.heap.leave(value),
            Fault::Oom(_) | Fault::Throw(_) => {
                // A stop is seen again where the fault is raised.
                let _ = self.discard(vec![value]);
            }
        }
        fault
    }

    /// Joins two strings.
    pub(crate) fn joined(&mut self, a: Str, b: Str) -> Result<Str, Fault> {
        let (heap, mut clock) = self.split();
        heap.concat(a, b, &mut clock)
    }

    /// Counts the UTF-16 units of a part of a string, by its bytes.
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

    /// Counts the UTF-16 units of text that is not in the heap.
    pub(crate) fn count_units(&mut self, text: &[u8]) -> Result<usize, Fault> {
        paced::count_units(text, &mut self.split().1)
    }

    /// Reads a part of a text with a function that tells the bytes it is about
    /// to read; each stands for a unit of work.
    ///
    /// # Errors
    /// Those of the function; a stop.
    pub fn read_text<T>(
        &mut self,
        s: Str,
        bytes: Range<usize>,
        read: impl FnOnce(&[u8], &mut dyn FnMut(usize) -> Result<(), Fault>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (heap, mut clock) = self.split();
        read(&heap.bytes(s)[bytes], &mut |n| clock.work(n as i64))
    }

    /// A new array of these values.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn list(&mut self, vals: &[Val]) -> Result<Ref, Fault> {
        let (heap, mut clock) = self.split();
        heap.copy_list(vals, &mut clock)
    }

    /// A new set of these items, which the caller has made distinct.
    pub(crate) fn set_of(&mut self, items: &[Val]) -> Result<Ref, Fault> {
        let (heap, mut clock) = self.split();
        heap.copy_set(items, &mut clock)
    }

    /// A new object with these distinct keys in insertion order.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn object(&mut self, keys: &[KeyId], vals: &[Val]) -> Result<Ref, Fault> {
        let (heap, mut clock) = self.split();
        heap.object_of(keys, vals, &mut clock)
    }

    /// The members of an object in enumeration order, copied out of the heap.
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

    /// The id of a name, if any object could have it.
    ///
    /// # Errors
    /// A stop.
    pub fn find_name(&mut self, name: Str) -> Result<Option<KeyId>, Fault> {
        let (heap, mut clock) = self.split();
        heap.find_name(name, &mut clock)
    }

    /// A member of an object, for what reads it of many objects.
    #[inline]
    pub fn own_member(&mut self, r: Ref, key: KeyId) -> Option<Val> {
        self.heap.member(r, key).copied()
    }

    /// The id of a name.
    ///
    /// # Errors
    /// Memory; a stop.
    pub fn intern_name(&mut self, name: Str) -> Result<KeyId, Fault> {
        let (heap, mut clock) = self.split();
        heap.intern_name(name, &mut clock)
    }

    /// A new empty array with room for `cap` values.
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

    /// Copies values of an array, a set or an object out of the heap.
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
