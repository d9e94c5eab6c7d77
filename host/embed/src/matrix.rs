//! Matrices of weights, as published or quantized to eight bits a number.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, s};

/// The precision of a model's weights in memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As published: 32 bits a number, about 90 MB.
    #[default]
    F32,
    /// 8 bits a number with a scale for each 32 numbers, about 26 MB; vectors are nearly the
    /// same.
    Int8,
}

/// Numbers that share a scale.
pub(crate) const BLOCK: usize = 32;

/// Rows that are dequantized at a time, as many as one product takes.
const PANEL: usize = 256;

/// A matrix that is being read or used, row by row.
#[derive(Debug)]
pub(crate) struct Matrix {
    columns: usize,
    numbers: Numbers,
}

#[derive(Debug)]
enum Numbers {
    F32(Vec<f32>),
    Int8 { values: Vec<i8>, scales: Vec<f32> },
}

impl Matrix {
    /// An empty matrix with capacity for `rows`. With eight bits, columns are a multiple of
    /// [`BLOCK`].
    pub(crate) fn new(precision: Precision, rows: usize, columns: usize) -> Matrix {
        let size = rows * columns;
        let numbers = match precision {
            Precision::F32 => Numbers::F32(Vec::with_capacity(size)),
            Precision::Int8 => Numbers::Int8 {
                values: Vec::with_capacity(size),
                scales: Vec::with_capacity(size.div_ceil(BLOCK)),
            },
        };
        Matrix { columns, numbers }
    }

    /// Appends whole blocks of numbers.
    pub(crate) fn extend(&mut self, numbers: &[f32]) {
        match &mut self.numbers {
            Numbers::F32(all) => all.extend_from_slice(numbers),
            Numbers::Int8 { values, scales } => {
                for block in numbers.chunks(BLOCK) {
                    scales.push(quantize(block, values));
                }
            }
        }
    }

    pub(crate) fn rows(&self) -> usize {
        let size = match &self.numbers {
            Numbers::F32(all) => all.len(),
            Numbers::Int8 { values, .. } => values.len(),
        };
        size / self.columns
    }

    /// Writes rows from `first` on, as many as fit into `out`.
    pub(crate) fn copy_rows(&self, first: usize, out: &mut [f32]) {
        let from = first * self.columns;
        let range = from..from + out.len();
        match &self.numbers {
            Numbers::F32(all) => out.copy_from_slice(&all[range]),
            Numbers::Int8 { values, scales } => {
                let (values, _) = values[range].as_chunks::<BLOCK>();
                let (out, _) = out.as_chunks_mut::<BLOCK>();
                let scales = &scales[from / BLOCK..];
                for ((out, values), scale) in out.iter_mut().zip(values).zip(scales) {
                    for (out, value) in out.iter_mut().zip(values) {
                        *out = f32::from(*value) * scale;
                    }
                }
            }
        }
    }

    /// Adds the product of `left` and this matrix to `out`. `panel` is working memory.
    pub(crate) fn multiply(
        &self,
        left: &ArrayView2<'_, f32>,
        out: &mut ArrayViewMut2<'_, f32>,
        panel: &mut Vec<f32>,
    ) {
        let (rows, columns) = (self.rows(), self.columns);
        if let Numbers::F32(all) = &self.numbers {
            general_mat_mul(1.0, left, &shaped(all, rows, columns), 1.0, out);
            return;
        }
        for first in (0..rows).step_by(PANEL) {
            let count = PANEL.min(rows - first);
            panel.resize(count * columns, 0.0);
            self.copy_rows(first, panel);
            let left = left.slice(s![.., first..first + count]);
            general_mat_mul(1.0, &left, &shaped(panel, count, columns), 1.0, out);
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.numbers {
            Numbers::F32(all) => all.capacity() * size_of::<f32>(),
            Numbers::Int8 { values, scales } => {
                values.capacity() + scales.capacity() * size_of::<f32>()
            }
        }
    }
}

/// A view of a slice as rows, without an incomplete last row.
pub(crate) fn shaped(numbers: &[f32], rows: usize, columns: usize) -> ArrayView2<'_, f32> {
    let exact = &numbers[..rows * columns];
    ArrayView1::from(exact)
        .into_shape_with_order((rows, columns))
        .unwrap_or_else(|_| unreachable!("so many numbers were taken"))
}

/// A mutable view of a slice as rows, without an incomplete last row.
pub(crate) fn shaped_mut(
    numbers: &mut [f32],
    rows: usize,
    columns: usize,
) -> ArrayViewMut2<'_, f32> {
    let exact = &mut numbers[..rows * columns];
    ArrayViewMut2::from_shape((rows, columns), exact)
        .unwrap_or_else(|_| unreachable!("so many numbers were taken"))
}

/// Appends the numbers of a block, quantized so that the largest becomes 127, and gives their
/// scale.
fn quantize(block: &[f32], values: &mut Vec<i8>) -> f32 {
    let most = block.iter().fold(0.0f32, |most, n| most.max(n.abs()));
    let scale = most / 127.0;
    let factor = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    // A tiny scale has no finite reciprocal; its numbers become zero.
    let factor = if factor.is_finite() { factor } else { 0.0 };
    values.extend(block.iter().map(|n| (n * factor).round() as i8));
    scale
}

/// A linear map: a matrix, and a bias added to each row of its product.
#[derive(Debug)]
pub(crate) struct Linear {
    /// A row for each input, a column for each output: the fastest layout for products.
    pub(crate) weight: Matrix,
    pub(crate) bias: Vec<f32>,
}

impl Linear {
    /// Writes the map of `left`'s rows to `out`.
    pub(crate) fn apply(&self, left: &[f32], out: &mut [f32], panel: &mut Vec<f32>) {
        let width = self.bias.len();
        let rows = out.len() / width;
        for row in out.chunks_exact_mut(width) {
            row.copy_from_slice(&self.bias);
        }
        let left = shaped(left, rows, self.weight.rows());
        self.weight
            .multiply(&left, &mut shaped_mut(out, rows, width), panel);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.weight.memory_bytes() + self.bias.len() * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matrix(precision: Precision, numbers: &[f32], columns: usize) -> Matrix {
        let mut matrix = Matrix::new(precision, numbers.len() / columns, columns);
        matrix.extend(numbers);
        matrix
    }

    proptest! {
        #[test]
        fn eight_bits_are_within_half_a_step(
            block in prop::collection::vec(-1e3f32..1e3, BLOCK),
            exponent in -30i32..30,
        ) {
            let block: Vec<f32> = block.iter().map(|n| n * 2f32.powi(exponent)).collect();
            let mut back = vec![0.0; BLOCK];
            matrix(Precision::Int8, &block, BLOCK).copy_rows(0, &mut back);
            let most = block.iter().fold(0.0f32, |most, n| most.max(n.abs()));
            for (back, exact) in back.iter().zip(&block) {
                prop_assert!((back - exact).abs() <= most / 127.0 * 0.501, "{back} {exact}");
            }
        }

        #[test]
        fn products_are_sums_of_products(
            rows in 1usize..300, count in 1usize..5, seed in any::<u32>(),
        ) {
            let mut state = seed | 1;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            let columns = 2 * BLOCK;
            let weight: Vec<f32> = (0..rows * columns).map(|_| next()).collect();
            let left: Vec<f32> = (0..count * rows).map(|_| next()).collect();
            let bias: Vec<f32> = (0..columns).map(|_| next()).collect();
            for precision in [Precision::F32, Precision::Int8] {
                let weight = matrix(precision, &weight, columns);
                let mut kept = vec![0.0; rows * columns];
                weight.copy_rows(0, &mut kept);
                let linear = Linear { weight, bias: bias.clone() };
                let mut out = vec![0.0; count * columns];
                linear.apply(&left, &mut out, &mut Vec::new());
                for (i, left) in left.chunks(rows).enumerate() {
                    for (j, bias) in bias.iter().enumerate() {
                        let right = kept[j..].iter().step_by(columns);
                        let dot: f32 = left.iter().zip(right).map(|(a, b)| a * b).sum();
                        let found = out[i * columns + j];
                        prop_assert!((found - dot - bias).abs() < 1e-3, "{found} {dot}");
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_without_size_are_nothing() {
        for block in [[0.0; BLOCK], [f32::from_bits(1); BLOCK], [1e-39; BLOCK]] {
            let mut back = vec![1.0; BLOCK];
            matrix(Precision::Int8, &block, BLOCK).copy_rows(0, &mut back);
            assert!(back.iter().all(|n| n.abs() <= 1e-38), "{back:?}");
        }
    }

    #[test]
    fn eight_bits_take_little_more_than_a_quarter() {
        let numbers = vec![1.0; 64 * BLOCK];
        let of = |precision| matrix(precision, &numbers, BLOCK).memory_bytes();
        assert_eq!(of(Precision::F32), 64 * BLOCK * 4);
        assert_eq!(of(Precision::Int8), 64 * (BLOCK + 4));
    }
}
