//! Sets of units in patterns; with the flag `u` of code points.

use super::fold::Folded;
use std::borrow::Cow;

/// Sorted ranges of units.
pub(super) type Ranges = Cow<'static, [(u32, u32)]>;

type Table = &'static [(u32, u32)];

/// `\d`
pub(super) const DIGIT: Table = &[(0x30, 0x39)];
/// `\w`
pub(super) const WORD: Table = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
/// `\w` with the flags `i` and `u`: also the letters whose other case is in it.
pub(super) const WORD_FOLDED: Table = &[
    (0x30, 0x39),
    (0x41, 0x5A),
    (0x5F, 0x5F),
    (0x61, 0x7A),
    (0x17F, 0x17F),
    (0x212A, 0x212A),
];
/// `\s`
pub(super) const SPACE: Table = &[
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];
/// Line terminators.
pub(super) const LINE_END: Table = &[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

/// Whether `\w` matches a unit.
pub(super) fn is_word(unit: u32, folds: bool) -> bool {
    let word = if folds { WORD_FOLDED } else { WORD };
    word.iter().any(|(from, to)| (*from..=*to).contains(&unit))
}

/// A set of units: sorted disjoint ranges, and the ASCII ones as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    ranges: Vec<(u32, u32)>,
    ascii: u128,
    /// Whether the set contains all units except those equivalent to one of the ranges.
    negated_folded: bool,
    /// Whether it may have units beyond ASCII.
    others: bool,
}

impl Set {
    /// The set of these ranges, or its complement; units are at most `most`.
    pub(super) fn new(mut ranges: Vec<(u32, u32)>, negated: bool, most: u32) -> Set {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match merged.last_mut() {
                Some((_, end)) if from <= end.saturating_add(1) => *end = to.max(*end),
                _ => merged.push((from, to)),
            }
        }
        let ranges = if negated {
            outside(&merged, most)
        } else {
            merged
        };
        let mut ascii = 0;
        for (from, to) in &ranges {
            for unit in *from..=(*to).min(0x7F) {
                ascii |= 1 << unit;
            }
        }
        let others = ranges.last().is_some_and(|(_, to)| *to >= 0x80);
        Set {
            ranges,
            ascii,
            negated_folded: false,
            others,
        }
    }

    /// The case-insensitive set of these ranges, or its complement; query it with
    /// [`Set::has_folded`] only.
    pub(super) fn folded(ranges: Vec<(u32, u32)>, negated: bool, most: u32) -> Set {
        let mut set = Set::new(ranges, false, most);
        set.negated_folded = negated;
        set.ascii = (0..0x80)
            .filter(|unit| set.has_plain_or_folded(&Folded::of(*unit, most > u16::MAX.into())))
            .fold(0, |ascii, unit| ascii | 1 << unit);
        set.others = match (negated, set.ranges.last()) {
            (true, Some((from, to))) => *from > 0x80 || *to < most,
            (true, None) => true,
            // With the flag `u` two letters beyond ASCII are alike to these.
            (false, _) if most > u16::MAX.into() => set.others || set.has(0x4B) || set.has(0x53),
            (false, _) => set.others,
        };
        set
    }

    fn has_plain_or_folded(&self, units: &Folded) -> bool {
        units.iter().any(|unit| self.listed(*unit)) != self.negated_folded
    }

    /// Whether a case-insensitive set contains a unit, given with its equivalents.
    #[inline]
    pub(super) fn has_folded(&self, unit: u32, alike: &Folded) -> bool {
        match unit {
            0..0x80 => self.ascii >> unit & 1 == 1,
            _ => self.has_plain_or_folded(alike),
        }
    }

    fn listed(&self, unit: u32) -> bool {
        let at = self.ranges.partition_point(|(_, to)| *to < unit);
        self.ranges.get(at).is_some_and(|(from, _)| *from <= unit)
    }

    #[inline]
    pub(super) fn has(&self, unit: u32) -> bool {
        if unit < 0x80 {
            return self.ascii >> unit & 1 == 1;
        }
        self.listed(unit)
    }

    /// The ASCII units as bits.
    pub(super) fn ascii(&self) -> u128 {
        self.ascii
    }

    /// Whether the set has units beyond ASCII.
    pub(super) fn has_others(&self) -> bool {
        self.others
    }
}

/// The complement of sorted ranges of units up to `most`.
pub(super) fn outside(ranges: &[(u32, u32)], most: u32) -> Vec<(u32, u32)> {
    let mut out = Vec::with_capacity(ranges.len() + 1);
    let mut next = Some(0);
    for (from, to) in ranges {
        if let Some(start) = next
            && start < *from
        {
            out.push((start, from - 1));
        }
        next = (*to < most).then(|| to + 1);
    }
    out.extend(next.map(|start| (start, most)));
    out
}

/// A member of a class.
pub(super) enum ClassAtom {
    /// One unit.
    Unit(u32),
    /// The units of some ranges, or their complement.
    Set(Ranges, bool),
}

impl ClassAtom {
    /// Appends its ranges.
    pub(super) fn push(self, out: &mut Vec<(u32, u32)>, most: u32) {
        match self {
            ClassAtom::Unit(unit) => out.push((unit, unit)),
            ClassAtom::Set(ranges, false) => out.extend_from_slice(&ranges),
            ClassAtom::Set(ranges, true) => out.extend(outside(&ranges, most)),
        }
    }
}
