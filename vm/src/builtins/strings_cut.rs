//! Substrings by UTF-16 offsets (D36).
//!
//! Offsets into ASCII text are byte offsets. In other text they must be counted, from the
//! start in short text and from a noted position in long text, so that any offset is found
//! fast.

use crate::heap::{Oom, Str, Val};
use crate::native::{Cx, Fault};
use a99_ecma::wtf8;
use std::ops::Range;

/// A buffer of `bytes`, checked against the heap's ceiling.
pub(super) fn buffer(cx: &Cx<'_>, bytes: usize) -> Result<Vec<u8>, Fault> {
    cx.heap.check(bytes)?;
    let mut out = Vec::new();
    out.try_reserve_exact(bytes)
        .map_err(|_| Oom { wanted: bytes })?;
    Ok(out)
}

/// The string of the one UTF-16 unit at `at`.
pub(crate) fn unit_at(cx: &mut Cx<'_>, s: Str, at: usize) -> Result<Option<Str>, Fault> {
    if at >= s.units() {
        return Ok(None);
    }
    if s.is_ascii() {
        return Ok(Some(s.view(at, at + 1, 1)));
    }
    cut(cx, s, at..at + 1).map(Some)
}

/// A code point at or shortly before a unit: its byte offset, and its first unit.
fn near(cx: &mut Cx<'_>, s: Str, unit: usize) -> Result<(usize, usize), Fault> {
    let (heap, mut clock) = cx.split();
    heap.place_near(s, unit, &mut clock)
}

/// The UTF-16 unit at `at`.
pub(super) fn code_unit(cx: &mut Cx<'_>, s: Str, at: usize) -> Result<Option<u16>, Fault> {
    if s.is_ascii() {
        return Ok(cx.bytes(s).get(at).map(|b| u16::from(*b)));
    }
    let (byte, unit) = near(cx, s, at)?;
    Ok(wtf8::code_unit_at(&cx.bytes(s)[byte..], at - unit))
}

/// The code point that starts at the unit `at`.
pub(super) fn code_point(cx: &mut Cx<'_>, s: Str, at: usize) -> Result<Option<u32>, Fault> {
    let (byte, unit) = near(cx, s, at)?;
    Ok(wtf8::code_point_at(&cx.bytes(s)[byte..], at - unit))
}

/// The units of `range`, which must be within the string: a view unless a surrogate pair is
/// split.
pub(super) fn cut(cx: &mut Cx<'_>, s: Str, range: Range<usize>) -> Result<Str, Fault> {
    let Range { start, end } = range;
    if start >= end {
        return Ok(Str::EMPTY);
    }
    if s.is_ascii() {
        return Ok(s.view(start, end, end - start));
    }
    if start == 0 && end == s.units() {
        return Ok(s);
    }
    let (byte, unit) = near(cx, s, start)?;
    let (from, to) = (start - unit, end - unit);
    cx.work((to / 16) as i64)?;
    if let Some(bytes) = wtf8::slice_range_if_whole(&cx.bytes(s)[byte..], from, to) {
        return Ok(s.view(byte + bytes.start, byte + bytes.end, end - start));
    }
    let mut out = buffer(cx, (end - start).saturating_mul(3))?;
    wtf8::slice_units(&cx.bytes(s)[byte..], from, to, &mut out);
    cx.str_units(&out, end - start)
}

/// The bytes `[start, end)` of a string as a view; both must be code point borders.
pub(super) fn byte_view(cx: &mut Cx<'_>, s: Str, start: usize, end: usize) -> Result<Str, Fault> {
    let units = cx.units_of(s, start..end)?;
    Ok(s.view(start, end, units))
}

/// A string value, or `undefined`.
pub(super) fn str_or_undefined(s: Option<Str>) -> Val {
    s.map_or(Val::Undefined, Val::Str)
}
