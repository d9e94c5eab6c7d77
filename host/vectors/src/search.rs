//! Hits of a query: the order in which groups of rows are scanned, and in which form.

use crate::best::{Best, Scored};
use crate::block::Block;
use crate::bound::Query;
use crate::kernel::{self, GROUP};
use crate::{Hit, VectorError};
use fearless_simd::Level;
use std::ops::Range;

/// One of this many groups is scanned first. Its best rows give a threshold that few of the
/// others reach, regardless of the insertion order.
const SAMPLE: usize = 32;

/// If more than one in this many rows of a group pass the test, the codes do not pay off: a
/// row's numbers are four times its codes, and single rows are slower to read.
const TOO_MANY: usize = 2;

/// Groups that are then scanned without codes: initially, and at most, while each group in
/// between fails to pay off again.
const FIRST_STRETCH: usize = 4;
const LAST_STRETCH: usize = 64;

/// Numbers that are scanned between two checks for an interrupt: less than a millisecond.
const LOOK: usize = 1 << 20;

/// A search in progress.
pub(crate) struct Search<'a> {
    level: Level,
    query: Query,
    /// Groups that are scanned between two checks for an interrupt.
    look: usize,
    filter: Option<&'a dyn Fn(u64) -> bool>,
    best: Best,
    /// Remaining groups to scan without codes.
    plain: usize,
    stretch: usize,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        level: Level,
        query: &[f32],
        k: usize,
        filter: Option<&'a dyn Fn(u64) -> bool>,
    ) -> Search<'a> {
        Search {
            level,
            query: Query::new(query),
            look: (LOOK / (GROUP * query.len().max(1))).max(1),
            filter,
            best: Best::new(k),
            plain: 0,
            stretch: FIRST_STRETCH,
        }
    }

    /// The hits among the rows of blocks, each block with the position of its first row.
    ///
    /// # Errors
    /// If `goes_on` gave false.
    pub(crate) fn run<'b>(
        mut self,
        blocks: impl Iterator<Item = (u64, &'b Block)> + Clone,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Hit>, VectorError> {
        let (mut looked, groups_a_look) = (0, self.look);
        let mut look = || {
            looked += 1;
            match looked % groups_a_look == 0 && !goes_on() {
                true => Err(VectorError::Stopped),
                false => Ok(()),
            }
        };
        let groups =
            blocks.flat_map(|(first, block)| block.groups().map(move |rows| (first, block, rows)));
        for (first, block, rows) in groups.clone().step_by(SAMPLE) {
            look()?;
            self.visit(first, block, rows);
        }
        for (n, (first, block, rows)) in groups.enumerate() {
            if n % SAMPLE != 0 {
                look()?;
                self.visit(first, block, rows);
            }
        }
        let hit = |row: Scored| Hit {
            id: row.id,
            score: row.score,
        };
        Ok(self.best.into_sorted().into_iter().map(hit).collect())
    }

    fn visit(&mut self, first: u64, block: &Block, rows: Range<usize>) {
        match self.best.threshold() {
            Some(threshold) if self.plain == 0 => self.by_codes(first, block, rows, threshold),
            _ => {
                self.plain = self.plain.saturating_sub(1);
                self.by_numbers(first, block, rows);
            }
        }
    }

    /// Scores the rows that may reach the threshold.
    fn by_codes(&mut self, first: u64, block: &Block, rows: Range<usize>, threshold: f32) {
        let test = self.query.test(threshold);
        let mut passing = kernel::passing(self.level, block.group(rows.clone()), test);
        let mut scored = 0;
        while passing != 0 {
            let at = rows.start + passing.trailing_zeros() as usize;
            passing &= passing - 1;
            if self.admits(block.ids()[at]) {
                scored += 1;
                self.score(first, block, at);
            }
        }
        if scored * TOO_MANY > GROUP {
            self.plain = self.stretch;
            self.stretch = (self.stretch * 2).min(LAST_STRETCH);
        } else {
            self.stretch = FIRST_STRETCH;
        }
    }

    /// Scores all rows.
    fn by_numbers(&mut self, first: u64, block: &Block, rows: Range<usize>) {
        if self.filter.is_some() {
            for at in rows {
                if !block.is_deleted(at) && self.admits(block.ids()[at]) {
                    self.score(first, block, at);
                }
            }
            return;
        }
        let mut scores = [0.0; GROUP];
        let numbers = block.numbers(rows.clone());
        kernel::scores(self.level, numbers, &self.query.numbers, &mut scores);
        for (at, score) in rows.zip(scores) {
            if !block.is_deleted(at) {
                self.offer(first, block, at, score);
            }
        }
    }

    fn admits(&self, id: u64) -> bool {
        self.filter.is_none_or(|filter| filter(id))
    }

    fn score(&mut self, first: u64, block: &Block, at: usize) {
        let numbers = block.numbers(at..at + 1);
        let score = kernel::score(self.level, numbers, &self.query.numbers);
        self.offer(first, block, at, score);
    }

    fn offer(&mut self, first: u64, block: &Block, at: usize, score: f32) {
        self.best.offer(Scored {
            score,
            position: first + at as u64,
            id: block.ids()[at],
        });
    }
}
