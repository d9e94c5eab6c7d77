//! The 16-byte value of the machine.
//!
//! A [`Val`] is a `Copy` handle. Numbers and booleans are inline; larger values are stored in
//! the run's [`Heap`](super::Heap). A handle is valid only with the heap that made it, and
//! only until that heap is compacted without the handle among the roots.

/// Set in [`Str::off`] if the bytes are in the program's constant pool instead of the run's
/// heap.
const STATIC_BIT: u32 = 1 << 31;

/// A view of WTF-8 text: a byte range of the heap or of the constant pool,
/// with its length in UTF-16 units (D36).
///
/// Substrings share the bytes of their source.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Str {
    off: u32,
    len: u32,
    units: u32,
}

impl Str {
    /// The empty string; it refers to no bytes.
    pub const EMPTY: Str = Str {
        off: STATIC_BIT,
        len: 0,
        units: 0,
    };

    /// A view of heap bytes.
    #[inline]
    pub(crate) fn in_heap(off: u32, len: u32, units: u32) -> Str {
        debug_assert!(off & STATIC_BIT == 0);
        Str { off, len, units }
    }

    /// A view of constant-pool bytes.
    #[inline]
    pub(crate) fn in_statics(off: u32, len: u32, units: u32) -> Str {
        debug_assert!(off & STATIC_BIT == 0);
        Str {
            off: off | STATIC_BIT,
            len,
            units,
        }
    }

    /// Whether the bytes belong to the program and never move.
    #[inline]
    pub fn is_static(self) -> bool {
        self.off & STATIC_BIT != 0
    }

    /// Offset of the first byte, within the heap or the constant pool.
    #[inline]
    pub(crate) fn offset(self) -> u32 {
        self.off & !STATIC_BIT
    }

    /// Offset of the first byte, with the constant-pool bit: equal for two texts that begin
    /// at the same byte of the same space.
    #[inline]
    pub(super) fn raw_offset(self) -> u32 {
        self.off
    }

    /// Whether a [`Str::raw_offset`] refers to the constant pool.
    #[inline]
    pub(super) fn offset_is_static(raw: u32) -> bool {
        raw & STATIC_BIT != 0
    }

    /// Length in WTF-8 bytes.
    #[inline]
    pub fn len_bytes(self) -> usize {
        self.len as usize
    }

    /// Length in UTF-16 code units, the `length` a program sees.
    #[inline]
    pub fn units(self) -> usize {
        self.units as usize
    }

    /// ASCII text has as many bytes as units, and no other text has.
    #[inline]
    pub fn is_ascii(self) -> bool {
        self.len == self.units
    }

    /// Whether the text is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The part `[start, end)` of the bytes, with `units` units; both ends must be code point
    /// borders.
    #[inline]
    pub fn view(self, start: usize, end: usize, units: usize) -> Str {
        debug_assert!(start <= end && end <= self.len as usize);
        Str {
            off: self.off + start as u32,
            len: (end - start) as u32,
            units: units as u32,
        }
    }
}

/// A heap cell: array, object, set, date or map. References are identical if their ids are equal.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ref(pub(crate) u32);

/// A value of a running program.
#[derive(Copy, Clone, Debug)]
#[repr(u32)]
pub enum Val {
    /// A variable that was never bound. Only registers hold it; no expression evaluates to
    /// it.
    Unbound,
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// An IEEE 754 double.
    Num(f64),
    /// Text.
    Str(Str),
    /// A mutable array, by reference (D49).
    Arr(Ref),
    /// A mutable object, by reference (D66).
    Obj(Ref),
    /// A `Set` of the builtin (D34).
    Set(Ref),
    /// A `Date` of the builtin (D34), UTC.
    Date(Ref),
    /// A map of keys of any kind to values (D111).
    Map(Ref),
    /// A builtin namespace or function (D35): callable and passable as a callback,
    /// `undefined` outside the run.
    Builtin(u16),
}

const _: () = assert!(size_of::<Val>() == 16);

impl Val {
    /// Copies the value in the parts in which numbers and objects are written. A fresh value
    /// is two stores, and a single wide load would wait for both.
    #[inline(always)]
    pub(crate) fn by_parts(&self) -> Val {
        match self {
            // `-0.0` changes nothing; without it the compiler would merge the copies into one
            // of the whole.
            Val::Num(n) => Val::Num(*n + -0.0),
            Val::Obj(r) => Val::Obj(Ref(r.0.wrapping_add(0))),
            val => *val,
        }
    }

    /// Whether the value is `undefined` (or an unbound register) or `null`.
    #[inline]
    pub fn is_nullish(self) -> bool {
        matches!(self, Val::Undefined | Val::Null | Val::Unbound)
    }

    /// Whether the value is `undefined`, but not an unbound register.
    #[inline]
    pub fn is_undefined(self) -> bool {
        matches!(self, Val::Undefined | Val::Unbound)
    }

    /// The cell behind a reference value.
    #[inline]
    pub fn as_ref(self) -> Option<Ref> {
        match self {
            Val::Arr(r) | Val::Obj(r) | Val::Set(r) | Val::Date(r) | Val::Map(r) => Some(r),
            _ => None,
        }
    }

    /// Whether two values are identical: equal scalars (NaN equals itself), equal references.
    /// Used for state diffs, not for the language's `===`.
    pub fn is_same(self, other: Val, heap: &super::Heap) -> bool {
        match (self, other) {
            (Val::Num(a), Val::Num(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Val::Str(a), Val::Str(b)) => a == b || heap.bytes(a) == heap.bytes(b),
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::Builtin(a), Val::Builtin(b)) => a == b,
            (Val::Unbound, Val::Unbound)
            | (Val::Undefined, Val::Undefined)
            | (Val::Null, Val::Null) => true,
            (a, b) => a.as_ref().is_some() && a.as_ref() == b.as_ref(),
        }
    }
}
