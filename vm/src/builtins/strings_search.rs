//! String search and split (ECMA-262 §22.1.3). The pattern is always literal text (D39):
//! `match`, `matchAll` and `search` do not create regular expressions.
//!
//! Results are sized and charged before they are built, so that a small program cannot build
//! a huge one cheaply.

use super::strings_cut::{byte_view, cut};
use super::strings_find::{Next, find, find_last, places, unit_offset_to_byte};
use super::{StrFn, arg, charge_list};
use crate::coerce::{to_number, to_str};
use crate::heap::{Oom, Str, Val};
use crate::native::{Cx, Fault};
use a99_core::costs::{READ, Sizes, searched_units, taken_apart};
use a99_ecma::{arith::to_uint32, text_index, wtf8};

/// Code of the methods in this file.
pub(super) const METHODS: &[(&str, StrFn)] = &[
    ("endsWith", ends_with),
    ("includes", includes),
    ("indexOf", index_of),
    ("lastIndexOf", last_index_of),
    ("match", match_),
    ("matchAll", match_all),
    ("search", search),
    ("split", split),
    ("startsWith", starts_with),
];

/// The needle of a search.
fn needle(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Str, Fault> {
    let needle = to_str(cx, arg(args, 0))?;
    // Both texts are paid; scanning them takes time too.
    cx.work((s.units() / 16) as i64)?;
    Ok(needle)
}

/// Pays for scanning a non-ASCII text.
fn pay_search(cx: &mut Cx<'_>, s: Str, needle: Str) -> Result<(), Fault> {
    if s.is_ascii() {
        return Ok(());
    }
    let halves = wtf8::has_surrogate_edge(cx.bytes(needle));
    cx.pay_metered(READ.price(Sizes::units(searched_units(s.units(), halves))))
}

/// The first position of `needle` at or after the unit `from`.
fn find_from(cx: &mut Cx<'_>, s: Str, needle: Str, from: usize) -> Result<Option<usize>, Fault> {
    if s.is_ascii() {
        return if needle.is_ascii() && from <= s.units() {
            find(cx, s, needle, from)
        } else {
            Ok(None)
        };
    }
    pay_search(cx, s, needle)?;
    if needle.is_empty() {
        return Ok(Some(from.min(s.units())));
    }
    if wtf8::has_surrogate_edge(cx.bytes(needle)) {
        let mut first = None;
        by_units(cx, s, needle, |at| {
            first = Some(at).filter(|at| *at >= from);
            if first.is_some() {
                Next::Enough
            } else {
                Next::Overlapping
            }
        })?;
        return Ok(first);
    }
    let start = unit_offset_to_byte(cx, s, from)?;
    // Within a pair: no whole code point starts before the next one, and a match at the pair
    // itself would start one unit too early.
    let from = start.byte + if start.mid_pair { 4 } else { 0 };
    match find(cx, s, needle, from)? {
        Some(at) => cx.units_of(s, 0..at).map(Some),
        None => Ok(None),
    }
}

/// The positions of a needle that may match half of a surrogate pair.
fn by_units(
    cx: &mut Cx<'_>,
    s: Str,
    needle: Str,
    hit: impl FnMut(usize) -> Next,
) -> Result<(), Fault> {
    let (text, needle) = (utf16(cx, s)?, utf16(cx, needle)?);
    let (heap, mut clock) = cx.split();
    places(heap, &mut clock, &text, &needle, hit)
}

fn index_of(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let from = text_index::clamp(to_number(cx, arg(args, 1))?, s.units());
    let found = find_from(cx, s, needle, from)?;
    Ok(Val::Num(found.map_or(-1.0, |at| at as f64)))
}

fn last_index_of(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let last = text_index::last_start(to_number(cx, arg(args, 1))?, s.units());
    let found = find_before(cx, s, needle, last)?;
    Ok(Val::Num(found.map_or(-1.0, |at| at as f64)))
}

/// The last position of `needle` at or before the unit `last`.
fn find_before(cx: &mut Cx<'_>, s: Str, needle: Str, last: usize) -> Result<Option<usize>, Fault> {
    pay_search(cx, s, needle)?;
    if needle.is_empty() {
        return Ok(Some(last.min(s.units())));
    }
    if s.is_ascii() {
        return find_last(cx, s, needle, last);
    }
    if wtf8::has_surrogate_edge(cx.bytes(needle)) {
        let mut found = None;
        by_units(cx, s, needle, |at| {
            if at > last {
                return Next::Enough;
            }
            found = Some(at);
            Next::Overlapping
        })?;
        return Ok(found);
    }
    let last = unit_offset_to_byte(cx, s, last)?.byte;
    match find_last(cx, s, needle, last)? {
        Some(at) => cx.units_of(s, 0..at).map(Some),
        None => Ok(None),
    }
}

fn includes(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let from = text_index::clamp(to_number(cx, arg(args, 1))?, s.units());
    Ok(Val::Bool(find_from(cx, s, needle, from)?.is_some()))
}

fn starts_with(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let from = text_index::clamp(to_number(cx, arg(args, 1))?, s.units());
    is_at(cx, s, needle, from)
}

fn ends_with(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let end = match arg(args, 1) {
        v if v.is_undefined() => s.units(),
        v => text_index::clamp(to_number(cx, v)?, s.units()),
    };
    match end.checked_sub(needle.units()) {
        Some(from) => is_at(cx, s, needle, from),
        None => Ok(Val::Bool(false)),
    }
}

/// Whether `needle` is at the unit `from`.
fn is_at(cx: &mut Cx<'_>, s: Str, needle: Str, from: usize) -> Result<Val, Fault> {
    if from + needle.units() > s.units() {
        return Ok(Val::Bool(false));
    }
    let there = cut(cx, s, from..from + needle.units())?;
    let same = crate::coerce::strict_eq_paid(cx, Val::Str(there), Val::Str(needle))?;
    Ok(Val::Bool(same))
}

fn search(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let pattern = pattern(cx, args)?;
    Ok(Val::Num(
        find_from(cx, s, pattern, 0)?.map_or(-1.0, |at| at as f64),
    ))
}

/// The pattern of `match` and related methods; a missing one matches everywhere.
fn pattern(cx: &mut Cx<'_>, args: &[Val]) -> Result<Str, Fault> {
    match arg(args, 0) {
        v if v.is_undefined() => Ok(Str::EMPTY),
        v => to_str(cx, v),
    }
}

/// `match`: an array with the matched text, or `null`.
fn match_(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let pattern = pattern(cx, args)?;
    match find_from(cx, s, pattern, 0)? {
        Some(_) => {
            charge_list(cx, 1)?;
            Ok(Val::Arr(cx.heap.alloc_arr(&[Val::Str(pattern)])?))
        }
        None => Ok(Val::Null),
    }
}

/// `matchAll`: an array with such an array for each match.
fn match_all(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let pattern = pattern(cx, args)?;
    let places = MatchPositions::find(cx, s, pattern, usize::MAX)?;
    charge_list(cx, places.starts.len())?;
    let all = cx.list_with_room(places.starts.len())?;
    for _ in 0..places.starts.len() {
        cx.work(16)?;
        let one = cx.heap.alloc_arr(&[Val::Str(pattern)])?;
        cx.heap.push(all, Val::Arr(one))?;
    }
    Ok(Val::Arr(all))
}

/// The positions of non-overlapping matches, in order.
pub(super) struct MatchPositions {
    /// Byte offsets, or offsets into `units`.
    pub(super) starts: Vec<usize>,
    /// Length of the needle in the same unit.
    pub(super) len: usize,
    /// The UTF-16 form of the haystack, if a match may split a surrogate pair.
    pub(super) units: Option<Vec<u16>>,
}

impl MatchPositions {
    /// Finds at most `max` matches.
    pub(super) fn find(
        cx: &mut Cx<'_>,
        s: Str,
        needle: Str,
        max: usize,
    ) -> Result<MatchPositions, Fault> {
        cx.work((s.units() / 16) as i64)?;
        pay_search(cx, s, needle)?;
        let mut starts = Vec::new();
        let edge = needle.is_empty() || wtf8::has_surrogate_edge(cx.bytes(needle));
        if edge && !s.is_ascii() {
            let units = utf16(cx, s)?;
            let needle = utf16(cx, needle)?;
            find_units(cx, &units, &needle, max, &mut starts)?;
            return Ok(MatchPositions {
                starts,
                len: needle.len(),
                units: Some(units),
            });
        }
        let mut from = 0;
        while starts.len() < max
            && let Some(at) = find(cx, s, needle, from)?
        {
            push(cx, &mut starts, at)?;
            from = at + needle.len_bytes().max(1);
        }
        Ok(MatchPositions {
            starts,
            len: needle.len_bytes(),
            units: None,
        })
    }

    /// The end of the haystack.
    pub(super) fn end(&self, s: Str) -> usize {
        self.units.as_ref().map_or(s.len_bytes(), Vec::len)
    }

    /// The text between two offsets.
    fn piece(&self, cx: &mut Cx<'_>, s: Str, from: usize, to: usize) -> Result<Str, Fault> {
        match &self.units {
            None => byte_view(cx, s, from, to),
            Some(units) => {
                cx.heap.check((to - from).saturating_mul(3))?;
                Ok(cx.heap.alloc_str(&wtf8::from_utf16(&units[from..to]))?)
            }
        }
    }

    /// The length of a range in UTF-16 units.
    pub(super) fn units_between(
        &self,
        cx: &mut Cx<'_>,
        s: Str,
        from: usize,
        to: usize,
    ) -> Result<usize, Fault> {
        match &self.units {
            Some(_) => Ok(to - from),
            None => cx.units_of(s, from..to),
        }
    }

    /// Appends the text between two offsets.
    pub(super) fn copy(
        &self,
        cx: &mut Cx<'_>,
        s: Str,
        from: usize,
        to: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let mut at = from;
        while at < to {
            let end = to.min(at + PIECE);
            match &self.units {
                // A piece may end within a character. Only its start could join half of a
                // pair, and there the text is whole.
                None => wtf8::concat(out, &cx.bytes(s)[at..end]),
                Some(units) => {
                    for unit in &units[at..end] {
                        wtf8::push_code_unit(out, *unit);
                    }
                }
            }
            if end - at > 64 {
                cx.work((end - at) as i64)?;
            }
            at = end;
        }
        Ok(())
    }
}

/// Bytes or units copied or scanned between two yield points.
pub(super) const PIECE: usize = 16 << 10;

/// Appends to a temporary list, checked against the ceiling as it grows.
fn push(cx: &mut Cx<'_>, list: &mut Vec<usize>, item: usize) -> Result<(), Fault> {
    if list.len() == list.capacity() {
        let more = list.capacity().max(16);
        let wanted = (list.capacity() + more) * size_of::<usize>();
        cx.heap.check(wanted)?;
        list.try_reserve_exact(more).map_err(|_| Oom { wanted })?;
    }
    list.push(item);
    cx.work(1)
}

/// The UTF-16 units of a text; the caller pays for them.
pub(super) fn utf16(cx: &mut Cx<'_>, s: Str) -> Result<Vec<u16>, Fault> {
    let wanted = s.units() * size_of::<u16>();
    cx.heap.check(wanted)?;
    let mut units = Vec::new();
    units
        .try_reserve_exact(s.units())
        .map_err(|_| Oom { wanted })?;
    let mut at = 0;
    while at < s.len_bytes() {
        let text = cx.bytes(s);
        let mut end = text.len().min(at + PIECE);
        while end < text.len() && text[end] & 0xC0 == 0x80 {
            end += 1;
        }
        units.extend(wtf8::units(&text[at..end]));
        cx.work(PIECE as i64)?;
        at = end;
    }
    Ok(units)
}

/// The non-overlapping matches in UTF-16 units.
fn find_units(
    cx: &mut Cx<'_>,
    text: &[u16],
    needle: &[u16],
    max: usize,
    starts: &mut Vec<usize>,
) -> Result<(), Fault> {
    if needle.is_empty() {
        for at in 0..=text.len().min(max.saturating_sub(1)) {
            push(cx, starts, at)?;
        }
        return Ok(());
    }
    // Units between two checks of the list against the ceiling.
    const BATCH: usize = 1024;
    let mut from = 0;
    let mut batch: Vec<usize> = Vec::new();
    while starts.len() < max {
        let wanted = BATCH.min(max - starts.len());
        let (heap, mut clock) = cx.split();
        places(heap, &mut clock, &text[from..], needle, |at| {
            batch.push(from + at);
            match batch.len() == wanted {
                true => Next::Enough,
                false => Next::Behind,
            }
        })?;
        let found = batch.len();
        for at in batch.drain(..) {
            push(cx, starts, at)?;
            from = at + needle.len();
        }
        if found < wanted {
            break;
        }
    }
    Ok(())
}

fn split(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let limit = match arg(args, 1) {
        v if v.is_undefined() => u32::MAX,
        v => to_uint32(to_number(cx, v)?),
    } as usize;
    let sep = match arg(args, 0) {
        v if v.is_undefined() => None,
        v => Some(to_str(cx, v)?),
    };
    let Some(sep) = sep.filter(|_| limit > 0) else {
        let whole = [Val::Str(s)];
        let parts = &whole[..limit.min(1)];
        charge_list(cx, parts.len())?;
        return Ok(Val::Arr(cx.list(parts)?));
    };
    if sep.is_empty() {
        return split_units(cx, s, limit);
    }
    let places = MatchPositions::find(cx, s, sep, limit)?;
    let count = (places.starts.len() + 1).min(limit);
    charge_list(cx, count)?;
    let parts = cx.list_with_room(count)?;
    let mut from = 0;
    let ends = places.starts.iter().copied().chain([places.end(s)]);
    for to in ends.take(count) {
        cx.work(16)?;
        let part = places.piece(cx, s, from, to)?;
        cx.heap.push(parts, Val::Str(part))?;
        from = to + places.len;
    }
    Ok(Val::Arr(parts))
}

/// The UTF-16 units of a string, each as a string.
fn split_units(cx: &mut Cx<'_>, s: Str, limit: usize) -> Result<Val, Fault> {
    let count = s.units().min(limit);
    charge_list(cx, count)?;
    let parts = cx.list_with_room(count)?;
    if s.is_ascii() {
        for i in 0..count {
            cx.work(4)?;
            cx.heap.push(parts, Val::Str(s.view(i, i + 1, 1)))?;
        }
        return Ok(Val::Arr(parts));
    }
    cx.pay_metered(READ.price(Sizes::units(taken_apart(s.units()))))?;
    let places = MatchPositions {
        starts: Vec::new(),
        len: 0,
        units: Some(utf16(cx, s)?),
    };
    for i in 0..count {
        cx.work(16)?;
        let part = places.piece(cx, s, i, i + 1)?;
        cx.heap.push(parts, Val::Str(part))?;
    }
    Ok(Val::Arr(parts))
}
