//! Sets of UTF-16 units in patterns.

use super::fold::{self, Folded};

/// Sorted ranges of units.
pub(super) type Ranges = &'static [(u16, u16)];

/// `\d`
pub(super) const DIGIT: Ranges = &[(0x30, 0x39)];
/// `\w`
pub(super) const WORD: Ranges = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
/// `\s`
pub(super) const SPACE: Ranges = &[
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
pub(super) const LINE_END: Ranges = &[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

/// Whether `\w` matches a unit.
pub(super) fn is_word(unit: u16) -> bool {
    WORD.iter().any(|(from, to)| (*from..=*to).contains(&unit))
}

/// A set of units: sorted disjoint ranges, and the ASCII ones as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    ranges: Vec<(u16, u16)>,
    ascii: u128,
    /// Whether the set contains all units except those equivalent to one of the ranges.
    negated_folded: bool,
}

impl Set {
    /// The set of these ranges, or its complement.
    pub(super) fn new(mut ranges: Vec<(u16, u16)>, negated: bool) -> Set {
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
        for (from, to) in ranges {
            match merged.last_mut() {
                Some((_, end)) if from <= end.saturating_add(1) => *end = to.max(*end),
                _ => merged.push((from, to)),
            }
        }
        let ranges = if negated { outside(&merged) } else { merged };
        let mut ascii = 0;
        for (from, to) in &ranges {
            for unit in *from..=(*to).min(0x7F) {
                ascii |= 1 << unit;
            }
        }
        Set {
            ranges,
            ascii,
            negated_folded: false,
        }
    }

    /// The case-insensitive set of these ranges, or its complement; query it with
    /// [`Set::has_folded`] only.
    pub(super) fn folded(ranges: Vec<(u16, u16)>, negated: bool) -> Set {
        let mut set = Set::new(ranges, false);
        set.negated_folded = negated;
        set.ascii = (0..0x80)
            .filter(|unit| set.has_plain_or_folded(&fold::folded(*unit)))
            .fold(0, |ascii, unit| ascii | 1 << unit);
        set
    }

    fn has_plain_or_folded(&self, units: &Folded) -> bool {
        units.iter().any(|unit| self.listed(*unit)) != self.negated_folded
    }

    /// Whether a case-insensitive set contains a unit, given with its equivalents.
    #[inline]
    pub(super) fn has_folded(&self, unit: u16, alike: &Folded) -> bool {
        match unit {
            0..0x80 => self.ascii >> unit & 1 == 1,
            _ => self.has_plain_or_folded(alike),
        }
    }

    fn listed(&self, unit: u16) -> bool {
        let at = self.ranges.partition_point(|(_, to)| *to < unit);
        self.ranges.get(at).is_some_and(|(from, _)| *from <= unit)
    }

    #[inline]
    pub(super) fn has(&self, unit: u16) -> bool {
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
        if self.negated_folded {
            let all = self.ranges.last();
            return !all.is_some_and(|(from, to)| *from <= 0x80 && *to == u16::MAX);
        }
        self.ranges.last().is_some_and(|(_, to)| *to >= 0x80)
    }
}

/// The complement of sorted ranges.
pub(super) fn outside(ranges: &[(u16, u16)]) -> Vec<(u16, u16)> {
    let mut out = Vec::with_capacity(ranges.len() + 1);
    let mut next = Some(0);
    for (from, to) in ranges {
        if let Some(start) = next
            && start < *from
        {
            out.push((start, from - 1));
        }
        next = to.checked_add(1);
    }
    out.extend(next.map(|start| (start, u16::MAX)));
    out
}

/// A member of a class.
#[derive(Copy, Clone)]
pub(super) enum ClassAtom {
    /// One unit.
    Unit(u16),
    /// The units of some ranges, or their complement.
    Set(Ranges, bool),
}

impl ClassAtom {
    /// Appends its ranges.
    pub(super) fn push(self, out: &mut Vec<(u16, u16)>) {
        match self {
            ClassAtom::Unit(unit) => out.push((unit, unit)),
            ClassAtom::Set(ranges, false) => out.extend_from_slice(ranges),
            ClassAtom::Set(ranges, true) => out.extend(outside(ranges)),
        }
    }
}
