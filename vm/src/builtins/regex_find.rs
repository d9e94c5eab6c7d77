//! Regular expression search: matches with groups, replacement and splitting (D72). A match
//! takes linear time, except by a pattern that looks around or refers back to groups (D125).
//!
//! Patterns are parsed as by [`crate::regex`], with flags. A search pays for each unit that
//! it reads, up to the farthest that its result depends on. Units at which no match can begin
//! are cheap if no thread of the matcher is active. The total work of a call is bounded too,
//! since the flat model has no prices.

use super::strings_cut::cut;
use super::strings_search::utf16;
use super::{charge_list, regex_template};
use crate::convert::temp;
use crate::heap::{KeyId, Str, Val};
use crate::native::{Cx, Fault, Reading};
use crate::regex::captures::{NONE, Program};
use crate::regex::machine::{Halt, Machine, Units};
use crate::regex::parse::Flags;
use crate::regex::{MAX_PATTERN_UNITS, Recent, parsed, points};
use a99_core::costs::{
    READ, REGEX_PART, REGEX_POSITION, REGEX_PROPERTY, Sizes, WRITTEN, regex_found, regex_ways,
    regex_weight, taken_apart,
};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum text length in UTF-16 units.
pub const MAX_TEXT_UNITS: usize = 1_000_000;

/// Maximum work of one call, as units times the weight of each.
const MAX_WEIGHT: u64 = 160_000_000;

/// A pattern and its flags, as texts of the heap.
#[derive(Copy, Clone, Debug)]
pub struct Pattern {
    /// The text of the pattern.
    pub source: Str,
    /// The flags, in any order.
    pub flags: Str,
}

/// A compiled pattern.
#[derive(Debug)]
struct Compiled {
    program: Program,
    /// Positions that are paid for.
    size: u64,
    /// The weight of a unit.
    weight: u64,
    groups: u32,
    names: Vec<(Vec<u8>, u32)>,
    modes: Modes,
}

/// How matches follow each other.
#[derive(Copy, Clone, Debug, Default)]
struct Modes {
    /// `g`
    global: bool,
    /// `y`
    sticky: bool,
}

/// Cache key: pattern and flags.
type CacheKey = (Box<[u8]>, Box<[u8]>);

thread_local! {
    static CACHE: RefCell<Recent<CacheKey, Rc<Compiled>>> = const { RefCell::new(Recent::new()) };
}

/// The matches to search for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Wanted {
    First,
    /// All, or only the first without the flag `g`.
    ByFlag,
    All,
    /// The borders of a split into at most this number of parts.
    Borders(usize),
}

/// The matches of a pattern in a text.
pub(super) struct Matches {
    compiled: Rc<Compiled>,
    /// Start and end of each match and of its groups, match by match.
    places: Vec<u32>,
    /// The units of a non-ASCII text.
    pub(super) units: Option<Vec<u16>>,
}

impl Matches {
    /// Start and end of each match and its groups.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.places.chunks_exact(self.compiled.program.slots)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() / self.compiled.program.slots
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> u32 {
        self.compiled.groups
    }

    /// The group with this name.
    pub(super) fn named(&self, name: &[u8]) -> Option<u32> {
        let names = &self.compiled.names;
        let found = names.iter().find(|(known, _)| known == name);
        found.map(|(_, group)| *group)
    }

    pub(super) fn has_names(&self) -> bool {
        !self.compiled.names.is_empty()
    }
}

/// Parses flags.
fn flags(text: &[u8]) -> Result<(Flags, Modes), String> {
    let (mut flags, mut modes) = (Flags::default(), Modes::default());
    for c in String::from_utf8_lossy(text).chars() {
        let flag = match c {
            'g' => &mut modes.global,
            'y' => &mut modes.sticky,
            'i' => &mut flags.ignore_case,
            'm' => &mut flags.multiline,
            's' => &mut flags.dot_all,
            'u' => &mut flags.unicode,
            other => {
                return Err(format!(
                    "Invalid regular expression flags: '{other}' is none of g, i, m, s, u and y"
                ));
            }
        };
        *flag = true;
    }
    Ok((flags, modes))
}

/// The compiled form of a pattern, after paying for it.
fn compiled(run: &mut Reading<'_>, pattern: Pattern) -> Result<Rc<Compiled>, Fault> {
    let heap = run.heap();
    let (source, flag_text) = (heap.bytes(pattern.source), heap.bytes(pattern.flags));
    let (flags, modes) = flags(flag_text).map_err(Fault::throw)?;
    let is = |key: &CacheKey| *key.0 == *source && *key.1 == *flag_text;
    if let Some(found) = CACHE.with_borrow_mut(|recent| recent.find(is)) {
        pay(run, found.size)?;
        return Ok(found);
    }
    let parsed = parsed(run, source, flags)?.map_err(Fault::throw)?;
    let (positions, groups) = (parsed.positions, parsed.groups);
    let size = positions + parsed.properties * REGEX_PROPERTY;
    pay(run, size)?;
    let names = parsed.names.iter();
    let names = names
        .map(|(name, group)| (name.clone().into_bytes(), *group))
        .collect();
    let program = Program::compile(run, parsed, flags)?;
    let new = Rc::new(Compiled {
        size,
        weight: regex_weight(
            positions,
            groups.into(),
            flags.ignore_case,
            program.has_turns,
        ),
        program,
        groups,
        names,
        modes,
    });
    let key = || (source.into(), flag_text.into());
    let len = new.program.len();
    CACHE.with_borrow_mut(|recent| recent.keep(key, new.clone(), len));
    Ok(new)
}

fn pay(run: &mut Reading<'_>, size: u64) -> Result<(), Fault> {
    run.pay_metered((size as i64).saturating_mul(REGEX_POSITION))
}

/// Checks, pays and searches.
fn matches(
    cx: &mut Cx<'_>,
    text: Str,
    pattern: Pattern,
    (wanted, from): (Wanted, Option<usize>),
) -> Result<Matches, Fault> {
    for (units, max, what) in [
        (pattern.source.units(), MAX_PATTERN_UNITS, "pattern"),
        (text.units(), MAX_TEXT_UNITS, "input"),
    ] {
        if units > max {
            return Err(Fault::throw(format!(
                "Regex {what} too long ({units} > {max})"
            )));
        }
    }
    // A search from an index on pays for the units that it passes.
    let whole = if from.is_none() { text.units() } else { 0 };
    let read = pattern.source.units() + pattern.flags.units() + whole;
    cx.charge(READ, Sizes::units(read))?;
    let from = from.unwrap_or(0);
    let compiled = compiled(&mut cx.reading(), pattern)?;
    let units = match text.is_ascii() {
        true => None,
        false => {
            cx.pay_metered(READ.price(Sizes::units(taken_apart(text.units()))))?;
            cx.heap.copy(text.units() * size_of::<u16>())?;
            Some(utf16(cx, text)?)
        }
    };
    let mut places = Vec::new();
    let unicode = compiled.program.unicode();
    let run = &mut cx.reading();
    match &units {
        Some(units) if unicode => {
            run.heap().check(units.len() * 2 * size_of::<u32>())?;
            run.work(units.len() as i64 * 4)?;
            let points = points(units.iter().copied());
            let mut starts = Vec::with_capacity(points.len() + 1);
            let mut start = 0;
            for point in &points {
                starts.push(start);
                start += 1 + u32::from(*point > u16::MAX.into());
            }
            starts.push(start);
            // An index within a character is that of the character.
            let after = starts.partition_point(|start| *start as usize <= from);
            let inside = after.saturating_sub(1) + from.saturating_sub(units.len());
            let len = points.len();
            collect(
                run,
                &compiled,
                (&points, len),
                (wanted, inside),
                &mut places,
            )?;
            for place in places.iter_mut().filter(|place| **place != NONE) {
                *place = starts[*place as usize];
            }
        }
        Some(units) => {
            let whole = (units, units.len());
            collect(run, &compiled, whole, (wanted, from), &mut places)?;
        }
        None => {
            let ascii = run.heap().bytes(text);
            let whole = (&ascii, ascii.len());
            collect(run, &compiled, whole, (wanted, from), &mut places)?;
        }
    }
    cx.heap.copy(places.capacity() * size_of::<u32>())?;
    Ok(Matches {
        compiled,
        places,
        units,
    })
}

/// Collects the requested matches.
fn collect(
    run: &mut Reading<'_>,
    compiled: &Compiled,
    (text, len): (&impl Units, usize),
    (wanted, mut from): (Wanted, usize),
    places: &mut Vec<u32>,
) -> Result<(), Fault> {
    let weight = compiled.weight;
    let price = regex_ways(weight);
    let mut machine = Machine::new(run, &compiled.program, (price, weight, MAX_WEIGHT))?;
    let one = match wanted {
        Wanted::First => true,
        Wanted::ByFlag => !compiled.modes.global,
        Wanted::All | Wanted::Borders(_) => false,
    };
    let borders = match wanted {
        Wanted::Borders(parts) => Some(parts),
        _ => None,
    };
    // A split looks for the next match.
    let sticky = compiled.modes.sticky && borders.is_none();
    let (mut last, mut found) = (0, 0);
    // An empty text has no border, but the pattern is still matched (ECMA-262 §22.2.6.14).
    let ends = |from: usize| match borders {
        Some(_) => from >= len && len > 0,
        None => from > len,
    };
    while !ends(from) && borders.is_none_or(|parts| found < parts || len == 0) {
        if !find(run, &mut machine, text, from, sticky)? {
            break;
        }
        let (start, end) = (machine.found[0] as usize, machine.found[1] as usize);
        if borders.is_some() && len > 0 {
            if start >= len {
                break;
            }
            // An empty match at the start of a part does not split.
            if end == last {
                from = start + 1;
                continue;
            }
        }
        temp::extend(run.heap(), places, &machine.found)?;
        found += 1;
        if one || len == 0 {
            break;
        }
        last = end;
        from = match borders {
            None if start == end => end + 1,
            _ => end,
        };
    }
    Ok(())
}

fn find(
    run: &mut Reading<'_>,
    machine: &mut Machine<'_>,
    text: &impl Units,
    from: usize,
    sticky: bool,
) -> Result<bool, Fault> {
    machine
        .find(run, text, from, sticky)
        .map_err(|halt| match halt {
            Halt::Fault(fault) => fault,
            Halt::TooCostly => Fault::throw(
                "Regex too costly: one call may look at 160000000 ways through its text",
            ),
        })
}

/// Runs a function with the copies outside the heap counted.
fn counted<T>(
    cx: &mut Cx<'_>,
    run: impl FnOnce(&mut Cx<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let before = cx.heap.copies();
    let done = run(cx);
    cx.heap.end_copies(before);
    done
}

/// The text of a group, `null` if it did not participate.
fn group(cx: &mut Cx<'_>, text: Str, places: &[u32], n: u32) -> Result<Val, Fault> {
    let at = 2 * n as usize;
    match places[at] {
        NONE => Ok(Val::Null),
        start => Ok(Val::Str(cut(
            cx,
            text,
            start as usize..places[at + 1] as usize,
        )?)),
    }
}

fn keys(cx: &mut Cx<'_>, matches: &Matches) -> Result<([KeyId; 4], Vec<KeyId>), Fault> {
    let own = [
        cx.heap.intern(b"match")?,
        cx.heap.intern(b"index")?,
        cx.heap.intern(b"groups")?,
        cx.heap.intern(b"named")?,
    ];
    let mut names = Vec::with_capacity(matches.compiled.names.len());
    for (name, _) in &matches.compiled.names {
        cx.work(16)?;
        names.push(cx.heap.intern(name)?);
    }
    Ok((own, names))
}

/// The value of a match.
fn shown(
    cx: &mut Cx<'_>,
    text: Str,
    matches: &Matches,
    places: &[u32],
    keys: &([KeyId; 4], Vec<KeyId>),
) -> Result<Val, Fault> {
    let groups = matches.groups();
    cx.work(64 + 16 * i64::from(groups))?;
    let whole = group(cx, text, places, 0)?;
    let list = cx.list_with_room(groups as usize)?;
    for n in 1..=groups {
        let part = group(cx, text, places, n)?;
        cx.heap.push(list, part)?;
    }
    let named: Vec<Val> = matches
        .compiled
        .names
        .iter()
        .map(|(_, n)| cx.heap.items(list)[*n as usize - 1])
        .collect();
    let named = cx.object(&keys.1, &named)?;
    let vals = [
        whole,
        Val::Num(f64::from(places[0])),
        Val::Arr(list),
        Val::Obj(named),
    ];
    Ok(Val::Obj(cx.object(&keys.0, &vals)?))
}

/// Pays for the values of matches.
fn pay_found(cx: &mut Cx<'_>, matches: &Matches) -> Result<(), Fault> {
    let (groups, names) = (matches.groups() as usize, matches.compiled.names.len());
    let elements = matches.len().saturating_mul(regex_found(groups, names));
    cx.charge(WRITTEN, Sizes::default().out_elements(elements))
}

/// The first match: its text, position, groups and named groups; `null` if there is no match.
///
/// # Errors
/// Fuel, memory, a stop. Text that is too long; a pattern that is too long, invalid, too
/// large; unknown flags; the work limit of a call.
pub fn find_first(cx: &mut Cx<'_>, text: Str, pattern: Pattern) -> Result<Val, Fault> {
    first(cx, text, pattern, None)
}

/// The first match at or after an index, in the form of [`find_first`].
///
/// # Errors
/// As of [`find_first`].
pub fn find_from(cx: &mut Cx<'_>, text: Str, pattern: Pattern, from: usize) -> Result<Val, Fault> {
    first(cx, text, pattern, Some(from))
}

fn first(cx: &mut Cx<'_>, text: Str, pattern: Pattern, from: Option<usize>) -> Result<Val, Fault> {
    counted(cx, |cx| {
        let found = matches(cx, text, pattern, (Wanted::First, from))?;
        pay_found(cx, &found)?;
        let keys = keys(cx, &found)?;
        match found.iter().next() {
            Some(places) => shown(cx, text, &found, places, &keys),
            None => Ok(Val::Null),
        }
    })
}

/// All matches in the form of [`find_first`].
///
/// # Errors
/// As of [`find_first`].
pub fn find_all(cx: &mut Cx<'_>, text: Str, pattern: Pattern) -> Result<Val, Fault> {
    counted(cx, |cx| {
        let found = matches(cx, text, pattern, (Wanted::All, None))?;
        pay_found(cx, &found)?;
        let keys = keys(cx, &found)?;
        let list = cx.list_with_room(found.len())?;
        for places in found.iter() {
            let value = shown(cx, text, &found, places, &keys)?;
            cx.heap.push(list, value)?;
        }
        Ok(Val::Arr(list))
    })
}

/// The parts between matches, each followed by the groups of the match after it; at most
/// `limit`.
///
/// # Errors
/// As of [`find_first`].
pub fn split(cx: &mut Cx<'_>, text: Str, pattern: Pattern, limit: usize) -> Result<Val, Fault> {
    counted(cx, |cx| {
        let found = matches(cx, text, pattern, (Wanted::Borders(limit), None))?;
        let per_match = 1 + found.groups() as usize;
        let all = match text.is_empty() && found.len() > 0 {
            true => 0,
            false => found.len().saturating_mul(per_match).saturating_add(1),
        };
        let count = all.min(limit);
        charge_list(cx, count.saturating_mul(REGEX_PART))?;
        let list = cx.list_with_room(count)?;
        let mut from = 0;
        for places in found.iter() {
            for n in 0..per_match as u32 {
                if cx.heap.len(list) == count {
                    return Ok(Val::Arr(list));
                }
                cx.work(16)?;
                let part = match n {
                    0 => Val::Str(cut(cx, text, from..places[0] as usize)?),
                    n => group(cx, text, places, n)?,
                };
                cx.heap.push(list, part)?;
            }
            from = places[1] as usize;
        }
        if cx.heap.len(list) < count {
            let rest = cut(cx, text, from..text.units())?;
            cx.heap.push(list, Val::Str(rest))?;
        }
        Ok(Val::Arr(list))
    })
}

/// Replaces matches in the text: all of them or the first, or by the flag `g`.
///
/// # Errors
/// As of [`find_first`].
pub fn replace(
    cx: &mut Cx<'_>,
    text: Str,
    pattern: Pattern,
    with: Str,
    all: Option<bool>,
) -> Result<Val, Fault> {
    let wanted = match all {
        None => Wanted::ByFlag,
        Some(true) => Wanted::All,
        Some(false) => Wanted::First,
    };
    counted(cx, |cx| {
        cx.charge(READ, Sizes::units(with.units()))?;
        let found = matches(cx, text, pattern, (wanted, None))?;
        regex_template::write(cx, text, &found, with)
    })
}
