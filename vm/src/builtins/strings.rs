//! String methods for indexing, slicing, padding, trimming and splitting (ECMA-262 §22.1.3).
//!
//! Search and replacement are in `strings_search`, case and Unicode forms in `strings_case`.

use super::strings_cut::{
    buffer, byte_view, code_point, code_unit, cut, str_or_undefined, unit_at,
};
use super::{StrFn, arg, charge_text};
use crate::coerce::{to_integer, to_number, to_str, trimmed_range};
use crate::heap::{Str, StrMark, Val};
use crate::native::{Cx, Fault};
use a99_ecma::{text_index, wtf8};
use std::ops::Range;

/// Code of the methods in this file.
pub(super) const METHODS: &[(&str, StrFn)] = &[
    ("at", at),
    ("charAt", char_at),
    ("charCodeAt", char_code_at),
    ("codePointAt", code_point_at),
    ("concat", concat),
    ("padEnd", pad_end),
    ("padStart", pad_start),
    ("repeat", repeat),
    ("slice", slice),
    ("substr", substr),
    ("substring", substring),
    ("toString", to_string),
    ("valueOf", |_, s, _| Ok(Val::Str(s))),
    ("trim", trim),
    ("trimStart", trim_start),
    ("trimEnd", trim_end),
    ("trimLeft", trim_start),
    ("trimRight", trim_end),
];

/// Bytes that [`build_repeated`] appends at a time.
const REPEAT_BLOCK: usize = 64 << 10;

fn to_string(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    charge_text(cx, s.units())?;
    Ok(Val::Str(s))
}

/// An optional argument.
fn optional(cx: &mut Cx<'_>, args: &[Val], at: usize) -> Result<Option<f64>, Fault> {
    match arg(args, at) {
        v if v.is_undefined() => Ok(None),
        v => to_number(cx, v).map(Some),
    }
}

fn at(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let x = to_number(cx, arg(args, 0))?;
    match text_index::at(x, s.units()) {
        Some(i) => unit_at(cx, s, i).map(str_or_undefined),
        None => Ok(Val::Undefined),
    }
}

fn char_at(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let x = to_number(cx, arg(args, 0))?;
    let found = match text_index::position(x, s.units()) {
        Some(i) => unit_at(cx, s, i)?,
        None => None,
    };
    Ok(Val::Str(found.unwrap_or(Str::EMPTY)))
}

fn char_code_at(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let x = to_number(cx, arg(args, 0))?;
    let found = match text_index::position(x, s.units()) {
        Some(i) => code_unit(cx, s, i)?,
        None => None,
    };
    Ok(Val::Num(found.map_or(f64::NAN, f64::from)))
}

fn code_point_at(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let x = to_number(cx, arg(args, 0))?;
    let found = match text_index::position(x, s.units()) {
        Some(i) => code_point(cx, s, i)?,
        None => None,
    };
    Ok(found.map_or(Val::Undefined, |c| Val::Num(f64::from(c))))
}

fn concat(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let mut parts = Vec::with_capacity(args.len());
    let (mut units, mut bytes) = (s.units(), s.len_bytes());
    for v in args {
        let part = to_str(cx, *v)?;
        units += part.units();
        bytes += part.len_bytes();
        parts.push(part);
    }
    charge_text(cx, units)?;
    let mark = cx.heap.begin_str(bytes)?;
    cx.build(mark, s)?;
    for part in parts {
        cx.build(mark, part)?;
    }
    Ok(Val::Str(cx.built(mark, units)))
}

/// Pays for a part and cuts it out.
fn part(cx: &mut Cx<'_>, s: Str, range: Range<usize>) -> Result<Val, Fault> {
    charge_text(cx, range.len())?;
    cut(cx, s, range).map(Val::Str)
}

fn slice(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let start = to_number(cx, arg(args, 0))?;
    let end = optional(cx, args, 1)?;
    part(cx, s, text_index::slice_range(start, end, s.units()))
}

fn substring(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let start = to_number(cx, arg(args, 0))?;
    let end = optional(cx, args, 1)?;
    part(cx, s, text_index::substring_range(start, end, s.units()))
}

fn substr(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let start = to_number(cx, arg(args, 0))?;
    let length = optional(cx, args, 1)?;
    part(cx, s, text_index::substr_range(start, length, s.units()))
}

fn pad_start(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    pad(cx, s, args, true)
}

fn pad_end(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    pad(cx, s, args, false)
}

fn pad(cx: &mut Cx<'_>, s: Str, args: &[Val], at_start: bool) -> Result<Val, Fault> {
    let target = to_integer(cx, arg(args, 0))?;
    let fill = match arg(args, 1) {
        v if v.is_undefined() => cx.heap.alloc_str(b" ")?,
        v => to_str(cx, v)?,
    };
    if target <= s.units() as f64 || fill.is_empty() {
        charge_text(cx, s.units())?;
        return Ok(Val::Str(s));
    }
    // The cast saturates; the size check below refuses such sizes.
    let target = target as usize;
    let missing = target - s.units();
    charge_text(cx, target)?;
    let (whole, rest) = (missing / fill.units(), missing % fill.units());
    let rest = cut(cx, fill, 0..rest)?;
    let filled = fill
        .len_bytes()
        .saturating_mul(whole)
        .saturating_add(rest.len_bytes());
    let mark = cx.heap.begin_str(filled.saturating_add(s.len_bytes()))?;
    if !at_start {
        cx.build(mark, s)?;
    }
    build_repeated(cx, mark, fill, whole)?;
    cx.build(mark, rest)?;
    if at_start {
        cx.build(mark, s)?;
    }
    Ok(Val::Str(cx.built(mark, target)))
}

fn repeat(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let count = to_integer(cx, arg(args, 0))?;
    if count < 0.0 || count.is_infinite() {
        return Err(Fault::throw(
            "String.prototype.repeat argument must be greater than or equal to 0 and not be \
             Infinity",
        ));
    }
    if s.is_empty() || count == 0.0 {
        return Ok(Val::Str(Str::EMPTY));
    }
    let count = count as usize;
    let units = s.units().saturating_mul(count);
    charge_text(cx, units)?;
    let mark = cx.heap.begin_str(s.len_bytes().saturating_mul(count))?;
    build_repeated(cx, mark, s, count)?;
    Ok(Val::Str(cx.built(mark, units)))
}

/// Appends `count` copies of `s` in blocks; the caller has reserved the room.
fn build_repeated(cx: &mut Cx<'_>, mark: StrMark, s: Str, count: usize) -> Result<(), Fault> {
    let in_block = (REPEAT_BLOCK / s.len_bytes().max(1)).clamp(1, count.max(1));
    let mut block = buffer(cx, in_block * s.len_bytes())?;
    let mut left = count;
    if in_block > 1 {
        for _ in 0..in_block {
            wtf8::concat(&mut block, cx.heap.bytes(s));
        }
        while left >= in_block {
            cx.heap.build_bytes(mark, &block)?;
            cx.work(REPEAT_BLOCK as i64 / 4)?;
            left -= in_block;
        }
    }
    for _ in 0..left {
        cx.build(mark, s)?;
    }
    Ok(())
}

fn trim(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    trimmed(cx, s, true, true)
}

fn trim_start(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    trimmed(cx, s, true, false)
}

fn trim_end(cx: &mut Cx<'_>, s: Str, _: &[Val]) -> Result<Val, Fault> {
    trimmed(cx, s, false, true)
}

fn trimmed(cx: &mut Cx<'_>, s: Str, start: bool, end: bool) -> Result<Val, Fault> {
    let inside = trimmed_range(cx, s, start, end)?;
    Ok(Val::Str(byte_view(cx, s, inside.start, inside.end)?))
}
