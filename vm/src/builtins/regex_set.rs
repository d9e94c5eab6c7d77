//! Sets of UTF-16 units in patterns.

/// A set of units: sorted ranges that do not touch, and the ASCII ones as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    ranges: Vec<(u16, u16)>,
    ascii: u128,
}

impl Set {
    /// The set of these ranges, or of all units outside of them.
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
        Set { ranges, ascii }
    }

    /// Whether a unit is in it.
    #[inline]
    pub(super) fn has(&self, unit: u16) -> bool {
        if unit < 0x80 {
            return self.ascii >> unit & 1 == 1;
        }
        let at = self.ranges.partition_point(|(_, to)| *to < unit);
        self.ranges.get(at).is_some_and(|(from, _)| *from <= unit)
    }

    /// The ASCII units in it as bits.
    pub(super) fn ascii(&self) -> u128 {
        self.ascii
    }

    /// Whether it has units beyond ASCII.
    pub(super) fn has_others(&self) -> bool {
        self.ranges.last().is_some_and(|(_, to)| *to >= 0x80)
    }
}

/// The ranges between and around sorted ones.
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
