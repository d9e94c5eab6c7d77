//! Searches give what a plain scan gives, bit for bit.

use a99_vectors::{Hit, Index, normalized};
use proptest::prelude::*;

/// The score as the pages define it, number by number.
fn plain_score(row: &[f32], query: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 32];
    for (at, (x, q)) in row.iter().zip(query).enumerate() {
        lanes[at % 32] += x * q;
    }
    let mut half = 16;
    while half > 0 {
        for at in 0..half {
            lanes[at] += lanes[at + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Ids and bits of scores.
type Found = Vec<(u64, u32)>;

/// What comparing with every row gives. Rows are in the order in which they were added.
fn plain(rows: &[(u64, Vec<f32>)], query: &[f32], k: usize, keep: impl Fn(u64) -> bool) -> Found {
    let kept = rows.iter().filter(|(id, _)| keep(*id));
    let mut all: Vec<(u64, f32)> = kept
        .map(|(id, row)| (*id, plain_score(row, query)))
        .collect();
    // Stable: rows of the same score stay in order.
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(k);
    all.into_iter()
        .map(|(id, score)| (id, score.to_bits()))
        .collect()
}

fn bits(hits: &[Hit]) -> Found {
    hits.iter()
        .map(|hit| (hit.id, hit.score.to_bits()))
        .collect()
}

/// Numbers of a vector before it is made one of length one.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => -1.0_f32..1.0,
        1 => Just(0.0),
        1 => prop::sample::select(vec![1.0, -1.0, 1e-30, -1e-30, 1e-42, f32::MIN_POSITIVE, 1e30, -1e15, 0.5]),
    ]
}

/// How the rows of an index are to each other.
#[derive(Clone, Debug)]
enum Kind {
    /// Nothing in common.
    Random,
    /// Some of them again and again.
    Few,
    /// One, with small differences.
    Near(f32),
    /// The same number everywhere, but for signs.
    Flat,
    /// Ever nearer to the query.
    Rising,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Random),
        Just(Kind::Few),
        prop::sample::select(vec![1e-7, 1e-6, 1e-4, 1e-2]).prop_map(Kind::Near),
        Just(Kind::Flat),
        Just(Kind::Rising),
    ]
}

/// A generator of vectors: one of proptest would make shrinking take forever.
struct Source(u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From -1 to 1.
    fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn vector(&mut self, dimension: usize) -> Vec<f32> {
        (0..dimension).map(|_| self.number()).collect()
    }
}

fn unit(numbers: &[f32]) -> Vec<f32> {
    normalized(numbers).expect("finite")
}

fn rows_of(kind: &Kind, query: &[f32], count: usize, source: &mut Source) -> Vec<Vec<f32>> {
    let dimension = query.len();
    let base = unit(&source.vector(dimension));
    let row = |n: usize| {
        let numbers = match kind {
            Kind::Random => source.vector(dimension),
            Kind::Few => Source(n as u64 % 5).vector(dimension),
            Kind::Near(by) => base.iter().map(|x| x + by * source.number()).collect(),
            Kind::Flat => (0..dimension).map(|_| source.number().signum()).collect(),
            Kind::Rising => {
                let part = n as f32 / count as f32;
                let other = base.iter().zip(query);
                other.map(|(x, q)| x * (1.0 - part) + q * part).collect()
            }
        };
        if source.next().is_multiple_of(23) {
            return vec![0.0; dimension];
        }
        unit(&numbers)
    };
    (0..count).map(row).collect()
}

fn filled(rows: &[(u64, Vec<f32>)], dimension: usize) -> Index {
    let mut index = Index::new(dimension).expect("a dimension");
    for (id, row) in rows {
        index.push(*id, row).expect("a unit vector");
    }
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Many rows of each kind, found with and without a filter.
    #[test]
    fn searches_give_what_a_plain_scan_gives(
        kind in kind(),
        dimension in prop_oneof![1_usize..40, 60_usize..140],
        count in 1_usize..3_000,
        k in prop_oneof![1_usize..20, 50_usize..400, Just(1_000_000_000)],
        seed in any::<u64>(),
        step in 1_u64..6,
        like_a_row in any::<bool>(),
    ) {
        let mut source = Source(seed);
        let mut query = unit(&source.vector(dimension));
        let rows = rows_of(&kind, &query, count, &mut source);
        if like_a_row {
            query.clone_from(&rows[count / 2]);
        }
        let rows: Vec<(u64, Vec<f32>)> = (0..).map(|n: u64| n * 3 + 1).zip(rows).collect();
        let index = filled(&rows, dimension);
        let found = index.search(&query, k, None).expect("a query");
        prop_assert_eq!(bits(&found), plain(&rows, &query, k, |_| true));
        let keep = |id: u64| id.is_multiple_of(step);
        let found = index.search(&query, k, Some(&keep)).expect("a query");
        prop_assert_eq!(bits(&found), plain(&rows, &query, k, keep));
    }

    /// Vectors with numbers of very different sizes.
    #[test]
    fn spreads_of_numbers_lose_no_row(
        (rows, query) in (1_usize..70).prop_flat_map(|dimension| {
            let vector = || prop::collection::vec(number(), dimension);
            (prop::collection::vec(vector(), 1..200), vector())
        }),
        k in 1_usize..5,
    ) {
        let query = unit(&query);
        let rows: Vec<(u64, Vec<f32>)> = (0..).zip(rows.iter().map(|row| unit(row))).collect();
        let index = filled(&rows, query.len());
        let found = index.search(&query, k, None).expect("a query");
        prop_assert_eq!(bits(&found), plain(&rows, &query, k, |_| true));
    }

    /// Rows come, change and go.
    #[test]
    fn changes_give_what_a_plain_scan_of_what_is_left_gives(
        seed in any::<u64>(),
        dimension in 1_usize..50,
        steps in 1_usize..3_000,
        ids in 1_u64..400,
        k in 1_usize..30,
    ) {
        let mut source = Source(seed);
        let mut index = Index::new(dimension).expect("a dimension");
        let mut rows: Vec<(u64, Vec<f32>)> = Vec::new();
        for _ in 0..steps {
            let id = source.next() % ids;
            let at = rows.iter().position(|row| row.0 == id);
            let row = unit(&source.vector(dimension));
            match (source.next() % 3, at) {
                (0, Some(at)) => {
                    rows.remove(at);
                    prop_assert!(index.delete(id));
                }
                (_, Some(at)) => {
                    rows[at].1.clone_from(&row);
                    prop_assert_eq!(index.replace(id, &row), Ok(true));
                }
                (_, None) => {
                    prop_assert!(!index.delete(id));
                    prop_assert_eq!(index.replace(id, &row), Ok(false));
                    let bytes = index.bytes_after_push();
                    index.push(id, &row).expect("a new row");
                    prop_assert!(index.bytes() <= bytes);
                    rows.push((id, row));
                }
            }
            prop_assert_eq!(index.len(), rows.len());
        }
        let query = unit(&source.vector(dimension));
        let found = index.search(&query, k, None).expect("a query");
        prop_assert_eq!(bits(&found), plain(&rows, &query, k, |_| true));
    }
}
