//! Codes of vectors, and the bound that lets a search skip rows without losing one.
//!
//! A row `x` is stored twice: as given, and as codes `c`, integers from -127 to 127, with a
//! scale `s`, so that `x = s c + r` with a remainder `r`. A query `q` gets codes `e` of 16 bits
//! and a step `t`: `q = t e + p`. The product of both is
//!
//! ```text
//! x.q = s c.q + r.q = s t (c.e) + s c.p + r.q
//! ```
//!
//! A scan computes `c.e`, a sum of integers, exactly. The other two terms are bounded by the
//! Cauchy-Schwarz inequality, where `s c = x - r`:
//!
//! ```text
//! x.q <= s t (c.e) + (|x| + |r|) |p| + |r| |q|
//!      = s t (c.e) + |r| (|q| + |p|) + |x| |p|                                     (1)
//! ```
//!
//! (1) holds for any codes and scales, because `|r|` and `|p|` are measured from them. They are
//! computed in 64 bits: remainders are differences of multiples of 2^-149, so that their
//! squares neither overflow nor underflow there, and up to 65,536 terms, each rounded once or
//! twice, are off by less than one part in 2^35. A part in 2^20 is added, and the conversion to
//! 32 bits rounds up to the next number ([`above`]).
//!
//! # Rounding
//!
//! Let `u = 2^-24`; lengths of vectors are at most `N = 1.002` ([`check`] refuses others).
//!
//! A **score** is the product as [`score`](crate::kernel::score) computes it. Each of its terms
//! is rounded once as a product, at most once a chunk in its lane and five times when lanes are
//! added: with `m = chunks + 6` it is off by at most
//! `m u / (1 - m u) * sum |x_i q_i| <= 1.01 m u N^2`, and by 2^-150 for each product that
//! underflows, 2^-134 together.
//!
//! The **left side of the test** ([`Test`](crate::kernel::Test)) computes `s t (c.e) + |r| w`,
//! where `w` is `|q| + |p|` rounded up. A code is a nearest integer, so a remainder is no
//! greater than its number except for a rounding, `|r| <= 1.01 |x|` and `|p| <= 1.01 |q|`; then
//! `|s t (c.e)| <= |x - r| |q - p| < 5` and `|r| w < 3`. The first term has three roundings (of
//! the sum to 32 bits, and two products), the second has one, their sum, below 8, has one: less
//! than `1.01 (3 * 5 + 3 + 8) u < 2^-19`.
//!
//! So a row whose score reaches `threshold` passes
//!
//! ```text
//! s t (c.e) + |r| w >= threshold - N |p| - 1.01 m u N^2 - 2^-18                     (2)
//! ```
//!
//! as computed, where 2^-18 is more than both error terms together, and the right side is
//! computed in 64 bits and rounded down ([`Query::test`]).
//!
//! Sums of codes fit in 32 bits, at every point of the sum: the step is chosen such that
//! `127 * sum |e_i| < 2^31`.

use crate::kernel::{CHUNK, Codes, Numbers, QueryCodes, Test};
use crate::{MAX_DIMENSION, VectorError};

/// Allowed deviation of a vector's length from one: the error of 16-bit numbers.
const TOLERANCE: f64 = 1e-3;

/// `N`: an upper bound of every vector's length, however it was computed.
const LONGEST: f64 = 1.002;

/// The largest code of a row.
const ROW_CODE: f32 = 127.0;

/// The largest code of a query.
const QUERY_CODE: f32 = 32_767.0;

/// The maximum sum of a query's codes.
const QUERY_SUM: u64 = i32::MAX as u64 / ROW_CODE as u64;

/// An upper bound of the roundings on the left side of the test, and of a score's underflows.
const SLACK: f64 = 1.0 / (1 << 18) as f64;

/// An upper bound of the roundings in a length computed in 64 bits.
const MEASURED: f64 = 1.0 + 1.0 / (1 << 20) as f64;

/// Checks an index's vector: its dimension, finite numbers, and a length of zero or one.
pub(crate) fn check(vector: &[f32], dimension: usize) -> Result<(), VectorError> {
    if vector.len() != dimension {
        return Err(VectorError::Length {
            expected: dimension,
            found: vector.len(),
        });
    }
    finite(vector)?;
    let length = length(vector.iter().copied().map(f64::from));
    if length == 0.0 || (length - 1.0).abs() <= TOLERANCE {
        Ok(())
    } else {
        Err(VectorError::NotUnit)
    }
}

/// The vector of length one in the same direction; zero stays zero.
///
/// # Errors
/// If one of its numbers is not finite, or there are none or more than [`MAX_DIMENSION`].
pub fn normalized(vector: &[f32]) -> Result<Vec<f32>, VectorError> {
    dimension(vector.len())?;
    finite(vector)?;
    let length = length(vector.iter().copied().map(f64::from));
    if length == 0.0 {
        return Ok(vector.to_vec());
    }
    let numbers = vector.iter().map(|x| (f64::from(*x) / length) as f32);
    Ok(numbers.collect())
}

/// Checks a dimension.
pub(crate) fn dimension(dimension: usize) -> Result<(), VectorError> {
    if (1..=MAX_DIMENSION).contains(&dimension) {
        Ok(())
    } else {
        Err(VectorError::Dimension { dimension })
    }
}

fn finite(vector: &[f32]) -> Result<(), VectorError> {
    match vector.iter().position(|x| !x.is_finite()) {
        Some(at) => Err(VectorError::NotFinite { at }),
        None => Ok(()),
    }
}

fn length(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}

/// A 32-bit number that is not below a measured length.
fn above(length: f64) -> f32 {
    ((length * MEASURED) as f32).next_up()
}

fn greatest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// The nearest integer, clamped; halves round away from zero.
fn nearest(x: f32, most: f32) -> f32 {
    (x + 0.5_f32.copysign(x)).trunc().clamp(-most, most)
}

/// A vector as chunks.
pub(crate) fn chunked(vector: &[f32]) -> Vec<Numbers> {
    let chunks = vector.chunks(CHUNK);
    chunks
        .map(|chunk| {
            let mut whole = [0.0; CHUNK];
            whole[..chunk.len()].copy_from_slice(chunk);
            whole
        })
        .collect()
}

/// Writes the codes of a row, one chunk for each item of `codes`. Gives the scale and an upper
/// bound of the remainder's length.
pub(crate) fn encode<'a>(row: &[f32], codes: impl Iterator<Item = &'a mut Codes>) -> (f32, f32) {
    let most = greatest(row);
    let (scale, codes_of_one) = if most == 0.0 {
        (0.0, 0.0)
    } else {
        (most / ROW_CODE, ROW_CODE / most)
    };
    let mut rest = 0.0;
    for (numbers, codes) in row.chunks(CHUNK).zip(codes) {
        for (x, code) in numbers.iter().zip(codes) {
            let nearest = nearest(x * codes_of_one, ROW_CODE);
            *code = nearest as i8;
            let left = f64::from(*x) - f64::from(scale) * f64::from(*code);
            rest += left * left;
        }
    }
    (scale, above(rest.sqrt()))
}

/// A query in both forms.
pub(crate) struct Query {
    pub(crate) numbers: Vec<Numbers>,
    codes: Vec<QueryCodes>,
    step: f32,
    weight: f32,
    /// The amount that the right side of (2) subtracts from the threshold.
    slack: f64,
}

impl Query {
    /// The query of a checked vector.
    pub(crate) fn new(vector: &[f32]) -> Query {
        let numbers = chunked(vector);
        let (codes, step) = query_codes(vector);
        let rests = vector.iter().zip(codes.as_flattened());
        let rest = length(rests.map(|(x, e)| f64::from(*x) - f64::from(step) * f64::from(*e)));
        let whole = length(vector.iter().copied().map(f64::from));
        let roundings = (numbers.len() + 6) as f64 * f64::from(f32::EPSILON) / 2.0;
        Query {
            codes,
            step,
            weight: above(whole + rest),
            slack: LONGEST * rest * MEASURED + 1.01 * roundings * LONGEST * LONGEST + SLACK,
            numbers,
        }
    }

    /// The test that every row passes whose score reaches the threshold.
    pub(crate) fn test(&self, threshold: f32) -> Test<'_> {
        Test {
            codes: &self.codes,
            step: self.step,
            weight: self.weight,
            cut: ((f64::from(threshold) - self.slack) as f32).next_down(),
        }
    }
}

/// Codes and step: as fine as 16 bits and the sum allow.
fn query_codes(vector: &[f32]) -> (Vec<QueryCodes>, f32) {
    let sum: f64 = vector.iter().map(|x| f64::from(x.abs())).sum();
    // Each code may exceed its number by one half.
    let room = QUERY_SUM as f64 - vector.len() as f64;
    let mut step = (greatest(vector) / QUERY_CODE).max((sum / room) as f32);
    loop {
        let codes = codes_at(vector, step);
        let sum: u64 = codes
            .as_flattened()
            .iter()
            .map(|e| u64::from(e.unsigned_abs()))
            .sum();
        if sum <= QUERY_SUM {
            return (codes, step);
        }
        step *= 2.0;
    }
}

fn codes_at(vector: &[f32], step: f32) -> Vec<QueryCodes> {
    let codes_of_one = if step == 0.0 { 0.0 } else { step.recip() };
    let code = |x: &f32| nearest(x * codes_of_one, QUERY_CODE) as i16;
    let chunks = vector.chunks(CHUNK);
    chunks
        .map(|numbers| {
            let mut codes = [0; CHUNK];
            for (x, place) in numbers.iter().zip(&mut codes) {
                *place = code(x);
            }
            codes
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Query, chunked, encode, normalized, query_codes};
    use crate::kernel::{ABREAST, CHUNK, Codes, Group, QueryCodes, passing, score};
    use crate::{MAX_DIMENSION, VectorError};
    use fearless_simd::Level;
    use proptest::prelude::*;

    /// Score of a row, and whether it passes a threshold so much above it.
    fn passes(level: Level, row: &[f32], query: &[f32], above: f32) -> (f32, bool) {
        let numbers = chunked(row);
        let mut codes: Vec<Codes> = vec![[0; CHUNK]; numbers.len() * ABREAST];
        let (scale, error) = encode(row, codes.iter_mut().step_by(ABREAST));
        let query = Query::new(query);
        let score = score(level, &numbers, &query.numbers);
        let group = Group {
            codes: &codes,
            scales: &[scale],
            errors: &[error],
        };
        (score, passing(level, group, query.test(score + above)) == 1)
    }

    /// Numbers of all sizes, so that the greatest leave nothing of the others in codes.
    fn number() -> impl Strategy<Value = f32> {
        prop_oneof![
            4 => -1.0_f32..1.0,
            1 => (-149_i32..=0, any::<bool>()).prop_map(|(exponent, minus)| {
                let number = 2.0_f32.powi(exponent);
                if minus { -number } else { number }
            }),
            1 => prop::sample::select(vec![0.0, -0.0, 1e-30, -1e-30, 1e-45, 1.0, f32::MAX, f32::MIN]),
        ]
    }

    fn pair() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
        (1_usize..300).prop_flat_map(|dimension| {
            let vector = || prop::collection::vec(number(), dimension);
            (vector(), vector())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// The statement of the proof.
        #[test]
        fn no_row_fails_at_its_own_score((row, query) in pair()) {
            let row = normalized(&row).expect("finite");
            let query = normalized(&query).expect("finite");
            for level in [Level::new(), Level::baseline()] {
                let (score, passed) = passes(level, &row, &query, 0.0);
                prop_assert!(passed, "{score}");
                prop_assert!(passes(level, &row, &row, 0.0).1);
            }
        }

        /// Vectors need not be of length one to the last bit.
        #[test]
        fn lengths_at_the_border_are_sound((row, query) in pair(), longer in any::<bool>()) {
            let by = if longer { 1.000_99 } else { 0.999_01 };
            let scaled = |vector: &[f32]| -> Vec<f32> {
                let unit = normalized(vector).expect("finite");
                unit.iter().map(|x| x * by).collect()
            };
            let (row, query) = (scaled(&row), scaled(&query));
            prop_assert!(super::check(&row, row.len()).is_ok());
            prop_assert!(passes(Level::new(), &row, &query, 0.0).1);
        }
    }

    #[test]
    fn the_bound_is_close() {
        let vector = |by: usize| -> Vec<f32> {
            let numbers: Vec<f32> = (0..384).map(|n| ((n * by % 101) as f32) - 50.0).collect();
            normalized(&numbers).expect("finite")
        };
        for (a, b) in [(7, 13), (3, 90), (29, 31)] {
            let (_, passed) = passes(Level::new(), &vector(a), &vector(b), 0.01);
            assert!(!passed, "{a} {b}");
        }
    }

    #[test]
    fn sums_of_codes_fit_at_the_largest_dimension() {
        let flat = normalized(&vec![1.0; MAX_DIMENSION]).expect("finite");
        let mut spike = vec![1e-3; MAX_DIMENSION];
        spike[77] = 1.0;
        let spike = normalized(&spike).expect("finite");
        for vector in [&flat, &spike] {
            let (codes, _) = query_codes(vector);
            let sum = |codes: &[QueryCodes]| -> i64 {
                codes
                    .as_flattened()
                    .iter()
                    .map(|e| i64::from(*e).abs())
                    .sum()
            };
            assert!(sum(&codes) * 127 <= i64::from(i32::MAX));
        }
        for (row, query) in [(&flat, &flat), (&flat, &spike), (&spike, &spike)] {
            assert!(passes(Level::new(), row, query, 0.0).1);
        }
        // A sum that did not fit would be far off.
        assert!(!passes(Level::new(), &flat, &flat, 0.02).1);
        let against: Vec<f32> = flat.iter().map(|x| -x).collect();
        assert!(!passes(Level::new(), &flat, &against, 0.02).1);
    }

    #[test]
    fn normalized_vectors_have_length_one_or_are_zero() {
        assert_eq!(normalized(&[3.0, -4.0]), Ok(vec![0.6, -0.8]));
        assert_eq!(normalized(&[0.0, 0.0]), Ok(vec![0.0, 0.0]));
        assert_eq!(normalized(&[1e-45, 0.0]), Ok(vec![1.0, 0.0]));
        assert_eq!(normalized(&[f32::MAX, 0.0]), Ok(vec![1.0, 0.0]));
        let nan = normalized(&[0.0, f32::NAN]);
        assert_eq!(nan, Err(VectorError::NotFinite { at: 1 }));
        assert_eq!(
            normalized(&[]),
            Err(VectorError::Dimension { dimension: 0 })
        );
    }
}
