//! Hits: the best rows so far.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row and its score; greater is better.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) score: f32,
    /// The row's position: of equal scores the earlier one is better.
    pub(crate) position: u64,
    pub(crate) id: u64,
}

impl Ord for Scored {
    fn cmp(&self, other: &Scored) -> Ordering {
        let scores = self.score.total_cmp(&other.score);
        scores.then(other.position.cmp(&self.position))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Scored) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Scored) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scored {}

/// Keeps the best `most` of the offered rows.
pub(crate) struct Best {
    most: usize,
    /// The worst on top.
    heap: BinaryHeap<std::cmp::Reverse<Scored>>,
}

impl Best {
    pub(crate) fn new(most: usize) -> Best {
        Best {
            most,
            heap: BinaryHeap::new(),
        }
    }

    /// The score that a row must reach, once there are enough.
    pub(crate) fn threshold(&self) -> Option<f32> {
        if self.heap.len() < self.most {
            return None;
        }
        self.heap.peek().map(|worst| worst.0.score)
    }

    pub(crate) fn offer(&mut self, row: Scored) {
        if self.heap.len() < self.most {
            self.heap.push(std::cmp::Reverse(row));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && row > worst.0
        {
            *worst = std::cmp::Reverse(row);
        }
    }

    /// All rows, best first.
    pub(crate) fn into_sorted(self) -> Vec<Scored> {
        let rows = self.heap.into_sorted_vec();
        rows.into_iter().map(|row| row.0).collect()
    }
}
