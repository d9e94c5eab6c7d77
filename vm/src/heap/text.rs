//! Text in the heap: views, concatenation, and strings under construction.

use super::{Heap, KeyId, Oom, Str, Val, grow, rooms};
use crate::pace::{Clock, Fault};
use a99_ecma::wtf8;

impl Heap {
    /// The WTF-8 bytes of a string.
    #[inline]
    pub fn bytes(&self, s: Str) -> &[u8] {
        let off = s.offset() as usize;
        let space: &[u8] = if s.is_static() {
            &self.statics
        } else {
            &self.bytes
        };
        &space[off..off + s.len_bytes()]
    }

    /// Reserves `n` more bytes of text.
    #[inline]
    pub(super) fn reserve_bytes(&mut self, n: usize) -> Result<(), Oom> {
        self.check(n)?;
        if self.bytes.capacity() - self.bytes.len() < n {
            self.make_room(n);
            let room = self.room();
            grow(&mut self.bytes, n, room)?;
        }
        Ok(())
    }

    /// Copies text into the heap.
    pub fn alloc_str(&mut self, text: &[u8]) -> Result<Str, Oom> {
        let units = wtf8::utf16_len(text);
        self.alloc_str_units(text, units)
    }

    /// Copies text with a known length in UTF-16 units.
    #[inline]
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
        Ok(Str::in_heap(
            off,
            text.len() as u32,
            self.shapes.key_units(key) as u32,
        ))
    }

    /// Concatenates two strings. A left side at the end of the heap, or one with spare room,
    /// is extended in place, so that building text piece by piece is linear.
    pub(crate) fn concat(&mut self, a: Str, b: Str, clock: &mut Clock<'_>) -> Result<Str, Fault> {
        if b.is_empty() {
            return Ok(a);
        }
        if a.is_empty() {
            return Ok(b);
        }
        let joins =
            !a.is_ascii() && !b.is_ascii() && wtf8::needs_join(self.bytes(a), self.bytes(b));
        if joins {
            return self.concat_joined(a, b, clock);
        }
        let at_end = !a.is_static() && a.offset() as usize + a.len_bytes() == self.bytes.len();
        if at_end && !rooms::grows_in_front(a, b) {
            self.reserve_bytes(b.len_bytes())?;
            self.append_long(b, clock)?;
            let len = (a.len_bytes() + b.len_bytes()) as u32;
            return Ok(Str::in_heap(
                a.offset(),
                len,
                (a.units() + b.units()) as u32,
            ));
        }
        match self.join_in_room(a, b, clock)? {
            Some(joined) => Ok(joined),
            None => self.join_by_copy(a, b, clock),
        }
    }

    /// Concatenates two texts that join a surrogate pair.
    #[cold]
    fn concat_joined(&mut self, a: Str, b: Str, clock: &mut Clock<'_>) -> Result<Str, Fault> {
        /// Bytes of a lone surrogate.
        const HALF: usize = 3;
        let (head, tail) = (a.len_bytes() - HALF, b.len_bytes() - HALF);
        let pair = {
            let mut pair = self.bytes(a)[head..].to_vec();
            wtf8::concat(&mut pair, &self.bytes(b)[..HALF]);
            pair
        };
        self.reserve_bytes(head + pair.len() + tail)?;
        let off = self.bytes.len();
        // The units of the pieces do not affect the copy.
        self.append_long(a.view(0, head, head), clock)?;
        self.bytes.extend_from_slice(&pair);
        self.append_long(b.view(HALF, b.len_bytes(), tail), clock)?;
        let len = self.bytes.len() - off;
        Ok(Str::in_heap(
            off as u32,
            len as u32,
            (a.units() + b.units()) as u32,
        ))
    }

    /// Appends ASCII text from outside the heap, in place under the same conditions as
    /// [`Heap::concat`].
    pub(crate) fn concat_ascii(
        &mut self,
        a: Str,
        tail: &[u8],
        clock: &mut Clock<'_>,
    ) -> Result<Str, Fault> {
        debug_assert!(tail.is_ascii());
        let at_end = !a.is_static() && a.offset() as usize + a.len_bytes() == self.bytes.len();
        if !at_end {
            let b = self.alloc_str_units(tail, tail.len())?;
            return self.concat(a, b, clock);
        }
        self.reserve_bytes(tail.len())?;
        self.bytes.extend_from_slice(tail);
        Ok(Str::in_heap(
            a.offset(),
            (a.len_bytes() + tail.len()) as u32,
            (a.units() + tail.len()) as u32,
        ))
    }

    /// Copies a string's bytes to the end of the heap; the caller has reserved the room.
    pub(super) fn append(&mut self, s: Str) {
        let off = s.offset() as usize;
        if s.is_static() {
            let statics = &self.statics;
            self.bytes
                .extend_from_slice(&statics[off..off + s.len_bytes()]);
        } else {
            self.bytes.extend_from_within(off..off + s.len_bytes());
        }
    }

    /// Starts a string of at most `max_bytes` at the end of the heap.
    ///
    /// Append with [`Heap::build_str`] and [`Heap::build_bytes`], end with
    /// [`Heap::finish_str`]. No other text may be allocated in between.
    pub fn begin_str(&mut self, max_bytes: usize) -> Result<StrMark, Oom> {
        self.reserve_bytes(max_bytes)?;
        Ok(StrMark(self.bytes.len() as u32))
    }

    /// Appends a string to the one being built. Joins a surrogate pair at the border.
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

    /// Appends WTF-8 bytes to the string being built. Joins a surrogate pair at the border.
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
}

/// A string being built at the end of the heap.
#[derive(Copy, Clone, Debug)]
pub struct StrMark(u32);

impl StrMark {
    /// The first byte of the string.
    pub(super) fn start(self) -> usize {
        self.0 as usize
    }
}
