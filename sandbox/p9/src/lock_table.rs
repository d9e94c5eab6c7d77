//! Range lock table: the ranges of one file that the guest's processes hold, and their
//! union, the strongest lock at each byte.
//!
//! This module does not access the host.

/// Kind of a lock, weaker first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(super) enum LockKind {
    /// Others may also hold a shared lock.
    Shared,
    /// Excludes all other locks.
    Exclusive,
}

/// A byte range of a file; `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub start: u64,
    pub end: u64,
}

/// End of an unbounded range: beyond the last byte a file can have.
pub(super) const OPEN_END: u64 = 1 << 63;

impl Range {
    /// Converts a range of a message, where length 0 means unbounded.
    pub(crate) fn new(start: u64, length: u64) -> Option<Self> {
        let end = match length {
            0 => OPEN_END,
            length => start.checked_add(length)?,
        };
        (start < end && end <= OPEN_END).then_some(Self { start, end })
    }

    /// Length in the form of messages.
    pub(crate) fn length(self) -> u64 {
        match self.end {
            OPEN_END => 0,
            end => end - self.start,
        }
    }

    /// The whole file.
    pub(crate) const ALL: Self = Self {
        start: 0,
        end: OPEN_END,
    };

    fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// A range lock that a guest process holds through a fid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RangeLock {
    pub range: Range,
    pub kind: LockKind,
    pub process: u32,
    pub fid: u32,
}

/// A change to make on the host: a range whose lock kind changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub range: Range,
    pub from: Option<LockKind>,
    pub to: Option<LockKind>,
}

/// Range locks of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LockTable {
    pub locks: Vec<RangeLock>,
}

impl LockTable {
    /// Replaces the locks of `process` in `range` by `lock`, or releases them.
    pub(crate) fn set(&mut self, process: u32, range: Range, lock: Option<(LockKind, u32)>) {
        self.clear(range, |lock| lock.process == process);
        if let Some((kind, fid)) = lock {
            self.locks.push(RangeLock {
                range,
                kind,
                process,
                fid,
            });
        }
    }

    /// Drops all locks taken through `fid`.
    pub(crate) fn release_fid(&mut self, fid: u32) {
        self.locks.retain(|lock| lock.fid != fid);
    }

    /// Removes `range` from the locks that `whose` selects.
    fn clear(&mut self, range: Range, whose: impl Fn(&RangeLock) -> bool) {
        let mut rest = Vec::new();
        self.locks.retain_mut(|lock| {
            if !whose(lock) || !lock.range.overlaps(range) {
                return true;
            }
            if lock.range.end > range.end {
                let after = Range {
                    start: range.end,
                    end: lock.range.end,
                };
                rest.push(RangeLock {
                    range: after,
                    ..*lock
                });
            }
            lock.range.end = range.start;
            lock.range.start < lock.range.end
        });
        self.locks.append(&mut rest);
    }

    /// The changes on the host from this table to `next`, which differ only in `window`.
    pub(crate) fn steps(&self, next: &Self, window: Range) -> Vec<Step> {
        // For each offset: how many locks of each kind begin, minus how many end.
        let mut events: Vec<(u64, usize, i64)> = Vec::new();
        for (which, table) in [self, next].into_iter().enumerate() {
            for lock in table
                .locks
                .iter()
                .filter(|lock| lock.range.overlaps(window))
            {
                let counter = 2 * which + lock.kind as usize;
                events.push((lock.range.start.max(window.start), counter, 1));
                events.push((lock.range.end.min(window.end), counter, -1));
            }
        }
        events.sort_unstable();
        let mut counts = [0i64; 4];
        let mut steps: Vec<Step> = Vec::new();
        let mut at = 0;
        for (offset, counter, change) in events {
            let (from, to) = (strongest(&counts[..2]), strongest(&counts[2..]));
            if offset > at && from != to {
                push_step(
                    &mut steps,
                    Range {
                        start: at,
                        end: offset,
                    },
                    from,
                    to,
                );
            }
            counts[counter] += change;
            at = offset;
        }
        steps
    }
}

/// The strongest of the counted locks.
fn strongest(counts: &[i64]) -> Option<LockKind> {
    match counts {
        [_, exclusive] if *exclusive > 0 => Some(LockKind::Exclusive),
        [shared, _] if *shared > 0 => Some(LockKind::Shared),
        _ => None,
    }
}

/// Appends a step, merged with the previous one if both make the same change.
fn push_step(steps: &mut Vec<Step>, range: Range, from: Option<LockKind>, to: Option<LockKind>) {
    if let Some(last) = steps.last_mut()
        && last.range.end == range.start
        && (last.from, last.to) == (from, to)
    {
        last.range.end = range.end;
        return;
    }
    steps.push(Step { range, from, to });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHARED: Option<LockKind> = Some(LockKind::Shared);
    const EXCLUSIVE: Option<LockKind> = Some(LockKind::Exclusive);

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    #[test]
    fn ranges_of_messages() {
        assert_eq!(Range::new(5, 0), Some(range(5, OPEN_END)));
        assert_eq!(Range::new(5, 3), Some(range(5, 8)));
        assert_eq!(Range::new(u64::MAX, 1), None);
        assert_eq!(Range::new(OPEN_END, 0), None);
        assert_eq!(range(5, OPEN_END).length(), 0);
    }

    #[test]
    fn a_lock_that_another_still_holds_stays() {
        let mut table = LockTable::default();
        table.set(1, range(0, 10), Some((LockKind::Shared, 7)));
        table.set(2, range(5, 15), Some((LockKind::Shared, 8)));
        let mut next = table.clone();
        next.set(1, range(0, OPEN_END), None);
        let gone = Step {
            range: range(0, 5),
            from: SHARED,
            to: None,
        };
        assert_eq!(table.steps(&next, Range::ALL), [gone]);
        next.release_fid(8);
        assert_eq!(next, LockTable::default());
    }

    #[test]
    fn a_lock_in_the_middle_splits() {
        let mut table = LockTable::default();
        table.set(1, range(0, 30), Some((LockKind::Exclusive, 7)));
        let before = table.clone();
        table.set(1, range(10, 20), Some((LockKind::Shared, 7)));
        let weaker = Step {
            range: range(10, 20),
            from: EXCLUSIVE,
            to: SHARED,
        };
        assert_eq!(before.steps(&table, range(10, 20)), [weaker]);
        assert_eq!(table.locks.len(), 3);
    }

    /// The strongest lock at each of the first bytes, by brute force.
    fn bytes(table: &LockTable) -> Vec<Option<LockKind>> {
        (0..40)
            .map(|at| {
                let here = table
                    .locks
                    .iter()
                    .filter(|lock| lock.range.overlaps(range(at, at + 1)));
                here.map(|lock| lock.kind).max()
            })
            .collect()
    }

    proptest! {
        /// Changing the host's locks step by step yields those of the table.
        #[test]
        fn steps_lead_from_table_to_table(
            changes in prop::collection::vec((1u32..4, 0u64..30, 1u64..10, 0u8..3), 0..40),
        ) {
            let mut table = LockTable::default();
            let mut host = vec![None; 40];
            for (process, start, length, kind) in changes {
                let lock = [None, SHARED, EXCLUSIVE][usize::from(kind)];
                let window = range(start, start + length);
                let mut next = table.clone();
                next.set(process, window, lock.map(|lock| (lock, process)));
                for step in table.steps(&next, window) {
                    for kind in &mut host[step.range.start as usize..step.range.end as usize] {
                        prop_assert_eq!(*kind, step.from);
                        *kind = step.to;
                    }
                }
                table = next;
                prop_assert_eq!(&host, &bytes(&table));
            }
        }
    }
}
