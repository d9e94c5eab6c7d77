//! Replacement texts (ECMA-262 §22.1.3.19.1 GetSubstitution).

use super::charge_text;
use super::regex_find::Matches;
use super::strings_cut::buffer;
use super::strings_search::PIECE;
use crate::heap::{Oom, Str, Val};
use crate::native::{Cx, Fault};
use crate::regex::captures::NONE;
use a99_core::costs::{READ, REGEX_PART, Sizes};
use a99_ecma::wtf8;
use std::ops::Range;

/// A piece of a replacement text.
#[derive(Copy, Clone)]
enum Piece {
    /// This byte range of the replacement.
    Literal(usize, usize),
    /// `$&`, and groups by number or name.
    Group(u32),
    /// `` $` ``
    Before,
    /// `$'`
    After,
}

/// Parses a placeholder after a dollar: its piece, if it has one, and its length.
fn special(text: &[u8], at: usize, found: &Matches) -> Option<(Option<Piece>, usize)> {
    let digit = |at: usize| {
        let digit = text.get(at).filter(|b| b.is_ascii_digit());
        digit.map(|b| u32::from(b - b'0'))
    };
    match text.get(at + 1)? {
        // One of the two dollars is kept.
        b'$' => Some((Some(Piece::Literal(at, at + 1)), 2)),
        b'&' => Some((Some(Piece::Group(0)), 2)),
        b'`' => Some((Some(Piece::Before), 2)),
        b'\'' => Some((Some(Piece::After), 2)),
        b'<' if found.has_names() => {
            let name = &text[at + 2..];
            let len = name.iter().position(|b| *b == b'>')?;
            let group = found.named(&name[..len]);
            Some((group.map(Piece::Group), len + 3))
        }
        _ => {
            let one = digit(at + 1)?;
            let two = digit(at + 2).map(|next| 10 * one + next);
            let known = |n: u32| (1..=found.groups()).contains(&n);
            match two.filter(|n| *n <= found.groups()) {
                Some(n) => known(n).then_some((Some(Piece::Group(n)), 3)),
                None => known(one).then_some((Some(Piece::Group(one)), 2)),
            }
        }
    }
}

/// Splits a replacement text into pieces.
fn pieces(cx: &mut Cx<'_>, with: Str, found: &Matches) -> Result<Vec<Piece>, Fault> {
    let dollars = cx.bytes(with).iter().filter(|b| **b == b'$').count();
    let parts = Sizes::elements(dollars.saturating_mul(REGEX_PART));
    cx.charge(READ, parts)?;
    let most = 2 * dollars + 1;
    cx.heap.copy(most * size_of::<Piece>())?;
    let mut list = Vec::new();
    list.try_reserve_exact(most)
        .map_err(|_| Oom { wanted: most })?;
    let (mut from, mut at) = (0, 0);
    while let Some(dollar) = wtf8::find(cx.bytes(with), b"$", at) {
        cx.work(((dollar - at) / 16 + 8) as i64)?;
        let Some((piece, len)) = special(cx.bytes(with), dollar, found) else {
            at = dollar + 1;
            continue;
        };
        if from < dollar {
            list.push(Piece::Literal(from, dollar));
        }
        list.extend(piece);
        at = dollar + len;
        from = at;
    }
    if from < with.len_bytes() {
        list.push(Piece::Literal(from, with.len_bytes()));
    }
    Ok(list)
}

/// The range of the text that a piece inserts.
fn range(piece: Piece, places: &[u32], end: usize) -> Range<usize> {
    match piece {
        Piece::Literal(..) => 0..0,
        Piece::Before => 0..places[0] as usize,
        Piece::After => places[1] as usize..end,
        Piece::Group(n) => match places[2 * n as usize] {
            NONE => 0..0,
            start => start as usize..places[2 * n as usize + 1] as usize,
        },
    }
}

/// The text with the given matches replaced.
pub(super) fn write(cx: &mut Cx<'_>, text: Str, found: &Matches, with: Str) -> Result<Val, Fault> {
    let pieces = pieces(cx, with, found)?;
    // A piece may be empty, but still takes time.
    let parts = found.len().saturating_mul(pieces.len() + 1);
    cx.charge(READ, Sizes::elements(parts.saturating_mul(REGEX_PART)))?;
    if found.len() == 0 {
        charge_text(cx, text.units())?;
        return Ok(Val::Str(text));
    }
    let end = text.units();
    let mut literal = (0usize, 0usize);
    for piece in &pieces {
        if let Piece::Literal(from, to) = *piece {
            let part = cx.units_of(with, from..to)?;
            literal = (literal.0 + part, literal.1 + to - from);
        }
    }
    // Units of the text in the result, and units and bytes of the replacement.
    let mut kept = end;
    let mut added = (0usize, 0usize);
    for places in found.iter() {
        cx.work(2 * pieces.len() as i64 + 2)?;
        kept -= (places[1] - places[0]) as usize;
        let copied = pieces.iter().map(|piece| range(*piece, places, end).len());
        added.0 = added
            .0
            .saturating_add(copied.fold(0, usize::saturating_add));
        added.1 = added.1.saturating_add(literal.1);
    }
    let copied = kept.saturating_add(added.0);
    let units = copied.saturating_add(literal.0.saturating_mul(found.len()));
    charge_text(cx, units)?;
    // For a UTF-16 text the number of bytes is unknown, so the maximum is used.
    let scale = if found.units.is_some() { 3 } else { 1 };
    let bytes = copied.saturating_mul(scale).saturating_add(added.1);
    let mut out = buffer(cx, bytes)?;
    let mut from = 0;
    for places in found.iter() {
        cx.work(8 + 8 * pieces.len() as i64)?;
        copy(cx, text, found, from..places[0] as usize, &mut out)?;
        for piece in &pieces {
            match *piece {
                Piece::Literal(from, to) => bytes_of(cx, with, from..to, &mut out)?,
                other => copy(cx, text, found, range(other, places, end), &mut out)?,
            }
        }
        from = places[1] as usize;
    }
    copy(cx, text, found, from..end, &mut out)?;
    cx.str(&out)
}

/// Appends units of the text.
fn copy(
    cx: &mut Cx<'_>,
    text: Str,
    found: &Matches,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let Some(units) = &found.units else {
        return bytes_of(cx, text, range, out);
    };
    for part in units[range].chunks(PIECE) {
        wtf8::concat(out, &wtf8::from_utf16(part));
        cx.work(2 * part.len() as i64)?;
    }
    Ok(())
}

/// Appends bytes of a text.
fn bytes_of(
    cx: &mut Cx<'_>,
    text: Str,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + PIECE);
        wtf8::concat(out, &cx.bytes(text)[at..end]);
        cx.work((end - at) as i64 / 4)?;
        at = end;
    }
    Ok(())
}
