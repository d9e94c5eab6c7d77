//! Searches of vectors on one core, beside what bounds them: summing as many bytes as the
//! codes of all rows are, and a plain scan of the numbers in 32 bits.
//!
//! `cargo bench -p a99-benches --bench vectors` prints for each size, as the best of several
//! turns, what a search takes, and its ratio to the sum; for rows that are all nearly equal,
//! of which none can be left out, the ratio to the plain scan. The largest needs 4 GiB.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use a99_vectors::{Index, normalized};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rows, numbers of each.
const SIZES: [(usize, usize); 3] = [(10_000, 500), (100_000, 500), (1_000_000, 384)];

/// Hits.
const K: usize = 10;

/// Turns of which the best counts.
const TURNS: usize = 15;

/// How rows lie to each other.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// In all directions.
    Random,
    /// Around a thousand centres, the query beside one of them.
    Clustered,
    /// Beside the query, all of them.
    NearlyEqual,
}

const KINDS: [(&str, Kind); 3] = [
    ("random", Kind::Random),
    ("clustered", Kind::Clustered),
    ("nearly equal", Kind::NearlyEqual),
];

struct Source(u64);

impl Source {
    /// About normal, with the variance one.
    fn number(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let parts = (0..4).map(|n| (self.0 >> (16 * n) & 0xFFFF) as f32 / 65_536.0 - 0.5);
        parts.sum::<f32>() * 3.0_f32.sqrt()
    }

    fn vector(&mut self, dimension: usize) -> Vec<f32> {
        (0..dimension).map(|_| self.number()).collect()
    }

    /// A vector of length one beside another one, so many times as far as it is long.
    fn beside(&mut self, centre: &[f32], far: f32) -> Vec<f32> {
        let far = far / (centre.len() as f32).sqrt();
        let moved: Vec<f32> = centre.iter().map(|x| x + far * self.number()).collect();
        normalized(&moved).expect("finite")
    }
}

struct Data {
    index: Index,
    /// The same rows, one behind the other.
    numbers: Vec<f32>,
    /// As many bytes as the codes have.
    words: Vec<u64>,
    query: Vec<f32>,
}

impl Data {
    fn new(kind: Kind, rows: usize, dimension: usize) -> Data {
        let mut source = Source(42);
        let unit = |numbers: Vec<f32>| normalized(&numbers).expect("finite");
        let centres: Vec<_> = (0..1000).map(|_| unit(source.vector(dimension))).collect();
        let mut index = Index::new(dimension).expect("a dimension");
        let mut numbers = Vec::with_capacity(rows * dimension);
        for n in 0..rows {
            let row = match kind {
                Kind::Random => unit(source.vector(dimension)),
                Kind::Clustered => source.beside(&centres[n * 7 % 1000], 0.8),
                Kind::NearlyEqual => source.beside(&centres[0], 1e-3),
            };
            index.push(n as u64, &row).expect("a unit vector");
            numbers.extend_from_slice(&row);
        }
        let stride = dimension.next_multiple_of(32);
        let words = (0..rows * stride / 8).map(|n| n as u64 * 0x9E37).collect();
        let query = source.beside(&centres[0], 0.5);
        Data {
            index,
            numbers,
            words,
            query,
        }
    }

    fn search(&self) -> u64 {
        let hits = self.index.search(&self.query, K, None).expect("a query");
        hits[K - 1].id
    }

    fn sum(&self) -> u64 {
        self.words
            .iter()
            .fold(0, |sum, word| sum.wrapping_add(*word))
    }

    /// The ten best by a plain scan.
    fn plain(&self) -> u64 {
        let mut best = [(f32::MIN, 0); K];
        for (n, row) in self.numbers.chunks_exact(self.query.len()).enumerate() {
            let score = product(row, &self.query);
            if score > best[K - 1].0 {
                let at = best.partition_point(|found| found.0 >= score);
                best[at..].rotate_right(1);
                best[at] = (score, n as u64);
            }
        }
        best[K - 1].1
    }
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 32];
    let (a, a_rest) = a.as_chunks::<32>();
    let (b, b_rest) = b.as_chunks::<32>();
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a * b);
    lanes.iter().sum::<f32>() + rest.sum::<f32>()
}

/// The best of several turns of each, in milliseconds. Each turn comes after one that is not
/// counted, which leaves in the caches what its own data leaves there.
fn best<const N: usize>(of: [&dyn Fn() -> u64; N]) -> [f64; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..TURNS {
        for (best, of) in best.iter_mut().zip(of) {
            black_box(of());
            let start = Instant::now();
            black_box(of());
            *best = start.elapsed().min(*best);
        }
    }
    best.map(|time| time.as_secs_f64() * 1e3)
}

fn vectors(c: &mut Criterion) {
    for (rows, dimension) in SIZES {
        for (name, kind) in KINDS {
            let data = Data::new(kind, rows, dimension);
            let [search, sum, plain] = best([&|| data.search(), &|| data.sum(), &|| data.plain()]);
            println!(
                "{rows} x {dimension}, {name}: search {search:.3} ms, sum {sum:.3} ms, plain scan \
                 {plain:.3} ms; {:.2} of the sum, {:.2} of the plain scan; {} bytes a row",
                search / sum,
                search / plain,
                data.index.bytes() / rows,
            );
            let mut group = c.benchmark_group(format!("vectors/{rows}x{dimension}/{name}"));
            group.sample_size(10);
            group.bench_function("search", |b| b.iter(|| data.search()));
            group.bench_function("sum", |b| b.iter(|| data.sum()));
            group.bench_function("plain scan", |b| b.iter(|| data.plain()));
            group.finish();
        }
    }
}

criterion_group!(benches, vectors);
criterion_main!(benches);
