//! Floating-point formats, and unpacked numbers.

/// Accrued exception flags, as in `fflags`.
pub(crate) mod flag {
    /// Inexact.
    pub(crate) const INEXACT: u8 = 1;
    /// Underflow: tiny after rounding, and inexact.
    pub(crate) const UNDERFLOW: u8 = 2;
    /// Overflow.
    pub(crate) const OVERFLOW: u8 = 4;
    /// Division of a finite number by zero.
    pub(crate) const DIVIDE_BY_ZERO: u8 = 8;
    /// Invalid operation.
    pub(crate) const INVALID: u8 = 16;
}

/// Rounding modes, in the order of `frm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, ties to even.
    NearestEven,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// To nearest, ties away from zero.
    NearestMaxMagnitude,
}

impl Rounding {
    /// Rounding mode of a three-bit code; 5 to 7 are reserved.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::NearestEven,
            1 => Self::Zero,
            2 => Self::Down,
            3 => Self::Up,
            4 => Self::NearestMaxMagnitude,
            _ => return None,
        })
    }
}

/// A binary interchange format, with patterns in the low bits of a `u64`.
pub(crate) trait Float {
    /// Bits of the fraction.
    const FRACTION: u32;
    /// Exponent of the least normal number.
    const MIN_EXP: i32;
    /// The sign bit.
    const SIGN: u64;
    /// Positive infinity.
    const INFINITY: u64;
}

/// binary32.
pub(crate) struct F32;

impl Float for F32 {
    const FRACTION: u32 = 23;
    const MIN_EXP: i32 = -126;
    const SIGN: u64 = 1 << 31;
    const INFINITY: u64 = 0xff << 23;
}

/// binary64.
pub(crate) struct F64;

impl Float for F64 {
    const FRACTION: u32 = 52;
    const MIN_EXP: i32 = -1022;
    const SIGN: u64 = 1 << 63;
    const INFINITY: u64 = 0x7ff << 52;
}

/// A finite non-zero number: `(-1)^sign * sig * 2^exp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Negative.
    pub sign: bool,
    /// Exponent of the significand's last bit.
    pub exp: i32,
    /// Significand, not zero.
    pub sig: u64,
}

/// A number by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Num {
    /// Zero; true if negative.
    Zero(bool),
    /// Infinity; true if negative.
    Infinite(bool),
    /// Not a number.
    Nan {
        /// Whether the NaN is signaling.
        signaling: bool,
    },
    /// A finite non-zero number.
    Finite(Parts),
}

/// The canonical NaN: positive, quiet, no payload.
pub(crate) fn quiet_nan<F: Float>() -> u64 {
    F::INFINITY | 1 << (F::FRACTION - 1)
}

/// Whether the pattern is a NaN.
pub(crate) fn is_nan<F: Float>(bits: u64) -> bool {
    bits & !F::SIGN > F::INFINITY
}

/// Whether the pattern is a signaling NaN.
pub(crate) fn is_signaling<F: Float>(bits: u64) -> bool {
    is_nan::<F>(bits) && bits >> (F::FRACTION - 1) & 1 == 0
}

/// Unpacks a pattern.
pub(crate) fn unpack<F: Float>(bits: u64) -> Num {
    let sign = bits & F::SIGN != 0;
    let magnitude = bits & !F::SIGN;
    if magnitude == 0 {
        return Num::Zero(sign);
    }
    if magnitude == F::INFINITY {
        return Num::Infinite(sign);
    }
    if magnitude > F::INFINITY {
        return Num::Nan {
            signaling: is_signaling::<F>(bits),
        };
    }
    let fraction = magnitude & ((1 << F::FRACTION) - 1);
    let biased = (magnitude >> F::FRACTION) as i32;
    let hidden = u64::from(biased != 0) << F::FRACTION;
    Num::Finite(Parts {
        sign,
        exp: F::MIN_EXP - F::FRACTION as i32 + (biased - 1).max(0),
        sig: fraction | hidden,
    })
}
