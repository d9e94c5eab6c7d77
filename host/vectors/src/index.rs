//! Rows of an index: insertion, replacement, deletion.

use crate::block::Block;
use crate::bound::{check, dimension};
use crate::kernel::{CHUNK, Codes, GROUP};
use crate::search::Search;
use crate::{Hit, VectorError};
use fearless_simd::Level;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::RandomState;
use std::mem::size_of;

/// Bytes of codes in a block: enough for fast sequential reads, and few enough that moving a
/// block's rows takes a few milliseconds.
const BLOCK_BYTES: usize = 1 << 20;

/// Maximum rows of a block: more bring no gain.
const BLOCK_ROWS: usize = 8192;

/// More bytes than the smallest table takes. A full table doubles.
const FIRST_TABLE: usize = 128;

/// Vectors of one dimension in memory, each with an id.
///
/// A row takes 5 bytes a number, rounded up to 32 numbers, plus 16 bytes, plus 20 to 39 bytes
/// in the table that finds it by its id.
pub struct Index {
    level: Level,
    dimension: usize,
    /// Maximum rows of a block.
    block_rows: usize,
    /// By serial number: ascending, so that rows are in the order of their insertion.
    blocks: BTreeMap<u64, Block>,
    next_serial: u64,
    /// Bytes of the blocks.
    block_bytes: usize,
    /// The location of a row: the serial number of its block times [`Index::block_rows`], plus
    /// its position in it.
    places: HashMap<u64, u64, RandomState>,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("dimension", &self.dimension)
            .field("len", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Index {
    /// An empty index for vectors of a dimension.
    ///
    /// # Errors
    /// If the dimension is zero or more than [`MAX_DIMENSION`](crate::MAX_DIMENSION).
    pub fn new(numbers: usize) -> Result<Index, VectorError> {
        dimension(numbers)?;
        let code_bytes = numbers.div_ceil(CHUNK) * size_of::<Codes>();
        let rows = (BLOCK_BYTES / code_bytes).clamp(GROUP, BLOCK_ROWS);
        Ok(Index {
            level: Level::new(),
            dimension: numbers,
            block_rows: rows / GROUP * GROUP,
            blocks: BTreeMap::new(),
            next_serial: 0,
            block_bytes: 0,
            places: HashMap::default(),
        })
    }

    /// The dimension of its vectors.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether there is a row with this id.
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.places.contains_key(&id)
    }

    /// Bytes of memory, including spare capacity.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.block_bytes + self.places.allocation_size()
    }

    /// Maximum bytes after one more insertion, for callers with a memory limit. While a block
    /// grows, its old memory also exists for a moment: at most 5 MiB, but for vectors of more
    /// than 16,384 numbers 320 bytes a number.
    #[must_use]
    pub fn bytes_after_push(&self) -> usize {
        let grown = match self.blocks.last_key_value() {
            Some((_, block)) if block.len() < self.block_rows => {
                block.bytes_after_push(self.block_rows) - block.bytes()
            }
            _ => Block::new(self.chunks()).bytes_after_push(self.block_rows),
        };
        self.bytes() + grown + self.table_growth()
    }

    /// Bytes that the table may grow by at one more insertion.
    fn table_growth(&self) -> usize {
        if self.len() < self.places.capacity() {
            return 0;
        }
        self.places.allocation_size().max(FIRST_TABLE)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If the vector has another dimension, a number that is not finite, or is neither zero nor
    /// of length one ([`normalized`](crate::normalized) makes one that is), or if a row has the
    /// id already.
    pub fn push(&mut self, id: u64, row: &[f32]) -> Result<(), VectorError> {
        check(row, self.dimension)?;
        if self.contains(id) {
            return Err(VectorError::Known { id });
        }
        let (serial, held) = match self.blocks.last_key_value() {
            Some((serial, block)) if block.len() < self.block_rows => (*serial, block.bytes()),
            _ => (self.next_serial, 0),
        };
        self.next_serial = serial + 1;
        let chunks = self.chunks();
        let open = self.blocks.entry(serial);
        let block = open.or_insert_with(|| Block::new(chunks));
        let place = serial * self.block_rows as u64 + block.len() as u64;
        block.push(id, row, self.block_rows);
        self.block_bytes += block.bytes() - held;
        self.places.insert(id, place);
        Ok(())
    }

    /// Replaces the vector of a row, which keeps its rank among rows of the same score. Gives
    /// whether the row exists.
    ///
    /// # Errors
    /// If the vector is one that [`Index::push`] refuses.
    pub fn replace(&mut self, id: u64, row: &[f32]) -> Result<bool, VectorError> {
        check(row, self.dimension)?;
        let Some((serial, at)) = self.place(id) else {
            return Ok(false);
        };
        if let Some(block) = self.blocks.get_mut(&serial) {
            block.replace(at, row);
        }
        Ok(true)
    }

    /// Removes a row. Gives whether it existed. Its memory is reclaimed when more than a
    /// quarter of its block's rows are deleted.
    pub fn delete(&mut self, id: u64) -> bool {
        let Some((serial, at)) = self.place(id) else {
            return false;
        };
        self.places.remove(&id);
        let Some(block) = self.blocks.get_mut(&serial) else {
            return false;
        };
        block.delete(at);
        if block.is_empty() {
            self.block_bytes -= block.bytes();
            self.blocks.remove(&serial);
        } else if block.is_sparse() {
            self.block_bytes -= block.bytes();
            block.compact();
            self.block_bytes += block.bytes();
            let first = serial * self.block_rows as u64;
            let moved = block.ids().iter().zip(first..);
            self.places.extend(moved.map(|(id, place)| (*id, place)));
        }
        if self.places.len() * 4 < self.places.capacity() {
            self.places.shrink_to(self.places.len() * 2);
        }
        true
    }

    /// The `k` nearest rows to a query by cosine similarity, best first; of two with the same
    /// score the one that was added first. The filter, if there is one, is called at most once
    /// for each possible hit, and excludes the ids for which it gives false.
    ///
    /// The hits are exactly those of a comparison with every row, and a score has the same bits
    /// on every machine.
    ///
    /// # Errors
    /// If the query is a vector that [`Index::push`] refuses.
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        filter: Option<&dyn Fn(u64) -> bool>,
    ) -> Result<Vec<Hit>, VectorError> {
        self.search_while(query, k, filter, &|| true)
    }

    /// An interruptible search: it calls `goes_on` about once a millisecond, and stops when
    /// that gives false.
    ///
    /// # Errors
    /// Those of [`Index::search`], and [`VectorError::Stopped`].
    pub fn search_while(
        &self,
        query: &[f32],
        k: usize,
        filter: Option<&dyn Fn(u64) -> bool>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Hit>, VectorError> {
        check(query, self.dimension)?;
        if k == 0 || self.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.blocks.iter();
        let blocks = rows.map(|(serial, block)| (serial * self.block_rows as u64, block));
        Search::new(self.level, query, k, filter).run(blocks, goes_on)
    }

    fn chunks(&self) -> usize {
        self.dimension.div_ceil(CHUNK)
    }

    /// The block of a row, and its position in it.
    fn place(&self, id: u64) -> Option<(u64, usize)> {
        let place = *self.places.get(&id)?;
        let rows = self.block_rows as u64;
        Some((place / rows, (place % rows) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::Index;
    use crate::{Hit, MAX_DIMENSION, VectorError};
    use std::cell::RefCell;
    use std::collections::HashSet;

    /// Rows whose score with [1, 0] falls with their id.
    fn fan(rows: u64) -> Index {
        let mut index = Index::new(2).expect("a dimension");
        for id in 0..rows {
            index.push(id, &slanted(id)).expect("a unit vector");
        }
        index
    }

    fn slanted(id: u64) -> [f32; 2] {
        let angle = id as f32 * 3e-4;
        [angle.cos(), angle.sin()]
    }

    fn ids(hits: &[Hit]) -> Vec<u64> {
        hits.iter().map(|hit| hit.id).collect()
    }

    fn nearest(index: &Index, k: usize) -> Vec<u64> {
        ids(&index.search(&[1.0, 0.0], k, None).expect("a query"))
    }

    #[test]
    fn dimensions_have_bounds() {
        for numbers in [0, MAX_DIMENSION + 1, usize::MAX] {
            let error = Index::new(numbers).expect_err("no dimension");
            assert_eq!(error, VectorError::Dimension { dimension: numbers });
        }
        let mut index = Index::new(MAX_DIMENSION).expect("the largest");
        let mut row = vec![0.0; MAX_DIMENSION];
        row[MAX_DIMENSION - 1] = 1.0;
        index.push(1, &row).expect("a unit vector");
        let hits = index.search(&row, 1, None).expect("a query");
        assert_eq!(hits, [Hit { id: 1, score: 1.0 }]);
    }

    #[test]
    fn vectors_that_are_none_are_refused() {
        let mut index = fan(1);
        let length = VectorError::Length {
            expected: 2,
            found: 3,
        };
        let cases: [(&[f32], VectorError); 6] = [
            (&[1.0, 0.0, 0.0], length),
            (&[f32::NAN, 0.0], VectorError::NotFinite { at: 0 }),
            (&[1.0, f32::INFINITY], VectorError::NotFinite { at: 1 }),
            (&[1.0, 1.0], VectorError::NotUnit),
            (&[1e-30, 0.0], VectorError::NotUnit),
            (&[f32::MAX, f32::MAX], VectorError::NotUnit),
        ];
        for (vector, error) in cases {
            assert_eq!(index.push(5, vector), Err(error.clone()));
            assert_eq!(index.replace(0, vector), Err(error.clone()));
            assert_eq!(index.search(vector, 1, None), Err(error.clone()));
            assert_eq!(index.search(vector, 0, None), Err(error));
        }
        assert_eq!(
            index.push(0, &[1.0, 0.0]),
            Err(VectorError::Known { id: 0 })
        );
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn as_many_hits_as_there_are() {
        let index = fan(5_000);
        assert!(nearest(&index, 0).is_empty());
        assert_eq!(nearest(&index, 3), [0, 1, 2]);
        assert_eq!(nearest(&index, 1_000_000_000).len(), 5_000);
        assert_eq!(nearest(&index, usize::MAX).len(), 5_000);
        let empty = Index::new(2).expect("a dimension");
        assert!(nearest(&empty, 10).is_empty());
    }

    #[test]
    fn rows_of_the_same_score_are_in_the_order_of_being_added() {
        let mut index = Index::new(2).expect("a dimension");
        for id in (0..10_000).rev() {
            index.push(id, &[0.0, 1.0]).expect("a unit vector");
        }
        assert_eq!(nearest(&index, 3), [9_999, 9_998, 9_997]);
        index.push(77_777, &[1.0, 0.0]).expect("a unit vector");
        assert_eq!(nearest(&index, 2), [77_777, 9_999]);
    }

    #[test]
    fn zero_scores_zero() {
        let mut index = fan(200);
        let hits = index.search(&[0.0, 0.0], 3, None).expect("a query");
        assert_eq!(ids(&hits), [0, 1, 2]);
        assert!(hits.iter().all(|hit| hit.score.to_bits() == 0));
        index.push(900, &[0.0, -0.0]).expect("zero");
        index.push(901, &[-1.0, 0.0]).expect("a unit vector");
        let last = index.search(&[1.0, 0.0], 202, None).expect("a query");
        assert_eq!(ids(&last)[200..], [900, 901]);
        assert_eq!(last[200].score.to_bits(), 0);
    }

    #[test]
    fn a_filter_is_asked_at_most_once_and_obeyed() {
        let index = fan(5_000);
        let asked = RefCell::new(Vec::new());
        let filter = |id: u64| {
            asked.borrow_mut().push(id);
            id % 1_000 == 7
        };
        let hits = index
            .search(&[1.0, 0.0], 3, Some(&filter))
            .expect("a query");
        assert_eq!(ids(&hits), [7, 1_007, 2_007]);
        let asked = asked.into_inner();
        assert_eq!(asked.iter().collect::<HashSet<_>>().len(), asked.len());
        let none = index
            .search(&[1.0, 0.0], 3, Some(&|_| false))
            .expect("a query");
        assert!(none.is_empty());
    }

    #[test]
    fn most_rows_are_left_out_by_their_codes() {
        let mut index = Index::new(64).expect("a dimension");
        for id in 0..20_000_u64 {
            let mut row = [0.0; 64];
            row[id as usize % 64] = 1.0;
            if id % 64 == 0 {
                row[1] = id as f32 * 1e-5;
            }
            let row = crate::normalized(&row).expect("finite");
            index.push(id, &row).expect("a unit vector");
        }
        let mut query = [0.0; 64];
        query[0] = 1.0;
        let asked = RefCell::new(0);
        let filter = |_| {
            *asked.borrow_mut() += 1;
            true
        };
        index.search(&query, 5, Some(&filter)).expect("a query");
        assert!(asked.into_inner() < 1_000);
    }

    #[test]
    fn rows_change_and_go() {
        let mut index = fan(20_000);
        assert_eq!(index.replace(15_000, &[1.0, 0.0]), Ok(true));
        assert_eq!(nearest(&index, 2), [0, 15_000]);
        assert!(index.delete(0));
        assert!(!index.delete(0));
        assert_eq!(index.replace(0, &[1.0, 0.0]), Ok(false));
        assert_eq!(nearest(&index, 2), [15_000, 1]);
        index.push(0, &[1.0, 0.0]).expect("its id is free again");
        assert_eq!(nearest(&index, 3), [15_000, 0, 1]);
        for id in 1..19_990 {
            assert!(index.delete(id));
        }
        assert_eq!(index.len(), 11);
        assert!(index.contains(19_995) && !index.contains(5));
        assert_eq!(nearest(&index, 1), [0]);
        assert_eq!(nearest(&index, 20).len(), 11);
    }

    #[test]
    fn memory_follows_the_rows() {
        let mut index = fan(20_000);
        let full = index.bytes();
        let least = 20_000 * (32 * 5 + 16 + 17);
        assert!((least..least * 3 / 2).contains(&full), "{full}");
        for id in 0..19_000 {
            index.delete(id);
        }
        assert!(index.bytes() < full / 4, "{}", index.bytes());
        for id in 19_000..20_000 {
            index.delete(id);
        }
        assert!(index.bytes() < 2_000, "{}", index.bytes());
        for id in 0..100_000 {
            index.push(id, &[1.0, 0.0]).expect("a unit vector");
            if id >= 100 {
                index.delete(id - 100);
            }
        }
        assert!(
            index.bytes() < 2 * 8192 * (32 * 5 + 16),
            "{}",
            index.bytes()
        );
    }

    #[test]
    fn an_index_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<Index>();
    }

    #[test]
    fn a_search_that_is_stopped_ends() {
        use std::cell::Cell;
        let mut index = Index::new(64).expect("a dimension");
        for id in 0..20_000u64 {
            let mut row = [0.0; 64];
            row[(id % 64) as usize] = 1.0;
            index.push(id, &row).expect("a row");
        }
        let query = {
            let mut query = [0.0; 64];
            query[3] = 1.0;
            query
        };
        let asked = Cell::new(0);
        let search = |most: usize| {
            asked.set(0);
            index.search_while(&query, 3, None, &|| {
                asked.set(asked.get() + 1);
                asked.get() <= most
            })
        };
        let whole = search(usize::MAX).expect("hits");
        assert_eq!(whole, index.search(&query, 3, None).expect("hits"));
        // A million numbers a look.
        assert_eq!(asked.get(), 1);
        assert_eq!(search(0), Err(VectorError::Stopped));
        assert_eq!(asked.get(), 1);
    }
}
