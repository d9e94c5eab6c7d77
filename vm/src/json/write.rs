//! Guest values as JSON text, written once into a counted buffer.
//!
//! The walk has an explicit stack. Written units are paid in slices during the walk, at most
//! [`SLICE`] late, so that a small graph with 2^40 paths exhausts fuel or memory instead of
//! time (security C06, M04).

use super::{MAX_DEPTH, Replacer};
use crate::builtins;
use crate::convert::{date_text, temp};
use crate::heap::{KeyId, Ref, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{
    CostModel, JSON_REPLACED, READ, Sizes, WRITTEN, formatted_units, json_list, json_object,
};
use a99_core::json::{write_json_number, write_json_string};
use a99_ecma::{number_text, wtf8};

/// Bytes or elements between two charges.
const SLICE: usize = 4 << 10;

/// Length of the longest string that is escaped in one piece, in bytes; an escape takes at
/// most six bytes per byte.
const PIECE: usize = 8 << 10;

/// The output format.
pub(crate) struct Style<'s> {
    /// Indent of one level; compact text if empty.
    pub(crate) gap: &'s [u8],
    /// The members to write, or the replacement function.
    pub(crate) replacer: Replacer,
    /// Length of the replacer's property list: each object looks up all of them.
    pub(crate) listed: usize,
    /// Whether to distinguish values that JSON cannot express, for digests: then the text is
    /// not JSON.
    pub(crate) canonical: bool,
}

/// Text under construction, with its payment state.
#[derive(Default)]
pub(crate) struct TextOut {
    buf: Vec<u8>,
    /// The length of the paid part of `buf`, and its units.
    paid: usize,
    units: usize,
    /// Elements to charge with the next slice, and those charged.
    due: usize,
    elements: usize,
    /// Additional charge of formatted numbers and dates, due with the next slice.
    formatted: usize,
}

impl TextOut {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf
    }

    /// Its length in UTF-16 units; covers the paid part.
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// Reserves `n` bytes, counting the copy that goes into the heap.
    fn room(&mut self, cx: &Cx<'_>, n: usize) -> Result<(), Fault> {
        if self.buf.capacity() - self.buf.len() < n {
            cx.heap
                .check(self.buf.len().saturating_add(n).saturating_mul(2))?;
            temp::reserve(cx.heap, &mut self.buf, n)?;
        }
        Ok(())
    }

    fn push(&mut self, cx: &Cx<'_>, text: &[u8]) -> Result<(), Fault> {
        self.room(cx, text.len())?;
        self.buf.extend_from_slice(text);
        Ok(())
    }

    /// Pays when a slice is full.
    #[inline]
    fn settle(&mut self, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if self.buf.len() - self.paid >= SLICE || self.due >= SLICE {
            self.pay(cx)?;
        }
        Ok(())
    }

    fn pay(&mut self, cx: &mut Cx<'_>) -> Result<(), Fault> {
        let units = wtf8::utf16_len(&self.buf[self.paid..]);
        let due = std::mem::take(&mut self.due);
        let formatted = std::mem::take(&mut self.formatted);
        self.paid = self.buf.len();
        self.units += units;
        self.elements += due;
        // The flat model has caps instead of prices, for the whole operation.
        let sizes = match cx.meter.model {
            CostModel::Metered => Sizes::default().out_units(units.saturating_add(formatted)),
            CostModel::Flat => Sizes::elements(self.elements).out_units(self.units),
        };
        cx.work(due as i64)?;
        cx.charge(WRITTEN, sizes)
    }
}

/// An open array, set or object.
struct WriteFrame {
    r: Ref,
    object: bool,
    /// The index of the next element, in the array or in [`Writer::members`].
    next: usize,
    /// One past the last index.
    end: usize,
    /// The start of its members.
    start: usize,
    /// Whether anything was written inside.
    any: bool,
}

/// The walk over a value.
pub(crate) struct Writer<'c, 'h, 's> {
    cx: &'c mut Cx<'h>,
    style: Style<'s>,
    out: TextOut,
    frames: Vec<WriteFrame>,
    /// The members of open objects in enumeration order; those of the top frame are at the
    /// end.
    members: Vec<(KeyId, Val)>,
    piece: Vec<u8>,
}

impl<'c, 'h, 's> Writer<'c, 'h, 's> {
    pub(crate) fn new(cx: &'c mut Cx<'h>, style: Style<'s>) -> Self {
        Writer {
            cx,
            style,
            out: TextOut::default(),
            frames: Vec::new(),
            members: Vec::new(),
            piece: Vec::new(),
        }
    }

    /// Pays the rest and returns the text.
    pub(crate) fn finish(mut self) -> Result<TextOut, Fault> {
        self.out.pay(self.cx)?;
        Ok(self.out)
    }

    /// Writes a value; false if it has no text.
    pub(crate) fn run(&mut self, root: Val) -> Result<bool, Fault> {
        let root = self.replaced(None, root)?;
        if !self.has_text(root) {
            return Ok(false);
        }
        self.value(root)?;
        while let Some(frame) = self.frames.last_mut() {
            self.cx.work(4)?;
            if frame.next == frame.end {
                self.close()?;
                continue;
            }
            let at = frame.next;
            frame.next += 1;
            let (r, object) = (frame.r, frame.object);
            if object {
                self.member(at)?;
            } else {
                let val = self
                    .cx
                    .heap
                    .items(r)
                    .get(at)
                    .copied()
                    .unwrap_or(Val::Undefined);
                let val = self.replaced(Some(MemberName::Index(at)), val)?;
                self.separate()?;
                self.value(val)?;
            }
            self.out.settle(self.cx)?;
        }
        Ok(true)
    }

    fn has_text(&self, val: Val) -> bool {
        self.style.canonical || !matches!(val, Val::Undefined | Val::Unbound | Val::Builtin(_))
    }

    fn member(&mut self, at: usize) -> Result<(), Fault> {
        let (key, val) = self.members[at];
        let val = self.replaced(Some(MemberName::Key(key)), val)?;
        if !self.has_text(val) {
            return Ok(());
        }
        self.separate()?;
        let text = self.cx.heap.shapes.key_text(key);
        if text.len() <= PIECE {
            self.out.room(self.cx, text.len() * 6 + 2)?;
            write_json_string(text, &mut self.out.buf);
        } else {
            let text = self.cx.heap.key_str(key)?;
            self.long_string(text)?;
        }
        let colon: &[u8] = if self.style.gap.is_empty() {
            b":"
        } else {
            b": "
        };
        self.out.push(self.cx, colon)?;
        self.value(val)
    }

    /// Writes the separator before an element or member.
    fn separate(&mut self) -> Result<(), Fault> {
        if let Some(frame) = self.frames.last_mut() {
            if frame.any {
                self.out.push(self.cx, b",")?;
            }
            frame.any = true;
        }
        self.line(self.frames.len())
    }

    /// Starts a line at this level, unless the text is compact.
    fn line(&mut self, level: usize) -> Result<(), Fault> {
        let gap = self.style.gap;
        if gap.is_empty() {
            return Ok(());
        }
        self.out.room(self.cx, 1 + gap.len() * level)?;
        self.out.buf.push(b'\n');
        for _ in 0..level {
            self.out.buf.extend_from_slice(gap);
        }
        Ok(())
    }

    /// Writes a scalar or opens a container.
    fn value(&mut self, val: Val) -> Result<(), Fault> {
        let canonical = self.style.canonical;
        match val {
            Val::Null => self.out.push(self.cx, b"null"),
            Val::Bool(true) => self.out.push(self.cx, b"true"),
            Val::Bool(false) => self.out.push(self.cx, b"false"),
            Val::Num(n) => {
                /// Maximum length of a number: its longest text is 24 bytes and a sign.
                const NUMBER: usize = 32;
                self.out.room(self.cx, NUMBER)?;
                let before = self.out.buf.len();
                match canonical {
                    true if n == 0.0 && n.is_sign_negative() => {
                        self.out.buf.extend_from_slice(b"-0");
                    }
                    true => number_text::write_number(&mut self.out.buf, n),
                    false => write_json_number(n, &mut self.out.buf),
                }
                self.out.formatted += formatted_units(self.out.buf.len() - before);
                Ok(())
            }
            Val::Str(s) if s.len_bytes() <= PIECE => {
                self.out.room(self.cx, s.len_bytes() * 6 + 2)?;
                write_json_string(self.cx.heap.bytes(s), &mut self.out.buf);
                Ok(())
            }
            Val::Str(s) => self.long_string(s),
            Val::Undefined | Val::Unbound if canonical => self.out.push(self.cx, b"undefined"),
            Val::Builtin(id) if canonical => {
                self.out.push(self.cx, format!("builtin({id})").as_bytes())
            }
            Val::Undefined | Val::Unbound | Val::Builtin(_) => self.out.push(self.cx, b"null"),
            Val::Date(r) => {
                let ms = self.cx.heap.date_ms(r);
                let text = if canonical {
                    format!("Date({ms:?})")
                } else {
                    format!("\"{}\"", date_text(ms)?)
                };
                self.out.formatted += formatted_units(text.len());
                self.out.push(self.cx, text.as_bytes())
            }
            Val::Set(r) => {
                if canonical {
                    self.out.push(self.cx, b"Set")?;
                }
                self.open(r, false)
            }
            Val::Map(_) if canonical => Err(Fault::throw(
                "a Map has no canonical text: use Object.fromEntries",
            )),
            // A map has no members of its own (D111).
            Val::Map(_) => self.out.push(self.cx, b"{}"),
            Val::Arr(r) => self.open(r, false),
            Val::Obj(r) => self.open(r, true),
        }
    }

    /// Writes a long string in pieces with yield points between them.
    fn long_string(&mut self, s: crate::heap::Str) -> Result<(), Fault> {
        // Reserved at once: a doubling buffer leaves its smaller ones behind.
        self.out.room(self.cx, s.len_bytes() + 2)?;
        self.out.push(self.cx, b"\"")?;
        let mut from = 0;
        while from < s.len_bytes() {
            let bytes = self.cx.heap.bytes(s);
            let mut to = (from + PIECE).min(bytes.len());
            while to < bytes.len() && bytes[to] & 0xC0 == 0x80 {
                to += 1;
            }
            self.piece.clear();
            write_json_string(&bytes[from..to], &mut self.piece);
            let inside = &self.piece[1..self.piece.len() - 1];
            self.out.push(self.cx, inside)?;
            self.out.settle(self.cx)?;
            self.cx.work((to - from) as i64)?;
            from = to;
        }
        self.out.push(self.cx, b"\"")
    }

    fn open(&mut self, r: Ref, object: bool) -> Result<(), Fault> {
        if self.frames.iter().any(|f| f.r == r) {
            return Err(Fault::throw(
                "JSON.stringify cannot serialize cyclic structures.",
            ));
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(Fault::throw(format!(
                "JSON.stringify cannot serialize structures nested deeper than {MAX_DEPTH} levels."
            )));
        }
        let len = self.cx.heap.len(r);
        self.out.due += len;
        self.out.settle(self.cx)?;
        let elements = match object {
            true => json_object(len).saturating_add(self.style.listed),
            false => json_list(len),
        };
        self.cx.pay_metered(READ.price(Sizes::elements(elements)))?;
        let (next, end) = if object {
            self.list_members(r)?
        } else {
            (0, self.cx.heap.len(r))
        };
        self.out.push(self.cx, if object { b"{" } else { b"[" })?;
        self.frames.push(WriteFrame {
            r,
            object,
            next,
            end,
            start: next,
            any: false,
        });
        Ok(())
    }

    fn list_members(&mut self, r: Ref) -> Result<(usize, usize), Fault> {
        let start = self.members.len();
        let heap = &*self.cx.heap;
        if let Replacer::Keys(keys) = &self.style.replacer {
            for key in keys {
                if let Some(val) = heap.get(r, *key) {
                    temp::push(heap, &mut self.members, (*key, val))?;
                }
            }
            let looked = keys.len();
            self.cx.work(looked as i64)?;
        } else {
            temp::reserve(heap, &mut self.members, heap.len(r))?;
            match heap.plain_entries(r) {
                Some(members) => self.members.extend(members),
                None => self.members.extend(heap.entries(r)),
            }
        }
        Ok((start, self.members.len()))
    }

    fn close(&mut self) -> Result<(), Fault> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        if frame.object {
            self.members.truncate(frame.start);
        }
        if frame.any {
            self.line(self.frames.len())?;
        }
        self.out
            .push(self.cx, if frame.object { b"}" } else { b"]" })
    }

    /// The value returned by the replacer function.
    fn replaced(&mut self, name: Option<MemberName>, val: Val) -> Result<Val, Fault> {
        let Replacer::Function(f) = self.style.replacer else {
            return Ok(val);
        };
        self.cx
            .pay_metered(READ.price(Sizes::elements(JSON_REPLACED)))?;
        let key = match name {
            None => Val::Str(crate::heap::Str::EMPTY),
            Some(MemberName::Key(key)) => Val::Str(self.cx.heap.key_str(key)?),
            Some(MemberName::Index(at)) => self.cx.str(at.to_string().as_bytes())?,
        };
        builtins::call_builtin_value(self.cx, f, &[key, val])
    }
}

/// The name of a value in its container.
#[derive(Copy, Clone)]
enum MemberName {
    Key(KeyId),
    Index(usize),
}
