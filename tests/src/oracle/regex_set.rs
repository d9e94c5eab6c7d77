//! Sets of units in regular expressions.

pub(super) const DIGITS: &[(u16, u16)] = &[(0x30, 0x39)];
pub(super) const WORDS: &[(u16, u16)] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
pub(super) const SPACES: &[(u16, u16)] = &[
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
pub(super) const LINE_ENDS: &[(u16, u16)] = &[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

/// A set of units.
pub(super) struct Set {
    pub(super) ranges: Vec<(u16, u16)>,
    pub(super) negated: bool,
    pub(super) folds: bool,
    /// A class in brackets, negated after case folding.
    pub(super) class: bool,
}

impl Set {
    pub(super) fn one(unit: u16) -> Set {
        Set::of(vec![(unit, unit)], false)
    }

    pub(super) fn of(ranges: Vec<(u16, u16)>, negated: bool) -> Set {
        Set {
            ranges,
            negated,
            folds: false,
            class: false,
        }
    }

    /// True if a unit is in the set, without case folding.
    pub(super) fn lists(&self, unit: u16) -> bool {
        let listed = self.ranges.iter().any(|(a, b)| (*a..=*b).contains(&unit));
        listed != self.negated
    }

    pub(super) fn has(&self, unit: u16) -> bool {
        if !self.folds {
            return self.lists(unit);
        }
        let mut alike = super::regex_find::alike(unit);
        match self.class && self.negated {
            true => alike.all(|other| self.lists(other)),
            false => alike.any(|other| self.lists(other)),
        }
    }
}

pub(super) enum Member {
    Unit(u16),
    Set(Set),
}

impl Member {
    pub(super) fn spread(&self) -> Vec<(u16, u16)> {
        match self {
            Member::Unit(unit) => vec![(*unit, *unit)],
            Member::Set(set) if !set.negated => set.ranges.clone(),
            // The gaps between the ranges of the set.
            Member::Set(set) => {
                let mut gaps = Vec::new();
                let mut from = 0u32;
                for (a, b) in &set.ranges {
                    if from < u32::from(*a) {
                        gaps.push((from as u16, a - 1));
                    }
                    from = u32::from(*b) + 1;
                }
                if from <= 0xFFFF {
                    gaps.push((from as u16, 0xFFFF));
                }
                gaps
            }
        }
    }
}
