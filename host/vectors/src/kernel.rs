//! Dot products of codes and of numbers, with the processor's vector instructions.
//!
//! Both give the same bits on every processor: sums of codes are integers without overflow, and
//! the sum of numbers has an order that does not depend on the vector width ([`score`]).

use fearless_simd::{Level, Simd, dispatch, f32x16, i8x32, i16x32, i32x4, i32x8, prelude::*};

/// Numbers of a chunk: a vector is stored as whole chunks, the last one padded with zeros.
pub(crate) const CHUNK: usize = 32;

/// Rows that are tested together: the bits of a word.
pub(crate) const GROUP: usize = 64;

/// Rows whose codes are interleaved: a chunk of each, then the next chunk of each. Memory is
/// read sequentially while they share each load of the query.
pub(crate) const ABREAST: usize = 4;

/// A chunk of a stored vector.
pub(crate) type Numbers = [f32; CHUNK];

/// A chunk of its codes.
pub(crate) type Codes = [i8; CHUNK];

/// A chunk of the codes of a query.
pub(crate) type QueryCodes = [i16; CHUNK];

/// The codes of up to [`GROUP`] rows, with the scales and errors of their bounds.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) codes: &'a [Codes],
    pub(crate) scales: &'a [f32],
    pub(crate) errors: &'a [f32],
}

/// The test of a row: it may be among the best if `dot * scale * step + error * weight >= cut`.
#[derive(Clone, Copy)]
pub(crate) struct Test<'a> {
    pub(crate) codes: &'a [QueryCodes],
    pub(crate) step: f32,
    pub(crate) weight: f32,
    pub(crate) cut: f32,
}

/// The rows of a group that pass the test, as bits; the first row is the lowest bit.
pub(crate) fn passing(level: Level, group: Group<'_>, test: Test<'_>) -> u64 {
    dispatch!(level, simd => passing_in(simd, group, test))
}

/// Scores of consecutive rows, one for each item of `scores`.
pub(crate) fn scores(level: Level, rows: &[Numbers], query: &[Numbers], scores: &mut [f32]) {
    dispatch!(level, simd => scores_in(simd, rows, query, scores));
}

/// The score of a row: the sum over 32 lanes, where lane `i` sums in order the products of the
/// numbers `i`, `i + 32`, `i + 64` and so on, each rounded; then lanes are added in halves,
/// lane `i` and `i + 16`, `i` and `i + 8`, down to one.
pub(crate) fn score(level: Level, row: &[Numbers], query: &[Numbers]) -> f32 {
    dispatch!(level, simd => score_in(simd, row, query))
}

#[inline(always)]
fn passing_in<S: Simd>(simd: S, group: Group<'_>, test: Test<'_>) -> u64 {
    let mut dots = [0; GROUP];
    dots_in(simd, group.codes, test.codes, &mut dots);
    let mut passing = 0;
    let bounds = group.scales.iter().zip(group.errors);
    for (i, (dot, (scale, error))) in dots.iter().zip(bounds).enumerate() {
        let upper = *dot as f32 * scale * test.step + error * test.weight;
        passing |= u64::from(upper >= test.cut) << i;
    }
    passing
}

/// Four rows at a time share each load of the query.
#[inline(always)]
fn dots_in<S: Simd>(simd: S, codes: &[Codes], query: &[QueryCodes], dots: &mut [i32; GROUP]) {
    let (dots, _) = dots.as_chunks_mut::<ABREAST>();
    for (rows, dots) in codes.chunks_exact(query.len() * ABREAST).zip(dots) {
        let (rows, _) = rows.as_chunks::<ABREAST>();
        let mut sums = [i32x8::splat(simd, 0); ABREAST];
        for (codes, query) in rows.iter().zip(query) {
            let query = i16x32::load_array_ref(simd, query);
            for (sum, codes) in sums.iter_mut().zip(codes) {
                *sum += product(simd, codes, query);
            }
        }
        let [a, b, c, d] = sums;
        *dots = pairs(pairs(half(a), half(b)), pairs(half(c), half(d))).to_array();
    }
}

#[inline(always)]
fn half<S: Simd>(sum: i32x8<S>) -> i32x4<S> {
    let (low, high) = sum.split();
    low + high
}

/// Sums of neighbours: of `a` in the lower half, of `b` in the upper one.
#[inline(always)]
fn pairs<S: Simd>(a: i32x4<S>, b: i32x4<S>) -> i32x4<S> {
    a.unzip_low(b) + a.unzip_high(b)
}

#[inline(always)]
fn product<S: Simd>(simd: S, codes: &Codes, query: i16x32<S>) -> i32x8<S> {
    let (low, high) = i8x32::load_array_ref(simd, codes).widen();
    let (query_low, query_high) = query.split();
    low.pairwise_dot_product(query_low) + high.pairwise_dot_product(query_high)
}

#[inline(always)]
fn scores_in<S: Simd>(simd: S, rows: &[Numbers], query: &[Numbers], scores: &mut [f32]) {
    for (row, score) in rows.chunks_exact(query.len()).zip(scores) {
        *score = score_in(simd, row, query);
    }
}

#[inline(always)]
fn score_in<S: Simd>(simd: S, row: &[Numbers], query: &[Numbers]) -> f32 {
    let mut low = f32x16::splat(simd, 0.0);
    let mut high = low;
    for (row, query) in row.iter().zip(query) {
        let (row, _) = row.as_chunks::<16>();
        let (query, _) = query.as_chunks::<16>();
        low += f32x16::load_array_ref(simd, &row[0]) * f32x16::load_array_ref(simd, &query[0]);
        high += f32x16::load_array_ref(simd, &row[1]) * f32x16::load_array_ref(simd, &query[1]);
    }
    let (low, high) = (low + high).split();
    let (low, high) = (low + high).split();
    let [a, b, c, d] = (low + high).to_array();
    (a + c) + (b + d)
}

#[cfg(test)]
mod tests {
    use super::{ABREAST, GROUP, Group, Test, passing, score, scores};
    use fearless_simd::Level;

    /// Numbers from -100 to 100, in an order without a pattern.
    fn number(n: usize) -> i32 {
        let mixed = (n as u32).wrapping_mul(2_654_435_761) >> 16;
        (mixed % 201) as i32 - 100
    }

    #[test]
    fn products_of_codes_are_exact() {
        let chunks = 3;
        let codes: Vec<[i8; 32]> = (0..chunks * GROUP)
            .map(|n| std::array::from_fn(|i| number(n * 32 + i) as i8))
            .collect();
        let query: Vec<[i16; 32]> = (0..chunks)
            .map(|n| std::array::from_fn(|i| (300 * number(9_999 + n * 32 + i)) as i16))
            .collect();
        let dot = |row: usize| -> i32 {
            let places =
                (0..chunks).map(|c| (row / ABREAST * chunks + c) * ABREAST + row % ABREAST);
            let pairs = places
                .zip(&query)
                .flat_map(|(at, query)| codes[at].iter().zip(query));
            pairs.map(|(c, q)| i32::from(*c) * i32::from(*q)).sum()
        };
        for level in [Level::new(), Level::baseline()] {
            for rows in [1_usize, 3, 4, 5, 63, 64] {
                let group = Group {
                    codes: &codes[..rows.next_multiple_of(ABREAST) * chunks],
                    scales: &vec![1.0; rows],
                    errors: &vec![0.0; rows],
                };
                let cut = dot(0) as f32;
                let test = Test {
                    codes: &query,
                    step: 1.0,
                    weight: 1.0,
                    cut,
                };
                let expected =
                    (0..rows).fold(0, |all, row| all | u64::from(dot(row) as f32 >= cut) << row);
                assert_eq!(passing(level, group, test), expected);
            }
        }
    }

    #[test]
    fn scores_have_the_same_bits_everywhere() {
        let row = |by: usize| -> Vec<[f32; 32]> {
            let chunk = |n: usize| std::array::from_fn(|i| number(by + n * 32 + i) as f32 / 701.0);
            (0..5).map(chunk).collect()
        };
        let rows: Vec<[f32; 32]> = (0..9).flat_map(|n| row(n * 1_000)).collect();
        let query = row(77_777);
        let mut all = [0.0; 9];
        scores(Level::new(), &rows, &query, &mut all);
        for (n, found) in all.iter().enumerate() {
            let mut lanes = [0.0_f32; 32];
            for (row, query) in row(n * 1_000).iter().zip(&query) {
                for (lane, (x, q)) in lanes.iter_mut().zip(row.iter().zip(query)) {
                    *lane += x * q;
                }
            }
            for half in [16, 8, 4, 2, 1] {
                for i in 0..half {
                    lanes[i] += lanes[i + half];
                }
            }
            assert_eq!(found.to_bits(), lanes[0].to_bits());
            for level in [Level::new(), Level::baseline()] {
                let alone = score(level, &rows[n * 5..n * 5 + 5], &query);
                assert_eq!(alone.to_bits(), lanes[0].to_bits());
            }
        }
    }
}
