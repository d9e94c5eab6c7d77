//! Sets of units in regular expressions, with the flag `u` of code points.

use std::collections::BTreeMap;
use std::sync::Mutex;

pub(super) const DIGITS: &[(u32, u32)] = &[(0x30, 0x39)];
pub(super) const WORDS: &[(u32, u32)] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
pub(super) const SPACES: &[(u32, u32)] = &[
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
/// Letters whose other case is in `WORDS`, with the flags `i` and `u`.
pub(super) const WORDS_FOLDED: &[(u32, u32)] = &[(0x17F, 0x17F), (0x212A, 0x212A)];
pub(super) const LINE_ENDS: &[(u32, u32)] = &[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

/// A set of units.
pub(super) struct Set {
    pub(super) ranges: Vec<(u32, u32)>,
    pub(super) negated: bool,
    pub(super) folds: bool,
    /// A class in brackets, negated after case folding.
    pub(super) class: bool,
    pub(super) unicode: bool,
}

impl Set {
    pub(super) fn one(unit: u32) -> Set {
        Set::of(vec![(unit, unit)], false)
    }

    pub(super) fn of(ranges: Vec<(u32, u32)>, negated: bool) -> Set {
        Set {
            ranges,
            negated,
            folds: false,
            class: false,
            unicode: false,
        }
    }

    /// True if a unit is in the set, without case folding.
    pub(super) fn lists(&self, unit: u32) -> bool {
        let listed = self.ranges.iter().any(|(a, b)| (*a..=*b).contains(&unit));
        listed != self.negated
    }

    pub(super) fn has(&self, unit: u32) -> bool {
        if !self.folds {
            return self.lists(unit);
        }
        let mut alike = super::regex_run::alike(unit, self.unicode).into_iter();
        match self.class && self.negated {
            true => alike.all(|other| self.lists(other)),
            false => alike.any(|other| self.lists(other)),
        }
    }
}

pub(super) enum Member {
    Unit(u32),
    Set(Set),
}

impl Member {
    /// Its ranges, of units up to `most`.
    pub(super) fn spread(&self, most: u32) -> Vec<(u32, u32)> {
        match self {
            Member::Unit(unit) => vec![(*unit, *unit)],
            Member::Set(set) if !set.negated => set.ranges.clone(),
            // The gaps between the ranges of the set.
            Member::Set(set) => {
                let mut gaps = Vec::new();
                let mut from = 0;
                for (a, b) in &set.ranges {
                    if from < *a {
                        gaps.push((from, a - 1));
                    }
                    from = b + 1;
                }
                if from <= most {
                    gaps.push((from, most));
                }
                gaps
            }
        }
    }
}

/// The code points of a Unicode property, by the crate `regex`, whose names are those of
/// JavaScript where random programs write some.
pub(super) fn property(name: &str) -> Option<Vec<(u32, u32)>> {
    static KNOWN: Mutex<BTreeMap<String, Vec<(u32, u32)>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().ok()?;
    if let Some(found) = known.get(name) {
        return Some(found.clone());
    }
    let pattern = regex::Regex::new(&format!("^\\p{{{name}}}$")).ok()?;
    let has = |point: u32| match char::from_u32(point) {
        Some(c) => pattern.is_match(c.encode_utf8(&mut [0; 4])),
        None => matches!(name, "C" | "Cs" | "Other" | "Any" | "Assigned"),
    };
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for point in (0..=0x10_FFFF).filter(|point| has(*point)) {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == point => *end = point,
            _ => ranges.push((point, point)),
        }
    }
    known.insert(name.to_owned(), ranges.clone());
    Some(ranges)
}
