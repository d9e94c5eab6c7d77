//! Softfloat: IEEE 754 arithmetic on bit patterns, with integers only.
//!
//! Exact results have a sign, an exponent and up to 128 bits of significand, and are
//! rounded once, in [`round`]. That is slower than the host's floating point, but right for
//! every rounding mode and flag.

use super::format::{Float, Num, Parts, Rounding, flag, quiet_nan, unpack};

/// Bit to which the larger operand of a sum is shifted: one below the top, so that the sum
/// fits. Products have 106 bits, so bits that the smaller operand loses are far below the
/// last place of the result (see [`add_parts`]).
const SUM_TOP: u32 = 126;

/// Rounds `(-1)^sign * sig * 2^exp` to the format. Bit 0 of `sig` may be a sticky bit for
/// non-zero bits below it; `sig` is not zero.
pub(crate) fn round<F: Float>(
    sign: bool,
    exp: i32,
    sig: u128,
    mode: Rounding,
    flags: &mut u8,
) -> u64 {
    let top = 127 - sig.leading_zeros() as i32;
    let exponent = exp + top;
    let fraction = F::FRACTION as i32;
    let tiny = exponent < F::MIN_EXP;
    let drop = exponent.max(F::MIN_EXP) - fraction - exp;
    let (kept, inexact) = shift_rounding(sign, sig, drop, mode);
    let biased = (exponent.max(F::MIN_EXP) - F::MIN_EXP) as u64;
    let magnitude = (biased << F::FRACTION) + kept;
    if magnitude >= F::INFINITY {
        *flags |= flag::OVERFLOW | flag::INEXACT;
        return overflow::<F>(sign, mode);
    }
    if inexact {
        *flags |= flag::INEXACT;
        // Tininess is detected after rounding: what rounds up to the least
        // normal number with an unbounded exponent is not tiny.
        let (unbounded, _) = shift_rounding(sign, sig, exponent - fraction - exp, mode);
        let grew = unbounded >> (F::FRACTION + 1) != 0;
        if tiny && !(exponent == F::MIN_EXP - 1 && grew) {
            *flags |= flag::UNDERFLOW;
        }
    }
    with_sign::<F>(sign, magnitude)
}

/// Result of an overflow: infinity, or the largest number if the mode rounds towards zero.
fn overflow<F: Float>(sign: bool, mode: Rounding) -> u64 {
    let to_infinity = match mode {
        Rounding::NearestEven | Rounding::NearestMaxMagnitude => true,
        Rounding::Zero => false,
        Rounding::Down => sign,
        Rounding::Up => !sign,
    };
    with_sign::<F>(sign, F::INFINITY - u64::from(!to_infinity))
}

/// Drops the low `drop` bits of `sig` (or shifts it left by `-drop`), rounded; also returns
/// whether that was inexact.
pub(crate) fn shift_rounding(sign: bool, sig: u128, drop: i32, mode: Rounding) -> (u64, bool) {
    if drop <= 0 {
        return ((sig << -drop) as u64, false);
    }
    // From 128 on everything is dropped; `sig` is then below a half.
    let (kept, rest, half) = if drop > 127 {
        (0, 1, 2)
    } else {
        (sig >> drop, sig & ((1 << drop) - 1), 1 << (drop - 1))
    };
    let up = match mode {
        Rounding::NearestEven => rest > half || rest == half && kept & 1 == 1,
        Rounding::NearestMaxMagnitude => rest >= half,
        Rounding::Zero => false,
        Rounding::Down => sign && rest != 0,
        Rounding::Up => !sign && rest != 0,
    };
    (kept as u64 + u64::from(up), rest != 0)
}

/// A magnitude with its sign.
pub(crate) fn with_sign<F: Float>(sign: bool, magnitude: u64) -> u64 {
    magnitude | if sign { F::SIGN } else { 0 }
}

/// Returns the canonical NaN if an operand is a NaN; signals for a signaling one.
fn nan<F: Float>(operands: &[Num], flags: &mut u8) -> Option<u64> {
    let mut found = false;
    for operand in operands {
        if let Num::Nan { signaling } = operand {
            found = true;
            if *signaling {
                *flags |= flag::INVALID;
            }
        }
    }
    found.then(quiet_nan::<F>)
}

fn invalid<F: Float>(flags: &mut u8) -> u64 {
    *flags |= flag::INVALID;
    quiet_nan::<F>()
}

/// Shifts a significand right, with a sticky bit 0.
fn shift_sticky(sig: u128, by: u32) -> u128 {
    match by {
        0 => sig,
        128.. => 1,
        _ => sig >> by | u128::from(sig << (128 - by) != 0),
    }
}

/// A product or an operand: sign, exponent, significand.
#[derive(Clone, Copy)]
struct Wide {
    sign: bool,
    exp: i32,
    sig: u128,
}

impl From<Parts> for Wide {
    fn from(parts: Parts) -> Self {
        Self {
            sign: parts.sign,
            exp: parts.exp,
            sig: u128::from(parts.sig),
        }
    }
}

impl Wide {
    /// Shifts the top bit to [`SUM_TOP`].
    fn normalized(self) -> Self {
        let left = self.sig.leading_zeros() as i32 - (127 - SUM_TOP as i32);
        Self {
            exp: self.exp - left,
            sig: self.sig << left,
            ..self
        }
    }
}

/// Adds two non-zero numbers, rounded once.
///
/// The smaller one is shifted to the larger one's exponent. Bits that it loses become a
/// sticky bit. That happens only when its top is at least 21 places below the other's, so
/// the sum keeps more than 100 bits above the sticky one.
fn add_parts<F: Float>(a: Wide, b: Wide, mode: Rounding, flags: &mut u8) -> u64 {
    let (a, b) = (a.normalized(), b.normalized());
    let (large, small) = if (a.exp, a.sig) >= (b.exp, b.sig) {
        (a, b)
    } else {
        (b, a)
    };
    let small_sig = shift_sticky(small.sig, (large.exp - small.exp) as u32);
    let sig = if large.sign == small.sign {
        large.sig + small_sig
    } else {
        large.sig - small_sig
    };
    if sig == 0 {
        return with_sign::<F>(mode == Rounding::Down, 0);
    }
    round::<F>(large.sign, large.exp, sig, mode, flags)
}

/// Sum.
pub(crate) fn add<F: Float>(a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    if let Some(nan) = nan::<F>(&[x, y], flags) {
        return nan;
    }
    match (x, y) {
        (Num::Infinite(s), Num::Infinite(t)) if s != t => invalid::<F>(flags),
        (Num::Infinite(_), _) => a,
        (_, Num::Infinite(_)) => b,
        (Num::Zero(s), Num::Zero(t)) if s == t => a,
        (Num::Zero(_), Num::Zero(_)) => with_sign::<F>(mode == Rounding::Down, 0),
        (Num::Zero(_), _) => b,
        (_, Num::Zero(_)) => a,
        (Num::Finite(x), Num::Finite(y)) => add_parts::<F>(x.into(), y.into(), mode, flags),
        (Num::Nan { .. }, _) | (_, Num::Nan { .. }) => quiet_nan::<F>(),
    }
}

/// Difference.
#[cfg(test)]
pub(crate) fn sub<F: Float>(a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
    add::<F>(a, b ^ F::SIGN, mode, flags)
}

/// Product.
pub(crate) fn mul<F: Float>(a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    if let Some(nan) = nan::<F>(&[x, y], flags) {
        return nan;
    }
    let sign = (a ^ b) & F::SIGN != 0;
    match (x, y) {
        (Num::Infinite(_), Num::Zero(_)) | (Num::Zero(_), Num::Infinite(_)) => invalid::<F>(flags),
        (Num::Infinite(_), _) | (_, Num::Infinite(_)) => with_sign::<F>(sign, F::INFINITY),
        (Num::Finite(x), Num::Finite(y)) => {
            let sig = u128::from(x.sig) * u128::from(y.sig);
            round::<F>(sign, x.exp + y.exp, sig, mode, flags)
        }
        _ => with_sign::<F>(sign, 0),
    }
}

/// Quotient.
pub(crate) fn div<F: Float>(a: u64, b: u64, mode: Rounding, flags: &mut u8) -> u64 {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    if let Some(nan) = nan::<F>(&[x, y], flags) {
        return nan;
    }
    let sign = (a ^ b) & F::SIGN != 0;
    match (x, y) {
        (Num::Infinite(_), Num::Infinite(_)) | (Num::Zero(_), Num::Zero(_)) => invalid::<F>(flags),
        (Num::Infinite(_), _) => with_sign::<F>(sign, F::INFINITY),
        (Num::Finite(_), Num::Zero(_)) => {
            *flags |= flag::DIVIDE_BY_ZERO;
            with_sign::<F>(sign, F::INFINITY)
        }
        (Num::Finite(x), Num::Finite(y)) => {
            // 117 or more bits over at most 53 give at least 64.
            let shift = u128::from(x.sig).leading_zeros() as i32;
            let dividend = u128::from(x.sig) << shift;
            let divisor = u128::from(y.sig);
            let quotient = dividend / divisor;
            let sticky = u128::from(quotient * divisor != dividend);
            let exp = x.exp - shift - y.exp;
            round::<F>(sign, exp, quotient | sticky, mode, flags)
        }
        _ => with_sign::<F>(sign, 0),
    }
}

/// Square root.
pub(crate) fn sqrt<F: Float>(a: u64, mode: Rounding, flags: &mut u8) -> u64 {
    let x = unpack::<F>(a);
    if let Some(nan) = nan::<F>(&[x], flags) {
        return nan;
    }
    match x {
        Num::Zero(_) | Num::Infinite(false) => a,
        Num::Finite(x) if !x.sign => {
            // An even exponent, and 126 or more bits: a root of at least 63.
            let mut shift = u128::from(x.sig).leading_zeros() as i32;
            shift -= (x.exp - shift) & 1;
            let square = u128::from(x.sig) << shift;
            let root = square.isqrt();
            let sticky = u128::from(root * root != square);
            let exp = (x.exp - shift) / 2;
            round::<F>(false, exp, root | sticky, mode, flags)
        }
        _ => invalid::<F>(flags),
    }
}

/// `a * b + c`, rounded once.
pub(crate) fn fma<F: Float>(a: u64, b: u64, c: u64, mode: Rounding, flags: &mut u8) -> u64 {
    let (x, y, z) = (unpack::<F>(a), unpack::<F>(b), unpack::<F>(c));
    let sign = (a ^ b) & F::SIGN != 0;
    let zero_times_infinity = matches!(
        (x, y),
        (Num::Infinite(_), Num::Zero(_)) | (Num::Zero(_), Num::Infinite(_))
    );
    if zero_times_infinity {
        // Invalid even when the addend is a quiet NaN.
        return invalid::<F>(flags);
    }
    if let Some(nan) = nan::<F>(&[x, y, z], flags) {
        return nan;
    }
    match (x, y, z) {
        (Num::Infinite(_), _, _) | (_, Num::Infinite(_), _) => match z {
            Num::Infinite(other) if other != sign => invalid::<F>(flags),
            _ => with_sign::<F>(sign, F::INFINITY),
        },
        (_, _, Num::Infinite(_)) => c,
        (Num::Finite(x), Num::Finite(y), _) => {
            let sig = u128::from(x.sig) * u128::from(y.sig);
            let exp = x.exp + y.exp;
            match z {
                Num::Finite(z) => add_parts::<F>(Wide { sign, exp, sig }, z.into(), mode, flags),
                _ => round::<F>(sign, exp, sig, mode, flags),
            }
        }
        // The product is a zero.
        (_, _, Num::Zero(other)) if other != sign => with_sign::<F>(mode == Rounding::Down, 0),
        _ => c,
    }
}
