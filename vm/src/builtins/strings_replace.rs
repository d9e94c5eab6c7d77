//! `replace` and `replaceAll` (ECMA-262 §22.1.3.19 and .20) with a literal
//! pattern.

use super::strings_cut::buffer;
use super::strings_search::{MatchPositions, PIECE};
use super::{StrFn, arg, call_builtin_value, charge_text, is_callable};
use crate::coerce::to_str;
use crate::heap::{Oom, Str, Val};
use crate::native::{Cx, Fault};
use a99_ecma::wtf8;

/// Code of the methods in this file.
pub(super) const METHODS: &[(&str, StrFn)] = &[
    ("replace", |cx, s, args| replace(cx, s, args, 1)),
    ("replaceAll", |cx, s, args| replace(cx, s, args, usize::MAX)),
];

/// A piece of a replacement text (ECMA-262 §22.1.3.19.1 GetSubstitution; a literal pattern
/// has no captures).
#[derive(Copy, Clone)]
enum Piece {
    /// This byte range of the replacement.
    Literal(usize, usize),
    /// `$&`
    Match,
    /// `` $` ``
    Before,
    /// `$'`
    After,
}

/// Splits a replacement text into pieces.
fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut list = Vec::new();
    let (mut from, mut i) = (0, 0);
    while i + 1 < text.len() {
        let piece = match (text[i], text[i + 1]) {
            // One of the two dollars is kept.
            (b'$', b'$') => Piece::Literal(i, i + 1),
            (b'$', b'&') => Piece::Match,
            (b'$', b'`') => Piece::Before,
            (b'$', b'\'') => Piece::After,
            _ => {
                i += 1;
                continue;
            }
        };
        if from < i {
            list.push(Piece::Literal(from, i));
        }
        list.push(piece);
        i += 2;
        from = i;
    }
    if from < text.len() {
        list.push(Piece::Literal(from, text.len()));
    }
    list
}

fn replace(cx: &mut Cx<'_>, s: Str, args: &[Val], max: usize) -> Result<Val, Fault> {
    let pattern = to_str(cx, arg(args, 0))?;
    let with = arg(args, 1);
    if let Val::Builtin(n) = with
        && is_callable(n)
    {
        return replace_by_call(cx, s, pattern, with, max);
    }
    let with = to_str(cx, with)?;
    // At most one list entry for each `$` of the replacement.
    let dollars = cx.bytes(with).iter().filter(|b| **b == b'$').count();
    cx.heap
        .check(dollars.saturating_mul(2 * size_of::<Piece>()))?;
    let pieces = pieces(cx.bytes(with));
    let places = MatchPositions::find(cx, s, pattern, max)?;
    if places.starts.is_empty() {
        charge_text(cx, s.units())?;
        return Ok(Val::Str(s));
    }
    let end = places.end(s);
    let mut size = (end, 0usize);
    let mut units = s.units();
    let literal_units: usize = pieces
        .iter()
        .map(|piece| match *piece {
            Piece::Literal(a, b) => wtf8::utf16_len(&cx.bytes(with)[a..b]),
            _ => 0,
        })
        .sum();
    let literal_bytes: usize = pieces
        .iter()
        .map(|piece| match *piece {
            Piece::Literal(a, b) => b - a,
            _ => 0,
        })
        .sum();
    let (befores, matches, afters) = pieces.iter().fold((0, 0, 0), |n, piece| match piece {
        Piece::Literal(..) => n,
        Piece::Before => (n.0 + 1, n.1, n.2),
        Piece::Match => (n.0, n.1 + 1, n.2),
        Piece::After => (n.0, n.1, n.2 + 1),
    });
    let (mut unit, mut counted) = (0, 0);
    for at in &places.starts {
        size.0 = size.0.saturating_sub(places.len);
        unit += places.units_between(cx, s, counted, *at)?;
        counted = *at;
        units = units
            .saturating_sub(pattern.units())
            .saturating_add(literal_units)
            .saturating_add(pattern.units().saturating_mul(matches))
            .saturating_add(unit.saturating_mul(befores))
            .saturating_add((s.units() - unit - pattern.units()).saturating_mul(afters));
        // By kind, not by piece: this work is not paid yet.
        for (count, len) in [
            (matches, places.len),
            (befores, *at),
            (afters, end - at - places.len),
        ] {
            size.0 = size.0.saturating_add(len.saturating_mul(count));
        }
        size.1 = size.1.saturating_add(literal_bytes);
        cx.work(1)?;
    }
    // For a UTF-16 haystack the number of bytes is unknown, so the maximum is used.
    let scale = if places.units.is_some() { 3 } else { 1 };
    let bytes = size.0.saturating_mul(scale).saturating_add(size.1);
    charge_text(cx, units)?;
    let mut out = buffer(cx, bytes)?;
    let mut from = 0;
    for at in &places.starts {
        places.copy(cx, s, from, *at, &mut out)?;
        for piece in &pieces {
            match *piece {
                Piece::Literal(a, b) => literal(cx, with, a..b, &mut out)?,
                Piece::Match => places.copy(cx, s, *at, at + places.len, &mut out)?,
                Piece::Before => places.copy(cx, s, 0, *at, &mut out)?,
                Piece::After => places.copy(cx, s, at + places.len, end, &mut out)?,
            }
        }
        cx.work(8 + 8 * pieces.len() as i64)?;
        from = at + places.len;
    }
    places.copy(cx, s, from, end, &mut out)?;
    cx.str(&out)
}

/// Appends bytes of a text.
fn literal(
    cx: &mut Cx<'_>,
    text: Str,
    bytes: std::ops::Range<usize>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut at = bytes.start;
    while at < bytes.end {
        let end = bytes.end.min(at + PIECE);
        wtf8::concat(out, &cx.bytes(text)[at..end]);
        if end - at > 64 {
            cx.work((end - at) as i64)?;
        }
        at = end;
    }
    Ok(())
}

/// Replaces each match with the result of a builtin function.
fn replace_by_call(
    cx: &mut Cx<'_>,
    s: Str,
    pattern: Str,
    call: Val,
    max: usize,
) -> Result<Val, Fault> {
    let places = MatchPositions::find(cx, s, pattern, max)?;
    cx.heap.check(places.starts.len() * size_of::<Str>())?;
    let mut texts: Vec<Str> = Vec::new();
    texts
        .try_reserve_exact(places.starts.len())
        .map_err(|_| Oom { wanted: 0 })?;
    let (mut units, mut bytes) = (
        s.units(),
        places.end(s) * if places.units.is_some() { 3 } else { 1 },
    );
    let (mut unit, mut counted) = (0, 0);
    for at in &places.starts {
        unit += places.units_between(cx, s, counted, *at)?;
        counted = *at;
        let args = [Val::Str(pattern), Val::Num(unit as f64), Val::Str(s)];
        let result = call_builtin_value(cx, call, &args)?;
        let text = to_str(cx, result)?;
        units = units - pattern.units() + text.units();
        bytes += text.len_bytes();
        texts.push(text);
    }
    charge_text(cx, units)?;
    let mut out = buffer(cx, bytes)?;
    let mut from = 0;
    for (at, text) in places.starts.iter().zip(texts) {
        places.copy(cx, s, from, *at, &mut out)?;
        literal(cx, text, 0..text.len_bytes(), &mut out)?;
        cx.work(8)?;
        from = at + places.len;
    }
    places.copy(cx, s, from, places.end(s), &mut out)?;
    cx.str(&out)
}
