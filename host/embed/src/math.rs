//! Functions over slices, written for auto-vectorisation: no calls, no branches, sums in lanes.

/// Number of partial sums.
const LANES: usize = 8;

/// The sum of `f` over the items, in lanes.
fn sum(items: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = items.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, item) in lanes.iter_mut().zip(chunk) {
            *lane += f(*item);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|item| f(*item)).sum::<f32>()
}

/// The largest item; negative infinity for an empty slice.
fn largest(items: &[f32]) -> f32 {
    let more = |a: f32, b: f32| if b > a { b } else { a };
    let (chunks, rest) = items.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, item) in lanes.iter_mut().zip(chunk) {
            *lane = more(*lane, *item);
        }
    }
    lanes
        .iter()
        .chain(rest)
        .copied()
        .fold(f32::NEG_INFINITY, more)
}

/// The exponential function for arguments that are not positive, with an error of a few units
/// in the last place; zero below -64. Smaller results, divided, would be subnormal: slow, and
/// negligible in a sum.
pub(crate) fn exp(x: f32) -> f32 {
    /// Adding it rounds to the nearest integer, which the low bits then hold.
    const ROUND: f32 = 12_582_912.0;
    /// The logarithm of two in two parts, the first with spare bits for an exact product.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let is_nothing = x < -64.0;
    let x = if is_nothing { -64.0 } else { x };
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    // Coefficients of Cephes' expf.
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_2e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let power = f32::from_bits(rounded.to_bits().wrapping_add(127) << 23);
    let found = (p * r * r + r + 1.0) * power;
    if is_nothing { 0.0 } else { found }
}

/// The error function, with an absolute error below one millionth: a quotient of polynomials
/// with the coefficients of Eigen.
pub(crate) fn erf(x: f32) -> f32 {
    let x = if x > 4.0 { 4.0 } else { x };
    let x = if x < -4.0 { -4.0 } else { x };
    let square = x * x;
    let mut p = -2.726_142_3e-10;
    p = p * square + 2.770_681_3e-8;
    p = p * square - 2.101_024e-6;
    p = p * square - 5.692_506_3e-5;
    p = p * square - 7.349_906_5e-4;
    p = p * square - 2.954_6e-3;
    p = p * square - 1.609_603_3e-2;
    let mut q = -1.456_607_2e-5;
    q = q * square - 2.133_740_6e-4;
    q = q * square - 1.682_827e-3;
    q = q * square - 7.373_329_3e-3;
    q = q * square - 1.426_473_9e-2;
    x * p / q
}

/// The Gaussian error linear unit: each item times the normal distribution's share below it.
pub(crate) fn gelu(items: &mut [f32]) {
    for item in items {
        *item *= 0.5 + 0.5 * erf(*item * std::f32::consts::FRAC_1_SQRT_2);
    }
}

/// Replaces the items with positive numbers whose sum is one.
pub(crate) fn softmax(items: &mut [f32]) {
    let most = largest(items);
    for item in items.iter_mut() {
        *item = exp(*item - most);
    }
    let factor = 1.0 / sum(items, |item| item);
    items.iter_mut().for_each(|item| *item *= factor);
}

/// Scale and shift of a layer's normalisation.
#[derive(Debug, Default)]
pub(crate) struct Norm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

impl Norm {
    /// Normalises the items to mean zero and variance one, then scales and shifts them.
    pub(crate) fn apply(&self, items: &mut [f32], epsilon: f32) {
        let count = items.len() as f32;
        let mean = sum(items, |item| item) / count;
        let variance = sum(items, |item| (item - mean) * (item - mean)) / count;
        let factor = 1.0 / (variance + epsilon).sqrt();
        for ((item, weight), bias) in items.iter_mut().zip(&self.weight).zip(&self.bias) {
            *item = (*item - mean) * factor * weight + bias;
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        (self.weight.len() + self.bias.len()) * size_of::<f32>()
    }
}

/// Scales a vector to length one; a zero vector is unchanged.
pub(crate) fn normalize(items: &mut [f32]) {
    let length = sum(items, |item| item * item).sqrt();
    if length > 0.0 {
        items.iter_mut().for_each(|item| *item /= length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `from` to `to` in steps of a thousandth.
    fn steps(from: i32, to: i32) -> impl Iterator<Item = f32> {
        (from * 1000..=to * 1000).map(|n| n as f32 / 1000.0)
    }

    #[test]
    fn exp_is_that_of_libm() {
        for x in steps(-64, 0) {
            let (ours, exact) = (f64::from(exp(x)), libm::exp(f64::from(x)));
            assert!((ours / exact - 1.0).abs() < 3e-7, "{x}: {ours} {exact}");
        }
        for x in [-64.1, -88.0, -1e30, f32::NEG_INFINITY] {
            assert_eq!(exp(x), 0.0, "{x}");
        }
    }

    #[test]
    fn erf_is_that_of_libm() {
        for x in steps(-10, 10) {
            let (ours, exact) = (f64::from(erf(x)), libm::erf(f64::from(x)));
            assert!((ours - exact).abs() < 5e-7, "{x}: {ours} {exact}");
        }
    }

    #[test]
    fn gelu_keeps_what_is_large_and_drops_what_is_small() {
        let mut items = [-20.0, -1.0, 0.0, 1.0, 20.0];
        gelu(&mut items);
        let exact = [0.0, -0.158_655_25, 0.0, 0.841_344_8, 20.0];
        for (item, exact) in items.iter().zip(exact) {
            assert!((item - exact).abs() < 2e-6, "{items:?}");
        }
    }

    #[test]
    fn softmax_sums_to_one_whatever_the_items_are() {
        for count in [1, 7, 8, 9, 257] {
            let mut items: Vec<f32> = (0..count).map(|n| (n * 37 % 11) as f32 * 9.0).collect();
            items[0] = -1e30;
            softmax(&mut items);
            let total: f32 = items.iter().sum();
            assert!((total - 1.0).abs() < 1e-5, "{count}: {total}");
            assert!(items.iter().all(|item| *item >= 0.0));
        }
    }

    #[test]
    fn norms_have_mean_zero_and_variance_one() {
        let mut items: Vec<f32> = (0..37).map(|n| (n * 29 % 17) as f32).collect();
        let norm = Norm {
            weight: vec![2.0; 37],
            bias: vec![3.0; 37],
        };
        norm.apply(&mut items, 1e-12);
        let mean: f32 = items.iter().sum::<f32>() / 37.0;
        let variance: f32 = items.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 37.0;
        assert!((mean - 3.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4);
    }

    #[test]
    fn vectors_get_length_one() {
        let mut items = [3.0, 4.0];
        normalize(&mut items);
        assert_eq!(items, [0.6, 0.8]);
        let mut nothing = [0.0; 3];
        normalize(&mut nothing);
        assert_eq!(nothing, [0.0; 3]);
    }
}
