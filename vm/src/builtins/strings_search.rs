//! String methods that look for text: search, split, replace
//! (ECMA-262 §22.1.3). The pattern is always literal text (D39): `match`,
//! `matchAll` and `search` do not build regular expressions.
//!
//! Results are sized and charged before they are built, so that a small
//! program cannot make a huge one for little.

use super::strings_cut::{buffer, byte_view, cut};
use super::{StrFn, arg, call_builtin_value, charge_list, charge_text, is_callable};
use crate::coerce::{to_number, to_str};
use crate::heap::{Oom, Str, Val};
use crate::native::{Cx, Fault};
use a99_ecma::{arith::to_uint32, text_index, wtf8};

/// Code of the methods in this file.
pub(super) const METHODS: &[(&str, StrFn)] = &[
    ("endsWith", ends_with),
    ("includes", includes),
    ("indexOf", index_of),
    ("lastIndexOf", last_index_of),
    ("match", match_),
    ("matchAll", match_all),
    ("replace", |cx, s, args| replace(cx, s, args, 1)),
    ("replaceAll", |cx, s, args| replace(cx, s, args, usize::MAX)),
    ("search", search),
    ("split", split),
    ("startsWith", starts_with),
];

/// The needle of a search.
fn needle(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Str, Fault> {
    let needle = to_str(cx, arg(args, 0))?;
    // Both texts are paid; looking through them takes time too.
    cx.work((s.units() / 16) as i64)?;
    Ok(needle)
}

/// Where `needle` is found at or after the unit `from`.
fn find_from(cx: &Cx<'_>, s: Str, needle: Str, from: usize) -> Option<usize> {
    if s.is_ascii() {
        return if needle.is_ascii() && from <= s.units() {
            wtf8::find(cx.bytes(s), cx.bytes(needle), from)
        } else {
            None
        };
    }
    wtf8::index_of(cx.bytes(s), cx.bytes(needle), from)
}

fn index_of(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let from = text_index::clamp(to_number(cx, arg(args, 1))?, s.units());
    let found = find_from(cx, s, needle, from);
    Ok(Val::Num(found.map_or(-1.0, |at| at as f64)))
}

fn last_index_of(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let last = text_index::last_start(to_number(cx, arg(args, 1))?, s.units());
    let found = wtf8::last_index_of(cx.bytes(s), cx.bytes(needle), last);
    Ok(Val::Num(found.map_or(-1.0, |at| at as f64)))
}

fn includes(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let needle = needle(cx, s, args)?;
    let from = text_index::clamp(to_number(cx, arg(args, 1))?, s.units());
    Ok(Val::Bool(find_from(cx, s, needle, from).is_some()))
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

/// Whether `needle` stands at the unit `from`.
fn is_at(cx: &mut Cx<'_>, s: Str, needle: Str, from: usize) -> Result<Val, Fault> {
    if from + needle.units() > s.units() {
        return Ok(Val::Bool(false));
    }
    let there = cut(cx, s, from..from + needle.units())?;
    Ok(Val::Bool(cx.bytes(there) == cx.bytes(needle)))
}

fn search(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let pattern = pattern(cx, args)?;
    Ok(Val::Num(
        find_from(cx, s, pattern, 0).map_or(-1.0, |at| at as f64),
    ))
}

/// The pattern of `match` and its kin; left out it matches everywhere.
fn pattern(cx: &mut Cx<'_>, args: &[Val]) -> Result<Str, Fault> {
    match arg(args, 0) {
        v if v.is_undefined() => Ok(Str::EMPTY),
        v => to_str(cx, v),
    }
}

/// An array with the text that was found, or `null`.
fn match_(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let pattern = pattern(cx, args)?;
    match find_from(cx, s, pattern, 0) {
        Some(_) => {
            charge_list(cx, 1)?;
            Ok(Val::Arr(cx.heap.alloc_arr(&[Val::Str(pattern)])?))
        }
        None => Ok(Val::Null),
    }
}

/// An array of such arrays, one for each place.
fn match_all(cx: &mut Cx<'_>, s: Str, args: &[Val]) -> Result<Val, Fault> {
    let pattern = pattern(cx, args)?;
    let places = Places::find(cx, s, pattern, usize::MAX)?;
    charge_list(cx, places.starts.len())?;
    let all = cx.heap.alloc_arr_cap(places.starts.len())?;
    for _ in 0..places.starts.len() {
        let one = cx.heap.alloc_arr(&[Val::Str(pattern)])?;
        cx.heap.push(all, Val::Arr(one))?;
    }
    Ok(Val::Arr(all))
}

/// The places, in order and not overlapping, where a text occurs in another.
struct Places {
    /// Byte offsets, or offsets into `units`.
    starts: Vec<usize>,
    /// Length of the needle in the same measure.
    len: usize,
    /// The UTF-16 form of the haystack, where a place may split a surrogate
    /// pair.
    units: Option<Vec<u16>>,
}

impl Places {
    /// Finds at most `max` places.
    fn find(cx: &mut Cx<'_>, s: Str, needle: Str, max: usize) -> Result<Places, Fault> {
        cx.work((s.units() / 16) as i64)?;
        let mut starts = Vec::new();
        let edge = needle.is_empty() || wtf8::has_surrogate_edge(cx.bytes(needle));
        if edge && !s.is_ascii() {
            let units = utf16(cx, s)?;
            let needle = utf16(cx, needle)?;
            find_units(cx, &units, &needle, max, &mut starts)?;
            return Ok(Places {
                starts,
                len: needle.len(),
                units: Some(units),
            });
        }
        let mut from = 0;
        while starts.len() < max
            && let Some(at) = wtf8::find(cx.bytes(s), cx.bytes(needle), from)
        {
            push(cx, &mut starts, at)?;
            from = at + needle.len_bytes().max(1);
        }
        Ok(Places {
            starts,
            len: needle.len_bytes(),
            units: None,
        })
    }

    /// The end of the haystack.
    fn end(&self, s: Str) -> usize {
        self.units.as_ref().map_or(s.len_bytes(), Vec::len)
    }

    /// The text between two offsets.
    fn piece(&self, cx: &mut Cx<'_>, s: Str, from: usize, to: usize) -> Result<Str, Fault> {
        match &self.units {
            None => Ok(byte_view(cx, s, from, to)),
            Some(units) => {
                cx.heap.check((to - from).saturating_mul(3))?;
                Ok(cx.heap.alloc_str(&wtf8::from_utf16(&units[from..to]))?)
            }
        }
    }

    /// The length of a part in UTF-16 units.
    fn units_between(&self, cx: &Cx<'_>, s: Str, from: usize, to: usize) -> usize {
        match &self.units {
            Some(_) => to - from,
            None if s.is_ascii() => to - from,
            None => wtf8::utf16_len(&cx.bytes(s)[from..to]),
        }
    }

    /// Appends the text between two offsets.
    fn copy(&self, cx: &Cx<'_>, s: Str, from: usize, to: usize, out: &mut Vec<u8>) {
        match &self.units {
            None => wtf8::concat(out, &cx.bytes(s)[from..to]),
            Some(units) => {
                for unit in &units[from..to] {
                    wtf8::push_code_unit(out, *unit);
                }
            }
        }
    }
}

/// Appends to a temporary list, counted against the ceiling as it grows.
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

fn utf16(cx: &Cx<'_>, s: Str) -> Result<Vec<u16>, Fault> {
    let wanted = s.units() * size_of::<u16>();
    cx.heap.check(wanted)?;
    let mut units = Vec::new();
    units
        .try_reserve_exact(s.units())
        .map_err(|_| Oom { wanted })?;
    units.extend(wtf8::units(cx.bytes(s)));
    Ok(units)
}

/// Knuth, Morris and Pratt's search, linear whatever the texts are.
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
    // border[i]: length of the longest border of needle[..=i].
    cx.heap.check(needle.len() * size_of::<usize>())?;
    let mut border = vec![0; needle.len()];
    let mut k = 0;
    for i in 1..needle.len() {
        while k > 0 && needle[i] != needle[k] {
            k = border[k - 1];
        }
        k += usize::from(needle[i] == needle[k]);
        border[i] = k;
    }
    k = 0;
    for (i, unit) in text.iter().enumerate() {
        if starts.len() == max {
            break;
        }
        while k > 0 && *unit != needle[k] {
            k = border[k - 1];
        }
        k += usize::from(*unit == needle[k]);
        if k == needle.len() {
            push(cx, starts, i + 1 - k)?;
            k = 0;
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
        return Ok(Val::Arr(cx.heap.alloc_arr(parts)?));
    };
    if sep.is_empty() {
        return split_units(cx, s, limit);
    }
    let places = Places::find(cx, s, sep, limit)?;
    let count = (places.starts.len() + 1).min(limit);
    charge_list(cx, count)?;
    let parts = cx.heap.alloc_arr_cap(count)?;
    let mut from = 0;
    let ends = places.starts.iter().copied().chain([places.end(s)]);
    for to in ends.take(count) {
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
    let parts = cx.heap.alloc_arr_cap(count)?;
    if s.is_ascii() {
        for i in 0..count {
            cx.heap.push(parts, Val::Str(s.view(i, i + 1, 1)))?;
        }
        return Ok(Val::Arr(parts));
    }
    let places = Places {
        starts: Vec::new(),
        len: 0,
        units: Some(utf16(cx, s)?),
    };
    for i in 0..count {
        let part = places.piece(cx, s, i, i + 1)?;
        cx.heap.push(parts, Val::Str(part))?;
    }
    Ok(Val::Arr(parts))
}

/// A piece of a replacement text (ECMA-262 §22.1.3.19.1 GetSubstitution; with
/// a literal pattern there are no captures).
#[derive(Copy, Clone)]
enum Piece {
    /// These bytes of the replacement.
    Literal(usize, usize),
    /// `$&`
    Match,
    /// `` $` ``
    Before,
    /// `$'`
    After,
}

/// Takes a replacement text apart.
fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut list = Vec::new();
    let (mut from, mut i) = (0, 0);
    while i + 1 < text.len() {
        let piece = match (text[i], text[i + 1]) {
            // One of the two dollars stays.
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
    // A list entry for each `$` of the replacement at most.
    let dollars = cx.bytes(with).iter().filter(|b| **b == b'$').count();
    cx.heap
        .check(dollars.saturating_mul(2 * size_of::<Piece>()))?;
    let pieces = pieces(cx.bytes(with));
    let places = Places::find(cx, s, pattern, max)?;
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
        unit += places.units_between(cx, s, counted, *at);
        counted = *at;
        units = units
            .saturating_sub(pattern.units())
            .saturating_add(literal_units)
            .saturating_add(pattern.units().saturating_mul(matches))
            .saturating_add(unit.saturating_mul(befores))
            .saturating_add((s.units() - unit - pattern.units()).saturating_mul(afters));
        // Kind by kind, not piece by piece: nothing of this is paid yet.
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
    // Of a haystack in UTF-16 the bytes are not known, so the most is taken.
    let scale = if places.units.is_some() { 3 } else { 1 };
    let bytes = size.0.saturating_mul(scale).saturating_add(size.1);
    charge_text(cx, units)?;
    let mut out = buffer(cx, bytes)?;
    let mut from = 0;
    for at in &places.starts {
        places.copy(cx, s, from, *at, &mut out);
        for piece in &pieces {
            match *piece {
                Piece::Literal(a, b) => wtf8::concat(&mut out, &cx.bytes(with)[a..b]),
                Piece::Match => places.copy(cx, s, *at, at + places.len, &mut out),
                Piece::Before => places.copy(cx, s, 0, *at, &mut out),
                Piece::After => places.copy(cx, s, at + places.len, end, &mut out),
            }
        }
        cx.work(1 + pieces.len() as i64)?;
        from = at + places.len;
    }
    places.copy(cx, s, from, end, &mut out);
    cx.str(&out)
}

/// Replacement by what a builtin function gives for each place.
fn replace_by_call(
    cx: &mut Cx<'_>,
    s: Str,
    pattern: Str,
    call: Val,
    max: usize,
) -> Result<Val, Fault> {
    let places = Places::find(cx, s, pattern, max)?;
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
        unit += places.units_between(cx, s, counted, *at);
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
        places.copy(cx, s, from, *at, &mut out);
        wtf8::concat(&mut out, cx.bytes(text));
        from = at + places.len;
    }
    places.copy(cx, s, from, places.end(s), &mut out);
    cx.str(&out)
}
