//! Rows that are contiguous in memory.

use crate::bound;
use crate::kernel::{ABREAST, CHUNK, Codes, GROUP, Group, Numbers};
use std::mem::size_of;
use std::ops::Range;

/// The error of a deleted row: with it the row never passes the test.
const DELETED: f32 = f32::NEG_INFINITY;

/// Initial capacity of a block, in rows.
const FIRST_ROWS: usize = 16;

/// A limited number of rows, in the order of their insertion.
pub(crate) struct Block {
    chunks: usize,
    numbers: Vec<Numbers>,
    codes: Vec<Codes>,
    scales: Vec<f32>,
    errors: Vec<f32>,
    ids: Vec<u64>,
    deleted: usize,
}

impl Block {
    pub(crate) fn new(chunks: usize) -> Block {
        Block {
            chunks,
            numbers: Vec::new(),
            codes: Vec::new(),
            scales: Vec::new(),
            errors: Vec::new(),
            ids: Vec::new(),
            deleted: 0,
        }
    }

    /// Number of rows, including deleted ones that still take space.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether only deleted rows are left.
    pub(crate) fn is_empty(&self) -> bool {
        self.deleted == self.len()
    }

    /// Whether enough rows are deleted for compaction to pay off.
    pub(crate) fn is_sparse(&self) -> bool {
        self.deleted * 4 > self.len()
    }

    /// Bytes of the block and its rows.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes_with_room(0)
    }

    /// Bytes after one more insertion, with at most `most` rows.
    pub(crate) fn bytes_after_push(&self, most: usize) -> usize {
        self.bytes_with_room(self.room_after_push(most))
    }

    fn bytes_with_room(&self, rows: usize) -> usize {
        size_of::<Block>()
            + self.numbers.capacity().max(rows * self.chunks) * size_of::<Numbers>()
            + self.codes.capacity().max(self.code_chunks(rows)) * size_of::<Codes>()
            + self.scales.capacity().max(rows) * size_of::<f32>()
            + self.errors.capacity().max(rows) * size_of::<f32>()
            + self.ids.capacity().max(rows) * size_of::<u64>()
    }

    /// Capacity in rows after one more insertion.
    fn room_after_push(&self, most: usize) -> usize {
        let room = self.ids.capacity();
        if self.len() < room {
            return room;
        }
        (room * 2).clamp(FIRST_ROWS, most)
    }

    /// Appends a row; there are at most `most`.
    pub(crate) fn push(&mut self, id: u64, row: &[f32], most: usize) {
        self.reserve(self.room_after_push(most));
        let at = self.len();
        self.numbers.extend_from_slice(&bound::chunked(row));
        self.codes.resize(self.code_chunks(at + 1), [0; CHUNK]);
        let (scale, error) = bound::encode(row, self.codes_of(at));
        self.scales.push(scale);
        self.errors.push(error);
        self.ids.push(id);
    }

    /// Reserves capacity for this number of rows.
    fn reserve(&mut self, rows: usize) {
        let codes = self.code_chunks(rows);
        grow(&mut self.numbers, rows * self.chunks);
        grow(&mut self.codes, codes);
        grow(&mut self.scales, rows);
        grow(&mut self.errors, rows);
        grow(&mut self.ids, rows);
    }

    /// Replaces the numbers of a row.
    pub(crate) fn replace(&mut self, at: usize, row: &[f32]) {
        let range = self.range(at..at + 1);
        self.numbers[range].copy_from_slice(&bound::chunked(row));
        (self.scales[at], self.errors[at]) = bound::encode(row, self.codes_of(at));
    }

    pub(crate) fn delete(&mut self, at: usize) {
        self.errors[at] = DELETED;
        self.deleted += 1;
    }

    /// Reclaims the space of deleted rows. The others keep their order.
    pub(crate) fn compact(&mut self) {
        let mut kept = 0;
        for at in 0..self.len() {
            if self.is_deleted(at) {
                continue;
            }
            if kept != at {
                let (from, to) = (self.range(at..at + 1), kept * self.chunks);
                self.numbers.copy_within(from, to);
                for chunk in 0..self.chunks {
                    let (from, to) = (self.code(at, chunk), self.code(kept, chunk));
                    self.codes[to] = self.codes[from];
                }
                self.scales[kept] = self.scales[at];
                self.errors[kept] = self.errors[at];
                self.ids[kept] = self.ids[at];
            }
            kept += 1;
        }
        self.numbers.truncate(kept * self.chunks);
        self.codes.truncate(self.code_chunks(kept));
        self.scales.truncate(kept);
        self.errors.truncate(kept);
        self.ids.truncate(kept);
        self.deleted = 0;
        self.numbers.shrink_to_fit();
        self.codes.shrink_to_fit();
        self.scales.shrink_to_fit();
        self.errors.shrink_to_fit();
        self.ids.shrink_to_fit();
    }

    pub(crate) fn is_deleted(&self, at: usize) -> bool {
        self.errors[at] == DELETED
    }

    /// Ids of all rows, by position.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The numbers of rows.
    pub(crate) fn numbers(&self, rows: Range<usize>) -> &[Numbers] {
        &self.numbers[self.range(rows)]
    }

    /// The codes of rows.
    pub(crate) fn group(&self, rows: Range<usize>) -> Group<'_> {
        Group {
            codes: &self.codes[rows.start * self.chunks..self.code_chunks(rows.end)],
            scales: &self.scales[rows.clone()],
            errors: &self.errors[rows],
        }
    }

    /// All rows, in groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Range<usize>> + Clone + use<> {
        let len = self.len();
        (0..len)
            .step_by(GROUP)
            .map(move |start| start..len.min(start + GROUP))
    }

    /// Chunks of the codes of this number of rows, including padding.
    fn code_chunks(&self, rows: usize) -> usize {
        rows.next_multiple_of(ABREAST) * self.chunks
    }

    /// The index of a chunk of a row's codes.
    fn code(&self, at: usize, chunk: usize) -> usize {
        (at / ABREAST * self.chunks + chunk) * ABREAST + at % ABREAST
    }

    fn codes_of(&mut self, at: usize) -> impl Iterator<Item = &mut Codes> {
        let first = self.code(at, 0);
        self.codes[first..]
            .iter_mut()
            .step_by(ABREAST)
            .take(self.chunks)
    }

    fn range(&self, rows: Range<usize>) -> Range<usize> {
        rows.start * self.chunks..rows.end * self.chunks
    }
}

fn grow<T>(items: &mut Vec<T>, room: usize) {
    items.reserve_exact(room.saturating_sub(items.len()));
}
